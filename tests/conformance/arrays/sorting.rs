//! Sorts, and the positions of nonzero elements.

use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, for_every_type, samples};
use gpuarray::{Array, DType, DeviceArray};

tests![
    short_rows_are_sorted_in_every_type,
    long_rows_are_sorted_in_every_type,
    any_axis_is_sorted,
    floating_point_numbers_have_one_order,
    elements_that_are_not_zero_are_found_in_every_type,
    elements_at_which_a_mask_is_true_are_found_in_every_type,
    true_elements_of_several_teams_of_tiles_are_found,
    nothing_is_sorted_and_found,
];

/// Returns the positions of a row's elements in ascending order; equal elements keep their order.
fn order<T: Reference>(row: &[T]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[a].parts().partial_cmp(&row[b].parts()).expect("numbers"));
    order
}

/// Sorts rows of `length` elements, most of which occur several times.
fn check<T: Reference>(context: &Context, rows: usize, length: usize) -> Outcome {
    let host = samples::<T>(5, rows * length);
    let array = context.array(&[rows, length], &host)?;
    let sorted = DeviceArray::<T>::from_untyped(array.untyped().sort(-1)?)?.to_vec()?;
    let places = DeviceArray::<i64>::from_untyped(array.untyped().argsort(-1)?)?.to_vec()?;
    for (number, row) in host.chunks(length).enumerate() {
        let expected = order(row);
        let found = number * length..(number + 1) * length;
        let name = format!("{:?}, row {number} of {length}", T::DTYPE);
        let elements: Vec<T> = expected.iter().map(|&place| row[place]).collect();
        assert!(sorted[found.clone()] == elements, "{name}: elements");
        let found: Vec<usize> = places[found].iter().map(|&place| place as usize).collect();
        assert!(found == expected, "{name}: places");
    }
    assert!(array.to_vec()? == host, "the array itself has changed");
    Ok(())
}

fn short_rows_are_sorted_in_every_type(context: &Context) -> Outcome {
    for_every_type!(context from 2, check(context, 3, 1000));
    Ok(())
}

fn long_rows_are_sorted_in_every_type(context: &Context) -> Outcome {
    for_every_type!(context from 0, check(context, 2, 70_001));
    Ok(())
}

fn any_axis_is_sorted(context: &Context) -> Outcome {
    let host = samples::<i32>(0, 60);
    let array = context.array(&[3, 4, 5], &host)?;
    for axis in 0..3 {
        let sorted = DeviceArray::<i32>::from_untyped(array.untyped().sort(axis)?)?.to_vec()?;
        let (extent, step) = [(3, 20), (4, 5), (5, 1)][axis as usize];
        for start in (0..60).filter(|place| place / step % extent == 0) {
            let line = |values: &[i32]| -> Vec<i32> {
                (0..extent).map(|k| values[start + k * step]).collect()
            };
            let mut expected = line(&host);
            expected.sort_unstable();
            assert_eq!(line(&sorted), expected, "axis {axis}");
        }
    }
    Ok(())
}

fn floating_point_numbers_have_one_order(context: &Context) -> Outcome {
    let nan = f64::NAN;
    let host = [nan, 1.0, -0.0, f64::INFINITY, 0.0, -nan, f64::NEG_INFINITY, -1.0, 5e-324, -0.0];
    // Zeros are equal and NaN sorts last; equal elements keep their order.
    let expected = [6, 7, 2, 4, 9, 8, 1, 3, 0, 5];
    for times in [1, 7001] {
        let array = context.array(&[times * host.len()], &host.repeat(times))?;
        let places = DeviceArray::<i64>::from_untyped(array.untyped().argsort(0)?)?.to_vec()?;
        // Positive and negative zero are equal, and so are NaNs.
        let groups: [&[usize]; 7] = [&[6], &[7], &[2, 4, 9], &[8], &[1], &[3], &[0, 5]];
        let all = groups.iter().flat_map(|group| {
            (0..times).flat_map(|k| group.iter().map(move |place| (k * host.len() + place) as i64))
        });
        assert_eq!(places, all.collect::<Vec<_>>(), "{times} times");
        if times == 1 {
            assert_eq!(places, expected);
        }
    }
    Ok(())
}

fn elements_that_are_not_zero_are_found_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let host = samples::<T>(0, 3000);
        let array = context.array(&[30, 100], &host)?;
        let expected = host.iter().enumerate().filter(|(_, x)| x.parts() != (0.0, 0.0));
        let expected: Vec<i64> = expected.map(|(place, _)| place as i64).collect();
        let found = array.untyped().nonzero(DType::Int64)?;
        assert_eq!(DeviceArray::<i64>::from_untyped(found)?.to_vec()?, expected, "{:?}", T::DTYPE);
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    Ok(())
}

fn elements_at_which_a_mask_is_true_are_found_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let host = samples::<T>(0, 6000);
        let truth: Vec<bool> = (0..6000).map(|i| i % 7 < 3).collect();
        let array = context.array(&[60, 100], &host)?;
        let mask = context.array(&[60, 100], &truth)?;
        // Once contiguous, once transposed.
        let both = [(array.untyped().clone(), mask.untyped().clone()), {
            let turn = |array: &Array| array.transpose(None);
            (turn(array.untyped())?, turn(mask.untyped())?)
        }];
        for (turned, (array, mask)) in both.into_iter().enumerate() {
            let place = |k: usize| if turned == 0 { k } else { k % 60 * 100 + k / 60 };
            let expected: Vec<T> =
                (0..6000).map(place).filter(|&k| truth[k]).map(|k| host[k]).collect();
            let found = DeviceArray::<T>::from_untyped(array.compress(&mask)?)?.to_vec()?;
            let parts = |all: &[T]| all.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>();
            assert_eq!(parts(&found), parts(&expected), "{:?}", T::DTYPE);
        }
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    let numbers = context.array::<i32>(&[4], &[1, 2, 3, 4])?;
    let mask = context.array(&[2, 2], &[true; 4])?;
    assert!(numbers.untyped().compress(mask.untyped()).is_err());
    assert!(numbers.untyped().compress(numbers.untyped()).is_err());
    Ok(())
}

/// On GPUs a tile has 16,384 elements and a team 256 tiles. A team also waits for the teams before
/// it.
fn true_elements_of_several_teams_of_tiles_are_found(context: &Context) -> Outcome {
    let count = 16_384 * 257 + 5;
    let truth: Vec<bool> =
        (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) % 3 == 0).collect();
    let expected: Vec<i32> = (0..count as i32).filter(|&i| truth[i as usize]).collect();
    let mask = context.array(&[count], &truth)?;
    let found = DeviceArray::<i32>::from_untyped(mask.untyped().nonzero(DType::Int32)?)?;
    assert!(found.to_vec()? == expected);
    let numbers = context.array(&[count], &(0..count as i32).collect::<Vec<_>>())?;
    let found = DeviceArray::<i32>::from_untyped(numbers.untyped().compress(mask.untyped())?)?;
    assert!(found.to_vec()? == expected);
    Ok(())
}

fn nothing_is_sorted_and_found(context: &Context) -> Outcome {
    let empty = context.array::<f32>(&[0, 3], &[])?;
    assert_eq!(empty.untyped().sort(0)?.shape(), [0, 3]);
    assert_eq!(empty.untyped().argsort(1)?.shape(), [0, 3]);
    assert_eq!(empty.untyped().nonzero(DType::Int32)?.shape(), [0]);
    assert!(empty.untyped().sort(2).is_err());
    Ok(())
}
