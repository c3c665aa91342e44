"""Unusual C++ declarations: the kernels that follow them are found and run."""

from __future__ import annotations

import numpy as np
import pytest

from pygpu import gpuarray
from pygpu.compiler import SourceModule

K = 'extern "C" __global__ void k(int *o) { o[threadIdx.x] = '
PROGRAMS = {
    "a member with braces": f"""
        struct B {{ int a; __device__ B(int x); }};
        __device__ B::B(int x) : a{{x}} {{ if (x) a += 1; }}
        {K} B(3).a + threadIdx.x; }}""",
    "members of templates": f"""
        template <class T> struct A {{ T a; __device__ A(T x); __device__ A(); }};
        template <class T> __device__ A<T>::A(T x) : a{{x}} {{ a = a + 1; }}
        template <class T> __device__ A<T>::A() : A{{T(3)}} {{}}
        {K} A<int>().a + threadIdx.x; }}""",
    "initialisers of several": f"""
        struct P {{ int p; __device__ P(int x) : p(x) {{}} }};
        struct Q : P {{ int q, r; __device__ Q(int x); }};
        __device__ Q::Q(int x) : P{{x}}, q(x > 2 ? 1 : 2), r{{0}} {{ r = p + q; }}
        {K} Q(3).r + threadIdx.x; }}""",
    "instances": """
        template <int N> struct I { static const int value = N; };
        template <int N, class F> __global__ void g(int *o) {}
        template __global__ void g<sizeof(int), void(int)>(int *);
        template __global__ void g<(3 > 2), I<(1 < 2)> >(int *);
        extern template __global__ void g<7, int (*)(int)>(int *);
        extern "C" __global__ void k(int *o) { o[threadIdx.x] = 4 + threadIdx.x; }""",
    "attributes": """
        extern "C" __global__ [[maybe_unused]] void k([[maybe_unused]] int *o, int = 0) {
            o[threadIdx.x] = 4 + threadIdx.x; }
        extern "C" __global__ __launch_bounds__(64) [[deprecated("old")]] void l(int *o) {}""",
    "constants of namespaces": """
        namespace q { extern __constant__ int c; }
        __constant__ int q::c = 4;
        extern "C" __global__ void k(int *o) { o[threadIdx.x] = q::c + threadIdx.x; }""",
    "shared variables of templates": f"""
        template <bool B, class A, class C> struct cond {{ typedef A type; }};
        template <bool B> struct flag {{ int value; }};
        template <class T> __device__ int f(int t) {{
            __shared__ typename cond<sizeof(T) <= 4, int, long>::type s[64];
            __shared__ flag<sizeof(T) == 4> u;
            s[t] = t + 4; u.value = 0; __syncthreads(); return s[t] + u.value; }}
        {K} f<int>(threadIdx.x); }}""",
    "variables like indices": f"""
        struct L {{ uint3 a, blockIdx; __device__ void set(int v) {{ blockIdx.x = v; }} }};
        {K} threadIdx.x - -(int)blockDim.x - 4; L l; l.set(3); }}""",
    "shared variables of packs": f"""
        template <class... T> __device__ int f(int t) {{
            __shared__ alignas(T...) int s[64]; s[t] = t + 4; return s[t]; }}
        {K} f<int, double>(threadIdx.x); }}""",
    "variables behind functions": f"""
        template <class T> __global__ void g(T *p) {{ *p *= 2; }} __device__ int value = 4;
        struct S {{ int q; }} __constant__ pair = {{0}};
        {K} value + pair.q + threadIdx.x; }}""",
    "default values": """
        template <class A, class B> struct P { A a; B b; };
        template <class T> __global__ void g(int *o, P<int, float> x = P<int, float>{1, 2}) {}
        extern "C" __global__ void k(int *o) { o[threadIdx.x] = 4 + threadIdx.x; }
        __global__ void h(P<int, float> x = P<int, float>{1, 2}, int *o = 0) { o[0] = x.a; }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernel_is_found(name):
    kernel = SourceModule(PROGRAMS[name], no_extern_c=True).get_function("k")
    o = gpuarray.zeros(8, np.int32)
    arguments = (np.int32(0),) if "int = 0" in PROGRAMS[name] else ()
    kernel(o, *arguments, block=(8, 1, 1))
    np.testing.assert_array_equal(o.get(), np.arange(4, 12))
