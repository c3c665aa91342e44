"""The real runtimes of ROCm 5, 6 and 7, from Debian's packages, without an AMD GPU."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from processes import with_libraries
from rocm_compilers import COMPILERS, TARGETS, compiled, folder_of, run_with_compiler

from pygpu import choose_backend

pytestmark = pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD GPU here")

LIMIT = 600


GENERATIONS = ["5", "6", "7"]


def info(generation, *arguments, status=0, **environment):
    command, variables = with_libraries(folder_of(generation))
    without = {"ROCM_PATH", "HIP_PATH", "PYGPU_HIP_LIBRARY", "PYGPU_HIPRTC", "PYGPU_BACKEND"}
    kept = {key: value for key, value in os.environ.items() if key not in without}
    done = subprocess.run(
        [*command, "-m", "pygpu", "info", *arguments],
        env=kept | variables | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.mark.parametrize("generation", GENERATIONS)
def test_info_says_in_a_line_why_there_is_no_amd_gpu(generation):
    (line,) = [it for it in info(generation).stdout.splitlines() if it.startswith("hip ")]
    assert line.split()[1] == "unavailable:"
    library = rf"libamdhip64\.so\.{generation}"
    assert re.search(library + r".*no device that it can use", line), line
    assert "ROCM_PATH" in line


@pytest.mark.parametrize("generation", GENERATIONS)
def test_info_says_the_same_to_programs(generation):
    backends = json.loads(info(generation, "--json").stdout)["backends"]
    (hip,) = [it for it in backends if it["name"] == "hip"]
    assert not hip["available"]
    assert f"libamdhip64.so.{generation}" in hip["reason"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_asking_for_it_is_an_error_that_says_why(generation):
    done = info(generation, status=2, PYGPU_BACKEND="hip")
    assert f"libamdhip64.so.{generation}" in done.stderr


# Devices without texture hardware, according to the headers of ROCm 6 and 7.
WITHOUT_IMAGES = {"gfx942", "gfx950"}


# ---- hipRTC on programs with textures -----------------------------------------------------------

TEXTURES = """
#include <pycuda-helpers.hpp>
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
static texture<fp_tex_double, 3, cudaReadModeElementType> volume;
// static texture<float> not_this;
surface<void, cudaSurfaceType2DLayered> layers;

__global__ void read(float4 *out, double *values, cudaTextureObject_t row) {
    out[threadIdx.x] = tex2D(colours, threadIdx.x + 0.5f, 0.5f);
    out[threadIdx.x].x += tex1Dfetch<float>(row, threadIdx.x) + tex1DLayered<int>(row, 0.5f, 1);
    values[threadIdx.x] = fp_tex3D(volume, 1, 2, threadIdx.x);
}
__global__ void write(cudaSurfaceObject_t image) {
    surf2DLayeredwrite(7.0f, layers, threadIdx.x * 4, 0, 1);
    ushort4 texel = surf2DLayeredread<ushort4>(layers, threadIdx.x * 8, 0, 1);
    surf2Dwrite((float)texel.x, image, threadIdx.x * 4, 0, cudaBoundaryModeTrap);
}
"""
GATHERED = """
__global__ void gather(float4 *out, cudaTextureObject_t texture) {
    *out = tex2Dgather<float4>(texture, 0, 0);
}
"""
REFUSED = """
import sys
import pygpu.autoinit
from pygpu import compiler, driver

try:
    compiler.compile(sys.argv[1])
except driver.CompileError as error:
    print(error.stderr)
"""
COMPILE = """
import sys
import pygpu.autoinit
from pygpu import compiler, driver

textures, gathered, file = sys.argv[1:]
with open(file, "wb") as code:
    code.write(compiler.compile(textures, options=[]))
try:
    compiler.compile(gathered)
except driver.CompileError as error:
    print(error.stderr)
