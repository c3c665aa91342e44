//! Random numbers.
//!
//! Neighbouring states draw together: what one state writes lies far apart in the output, what a
//! group of them writes is one run.

mod group;
mod value;

#[cfg(target_arch = "x86_64")]
use super::multiversion::Fused;
use super::multiversion::fused;
use super::parallel::Workers;
use super::unsupported;
use group::{Group, Mrg, Points, Xorwow};
use hal::operation::{Random, RandomSource};
use hal::random::{Distribution, Generator};
use hal::{DType, Result};
use random::{distribution, philox};
use value::{Real, Whole};

/// The number of states that draw together.
const LANES: usize = 256;

/// The output of a fill, and where its states lie.
#[derive(Clone, Copy)]
struct Fill<'a> {
    operation: &'a Random,
    generator: Generator,
    states: u64,
    /// Elements of a draw.
    elements: usize,
}

/// Draws for the states of a range of groups.
type Draw = unsafe fn(&Fill<'_>, std::ops::Range<usize>);

/// # Safety
/// As for the operation; no other thread has these groups' states.
#[inline(always)]
unsafe fn draw_groups<G: Group, T: Copy>(
    fill: &Fill<'_>,
    groups: std::ops::Range<usize>,
    draw: impl Fn(&mut G, usize, &mut [T]),
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
        // SAFETY: states of this group, which lie in the generator's memory.
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
            draw(&mut lanes, drawn, places);
            unit += count;
        }
        lanes.store();
    }
}

/// Defines the functions that draw numbers of one kind, for the processor's variants.
macro_rules! variants {
    ($name:ident<$group:ident: $bound:path, $value:ident: $value_bound:path>, $draw:expr) => {
        fn $name<$group: $bound, $value: $value_bound>() -> Draw {
            #[inline(always)]
            unsafe fn body<$group: $bound, $value: $value_bound>(
                fill: &Fill<'_>,
                groups: std::ops::Range<usize>,
            ) {
                let draw = $draw;
                // SAFETY: passed on to the caller.
                unsafe {
                    draw_groups::<$group, $value>(fill, groups, |lanes, drawn, places| {
                        draw(fill, lanes, drawn, places)
                    });
                }
            }

            /// # Safety
            /// As for the body.
            unsafe fn baseline<$group: $bound, $value: $value_bound>(
                fill: &Fill<'_>,
                groups: std::ops::Range<usize>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { body::<$group, $value>(fill, groups) }
            }

            /// # Safety
            /// As for the body, and the processor must have AVX2 and FMA.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<$group: $bound, $value: $value_bound>(
                fill: &Fill<'_>,
                groups: std::ops::Range<usize>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { body::<$group, $value>(fill, groups) }
            }

            match fused() {
                #[cfg(target_arch = "x86_64")]
                Some(Fused::Avx2 | Fused::Avx512) => avx2::<$group, $value>,
                _ => baseline::<$group, $value>,
            }
        }
    };
}

variants!(bits<G: Group, T: Whole>, |_: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]| {
    lanes.raw(drawn, |lane, raw| places[lane] = T::of_bits(raw));
});
variants!(uniform<G: Group, T: Real>, |_: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]| {
    T::uniform(lanes, drawn, places);
});
variants!(normal<G: Group, T: Real>, |_: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]| {
    T::normal(lanes, drawn, places);
});
variants!(log_normal<G: Group, T: Real>, |fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]| {
    let Distribution::LogNormal { mean, deviation } = fill.operation.distribution else { return };
    T::normal(lanes, drawn, places);
    for place in places {
        *place = T::of(distribution::log_normal(place.wide(), mean, deviation));
    }
});
variants!(poisson<G: Group, T: Whole>, |fill: &Fill<'_>, lanes: &mut G, drawn: usize, places: &mut [T]| {
    let fixed = match fill.operation.distribution {
        Distribution::Poisson { mean } => Some(mean),
        _ => None,
    };
    lanes.open(drawn, |lane, point| {
        let mean = fixed.unwrap_or(places[lane].wide());
        places[lane] = T::of(random::poisson::quantile(point, mean));
    });
});

/// Selects the function for a dtype and a distribution; the operation has been checked.
fn select<G: Group>(operation: &Random) -> Option<Draw> {
    Some(match (operation.distribution, operation.output.dtype) {
        (Distribution::Bits, DType::UInt32 | DType::Int32) => bits::<G, u32>(),
        (Distribution::Bits, DType::UInt64 | DType::Int64) => bits::<G, u64>(),
        (Distribution::Uniform, DType::Float32) => uniform::<G, f32>(),
        (Distribution::Uniform, DType::Float64) => uniform::<G, f64>(),
        (Distribution::Normal, DType::Float32) => normal::<G, f32>(),
        (Distribution::Normal, DType::Float64) => normal::<G, f64>(),
        (Distribution::LogNormal { .. }, DType::Float32) => log_normal::<G, f32>(),
        (Distribution::LogNormal { .. }, DType::Float64) => log_normal::<G, f64>(),
        (Distribution::Poisson { .. } | Distribution::PoissonOfElement, dtype) => match dtype {
            DType::Float32 => poisson::<G, f32>(),
            DType::Float64 => poisson::<G, f64>(),
            _ => poisson::<G, u32>(),
        },
        _ => return None,
    })
}

/// # Safety
/// As for the operation.
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

/// Writes the blocks of a seed's sequence.
fn from_seed<T: Copy + Sync, const N: usize>(
    operation: &Random,
    seed: u64,
    workers: &Workers<'_>,
    convert: impl Fn([u32; 4]) -> [T; N] + Sync,
) {
    let length = operation.length;
    workers.split(length.div_ceil(N), 1024, length.saturating_mul(8), &|range| {
        for block in range {
            let values = convert(philox::nth(block as u64, seed));
            let element = block * N;
            let places = (length - element).min(N);
            let output = operation.output.address as usize as *mut T;
            // SAFETY: elements of the output, which no other part writes.
            let places = unsafe { std::slice::from_raw_parts_mut(output.add(element), places) };
            places.copy_from_slice(&values[..places.len()]);
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
                DType::Float32 => from_seed(operation, seed, workers, |words| {
                    words.map(distribution::half_open32)
                }),
                DType::Float64 => from_seed(operation, seed, workers, |[a, b, c, d]| {
                    [(a, b), (c, d)]
                        .map(|(x, y)| distribution::half_open64(distribution::join(x, y)))
                }),
                _ => from_seed(operation, seed, workers, |words| words),
            }
            Ok(())
        }
        other => Err(unsupported(format!("{other:?}"))),
    }
}
