//! Rows of threads in which an index or a compared value wraps, against what each thread computes alone.

use super::kernel::Random;
use super::units;
use cuda_c::{Kernel, Schedule, Shape};
use std::ffi::c_void;

/// `i` counts from thread to thread. Bits are the comparisons that a thread meets; bytes are written where
/// narrow numbers point to.
const TEXT: &str = r#"
#define ROWS(name, T, U) \
extern "C" __global__ void name(long base, long bound, unsigned char *bits, unsigned char *middle) { \
    const T i = (T)base + threadIdx.x; \
    const U limit = (U)bound; \
    const int t = threadIdx.x + blockDim.x * threadIdx.y; \
    bits[t] = 0; \
    __syncthreads(); \
    if (i < limit) bits[t] |= 1; \
    if (limit >= i) bits[t] |= 2; \
    if (i > limit && threadIdx.y == 1) bits[t] |= 4; \
    if (i >= limit) bits[t] |= 8; \
    if (limit == i) bits[t] |= 16; \
    middle[(short)i + 0] = threadIdx.x + 1; \
}
ROWS(of_char, signed char, signed char)
ROWS(of_uchar, unsigned char, unsigned char)
ROWS(of_short, short, short)
ROWS(of_int, int, int)
ROWS(of_unsigned, unsigned, unsigned)
ROWS(of_long, long, long)
ROWS(of_ulong, unsigned long, unsigned long)
ROWS(of_mixed, int, unsigned)
ROWS(of_widened, short, unsigned)
"#;

/// A number as one of a type, and as it is compared.
fn converted(name: &str, number: i64) -> [i128; 2] {
    let own = match name {
        "of_char" => i128::from(number as i8),
        "of_uchar" => i128::from(number as u8),
        "of_short" | "of_widened" => i128::from(number as i16),
        "of_int" | "of_mixed" => i128::from(number as i32),
        "of_unsigned" => i128::from(number as u32),
        "of_long" => i128::from(number),
        _ => i128::from(number as u64),
    };
    let is_unsigned = matches!(name, "of_mixed" | "of_widened");
    [own, if is_unsigned { i128::from(own as u32) } else { own }]
}

/// The bits of a thread, and where it writes.
fn expected(name: &str, [base, bound]: [i64; 2], [x, y]: [i64; 2]) -> (u8, usize) {
    let limit = match name {
        "of_widened" => i128::from(bound as u32),
        _ => converted(name, bound)[1],
    };
    // The sum is converted after it.
    let [own, compared] = converted(name, (converted(name, base)[0] as i64).wrapping_add(x));
    let bits = [
        compared < limit,
        limit >= compared,
        compared > limit && y == 1,
        compared >= limit,
        limit == compared,
    ];
    let bits = bits.iter().enumerate().map(|(bit, &is_met)| u8::from(is_met) << bit).sum();
    (bits, (i64::from(own as i16) + 32768) as usize)
}

#[test]
fn indices_and_conditions_wrap_in_rows_as_they_do_otherwise() {
    let library = units::load(TEXT);
    let names = [
        "of_char",
        "of_uchar",
        "of_short",
        "of_int",
        "of_unsigned",
        "of_long",
        "of_ulong",
        "of_mixed",
        "of_widened",
    ];
    let bases = [0, 127, 255, 32767, 65535, i64::from(i32::MAX), i64::from(u32::MAX), i64::MAX, -1];
    let mut random = Random(5);
    let mut number = |spread: usize| {
        let base: i64 = bases[random.below(bases.len())];
        base.wrapping_add(random.below(spread) as i64 - spread as i64 / 2)
    };
    for round in 0..9000 {
        let name = names[round % names.len()];
        let numbers = [number(80), number(100)];
        let threads = 1 + (round / 9 % 70) as i64;
        let kernel = Kernel::find(&library, name).expect("the kernel");
        assert!(kernel.has_regions());
        for fibers in [false, true] {
            let (mut bits, mut bytes) = (vec![0_u8; 140], vec![0_u8; 65536]);
            let [mut base, mut bound] = numbers;
            // SAFETY: the array is so long.
            let mut middle = unsafe { bytes.as_mut_ptr().add(32768) };
            let mut address = bits.as_mut_ptr();
            let arguments: [*mut c_void; 4] = [
                (&raw mut base).cast(),
                (&raw mut bound).cast(),
                (&raw mut address).cast(),
                (&raw mut middle).cast(),
            ];
            let shape = Shape { grid: [1; 3], block: [threads as u32, 2, 1], cooperative: false };
            let schedule = Schedule { fibers, ..Schedule::default() };
            // SAFETY: the kernel takes these, and stays inside of the arrays.
            let done = unsafe { kernel.launch(&shape, &schedule, &arguments, &|| None) };
            done.unwrap_or_else(|error| panic!("{error}"));
            let mut written = 0;
            for (x, y) in (0..2).flat_map(|y| (0..threads).map(move |x| (x, y))) {
                let (own, at) = expected(name, numbers, [x, y]);
                let what = || format!("{name} {numbers:?} thread {x}, {y}, fibers {fibers}");
                assert_eq!(bits[(x + threads * y) as usize], own, "{}", what());
                assert_eq!(bytes[at], x as u8 + 1, "{}", what());
                written += usize::from(y == 0);
            }
            assert_eq!(bytes.iter().filter(|it| **it != 0).count(), written, "{name} {numbers:?}");
        }
    }
}
