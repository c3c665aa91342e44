//! The arithmetic of complex numbers.
//!
//! Functions other than the four operations are calculated in double precision for both
//! types. Formulas for the inverse functions: W. Kahan, "Branch Cuts for Complex Elementary
//! Functions" (1987); division: R. L. Smith, Algorithm 116 (1962).

use super::number::{Convert, Number};
use hal::{Complex, DType};

type C64 = Complex<f64>;

macro_rules! complex {
    ($real:ident, $dtype:ident) => {
        // SAFETY: two primitives side by side, of the dtype's size.
        unsafe impl Number for Complex<$real> {
            const DTYPE: DType = DType::$dtype;
            type Real = $real;

            complex!(@unary sqrt, exp, log, log10, sin, cos, tan, asin, acos, atan, sinh, cosh,
                tanh);

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Complex::new(self.re + other.re, self.im + other.im)
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                Complex::new(self.re - other.re, self.im - other.im)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                Complex::new(
                    self.re * other.re - self.im * other.im,
                    self.re * other.im + self.im * other.re,
                )
            }
            #[inline(always)]
            fn divide(self, other: Self) -> Self {
                let (re, im) = (other.re.abs(), other.im.abs());
                if re == 0.0 && im == 0.0 {
                    Complex::new(self.re / re, self.im / re)
                } else if re >= im {
                    let ratio = other.im / other.re;
                    let scale = 1.0 / (other.re + other.im * ratio);
                    Complex::new(
                        (self.re + self.im * ratio) * scale,
                        (self.im - self.re * ratio) * scale,
                    )
                } else {
                    let ratio = other.re / other.im;
                    let scale = 1.0 / (other.im + other.re * ratio);
                    Complex::new(
                        (self.re * ratio + self.im) * scale,
                        (self.im * ratio - self.re) * scale,
                    )
                }
            }
            /// Small whole exponents multiply, as numpy does, so that they are exact where
            /// the product is.
            #[inline(always)]
            fn power(self, other: Self) -> Self {
                const LIMIT: $real = 100.0;
                if other.re == 0.0 && other.im == 0.0 {
                    Complex::new(1.0, 0.0)
                } else if self.re == 0.0 && self.im == 0.0 {
                    let value = if other.re > 0.0 { 0.0 } else { $real::NAN };
                    Complex::new(value, value)
                } else if other.im == 0.0 && other.re.abs() < LIMIT && other.re.fract() == 0.0 {
                    let mut exponent = other.re.abs() as u32;
                    let mut base = self;
                    while exponent & 1 == 0 {
                        base = base.multiply(base);
                        exponent >>= 1;
                    }
                    let mut value = base;
                    while exponent > 1 {
                        base = base.multiply(base);
                        exponent >>= 1;
                        if exponent & 1 == 1 {
                            value = value.multiply(base);
                        }
                    }
                    if other.re < 0.0 { Complex::new(1.0, 0.0).divide(value) } else { value }
                } else {
                    to(power(from(self), from(other)))
                }
            }
            #[inline(always)]
            fn negative(self) -> Self {
                Complex::new(-self.re, -self.im)
            }
            #[inline(always)]
            fn conjugate(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn absolute(self) -> $real {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn real(self) -> $real {
                self.re
            }
            #[inline(always)]
            fn imaginary(self) -> $real {
                self.im
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                (self.re != 0.0) | (self.im != 0.0)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.re.is_nan() | self.im.is_nan()
            }
            #[inline(always)]
            fn equal(self, other: Self) -> bool {
                (self.re == other.re) & (self.im == other.im)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                let ordered = !(self.im.is_nan() | other.im.is_nan());
                ((self.re < other.re) & ordered) | ((self.re == other.re) & (self.im < other.im))
            }
            #[inline(always)]
            fn less_equal(self, other: Self) -> bool {
                let ordered = !(self.im.is_nan() | other.im.is_nan());
                ((self.re < other.re) & ordered) | ((self.re == other.re) & (self.im <= other.im))
            }
        }
    };
    (@unary $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                to($name(from(self)))
            }
        )*
    };
}

