//! Gathering and scattering elements with index arrays.

use crate::context::{Context, counting};
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, for_every_type, samples};
use gpuarray::array::Integer;
use gpuarray::{DeviceArray, IndexItem, SliceBounds};

tests![
    take_picks_in_every_type,
    take_accepts_every_integer_type_of_indices,
    take_follows_any_axis_and_shape_of_indices,
    an_index_outside_the_axis_reads_zero_and_writes_nothing,
    put_stores_at_the_places_named,
    put_converts_and_broadcasts_its_values,
    strided_arrays_are_picked_from_and_stored_into,
    many_indices_are_taken,
    sequences_count_in_every_type,
];

fn take_picks_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let host = samples::<T>(0, 20);
        let array = context.array(&[20], &host)?;
        let indices = context.array(&[2, 3], &[0i32, 19, 7, -1, -20, 7])?;
        let found = array.take(&indices, 0)?;
        assert_eq!(found.shape(), [2, 3]);
        assert_eq!(found.to_vec()?, [0, 19, 7, 19, 0, 7].map(|place| host[place]));
        Ok(())
    }
    for_every_type!(context from 2, check(context));
    Ok(())
}

fn take_accepts_every_integer_type_of_indices(context: &Context) -> Outcome {
    fn check<I: Integer>(context: &Context) -> Outcome {
        let array = context.array(&[4], &[10.0f32, 11.0, 12.0, 13.0])?;
        let indices = context.array(&[3], &[3i32, 0, 2])?.cast::<I>()?;
        assert_eq!(array.take(&indices, 0)?.to_vec()?, [13.0, 10.0, 12.0]);
        Ok(())
    }
    check::<i8>(context)?;
    check::<i16>(context)?;
    check::<i32>(context)?;
    check::<i64>(context)?;
    check::<u8>(context)?;
    check::<u16>(context)?;
    check::<u32>(context)?;
    check::<u64>(context)?;
    Ok(())
}

fn take_follows_any_axis_and_shape_of_indices(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3, 4])?;
    let indices = context.array(&[2, 2], &[2i64, 0, 1, 1])?;
    let found = array.take(&indices, 1)?;
    assert_eq!(found.shape(), [2, 2, 2, 4]);
    let mut expected = Vec::new();
    for block in 0..2 {
        for row in [2, 0, 1, 1] {
            expected.extend((0..4).map(|column| block * 12 + row * 4 + column));
        }
    }
    assert_eq!(found.to_vec()?, expected);
    let scalar = context.array(&[], &[-1i32])?;
    assert_eq!(array.take(&scalar, -1)?.to_vec()?, [3, 7, 11, 15, 19, 23]);
    Ok(())
}

fn an_index_outside_the_axis_reads_zero_and_writes_nothing(context: &Context) -> Outcome {
    let array = context.array(&[3], &[1i32, 2, 3])?;
    let indices = context.array(&[6], &[0i64, 3, -4, i64::MAX, i64::MIN, -3])?;
    assert_eq!(array.take(&indices, 0)?.to_vec()?, [1, 0, 0, 0, 0, 1]);
    let huge = context.array(&[1], &[u64::MAX])?;
    assert_eq!(array.take(&huge, 0)?.to_vec()?, [0]);
    let values = context.array(&[6], &[9i32, 8, 7, 6, 5, 9])?;
    array.untyped().put(indices.untyped(), values.untyped(), 0)?;
    assert_eq!(array.to_vec()?, [9, 2, 3]);
    let none = DeviceArray::<i32>::zeros(&context.device, &[0])?;
    assert_eq!(none.take(&context.array(&[2], &[0i32, 1])?, 0)?.to_vec()?, [0, 0]);
    Ok(())
}

fn put_stores_at_the_places_named(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let mut host = vec![T::ZERO; 10];
        let array = context.array(&[10], &host)?;
        let values = samples::<T>(1, 4);
        let indices = context.array(&[4], &[9u16, 0, 4, 5])?;
        let stored = context.array(&[4], &values)?;
        array.untyped().put(indices.untyped(), stored.untyped(), 0)?;
        for (place, value) in [9, 0, 4, 5].into_iter().zip(values) {
            host[place] = value;
        }
        assert_eq!(array.to_vec()?, host);
        Ok(())
    }
    for_every_type!(context from 0, check(context));
    Ok(())
}

fn put_converts_and_broadcasts_its_values(context: &Context) -> Outcome {
    let array = DeviceArray::<f32>::zeros(&context.device, &[3, 4])?;
    let columns = context.array(&[2], &[1i32, -1])?;
    let one = context.array(&[1], &[7i64])?;
    array.untyped().put(columns.untyped(), one.untyped(), 1)?;
    assert_eq!(array.to_vec()?, [0., 7., 0., 7.].repeat(3));
    let row = context.array(&[1], &[1u8])?;
    array.untyped().put(row.untyped(), context.counting(&[4])?.untyped(), 0)?;
    assert_eq!(array.index(&[1.into()])?.to_vec()?, [0., 1., 2., 3.]);
    Ok(())
}

fn strided_arrays_are_picked_from_and_stored_into(context: &Context) -> Outcome {
    let array = context.counting(&[4, 4])?;
    let step = IndexItem::Slice(SliceBounds { step: Some(-2), ..Default::default() });
    let view = array.index(&[step, step])?;
    assert_eq!(view.to_vec()?, [15, 13, 7, 5]);
    let indices = context.array(&[3], &[1i32, 9, 0])?.index(&[step])?;
    assert_eq!(view.take(&indices, 1)?.to_vec()?, [15, 13, 7, 5]);
    let values = context.array(&[2, 2], &[-1, -2, -3, -4])?.transpose(None)?;
    view.untyped().put(indices.untyped(), values.untyped(), 0)?;
    assert_eq!(view.to_vec()?, [-1, -3, -2, -4]);
    assert_eq!(array.index(&[0.into()])?.to_vec()?, [0, 1, 2, 3]);
    Ok(())
}

fn many_indices_are_taken(context: &Context) -> Outcome {
    let count = 200_000usize;
    let places: Vec<i32> = counting(count).iter().map(|i| (i * 7919 + 13) % count as i32).collect();
    let array = DeviceArray::<i32>::sequence(&context.device, 0, 2, count)?;
    let indices = context.array(&[count], &places)?;
    let found = array.take(&indices, 0)?.to_vec()?;
    assert!(found.iter().zip(&places).all(|(value, place)| *value == 2 * place));
    Ok(())
}

fn sequences_count_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let device = &context.device;
        for count in [0, 1, 2, 5] {
            let found = DeviceArray::<T>::sequence(device, T::ZERO, T::ONE, count)?;
            let mut next = T::ZERO;
            for value in found.to_vec()? {
                assert_eq!(value, next);
                next = next.plus(T::ONE);
            }
        }
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    let down = DeviceArray::<f64>::sequence(&context.device, 1.0, -0.25, 6)?;
    assert_eq!(down.to_vec()?, [1.0, 0.75, 0.5, 0.25, 0.0, -0.25]);
    Ok(())
}
