//! Tests fractions and exponents of numbers, and scaling by powers of two.

use gpuarray_host_kernels::loops::Parts;

/// Computes the exact result by doubling and halving.
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
        let (got, expected) = (value.frexp(), self::expected(value));
        assert!(same(got.0, expected.0) && got.1 == expected.1, "{value:e}: {got:?}");
        let single = value as f32;
        let (got, expected) = (single.frexp(), self::expected(single.into()));
        assert!(same(got.0.into(), expected.0), "{single:e}: {got:?}");
        assert_eq!(f64::from(got.1), expected.1, "{single:e}");
    }
}

#[test]
fn scaling_rounds_once() {
    // A sum of two powers of two, halfway between subnormal numbers and just above.
    let (half, above) = (1.0 + 2f64.powi(-40), 1.0 + 2f64.powi(-40) + 2f64.powi(-52));
    let unit = f64::from_bits(1);
    assert_eq!(half.ldexp(-1074.0 + 39.0), 2f64.powf(-1035.0));
    assert_eq!(above.ldexp(-1074.0 + 39.0), 2f64.powf(-1035.0) + unit);
    for value in numbers() {
        assert!(same(value.ldexp(0.0), value), "{value:e}");
        for exponent in [-2200.0, -1100.0, -3.0, -1.0, 1.0, 10.0, 1000.0, 2200.0, 1e300, -1e300] {
            let (fraction, own) = expected(value);
            let wanted = own + exponent;
            let result = value.ldexp(exponent);
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
    assert!(1.0f64.ldexp(f64::NAN).is_nan() && 1f32.ldexp(f32::NAN).is_nan());
    assert_eq!(3.0f64.ldexp(2.9), 12.0);
    assert_eq!(3.0f64.ldexp(-0.9), 3.0);
    let unit = f64::from(f32::from_bits(1));
    for (value, exponent) in [
        (1.5f32, -149.0),
        (1.0, -150.0),
        (1.25, -150.0),
        (3.0, 126.0),
        (3.0, 127.0),
        (-5e-45, 300.0),
    ] {
        let exact = f64::from(value) * 2f64.powf(exponent);
        assert_eq!(value.ldexp(exponent as f32), exact as f32, "{value} {exponent} {unit}");
    }
    assert_eq!(1f32.ldexp(1e30), f32::INFINITY);
    assert_eq!(1f32.ldexp(-1e30), 0.0);
}
