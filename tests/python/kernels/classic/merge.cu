// Merges two sorted arrays: each element finds its place by binary search in the other array.
__device__ int below(const int *a, int n, int value, bool or_equal) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a[middle] < value || (or_equal && a[middle] == value)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

__global__ void merge(const int *a, int m, const int *b, int n, int *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) out[i + below(b, n, a[i], false)] = a[i];
    if (i < n) out[i + below(a, m, b[i], true)] = b[i];
}
