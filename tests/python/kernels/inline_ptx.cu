// Programs with inline PTX, which `test_inline_ptx.py` runs on every device that supports it.

typedef unsigned int u32;
typedef unsigned long long u64;

// Adds 256-bit numbers in one statement.
__device__ void add256(u32 *r, const u32 *a, const u32 *b) {
    asm("add.cc.u32 %0, %8, %16;\n\t"
        "addc.cc.u32 %1, %9, %17;\n\t"
        "addc.cc.u32 %2, %10, %18;\n\t"
        "addc.cc.u32 %3, %11, %19;\n\t"
        "addc.cc.u32 %4, %12, %20;\n\t"
        "addc.cc.u32 %5, %13, %21;\n\t"
        "addc.cc.u32 %6, %14, %22;\n\t"
        "addc.u32 %7, %15, %23;\n\t"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
          "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

// Passes the carry from one statement to the next.
__device__ __forceinline__ u32 sub_cc(u32 a, u32 b) { u32 r; asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 subc_cc(u32 a, u32 b) { u32 r; asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ void sub256(u32 *r, const u32 *a, const u32 *b) {
    r[0] = sub_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < 8; ++i) r[i] = subc_cc(a[i], b[i]);
}

// Multiplies 128-bit numbers as 32-bit words.
__device__ void mul128(u32 *r, const u32 *a, const u32 *b) {
    for (int i = 0; i < 8; ++i) r[i] = 0;
    for (int i = 0; i < 4; ++i) {
        asm("{\n\t"
            ".reg .u32 c;\n\t"
            "mad.lo.cc.u32 %0, %5, %9, %0;\n\t"
            "madc.lo.cc.u32 %1, %6, %9, %1;\n\t"
            "madc.lo.cc.u32 %2, %7, %9, %2;\n\t"
            "madc.lo.cc.u32 %3, %8, %9, %3;\n\t"
            "addc.u32 c, 0, 0;\n\t"
            "mad.hi.cc.u32 %1, %5, %9, %1;\n\t"
            "madc.hi.cc.u32 %2, %6, %9, %2;\n\t"
            "madc.hi.cc.u32 %3, %7, %9, %3;\n\t"
            "madc.hi.u32 %4, %8, %9, c;\n\t"
            "}"
            : "+r"(r[i]), "+r"(r[i + 1]), "+r"(r[i + 2]), "+r"(r[i + 3]), "=r"(r[i + 4])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i]));
    }
}

// Returns the upper half of a 64-bit by 64-bit product plus a 128-bit number.
__device__ u64 mad64(u64 a, u64 b, u64 low, u64 high) {
    u64 r;
    asm("{ .reg .u64 t; mad.lo.cc.u64 t, %1, %2, %3; madc.hi.u64 %0, %1, %2, %4; }"
        : "=l"(r) : "l"(a), "l"(b), "l"(low), "l"(high));
    return r;
}

__global__ void numbers(u32 *sums, u32 *differences, u32 *products, u64 *upper, const u32 *a, const u32 *b) {
    const int at = 8 * threadIdx.x;
    add256(sums + at, a + at, b + at);
    sub256(differences + at, a + at, b + at);
    mul128(products + at, a + at, b + at);
    const u64 *x = (const u64 *)(a + at), *y = (const u64 *)(b + at);
    upper[threadIdx.x] = mad64(x[0], y[0], x[1], y[1]);
}

__device__ unsigned gcd(unsigned a, unsigned b) {
    unsigned r;
    asm("{\n\t"
        ".reg .pred p;\n\t"
        ".reg .u32 x, y, t;\n\t"
        "mov.u32 x, %1;\n\t"
        "mov.u32 y, %2;\n\t"
        "AGAIN:\n\t"
        "setp.eq.u32 p, y, 0;  // the end\n\t"
        "@p bra DONE;\n\t"
        "rem.u32 t, x, y;\n\t"
        "mov.u32 x, y;\n\t"
        "mov.u32 y, t;\n\t"
        "bra AGAIN;\n\t"
        "DONE:\n\t"
        "mov.u32 %0, x;\n\t"
        "}" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__global__ void branches(unsigned *out, const unsigned *a, const unsigned *b) {
    const int i = threadIdx.x;
    out[i] = gcd(a[i], b[i]) + gcd(b[i], a[i] + 1);
}

__global__ void warps(int *out) {
    const int t = threadIdx.x;
    int lane, *own = out + 16 * t;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 5, 0x1f, 0xffffffff;" : "=r"(own[0]) : "r"(t));
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0, 0xffffffff; selp.s32 %1, 1, 0, p; }"
                 : "=r"(own[1]), "=r"(own[2]) : "r"(t));
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 2, 0x181f, 0xffffffff; selp.s32 %1, 1, 0, p; }"
                 : "=r"(own[3]), "=r"(own[4]) : "r"(t));
    asm volatile("shfl.sync.idx.b32 %0, %1, 1, 0x1c1f, 0xffffffff;" : "=r"(own[5]) : "r"(t));
    asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(own[6]) : "r"(lane));
    asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 31; vote.sync.any.pred q, !p, 0xffffffff; selp.s32 %0, 1, 0, q; }"
                 : "=r"(own[7]) : "r"(t));
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %1, 3; bar.red.popc.u32 %0, 0, p; }" : "=r"(own[8]) : "r"(lane));
    asm("{ .reg .u32 a, b; mov.u32 a, %%lanemask_ge; mov.u32 b, %%lanemask_lt; popc.b32 a, a; popc.b32 b, b;"
        " mad.lo.u32 %0, a, 100, b; }" : "=r"(own[9]));
    asm("{ .reg .u32 a, b; mov.u32 %0, %%ntid.x; mov.u32 a, %%ctaid.x; mov.u32 b, %%nctaid.y;"
        " add.u32 %0, %0, a; add.u32 %0, %0, b; }" : "=r"(own[10]));
    asm volatile("bar.warp.sync 0xffffffff; barrier.sync 1, 64;");
    long long before, after;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(before));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after));
    own[11] = after >= before;
    own[12] = lane;
}

