//! Functions of complex numbers. Values at zeros, infinities and NaN follow C99's Annex G.
//!
//! Sources: W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987), for the hyperbolic tangent; T.
//! E. Hull, T. F. Fairgrieve and P. T. P. Tang, "Implementing the Complex Arcsine and Arccosine Functions
//! Using Exception Handling" (1997). Beyond `LARGE` and below `SMALL`, where squares overflow or underflow in
//! double precision, the leading terms are used.

use hal::Complex;
use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, LOG10_E, PI};

type C64 = Complex<f64>;

/// Above this, 1 is negligible compared to the square.
const LARGE: f64 = 1e150;
/// Below this, the square is negligible compared to 1.
const SMALL: f64 = 1e-150;

/// `i * z`.
fn turn(z: C64) -> C64 {
    Complex::new(-z.im, z.re)
}

/// `-i * z`.
fn turn_back(z: C64) -> C64 {
    Complex::new(z.im, -z.re)
}

/// The largest integer whose exponential is finite.
const STEP: f64 = 709.0;

/// Returns `e^x * factor`, even if `e^x` overflows.
fn exp_times(mut x: f64, mut factor: f64) -> f64 {
    for _ in 0..2 {
        if x > STEP {
            x -= STEP;
            factor *= STEP.exp();
        }
    }
    factor * x.exp()
}

/// Returns `e^x / 2 * factor` for `x` above [`STEP`]. Halving the smallest factors first would lose them.
fn half_exp_times(x: f64, factor: f64) -> f64 {
    exp_times(x - STEP, factor * (0.5 * STEP.exp()))
}

/// Returns the square root with a nonnegative real part.
pub(crate) fn sqrt(z: C64) -> C64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    if z.re == 0.0 && z.im == 0.0 {
        return Complex::new(0.0, z.im);
    }
    if y.is_infinite() {
        return Complex::new(f64::INFINITY, z.im);
    }
    if x.is_infinite() {
        let other = if z.im.is_nan() { z.im } else { 0.0 };
        return if z.re > 0.0 {
            Complex::new(x, other.copysign(z.im))
        } else {
            Complex::new(other, x.copysign(z.im))
        };
    }
    // Powers of four, whose roots are exact, keep sums finite and normal.
    let (scale, back) = if x.max(y) > f64::MAX / 4.0 {
        (0.0625, 4.0)
    } else if x.max(y) < f64::MIN_POSITIVE * 1e32 {
        (2f64.powi(108), 2f64.powi(-54))
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * scale, y * scale);
    let root = ((x + x.hypot(y)) * 0.5).sqrt();
    let other = y / (2.0 * root);
    if z.re >= 0.0 {
        Complex::new(root * back, (other * back).copysign(z.im))
    } else {
        Complex::new(other * back, (root * back).copysign(z.im))
    }
}

pub(crate) fn exp(z: C64) -> C64 {
    if z.im == 0.0 {
        return Complex::new(z.re.exp(), z.im);
    }
    if !z.im.is_finite() && z.re.is_infinite() {
        return if z.re > 0.0 {
            Complex::new(z.re, f64::NAN)
        } else {
            Complex::new(0.0, 0.0f64.copysign(z.im))
        };
    }
    Complex::new(exp_times(z.re, z.im.cos()), exp_times(z.re, z.im.sin()))
}

pub(crate) fn exp2(z: C64) -> C64 {
    if !(z.re.is_finite() && z.im.is_finite()) {
        return exp(Complex::new(z.re * LN_2, z.im * LN_2));
    }
    // Half of the exponent is applied twice, because the whole may overflow although the product does not.
    let (half, angle) = ((0.5 * z.re).exp2(), z.im * LN_2);
    let sine = if z.im == 0.0 { z.im } else { half * angle.sin() * half };
    Complex::new(half * angle.cos() * half, sine)
}

/// Returns `e^z - 1`, by `e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y / 2)`.
pub(crate) fn exp_m1(z: C64) -> C64 {
    if z.im == 0.0 {
        return Complex::new(z.re.exp_m1(), z.im);
    }
    let power = exp(z);
    if z.re.abs() > STEP || !z.im.is_finite() {
        return Complex::new(power.re - 1.0, power.im);
    }
    let sine = (0.5 * z.im).sin();
    Complex::new(z.re.exp_m1() * z.im.cos() - 2.0 * sine * sine, power.im)
}

/// Returns a sum and its rounding error (Knuth, The Art of Computer Programming, 4.2.2).
fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

/// Returns `ln(1 + z)`. Near zero, the squared modulus of `1 + z` minus one, `2 x + x^2 + y^2`, is summed
/// together with the rounding errors, because the terms may cancel.
pub(crate) fn ln_1p(z: C64) -> C64 {
    let angle = z.im.atan2(1.0 + z.re);
    if !(z.re.abs() < 0.5 && z.im.abs() < 0.5) {
        return Complex::new(log_modulus((1.0 + z.re).abs(), z.im.abs()), angle);
    }
    let (first, second) = (z.re * z.re, z.im * z.im);
    let missing = z.re.mul_add(z.re, -first) + z.im.mul_add(z.im, -second);
    let (sum, lost) = two_sum(2.0 * z.re, second);
    let (sum, more) = two_sum(sum, first);
    Complex::new(0.5 * (sum + (lost + more + missing)).ln_1p(), angle)
}

