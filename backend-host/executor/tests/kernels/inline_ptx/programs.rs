//! Inline PTX in programs: forms of statements, control flow, memory, and operations between threads.

use crate::units::{compiler_of, failure, load, load_checked, run};
use host_executor::{Error, Language, Source};

/// Returns the first results of a kernel `k` with one block.
fn results(text: &str, threads: u32, count: usize) -> Vec<i32> {
    let mut array = vec![-1; 4096];
    run(&load(text), "k", 1, threads, &mut array);
    array.truncate(count);
    array
}

#[test]
fn statements_have_many_forms() {
    let text = r#"
struct Point { int x; unsigned long long y; };
template <class T> __device__ T plus_one(T x) {
    T r;
    if (sizeof(T) == 4) asm("add.u32 %0, %1, 1;" : "=r"(*(unsigned *)&r) : "r"((unsigned)x));
    else asm("add.u64 %0, %1, 1;" : "=l"(*(unsigned long long *)&r) : "l"((unsigned long long)x));
    return r;
}
int renamed(int) __asm__("another_name");
extern "C" __device__ int another_name(int x) { return 2 * x; }
__device__ const char *text() { return "asm(\"bogus;\"); asm volatile (x)"; } // asm("comment");
extern "C" __global__ void k(int *out, int n) {
    int i = 0;
    asm("mov.s32 %0, -5;" : "=r"(out[i++]));
    out[i++] = i; // once
    Point p = {7, 0};
    __asm__ __volatile__("{\n\t"
                         ".reg .s32 t;  // a comment\n\t"
                         "add.s32 t, %0, 0x10; /* another */\n\t"
                         R"(mul.lo.s32 %0, t, 2;)"
                         "}" : "+r"(p.x));
    out[i++] = p.x;
    __asm("cvt.u64.u32 %0, %1;" : "=l"(p.y) : "r"(~0u));
    out[i++] = (int)(p.y >> 16);
    auto twice = [&](int x) { int r; asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "n"(1)); return r; };
    out[i++] = twice(21);
    out[i++] = plus_one(n) + (int)plus_one((long long)n);
    int x = 3;
    asm("add.s32 %0, %1, %2;" : "=r"(out[i++]) : "r"(x), "r"(4));
    out[i++] = renamed(8) + text()[0];
    int *q;
    asm("add.s64 %0, %1, 4;" : "=l"(q) : "l"(out));
    out[i++] = q == out + 1;
    asm volatile("" ::: "memory");
    asm("membar.gl;");
    asm(".reg .u32 plain; mov.u32 plain, %laneid;");
    for (int j = 0; j < 3; ++j) asm("add.s32 %0, %0, %1;" : "+r"(x) : "r"(j));
    out[i++] = x;
    short h;
    asm("add.s16 %0, %1, 1;" : "=h"(h) : "h"((short)41));
    out[i++] = h;
    float f;
    double d;
    asm("fma.rn.f32 %0, %1, 0f40000000, 1.0;" : "=f"(f) : "f"(1.5f));
    asm("{.reg .f64 %%t; mul.f64 %%t, %1, %1; neg.f64 %0, %%t;}" : "=d"(d) : "d"(3.0));
    out[i++] = (int)f;
    out[i++] = (int)d;
    __int128 wide;
    asm("mov.b128 %0, {%1, %2};" : "=q"(wide) : "l"(5ll), "l"(6ll));
    out[i++] = (int)(wide >> 64);
    switch (n) { case 64: default: asm("mov.u32 %0, 4;" : "=r"(out[i++])); }
    unsigned long long large;
    asm("mov.u64 %0, (0xFFFFFFFFFFFFFFFF >> 60) + (0x8000000000000000 / 2 >> 62) + (-16U >> 60) + (-2 >> 1);" : "=l"(large));
    out[i++] = (int)large;
    asm("mov.u32 %0, 2 << 0x100000000;" : "=r"(out[i++]));
    asm("{ .reg .pred p; setp.eq.and.u32 p, 1, 1, %1; selp.u32 %0, 5, 3, p; }" : "=r"(out[i++]) : "n"(256));
}
"#;
    let expected =
        [-5, 1, 46, 0xffff, 42, 4097 * 2, 7, 16 + 97, 1, 6, 42, 4, -9, 6, 4, 15 + 1 + 15 - 1, 2, 5];
    assert_eq!(results(text, 1, expected.len()), expected);
}