extern __shared__ int dynamic[];
__global__ void memory(int *out, const int *in) {
    __shared__ __align__(16) int words[64];
    const unsigned t = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(words);
    int a, b, c, d;
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(in + 2 * t));
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(at + 4 * t), "r"(a + b) : "memory");
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4+16];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at + 16 * (t / 8)));
    out[t] = a + 2 * b + 3 * c + 4 * d;
    unsigned dynamic_at;
    asm("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }" : "=r"(dynamic_at) : "l"(dynamic + t));
    asm volatile("st.volatile.shared.u16 [%0+2], %1;" :: "r"(dynamic_at), "h"((unsigned short)(t + 500)) : "memory");
    asm volatile("st.shared.u8 [%0], %1;" :: "r"(dynamic_at), "r"(0x180 + t) : "memory");
    asm volatile("{ .reg .s32 low; ld.shared.s8 low, [%1]; ld.shared.u16 %0, [%1+2]; sub.s32 %0, %0, low; }"
                 : "=r"(out[64 + t]) : "r"(dynamic_at));
    asm volatile("st.global.cg.v2.f32 [%0], {%1, %2};" :: "l"(out + 128 + 2 * t), "f"(t + 0.5f), "f"(-1.0f * t) : "memory");
}

__global__ void atomics(int *out) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned old;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(out));
    out[16 + old] = 1;
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(out + 1), "r"(-(int)t) : "memory");
    asm volatile("red.global.max.s32 [%0], %1;" :: "l"(out + 2), "r"((int)t - 5) : "memory");
    asm volatile("red.global.min.u32 [%0], %1;" :: "l"(out + 3), "r"(7 + t) : "memory");
    asm volatile("red.global.or.b32 [%0], %1;" :: "l"(out + 4), "r"(1 << t % 32) : "memory");
    asm volatile("atom.global.inc.u32 %0, [%1], 9;" : "=r"(old) : "l"(out + 5));
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(out + 6), "f"(0.5f) : "memory");
    asm volatile("red.global.xor.b64 [%0], %1;" :: "l"((unsigned long long *)(out + 8)), "l"((unsigned long long)t << 30) : "memory");
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(out + 7), "r"(0), "r"(t + 1));
    if (old == 0) asm volatile("atom.global.exch.b32 %0, [%1], 77;" : "=r"(out[10]) : "l"(out + 11));
}
