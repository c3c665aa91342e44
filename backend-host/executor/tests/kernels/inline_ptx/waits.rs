//! Constants, carries after branches, and loops and barriers that wait for other threads.

use crate::units::{failure, load, run};

#[test]
fn constants_have_a_sign_as_the_instruction_set_says() {
    // Results of NVIDIA's compiler. Numbers with U are unsigned, and so are numbers that fill all 64 bits and
    // results of `~`. A shifted number keeps its signedness, and only the lowest six bits of the distance
    // count.
    let table: [(&str, u64); 28] = [
        ("0xFFFFFFFFFFFFFFFF/2", 0x7fff_ffff_ffff_ffff),
        ("0x8000000000000000>>4", 1 << 59),
        ("(5U-6U)>>1", u64::MAX >> 1),
        ("(5-6)>>1", u64::MAX),
        ("-8/2U", (u64::MAX - 7) / 2),
        ("-8/2", u64::MAX - 3),
        ("~7>>1", (u64::MAX - 7) >> 1),
        ("~0/2", u64::MAX / 2),
        ("(-8|0)>>1", u64::MAX - 3),
        ("(-8^0)/2", u64::MAX - 3),
        ("-8>>64", u64::MAX - 7),
        ("-1>>65", u64::MAX),
        ("1<<64", 1),
        ("!0>>1", 0),
        ("7 %% 4", 3),
        ("-7 %% 4*2", 2),
        ("-9 %% 4 - 8 < 0", 0),
        ("-1 < 0", 1),
        ("-1 < 0U", 0),
        ("1 + 2 >= 3 == 1", 1),
        ("3 != 3 | 4", 4),
        ("6 & 3 == 3", 0),
        ("2 && 0 || 5", 1),
        ("1 << 2 > 3", 1),
        ("0 ? 1 : 2 ? 3 : 4", 3),
        ("(1 ? -8 : 0) >> 1", u64::MAX - 3),
        ("(1 ? -8 : 0U) >> 1", u64::MAX - 3),
        ("-(5 <= 4) - 1", u64::MAX),
    ];
    let mut text =
        "extern \"C\" __global__ void k(int *array) {\nauto out = (unsigned long long *)array;\n"
            .to_owned();
    for (place, (constant, _)) in table.iter().enumerate() {
        text.push_str(&format!("asm(\"mov.u64 %0, {constant};\" : \"=l\"(out[{place}]));\n"));
    }
    let mut array = [0; 56];
    run(&load(&(text + "}")), "k", 1, 1, &mut array);
    let expected: Vec<i32> =
        table.iter().flat_map(|it| [it.1 as i32, (it.1 >> 32) as i32]).collect();
    assert_eq!(array[..], expected);
}

const PROGRAM: &str = r#"
extern "C" __global__ void carried(int *out) {
    unsigned x = ~0u;
    asm volatile("add.cc.u32 %0, %0, 1;" : "+r"(x));
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; @p bra S; add.cc.u32 %0, %0, 0;\n"
                 "S: addc.u32 %0, %0, 7; }" : "+r"(x));
    out[threadIdx.x] = x;
}
extern "C" __global__ void waits(int *out) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 31) asm volatile("st.volatile.u32 [%0], 8;" :: "l"(&flag) : "memory");
    asm volatile("{ .reg .pred p; .reg .u32 t; W: ld.volatile.u32 t, [%0]; setp.eq.u32 p, t, 0; @p bra W; }"
                 :: "l"(&flag) : "memory");
    out[threadIdx.x] = flag;
}
__device__ int acquired(int *p) { int x; asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); return x; }
extern "C" __global__ void loops(int *out) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 31) flag = 9;
    while (acquired(&flag) == 0) {}
    int x;
    do { asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(x) : "l"(&flag)); } while (x == 0);
    out[threadIdx.x] = x;
}
"#;

#[test]
fn a_carry_is_there_behind_a_branch() {
    let mut array = [0; 32];
    run(&load(PROGRAM), "carried", 1, 32, &mut array);
    assert_eq!(array, [8; 32]);
}