"""


# CUDA has functions of numbers, and prefers them; AMD has a template of its own.
OWN_EXTREMES = """
template <class T> __device__ T max(T a, T b) { return a > b ? a : b; }
template <class T> constexpr __device__ T min(const T &a, const T &b) { return b < a ? b : a; }
struct S { int x; __device__ bool operator>(const S &o) const { return x > o.x; } };
extern "C" __global__ void k(int *o, float *f, double *d, unsigned long *u) {
    o[0] = max(o[1], 3) + min(o[2], o[3]) + max(S{o[0]}, S{o[1]}).x + max<short>(o[0], 3);
    f[0] = max(f[1], f[2]) + min(f[1], 2.0f);
    d[0] = max(d[1], 2.0) + min(2.0, d[2]);
    u[0] = max(u[1], u[2]) + min(u[0], 3ul) + max(o[1], 3u);
}
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_own_templates_of_extremes_compile(tmp_path, generation, target):
    assert compiled(generation, target, tmp_path, OWN_EXTREMES, no_extern_c=True)


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(
    ("generation", "target"), [it for it in TARGETS if it[1] not in WITHOUT_IMAGES]
)
def test_texture_references_compile(tmp_path, generation, target):
    file = str(tmp_path / "code")
    said = run_with_compiler(generation, target, tmp_path, COMPILE, TEXTURES, GATHERED, file)
    # The target does not have this instruction, and the compiler would otherwise abort the process.
    assert ("poisoned identifier" in said) == (target == "gfx90a"), said
    image = (tmp_path / "code").read_bytes()
    assert image[:4] == b"\x7fELF"
    assert image[18:20] == b"\xe0\x00"  # EM_AMDGPU
    # The declared properties of the texture references, which `_textures.py` reads after the
    # object's number.
    texture, surface = 0x58455450, 0x52555350
    for declared in [(texture, 0x01, 4, 1, 0, 0, 1), (texture, 0x0A, 2, 0, 0, 0, 1), (surface,)]:
        assert struct.pack(f"=Q{len(declared)}I", 0, *declared) in image
    for name in (b"colours", b"volume", b"layers"):
        assert b"\0" + name + b"\0" in image


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(
    ("generation", "target"), [it for it in COMPILERS if it[1] in WITHOUT_IMAGES]
)
def test_textures_are_refused_where_there_is_no_hardware_for_them(tmp_path, generation, target):
    said = run_with_compiler(generation, target, tmp_path, REFUSED, TEXTURES)
    assert "kernel.cu:10:" in said, said
    assert "not supported on the device" in said


# ---- hipRTC on programs with warp functions ------------------------------------------------------