#[test]
fn branches_go_to_labels_of_their_statement() {
    let text = r#"
// Collatz: how many steps to 1.
__device__ unsigned steps(unsigned x) {
    unsigned count;
    asm("{\n"
        "  .reg .pred p, odd;\n"
        "  .reg .u32 a<3>;\n"
        "  mov.u32 %0, 0;\n"
        "  mov.u32 a0, %1;\n"
        "LOOP:\n"
        "  setp.le.u32 p, a0, 1;\n"
        "  @p bra.uni DONE;\n"
        "  and.b32 a1, a0, 1;\n"
        "  setp.eq.u32 odd, a1, 1;\n"
        "  @odd mad.lo.u32 a0, a0, 3, 1;\n"
        "  @!odd shr.u32 a0, a0, 1;\n"
        "  add.u32 %0, %0, 1;\n"
        "  bra LOOP;\n"
        "DONE:\n"
        "}" : "=r"(count) : "r"(x));
    return count;
}
extern "C" __global__ void k(int *out, int n) {
    out[threadIdx.x] = steps(threadIdx.x) + (threadIdx.x > 1 ? steps(threadIdx.x) : 0);
    asm volatile("{ .reg .pred p; .reg .u32 t; mov.u32 t, %%tid.x; setp.gt.u32 p, t, 3; @p bra L%=; st.global.u32 [%0], 7; L%=: }"
                 :: "l"(out + 100 + threadIdx.x) : "memory");
}
"#;
    let found = results(text, 30, 130);
    let steps = |x: u32| {
        let next = |x: &u32| (*x > 1).then(|| if x % 2 == 1 { 3 * x + 1 } else { x / 2 });
        std::iter::successors(Some(x), next).count() as i32 - 1
    };
    for x in 0..30_u32 {
        let expected = if x > 1 { 2 * steps(x) } else { 0 };
        assert_eq!(found[x as usize], expected, "{x}");
    }
    assert_eq!(found[100..106], [7, 7, 7, 7, -1, -1]);
}

#[test]
fn registers_are_known_in_later_statements() {
    let text = r#"
extern "C" __global__ void k(int *out, int n) {
    asm volatile(".reg.u32 t1, t<3>;\n\t.reg .pred bc; setp.gt.s32 bc, %0, 8;" :: "r"((int)threadIdx.x));
    asm volatile("mov.u32 t1, 5; mov.u32 t2, %0;" :: "r"((int)threadIdx.x));
    for (int i = 0; i < 2; ++i) {
        asm volatile("{ .reg .u32 t1; mov.u32 t1, 100; @bc add.u32 t2, t2, t1; }");
        asm volatile("add.u32 t1, t1, 1;");
    }
    asm volatile("add.u32 %0, t1, t2;" : "=r"(out[threadIdx.x]));
    if (n) asm volatile(".reg .u32 own; mov.u32 own, 3; mov.u32 %0, own;" : "=r"(out[50]));
}
"#;
    let found = results(text, 12, 51);
    for (x, value) in found[..12].iter().enumerate() {
        assert_eq!(*value, x as i32 + if x > 8 { 207 } else { 7 });
    }
    assert_eq!(found[50], 3);
}

