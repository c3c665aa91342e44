// Several arrays of different types in one block of dynamic shared memory.
__global__ void mixed(const int *in, float *out, int n) {
    extern __shared__ char memory[];
    double *wide = (double *)memory;
    float *narrow = (float *)&wide[n];
    short *small = (short *)&narrow[n];
    const int t = threadIdx.x;
    wide[t] = in[t] * 0.5;
    narrow[t] = in[t] + 0.25f;
    small[t] = (short)(in[t] * 3);
    __syncthreads();
    const int other = n - 1 - t;
    out[t] = (float)(wide[other] + narrow[other] + small[other]);
}
