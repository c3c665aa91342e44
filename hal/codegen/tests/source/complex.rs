//! Complex functions, which the prelude implements with real functions.

use super::elementwise::{binary, pairs, unary};
use super::run;
use crate::harness::Memory;
use hal::Complex;
use hal::function::{BinaryFunction, UnaryFunction};
use hal::operation::Description;

/// Compares the prelude's complex functions with those in `num-complex`.
macro_rules! complex_test {
    ($name:ident, $R:ty, $tolerance:expr) => {
        #[test]
        fn $name() {
            use BinaryFunction::*;
            use UnaryFunction::*;
            type C = Complex<$R>;
            let parts: [$R; 8] = [0.0, 1.0, -1.0, 0.3, -0.7, 2.5, -3.5, 0.01];
            let values: Vec<C> =
                parts.iter().flat_map(|&re| parts.map(|im| C::new(re, im))).collect();
            let one: Vec<(UnaryFunction, fn(C) -> C)> = vec![
                (Sqrt, C::sqrt),
                (Exp, C::exp),
                (Log, C::ln),
                (Log10, C::log10),
                (Sin, C::sin),
                (Cos, C::cos),
                (Tan, C::tan),
                (Asin, C::asin),
                (Acos, C::acos),
                (Atan, C::atan),
                (Sinh, C::sinh),
                (Cosh, C::cosh),
                (Tanh, C::tanh),
                (Conjugate, |z| z.conj()),
                (Negative, |z| -z),
            ];
            let two: Vec<(BinaryFunction, fn(C, C) -> C)> = vec![
                (Add, |x, y| x + y),
                (Subtract, |x, y| x - y),
                (Multiply, |x, y| x * y),
                (Divide, |x, y| x / y),
                (Power, |x, y| if y == C::new(0.0, 0.0) { C::new(1.0, 0.0) } else { x.powc(y) }),
            ];
            let single = Memory::new(&values);
            let (x, y) = pairs(&values);
            let singles: Vec<Memory<C>> = one.iter().map(|_| Memory::zeros(values.len())).collect();
            let outs: Vec<Memory<C>> =
                two.iter().map(|_| Memory::zeros(values.len().pow(2))).collect();
            let modulus = Memory::<$R>::zeros(values.len());
            let less = Memory::<bool>::zeros(values.len().pow(2));
            let mut operations: Vec<Description> =
                one.iter().zip(&singles).map(|((f, _), out)| unary(*f, &single, out)).collect();
            operations.extend(two.iter().zip(&outs).map(|((f, _), out)| binary(*f, &x, &y, out)));
            operations.push(unary(Absolute, &single, &modulus));
            operations.push(binary(Less, &x, &y, &less));
            if !run(&operations) {
                return;
            }
            let close = |got: C, wanted: C| {
                !wanted.is_finite() || (got - wanted).norm() <= $tolerance * wanted.norm().max(1.0)
            };
            for ((function, expected), out) in one.iter().zip(&singles) {
                for (&z, got) in values.iter().zip(out.values()) {
                    let wanted = expected(z);
                    // Points on a branch cut have two limits; the principal one is checked through
                    // the function's inverse below.
                    let cut = z.im == 0.0 && matches!(function, Asin | Acos | Atan)
                        || z.re == 0.0 && *function == Atan;
                    assert!(cut || close(got, wanted), "{function:?}({z}): {got} {wanted}");
                    let back = match function {
                        Asin => got.sin(),
                        Acos => got.cos(),
                        Atan => got.tan(),
                        _ => continue,
                    };
                    assert!(
                        close(back, z) || !got.is_finite(),
                        "{function:?}({z}): {got}, back {back}"
                    );
                }
            }
            for (z, got) in values.iter().zip(modulus.values()) {
                assert!((got - z.norm()).abs() <= $tolerance * got);
            }
            let (x, y, less) = (x.values(), y.values(), less.values());
            for ((function, expected), out) in two.iter().zip(&outs) {
                for (i, got) in out.values().into_iter().enumerate() {
                    let wanted = expected(x[i], y[i]);
                    let rough =
                        if *function == Power { wanted.norm() * 20.0 * $tolerance } else { 0.0 };
                    assert!(
                        close(got, wanted)
                            || (got - wanted).norm() <= rough
                            || (*function == Power && x[i] == C::new(0.0, 0.0)),
                        "{function:?}({}, {}): {got} {wanted}",
                        x[i],
                        y[i]
                    );
                    assert_eq!(less[i], (x[i].re, x[i].im) < (y[i].re, y[i].im));
                }
            }
        }
    };
}

complex_test!(complex64, f32, 4e-6);
complex_test!(complex128, f64, 1e-14);

#[test]
fn complex_extremes_propagate_nan_and_do_not_overflow() {
    type C = Complex<f64>;
    let nan = f64::NAN;
    let values = [C::new(nan, 0.0), C::new(5.0, nan), C::new(5.0, 1.0), C::new(-1.0, 9.0)];
    let (x, y) = pairs(&values);
    let (low, high) = (Memory::<C>::zeros(16), Memory::<C>::zeros(16));
    let large = Memory::new(&[C::new(1e300, 1e300), C::new(1e-310, 1e-310), C::new(-1e308, 1e-3)]);
    let (root, ratio) = (Memory::<C>::zeros(3), Memory::<C>::zeros(3));
    if !run(&[
        binary(BinaryFunction::Minimum, &x, &y, &low),
        binary(BinaryFunction::Maximum, &x, &y, &high),
        unary(UnaryFunction::Sqrt, &large, &root),
        binary(BinaryFunction::Divide, &large, &large, &ratio),
    ]) {
        return;
    }
    for i in 0..16 {
        let (x, y) = (x.at(i), y.at(i));
        for (out, larger) in [(low.at(i), false), (high.at(i), true)] {
            if x.is_nan() || y.is_nan() {
                assert!(out.is_nan(), "{x} {y} {out}");
            } else {
                let x_wins = (((x.re, x.im) > (y.re, y.im)) == larger) || x == y;
                assert_eq!(out, if x_wins { x } else { y });
            }
        }
    }
    for (z, (root, ratio)) in large.values().iter().zip(root.values().iter().zip(ratio.values())) {
        // Both sides are halved, so that the square stays within range. Near zero, the error is at
        // least the smallest number.
        let tolerance = 1e-14 * (z / 2.0).norm() + 4.0 * f64::from_bits(1);
        assert!((root * root / 2.0 - z / 2.0).norm() <= tolerance, "{z:e} {root:e}");
        assert!((ratio - C::new(1.0, 0.0)).norm() < 1e-9, "{z} {ratio}");
    }
}
