// Templates with types, numbers, functors and lambdas as parameters.
template <class T> struct Plus {
    static __device__ T identity() { return 0; }
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct Maximum {
    static __device__ T identity() { return -1000000; }
    __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

template <class T, int THREADS, template <class> class Operation> __device__ T reduce(const T *in, int n) {
    __shared__ T part[THREADS];
    const Operation<T> op;
    T value = Operation<T>::identity();
    for (int i = threadIdx.x; i < n; i += THREADS) value = op(value, in[i]);
    part[threadIdx.x] = value;
    __syncthreads();
#pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = op(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    return part[0];
}

template <class T, class Function> __device__ void map(T *data, int n, Function function) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = function(data[i]);
}


extern "C" __global__ void reductions_int(const int *in, int *out, int n) {
    const int sum = reduce<int, 64, Plus>(in, n), most = reduce<int, 64, Maximum>(in, n);
    if (threadIdx.x == 0) out[0] = sum, out[1] = most;
}
extern "C" __global__ void reductions_double(const double *in, double *out, int n) {
    const double sum = reduce<double, 64, Plus>(in, n), most = reduce<double, 64, Maximum>(in, n);
    if (threadIdx.x == 0) out[0] = sum, out[1] = most;
}
extern "C" __global__ void cubes(int *data, int n, int add) {
    map(data, n, [=](int x) { return x * x * x + add; });
}
