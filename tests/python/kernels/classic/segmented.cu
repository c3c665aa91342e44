// Sums of groups of eight lanes, and prefix sums within a warp.
__global__ void segments(const int *in, int *sums, int *running) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int sum = in[i], scan = in[i];
    for (int offset = 4; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset, 8);
    for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(0xffffffff, scan, offset);
        if (lane >= offset) scan += other;
    }
    sums[i] = sum;
    running[i] = scan;
}
