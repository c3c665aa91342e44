//! Random numbers.
//!
//! Neighbouring states draw together: the numbers of one state are far apart in the output, but the numbers
//! of a group of states are contiguous.

mod group;
mod value;

use super::blocks::unsupported;
#[cfg(target_arch = "x86_64")]
use super::multiversion::Fused;
use super::multiversion::fused;
use super::parallel::Workers;
use group::{Group, LANES, Mrg, Points, Xorwow};
use hal::operation::{Random, RandomSource};
use hal::random::{Distribution, Generator};
use hal::{DType, Result};
use random::{distribution, philox};
use value::{Real, Whole};

/// The output of a fill, and the location of its states.
#[derive(Clone, Copy)]
struct Fill<'a> {
    operation: &'a Random,
    generator: Generator,
    states: u64,
    /// The number of elements of a draw.
    elements: usize,
}

/// Draws numbers for the states of a range of groups.
type Draw = unsafe fn(&Fill<'_>, std::ops::Range<usize>);

/// A kind of random numbers. All its arithmetic is inlined, including the innermost closures. Functions that
/// are not inlined are not compiled for the processor's variant, so each fused multiply-add in them would be
/// a call.
trait Kind<T> {
    /// Draws numbers for the first `drawn` states, and stores them in `places`.
    fn draw<G: Group>(fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]);
}

struct Bits;
struct Uniform;
struct Normal;
struct LogNormal;
struct Poisson;

impl<T: Whole> Kind<T> for Bits {
    #[inline(always)]
    fn draw<G: Group>(_fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]) {
        lanes.raw(drawn, |lane, raw| places[lane] = T::of_bits(raw));
    }
}

impl<T: Real> Kind<T> for Uniform {
    #[inline(always)]
    fn draw<G: Group>(_fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]) {
        T::uniform(lanes, drawn, places);
    }
}

impl<T: Real> Kind<T> for Normal {
    #[inline(always)]
    fn draw<G: Group>(_fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]) {
        T::normal(lanes, drawn, places);
    }
}

impl<T: Real> Kind<T> for LogNormal {
    #[inline(always)]
    fn draw<G: Group>(fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]) {
        let Distribution::LogNormal { mean, deviation } = fill.operation.distribution else {
            return;
        };
        T::normal(lanes, drawn, places);
        for place in places {
            *place = T::of(distribution::log_normal(place.wide(), mean, deviation));
        }
    }
}

impl<T: Whole> Kind<T> for Poisson {
    #[inline(always)]
    fn draw<G: Group>(fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]) {
        let fixed = match fill.operation.distribution {
            Distribution::Poisson { mean } => Some(mean),
            _ => None,
        };
        let points = lanes.points(drawn);
        for (place, point) in places.iter_mut().zip(points) {
            *place =
                T::of(random::distribution::poisson_quantile(point, fixed.unwrap_or(place.wide())));
        }
    }
}

/// # Safety
/// The same as for the operation; no other thread uses the states of these groups.
#[inline(always)]
unsafe fn draw_groups<K: Kind<T>, G: Group, T: Copy>(
    fill: &Fill<'_>,
    groups: std::ops::Range<usize>,
) {
    let (count, words) = (fill.generator.count(), fill.generator.state_words());
    let length = fill.operation.length;
    let units = length.div_ceil(fill.elements);
    let states = fill.states as usize as *mut u32;
    let output = fill.operation.output.address as usize as *mut T;
    for group in groups {
        let first = group * LANES;
        if first >= units {
            return;
        }
        let used = (units - first).min(LANES);
        // SAFETY: states of this group in the generator's memory.
        let states =
            unsafe { std::slice::from_raw_parts_mut(states.add(first * words), used * words) };
        let mut lanes = G::load(states);
        let mut unit = first;
        while unit < units {
            let drawn = (units - unit).min(LANES);
            let element = unit * fill.elements;
            let places = (drawn * fill.elements).min(length - element);
            // SAFETY: elements of the output, which no other group writes.
            let places = unsafe { std::slice::from_raw_parts_mut(output.add(element), places) };
            K::draw(fill, &mut lanes, drawn, places);
            unit += count;
        }
        lanes.store();
    }
}

/// # Safety
/// The same as for [`draw_groups`]; the processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn draw_avx2<K: Kind<T>, G: Group, T: Copy>(
    fill: &Fill<'_>,
    groups: std::ops::Range<usize>,
) {
    // SAFETY: passed on to the caller.
    unsafe { draw_groups::<K, G, T>(fill, groups) }
}

/// Returns the variant for this processor.
fn variant<K: Kind<T>, G: Group, T: Copy>() -> Draw {
    match fused() {
        #[cfg(target_arch = "x86_64")]
        Some(Fused::Avx2 | Fused::Avx512) => draw_avx2::<K, G, T>,
        _ => draw_groups::<K, G, T>,
    }
}