#[test]
fn a_carry_goes_from_one_statement_to_the_next() {
    let text = r#"
__device__ unsigned add_cc(unsigned a, unsigned b) { unsigned r; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ unsigned addc_cc(unsigned a, unsigned b) { unsigned r; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ unsigned addc(unsigned a, unsigned b) { unsigned r; asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
extern "C" __global__ void k(int *out, int n) {
    out += 4 * threadIdx.x;
    unsigned top = threadIdx.x % 2 ? 0xffffffffu : 5;
    out[0] = add_cc(0xffffffffu, top);
    out[1] = addc_cc(0xffffffffu, 0);
    out[2] = addc_cc(0xfffffffeu, 1);
    out[3] = addc(10, 20);
}
"#;
    // Also with checks, which find no fault in this.
    for library in [load(text), load_checked(text)] {
        let mut array = vec![-1; 4096];
        run(&library, "k", 1, 64, &mut array);
        for thread in 0..64 {
            let first = if thread % 2 == 1 { -2 } else { 4 };
            assert_eq!(array[4 * thread..4 * thread + 4], [first, 0, 0, 31], "{thread}");
        }
    }
}

#[test]
fn memory_is_read_and_written() {
    let text = r#"
extern __shared__ int dynamic[];
extern "C" __global__ void k(int *out, int n) {
    __shared__ int words[64];
    __shared__ __align__(16) unsigned char bytes[64];
    const unsigned t = threadIdx.x;
    unsigned address;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(address) : "l"(words));
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(address + 4 * t), "r"(100 + t) : "memory");
    asm volatile("bar.sync 0;");
    asm volatile("ld.shared.u32 %0, [%1+-4];" : "=r"(out[t]) : "r"(address + 4 * (t + 1)));
    __syncthreads();
    if (t == 0) {
        bytes[0] = 0xfe;
        unsigned at = (unsigned)__cvta_generic_to_shared(bytes);
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(out[32]) : "r"(at));
        asm volatile("ld.volatile.shared.s8 %0, [%1];" : "=r"(out[33]) : "r"(at));
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2+%3];" : "=r"(out[34]), "=r"(out[35]) : "l"(out), "n"(8));
        asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, -1};" :: "l"(out + 36), "r"(1), "r"(2), "r"(3) : "memory");
        asm volatile("st.release.gpu.global.u16 [%0], %1;" :: "l"(out + 40), "h"((short)7) : "memory");
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(out[41]) : "l"(out + 36));
        asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u64 %0, [%1];" : "=l"(*(unsigned long long *)(out + 42)) : "l"(out + 36));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, 4; cp.async.commit_group; cp.async.wait_group 0;"
                     :: "r"(at + 8), "l"(out + 37));
        out[44] = *(int *)(bytes + 8);
        out[45] = *(int *)(bytes + 12);
        asm volatile("{ .reg .u64 p; cvta.shared.u64 p, %1; ld.u32 %0, [p+8]; }" : "=r"(out[46]) : "l"((unsigned long long)at));
        asm volatile("st.shared.u32 [%0], 55;" :: "r"((unsigned)__cvta_generic_to_shared(dynamic)) : "memory");
        out[47] = dynamic[0] + *(int *)__cvta_shared_to_generic((unsigned)__cvta_generic_to_shared(dynamic));
        asm volatile("prefetch.global.L2 [%0];" :: "l"(out));
        asm volatile("{ .reg .b32 t; cvt.u32.u8 t, 0x1ff; mov.b32 %0, t; }" : "=r"(out[48]));
    }
}
"#;
    let found = results(text, 32, 49);
    for (t, value) in found[..32].iter().enumerate() {
        assert_eq!(*value, 100 + t as i32);
    }
    let expected = [0xfe, -2, 102, 103, 1, 2, 3, -1];
    assert_eq!(found[32..40], expected);
    assert_eq!(found[40] & 0xffff, 7);
    assert_eq!(found[41..49], [1, 1, 2, 2, 0, 2, 110, 0xff]);
}

#[test]
fn atomic_operations_are_atomic() {
    let text = r#"
extern "C" __global__ void k(int *out, int n) {
    const unsigned t = threadIdx.x;
    if (t < 12) out[t] = t == 11 ? 0x7fffffff : 0;
    __syncthreads();
    unsigned old;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(out));
    out[100 + old] = 1;
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(out + 1), "r"(-(int)t) : "memory");
    asm volatile("atom.max.s32 _, [%0], %1;" :: "l"(out + 2), "r"((int)t - 5));
    asm volatile("red.global.min.s32 [%0], %1;" :: "l"(out + 3), "r"((int)t - 5));
    asm volatile("red.global.or.b32 [%0], %1;" :: "l"(out + 4), "r"(1 << t % 32));
    asm volatile("atom.global.inc.u32 %0, [%1], 9;" : "=r"(old) : "l"(out + 5));
    asm volatile("atom.global.dec.u32 %0, [%1], 9;" : "=r"(old) : "l"(out + 6));
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(out + 7), "f"(0.5f));
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(out + 8), "r"(0x3c003800));
    if (t == 63) {
        asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(out[12]) : "l"(out + 9), "r"(0), "r"(5));
        asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(out[13]) : "l"(out + 9), "r"(0), "r"(6));
        asm volatile("atom.global.exch.b32 %0, [%1+4], %2;" : "=r"(out[14]) : "l"(out + 9), "r"(8));
    }
    asm volatile("red.global.and.b32 [%0], %1;" :: "l"(out + 11), "r"(~(1 << t % 8)));
}
"#;
    let found = results(text, 64, 200);
    assert_eq!(found[..7], [64, -2016, 58, -5, -1, 4, 6]);
    assert_eq!(f32::from_bits(found[7] as u32), 32.0);
    // Halves: 64 times 1, and 64 times 0.5.
    assert_eq!(found[8], 0x5400_5000);
    assert_eq!(found[9..15], [5, 8, 0x7fff_ff00, 0, 5, 0]);
    assert_eq!(found[100..164], [1; 64]);
}

