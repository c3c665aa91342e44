//! Constants, carries after branches, and loops that wait for another thread.

use crate::units::{load, run};

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
