//! Poisson's distribution, by inversion: one point in (0, 1) makes one number.

use crate::math::{exp64, inverse_normal};

/// The mean from which the quantile is an expansion; below it is searched for.
const EXPANDED_FROM: f64 = 64.0;

/// Returns the quantile of Poisson's distribution for a probability inside (0, 1). A mean that is
/// not positive makes 0, an infinite one infinity.
///
/// From a mean of 64 it is the whole part of the expansion by M. Giles, "Algorithm 955: approximation
/// of the inverse Poisson cumulative distribution function" (2016), equation Q_N2, which is wrong by
/// one for a share of the points below 1e-4.
#[inline(always)]
pub fn quantile(point: f64, mean: f64) -> f64 {
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
