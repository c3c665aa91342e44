//! Reductions, dot products and scans.

use crate::context::{Context, counting};
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, assert_near, for_every_type, samples};
use gpuarray::array::functions;
use gpuarray::function::Reduction;
use gpuarray::{Array, DType, DeviceArray, Scalar};

tests![
    sums_and_products_agree_with_the_reference_in_every_type,
    any_and_all_agree_with_the_reference_in_every_type,
    the_smallest_and_largest_are_found_anywhere,
    axes_are_reduced_one_by_one_and_together,
    reduced_axes_can_stay,
    a_reduction_is_stored_where_it_is_asked_for,
    means_and_variances_follow_axes,
    positions_and_variances_agree_with_the_reference_in_every_layout,
    elements_that_are_not_zero_are_counted,
    strided_arrays_are_reduced,
    a_sum_keeps_its_precision,
    a_sum_is_the_same_each_time,
    a_sum_can_be_wider_than_its_elements,
    dot_products_agree_with_the_reference_in_every_type,
    a_subset_is_reduced,
    running_values_agree_with_the_reference_in_every_type,
    running_values_follow_any_axis,
    exclusive_running_values_start_with_the_initial_one,
    long_running_sums_are_exact,
];

fn sums_and_products_agree_with_the_reference_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        for count in [1, 2, 7, 8, 9, 31, 128] {
            let host = samples::<T>(0, count);
            let array = context.array(&[count], &host)?;
            let total = host.iter().copied().fold(T::ZERO, T::plus);
            assert_near(&[array.sum()?], &[total]);
            let few = array.index(&[(..count.min(6) as isize).into()])?;
            let product = host.iter().copied().take(6).fold(T::ONE, T::times);
            assert_near(&[few.reduce(functions::Product, None)?.item()?], &[product]);
        }
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    Ok(())
}

fn any_and_all_agree_with_the_reference_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let (zero, one) = (T::ZERO, T::ONE);
        for host in [vec![], vec![zero], vec![one], vec![zero, one], vec![one; 40]] {
            let array = context.array(&[host.len()], &host)?;
            for (reduction, expected) in [
                (Reduction::Any, host.iter().any(|&x| x != zero)),
                (Reduction::All, host.iter().all(|&x| x != zero)),
            ] {
                let found = array.untyped().reduce(reduction, T::DTYPE, None, false)?;
                assert_eq!(DeviceArray::<bool>::from_untyped(found)?.item()?, expected);
            }
        }
        Ok(())
    }
    for_every_type!(context from 2, check(context));
    Ok(())
}

fn the_smallest_and_largest_are_found_anywhere(context: &Context) -> Outcome {
    let count = 5000usize;
    for place in [0, 1, 63, 64, 2500, count - 1] {
        let mut host = vec![0.5f32; count];
        host[place] = -3.0;
        host[(place + 7) % count] = 9.0;
        let array = context.array(&[count], &host)?;
        assert_eq!((array.min()?, array.max()?), (-3.0, 9.0), "at {place}");
    }
    let bytes = context.array(&[3], &[-128i8, 127, 0])?;
    assert_eq!((bytes.min()?, bytes.max()?), (-128, 127));
    let wide = context.array(&[2], &[u64::MAX, 1])?;
    assert_eq!((wide.min()?, wide.max()?), (1, u64::MAX));
    Ok(())
}

fn axes_are_reduced_one_by_one_and_together(context: &Context) -> Outcome {
    let shape = [3usize, 4, 5];
    let array = context.counting(&shape)?;
    for mask in 0..8usize {
        let axes: Vec<isize> = (0..3).filter(|axis| mask >> axis & 1 == 1).collect();
        // The index along a reduced axis counts as zero.
        let kept: Vec<usize> = (0..3).filter(|axis| mask >> axis & 1 == 0).collect();
        let mut expected = vec![0i32; kept.iter().map(|&axis| shape[axis]).product()];
        for (position, value) in counting(60).into_iter().enumerate() {
            let index = [position / 20, position / 5 % 4, position % 5];
            let place = kept.iter().fold(0, |place, &axis| place * shape[axis] + index[axis]);
            expected[place] += value;
        }
        let found = array.reduce(functions::Sum, Some(&axes))?;
        assert_eq!(found.to_vec()?, expected, "axes {axes:?}");
        let negative: Vec<isize> = axes.iter().map(|axis| axis - 3).collect();
        assert_eq!(array.reduce(functions::Sum, Some(&negative))?.to_vec()?, expected);
    }
    Ok(())
}

