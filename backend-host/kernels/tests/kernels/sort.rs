//! Compares sorts, of long rows by several threads, with a stable sort by an equivalent order.

use super::{pool, run_with};
use gpuarray_host_kernels::loops::sort_without_vectors;
use hal::operation::{Operand, Sort};
use hal::{Complex, Element, bf16, f16};
use std::cmp::Ordering;

/// Random numbers: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound
    }

    /// Returns one of a few numbers, so that many are equal, and sometimes a special one.
    fn number(&mut self, few: u64) -> f64 {
        match self.below(50) {
            0 => f64::NAN,
            1 => -f64::NAN,
            2 => -0.0,
            3 => f64::NEG_INFINITY,
            _ => self.below(few) as f64 - (few / 2) as f64,
        }
    }
}

/// The order of real numbers: NaN is last, and zeros are equal.
fn order(x: f64, y: f64) -> Ordering {
    match (x.is_nan(), y.is_nan()) {
        (false, false) => (x + 0.0).total_cmp(&(y + 0.0)),
        (one, other) => one.cmp(&other),
    }
}

fn operand<T: Element>(elements: &mut [T], length: usize) -> Operand {
    let size = size_of::<T>() as isize;
    Operand {
        address: elements.as_mut_ptr().expose_provenance() as u64,
        dtype: T::DTYPE,
        strides: [length as isize * size, size][..].into(),
    }
}

/// Sorts rows, and the indices of rows, with `threads` threads, and compares the result with a stable sort.
fn check<T: Element>(
    keys: &[T],
    length: usize,
    threads: usize,
    order: impl Fn(&T, &T) -> Ordering,
) {
    let rows = keys.len() / length;
    let pool = pool(threads);
    let mut input = keys.to_vec();
    let (mut sorted, mut indices) = (vec![T::ZERO; keys.len()], vec![0_i64; keys.len()]);
    let given = operand(&mut input, length);
    let mut sort =
        Sort { rows, length, indices: false, input: given, output: operand(&mut sorted, length) };
    run_with(&sort.clone().into(), &pool);
    (sort.indices, sort.output) = (true, operand(&mut indices, length));
    run_with(&sort.clone().into(), &pool);
    // In place.
    (sort.indices, sort.output) = (false, sort.input.clone());
    run_with(&sort.into(), &pool);
    let bytes = |element: &T| hal::Scalar::new(*element).bytes().to_vec();
    for row in 0..rows {
        let keys = &keys[row * length..(row + 1) * length];
        let mut expected: Vec<i64> = (0..length as i64).collect();
        expected.sort_by(|&x, &y| order(&keys[x as usize], &keys[y as usize]));
        let found = &indices[row * length..(row + 1) * length];
        assert!(found == expected, "indices of row {row} of {length}, {threads} threads");
        for values in [&sorted, &input] {
            let values = &values[row * length..(row + 1) * length];
            let same = |(value, &index): (&T, &i64)| bytes(value) == bytes(&keys[index as usize]);
            assert!(
                values.iter().zip(&expected).all(same),
                "row {row} of {length}, {threads} threads"
            );
        }
    }
}

#[test]
fn rows_that_threads_merge_are_sorted_and_stable() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (case, length) in [65_535, 65_536, 65_537, 100_003, 163_841].into_iter().enumerate() {
        for threads in [1, 2, 3, 4, 7, 8] {
            let few = [3, 1000, 1 << 40][(case + threads) % 3];
            let numbers: Vec<f64> = (0..length).map(|_| random.number(few)).collect();
            match (case * 7 + threads) % 5 {
                0 => check(&numbers, length, threads, |&x, &y| order(x, y)),
                1 => {
                    let keys: Vec<f16> = numbers.iter().map(|&x| f16::from_f64(x)).collect();
                    check(&keys, length, threads, |x, y| order(x.to_f64(), y.to_f64()));
                }
                2 => {
                    let keys: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f64(x)).collect();
                    check(&keys, length, threads, |x, y| order(x.to_f64(), y.to_f64()));
                }
                3 => {
                    let keys: Vec<i64> = numbers.iter().map(|&x| x as i64).collect();
                    check(&keys, length, threads, |x, y| x.cmp(y));
                }
                _ => {
                    let keys: Vec<Complex<f64>> =
                        numbers.iter().map(|&x| Complex::new(x, random.number(3))).collect();
                    check(&keys, length, threads, |x, y| {
                        let nan = |z: &Complex<f64>| (z.re.is_nan(), z.im.is_nan());
                        nan(x).cmp(&nan(y)).then(order(x.re, y.re)).then(order(x.im, y.im))
                    });
                }
            }
        }
    }
}

