// Atomic operations without a hardware instruction, by compare and swap; extremes; wrapping counters; locks.
__device__ double multiply(double *address, double factor) {
    unsigned long long *word = (unsigned long long *)address, old = *word, seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __double_as_longlong(factor * __longlong_as_double(seen)));
    } while (seen != old);
    return __longlong_as_double(old);
}

__global__ void all(double *product, unsigned int *wrapping, int *extremes, unsigned int *bits, int *lock, int *guarded) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    multiply(product, i % 2 ? 2.0 : 0.5);
    if (i == 0) multiply(product, 3.0);
    atomicInc(&wrapping[0], 6u);
    atomicDec(&wrapping[1], 6u);
    atomicMin(&extremes[0], i - 50);
    atomicMax(&extremes[1], i * 3);
    atomicXor(&bits[0], 1u << i % 32);
    atomicOr(&bits[1], 1u << i % 32);
    atomicAnd(&bits[2], ~(1u << i % 16));
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int *)guarded = *(volatile int *)guarded + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
