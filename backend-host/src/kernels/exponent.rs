//! C's `frexp` and `ldexp` without branches, so that loops over them become vector code.

/// The fraction, 0.5 or more and less than 1, and the exponent; zero, infinities and what is
/// not a number are their own fraction.
macro_rules! frexp {
    ($name:ident, $float:ident, $bits:ident, $digits:literal, $mask:literal, $bias:literal, $scale:literal) => {
        #[inline(always)]
        fn $name(value: $float) -> ($float, $float) {
            // A subnormal number is scaled into the normal ones first.
            let subnormal = value.abs() < $float::MIN_POSITIVE;
            let power = $float::from_bits((($bias as $bits) + $scale) << $digits);
            let (scaled, shift) = if subnormal { (value * power, $scale) } else { (value, 0) };
            let bits = scaled.to_bits();
            // The exponent's bits become those of a whole number just above a power of two.
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

/// `2^exponent`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value * 2^exponent`, with a single rounding where the result is subnormal: the significand is
/// first multiplied by what makes it a normal number, which is exact, and then by the rest.
#[inline(always)]
fn ldexp(value: f64, exponent: f64) -> f64 {
    const DIGITS: u64 = 52;
    const FRACTION: u64 = (1 << DIGITS) - 1;
    /// Beyond, the result of every number overflows or vanishes.
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

/// As [`ldexp`]. In double precision the product is exact as long as it is representable there;
/// beyond, the clamped exponent still overflows or vanishes in single precision.
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
pub(super) trait Parts: Sized {
    /// C's `frexp`: the fraction and the exponent.
    fn frexp(self) -> (Self, Self);
    /// C's `ldexp`: `self * 2^exponent`, the exponent rounded towards zero.
    fn ldexp(self, exponent: Self) -> Self;
    /// C's `modf` without the whole part: what is left of the number, with its sign.
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
                    // An infinity has no fraction; its difference from itself would be NaN.
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

#[cfg(test)]
mod tests {
    use super::{frexp, frexp_single, ldexp, ldexp_single};

    /// Exactly, by doubling and halving.
    fn expected(value: f64) -> (f64, f64) {
        if value == 0.0 || !value.is_finite() {
            return (value, 0.0);
        }
        let (mut fraction, mut exponent) = (value, 0.0);
        while fraction.abs() >= 1.0 {
            (fraction, exponent) = (fraction / 2.0, exponent + 1.0);
        }
        while fraction.abs() < 0.5 {
            (fraction, exponent) = (fraction * 2.0, exponent - 1.0);
        }
        (fraction, exponent)
    }

    fn same(got: f64, expected: f64) -> bool {
        got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan())
    }

    fn numbers() -> Vec<f64> {
        let powers = (-1074..1024).map(|exponent| 2f64.powi(exponent));
        let special = [0.0, 1.0, 0.1, 3.7e-310, 5e-324, f64::MAX, f64::INFINITY, f64::NAN];
        let near = powers.flat_map(|power| [power, power.next_down(), power * 1.37]);
        near.chain(special).flat_map(|value| [value, -value]).collect()
    }

    #[test]
    fn fractions_and_exponents_are_exact() {
        for value in numbers() {
            let (got, expected) = (frexp(value), self::expected(value));
            assert!(same(got.0, expected.0) && got.1 == expected.1, "{value:e}: {got:?}");
            let single = value as f32;
            let (got, expected) = (frexp_single(single), self::expected(single.into()));
            assert!(same(got.0.into(), expected.0), "{single:e}: {got:?}");
            assert_eq!(f64::from(got.1), expected.1, "{single:e}");
        }
    }

    #[test]
    fn scaling_rounds_once() {
        // A sum of two powers of two, halfway between subnormal numbers and just above.
        let (half, above) = (1.0 + 2f64.powi(-40), 1.0 + 2f64.powi(-40) + 2f64.powi(-52));
        let unit = f64::from_bits(1);
        assert_eq!(ldexp(half, -1074.0 + 39.0), 2f64.powi(-1035));
        assert_eq!(ldexp(above, -1074.0 + 39.0), 2f64.powi(-1035) + unit);
        for value in numbers() {
            assert!(same(ldexp(value, 0.0), value), "{value:e}");
            for exponent in [-2200.0, -1100.0, -3.0, -1.0, 1.0, 10.0, 1000.0, 2200.0, 1e300, -1e300]
            {
                let (fraction, own) = expected(value);
                let wanted = own + exponent;
                let result = ldexp(value, exponent);
                if value == 0.0 || !value.is_finite() {
                    assert!(same(result, value), "{value:e}, {exponent}: {result:e}");
                } else if (-1021.0..=1024.0).contains(&wanted) {
                    assert!(same(expected(result).0, fraction), "{value:e}, {exponent}");
                    assert_eq!(expected(result).1, wanted, "{value:e}, {exponent}");
                } else if wanted > 1024.0 {
                    assert!(same(result, f64::INFINITY.copysign(value)), "{value:e}, {exponent}");
                } else {
                    let units =
                        if wanted < -1100.0 { 0.0 } else { fraction * 2f64.powf(wanted + 1074.0) };
                    let rounded = f64::from_bits(units.abs().round_ties_even() as u64);
                    assert!(same(result, rounded.copysign(value)), "{value:e}, {exponent}");
                }
            }
        }
        assert!(ldexp(1.0, f64::NAN).is_nan() && ldexp_single(1.0, f32::NAN).is_nan());
        assert_eq!(ldexp(3.0, 2.9), 12.0);
        assert_eq!(ldexp(3.0, -0.9), 3.0);
        let unit = f64::from(f32::from_bits(1));
        for (value, exponent) in [
            (1.5, -149.0),
            (1.0, -150.0),
            (1.25, -150.0),
            (3.0, 126.0),
            (3.0, 127.0),
            (-5e-45, 300.0),
        ] {
            let exact = f64::from(value) * 2f64.powf(exponent);
            assert_eq!(
                ldexp_single(value, exponent as f32),
                exact as f32,
                "{value} {exponent} {unit}"
            );
        }
        assert_eq!(ldexp_single(1.0, 1e30), f32::INFINITY);
        assert_eq!(ldexp_single(1.0, -1e30), 0.0);
    }
}
