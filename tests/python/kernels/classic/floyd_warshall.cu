// Shortest paths between all pairs, one intermediate vertex at a time.
__global__ void step(int *distance, int n, int k) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n) return;
    const int through = distance[i * n + k] + distance[k * n + j];
    if (through < distance[i * n + j]) distance[i * n + j] = through;
}
