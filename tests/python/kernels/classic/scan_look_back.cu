// Prefix sums in one launch: each block waits for the results that earlier blocks have published
// (D. Merrill and M. Garland, 2016). Blocks are numbered in the order in which they start.
#define PARTIAL 1ull
#define COMPLETE 2ull

__global__ void scan(const unsigned int *in, unsigned int *out, unsigned long long *states, unsigned int *tickets,
                     int n) {
    __shared__ unsigned int values[256], ticket, before;
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
    __syncthreads();
    const int i = ticket * blockDim.x + threadIdx.x;
    unsigned int value = i < n ? in[i] : 0;
    values[threadIdx.x] = value;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        const unsigned int other = threadIdx.x >= offset ? values[threadIdx.x - offset] : 0;
        __syncthreads();
        values[threadIdx.x] = value = value + other;
        __syncthreads();
    }
    if (threadIdx.x == blockDim.x - 1) {
        const unsigned int own = value;
        unsigned int sum = 0;
        if (ticket > 0) {
            atomicExch(&states[ticket], PARTIAL << 32 | own);
            for (int t = (int)ticket - 1; t >= 0;) {
                const unsigned long long state = atomicAdd(&states[t], 0ull);
                if (state >> 32 == 0) continue;
                sum += (unsigned int)state;
                if (state >> 32 == COMPLETE) break;
                --t;
            }
        }
        __threadfence();
        atomicExch(&states[ticket], COMPLETE << 32 | (sum + own));
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = before + value;
}
