//! Sorted rows, their indices, and the indices of true elements.

use super::{run, takes_all};
use crate::harness::Memory;
use hal::operation::{Description, Nonzero, Sort};
use hal::{Complex, Element, f16};
use std::cmp::Ordering;

/// Returns numbers without a pattern, many of them equal.
fn noise(length: usize) -> impl Iterator<Item = i32> {
    (0..length as u32).map(|i| {
        let state = i.wrapping_mul(2_654_435_761).wrapping_add(12345);
        ((state ^ (state >> 13)).wrapping_mul(0x5bd1_e995) >> 9) as i32 % 500 - 250
    })
}

/// Sorts rows with the kernels, and compares with the standard library's stable sort.
fn sorts<T: Element + PartialEq>(
    cases: &[(usize, usize)],
    make: impl Fn(i32) -> T,
    order: impl Fn(&T, &T) -> Ordering,
    same: impl Fn(T, T) -> bool,
) {
    let mut operations = Vec::new();
    let mut memories = Vec::new();
    for &(rows, length) in cases {
        let values: Vec<T> = noise(rows * length).map(&make).collect();
        let input = Memory::new(&values);
        let sorted = Memory::<T>::zeros(values.len());
        let indices = Memory::<i64>::zeros(values.len());
        let strides = [length as isize, 1];
        for (is_indices, output) in
            [(false, sorted.operand(&strides)), (true, indices.operand(&strides))]
        {
            let input = input.operand(&strides);
            operations.push(Description::Sort(Sort {
                rows,
                length,
                indices: is_indices,
                input,
                output,
            }));
        }
        memories.push((length, values, input, sorted, indices));
    }
    if !run(&operations) {
        return;
    }
    for (length, values, _input, sorted, indices) in memories {
        for (row, values) in values.chunks(length).enumerate() {
            let mut expected: Vec<usize> = (0..length).collect();
            expected.sort_by(|&a, &b| order(&values[a], &values[b]));
            for (i, from) in expected.into_iter().enumerate() {
                let at = row * length + i;
                assert_eq!(indices.at(at), from as i64, "index {i} of {length}");
                assert!(same(sorted.at(at), values[from]), "element {i} of {length}");
            }
        }
    }
}

#[test]
fn rows_of_one_tile_and_of_many_are_sorted() {
    // Tiles have 2048 elements, or 1024 elements of 16 bytes.
    let lengths = [(3, 1), (5, 8), (2, 9), (2, 777), (1, 2048), (2, 2049), (1, 4097), (2, 9000)];
    sorts(&lengths, |x| x, i32::cmp, |a, b| a == b);
    let shorts = [(2, 100), (1, 5000)];
    sorts(&shorts, |x| x as u8, u8::cmp, |a, b| a == b);
    sorts(&shorts, |x| x > 0, bool::cmp, |a, b| a == b);
    sorts(&shorts, |x| i64::from(x) << 40, i64::cmp, |a, b| a == b);
}

#[test]
fn short_rows_share_a_tile() {
    // Tiles have up to 256 rows of eight elements, or 256 rows of four 16-byte elements; the last
    // tile has fewer.
    let rows =
        [(1, 1), (700, 1), (257, 5), (256, 8), (129, 9), (70, 60), (4, 1023), (3, 1024), (3, 1025)];
    sorts(&rows, |x| x as f32, f32::total_cmp, |a, b| a == b);
    let rows = [(300, 3), (129, 5), (4, 511), (3, 512), (3, 513)];
    let order = |a: &Complex<f64>, b: &Complex<f64>| a.re.total_cmp(&b.re);
    sorts(&rows, |x| Complex::new(f64::from(x), 0.0), order, |a, b| a == b);
    sorts(&rows, |x| x as i8, i8::cmp, |a, b| a == b);
}

#[test]
fn long_rows_are_sorted_digit_by_digit() {
    // Longer than rows that are merged, with many tiles of 3840 elements, or 2304 elements of 8
    // bytes.
    // The checks compare accesses within a launch: a second row of the same kernels would show nothing new.
    let rows = if takes_all() { 2 } else { 1 };
    let lengths = [(rows, (1 << 16) + 1)];
    let scattered = |x: i32| x.wrapping_mul(0x0123_4567).rotate_left(7);
    sorts(&lengths, scattered, i32::cmp, |a, b| a == b);
    let lengths = [(1, 66_000)];
    sorts(&lengths, |x| i64::from(scattered(x)) << 20, i64::cmp, |a, b| a == b);
    if !takes_all() {
        return;
    }
    sorts(&lengths, |x| x as u8, u8::cmp, |a, b| a == b);
    sorts(&lengths, |x| scattered(x) as i16, i16::cmp, |a, b| a == b);
    // All equal.
    sorts(&lengths, |_| false, bool::cmp, |a, b| a == b);
}

