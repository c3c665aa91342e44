// Branches within branches, and loops of different lengths; warps reconverge by masks.
__global__ void collatz(const unsigned int *in, int *steps, int *votes) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned long long x = in[i];
    int count = 0;
    while (x != 1) {
        if (x % 2) {
            x = 3 * x + 1;
        } else {
            x /= 2;
            if (x % 4 == 0) {
                x /= 4;
                count += 2;
            }
        }
        ++count;
    }
    steps[i] = count;
    __syncwarp();
    int seen = 0;
    if (lane < 16) {
        seen = __shfl_xor_sync(0x0000ffff, count, 5);
        if (lane % 2) seen += __popc(__ballot_sync(0x0000aaaa, count > 50));
    } else {
        seen = __any_sync(0xffff0000, count > 100) * 1000 + __all_sync(0xffff0000, count > 1);
    }
    __syncwarp();
    votes[i] = __shfl_sync(0xffffffff, seen, (lane + 1) % 32);
}
