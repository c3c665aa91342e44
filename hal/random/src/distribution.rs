//! Conversion of random words to uniform, normal and Poisson-distributed numbers.

use crate::math::{exp64, inverse_normal, ln64, sine_cosine32, sine_cosine64, square_radius32};

const TWO_32: f64 = 4_294_967_296.0;
const TWO_53: f64 = 9_007_199_254_740_992.0;

/// The distribution of random numbers.
///
/// Dice from a seed, with the same values on every backend:
///
/// ```
/// use gpuarray::{DeviceArray, random::Distribution};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::<f64>::zeros(&device, &[1000])?;
/// x.untyped().fill_from_seed(7, Distribution::HalfOpen)?;
/// let dice = ((x * 6.0)?.floor()? + 1.0)?;
/// assert!(dice.min()? >= 1.0 && dice.max()? <= 6.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Uniformly distributed words, unchanged.
    Bits,
    /// Uniform in (0, 1]: zero excluded, one included, as in cuRAND.
    Uniform,
    /// Uniform in [0, 1).
    HalfOpen,
    /// Normal with mean 0 and standard deviation 1.
    Normal,
    /// The exponential of a normal number.
    LogNormal {
        /// The mean of the logarithm.
        mean: f64,
        /// The standard deviation of the logarithm.
        deviation: f64,
    },
    /// Poisson-distributed whole numbers with this mean.
    Poisson {
        /// The mean.
        mean: f64,
    },
    /// Poisson-distributed whole numbers, each with the previous value of the element as its mean.
    PoissonOfElement,
}

/// Returns `(x + 1/2) / 2^32`, rounded: in (0, 1].
#[inline(always)]
pub fn unit32(x: u32) -> f32 {
    x as f32 * (1.0 / TWO_32) as f32 + (0.5 / TWO_32) as f32
}

/// Returns `(x + 1/2) / 2^32`: in (0, 1).
#[inline(always)]
pub fn unit64_of_word(x: u32) -> f64 {
    f64::from(x) * (1.0 / TWO_32) + 0.5 / TWO_32
}

/// Returns 53 bits from two words.
#[inline(always)]
pub fn join(x: u32, y: u32) -> u64 {
    u64::from(x) ^ u64::from(y) << 21
}

/// Returns `(x + 1/2) / 2^53`, rounded, for 53 bits: in (0, 1].
#[inline(always)]
pub fn unit64(x: u64) -> f64 {
    x as f64 * (1.0 / TWO_53) + 0.5 / TWO_53
}

/// Returns a number in (0, 1) from the upper 52 of 53 bits.
#[inline(always)]
pub fn open64(x: u64) -> f64 {
    ((x >> 1) as f64 + 0.5) * (2.0 / TWO_53)
}

/// Returns the upper 24 bits of a word as a number in [0, 1).
#[inline(always)]
pub fn half_open32(x: u32) -> f32 {
    (x >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Returns 53 bits as a number in [0, 1).
#[inline(always)]
pub fn half_open64(x: u64) -> f64 {
    x as f64 * (1.0 / TWO_53)
}

/// Returns two independent normal numbers from two words: G. Box and M. Muller, "A note on the
/// generation of random normal deviates" (1958).
#[inline(always)]
pub fn normal_pair32(x: u32, y: u32) -> [f32; 2] {
    let radius = square_radius32(unit32(x)).sqrt();
    sine_cosine32(y).map(|value| value * radius)
}

/// Returns two independent normal numbers from two 53-bit numbers.
#[inline(always)]
pub fn normal_pair64(x: u64, y: u64) -> [f64; 2] {
    let radius = (-2.0 * ln64(unit64(x))).sqrt();
    sine_cosine64(y).map(|value| value * radius)
}

/// Returns the quantile of the normal distribution for a point in (0, 1).
#[inline(always)]
pub fn normal_of_point(point: f64) -> f64 {
    inverse_normal(point)
}

/// Returns the exponential of a normal number after scaling to a mean and a standard deviation.
#[inline(always)]
pub fn log_normal(normal: f64, mean: f64, deviation: f64) -> f64 {
    exp64(normal.mul_add(deviation, mean))
}

// Poisson's distribution, by inversion: one point in (0, 1) gives one number.

/// The smallest mean for which the quantile is computed by an expansion; for smaller means it is
/// found by a search.
const EXPANDED_FROM: f64 = 64.0;

/// Returns the quantile of Poisson's distribution for a probability inside (0, 1). A mean that is not
/// positive gives 0, an infinite one infinity.
///
/// From a mean of 64 on, the quantile is the whole part of the expansion by M. Giles, "Algorithm 955:
/// approximation of the inverse Poisson cumulative distribution function" (2016), equation Q_N2. The
/// result is off by one for fewer than one in 10,000 points.
#[inline(always)]
pub fn poisson_quantile(point: f64, mean: f64) -> f64 {
    if mean.is_nan() || mean <= 0.0 {
        return 0.0;
    }
    if mean < EXPANDED_FROM {
        let mut probability = exp64(-mean);
        let mut cumulated = probability;
        let mut number = 0.0;
        // Beyond this number, the sum no longer grows.
        while point > cumulated && number < 400.0 {
            number += 1.0;
            probability = probability * mean / number;
            cumulated += probability;
        }
        return number;
    }
    if mean == f64::INFINITY {
        return mean;
    }
    let w = inverse_normal(point);
    let (root, square) = (mean.sqrt(), w * w);
    let constant = square.mul_add(1.0 / 6.0, 1.0 / 3.0);
    let first = square.mul_add(-1.0 / 72.0, -1.0 / 36.0) * w / root;
    let second = square.mul_add(1.0 / 270.0, 7.0 / 810.0).mul_add(square, -8.0 / 405.0) / mean;
    let number = (root.mul_add(w, mean) + constant + first + second).floor();
    if number > 0.0 { number } else { 0.0 }
}