fn reduced_axes_can_stay(context: &Context) -> Outcome {
    let array = context.counting(&[3, 4])?;
    let kept = array.untyped().reduce(Reduction::Maximum, DType::Int32, Some(&[1]), true)?;
    assert_eq!(kept.shape(), [3, 1]);
    assert_eq!(DeviceArray::<i32>::from_untyped(kept)?.to_vec()?, [3, 7, 11]);
    let all = array.untyped().reduce(Reduction::Sum, DType::Int32, None, true)?;
    assert_eq!(all.shape(), [1, 1]);
    Ok(())
}

fn a_reduction_is_stored_where_it_is_asked_for(context: &Context) -> Outcome {
    let array = context.counting(&[3, 4])?;
    let whole = context.array(&[8], &[-1i64; 8])?;
    let every_other = whole.index(&[gpuarray::IndexItem::Slice(gpuarray::SliceBounds {
        step: Some(2),
        ..Default::default()
    })])?;
    let (sum, dtype) = (Reduction::Sum, DType::Int32);
    array.untyped().reduce_into(sum, dtype, Some(&[0]), false, every_other.untyped())?;
    assert_eq!(whole.to_vec()?, [12, -1, 15, -1, 18, -1, 21, -1]);
    // The output may be a view of the input.
    let row = array.index(&[1.into()])?;
    array.untyped().reduce_into(Reduction::Maximum, dtype, Some(&[0]), false, row.untyped())?;
    assert_eq!(array.to_vec()?, [0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11]);
    let wrong = array.untyped().reduce_into(sum, dtype, Some(&[1]), false, row.untyped());
    assert!(wrong.is_err_and(|error| error.detail().contains("(4,)")));
    let narrow = context.array(&[4], &[0u8; 4])?;
    assert!(array.untyped().reduce_into(sum, dtype, Some(&[0]), false, narrow.untyped()).is_err());
    Ok(())
}

fn means_and_variances_follow_axes(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3])?;
    let array = array.untyped();
    let read = |found: Array| DeviceArray::<f64>::from_untyped(found)?.to_vec();
    assert_eq!(read(array.mean(None, Some(&[0]), false)?)?, [1.5, 2.5, 3.5]);
    assert_eq!(read(array.mean(None, None, true)?)?, [2.5]);
    assert_eq!(read(array.variance(None, Some(&[-1]), false, 1.0)?)?, [1.0, 1.0]);
    assert_eq!(read(array.standard_deviation(None, Some(&[0]), false, 0.0)?)?, [1.5; 3]);
    assert!(array.variance(Some(DType::Int32), None, false, 0.0).is_err());
    // The sum of these overflows float16.
    let halves = context.array(&[64], &[2048.0f32; 64])?.untyped().astype(DType::Float16)?;
    let mean = halves.mean(None, None, false)?;
    assert_eq!(mean.dtype(), DType::Float16);
    assert_eq!(DeviceArray::<f32>::from_untyped(mean.astype(DType::Float32)?)?.item()?, 2048.0);
    Ok(())
}

/// Rows and columns, short and long, in memory order and reversed: kernels read each layout differently.
fn positions_and_variances_agree_with_the_reference_in_every_layout(context: &Context) -> Outcome {
    let backwards = || {
        let step = gpuarray::SliceBounds { step: Some(-1), ..Default::default() };
        gpuarray::IndexItem::Slice(step)
    };
    for (rows, columns) in [(1, 5000), (200, 16), (7, 5)] {
        let value = |place: usize| (place * 7919 % 251) as f32;
        let mut host: Vec<f32> = (0..rows * columns).map(value).collect();
        if rows == 7 {
            host[17] = f32::NAN;
        }
        let array = context.array(&[rows, columns], &host)?;
        for is_backwards in [false, rows == 200] {
            let (array, host) = match is_backwards {
                false => (array.clone(), host.clone()),
                true => {
                    let array = array.index(&[backwards(), backwards()])?;
                    (array, host.iter().rev().copied().collect())
                }
            };
            for axis in [0, 1] {
                let (outer, inner) = if axis == 0 { (columns, rows) } else { (rows, columns) };
                let element = |outer: usize, inner: usize| match axis {
                    0 => host[inner * columns + outer],
                    _ => host[outer * columns + inner],
                };
                let first = |is_better: fn(f32, f32) -> bool, outer| {
                    let better = |best: usize, at: usize| {
                        let (best_value, value) = (element(outer, best), element(outer, at));
                        let is_it = !best_value.is_nan()
                            && (value.is_nan() || is_better(value, best_value));
                        if is_it { at } else { best }
                    };
                    (0..inner).fold(0, better) as i64
                };
                let of = |reduction| -> gpuarray::Result<Vec<i64>> {
                    let found = array.untyped().position(reduction, axis, false)?;
                    DeviceArray::<i64>::from_untyped(found)?.to_vec()
                };
                let most: Vec<i64> = (0..outer).map(|at| first(|x, y| x > y, at)).collect();
                if rows == 7 {
                    let least: Vec<i64> = (0..outer).map(|at| first(|x, y| x < y, at)).collect();
                    assert_eq!(of(Reduction::Minimum)?, least, "{rows} by {columns}, axis {axis}");
                }
                assert_eq!(of(Reduction::Maximum)?, most, "{rows} by {columns}, axis {axis}");
                if is_backwards {
                    continue;
                }
                let found = array.untyped().variance(None, Some(&[axis]), false, 0.0)?;
                let expected = (0..outer).map(|outer| {
                    let elements = || (0..inner).map(|at| f64::from(element(outer, at)));
                    let mean = elements().sum::<f64>() / inner as f64;
                    elements().map(|it| (it - mean).powi(2)).sum::<f64>() / inner as f64
                });
                let found = DeviceArray::<f32>::from_untyped(found)?.to_vec()?;
                for (found, expected) in found.into_iter().zip(expected) {
                    let is_near = (f64::from(found) - expected).abs() <= 1e-5 * expected;
                    assert!(is_near || (found.is_nan() && expected.is_nan()), "{found} {expected}");
                }
            }
        }
    }
    Ok(())
}