#[test]
fn threads_of_a_warp_and_a_block_exchange() {
    let text = r#"
extern "C" __global__ void k(int *out, int n) {
    const unsigned t = threadIdx.x;
    out += 32 * t;
    unsigned lane, mask;
    asm("mov.u32 %0, %laneid;" : "=r"(lane));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 5, 31, 0xffffffff;" : "=r"(out[0]) : "r"(t));
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0, -1; selp.u32 %1, 1, 0, p; }" : "=r"(out[1]), "=r"(out[2]) : "r"(t));
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, 0x181f, -1; selp.u32 %1, 1, 0, p; }"
                 : "=r"(out[3]), "=r"(out[4]) : "r"(t), "r"(2));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1c1f, -1;" : "=r"(out[5]) : "r"(t), "r"(1));
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(out[6]) : "r"(lane));
    asm volatile("{ .reg .pred p, q; setp.gt.u32 p, %1, 20; vote.sync.any.pred q, !p, -1; selp.u32 %0, 1, 0, q; }" : "=r"(out[7]) : "r"(lane));
    asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 31; vote.sync.all.pred q, p, -1; selp.u32 %0, 1, 0, q; }" : "=r"(out[8]) : "r"(lane));
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(out[9]) : "r"(lane / 8));
    asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %1, 0xffffffff; }" : "=r"(out[10]) : "r"(5));
    asm volatile("activemask.b32 %0;" : "=r"(out[11]));
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(out[12]) : "r"(lane));
    asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(out[13]) : "r"((int)lane - 9));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    out[14] = __popc(mask);
    asm("{ .reg .u32 a, b; mov.u32 a, %%lanemask_ge; mov.u32 b, %%lanemask_eq; sub.u32 a, a, b; popc.b32 %0, a; }" : "=r"(out[15]));
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 3; bar.red.popc.u32 %0, 1, p; }" : "=r"(out[16]) : "r"(lane));
    asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 64; bar.red.and.pred q, 0, p; selp.u32 %0, 1, 0, q; }" : "=r"(out[17]) : "r"(t));
    asm volatile("barrier.sync.aligned 2, 64;");
    asm volatile("bar.warp.sync 0xffffffff;");
    asm("{ .reg .u32 a; mov.u32 %0, %%ntid.x; mov.u32 a, %%ctaid.y; add.u32 %0, %0, a; mov.u32 a, %%nctaid.z; add.u32 %0, %0, a; }" : "=r"(out[18]));
    asm("mov.u32 %0, %%warpid;" : "=r"(out[19]));
    asm("add.u32 %0, %1, WARP_SZ - 2;" : "=r"(out[20]) : "r"(1));
    long long before, after;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(before));
    asm volatile("nanosleep.u32 20;");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after));
    out[21] = after >= before;
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    out[22] = time > 1600000000000000000ull;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(out[23]));
    asm volatile("fence.acq_rel.gpu; membar.cta; fence.sc.sys;");
    if (lane < 4) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xf;" : "=r"(out[24]) : "r"(t));
}
"#;
    let found = results(text, 64, 64 * 32);
    for t in 0..64_i32 {
        let (lane, row) = (t % 32, &found[32 * t as usize..][..32]);
        let down = if lane % 8 + 2 < 8 { t + 2 } else { t };
        assert_eq!(row[0], t ^ 5, "{t}");
        assert_eq!(row[1..3], if lane >= 3 { [t - 3, 1] } else { [t, 0] }, "{t}");
        assert_eq!(row[3..5], [down, i32::from(down != t)], "{t}");
        assert_eq!(row[5], t / 4 * 4 + 1, "{t}");
        assert_eq!(row[6..9], [0xffe0_0000_u32 as i32, 1, 0]);
        assert_eq!(row[9], 0xff << (lane / 8 * 8));
        assert_eq!(row[10..14], [-1, -1, 496, -9]);
        assert_eq!(row[14..18], [lane, 31 - lane, 2, 1]);
        assert_eq!(row[18..23], [65, t / 32, 31, 1, 1]);
        assert_eq!(row[23], i32::from(lane == 0));
        assert_eq!(row[24], if lane < 4 { t ^ 1 } else { -1 });
    }
}

