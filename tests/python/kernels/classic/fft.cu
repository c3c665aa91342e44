// Radix-2 transforms of 256 points in shared memory, one per block.
#define POINTS 256

__global__ void fft(float2 *data) {
    __shared__ float2 s[POINTS];
    data += blockIdx.x * POINTS;
    for (int i = threadIdx.x; i < POINTS; i += blockDim.x) s[__brev(i) >> 24] = data[i];
    for (int size = 2; size <= POINTS; size *= 2) {
        const int half = size / 2, t = threadIdx.x;
        __syncthreads();
        const int k = t & (half - 1), at = (t / half) * size + k;
        float sine, cosine;
        sincospif(-2.0f * k / size, &sine, &cosine);
        const float2 a = s[at], b = s[at + half];
        const float2 w = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        s[at] = make_float2(a.x + w.x, a.y + w.y);
        s[at + half] = make_float2(a.x - w.x, a.y - w.y);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < POINTS; i += blockDim.x) data[i] = s[i];
}
