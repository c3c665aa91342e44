// A level of a breadth-first search; the frontiers are lists.
__global__ void expand(const int *starts, const int *neighbours, int *levels, const int *frontier, int size, int *next,
                       int *next_size, int level) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int vertex = frontier[i];
    for (int k = starts[vertex]; k < starts[vertex + 1]; ++k) {
        if (atomicCAS(&levels[neighbours[k]], -1, level + 1) == -1) {
            next[atomicAdd(next_size, 1)] = neighbours[k];
        }
    }
}
