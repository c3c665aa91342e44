// Finds the positions of a pattern in a text, with the pattern in constant memory.
__constant__ char pattern[64];

__global__ void search(const char *text, int length, int pattern_length, int *positions, int *count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + pattern_length > length) return;
    for (int k = 0; k < pattern_length; ++k) {
        if (text[i + k] != pattern[k]) return;
    }
    positions[atomicAdd(count, 1)] = i;
}