WARPS = """
#define __any_sync(mask, x) (x)
#define TYPE(name, T)                                                                           \\
    __global__ void of_##name(T *x, int *all) {                                                 \\
        const int t = threadIdx.x;                                                              \\
        x[t] += __shfl_sync(0xffffffff, x[t], threadIdx.x) + __shfl_up_sync(-1, x[t], t, 8);    \\
        x[t] += __shfl_down_sync(~0u, x[t], warpSize / 2) + __shfl_xor_sync(~0u, x[t], 1u, 16); \\
        x[t] += __match_any_sync(__activemask(), x[t]) + __match_all_sync(~0u, x[t], all + t);  \\
    }
TYPE(int, int) TYPE(unsigned, unsigned) TYPE(long, long) TYPE(words, unsigned long)
TYPE(long_long, long long) TYPE(bits, unsigned long long) TYPE(float, float) TYPE(double, double)

__device__ float2 __shfl_sync(unsigned mask, float2 x, int lane) {
    return make_float2(__shfl_sync(mask, x.x, lane), __shfl_sync(mask, x.y, lane));
}
__global__ void votes(unsigned *out, int x) {
    const int &width = warpSize;
    out[0] = __ballot_sync(~0u, x) + __any_sync(~0u, x) + __all_sync(~0u, threadIdx.x);
    out[1] = __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) + __reduce_max_sync(~0u, x);
    out[2] = __reduce_and_sync(1, x) + __reduce_or_sync(1, x) + __reduce_xor_sync(1, threadIdx.x);
    out[3] = __shfl_sync(~0u, make_float2(1, 2), 0).x + width + min(warpSize, x);
    __syncwarp();
    __syncwarp(0xff);
}
"""
OF_HIP = """
__global__ void lanes(unsigned long long *out, double x) {
    for (int by = warpSize / 2; by > 0; by /= 2) x += __shfl_down_sync(~0ull, x, by);
    out[0] = __ballot_sync(~0ull, x > 0) + __activemask() + __match_any_sync(~0ull, x);
    out[1] = __reduce_add_sync(~0ull, 1) + __any_sync(~0ull, 1) + __all_sync(~0ull, 1);
    out[2] = __ballot(1) + __shfl(x, 0) + __shfl_up(x, 1);
    __syncwarp(~0ull);
}
"""
COMPILE_WARPS = """
import sys
import pygpu.autoinit
from pygpu import compiler

for text in sys.argv[1:]:
    code = compiler.compile(text, options=[])
    print(code[:4] == b"\\x7fELF", code[18:20] == b"\\xe0\\x00")
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_functions_of_warps_compile_without_warnings(tmp_path, generation, target):
    said = run_with_compiler(generation, target, tmp_path, COMPILE_WARPS, WARPS, OF_HIP)
    assert said == "True True\n" * 2


# ---- hipRTC on programs with vector types, and with functions that its headers have -------------

VECTORS = """
#include "own.h"
__device__ inline float2 operator*(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
__device__ inline float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ auto atomicMin(float *place, float value = (1)) noexcept -> float { return *place; }
struct ray { float3 from, to; int hits; };
__constant__ float4 colours[2] = {{1, 2}, {3}};
__device__ int flat(uint3 thread, uint3 block, dim3 threads) {
    return block.x * threads.x + thread.x;
}
__device__ float atomicMax(float *place, float value) {
    int seen = __float_as_int(*place), old;
    do {
        old = seen;
        seen = atomicCAS((int *)place, old, __float_as_int(fmaxf(value, __int_as_float(old))));
    } while (seen != old);
    return __int_as_float(old);
}
__device__ unsigned __lane_id() { return threadIdx.x % 32; }
__global__ void use(float *out, const float4 *in, int *most) {
    float3 sum = make_float3(1, 2, 3);
    sum += sum;
    sum *= 2;
    float2 z = make_float2(1, 2);
    z = z * z;
    float4 none = {0}, some = {1, 2};
    float2 many[8] = {0};
    ray r = {0};
    const uint3 place = threadIdx;
    int pair[2] = {threadIdx.x, z.x};
    dim3 blocks = gridDim;
    out[flat(threadIdx, blockIdx, blockDim)] = sum.z + z.y + none.w + some.y + many[3].x + pair[1];
    out[1] = dot(r.from, r.to) + colours[1].x + place.x + blocks.y + (__ldg(in) * make_float4(2)).x;
    atomicMax(out + 2, atomicMin(out + 3, 3.5f));
    atomicMax(most, 3 + (int)__lane_id());
}
"""
OWN_VECTORS = """
inline __host__ __device__ void operator+=(float3 &a, float3 b) { a.x += b.x; a.z += b.z; }
inline __host__ __device__ void operator*=(float3 &a, float b) { a.x *= b; a.z *= b; }
inline __host__ __device__ float4 operator*(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
extern "C++" inline __host__ __device__ float4 make_float4(float s) {
    return make_float4(s, s, s, s);
}
"""
OF_TEXTURES = """
__device__ inline void operator+=(float4 &a, float4 b) { a.x += b.x; a.y += b.y; }
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
texture<float2, 1> row;
__global__ void use(float4 *out, cudaTextureObject_t image, cudaSurfaceObject_t painted) {
    float4 sum = tex2D(colours, 1, 2), texel = {0};
    sum += tex2D<float4>(image, 1, 2);
    tex3D(&texel, image, 1.f, 2.f, 3.f);
    sum += texel;
    texel.x = tex1Dfetch(row, 3).y + tex2D<uchar4>(image, 1, 2).w;
    out[0] = sum;
    out[1] = texel;
    surf2Dwrite(sum, painted, 16, 3);
    sum += surf2Dread<float4>(painted, 16, 2);
    surf2DLayeredwrite(make_float2(sum.x, 1), painted, 8, 1, 1);
}
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_vector_types_are_plain_where_a_program_needs_it(tmp_path, generation, target):
    (tmp_path / "own.h").write_text(OWN_VECTORS)
    given = (COMPILE_OF_CUDA, VECTORS, str(tmp_path))
    said = run_with_compiler(generation, target, tmp_path / "cache", *given)
    assert said == "True True False\n"


OF_COMPLEX = """
#include <cuComplex.h>
__device__ cuFloatComplex operator*(cuFloatComplex a, cuFloatComplex b) { return cuCmulf(a, b); }
__global__ void use(float *x) { cuFloatComplex a = make_cuFloatComplex(1, 2); *x = (a * a).x; }
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_operators_of_complex_numbers(tmp_path, generation, target):
    said = run_with_compiler(generation, target, tmp_path, COMPILE_WARPS, OF_COMPLEX)
    assert said == "True True\n"


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(
    ("generation", "target"), [it for it in TARGETS if it[1] not in WITHOUT_IMAGES]
)
def test_plain_vector_types_are_read_from_textures(tmp_path, generation, target):
    said = run_with_compiler(generation, target, tmp_path, COMPILE_WARPS, OF_TEXTURES)
    assert said == "True True\n"


# ---- hipRTC on programs with headers of CUDA's, and with what only CUDA C has --------------------

OF_CUDA = """
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>
#include <stdint.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <limits>
#include <tuple>
#include <type_traits>
#include "own.h"
namespace cg = cooperative_groups;

struct shape { __device__ virtual float area() { return 0; } __device__ virtual ~shape() {} };
struct square : shape {
    float side;
    __device__ square(float side) : side(side) {}
    __device__ float area() override { return side * side; }
};
struct large { int values[900]; };

__global__ void areas(float *out, const __grid_constant__ large given) {
    shape *made = new square(out[0]);
    out[1] = made->area() + given.values[3];
    delete made;
    int64_t *many = new int64_t[4];
    delete[] many;
}
__global__ void numbers(curandState *states, float *out, unsigned long long seed) {
    curandState state;
    curand_init(seed, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand_uniform(&state) + curand_normal2(&state).x;
    out[threadIdx.x] += curand_poisson(&state, 9);
    states[threadIdx.x] = state;
    curandStatePhilox4_32_10_t philox;
    curand_init(seed, threadIdx.x, 0, &philox);
    out[threadIdx.x] += curand_uniform4(&philox).x + (float)curand_normal_double(&philox);
    curandStateMRG32k3a_t mrg;
    curand_init(seed, threadIdx.x, 0, &mrg);
    out[threadIdx.x] += curand_log_normal(&mrg, 0, 1);
}
__global__ void groups(int *out) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    out[threadIdx.x] = cg::reduce(tile, out[threadIdx.x], cg::plus<int>()) + tile.shfl_xor(3, 1);
    if (out[0] > 3) out[1] = cg::coalesced_threads().size();
    cg::this_grid().sync();
}
#if __NVCC__ != 1 || __CUDACC_VER_MAJOR__ != 9
#error the options
#endif
struct settings { float factor; } __constant__ given = {2};
__global__ void constant(float *x) { x[0] = given.factor; }
extern "C++" __device__ float chosen(std::true_type, float x) { return x; }
extern "C++" __device__ float chosen(std::false_type, float x) { return -x; }
__global__ void of_cpp(float *x) {
    x[0] = std::numeric_limits<float>::infinity() + chosen(std::is_integral<int>(), x[1]);
    x[2] = chosen(std::is_trivially_copyable<shape>(), summed(std::array<float, 2>{{x[2], x[3]}}));
    x[4] = std::get<0>(std::make_tuple(x[5], 3)) + std::is_same_v<int, std::decay_t<const int &>>;
}
__global__ void words(uint32_t *x, unsigned long long *y, half *z, cuFloatComplex *w) {
    if constexpr (sizeof(uint64_t) == 8) x[0] = __vadd4(x[1], x[2]) + __dp4a(x[3], x[4], x[5]);
    __stcg(x + 6, __ldcv(x + 7) + umax(x[8], 3u) + atomicAdd_block(x + 9, 1u));
    y[0] = ullmin(y[1], 7);
    if (x[0] == 11) __trap();
    __nanosleep(100);
    z[0] = __hadd(z[1], __float2half(2.0f));
    __nv_bfloat16 upper = __hfma(__float2bfloat16(2.0f), CUDART_INF_BF16, *(nv_bfloat16 *)x);
    atomicAdd((__nv_bfloat16 *)x + 1, hexp(upper) + __shfl_xor_sync(~0u, upper, 1));
    atomicAdd((__nv_bfloat162 *)x + 1, __shfl_sync(~0u, __bfloat162bfloat162(upper), 1, 8));
    w[0] = cuCdivf(cuCmulf(w[1], make_cuComplex(1, 2)), of_own(w[2]));
}
"""
OWN = """
#include <array>
#include <cuComplex.h>
#include <functional>
#include <stdint.h>
#include <utility>
extern "C++" template <class T, std::size_t n> __device__ T summed(const std::array<T, n> &items) {
    std::pair<T, T> sum = std::make_pair(T(), T());
    for (T item : items) sum.first = std::plus<>()(sum.first, item);
    return std::move(sum.first);
}
static __device__ cuFloatComplex of_own(cuFloatComplex z) {
    return make_cuFloatComplex((int32_t)z.x, (float)(uint64_t)z.y);
}
"""
COMPILE_OF_CUDA = """
import sys
import pygpu.autoinit
from pygpu import compiler

options = ["-D__NVCC__", "-D", "__CUDACC_VER_MAJOR__=9"]
code = compiler.compile(sys.argv[1], options=options, include_dirs=[sys.argv[2]])
print(code[:4] == b"\\x7fELF", code[18:20] == b"\\xe0\\x00", b"\\0given\\0" in code)
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_what_only_cuda_has_compiles_without_warnings(tmp_path, generation, target):
    (tmp_path / "own.h").write_text(OWN)
    given = (COMPILE_OF_CUDA, OF_CUDA, str(tmp_path))
    said = run_with_compiler(generation, target, tmp_path / "cache", *given)
    assert said == "True True True\n"


# ---- hipRTC on programs that name functions with a stated rounding -------------------------------

ROUNDED = """
#define OF_TWO(name) x[0] = __f##name##_rd(x[1], x[2]) + __f##name##_rn(x[3], x[4]);             \\
    y[0] += __d##name##_ru(y[1], y[2]) + __d##name##_rn(y[3], y[4]);
#define OF_ONE(name) x[1] += __f##name##_rz(x[2]) + __f##name##_rn(x[3]);                        \\
    y[1] += __d##name##_rd(y[2]) + __d##name##_rn(y[3]);
#define FROM(name, to) *to++ = __##name##_rd(*i++); *to++ = __##name##_ru(*i++);                 \\
    *to++ = __##name##_rz(*i++); *to++ = __##name##_rn(*i++);
#define TO(name, from) *i++ = __##name##_rd(*from++); *i++ = __##name##_ru(*from++);             \\
    *i++ = __##name##_rz(*from++); *i++ = __##name##_rn(*from++);

// A program's own takes the place of one.
__device__ float __fsqrt_rz(float x) { return x; }

__global__ void arithmetic(float *x, double *y) {
    OF_TWO(add) OF_TWO(sub) OF_TWO(mul) OF_TWO(div)
    OF_ONE(sqrt) OF_ONE(rcp)
    x[2] = __fmaf_rd(x[3], x[4], x[5]) + __fmaf_rn(x[6], x[7], 1) + __frsqrt_rn(x[8]);
    x[3] = __fmaf_ieee_rn(x[3], x[4], x[5]) + __fmaf_ieee_rz(x[3], x[4], x[5]);
    y[2] = __fma_rz(y[3], y[4], y[5]) + __fma_rn(y[6], y[7], 1) + __fadd_rz(1, y[8]);
}
__global__ void conversions(float *x, double *y, long long *i) {
    FROM(int2float, x) FROM(uint2float, x) FROM(ll2float, x) FROM(ull2float, x)
    FROM(ll2double, y) FROM(ull2double, y)
    TO(double2float, y) TO(float2int, x) TO(float2uint, x) TO(float2ll, x) TO(float2ull, x)
    TO(double2int, y) TO(double2uint, y) TO(double2ll, y) TO(double2ull, y)
    *y = __uint2double_rn(*i) + __int2double_rn(*i);
}
__global__ void halves(half *h, float *x, long long *i) {
    *h++ = __float2half_rd(*x) + __float2half_ru(*x) + __float2half_rz(*x) + __float2half_rn(*x);
    *h++ = __int2half_rd(*i) + __uint2half_ru(*i) + __short2half_rz(*i) + __ushort2half_rd(*i);
    *h++ = __ll2half_ru(*i) + __ull2half_rz(*i) + __ll2half_rn(*i) + __double2half(*x);
    *i++ = __half2int_rn(*h) + __half2uint_rd(*h) + __half2short_ru(*h) + __half2ushort_rz(*h);
    *i++ = __half2ll_rn(*h) + __half2ull_rd(*h);
}
"""
COMPILE_ROUNDED = """
import sys
import pygpu.autoinit
from pygpu import compiler

for options in [[], ["-use_fast_math", "-fmad=true", "-ftz=true"]]:
    code = compiler.compile(sys.argv[1], options=options)
    print(code[:4] == b"\\x7fELF", code[18:20] == b"\\xe0\\x00")
"""


@pytest.mark.skipif(
    choose_backend() != "hip", reason="devices of HIP are needed to ask its compiler"
)
@pytest.mark.parametrize(("generation", "target"), COMPILERS)
def test_functions_with_a_stated_rounding_compile_without_warnings(tmp_path, generation, target):
    said = run_with_compiler(generation, target, tmp_path, COMPILE_ROUNDED, ROUNDED)
    assert said == "True True\n" * 2