/// Returns the compiler's messages about a text.
fn refused(language: Language, body: &str) -> String {
    let text = format!(
        "__device__ int one;\nextern \"C\" __global__ void k(int *out, int n) {{\n{body}\n}}\n"
    );
    let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
    match compiler_of(language).compile(&source).expect_err(body) {
        Error::Refused(log) => log,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let table = [
        (
            r#"asm("frobnicate.u32 %0, 1;" : "=r"(out[0]));"#,
            "kernel.cu:3: error: inline PTX: 'frobnicate.u32 %0, 1' is not supported on the host",
        ),
        (
            "asm volatile(\"membar.gl;\\n\"\n\"exit;\");",
            "kernel.cu:4: error: inline PTX: 'exit' is not supported on the host; use the C++ statement 'return'",
        ),
        (
            r#"asm("add.u8 %0, %1, 1;" : "=r"(out[0]) : "r"(n));"#,
            "'add.u8 %0, %1, 1' is not supported on the host; add does not have these types or modifiers",
        ),
        (
            r#"asm("add.u32 %0, %1;" : "=r"(out[0]) : "r"(n));"#,
            "'add.u32 %0, %1' has 2 operands; it takes 3",
        ),
        (
            r#"asm("add.u32 %0, %1, x;" : "=r"(out[0]) : "r"(n));"#,
            "names x, which is no register here",
        ),
        (r#"asm("add.u32 %0, %1, %2;" : "=r"(out[0]) : "r"(n));"#, "%2 is no operand: asm has 2"),
        (
            r#"float f = 2; asm("add.f32 %0, %0, %1;" : "+f"(f) : "n"(1));"#,
            "'add.f32 %0, %0, %1' has an integer for a number of type .f32",
        ),
        (
            r#"asm("mov.u32 %0, %1;" : "=r"(n) : "r"([] { int x; asm("mov.u32 %0, 1;" : "=r"(x)); return x; }()));"#,
            "an operand of asm holds another asm statement; compute it before",
        ),
        (
            r#"asm("add.u64 %0, %1, 1;" : "=r"(out[0]) : "r"(n));"#,
            "takes .u64, and the operand is .b32",
        ),
        (
            r#"asm("mov.u32 %0, 1;" : "=x"(out[0]));"#,
            "the constraint \"=x\" of an output is not supported on the host; allowed are",
        ),
        (
            r#"asm("mov.u32 %0, %1;" : "=r"(out[0]) : "m"(n));"#,
            "the constraint \"m\" of an input is not supported on the host",
        ),
        (
            r#"asm("mov.u32 %0, 1;" : "=r"(*(double *)out));"#,
            "operand %0 of asm: the constraint \"r\" takes integers of 32 bits",
        ),
        (
            r#"asm("mov.f32 %0, %1;" : "=f"(*(float *)out) : "f"(1.0));"#,
            "operand %1 of asm: the constraint \"f\" takes float",
        ),
        (r#"asm("bra nowhere;");"#, "goes to nowhere, which is no label of the same asm statement"),
        (
            r#"asm("{ mov.u32 %0, 1;" : "=r"(out[0]));"#,
            "braces open and close in one asm statement",
        ),
        (
            r#"asm("membar.gl; mov.u32 %0, 1" : "=r"(out[0]));"#,
            "a semicolon is missing behind 'mov.u32 %0, 1'",
        ),
        (
            r#"asm("add.f32 %0, %0, %1;" : "+f"(*(float *)out) : "n"(1));"#,
            "has an integer for a number of type .f32",
        ),
        (
            r#"asm("mov.u32 %0, %1;" : "=r"(out[0]) : "r"([] { asm volatile("nop"); return 1; }()));"#,
            "an operand of asm holds another asm statement",
        ),
        (
            r#"asm("cvt.rzi.f64.f32 %0, %1;" : "=d"(*(double *)out) : "f"(1.5f));"#,
            "rounds to whole numbers of another type",
        ),
        (
            r#"asm("cvt.rn.rz.f32.s32 %0, %1;" : "=f"(*(float *)out) : "r"(n));"#,
            "rounds in more than one way",
        ),
        (
            r#"asm("cvt.rna.tf32.s32 %0, %1;" : "=r"(out[0]) : "r"(n));"#,
            "to .tf32, use .rna, .rn or .rz from .f32",
        ),
        (r#"asm(".shared .b32 x;");"#, "the directive .shared is not supported on the host"),
        (r#"asm(".reg .v4 x;");"#, "there are no registers of type .v4 on the host"),
        (
            r#"asm("ld.global.u32 %0, [%1];" : "=r"(out[0]) : "r"(n));"#,
            "takes .b64, and the operand is .b32",
        ),
        (
            r#"asm("cvt.s32.f32 %0, %1;" : "=r"(out[0]) : "f"(1.0f));"#,
            "says no rounding to integers",
        ),
        (
            r#"asm("bar.arrive 0, 64;");"#,
            "'bar.arrive 0, 64' is not supported on the host; a thread waits at each barrier",
        ),
        (
            r#"asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};" : "=r"(out[0]));"#,
            "compute with fma instead of matrix units",
        ),
        (
            r#"asm("mov.u32 %0, %%gridid;" : "=r"(out[0]));"#,
            "names %gridid, which is no register here",
        ),
        (
            r#"asm("vmad.s32.u32.u32 %0, -%1, %1, -%1;" : "=r"(out[0]) : "r"(n));"#,
            "negates its product and what it adds; it can negate one of them",
        ),
        (
            r#"asm("vmad.s32.u32.u32.po %0, %1, -%1, %1;" : "=r"(out[0]) : "r"(n));"#,
            "has an operand with a sign, which .po excludes",
        ),
        (
            r#"asm("add.u32 %0, -%1, 1;" : "=r"(out[0]) : "r"(n));"#,
            "has an operand of a form that it does not take",
        ),
        (r#"asm("mov.u32 %0, %one;" : "=r"(out[0]));"#, "names %one"),
        (r#"asm goto("bra %l0;" :::: out);"#, "asm goto is not supported on the host"),
        (r#"asm("mov.u32 %0, 1;" : "=r"(out[0])"#, "error"),
        (r#"asm("@p mov.u32 %0, 1;" : "=r"(out[0]));"#, "names p, which is no register here"),
        (
            "asm(\"mov.u32 %0, 1;\"\n: \"=r\"(out[0]));\nthere_is_no_such_name = 1;",
            "kernel.cu:5: error:",
        ),
    ];
    for (body, expected) in table {
        let log = refused(Language::default(), body).replace(['‘', '’'], "'");
        assert!(log.contains(expected), "{body}\n{log}");
    }
}

#[test]
fn assembly_of_amds_processors_is_refused() {
    let hip = Language { hip: true, warp_size: 64, ..Language::default() };
    let log = refused(hip, r#"asm volatile("v_mov_b32 %0, %1" : "=v"(out[0]) : "v"(n));"#);
    let expected =
        "kernel.cu:3: error: inline assembly of AMD's processors is not supported on the host";
    assert!(log.contains(expected), "{log}");
}

#[test]
fn a_host_function_has_the_processors_own_assembly() {
    let text = r#"
inline void pause() { __asm__ volatile("nop" ::: "memory"); }
extern "C" __global__ void k(int *out, int n) { pause(); out[0] = 5; }
"#;
    assert_eq!(results(text, 1, 1), [5]);
}

#[test]
fn failures_name_the_line_of_the_instruction() {
    let text = "extern \"C\" __global__ void k(int *out, int n) {\n    asm volatile(\n        \"{ .reg .pred p;\\n\\t\"\n        \"setp.eq.u32 p, %0, 5;\\n\\t\"\n        \"@p trap;\\n\\t\"\n        \"}\" :: \"r\"(threadIdx.x));\n}\n";
    let library = load(text);
    let (_, message) = failure(&library, "k", 1, 32);
    assert!(message.contains("kernel.cu:5"), "{message}");
}
