//! Compares the modulus of complex numbers with exact values and the system's library.

use gpuarray_host_kernels::loops::kernel;
use hal::function::{Function, UnaryFunction};
use hal::{Complex, Element};

fn modulus<T: Element, R: Element + Default>(numbers: &[T]) -> Vec<R> {
    let kernel = kernel(Function::Unary(UnaryFunction::Absolute), T::DTYPE).expect("a loop");
    let mut values = vec![R::default(); numbers.len()];
    let argument = numbers.as_ptr().cast();
    // SAFETY: as many values as numbers.
    unsafe { kernel.run.call(values.as_mut_ptr().cast(), &[argument; 4], 0, numbers.len()) };
    values
}

/// Returns parts of every magnitude, and special values.
fn parts() -> Vec<f64> {
    let powers = (-1074..1024).step_by(3).map(|exponent| 2f64.powi(exponent) * 1.37);
    let special = [0.0, 1.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN];
    powers.chain(special).flat_map(|part| [part, -part]).collect()
}

#[test]
fn lengths_of_right_triangles_are_exact_at_every_scale() {
    for (x, y, length) in [(3.0, 4.0, 5.0), (12.0, 5.0, 13.0), (20.0, 99.0, 101.0)] {
        // Every length around the vector lengths, and every power of two.
        for count in (1..70).chain([1000]) {
            let scale = |index: usize| 2f64.powi((index * 31 % 2000) as i32 - 1000);
            let numbers: Vec<_> =
                (0..count).map(|index| Complex::new(x * scale(index), -y * scale(index))).collect();
            let expected: Vec<f64> = (0..count).map(|index| length * scale(index)).collect();
            assert_eq!(modulus::<_, f64>(&numbers), expected, "{count}");
            let scale = |index: usize| 2f32.powi((index * 31 % 200) as i32 - 100);
            let numbers: Vec<_> = (0..count)
                .map(|index| Complex::new(-x as f32 * scale(index), y as f32 * scale(index)))
                .collect();
            let expected: Vec<f32> = (0..count).map(|index| length as f32 * scale(index)).collect();
            assert_eq!(modulus::<_, f32>(&numbers), expected, "{count}, single");
        }
    }
}

#[test]
fn all_sizes_of_parts_and_special_ones() {
    let parts = parts();
    for &x in &parts {
        let numbers: Vec<_> = parts.iter().map(|&y| Complex::new(x, y)).collect();
        for (number, got) in numbers.iter().zip(modulus::<_, f64>(&numbers)) {
            let expected = number.re.hypot(number.im);
            if expected.is_nan() || expected.is_infinite() || expected == 0.0 {
                assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan());
                continue;
            }
            let distance = got.to_bits().abs_diff(expected.to_bits());
            assert!(distance <= 1, "{number:?}: {got:e} instead of {expected:e}");
        }
        let single = |number: &Complex<f64>| Complex::new(number.re as f32, number.im as f32);
        let numbers: Vec<_> = numbers.iter().map(single).collect();
        for (number, got) in numbers.iter().zip(modulus::<_, f32>(&numbers)) {
            let exact = f64::from(number.re).hypot(number.im.into());
            let error = super::functions::error(got, exact);
            assert!(error < 2.0, "{number:?}: {got:e} instead of {exact:e}, {error} ulp");
        }
    }
}
