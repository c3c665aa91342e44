//! Compares rows of threads in which an index or a compared value wraps with the results of each thread
//! alone, in kernels with a barrier and in kernels whose threads return.

use crate::units;
use crate::units::Random;
use host_executor::{Kernel, Schedule, Shape};
use std::collections::HashSet;
use std::ffi::c_void;

/// `i` increases from thread to thread. Each bit is a comparison that a thread meets; the bytes are written
/// at narrow indices.
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
    if (threadIdx.x == (float)(bound & 63)) bits[t] |= 32; \
    middle[(short)i + 0] = threadIdx.x + 1; \
}
#define RETURNS(name, T, U, condition, also) \
extern "C" __global__ void name(long base, long bound, unsigned char *bits, unsigned char *middle) { \
    const T i = (T)base + threadIdx.x; \
    const U limit = (U)bound; \
    const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x); \
    bits[t] = 1; \
    if (condition) { return; } \
    bits[t] |= 2; \
    if (also) return; \
    bits[t] |= 4; \
    middle[(short)i + 0] = threadIdx.x + 1; \
}
#define ALL(name, T, U) \
    ROWS(name, T, U) \
    RETURNS(name##_at_end, T, U, i >= limit || threadIdx.y == 1, bits[t] == 1) \
    RETURNS(name##_at_begin, T, U, limit > i || bits[t] > 1, threadIdx.x == 3 || threadIdx.y == 0) \
    RETURNS(name##_but_one, T, U, limit != i || threadIdx.x == 3 && threadIdx.y == 1, false)
ROWS(of_char, signed char, signed char)
ALL(of_uchar, unsigned char, unsigned char)
ROWS(of_short, short, short)
ALL(of_int, int, int)
ROWS(of_unsigned, unsigned, unsigned)
ROWS(of_long, long, long)
ROWS(of_ulong, unsigned long, unsigned long)
ALL(of_mixed, int, unsigned)
ROWS(of_widened, short, unsigned)
"#;

/// Returns a number converted to a type, and the value that is compared.
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

/// Returns the bits of a thread, and the place where it writes, if it does.
fn expected(
    name: &str,
    returns: &str,
    [base, bound]: [i64; 2],
    [x, y]: [i64; 2],
) -> (u8, Option<usize>) {
    let limit = match name {
        "of_widened" => i128::from(bound as u32),
        _ => converted(name, bound)[1],
    };
    // The sum is converted afterwards.
    let [own, compared] = converted(name, (converted(name, base)[0] as i64).wrapping_add(x));
    let at = (i64::from(own as i16) + 32768) as usize;
    let of_returning = |first: bool, second: bool| match (first, second) {
        (true, _) => (1, None),
        (false, true) => (3, None),
        (false, false) => (7, Some(at)),
    };
    match returns {
        "_at_end" => return of_returning(compared >= limit || y == 1, false),
        "_at_begin" => return of_returning(limit > compared, x == 3 || y == 0),
        "_but_one" => return of_returning(limit != compared || (x == 3 && y == 1), false),
        _ => {}
    }
    let bits = [
        compared < limit,
        limit >= compared,
        compared > limit && y == 1,
        compared >= limit,
        limit == compared,
        x == bound & 63,
    ];
    let bits = bits.iter().enumerate().map(|(bit, &is_met)| u8::from(is_met) << bit).sum();
    (bits, Some(at))
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
        // Kernels whose threads return have several blocks.
        let forms = [("", 1), ("_at_end", 3), ("_at_begin", 2), ("_but_one", 3)];
        let is_single = !matches!(name, "of_uchar" | "of_int" | "of_mixed");
        let (returns, blocks) = forms[if is_single { 0 } else { round / 9 % 4 }];
        let kernel = Kernel::find(&library, &format!("{name}{returns}")).expect("the kernel");
        assert!(kernel.has_regions());
        for fibers in [false, true] {
            let (mut bits, mut bytes) = (vec![0_u8; 140 * blocks], vec![0_u8; 65536]);
            let [mut base, mut bound] = numbers;
            // SAFETY: the array has this length.
            let mut middle = unsafe { bytes.as_mut_ptr().add(32768) };
            let mut address = bits.as_mut_ptr();
            let arguments: [*mut c_void; 4] = [
                (&raw mut base).cast(),
                (&raw mut bound).cast(),
                (&raw mut address).cast(),
                (&raw mut middle).cast(),
            ];
            let grid = [blocks as u32, 1, 1];
            let shape = Shape { grid, block: [threads as u32, 2, 1], cooperative: false };
            let schedule = Schedule { fibers, ..Schedule::default() };
            // SAFETY: the kernel takes these arguments, and stays inside the arrays.
            let done = unsafe { kernel.launch(&shape, &schedule, &arguments, &|| None) };
            done.unwrap_or_else(|error| panic!("{error}"));
            let mut written = HashSet::new();
            for (x, y) in (0..2).flat_map(|y| (0..threads).map(move |x| (x, y))) {
                let (own, at) = expected(name, returns, numbers, [x, y]);
                let what =
                    || format!("{name}{returns} {numbers:?} thread {x}, {y}, fibers {fibers}");
                for block in 0..blocks {
                    let thread = (x + threads * (y + 2 * block as i64)) as usize;
                    assert_eq!(bits[thread], own, "{}", what());
                }
                if let Some(at) = at {
                    assert_eq!(bytes[at], x as u8 + 1, "{}", what());
                    written.insert(at);
                }
            }
            let count = bytes.iter().filter(|it| **it != 0).count();
            assert_eq!(count, written.len(), "{name}{returns} {numbers:?}");
        }
    }
}
