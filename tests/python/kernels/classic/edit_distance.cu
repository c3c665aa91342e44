// The edit distance of two words (V. Levenshtein, 1965), along the diagonals of the table.
__global__ void distance(const char *a, int m, const char *b, int n, int *result) {
    __shared__ int diagonals[3][129];
    const int i = threadIdx.x; // the row
    for (int d = 0; d <= m + n; ++d) {
        int *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3], *before = diagonals[(d + 1) % 3];
        const int j = d - i;
        if (i <= m && j >= 0 && j <= n) {
            if (i == 0 || j == 0) {
                now[i] = i + j;
            } else {
                const int change = before[i - 1] + (a[i - 1] != b[j - 1]);
                now[i] = min(change, min(last[i - 1], last[i]) + 1);
            }
        }
        __syncthreads();
    }
    if (i == m) *result = diagonals[(m + n) % 3][m];
}
