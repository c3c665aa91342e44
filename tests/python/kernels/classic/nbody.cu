// The gravity of all bodies on each body, with tiles of positions in shared memory.
__device__ float3 interaction(float4 a, float4 b, float3 acceleration) {
    const float3 r = make_float3(b.x - a.x, b.y - a.y, b.z - a.z);
    const float squared = r.x * r.x + r.y * r.y + r.z * r.z + 1e-2f;
    const float inverse = rsqrtf(squared);
    const float s = b.w * inverse * inverse * inverse;
    acceleration.x += r.x * s;
    acceleration.y += r.y * s;
    acceleration.z += r.z * s;
    return acceleration;
}

__global__ void forces(const float4 *positions, float4 *accelerations, int n) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = positions[i < n ? i : 0];
    float3 sum = {0.0f, 0.0f, 0.0f};
    for (int first = 0; first < n; first += blockDim.x) {
        const int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? positions[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < blockDim.x; ++k) sum = interaction(own, tile[k], sum);
        __syncthreads();
    }
    if (i < n) accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0);
}
