"""Idioms of CUDA C programs; the expected results are computed by hand."""

import numpy as np
import pytest
from device import BACKEND, IS_DOUBLE

from pygpu import gpuarray
from pygpu.compiler import SourceModule

# nvcc accepts an annotation of lambdas with an option that NVRTC does not have.
ANNOTATION = """
#ifdef __GPUARRAY_HOST__
#define ON_DEVICE __device__
#else
#define ON_DEVICE
#endif
"""

# For each program: the text, the kernel's name, and the first thread's result.
PROGRAMS = {
    "partial specialisation": (
        r"""
template <class T, int N> struct Vec { T v[N]; __device__ T sum() const { T s = 0;
    for (int i = 0; i < N; ++i) s += v[i]; return s; } };
template <class T> struct Vec<T, 1> { T v[1]; __device__ T sum() const { return v[0] * 100; } };
template <class T, int N> __device__ T total(Vec<T, N> v) { return v.sum(); }
extern "C" __global__ void k(int *o) { Vec<int,3> a = {{1,2,3}}; Vec<int,1> b = {{4}};
    o[threadIdx.x] = total(a) + total(b); }
""",
        "k",
        406,
    ),
    "lambdas": (
        r"""
template <class F> __device__ int apply(F f, int x) { return f(x); }
extern "C" __global__ void k(int *o) { int c = 5; auto f = [=] ON_DEVICE (int x) {
    return x * c; }; auto g = [&](int x) { return x + c; };
    o[threadIdx.x] = apply(f, 3) + apply(g, 2); }
""",
        "k",
        22,
    ),
    "unions, bit fields and alignment": (
        r"""
union U { float f; unsigned u; struct { unsigned m : 23, e : 8, s : 1; } b; };
struct __align__(16) P { unsigned a : 3; int b : 5; unsigned char c; };
struct alignas(32) Q { float x; };
extern "C" __global__ void k(int *o) { U u; u.f = -2.0f; P p; p.a = 5; p.b = -3; p.c = 7;
    __shared__ Q q[32]; q[threadIdx.x].x = 1;
    o[threadIdx.x] = u.b.e + u.b.s * 1000 + p.a + p.b + p.c + (int)sizeof(P) + (int)alignof(Q)
        + (((size_t)&q[1]) % 32 == 0); }
""",
        "k",
        1186,
    ),
    "namespaces, one in another, without a name and inline": (
        r"""
namespace a { namespace b { static __device__ int table[4] = {1, 2, 3, 4};
    __constant__ float c[2] = {0.5f, 2.0f};
 template <int I> __device__ int at() { return table[I]; } } using namespace b;
    inline namespace v1 { __device__ int twice(int x) { return 2 * x; } } }
namespace { __device__ int hidden = 9; __device__ int helper() { return hidden; } }
extern "C" __global__ void k(int *o) { using namespace a;
    o[threadIdx.x] = at<2>() + twice(helper()) + (int)a::b::c[1]; }
""",
        "k",
        23,
    ),
    "a template with launch bounds, default arguments and constexpr if": (
        r"""
template <int T, class A = float, bool B = true> __global__ void __launch_bounds__(T,
    2) kk(int *o, A x = A(3));
template <int T, class A, bool B> __global__ void __launch_bounds__(T, 2) kk(int *o, A x) {
    if constexpr (B) o[threadIdx.x] = (int)x + T; else o[threadIdx.x] = 0; }
template __global__ void kk<64, int, true>(int *, int);
""",
        "_Z2kkILi64EiLb1EEvPiT0_",
        67,
    ),
    "operators and recursion": (
        r"""
struct C { float x, y; __device__ C(float a = 0, float b = 0) : x(a), y(b) {}
    __device__ friend C operator*(C a, C b) { return C(a.x*b.x-a.y*b.y, a.x*b.y+a.y*b.x); }
 __device__ C& operator+=(const C &o) { x += o.x; y += o.y; return *this; }
    __device__ explicit operator bool() const { return x != 0; }
    __device__ float operator[](int i) const { return i ? y : x; }
    __device__ int operator()(int a, int b = 2) const { return a * b; } };
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void k(int *o) { C a(1, 2), b = a * a; b += a;
    o[threadIdx.x] = (b ? 100 : 0) + (int)b[1] + a(4) + fib(10); }
""",
        "k",
        169,
    ),
    "pointers to functions": (
        r"""
typedef int (*Op)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int mul(int a, int b) { return a * b; }
__device__ Op table[2] = {add, mul};
__constant__ Op ctable[] = {mul, add};
extern "C" __global__ void k(int *o) { Op f = table[threadIdx.x & 1];
    o[threadIdx.x] = f(3, 4) + ctable[threadIdx.x & 1](3, 4); }
""",
        "k",
        19,
    ),
    "virtual functions": (
        r"""
struct Shape { __device__ virtual float area() const = 0; __device__ virtual ~Shape() {} };
struct Sq : Shape { float s; __device__ Sq(float s) : s(s) {}
    __device__ float area() const override { return s * s; } };
struct Ci final : Shape { float r; __device__ Ci(float r) : r(r) {}
    __device__ float area() const override { return 3 * r * r; } };
extern "C" __global__ void k(int *o) { Sq a(2); Ci b(1); Shape *s[] = {&a, &b}; float t = 0;
    for (auto p : s) t += p->area(); Shape *h = new Sq(5); t += h->area(); delete h;
    o[threadIdx.x] = (int)t; }
""",
        "k",
        32,
    ),
    "variadic templates": (
        r"""
template <class... T> __device__ auto sum(T... t) { return (t + ... + 0); }
template <class T, class... R> __device__ int count(T, R... r) {
    if constexpr (sizeof...(R) == 0) return 1; else return 1 + count(r...); }
template <int... I> struct Seq {};
    template <int N, int... I> struct Make : Make<N - 1, N - 1, I...> {};
    template <int... I> struct Make<0, I...> { typedef Seq<I...> type; };
template <int... I> __device__ int dot(Seq<I...>, const int *x) { return ((x[I] * I) + ...); }
extern "C" __global__ void k(int *o) { int x[] = {5, 6, 7};
    o[threadIdx.x] = sum(1, 2, 3) + count(1, 2.0, 'c') + dot(Make<3>::type(), x); }
""",
        "k",
        29,
    ),
    "dynamic shared memory as rows beside a large static array": (
        r"""
extern __shared__ double raw[];
extern "C" __global__ void k(int *o) {
  float (*tile)[33] = (float (*)[33])raw; int *ints = (int *)&tile[32][0];
  __shared__ char big[40000];
  for (int r = 0; r < 32; ++r) tile[r][threadIdx.x] = r * 32 + threadIdx.x;
  ints[threadIdx.x] = threadIdx.x; big[39999 - threadIdx.x] = 1; __syncthreads();
  o[threadIdx.x] = (int)tile[threadIdx.x][31] - (int)(threadIdx.x * 32) + ints[31 - threadIdx.x]
      + threadIdx.x + big[39999]; }
""",
        "k",
        63,
    ),
    "C linkage for some functions": (
        r"""
extern "C" { __device__ int plain(int x) { return x + 1; } }
__device__ int plain2(int x);
extern "C" __global__ void k(int *o) { o[threadIdx.x] = plain(plain2(3)); }
__device__ int plain2(int x) { return x * 2; }
""",
        "k",
        7,
    ),
    "enumerations, aliases and structured bindings": (
        r"""
enum class Mode : unsigned char { A = 3, B };
template <class T> struct Traits { static constexpr int width = sizeof(T) * 8; using type = T;
    };
template <class T> using Ptr = T * __restrict__;
struct Pair { int a; float b; };
__device__ Pair make() { return {4, 2.5f}; }
template <Mode M> struct Tag { static __device__ int get() { return (int)M; } };
extern "C" __global__ void k(Ptr<int> o) { auto [a, b] = make();
    decltype(a) c = Traits<double>::width;
    o[threadIdx.x] = a + (int)(b * 2) + c + Tag<Mode::B>::get(); }
""",
        "k",
        77,
    ),
    "shuffles in a template that takes an operation": (
        r"""
template <int W, class T, class Op> __device__ T reduce(T v, Op op) {
#pragma unroll
 for (int o = W / 2; o > 0; o >>= 1) v = op(v, __shfl_down_sync(0xffffffffu, v, o, W));
    return __shfl_sync(0xffffffffu, v, 0, W); }
extern "C" __global__ void k(int *o) {
    o[threadIdx.x] = reduce<32>((int)threadIdx.x, [] ON_DEVICE (int a, int b) {
    return a > b ? a : b; }); }
""",
        "k",
        31,
    ),
    "a kernel of a namespace that calls a member template": (
        r"""
namespace lib { template <class T> struct Kernel { T scale;
    template <int N> __device__ void run(T *o) const { o[threadIdx.x] = scale * N; } };
template <class K> __global__ void launch(K k, int *o) { k.template run<7>(o); } }
template __global__ void lib::launch<lib::Kernel<int>>(lib::Kernel<int>, int *);
""",
        "_ZN3lib6launchINS_6KernelIiEEEEvT_Pi",
        42,
    ),
    "static variables of functions": (
        r"""
__device__ int look(int i) { static const int t[] = {2, 3, 5, 7};
    const float w[2] = {1.f, 2.f}; return t[i & 3] + (int)w[i & 1]; }
__device__ __noinline__ int counter() { static int n = 0; return atomicAdd(&n, 1); }
extern "C" __global__ void k(int *o) { o[threadIdx.x] = look(2) + (counter() >= 0); }
""",
        "k",
        7,
    ),
    "assertions, printing, overloads and literals": (
        r"""
#include <cassert>
#include <cstdio>
extern "C" __global__ void k(int *o) { assert(o != nullptr); size_t n = 5;
    o[threadIdx.x] = (int)min((unsigned long long)n, 9ull) + max(1, 2) + (int)fminf(2.f,
    3.0) + 0b11 + 1'000 % 7;
    if (threadIdx.x > 100) printf("%d %s %5.2f %llu\n", 1, "x", 2.0, 3ull); }
""",
        "k",
        18,
    ),
    "a structure of 3600 bytes by value": (
        r"""
struct Big { int v[900]; };
extern "C" __global__ void k(int *o, const __grid_constant__ Big b) {
    o[threadIdx.x] = b.v[threadIdx.x + 800]; }
""",
        "k",
        800,
    ),
    "atomic functions of a program's own": (
        r"""
__device__ float atomicMax(float *place, float value) {
    int seen = __float_as_int(*place), old;
    do {
        old = seen;
        seen = atomicCAS((int *)place, old, __float_as_int(fmaxf(value, __int_as_float(old))));
    } while (seen != old);
    return __int_as_float(old);
}
__device__ float2 atomicAdd(float2 *place, float2 value) {
    return make_float2(atomicAdd(&place->x, value.x), atomicAdd(&place->y, value.y));
}
__device__ inline double atomicSub(double *place, double value) {
    return atomicAdd(place, -value);
}
extern "C" __global__ void k(int *o) {
    __shared__ float most; __shared__ float2 sum; __shared__ double left; __shared__ int least;
    if (threadIdx.x == 0) most = 0, sum.x = sum.y = 0, left = 1000, least = 7;
    __syncthreads();
    atomicMax(&most, threadIdx.x + 0.5f); atomicAdd(&sum, make_float2(1, 2));
    atomicSub(&left, 2.0); atomicMax(&least, (int)threadIdx.x - 20);
    __syncthreads();
    o[threadIdx.x] = (int)(most * 2) + (int)(sum.x + sum.y) + (int)left + least; }
""",
        "k",
        63 + 96 + 936 + 11,
    ),
    "operators of vectors": (
        r"""
__device__ inline void operator+=(float3 &a, float3 b) { a.x += b.x; a.y += b.y; a.z += b.z; }
__device__ inline float2 operator*(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
struct ray { float3 from, to; int hits; };
__device__ int flat(uint3 t, uint3 b, dim3 d) { return b.x * d.x + t.x; }
extern "C" __global__ void k(int *o) {
    float3 s = make_float3(1, 2, 3); s += s; float2 z = make_float2(1, 2); z = z * z;
    float4 some = {1, 2}; float2 many[8] = {0}; ray r = {0}; const uint3 t = threadIdx;
    int pair[2] = {threadIdx.x, s.x};
    o[t.x] = s.z + z.y * 10 + some.y * 100 + some.w + many[7].y + r.to.x + pair[1] * 1000
        + flat(threadIdx, blockIdx, blockDim); }
""",
        "k",
        6 + 40 + 200 + 2000,
    ),
    "atomic functions of long numbers": (
        r"""
extern "C" __global__ void k(int *o) {
    __shared__ long long bits[3];
    if (threadIdx.x == 0) bits[0] = bits[2] = 0, bits[1] = -1;
    __syncthreads();
    atomicOr(bits, 1ll << threadIdx.x); atomicAnd(bits + 1, ~(1ll << threadIdx.x));
    atomicXor(bits + 2, (long long)threadIdx.x);
    __syncthreads();
    o[threadIdx.x] = (bits[0] == 0xffffffffll) + 10 * (bits[1] == (-1ll << 32))
        + 100 * (bits[2] == 0); }
""",
        "k",
        111,
    ),
}


