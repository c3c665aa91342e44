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

/// Writes pairs.
#[inline(always)]
fn write_pairs<T: Copy>(places: &mut [T], drawn: usize, pair: impl Fn(usize) -> [T; 2]) {
    let (whole, rest) = places.as_chunks_mut::<2>();
    for (lane, place) in whole.iter_mut().enumerate() {
        *place = pair(lane);
    }
    if let [last] = rest {
        *last = pair(drawn - 1)[0];
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
            return lanes.open(drawn, |lane, point| places[lane] = normal_of_point(point) as f32);
        }
        let (x, y) = (lanes.words(drawn), lanes.words(drawn));
        write_pairs(places, drawn, |lane| normal_pair32(x[lane % LANES], y[lane % LANES]));
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
            return lanes.open(drawn, |lane, point| places[lane] = normal_of_point(point));
        }
        let [a, b, c, d] = [0; 4].map(|_| lanes.words(drawn));
        write_pairs(places, drawn, |lane| {
            let lane = lane % LANES;
            normal_pair64(join(a[lane], b[lane]), join(c[lane], d[lane]))
        });
    }
}
