//! The source of the kernels that draw random numbers.

use super::key::{Draw, Key};
use crate::source::ctype;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;
use hal::random::Generator;

impl Key {
    /// Returns the number of elements that are drawn at once.
    pub(super) fn elements(&self) -> u64 {
        match (self.generator, self.draw) {
            (None, _) => 16 / self.dtype.size() as u64,
            (Some(generator), Draw::Normal | Draw::LogNormal) if !generator.is_quasi() => 2,
            _ => 1,
        }
    }
}

/// Returns the struct of random.cuh that is the state of a generator.
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
