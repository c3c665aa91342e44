// A Julia set with the complex numbers of CUDA.
#include <cuComplex.h>

extern "C" __global__ void julia(int *steps, int width, int height, cuFloatComplex c, int most) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width * height) return;
    cuFloatComplex z = make_cuFloatComplex(3.0f * (i % width) / width - 1.5f, 3.0f * (i / width) / height - 1.5f);
    int k = 0;
    while (k < most && cuCabsf(z) <= 2.0f) {
        z = cuCaddf(cuCmulf(z, z), c);
        ++k;
    }
    steps[i] = k;
}
