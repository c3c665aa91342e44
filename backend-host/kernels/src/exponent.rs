//! Branch-free versions of C's `frexp` and `ldexp`, so that loops over them are vectorised.

/// Defines `frexp`: the fraction, in [0.5, 1), and the exponent. Zero, infinities and NaN are their own
/// fraction.
macro_rules! frexp {
    ($name:ident, $float:ident, $bits:ident, $digits:literal, $mask:literal, $bias:literal, $scale:literal) => {
        #[inline(always)]
        fn $name(value: $float) -> ($float, $float) {
            // A subnormal number is first scaled to a normal one.
            let subnormal = value.abs() < $float::MIN_POSITIVE;
            let power = $float::from_bits((($bias as $bits) + $scale) << $digits);
            let (scaled, shift) = if subnormal { (value * power, $scale) } else { (value, 0) };
            let bits = scaled.to_bits();
            // The exponent bits become the bits of an integer just above a power of two.
            let origin = $float::from_bits((($bias as $bits) + $digits) << $digits);
            let biased = $float::from_bits(origin.to_bits() | ((bits >> $digits) & $mask)) - origin;
            let fraction = (bits & !($mask << $digits)) | (($bias - 1) << $digits);
            let special = (value == 0.0) | !value.is_finite();
            let exponent = biased - ($bias - 1) as $float - shift as $float;
            if special { (value, 0.0) } else { ($float::from_bits(fraction), exponent) }
        }
    };
}

frexp!(frexp_single, f32, u32, 23, 0xff, 127, 25);
frexp!(frexp, f64, u64, 52, 0x7ff, 1023, 54);

/// Returns `2^exponent`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Returns `value * 2^exponent`, with a single rounding if the result is subnormal. The significand is first
/// multiplied by a factor that keeps it normal, which is exact, and then by the rest.
#[inline(always)]
fn ldexp(value: f64, exponent: f64) -> f64 {
    const DIGITS: u64 = 52;
    const FRACTION: u64 = (1 << DIGITS) - 1;
    /// Beyond this exponent, every result overflows or underflows.
    const MOST: f64 = 5000.0;
    let limited = if exponent > -MOST { exponent } else { -MOST };
    let limited = if limited < MOST { limited } else { MOST };
    let subnormal = value.abs() < f64::MIN_POSITIVE;
    let (scaled, shift) =
        if subnormal { (value * 18_014_398_509_481_984.0, 54) } else { (value, 0) };
    let bits = scaled.to_bits();
    let wanted = i64::from(limited as i32) + (bits >> DIGITS & 0x7ff) as i64 - 1023 - shift;
    let significand = f64::from_bits(bits & (FRACTION | 1 << 63) | 1023 << DIGITS);
    let first = wanted.clamp(-1022, 1023);
    let second = (wanted - first).clamp(-60, 1);
    let result = significand * power_of_two(first) * power_of_two(second);
    let result = if (value == 0.0) | !value.is_finite() { value } else { result };
    if exponent.is_nan() { exponent } else { result }
}

/// Like [`ldexp`]. In double precision the product is exact if it is representable there; beyond that, the
/// clamped exponent still overflows or underflows in single precision.
#[inline(always)]
fn ldexp_single(value: f32, exponent: f32) -> f32 {
    const MOST: f32 = 400.0;
    let limited = if exponent > -MOST { exponent } else { -MOST };
    let limited = if limited < MOST { limited } else { MOST };
    let power = f64::from_bits(((limited as i32 + 1023) as u64) << 52);
    let result = (f64::from(value) * power) as f32;
    if exponent.is_nan() { exponent } else { result }
}

/// The parts of a floating-point number.
pub trait Parts: Sized {
    /// C's `frexp`: the fraction and the exponent.
    fn frexp(self) -> (Self, Self);
    /// C's `ldexp`: `self * 2^exponent`, the exponent rounded towards zero.
    fn ldexp(self, exponent: Self) -> Self;
    /// C's `modf` without the integer part: the fraction, with the sign of the number.
    fn fraction(self) -> Self;
}

macro_rules! parts {
    ($($float:ident $frexp:ident $ldexp:ident;)*) => {
        $(
            impl Parts for $float {
                #[inline(always)]
                fn frexp(self) -> (Self, Self) {
                    $frexp(self)
                }
                #[inline(always)]
                fn ldexp(self, exponent: Self) -> Self {
                    $ldexp(self, exponent)
                }
                #[inline(always)]
                fn fraction(self) -> Self {
                    let whole = self.trunc();
                    // The fraction of an infinity is zero; its difference from itself would be NaN.
                    $float::copysign(if whole == self { 0.0 } else { self - whole }, self)
                }
            }
        )*
    };
}

parts! {
    f32 frexp_single ldexp_single;
    f64 frexp ldexp;
}