complex!(f32, Complex64);
complex!(f64, Complex128);

#[inline(always)]
fn from<T: Number>(value: T) -> C64 {
    value.convert()
}

#[inline(always)]
fn to<T: Number>(value: C64) -> T {
    value.convert()
}

/// `i * z`.
fn turn(z: C64) -> C64 {
    Complex::new(-z.im, z.re)
}

/// `-i * z`.
fn turn_back(z: C64) -> C64 {
    Complex::new(z.im, -z.re)
}

fn power(base: C64, exponent: C64) -> C64 {
    exp(log(base).multiply(exponent))
}

/// The square root with a real part that is not negative. Halved parts keep the modulus of
/// the largest numbers finite.
fn sqrt(z: C64) -> C64 {
    if z.re == 0.0 && z.im == 0.0 {
        return Complex::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return Complex::new(f64::INFINITY, z.im);
    }
    let root = (z.re.abs() * 0.5 + (z.re * 0.5).hypot(z.im * 0.5)).sqrt();
    let other = z.im.abs() / (2.0 * root);
    if z.re >= 0.0 {
        Complex::new(root, other.copysign(z.im))
    } else {
        Complex::new(other, root.copysign(z.im))
    }
}

fn exp(z: C64) -> C64 {
    z.exp()
}

fn log(z: C64) -> C64 {
    z.ln()
}

fn log10(z: C64) -> C64 {
    let value = log(z);
    Complex::new(value.re / std::f64::consts::LN_10, value.im / std::f64::consts::LN_10)
}

fn sin(z: C64) -> C64 {
    turn_back(sinh(turn(z)))
}

fn cos(z: C64) -> C64 {
    cosh(turn(z))
}

fn tan(z: C64) -> C64 {
    turn_back(tanh(turn(z)))
}

/// A product in which a factor of zero gives zero even if the other is infinite: the sine of
/// a real number has no imaginary part, however large the cosine.
fn times(left: f64, right: f64) -> f64 {
    if left == 0.0 || right == 0.0 { left.signum() * right.signum() * 0.0 } else { left * right }
}

fn sinh(z: C64) -> C64 {
    Complex::new(times(z.re.sinh(), z.im.cos()), times(z.re.cosh(), z.im.sin()))
}

fn cosh(z: C64) -> C64 {
    Complex::new(times(z.re.cosh(), z.im.cos()), times(z.re.sinh(), z.im.sin()))
}

/// Far from the imaginary axis the quotient of two huge numbers is replaced by its limit.
fn tanh(z: C64) -> C64 {
    if z.re.abs() > 22.0 {
        let decay = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(1.0f64.copysign(z.re), if z.im == 0.0 { z.im } else { decay });
    }
    let (sinh, cosh, sin, cos) = (z.re.sinh(), z.re.cosh(), z.im.sin(), z.im.cos());
    let scale = sinh * sinh + cos * cos;
    Complex::new(sinh * cosh / scale, sin * cos / scale)
}

fn asin(z: C64) -> C64 {
    let below = sqrt(Complex::new(1.0 - z.re, -z.im));
    let above = sqrt(Complex::new(1.0 + z.re, z.im));
    Complex::new(z.re.atan2(below.multiply(above).re), below.conjugate().multiply(above).im.asinh())
}

fn acos(z: C64) -> C64 {
    let below = sqrt(Complex::new(1.0 - z.re, -z.im));
    let above = sqrt(Complex::new(1.0 + z.re, z.im));
    Complex::new(2.0 * below.re.atan2(above.re), above.conjugate().multiply(below).im.asinh())
}

fn atan(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    let re = 0.5 * (2.0 * x).atan2((1.0 - y) * (1.0 + y) - x * x);
    let im = 0.25 * (4.0 * y / (x * x + (1.0 - y) * (1.0 - y))).ln_1p();
    Complex::new(re, im)
}