/// Rounds both parts to the nearest integer, ties to even.
pub(crate) fn rint(z: C64) -> C64 {
    Complex::new(z.re.round_ties_even(), z.im.round_ties_even())
}

/// Returns the logarithm of the modulus of a number with nonnegative parts.
fn log_modulus(x: f64, y: f64) -> f64 {
    let (long, short) = if x > y { (x, y) } else { (y, x) };
    if long.is_nan() || short.is_nan() || long.is_infinite() || long == 0.0 {
        return x.hypot(y).ln();
    }
    if long > f64::MAX / 2.0 {
        return (x * 0.25).hypot(y * 0.25).ln() + 2.0 * LN_2;
    }
    if long < f64::MIN_POSITIVE * 1e32 {
        let scale = 2f64.powi(108);
        return (x * scale).hypot(y * scale).ln() - 108.0 * LN_2;
    }
    if !(0.5..2.0).contains(&long) {
        return x.hypot(y).ln();
    }
    // Near the unit circle, the argument of the logarithm is close to one, so the rounding errors of the
    // squares matter.
    let (first, second) = (long * long, short * short);
    let missing = long.mul_add(long, -first) + short.mul_add(short, -second);
    let above = first - 1.0;
    let sum = above + second;
    let part = sum - above;
    let missing = missing + ((above - (sum - part)) + (second - part));
    0.5 * (sum + missing).ln_1p()
}

pub(crate) fn log(z: C64) -> C64 {
    Complex::new(log_modulus(z.re.abs(), z.im.abs()), z.im.atan2(z.re))
}

pub(crate) fn log2(z: C64) -> C64 {
    let value = log(z);
    Complex::new(value.re * LOG2_E, value.im * LOG2_E)
}

pub(crate) fn log10(z: C64) -> C64 {
    let value = log(z);
    Complex::new(value.re * LOG10_E, value.im * LOG10_E)
}

pub(crate) fn power(base: C64, exponent: C64) -> C64 {
    let log = log(base);
    exp(Complex::new(
        log.re * exponent.re - log.im * exponent.im,
        log.re * exponent.im + log.im * exponent.re,
    ))
}

pub(crate) fn sin(z: C64) -> C64 {
    turn_back(sinh(turn(z)))
}

pub(crate) fn cos(z: C64) -> C64 {
    cosh(turn(z))
}

pub(crate) fn tan(z: C64) -> C64 {
    turn_back(tanh(turn(z)))
}

pub(crate) fn sinh(z: C64) -> C64 {
    if z.im == 0.0 {
        return Complex::new(z.re.sinh(), z.im);
    }
    if !z.im.is_finite() && (z.re == 0.0 || z.re.is_infinite()) {
        return Complex::new(z.re, f64::NAN);
    }
    let (cos, sin) = (z.im.cos(), z.im.sin());
    let size = z.re.abs();
    if size > STEP {
        let signed = cos * 1.0f64.copysign(z.re);
        return Complex::new(half_exp_times(size, signed), half_exp_times(size, sin));
    }
    Complex::new(z.re.sinh() * cos, z.re.cosh() * sin)
}

pub(crate) fn cosh(z: C64) -> C64 {
    let zero = |sign: f64| 0.0f64.copysign(z.re) * 1.0f64.copysign(sign);
    if z.im == 0.0 {
        return Complex::new(z.re.cosh(), zero(z.im));
    }
    if !z.im.is_finite() && z.re == 0.0 {
        return Complex::new(f64::NAN, zero(z.im));
    }
    if !z.im.is_finite() && z.re.is_infinite() {
        return Complex::new(f64::INFINITY, f64::NAN);
    }
    let (cos, sin) = (z.im.cos(), z.im.sin());
    let size = z.re.abs();
    if size > STEP {
        let signed = sin * 1.0f64.copysign(z.re);
        return Complex::new(half_exp_times(size, cos), half_exp_times(size, signed));
    }
    Complex::new(z.re.cosh() * cos, z.re.sinh() * sin)
}

pub(crate) fn tanh(z: C64) -> C64 {
    if z.im == 0.0 {
        return Complex::new(z.re.tanh(), z.im);
    }
    if !z.im.is_finite() {
        return match z.re {
            re if re.is_infinite() => Complex::new(1.0f64.copysign(re), 0.0f64.copysign(z.im)),
            re => Complex::new(if re == 0.0 { re } else { f64::NAN }, f64::NAN),
        };
    }
    if z.re.abs() > 22.0 {
        // The real part is one to the last digit.
        let decay = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(1.0f64.copysign(z.re), decay);
    }
    let tangent = z.im.tan();
    let slope = 1.0 + tangent * tangent;
    let (sine, cosine) = (z.re.sinh(), z.re.cosh());
    let divisor = 1.0 + slope * sine * sine;
    Complex::new(slope * cosine * sine / divisor, tangent / divisor)
}