#[test]
fn rows_that_are_sorted_or_equal_are_merged() {
    let rising: Vec<u8> = (0..2 * 70_000_u32).map(|i| (i / 600) as u8).collect();
    for threads in [2, 5] {
        check(&rising, 70_000, threads, |x, y| x.cmp(y));
        check(&vec![7_u8; 140_000], 70_000, threads, |x, y| x.cmp(y));
        let falling: Vec<u8> = rising.iter().rev().copied().collect();
        check(&falling, 70_000, threads, |x, y| x.cmp(y));
    }
}

/// Returns rows of a length that are random, have few different numbers, or are nearly in order.
fn patterns(length: usize) -> Vec<Vec<u64>> {
    let mut random = Random(length as u64 + 1);
    let mut row = |bound: u64| (0..length).map(|_| random.below(bound)).collect::<Vec<_>>();
    let (wide, few, bits) = (row(1 << 44), row(3), row(200));
    let rising = (0..length as u64).collect::<Vec<_>>();
    let falling = rising.iter().rev().copied().collect();
    let pipe = rising.iter().map(|&x| x.min(length as u64 - x)).collect();
    let mut nearly = rising.clone();
    nearly.swap(0, length - 1);
    // Many differences in the lowest bits alone, beside a great one.
    let outlier = bits.iter().enumerate().map(|(i, &x)| if i == 1 { 1 << 63 } else { x }).collect();
    vec![wide, few, rising, falling, pipe, nearly, outlier]
}

#[test]
fn rows_of_every_length_and_pattern_are_sorted() {
    let lengths =
        [1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 47, 63, 64, 65, 100, 127, 129, 200, 257, 1000, 4099];
    for length in lengths {
        for row in patterns(length) {
            let spread = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            check(&row, length, 1, u64::cmp);
            check(&row.iter().map(|&x| spread(x) as i64).collect::<Vec<_>>(), length, 1, i64::cmp);
            check(&row.iter().map(|&x| x as i32).collect::<Vec<_>>(), length, 1, i32::cmp);
            check(&row.iter().map(|&x| spread(x) as u32).collect::<Vec<_>>(), length, 1, u32::cmp);
            check(&row.iter().map(|&x| x as u16).collect::<Vec<_>>(), length, 1, u16::cmp);
            check(&row.iter().map(|&x| spread(x) as i16).collect::<Vec<_>>(), length, 1, i16::cmp);
            check(&row.iter().map(|&x| x as i8).collect::<Vec<_>>(), length, 1, i8::cmp);
            check(&row.iter().map(|&x| x as u8).collect::<Vec<_>>(), length, 1, u8::cmp);
            // Every bit pattern: both zeros, infinities, subnormal numbers and NaN with signs and payloads.
            let floats: Vec<f32> = row.iter().map(|&x| f32::from_bits(spread(x) as u32)).collect();
            check(&floats, length, 1, |&x, &y| order(x.into(), y.into()));
            let doubles: Vec<f64> = row.iter().map(|&x| f64::from_bits(spread(x))).collect();
            check(&doubles, length, 1, |&x, &y| order(x, y));
            let close: Vec<f64> = row.iter().map(|&x| f64::from_bits(x ^ 1 << 62)).collect();
            check(&close, length, 1, |&x, &y| order(x, y));
            let halves: Vec<f16> = row.iter().map(|&x| f16::from_bits(spread(x) as u16)).collect();
            check(&halves, length, 1, |x, y| order(x.to_f64(), y.to_f64()));
            let signed = [0.0, -0.0, f32::NAN, -f32::NAN, 1.0, -1.0];
            let signed: Vec<f32> = row.iter().map(|&x| signed[(x % 6) as usize]).collect();
            check(&signed, length, 1, |&x, &y| order(x.into(), y.into()));
        }
    }
}

#[test]
fn every_number_of_16_bits_is_sorted() {
    let mut random = Random(7);
    let numbers: Vec<u16> = (0..3 << 16).map(|_| random.below(1 << 16) as u16).collect();
    check(&numbers, 3 << 16, 2, u16::cmp);
    check(&numbers.iter().map(|&x| x as i16).collect::<Vec<_>>(), 3 << 16, 2, i16::cmp);
    let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_bits(x)).collect();
    check(&halves, 3 << 16, 2, |x, y| order(x.to_f64(), y.to_f64()));
    let halves: Vec<bf16> = numbers.iter().map(|&x| bf16::from_bits(x)).collect();
    check(&halves, 3 << 16, 2, |x, y| order(x.to_f64(), y.to_f64()));
}

#[test]
fn processors_without_vectors_sort_alike() {
    for length in [2, 1000, 16_385, 100_000, 300_000] {
        for row in patterns(length) {
            let mut sorted: Vec<i64> = row.iter().map(|&x| x as i64).collect();
            let mut expected = sorted.clone();
            expected.sort_unstable();
            sort_without_vectors(&mut sorted, &pool(3));
            assert!(sorted == expected, "{length} numbers");
        }
    }
}
