//! Random numbers.

use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::{Launches, THREADS, blocks};
use hal::dtype::DType;
use hal::operation::{Random, RandomSource};
use hal::random::{Distribution, Generator};
use hal::scalar::Scalar;

/// The kind of distribution, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Draw {
    Bits,
    Uniform,
    HalfOpen,
    Normal,
    LogNormal,
    Poisson,
    PoissonOfElement,
}

impl Draw {
    fn of(distribution: Distribution) -> Draw {
        match distribution {
            Distribution::Uniform => Draw::Uniform,
            Distribution::HalfOpen => Draw::HalfOpen,
            Distribution::Normal => Draw::Normal,
            Distribution::LogNormal { .. } => Draw::LogNormal,
            Distribution::Poisson { .. } => Draw::Poisson,
            Distribution::PoissonOfElement => Draw::PoissonOfElement,
            _ => Draw::Bits,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Draw::Bits => "bits",
            Draw::Uniform => "uniform",
            Draw::HalfOpen => "half_open",
            Draw::Normal => "normal",
            Draw::LogNormal => "log_normal",
            Draw::Poisson => "poisson",
            Draw::PoissonOfElement => "poisson_of_element",
        }
    }
}

/// Everything that changes the code of a kernel that draws random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The generator; `None` for the sequence of a seed.
    generator: Option<Generator>,
    draw: Draw,
    dtype: DType,
}

/// The number of four-word blocks of a seed's sequence that a thread generates before the launch
/// grows.
const BLOCKS_PER_THREAD: u64 = 4;

/// The maximum number of thread blocks for a seed's sequence, as many as a large device runs
/// concurrently.
const SEED_BLOCKS: u64 = 2048;

/// Adds the launch and returns the key of its kernel.
pub(super) fn plan(operation: &Random, launches: &mut Launches) -> Key {
    let Random { source, distribution, length, output } = operation;
    let draw = Draw::of(*distribution);
    let generator = match source {
        RandomSource::States { generator, .. } => Some(*generator),
        RandomSource::Seed(_) => None,
    };
    let key = Key { generator, draw, dtype: output.dtype };
    let length = *length as u64;
    if length == 0 {
        return key;
    }
    let threads = u64::from(THREADS);
    match *source {
        RandomSource::Seed(seed) => {
            let work = length.div_ceil(key.elements() * BLOCKS_PER_THREAD).div_ceil(threads);
            let mut launch = launches.launch(0, blocks(work.min(SEED_BLOCKS)));
            launch.address(output.address).address(length).address(seed);
        }
        RandomSource::States { generator, address } => {
            let units = length.div_ceil(key.elements()).min(generator.count() as u64);
            let mut launch = launches.launch(0, blocks(units.div_ceil(threads)));
            launch.address(address).address(output.address).address(length);
            let (first, second) = match *distribution {
                Distribution::LogNormal { mean, deviation } => (mean, deviation),
                Distribution::Poisson { mean } => (mean, 0.0),
                _ => (0.0, 0.0),
            };
            launch.scalar(&Scalar::new(first)).scalar(&Scalar::new(second));
        }
    }
    key
}

impl Key {
    /// Returns the number of elements per draw.
    fn elements(&self) -> u64 {
        match (self.generator, self.draw) {
            (None, _) => 16 / self.dtype.size() as u64,
            (Some(generator), Draw::Normal | Draw::LogNormal) if !generator.is_quasi() => 2,
            _ => 1,
        }
    }
}

/// Returns the struct of random.cuh for the state of a generator.
fn state(generator: Generator) -> &'static str {
    match generator {
        Generator::Xorwow => "Xorwow",
        Generator::Mrg32k3a => "Mrg32k3a",
        Generator::Sobol64 | Generator::ScrambledSobol64 => "Sobol<u64>",
        _ => "Sobol<u32>",
    }
}

/// Returns the part of a kernel's name that names its generator.
fn name(generator: Option<Generator>) -> &'static str {
    match generator {
        None => "philox",
        Some(Generator::Xorwow) => "xorwow",
        Some(Generator::Mrg32k3a) => "mrg32k3a",
        Some(Generator::ScrambledSobol32) => "scrambled_sobol32",
        Some(Generator::Sobol64) => "sobol64",
        Some(Generator::ScrambledSobol64) => "scrambled_sobol64",
        Some(_) => "sobol32",
    }
}

impl KernelKey for Key {
    fn name(&self) -> String {
        let dtype = ctype::value(self.dtype);
        format!("random_{}_{}_{dtype}", name(self.generator), self.draw.name())
    }

    fn prelude(&self) -> Prelude {
        Prelude::REAL.with(Prelude::RANDOM)
    }

    fn kernels(&self, name: &str) -> String {
        let value = ctype::value(self.dtype);
        let draw = self.draw.name();
        let head = format!("extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}");
        let Some(generator) = self.generator else {
            return format!(
                "{head}({value}* out, u64 length, u64 seed) {{
    fill_from_seed<block_{draw}<{value}> >(out, length, seed);
}}
"
            );
        };
        let family = if generator.is_quasi() { "quasi" } else { "pseudo" };
        format!(
            "{head}(u32* states, {value}* out, u64 length, f64 first, f64 second) {{
    fill_random<{state}, {count}, {words}, {family}_{draw}<{state}, {value}> >(states, out, length, first, second);
}}
",
            state = state(generator),
            count = generator.count(),
            words = generator.state_words(),
        )
    }
}