#[test]
fn threads_wait_for_each_other() {
    let library = load(PROGRAM);
    for (name, expected) in [("waits", 8), ("loops", 9)] {
        let mut array = [0; 32];
        run(&library, name, 1, 32, &mut array);
        assert_eq!(array, [expected; 32], "{name}");
    }
}

#[test]
fn barriers_in_memory_count_threads_and_bytes() {
    let text = r#"
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void k(int *out, int n) {
    __shared__ alignas(16) int values[64];
    __shared__ unsigned long long turn, filled;
    const unsigned t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(&turn)), "r"(64));
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(&filled)));
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    // Each thread leaves in a round of its own, and the others no longer wait for it.
    unsigned round = 0, ready = 0;
    for (; round < t; ++round) {
        unsigned long long state;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at(&turn)));
        do {
            asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                         : "=r"(ready) : "r"(at(&turn)), "l"(state) : "memory");
        } while (!ready);
        if (t == 63) atomicAdd(out + 64, 1);
    }
    asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" :: "r"(at(&turn)));
    out[t] = round;
    // One thread copies, and all wait for the bytes, by the parity of the phase.
    for (int phase = 0; phase < 3; ++phase) {
        __syncthreads();
        if (t == 5) {
            asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 256;" :: "r"(at(&filled)));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                         :: "r"(at(values)), "l"(out + 1024 * phase), "r"(at(&filled)) : "memory");
        }
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                     :: "r"(at(&filled)), "r"(phase & 1) : "memory");
        out[128 + 64 * phase + t] = values[63 - t];
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256; cp.async.bulk.commit_group;"
                     "cp.async.bulk.wait_group.read 0;" :: "l"(out + 512), "r"(at(values)) : "memory");
        unsigned long long state;
        unsigned pending;
        asm volatile("mbarrier.init.b64 [%0], 3;" :: "l"(&filled));
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&filled)));
        asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at(&filled)));
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
        asm volatile("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 10, 20, p; }"
                     : "=r"(out[66]) : "l"(&filled));
        out[65] = pending;
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0]; mbarrier.inval.shared.b64 [%0];" :: "r"(at(&filled)));
    }
}
"#;
    let mut array: Vec<i32> = (0..4096).collect();
    array[64] = 0;
    run(&load(text), "k", 1, 64, &mut array);
    assert_eq!(array[..67], (0..64).chain([63, 3, 10]).collect::<Vec<_>>());
    for phase in 0..3 {
        let copied: Vec<i32> = (0..64).rev().map(|it| it + 1024 * phase as i32).collect();
        assert_eq!(array[128 + 64 * phase..][..64], copied, "{phase}");
    }
    assert_eq!(array[512..576], (2048..2112).collect::<Vec<_>>());
}

#[test]
fn arrivals_that_a_barrier_does_not_expect_end_the_launch() {
    let text = r#"
extern "C" __global__ void k(int *out, int n) {
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.b64 [%0], 4;" :: "l"(&barrier));
    __syncthreads();
    asm volatile("mbarrier.arrive.b64 _, [%0], 5;" :: "l"(&barrier));
}
"#;
    let (_, message) = failure(&load(text), "k", 1, 32);
    assert!(message.contains("more arrivals than the barrier expects"), "{message}");
}

#[test]
fn loops_of_different_files_take_turns() {
    // Each thread waits in each file while the other thread waits in the other file.
    let text = r#"
#line 1 "a.cuh"
__device__ void one(volatile int *flag, int value) { while (*flag != value) {} }
#line 1 "b.cuh"
__device__ void other(volatile int *flag, int value) { while (*flag != value) {} }
#line 1 "k.cu"
extern "C" __global__ void k(int *out, int n) {
    __shared__ volatile int first, second;
    if (threadIdx.x == 0) first = second = 0;
    __syncthreads();
    if (threadIdx.x == 0) { one(&first, 1); second = 1; other(&first, 2); second = 2; }
    else { first = 1; other(&second, 1); first = 2; one(&second, 2); }
    __syncthreads();
    out[threadIdx.x] = 10 * first + second;
}
"#;
    let mut array = vec![0; 2];
    run(&load(text), "k", 1, 2, &mut array);
    assert_eq!(array, [22, 22]);
}
