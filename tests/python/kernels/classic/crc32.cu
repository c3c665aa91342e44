// Checksums of lines, one line per thread, with a table that the block computes.
__global__ void crc32(const unsigned char *text, int length, int lines, unsigned int *sums) {
    __shared__ unsigned int table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned int value = i;
        for (int k = 0; k < 8; ++k) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        table[i] = value;
    }
    __syncthreads();
    const int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) return;
    unsigned int sum = ~0u;
    for (int k = 0; k < length; ++k) sum = sum >> 8 ^ table[(sum ^ text[line * length + k]) & 0xff];
    sums[line] = ~sum;
}
