//! The types of random numbers.

use super::group::{Group, LANES};
use random::distribution::{join, normal_of_point, normal_pair32, normal_pair64};

/// A type of random integers.
pub(super) trait Whole: Copy {
    /// Converts the upper bits of a 64-bit word.
    fn of_bits(raw: u64) -> Self;
    /// Converts a nonnegative integer, which saturates.
    fn of(number: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! whole {
    ($($type:ident |$raw:ident| $bits:expr;)*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn of_bits($raw: u64) -> Self {
                $bits
            }
            #[inline(always)]
            fn of(number: f64) -> Self {
                number as Self
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
        }
    )*};
}
whole! {
    u32 |raw| (raw >> 32) as u32;
    u64 |raw| raw;
    f32 |raw| raw as f32;
    f64 |raw| raw as f64;
}

/// A type of uniform and normal random numbers.
pub(super) trait Real: Whole {
    fn uniform<G: Group>(lanes: &mut G, drawn: usize, places: &mut [Self]);
    /// Draws two numbers for each lane of a pseudo-random generator. The very last number may not fit the
    /// output.
    fn normal<G: Group>(lanes: &mut G, drawn: usize, places: &mut [Self]);
}

/// Writes pairs of numbers. The very last number may not fit the output. All lanes are computed, because a
/// fixed number is vectorised.
macro_rules! write_pairs {
    ($places:ident, |$lane:ident| $pair:expr) => {{
        let mut pairs = [[0.0; 2]; LANES];
        for ($lane, place) in pairs.iter_mut().enumerate() {
            *place = $pair;
        }
        $places.copy_from_slice(&pairs.as_flattened()[..$places.len()]);
    }};
}

/// Writes the normal numbers at points.
#[inline(always)]
fn write_quantiles<T: Whole>(points: &[f64; LANES], places: &mut [T]) {
    for (place, &point) in places.iter_mut().zip(points) {
        *place = T::of(normal_of_point(point));
    }
}

impl Real for f32 {
    #[inline(always)]
    fn uniform<G: Group>(lanes: &mut G, drawn: usize, places: &mut [f32]) {
        lanes.uniform32(drawn, |lane, value| places[lane] = value);
    }

    #[inline(always)]
    fn normal<G: Group>(lanes: &mut G, drawn: usize, places: &mut [f32]) {
        if !G::IS_PSEUDO {
            return write_quantiles(&lanes.points(drawn), places);
        }
        let (x, y) = (lanes.words(drawn), lanes.words(drawn));
        write_pairs!(places, |lane| normal_pair32(x[lane], y[lane]));
    }
}

impl Real for f64 {
    #[inline(always)]
    fn uniform<G: Group>(lanes: &mut G, drawn: usize, places: &mut [f64]) {
        lanes.uniform64(drawn, |lane, value| places[lane] = value);
    }

    #[inline(always)]
    fn normal<G: Group>(lanes: &mut G, drawn: usize, places: &mut [f64]) {
        if !G::IS_PSEUDO {
            return write_quantiles(&lanes.points(drawn), places);
        }
        let [a, b, c, d] = [0; 4].map(|_| lanes.words(drawn));
        write_pairs!(places, |lane| {
            normal_pair64(join(a[lane], b[lane]), join(c[lane], d[lane]))
        });
    }
}
