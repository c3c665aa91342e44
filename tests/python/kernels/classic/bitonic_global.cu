// One step of a bitonic sort of the whole array; the host launches all steps.
__global__ void step(float *values, int j, int k) {
    const unsigned int i = threadIdx.x + blockDim.x * blockIdx.x, other = i ^ j;
    if (other <= i) return;
    const bool ascending = (i & k) == 0;
    if (ascending ? values[i] > values[other] : values[i] < values[other]) {
        const float t = values[i];
        values[i] = values[other];
        values[other] = t;
    }
}
