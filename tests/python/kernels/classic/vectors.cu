// Loads and stores of whole vectors, and access to their bytes.
__global__ void swap(const uint4 *in, uint4 *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint4 v = __ldg(&in[i]);
    out[i] = make_uint4(__byte_perm(v.w, 0, 0x0123), __byte_perm(v.z, 0, 0x0123), __byte_perm(v.y, 0, 0x0123),
                        __byte_perm(v.x, 0, 0x0123));
}
__global__ void lengths(const double2 *in, const float3 *other, double *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = hypot(in[i].x, in[i].y) + norm3df(other[i].x, other[i].y, other[i].z);
}