#[test]
fn long_rows_of_complex_numbers_are_merged() {
    let complex = |x: i32| Complex::new((x % 7) as f32, x as f32);
    let order = |a: &Complex<f32>, b: &Complex<f32>| {
        a.re.partial_cmp(&b.re).unwrap().then(a.im.partial_cmp(&b.im).unwrap())
    };
    sorts(&[(1, (1 << 16) + 1)], complex, order, |a, b| a == b);
}

#[test]
fn nan_is_last_and_zeros_are_equal() {
    let special = |x: i32| match x {
        225.. => -f32::NAN,
        200.. => f32::NAN,
        -220..-200 => f32::NEG_INFINITY,
        100..120 => f32::INFINITY,
        0..20 => -0.0,
        20..40 => 0.0,
        _ => x as f32,
    };
    let order = |a: &f32, b: &f32| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let mut lengths = vec![(2, 100), (1, 5000)];
    lengths.extend(takes_all().then_some((1, 66_000)));
    sorts(&lengths, special, order, same);
    let wide = |a: &f64, b: &f64| order(&(*a as f32), &(*b as f32));
    sorts(&lengths, |x| f64::from(special(x)), wide, |a, b| same(a as f32, b as f32));
    let half = |x| f16::from_f32(special(x));
    sorts(
        &lengths,
        half,
        |a, b| order(&a.to_f32(), &b.to_f32()),
        |a, b| same(a.to_f32(), b.to_f32()),
    );
    let lengths = [(2, 100), (1, 5000)];
    let complex = |x: i32| Complex::new(f64::from(special(x / 4)), f64::from(special(x * 7 % 211)));
    let parts = |a: f64, b: f64| order(&(a as f32), &(b as f32));
    sorts(
        &lengths,
        complex,
        |a, b| {
            let nan = |z: &Complex<f64>| (z.re.is_nan(), z.im.is_nan());
            nan(a).cmp(&nan(b)).then(parts(a.re, b.re)).then(parts(a.im, b.im))
        },
        |a, b| same(a.re as f32, b.re as f32) && same(a.im as f32, b.im as f32),
    );
}

#[test]
fn indices_of_true_elements_are_found_and_no_more_than_there_is_room_for() {
    let (mut operations, mut memories, mut masks) = (Vec::new(), Vec::new(), Vec::new());
    for length in [1, 4095, 4096, 16_384, 16_385, 50_001] {
        let truth: Vec<bool> = noise(length).map(|x| x % 3 == 0).collect();
        let expected: Vec<i64> = (0..length).filter(|&i| truth[i]).map(|i| i as i64).collect();
        let mask = Memory::new(&truth);
        for missing in [0, 5.min(expected.len())] {
            let most = expected.len() - missing;
            let (narrow, wide) = (Memory::<i32>::zeros(length), Memory::<i64>::zeros(length));
            for output in [narrow.operand(&[1]), wide.operand(&[1])] {
                let (mask, values) = (mask.operand(&[1]), None);
                operations.push(Description::Nonzero(Nonzero {
                    length,
                    most,
                    mask,
                    values,
                    output,
                }));
            }
            let values = Memory::new(&(0..length as i64).map(|i| 3 * i).collect::<Vec<_>>());
            let kept = Memory::<i64>::zeros(length);
            let (mask, output) = (mask.operand(&[1]), kept.operand(&[1]));
            let of_values = Some(values.operand(&[1]));
            operations.push(Description::Nonzero(Nonzero {
                length,
                most,
                mask,
                values: of_values,
                output,
            }));
            memories.push((most, expected.clone(), narrow, wide, values, kept));
        }
        masks.push(mask);
    }
    if !run(&operations) {
        return;
    }
    for (most, expected, narrow, wide, _values, kept) in memories {
        let narrow: Vec<i64> = narrow.values().into_iter().map(i64::from).collect();
        let kept: Vec<i64> = kept.values().into_iter().map(|value| value / 3).collect();
        for found in [narrow, wide.values(), kept] {
            assert_eq!(found[..most], expected[..most]);
            assert!(found[most..].iter().all(|&index| index == 0), "nothing behind the room");
        }
    }
}