/// Selects the function for a dtype and a distribution. The operation has been checked.
fn select<G: Group>(operation: &Random) -> Option<Draw> {
    Some(match (operation.distribution, operation.output.dtype) {
        (Distribution::Bits, DType::UInt32 | DType::Int32) => variant::<Bits, G, u32>(),
        (Distribution::Bits, DType::UInt64 | DType::Int64) => variant::<Bits, G, u64>(),
        (Distribution::Uniform, DType::Float32) => variant::<Uniform, G, f32>(),
        (Distribution::Uniform, DType::Float64) => variant::<Uniform, G, f64>(),
        (Distribution::Normal, DType::Float32) => variant::<Normal, G, f32>(),
        (Distribution::Normal, DType::Float64) => variant::<Normal, G, f64>(),
        (Distribution::LogNormal { .. }, DType::Float32) => variant::<LogNormal, G, f32>(),
        (Distribution::LogNormal { .. }, DType::Float64) => variant::<LogNormal, G, f64>(),
        (Distribution::Poisson { .. } | Distribution::PoissonOfElement, dtype) => match dtype {
            DType::Float32 => variant::<Poisson, G, f32>(),
            DType::Float64 => variant::<Poisson, G, f64>(),
            _ => variant::<Poisson, G, u32>(),
        },
        _ => return None,
    })
}

/// # Safety
/// The same as for the operation.
unsafe fn from_states(fill: &Fill<'_>, workers: &Workers<'_>) -> Result<()> {
    let draw = match fill.generator {
        Generator::Xorwow => select::<Xorwow>(fill.operation),
        Generator::Mrg32k3a => select::<Mrg>(fill.operation),
        Generator::Sobol64 | Generator::ScrambledSobol64 => select::<Points<64>>(fill.operation),
        _ => select::<Points<32>>(fill.operation),
    };
    let Some(draw) = draw else {
        return Err(unsupported(format!("{:?}", fill.operation)));
    };
    let groups = fill.operation.length.div_ceil(fill.elements).div_ceil(LANES);
    let groups = groups.min(fill.generator.count() / LANES);
    workers.split(groups, 1, fill.operation.length.saturating_mul(8), &|range| {
        // SAFETY: each group belongs to one part.
        unsafe { draw(fill, range) };
    });
    Ok(())
}

/// A type of values that are made from the four words of a block.
trait OfBlock<const N: usize>: Copy + Sync {
    const ZERO: Self;
    fn of_block(words: [u32; 4]) -> [Self; N];
}

impl OfBlock<4> for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn of_block([a, b, c, d]: [u32; 4]) -> [f32; 4] {
        use distribution::half_open32 as unit;
        [unit(a), unit(b), unit(c), unit(d)]
    }
}

impl OfBlock<2> for f64 {
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn of_block([a, b, c, d]: [u32; 4]) -> [f64; 2] {
        use distribution::{half_open64 as unit, join};
        [unit(join(a, b)), unit(join(c, d))]
    }
}

impl OfBlock<4> for u32 {
    const ZERO: u32 = 0;
    #[inline(always)]
    fn of_block(words: [u32; 4]) -> [u32; 4] {
        words
    }
}

/// The number of blocks computed together.
const BLOCKS: usize = 32;

/// Writes consecutive blocks of a seed's sequence, starting at `first`.
#[inline(always)]
fn write_blocks<T: OfBlock<N>, const N: usize>(first: u64, seed: u64, places: &mut [T]) {
    let mut block = first;
    for places in places.chunks_mut(BLOCKS * N) {
        let mut values = [[T::ZERO; N]; BLOCKS];
        for (value, block) in values.iter_mut().zip(block..) {
            *value = T::of_block(philox::nth(block, seed));
        }
        places.copy_from_slice(&values.as_flattened()[..places.len()]);
        block += BLOCKS as u64;
    }
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn write_blocks_avx2<T: OfBlock<N>, const N: usize>(
    first: u64,
    seed: u64,
    places: &mut [T],
) {
    write_blocks(first, seed, places);
}

/// Writes the sequence of a seed.
fn from_seed<T: OfBlock<N>, const N: usize>(operation: &Random, seed: u64, workers: &Workers<'_>) {
    let length = operation.length;
    workers.split(length.div_ceil(N), 1024, length.saturating_mul(8), &|range| {
        let (first, end) = (range.start * N, (range.end * N).min(length));
        let output = operation.output.address as usize as *mut T;
        // SAFETY: elements of the output, which no other part writes.
        let places = unsafe { std::slice::from_raw_parts_mut(output.add(first), end - first) };
        match fused() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has the features that the variant needs.
            Some(Fused::Avx2 | Fused::Avx512) => unsafe {
                write_blocks_avx2(range.start as u64, seed, places);
            },
            _ => write_blocks(range.start as u64, seed, places),
        }
    });
}

/// Executes a fill with random numbers.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Random, workers: &Workers<'_>) -> Result<()> {
    match operation.source {
        RandomSource::States { generator, address } => {
            let is_pair = matches!(
                operation.distribution,
                Distribution::Normal | Distribution::LogNormal { .. }
            );
            let elements = if is_pair && !generator.is_quasi() { 2 } else { 1 };
            let fill = Fill { operation, generator, states: address, elements };
            // SAFETY: passed on to the caller.
            unsafe { from_states(&fill, workers) }
        }
        RandomSource::Seed(seed) => {
            match operation.output.dtype {
                DType::Float32 => from_seed::<f32, 4>(operation, seed, workers),
                DType::Float64 => from_seed::<f64, 2>(operation, seed, workers),
                _ => from_seed::<u32, 4>(operation, seed, workers),
            }
            Ok(())
        }
    }
}
