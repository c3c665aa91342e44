//! Compares random kernels with barriers, in both forms, with a model that is independent of the schedule.
//!
//! A kernel is a tree of statements. The model runs each statement for all threads of a block before the next
//! one; the kernel's text is compiled. Between two barriers, no thread reads what another one writes.
//!
//! `PYGPU_FUZZ_ROUNDS` sets the number of texts that each search compiles, `PYGPU_FUZZ_SEED` its start.

mod kernel;
mod model;
mod text;
mod thread_rows;
mod tree;

use crate::units::{self, Random};
use host_executor::{Kernel, Library, Optimization, Schedule, Shape, Source};
use kernel::Maker;
use std::ffi::c_void;
use tree::Tree;

/// Runs a kernel, and returns the values that it has written: a number for each thread, and for each element
/// of the data.
fn run(kernel: &Kernel, shape: &Shape, schedule: &Schedule, numbers: [i32; 2]) -> Vec<i32> {
    let threads: u32 = shape.block.iter().product::<u32>() * shape.grid.iter().product::<u32>();
    let mut out = vec![0; threads as usize + model::DATA];
    let data: Vec<i32> = (0..model::DATA).map(model::data).collect();
    let (mut first, mut second) = (numbers[0], numbers[1]);
    let (mut data, mut address) = (data.as_ptr(), out.as_mut_ptr());
    let mut written = out[threads as usize..].as_mut_ptr();
    let arguments: [*mut c_void; 5] = [
        (&raw mut first).cast(),
        (&raw mut second).cast(),
        (&raw mut data).cast(),
        (&raw mut address).cast(),
        (&raw mut written).cast(),
    ];
    // SAFETY: the kernel takes these arguments, and stays inside the arrays.
    let done = unsafe { kernel.launch(shape, schedule, &arguments, &|| None) };
    done.unwrap_or_else(|error| panic!("{error}"));
    out
}

fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

/// Compiles random kernels, `kernels` in each text, and runs each in blocks of several shapes. Compiles `few`
/// texts by default.
fn search(optimization: Optimization, seed: u64, [few, all]: [usize; 2], kernels: usize) {
    let seed = setting("PYGPU_FUZZ_SEED").map_or(seed, |it| seed + 1000 * it as u64);
    let mut random = Random(seed);
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let texts = setting("PYGPU_FUZZ_ROUNDS").unwrap_or(if is_long { all } else { few });
    let (mut with_regions, mut all) = (0, 0);
    for _ in 0..texts {
        let trees: Vec<Tree> = (0..kernels).map(|_| Maker::new(&mut random).tree()).collect();
        let text = text::text(&trees);
        let compiler = units::compiler();
        let compiler = compiler.optimizing_for(optimization).with_regions(true);
        let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
        let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(compiled.log, "");
        // SAFETY: the text belongs to this test.
        let library = unsafe { Library::load(&compiled.library) }.expect("a unit");
        for (number, tree) in trees.iter().enumerate() {
            let kernel = Kernel::find(&library, &format!("kernel_{number}")).expect("the kernel");
            (all, with_regions) = (all + 1, with_regions + usize::from(kernel.has_regions()));
            for _ in 0..4 {
                compare(&kernel, tree, &mut random, &text);
            }
        }
    }
    // Kernels without a loop variant, such as ones with a divergent condition around a barrier, are not
    // generated.
    assert!(with_regions * 10 >= all * 9, "{with_regions} of {all} kernels have a loop variant");
}

fn compare(kernel: &Kernel, tree: &Tree, random: &mut Random, text: &str) {
    let block = [1 + random.below(40), 1 + random.below(4), 1 + random.below(3)];
    let grid = [1 + random.below(3), 1 + random.below(2), 1];
    let numbers = [random.below(1000) as i32 - 500, random.below(7) as i32];
    let expected = model::run(tree, grid, block, numbers);
    let to_u32 = |it: [usize; 3]| it.map(|it| it as u32);
    let shape = Shape { grid: to_u32(grid), block: to_u32(block), cooperative: false };
    for fibers in [false, true] {
        let schedule = Schedule { fibers, fill: Some(0x5a), ..Schedule::default() };
        let found = run(kernel, &shape, &schedule, numbers);
        assert!(
            found == expected,
            "{} with fibers {fibers} of {block:?} in {grid:?} with {numbers:?}: {:?}\n{text}",
            kernel.name(),
            found.iter().zip(&expected).enumerate().find(|(_, (a, b))| a != b),
        );
    }
}

