//! Random kernels without barriers, whose threads skip statements or return after comparisons. Compares the
//! loop variant with thread-by-thread execution.
//!
//! `PYGPU_FUZZ_ROUNDS` sets the number of texts to compile, `PYGPU_FUZZ_SEED` the start of the search.

mod maker;

use crate::units::{self, Random, pointer};
use host_executor::{Kernel, Optimization, Schedule, Shape, Source};
use maker::Maker;

/// The number of elements that each thread writes, and the number of elements that are read.
const OWN: usize = 4;
const READ: usize = 64;
const KERNELS: usize = 24;

fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

/// The values of the arguments, close to each other, to the threads' numbers and to the limits of the types.
struct Numbers {
    n: i32,
    u: u32,
    l: i64,
    f: f32,
    d: f64,
    c: u8,
    bits: u32,
    wide: i128,
}

impl Numbers {
    fn random(random: &mut Random) -> Numbers {
        let bases = [0, 0, 0, 127, 255, i64::from(i32::MAX), i64::from(u32::MAX), i64::MAX, -1, 60];
        let mut near = || {
            let base: i64 = bases[random.below(bases.len())];
            base.wrapping_add(random.below(70) as i64 - 35)
        };
        let numbers = [near(), near(), near(), near(), near(), near(), near(), near()];
        let others = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.5, -0.0];
        let mut float = |it: i64| match random.below(8) {
            0 => others[random.below(others.len())],
            1 => it as f64 + 0.5,
            _ => it as f64,
        };
        let (f, d) = (float(numbers[0]) as f32, float(numbers[1]));
        let wide = i128::from(numbers[6]) + [0, 1 << 64, -(1 << 64)][random.below(3)];
        let [_, _, n, u, l, c, _, bits] = numbers;
        Numbers { n: n as i32, u: u as u32, l, f, d, c: c as u8, bits: bits as u32, wide }
    }
}

/// Runs a kernel, and returns the values that its threads have written.
fn run(kernel: &Kernel, shape: &Shape, fibers: bool, numbers: &Numbers) -> Vec<u32> {
    let threads: u32 = shape.block.iter().product::<u32>() * shape.grid.iter().product::<u32>();
    let mut out = vec![7_u32; threads as usize * OWN];
    let read: Vec<i32> = (0..READ as i32).map(|it| it * 37 % 23 - 6).collect();
    let Numbers { mut n, mut u, mut l, mut f, mut d, mut c, mut bits, mut wide } = *numbers;
    let (mut address, mut data, mut total) = (out.as_mut_ptr(), read.as_ptr(), threads as i32);
    let arguments = [
        pointer(&mut n),
        pointer(&mut u),
        pointer(&mut l),
        pointer(&mut f),
        pointer(&mut d),
        pointer(&mut c),
        pointer(&mut bits),
        pointer(&mut wide),
        pointer(&mut total),
        pointer(&mut address),
        pointer(&mut data),
    ];
    let schedule = Schedule { fibers, ..Schedule::default() };
    // SAFETY: the kernel takes these arguments, and stays inside the arrays.
    let done = unsafe { kernel.launch(shape, &schedule, &arguments, &|| None) };
    done.unwrap_or_else(|error| panic!("{error}"));
    out
}

#[test]
fn random_kernels_without_barriers_compute_the_same_in_both_forms() {
    let mut random = Random(setting("PYGPU_FUZZ_SEED").map_or(11, |it| 11 + 1000 * it as u64));
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let texts = setting("PYGPU_FUZZ_ROUNDS").unwrap_or(if is_long { 30 } else { 1 });
    let (mut with_regions, mut all) = (0, 0);
    for round in 0..texts {
        let text: String = (0..KERNELS).map(|it| Maker::new(&mut random).kernel(it)).collect();
        let text = format!("{}{text}", maker::HEAD);
        let optimization = [Optimization::Compilation, Optimization::Speed][round % 2];
        let compiler = units::compiler();
        let compiler = compiler.optimizing_for(optimization).with_regions(true);
        let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
        let library = units::load_source(&compiler, &source);
        for number in 0..KERNELS {
            let kernel = Kernel::find(&library, &format!("kernel_{number}")).expect("the kernel");
            (all, with_regions) = (all + 1, with_regions + usize::from(kernel.has_regions()));
            for _ in 0..12 {
                let mut below = |limit| 1 + random.below(limit) as u32;
                let width = if below(4) == 1 { 300 } else { 60 };
                let (block, grid) =
                    ([below(width), below(3), below(2)], [below(3), below(2), below(2)]);
                let shape = Shape { grid, block, cooperative: false };
                let numbers = Numbers::random(&mut random);
                let [alone, found] = [true, false].map(|it| run(&kernel, &shape, it, &numbers));
                let differs = alone.iter().zip(&found).position(|(a, b)| a != b);
                assert!(
                    differs.is_none(),
                    "kernel_{number} in {shape:?} differs at {differs:?}; n {} u {} l {} f {} d {} \
                     c {} bits {:x} wide {}\n{text}",
                    numbers.n,
                    numbers.u,
                    numbers.l,
                    numbers.f,
                    numbers.d,
                    numbers.c,
                    numbers.bits,
                    numbers.wide,
                );
            }
        }
    }
    assert!(with_regions * 3 >= all, "{with_regions} of {all} kernels have a loop variant");
}

/// Comparisons whose operands are narrower or wider than they look.
const SIZES: &str = r#"
struct Bits { unsigned low : 5; int high : 4; unsigned rest : 23; };
extern "C" __global__ void narrow(Bits b, __int128 w, int *out) {
    const unsigned char own = threadIdx.x;
    if (own < 5) out[threadIdx.x] = 1;
}
extern "C" __global__ void field(Bits b, __int128 w, int *out) {
    const int i = threadIdx.x - 7;
    if (i < b.low) out[threadIdx.x] = 1;
}
extern "C" __global__ void wide(Bits b, __int128 w, int *out) {
    if (threadIdx.x >= w) return;
    out[threadIdx.x] = 1;
}
"#;

#[test]
fn comparisons_have_the_types_of_the_language() {
    let library = units::load(SIZES);
    let below_five = |it: usize| it % 256 < 5;
    let expected: [(&str, &dyn Fn(usize) -> bool); 3] =
        [("narrow", &below_five), ("field", &|it| it < 10), ("wide", &|_| true)];
    for (name, is_met) in expected {
        let kernel = Kernel::find(&library, name).expect("the kernel");
        assert!(kernel.has_regions(), "{name}");
        let mut out = vec![0; 300];
        let (mut bits, mut wide, mut address) = (3_u32, (1_i128 << 64) + 2, out.as_mut_ptr());
        let arguments = [pointer(&mut bits), pointer(&mut wide), pointer(&mut address)];
        // SAFETY: the kernels take these arguments, and stay inside the array.
        let done = unsafe {
            kernel.launch(&units::shape(1, 300), &Schedule::default(), &arguments, &|| None)
        };
        done.unwrap_or_else(|error| panic!("{error}"));
        for (thread, &found) in out.iter().enumerate() {
            assert_eq!(found, i32::from(is_met(thread)), "{name}, thread {thread}");
        }
    }
}
