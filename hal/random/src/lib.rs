//! Generators of random numbers: states, seeds, jumps, and the conversion of words to numbers.
//!
//! A generator on a device is an array of [`Generator::count`] states. Draw `e` of a fill belongs
//! to state `e % count`, so the numbers depend neither on the device nor on its threads. This crate
//! creates and advances states on the host. It also contains the arithmetic that the host's kernels
//! share with the generated kernels: each operation is exact or rounded once, so that every backend
//! returns the same bits.
//!
//! States consist of 32-bit words in the layout of cuRAND's structures, so that programs may pass
//! states to their own kernels.

pub mod distribution;
pub mod math;
pub mod mrg32k3a;
pub mod philox;
pub mod sobol;
mod tables;
pub mod xorwow;

pub use tables::definitions;

use std::collections::TryReserveError;

/// Returns a vector with capacity for `count` elements.
fn with_room<T>(count: usize) -> Result<Vec<T>, TryReserveError> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count)?;
    Ok(vector)
}

/// The kind of a generator.
///
/// Normal numbers of cuRAND's XORWOW, repeated from the same seeds:
///
/// ```
/// use gpuarray::{DeviceArray, random::{Distribution, Generator}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let generator = Generator::Xorwow;
/// let seeds: Vec<u32> = (0..generator.count() as u32).collect();
/// let draw = || -> gpuarray::Result<Vec<f32>> {
///     let words = generator.seeded(&seeds, 0).expect("enough memory").expect("it has seeds");
///     let mut states = DeviceArray::from_slice(&device, &words)?;
///     let mut x = DeviceArray::<f32>::zeros(&device, &[4])?;
///     x.fill_random(generator, &mut states, Distribution::Normal)?;
///     x.to_vec()
/// };
/// assert_eq!(draw()?, draw()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generator {
    /// G. Marsaglia, "Xorshift RNGs" (2003): 160 bits and a Weyl sequence.
    Xorwow,
    /// P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive random
    /// number generators" (1999).
    Mrg32k3a,
    /// The 32-bit Sobol sequence, one dimension per state.
    Sobol32,
    /// [`Generator::Sobol32`] with scrambled direction vectors and a digital shift.
    ScrambledSobol32,
    /// The 64-bit Sobol sequence, one dimension per state.
    Sobol64,
    /// [`Generator::Sobol64`] with scrambled direction vectors and a digital shift.
    ScrambledSobol64,
}

impl Generator {
    /// Every kind.
    pub const ALL: [Generator; 6] = [
        Generator::Xorwow,
        Generator::Mrg32k3a,
        Generator::Sobol32,
        Generator::ScrambledSobol32,
        Generator::Sobol64,
        Generator::ScrambledSobol64,
    ];

    /// Returns the number of states: enough to keep a large device busy for a pseudo-random
    /// generator, and less than the number of dimensions for a quasi-random one.
    pub const fn count(self) -> usize {
        match self {
            Generator::Xorwow | Generator::Mrg32k3a => 1 << 16,
            _ => 1 << 14,
        }
    }

    /// Returns the number of words per state.
    pub const fn state_words(self) -> usize {
        match self {
            Generator::Xorwow => xorwow::WORDS,
            Generator::Mrg32k3a => mrg32k3a::WORDS,
            Generator::Sobol32 | Generator::ScrambledSobol32 => 3 + 32,
            Generator::Sobol64 | Generator::ScrambledSobol64 => 2 * (3 + 64),
        }
    }

    /// Returns the number of bits per draw.
    pub const fn bits(self) -> usize {
        match self {
            Generator::Sobol64 | Generator::ScrambledSobol64 => 64,
            _ => 32,
        }
    }

    /// Returns true for a quasi-random generator: its points fill space evenly.
    pub const fn is_quasi(self) -> bool {
        !matches!(self, Generator::Xorwow | Generator::Mrg32k3a)
    }
}

/// The unit by which a state jumps ahead.
///
/// Each state skips the draws that another run has used:
///
/// ```
/// use gpuarray::random::{Generator, Jump};
///
/// # fn main() -> gpuarray::Result<()> {
/// let generator = Generator::Xorwow;
/// let mut states = generator.seeded(&[42], 0).expect("enough memory").expect("it has seeds");
/// generator.skip(&mut states, Jump::Draws, |_| 1000);
/// assert_eq!(Some(states), generator.seeded(&[42], 1000).expect("enough memory"));
/// assert!(!generator.has(Jump::Subsequences));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jump {
    /// By draws.
    Draws,
    /// By subsequences of 2^76 draws; [`Generator::Mrg32k3a`] only.
    Subsequences,
    /// By sequences: of 2^67 draws for [`Generator::Xorwow`], 2^127 for [`Generator::Mrg32k3a`].
    Sequences,
}

impl Generator {
    /// Returns true if the states of this generator support the jump.
    pub const fn has(self, jump: Jump) -> bool {
        match jump {
            Jump::Draws => true,
            Jump::Subsequences => matches!(self, Generator::Mrg32k3a),
            Jump::Sequences => !self.is_quasi(),
        }
    }

    /// Returns the states of a pseudo-random generator: state `i` is sequence `i` (for MRG32k3a, a
    /// subsequence) of the seed `seeds[i]`, `offset` draws ahead. Returns `None` for a quasi-random
    /// generator.
    ///
    /// # Errors
    /// If memory for the states cannot be allocated.
    pub fn seeded(self, seeds: &[u32], offset: u64) -> Result<Option<Vec<u32>>, TryReserveError> {
        Ok(match self {
            Generator::Xorwow => Some(xorwow::seeded(seeds, offset)?),
            Generator::Mrg32k3a => Some(mrg32k3a::seeded(seeds, offset)?),
            _ => None,
        })
    }

    /// Advances each state by the number of draws or sequences that `amount` returns for its index.
    /// Does nothing if [`Generator::has`] returns false.
    pub fn skip(self, states: &mut [u32], jump: Jump, amount: impl Fn(usize) -> u64) {
        if !self.has(jump) {
            return;
        }
        match self {
            Generator::Xorwow => xorwow::skip(states, jump, amount),
            Generator::Mrg32k3a => mrg32k3a::skip(states, jump, amount),
            _ => sobol::skip(states, self.bits(), amount),
        }
    }
}