fn elements_that_are_not_zero_are_counted(context: &Context) -> Outcome {
    let array = context.array(&[2, 3], &[0.0f32, 2.0, 0.0, f32::NAN, -1.0, 0.0])?;
    let found = array.untyped().count_nonzero(Some(&[1]), false)?;
    assert_eq!(DeviceArray::<i64>::from_untyped(found)?.to_vec()?, [1, 2]);
    Ok(())
}

fn strided_arrays_are_reduced(context: &Context) -> Outcome {
    let array = context.counting(&[30, 40])?;
    let turned = array.transpose(None)?;
    assert_eq!(turned.sum()?, 1199 * 600);
    let columns = turned.reduce(functions::Sum, Some(&[1]))?.to_vec()?;
    assert_eq!(columns, array.reduce(functions::Sum, Some(&[0]))?.to_vec()?);
    let repeated = array.index(&[3.into()])?.broadcast_to(&[7, 40])?;
    assert_eq!(repeated.sum()?, 7 * (120..160).sum::<i32>());
    let reversed = array.index(&[gpuarray::IndexItem::Slice(gpuarray::SliceBounds {
        step: Some(-7),
        ..Default::default()
    })])?;
    let expected: i32 =
        [29, 22, 15, 8, 1].iter().map(|row| (row * 40..row * 40 + 40).sum::<i32>()).sum();
    assert_eq!(reversed.sum()?, expected);
    Ok(())
}

fn a_sum_keeps_its_precision(context: &Context) -> Outcome {
    let count = 1 << 20;
    let tenth = DeviceArray::<f32>::full(&context.device, &[count], 0.1)?;
    let exact = f64::from(0.1f32) * count as f64;
    let error = (f64::from(tenth.sum()?) - exact).abs() / exact;
    assert!(error < 1e-6, "one addition after the other would lose 1e-3, this lost {error}");
    let rows = tenth.reshape(&[1024, 1024])?.reduce(functions::Sum, Some(&[0]))?;
    assert_near(&rows.to_vec()?, &vec![0.1f32 * 1024.0; 1024]);
    Ok(())
}

fn a_sum_is_the_same_each_time(context: &Context) -> Outcome {
    let host: Vec<f32> =
        (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) as f32).sqrt()).collect();
    let array = context.array(&[host.len()], &host)?;
    let first = array.sum()?.to_bits();
    for _ in 0..10 {
        assert_eq!(array.sum()?.to_bits(), first);
    }
    Ok(())
}

fn a_sum_can_be_wider_than_its_elements(context: &Context) -> Outcome {
    let bytes = DeviceArray::<u8>::full(&context.device, &[1000], 255)?;
    let total = bytes.untyped().reduce(Reduction::Sum, DType::Int64, None, false)?;
    assert_eq!(DeviceArray::<i64>::from_untyped(total)?.item()?, 255_000);
    assert_eq!(bytes.sum()?, (255_000 % 256) as u8);
    let truth = context.array(&[5], &[true, false, true, true, false])?;
    let count = truth.untyped().reduce(Reduction::Sum, DType::Int64, None, false)?;
    assert_eq!(DeviceArray::<i64>::from_untyped(count)?.item()?, 3);
    Ok(())
}

