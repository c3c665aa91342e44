//! The launch that draws random numbers: a thread for each state, or for each block of a sequence.

use super::key::{Draw, Key};
use crate::source::launches::{Launches, THREADS, blocks};
use hal::operation::{Random, RandomSource};
use hal::random::Distribution;
use hal::scalar::Scalar;

/// Blocks of four words that a thread makes of a seed's sequence, before the launch grows.
const BLOCKS_PER_THREAD: u64 = 4;

/// The most thread blocks that make a seed's sequence: as many as a large device runs at once.
const SEED_BLOCKS: u64 = 2048;

/// Adds the launch and returns the key of its kernel.
pub(in crate::source) fn plan(operation: &Random, launches: &mut Launches) -> Key {
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
