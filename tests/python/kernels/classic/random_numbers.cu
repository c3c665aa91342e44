// One generator per thread: cuRAND's device functions.
#include <curand_kernel.h>

extern "C" __global__ void draw(unsigned int *words, float *uniform, float *normal, unsigned long long seed, int draws) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState state;
    curand_init(seed, i, 0, &state);
    for (int k = 0; k < draws; ++k) words[i * draws + k] = curand(&state);
    for (int k = 0; k < draws; ++k) uniform[i * draws + k] = curand_uniform(&state);
    for (int k = 0; k < draws; ++k) normal[i * draws + k] = curand_normal(&state);
}
extern "C" __global__ void philox(uint4 *words, unsigned long long seed) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, 0, 4 * i, &state);
    words[i] = curand4(&state);
}