/// Returns the inverse sine and cosine of a number with nonnegative parts: both real parts, and the imaginary
/// part, which they share except for its sign.
fn arc(x: f64, y: f64) -> (f64, f64, f64) {
    // From here on, the code follows the paper, which defines these borders between the formulas.
    const REAL_BORDER: f64 = 0.6417;
    const IMAGINARY_BORDER: f64 = 1.5;
    if x > LARGE || y > LARGE {
        return (x.atan2(y), y.atan2(x), log_modulus(x, y) + LN_2);
    }
    if y < SMALL {
        return if x < 1.0 {
            (x.asin(), x.acos(), y / ((1.0 - x) * (1.0 + x)).sqrt())
        } else if x == 1.0 {
            (FRAC_PI_2 - y.sqrt(), y.sqrt(), y.sqrt())
        } else {
            let product = (x - 1.0) * (x + 1.0);
            (FRAC_PI_2, y / product.sqrt(), (x - 1.0 + product.sqrt()).ln_1p())
        };
    }
    let (above, below) = ((x + 1.0).hypot(y), (x - 1.0).hypot(y));
    let a = 0.5 * (above + below);
    let b = x / a;
    let near = y * y / (above + (x + 1.0));
    let (sine, cosine) = if b <= REAL_BORDER {
        (b.asin(), b.acos())
    } else {
        let sum = a + x;
        let other = if x <= 1.0 {
            (0.5 * sum * (near + (below + (1.0 - x)))).sqrt()
        } else {
            y * (0.5 * (sum / (above + (x + 1.0)) + sum / (below + (x - 1.0)))).sqrt()
        };
        (x.atan2(other), other.atan2(x))
    };
    let height = if a <= IMAGINARY_BORDER {
        let excess = if x < 1.0 {
            0.5 * (near + y * y / (below + (1.0 - x)))
        } else {
            0.5 * (near + (below + (x - 1.0)))
        };
        (excess + (excess * (a + 1.0)).sqrt()).ln_1p()
    } else {
        (a + (a * a - 1.0).sqrt()).ln()
    };
    (sine, cosine, height)
}

pub(crate) fn asin(z: C64) -> C64 {
    if z.is_nan() {
        return if z.re == 0.0 {
            Complex::new(z.re, z.im)
        } else if z.im.is_infinite() {
            Complex::new(f64::NAN, z.im)
        } else if z.re.is_infinite() {
            Complex::new(f64::NAN, z.re)
        } else {
            Complex::new(f64::NAN, f64::NAN)
        };
    }
    let (sine, _, height) = arc(z.re.abs(), z.im.abs());
    Complex::new(sine.copysign(z.re), height.copysign(z.im))
}

pub(crate) fn acos(z: C64) -> C64 {
    if z.is_nan() {
        return if z.re == 0.0 {
            Complex::new(FRAC_PI_2, f64::NAN)
        } else if z.re.is_infinite() {
            Complex::new(f64::NAN, z.re)
        } else if z.im.is_infinite() {
            Complex::new(f64::NAN, -z.im)
        } else {
            Complex::new(f64::NAN, f64::NAN)
        };
    }
    let (_, cosine, height) = arc(z.re.abs(), z.im.abs());
    let angle = if z.re.is_sign_negative() { PI - cosine } else { cosine };
    Complex::new(angle, -height.copysign(z.im))
}

pub(crate) fn atan(z: C64) -> C64 {
    turn_back(atanh(turn(z)))
}

pub(crate) fn asinh(z: C64) -> C64 {
    turn_back(asin(turn(z)))
}

/// Returns the inverse cosine, rotated to a nonnegative real part.
pub(crate) fn acosh(z: C64) -> C64 {
    let angle = acos(z);
    if angle.re.is_nan() {
        return Complex::new(angle.im.abs(), angle.re);
    }
    Complex::new(angle.im.abs(), if angle.im.is_nan() { angle.im } else { angle.re.copysign(z.im) })
}

pub(crate) fn atanh(z: C64) -> C64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    if x.is_infinite() || y.is_infinite() {
        let angle = if y.is_nan() { y } else { FRAC_PI_2.copysign(z.im) };
        return Complex::new(0.0f64.copysign(z.re), angle);
    }
    if x.is_nan() || y.is_nan() {
        return Complex::new(if x == 0.0 { z.re } else { f64::NAN }, f64::NAN);
    }
    let (height, angle) = if x > LARGE || y > LARGE {
        let half = (0.5 * x).hypot(0.5 * y);
        (0.25 * x / half / half, FRAC_PI_2)
    } else if x == 1.0 && y < SMALL {
        (0.5 * (LN_2 - y.ln()), 0.5 * (2.0 * y).atan2(0.0))
    } else {
        let gap = 1.0 - x;
        let height = 0.25 * (4.0 * x / (gap * gap + y * y)).ln_1p();
        (height, 0.5 * (2.0 * y).atan2(gap * (1.0 + x) - y * y))
    };
    Complex::new(height.copysign(z.re), angle.copysign(z.im))
}
