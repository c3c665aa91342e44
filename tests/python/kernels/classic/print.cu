// Text from kernels.
__global__ void say(const float *x, const char *unused) {
    if (threadIdx.x == 3) printf("block %d of %u: x = %.2f, %s, %5.1e, %c, %%, %lld\n", blockIdx.x, gridDim.x, x[0], "text",
                                 (double)x[1], 'c', 1234567890123ll);
}
