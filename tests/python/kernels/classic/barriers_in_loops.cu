// Neighbours exchange sorted halves until nothing changes; a counting barrier ends the loop.
__global__ void sort(int *data, int *rounds) {
    __shared__ int line[128];
    const int t = threadIdx.x;
    line[t] = data[blockIdx.x * blockDim.x + t];
    __syncthreads();
    int round = 0, changed;
    do {
        int swaps = 0;
        for (int phase = 0; phase < 2; ++phase) {
            if (t % 2 == phase && t + 1 < blockDim.x && line[t] > line[t + 1]) {
                const int other = line[t];
                line[t] = line[t + 1];
                line[t + 1] = other;
                swaps = 1;
            }
            __syncthreads();
        }
        changed = __syncthreads_or(swaps);
        ++round;
    } while (changed);
    data[blockIdx.x * blockDim.x + t] = line[t];
    if (t == 0) rounds[blockIdx.x] = round;
}