#[test]
fn random_kernels_compute_what_the_model_does() {
    search(Optimization::Compilation, 1, [2, 40], 30);
}

#[test]
fn random_kernels_compute_what_the_model_does_in_vectors() {
    search(Optimization::Speed, 2, [1, 20], 16);
}

/// Loops whose counters may wrap. Each thread runs them as a whole, or in rounds with the others.
const COUNTERS: &str = r#"
#define COUNT(name, T) \
extern "C" __global__ void name(long start, long end, long by, unsigned *out) { \
    const T first = (T)start, last = (T)end, step = (T)by; \
    for (T i = first + threadIdx.x; i < last; i += step) out[threadIdx.x] = out[threadIdx.x] * 31 + i; \
}
COUNT(of_int, int)
COUNT(of_unsigned, unsigned)
COUNT(of_long, long)
extern "C" __global__ void of_mixed(long start, long end, long by, unsigned *out) {
    const unsigned last = (unsigned)end;
    const short step = (short)by;
    for (int i = (int)start + threadIdx.x; i < last; i += step) out[threadIdx.x] = out[threadIdx.x] * 31 + i;
}
"#;

/// Returns the value that a thread writes, if it finishes within some steps.
fn counted(name: &str, [start, end, by]: [i64; 3], thread: i64) -> Option<u32> {
    let wrap = |it: i64| match name {
        "of_unsigned" => i64::from(it as u32),
        "of_long" => it,
        _ => i64::from(it as i32),
    };
    let (last, step) = match name {
        "of_mixed" => (i64::from(end as u32), i64::from(by as i16)),
        _ => (wrap(end), wrap(by)),
    };
    let (mut at, mut out) = (wrap(wrap(start).wrapping_add(thread)), 0_u32);
    for _ in 0..200 {
        let compared = if name == "of_mixed" { i64::from(at as u32) } else { at };
        if compared >= last {
            return Some(out);
        }
        out = out.wrapping_mul(31).wrapping_add(at as u32);
        at = wrap(at.wrapping_add(step));
    }
    None
}

#[test]
fn counters_wrap_in_rounds_as_they_do_otherwise() {
    const THREADS: i64 = 37;
    let library = units::load(COUNTERS);
    let mut random = Random(3);
    let bases =
        [0, 0, 0, 100, 1 << 28, 1 << 29, i64::from(i32::MAX), i64::from(u32::MAX), i64::MAX];
    let mut number = |spread: usize| {
        let base = bases[random.below(bases.len())];
        let near = base.wrapping_add(random.below(spread) as i64 - spread as i64 / 4);
        if random.below(8) == 0 { near.wrapping_neg() } else { near }
    };
    let mut compared = 0;
    for round in 0..40_000 {
        let name = ["of_int", "of_unsigned", "of_long", "of_mixed"][round % 4];
        let triple = [number(60), number(400), number(60)];
        let expected: Option<Vec<u32>> =
            (0..THREADS).map(|thread| counted(name, triple, thread)).collect();
        let Some(expected) = expected else { continue };
        let kernel = Kernel::find(&library, name).expect("the kernel");
        assert!(kernel.has_regions());
        compared += usize::from(expected.iter().any(|it| *it != 0));
        for fibers in [false, true] {
            let mut out = vec![0_u32; THREADS as usize];
            let ([mut start, mut end, mut by], mut address) = (triple, out.as_mut_ptr());
            let arguments: [*mut c_void; 4] = [
                (&raw mut start).cast(),
                (&raw mut end).cast(),
                (&raw mut by).cast(),
                (&raw mut address).cast(),
            ];
            let schedule = Schedule { fibers, ..Schedule::default() };
            let shape = units::shape(1, THREADS as u32);
            // SAFETY: the kernel takes these arguments, and stays inside the array.
            let done = unsafe { kernel.launch(&shape, &schedule, &arguments, &|| None) };
            assert!(
                done.is_ok() && out == expected,
                "{name} {triple:?}, fibers {fibers}: {done:?}"
            );
        }
    }
    assert!(compared > 1000, "{compared}");
}
