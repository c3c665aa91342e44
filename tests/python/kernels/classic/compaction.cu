// Keeps the elements above a limit, in any order; a warp reserves its places with one atomic addition.
__global__ void filter(const int *in, int *out, int *count, int n, int limit) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i - (int)(threadIdx.x % 32) < n; i += gridDim.x * blockDim.x) {
        const bool keep = i < n && in[i] > limit;
        const unsigned int votes = __ballot_sync(0xffffffff, keep), lane = threadIdx.x % 32;
        int first = 0;
        if (lane == 0) first = atomicAdd(count, __popc(votes));
        first = __shfl_sync(0xffffffff, first, 0);
        if (keep) out[first + __popc(votes & ((1u << lane) - 1))] = in[i];
    }
}
