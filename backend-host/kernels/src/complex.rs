//! The arithmetic of complex numbers.
//!
//! Functions other than the four operations are calculated in double precision for both types
//! ([`functions`]). Division: R. L. Smith, Algorithm 116 (1962).

use super::math::complex as functions;
use super::number::{Convert, Number};
use hal::{Complex, DType};

type C64 = Complex<f64>;

macro_rules! complex {
    ($real:ident, $dtype:ident) => {
        // SAFETY: two adjacent primitives with the total size of the dtype.
        unsafe impl Number for Complex<$real> {
            const DTYPE: DType = DType::$dtype;
            type Real = $real;
            type Working = Self;

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
            /// Like the division, but the sign of a zero is that of the exact value, as in numpy.
            #[inline(always)]
            fn reciprocal(self) -> Self {
                if self.re.abs() >= self.im.abs() {
                    let ratio = self.im / self.re;
                    let divisor = self.re + self.im * ratio;
                    Complex::new(1.0 / divisor, -ratio / divisor)
                } else {
                    let ratio = self.re / self.im;
                    let divisor = self.re * ratio + self.im;
                    Complex::new(ratio / divisor, -1.0 / divisor)
                }
            }
            /// Small integer exponents are computed by multiplication, as in numpy, so that the power is
            /// exact if the product is.
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
                    to(functions::power(from(self), from(other)))
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
            fn is_infinite(self) -> bool {
                Number::is_infinite(self.re) | Number::is_infinite(self.im)
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