def launch(kernel, name, out):
    """Returns a function that launches the kernel with its arguments and the output."""
    block = (32, 1, 1)
    if "_ZN3lib" in kernel:
        return lambda function: function(np.int32(6), out, block=block)
    if "_Z2kk" in kernel:
        return lambda function: function(out, np.int32(3), block=block)
    if name.startswith("a structure"):
        return lambda function: function(out, np.arange(900, dtype=np.int32), block=block)
    shared = 4352 if name.startswith("dynamic") else 0
    return lambda function: function(out, block=block, shared=shared)


@pytest.mark.filterwarnings("ignore:The CUDA compiler succeeded")
@pytest.mark.parametrize("name", PROGRAMS)
def test_idiom(name):
    text, kernel, first = PROGRAMS[name]
    module = SourceModule(ANNOTATION + text, no_extern_c=True)
    out = gpuarray.zeros(32, np.int32)
    launch(kernel, name, out)(module.get_function(kernel))
    assert out.get()[0] == first


@pytest.mark.skipif(BACKEND == "hip" or IS_DOUBLE, reason="other compilers ask for a header")
def test_a_loop_over_a_list():
    text = "__global__ void k(int *o) { int all = 0; for (int x : {1, 2, 4}) all += x; *o = all; }"
    out = gpuarray.zeros(1, np.int32)
    SourceModule(text).get_function("k")(out, block=(1, 1, 1), grid=(1, 1))
    assert out.get().tolist() == [7]
