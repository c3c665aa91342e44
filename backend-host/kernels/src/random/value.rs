//! The types of random numbers.

use super::LANES;
use super::group::Group;
use random::distribution::{join, normal_of_point, normal_pair32, normal_pair64};

/// A type that whole numbers are drawn in.
pub(super) trait Whole: Copy {
    /// Returns the upper bits of 64.
    fn of_bits(raw: u64) -> Self;
    /// Returns a whole number that is not negative, the largest value where it is larger.
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

/// A type that uniform and normal numbers are drawn in.
pub(super) trait Real: Whole {
    fn uniform<G: Group>(lanes: &mut G, drawn: usize, places: &mut [Self]);
    /// Two numbers for each lane of a pseudo-random generator, of which the very last may have no
    /// place.
    fn normal<G: Group>(lanes: &mut G, drawn: usize, places: &mut [Self]);
}

/// Writes pairs, of which the very last may have no place for its second number. All lanes are computed,
/// for a fixed number is compiled to vectors.
macro_rules! write_pairs {
    ($places:ident, |$lane:ident| $pair:expr) => {{
        let mut pairs = [[0.0; 2]; LANES];
        for ($lane, place) in pairs.iter_mut().enumerate() {
            *place = $pair;
        }
        $places.copy_from_slice(&pairs.as_flattened()[..$places.len()]);
    }};
}

/// Writes the normal numbers of points.
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