fn dot_products_agree_with_the_reference_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let (a, b) = (samples::<T>(0, 60), samples::<T>(9, 60));
        let (x, y) = (context.array(&[6, 10], &a)?, context.array(&[6, 10], &b)?);
        let total = a.iter().zip(&b).fold(T::ZERO, |total, (&a, &b)| total.plus(a.times(b)));
        let found = x.dot(&y)?;
        // The reference rounds half-precision sums after every step; a device need not.
        let is_half = T::DTYPE.working() != T::DTYPE;
        assert!(found.near(total) || is_half, "{found:?}, not {total:?}");
        Ok(())
    }
    for_every_type!(context from 0, check(context));
    Ok(())
}

fn a_subset_is_reduced(context: &Context) -> Outcome {
    let array = context.counting(&[4, 5])?;
    let subset = context.array(&[5], &[0i32, 19, -1, 7, 7])?;
    let reduce = |reduction| -> gpuarray::Result<i32> {
        let found = array.untyped().reduce_subset(reduction, DType::Int32, subset.untyped())?;
        DeviceArray::from_untyped(found)?.item()
    };
    assert_eq!(reduce(Reduction::Sum)?, 19 + 19 + 14);
    assert_eq!(reduce(Reduction::Minimum)?, 0);
    assert_eq!(reduce(Reduction::Maximum)?, 19);
    Ok(())
}

fn running_values_agree_with_the_reference_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let host = samples::<T>(0, 50);
        let running = |start: T, combine: fn(T, T) -> T| -> Vec<T> {
            host.iter()
                .scan(start, |total, &x| {
                    *total = combine(*total, x);
                    Some(*total)
                })
                .collect()
        };
        let array = context.array(&[50], &host)?;
        assert_near(&array.scan(functions::Sum, 0)?.to_vec()?, &running(T::ZERO, T::plus));
        let product = array.index(&[(..5).into()])?.scan(functions::Product, 0)?;
        assert_near(&product.to_vec()?, &running(T::ONE, T::times)[..5]);
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    Ok(())
}

fn running_values_follow_any_axis(context: &Context) -> Outcome {
    let array = context.array(&[2, 3], &[3, 1, 2, 9, 0, 5])?;
    assert_eq!(array.scan(functions::Sum, 0)?.to_vec()?, [3, 1, 2, 12, 1, 7]);
    assert_eq!(array.scan(functions::Sum, -1)?.to_vec()?, [3, 4, 6, 9, 9, 14]);
    assert_eq!(array.scan(functions::Minimum, 1)?.to_vec()?, [3, 1, 1, 9, 0, 0]);
    assert_eq!(array.scan(functions::Maximum, 0)?.to_vec()?, [3, 1, 2, 9, 1, 5]);
    let turned = array.transpose(None)?.scan(functions::Sum, 0)?.transpose(None)?;
    assert_eq!(turned.to_vec()?, [3, 4, 6, 9, 9, 14]);
    Ok(())
}

fn exclusive_running_values_start_with_the_initial_one(context: &Context) -> Outcome {
    let array = context.array(&[4], &[1i32, 2, 3, 4])?;
    let scan = |reduction, initial| -> gpuarray::Result<Vec<i32>> {
        let found = array.untyped().scan(reduction, DType::Int32, 0, true, initial)?;
        DeviceArray::from_untyped(found)?.to_vec()
    };
    assert_eq!(scan(Reduction::Sum, None)?, [0, 1, 3, 6]);
    assert_eq!(scan(Reduction::Product, None)?, [1, 1, 2, 6]);
    assert_eq!(scan(Reduction::Sum, Some(Scalar::new(10i32)))?, [10, 11, 13, 16]);
    assert_eq!(scan(Reduction::Maximum, Some(Scalar::new(2i32)))?, [2, 2, 2, 3]);
    assert!(scan(Reduction::Minimum, None).is_err());
    Ok(())
}

fn long_running_sums_are_exact(context: &Context) -> Outcome {
    let count = 300_001usize;
    let array = DeviceArray::<i64>::sequence(&context.device, -7, 3, count)?;
    let mut total = 0i64;
    let expected: Vec<i64> = (0..count as i64)
        .map(|i| {
            total += 3 * i - 7;
            total
        })
        .collect();
    assert!(array.scan(functions::Sum, 0)?.to_vec()? == expected);
    let backwards: Array =
        array.untyped().index(&[gpuarray::IndexItem::Slice(gpuarray::SliceBounds {
            step: Some(-1),
            ..Default::default()
        })])?;
    let found = backwards.scan(Reduction::Sum, DType::Int64, 0, false, None)?;
    let found = DeviceArray::<i64>::from_untyped(found)?.to_vec()?;
    assert_eq!((found[0], found[count - 1]), (3 * (count as i64 - 1) - 7, total));
    Ok(())
}
