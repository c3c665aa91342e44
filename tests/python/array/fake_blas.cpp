// A cuBLAS and a rocBLAS for the fake drivers. They check each product's arguments, and compute the
// product on the host in stream order, by the definition of matrices in column-major order.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <cstdlib>

typedef void* Handle;
typedef int (*LaunchHostFunction)(Handle, void (*)(void*), void*);

struct Fake {
    Handle stream;
    bool has_workspace;
};

struct Product {
    bool transposed_a, transposed_b;
    int m, n, k;
    const char *a, *b;
    char* c;
    int lda, ldb, ldc;
    long long stride_a, stride_b, stride_c;
    int count;
    int type;
};

enum Type { SINGLE, DOUBLE, COMPLEX_SINGLE, COMPLEX_DOUBLE, OTHER };

static int products;

template <class T>
static void compute(const Product& p) {
    for (long long x = 0; x < p.count; ++x) {
        const T* a = (const T*)p.a + x * p.stride_a;
        const T* b = (const T*)p.b + x * p.stride_b;
        T* c = (T*)p.c + x * p.stride_c;
        for (int j = 0; j < p.n; ++j) {
            for (int i = 0; i < p.m; ++i) {
                T sum = 0;
                for (int t = 0; t < p.k; ++t) {
                    sum += a[p.transposed_a ? t + (size_t)i * p.lda : i + (size_t)t * p.lda] *
                           b[p.transposed_b ? j + (size_t)t * p.ldb : t + (size_t)j * p.ldb];
                }
                c[i + (size_t)j * p.ldc] = sum;
            }
        }
    }
}

// The arguments are not freed, because a graph runs this again.
static void run(void* data) {
    const Product* p = (const Product*)data;
    switch (p->type) {
    case SINGLE: compute<float>(*p); break;
    case DOUBLE: compute<double>(*p); break;
    case COMPLEX_SINGLE: compute<std::complex<float>>(*p); break;
    default: compute<std::complex<double>>(*p); break;
    }
}

static bool is_one(const void* factor, int type, double wanted) {
    const float* single = (const float*)factor;
    const double* full = (const double*)factor;
    switch (type) {
    case SINGLE: return single[0] == wanted;
    case DOUBLE: return full[0] == wanted;
    case COMPLEX_SINGLE: return single[0] == wanted && single[1] == 0;
    default: return full[0] == wanted && full[1] == 0;
    }
}

static int multiply(Handle handle, const Product& p, const void* alpha, const void* beta, int refused,
                    int unsupported, const char* variable, const char* function) {
    const Fake* fake = (const Fake*)handle;
    if (p.type == OTHER) {
        return unsupported;
    }
    const bool fits = p.m > 0 && p.n > 0 && p.k > 0 && p.count > 0 &&
                      p.lda >= (p.transposed_a ? p.k : p.m) && p.ldb >= (p.transposed_b ? p.n : p.k) &&
                      p.ldc >= p.m;
    if (!fake->has_workspace || !fits || !is_one(alpha, p.type, 1) || !is_one(beta, p.type, 0)) {
        return refused;
    }
    void* driver = dlopen(getenv(variable), RTLD_NOW | RTLD_NOLOAD);
    const LaunchHostFunction launch = (LaunchHostFunction)dlsym(driver, function);
    ++products;
    return launch(fake->stream, run, new Product(p));
}

static int create(Handle* handle) {
    *handle = new Fake();
    return 0;
}

static int set_stream(Handle handle, Handle stream) {
    *(Fake*)handle = Fake{stream, false};
    return 0;
}

static int set_workspace(Handle handle, void* address, size_t bytes) {
    ((Fake*)handle)->has_workspace = address != nullptr && bytes > 0 && (uintptr_t)address % 16 == 0;
    return 0;
}

extern "C" {
int fake_products() { return products; }

int cublasCreate_v2(Handle* handle) { return create(handle); }
int cublasSetStream_v2(Handle handle, Handle stream) { return set_stream(handle, stream); }
int cublasSetWorkspace_v2(Handle handle, void* address, size_t bytes) {
    return set_workspace(handle, address, bytes);
}
int cublasGemmStridedBatchedEx(Handle handle, int operation_a, int operation_b, int m, int n, int k,
                               const void* alpha, const void* a, int type_a, int lda, long long stride_a,
                               const void* b, int type_b, int ldb, long long stride_b, const void* beta,
                               void* c, int type_c, int ldc, long long stride_c, int count, int compute,
                               int algorithm) {
    const int types[] = {SINGLE, DOUBLE, OTHER, OTHER, COMPLEX_SINGLE, COMPLEX_DOUBLE};
    const int type = type_a < 6 ? types[type_a] : OTHER;
    const int wanted = type == DOUBLE || type == COMPLEX_DOUBLE ? 70 : 68;
    if (operation_a >> 1 || operation_b >> 1 || type_a != type_b || type_a != type_c || compute != wanted ||
        algorithm != -1) {
        return 7;
    }
    const Product p = {operation_a == 1, operation_b == 1, m, n, k, (const char*)a, (const char*)b,
                       (char*)c, lda, ldb, ldc, stride_a, stride_b, stride_c, count, type};
    return multiply(handle, p, alpha, beta, 7, 15, "PYGPU_CUDA_LIBRARY", "cuLaunchHostFunc");
}

int rocblas_create_handle(Handle* handle) { return create(handle); }
int rocblas_set_stream(Handle handle, Handle stream) { return set_stream(handle, stream); }
int rocblas_set_workspace(Handle handle, void* address, size_t bytes) {
    return set_workspace(handle, address, bytes);
}
int rocblas_gemm_strided_batched_ex(Handle handle, int operation_a, int operation_b, int m, int n, int k,
                                    const void* alpha, const void* a, int type_a, int lda,
                                    int64_t stride_a, const void* b, int type_b, int ldb, int64_t stride_b,
                                    const void* beta, const void* c, int type_c, int ldc, int64_t stride_c,
                                    void* d, int type_d, int ldd, int64_t stride_d, int count, int compute,
                                    int algorithm, int32_t solution, uint32_t flags) {
    const int types[] = {SINGLE, DOUBLE, OTHER, COMPLEX_SINGLE, COMPLEX_DOUBLE};
    const int type = type_a >= 151 && type_a <= 155 ? types[type_a - 151] : OTHER;
    const bool is_same = c == d && type_c == type_d && ldc == ldd && stride_c == stride_d;
    if ((operation_a != 111 && operation_a != 112) || (operation_b != 111 && operation_b != 112) ||
        type_a != type_b || type_a != type_c || !is_same || algorithm || solution || flags ||
        compute != (type == OTHER ? SINGLE + 151 : type_a)) {
        return 11;
    }
    const Product p = {operation_a == 112, operation_b == 112, m, n, k, (const char*)a, (const char*)b,
                       (char*)d, lda, ldb, ldd, stride_a, stride_b, stride_d, count, type};
    return multiply(handle, p, alpha, beta, 11, 2, "PYGPU_HIP_LIBRARY", "hipLaunchHostFunc");
}
}
