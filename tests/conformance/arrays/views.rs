//! Views: positive, negative and zero strides, broadcasting, shapes, and writes through views.

use crate::context::{Context, counting};
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, for_every_type, samples};
use gpuarray::array::functions;
use gpuarray::{Array, DType, DeviceArray, Element, IndexItem, Layout, Order, SliceBounds};
use std::sync::Arc;

tests![
    slices_pick_what_python_picks,
    a_slice_outside_the_axis_is_cut_off,
    negative_steps_walk_backwards,
    an_index_removes_its_axis,
    arrays_of_every_type_can_be_strided,
    transposed_arrays_keep_their_memory_order_in_results,
    broadcast_axes_repeat_their_elements,
    arrays_without_axes_have_one_element,
    arrays_without_elements_do_nothing,
    writing_through_a_view_changes_the_array,
    an_overlapping_update_reads_before_it_writes,
    a_reversed_update_reads_before_it_writes,
    a_transposed_update_reads_before_it_writes,
    reshaping_is_a_view_where_strides_allow,
    fortran_order_is_kept,
    bytes_can_be_seen_as_another_type,
    parts_of_complex_numbers_are_views,
    operations_mix_any_strides,
    external_layouts_describe_any_view,
    records_are_copied_whole,
    records_of_a_program_are_elements,
];

fn slice(start: Option<isize>, stop: Option<isize>, step: isize) -> IndexItem {
    IndexItem::Slice(SliceBounds { start, stop, step: Some(step) })
}

fn slices_pick_what_python_picks(context: &Context) -> Outcome {
    let array = context.counting(&[10])?;
    for (item, expected) in [
        (slice(Some(2), Some(5), 1), vec![2, 3, 4]),
        (slice(None, None, 3), vec![0, 3, 6, 9]),
        (slice(Some(-3), None, 1), vec![7, 8, 9]),
        (slice(None, Some(-8), 1), vec![0, 1]),
        (slice(Some(5), Some(2), 1), vec![]),
        (slice(Some(1), Some(-1), 4), vec![1, 5]),
    ] {
        assert_eq!(array.index(&[item])?.to_vec()?, expected, "{item:?}");
    }
    Ok(())
}

fn a_slice_outside_the_axis_is_cut_off(context: &Context) -> Outcome {
    let array = context.counting(&[4])?;
    for (item, expected) in [
        (slice(Some(-100), Some(100), 1), vec![0, 1, 2, 3]),
        (slice(Some(2), Some(isize::MAX), 1), vec![2, 3]),
        (slice(Some(isize::MIN), Some(1), 1), vec![0]),
        (slice(Some(isize::MAX), Some(isize::MIN), -1), vec![3, 2, 1, 0]),
        (slice(None, None, isize::MAX), vec![0]),
        (slice(None, None, isize::MIN), vec![3]),
        (slice(Some(9), None, 1), vec![]),
    ] {
        assert_eq!(array.index(&[item])?.to_vec()?, expected, "{item:?}");
    }
    Ok(())
}

fn negative_steps_walk_backwards(context: &Context) -> Outcome {
    let array = context.counting(&[3, 4])?;
    let turned = array.index(&[slice(None, None, -1), slice(None, None, -2)])?;
    assert_eq!(turned.shape(), [3, 2]);
    assert_eq!(turned.to_vec()?, [11, 9, 7, 5, 3, 1]);
    let back = turned.index(&[slice(None, None, -1), slice(None, None, -1)])?;
    assert_eq!((&back + &turned)?.to_vec()?, [12; 6]);
    Ok(())
}

fn an_index_removes_its_axis(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3, 4])?;
    assert_eq!(array.index(&[1.into(), (-1).into()])?.to_vec()?, [20, 21, 22, 23]);
    let last = array.index(&[IndexItem::Ellipsis, 3.into()])?;
    assert_eq!((last.shape(), last.to_vec()?), (&[2, 3][..], vec![3, 7, 11, 15, 19, 23]));
    let new = array.index(&[0.into(), IndexItem::NewAxis, 1.into()])?;
    assert_eq!((new.shape(), new.to_vec()?), (&[1, 4][..], vec![4, 5, 6, 7]));
    assert_eq!(array.index(&[1.into(), 2.into(), 3.into()])?.item()?, 23);
    Ok(())
}

fn arrays_of_every_type_can_be_strided(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let host = samples::<T>(0, 60);
        let array = context.array(&[6, 10], &host)?;
        let view = array.index(&[slice(None, None, -2), slice(Some(1), None, 3)])?;
        let expected: Vec<T> = [5, 3, 1]
            .iter()
            .flat_map(|row| [1, 4, 7].map(|column| host[row * 10 + column]))
            .collect();
        assert_eq!(view.to_vec()?, expected);
        let turned = view.transpose(None)?;
        let sum = (&turned + &turned)?.transpose(None)?.to_vec()?;
        assert_eq!(sum, expected.iter().map(|&x| x.plus(x)).collect::<Vec<_>>());
        Ok(())
    }
    for_every_type!(context from 1, check(context));
    Ok(())
}

fn transposed_arrays_keep_their_memory_order_in_results(context: &Context) -> Outcome {
    let array = context.counting(&[3, 4])?;
    let turned = array.transpose(None)?;
    let sum = (&turned + 1)?;
    assert_eq!(sum.layout().strides(), [4, 16]);
    assert_eq!(sum.to_vec()?, [1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]);
    let cube = context.counting(&[2, 3, 4])?.transpose(Some(&[2, 0, 1]))?;
    assert_eq!(cube.shape(), [4, 2, 3]);
    let copy = cube.copy()?;
    assert_eq!(copy.layout().strides(), cube.layout().strides());
    assert_eq!(copy.to_vec()?, cube.to_vec()?);
    Ok(())
}

fn broadcast_axes_repeat_their_elements(context: &Context) -> Outcome {
    let (row, column) = (context.counting(&[1, 4])?, context.counting(&[3, 1])?);
    let expected: Vec<i32> = (0..12).map(|i| i % 4 + 10 * (i / 4)).collect();
    let sum = (&row + &(&column * 10)?)?;
    assert_eq!((sum.shape(), sum.to_vec()?), (&[3, 4][..], expected));
    let repeated = context.counting(&[2])?.broadcast_to(&[3, 2])?;
    assert_eq!(repeated.to_vec()?, [0, 1, 0, 1, 0, 1]);
    assert_eq!(repeated.sum()?, 3);
    let mut grid = context.counting(&[2, 3])?;
    grid.update(functions::Add, &context.counting(&[3])?)?;
    assert_eq!(grid.to_vec()?, [0, 2, 4, 3, 5, 7]);
    Ok(())
}

fn arrays_without_axes_have_one_element(context: &Context) -> Outcome {
    let mut scalar = context.array(&[], &[5i64])?;
    assert_eq!((scalar.shape().len(), scalar.size()), (0, 1));
    assert_eq!((&scalar + &scalar)?.item()?, 10);
    assert_eq!(scalar.sum()?, 5);
    scalar.fill(7)?;
    assert_eq!((&scalar + &context.array(&[2], &[1, 2])?)?.to_vec()?, [8, 9]);
    assert_eq!(scalar.transpose(None)?.reshape(&[1, 1])?.to_vec()?, [7]);
    assert_eq!(scalar.index(&[IndexItem::NewAxis])?.shape(), [1]);
    Ok(())
}

fn arrays_without_elements_do_nothing(context: &Context) -> Outcome {
    let mut none = DeviceArray::<f32>::zeros(&context.device, &[3, 0, 2])?;
    assert_eq!((none.size(), none.as_device_pointer()), (0, 0));
    none.fill(1.0)?;
    none.update_scalar(functions::Add, 1.0)?;
    assert_eq!(none.to_vec()?, []);
    assert_eq!(none.sum()?, 0.0);
    assert_eq!((&none + &none)?.shape(), [3, 0, 2]);
    assert_eq!(none.transpose(None)?.copy()?.shape(), [2, 0, 3]);
    assert_eq!(none.reshape(&[0, 7])?.shape(), [0, 7]);
    assert_eq!(none.scan(functions::Sum, 1)?.size(), 0);
    let rows = none.reduce(functions::Sum, Some(&[1]))?;
    assert_eq!(rows.to_vec()?, [0.0; 6]);
    assert_eq!(none.reduce(functions::Product, None)?.item()?, 1.0);
    Ok(())
}

fn writing_through_a_view_changes_the_array(context: &Context) -> Outcome {
    let array = DeviceArray::<i32>::zeros(&context.device, &[4, 4])?;
    array.index(&[(1..3).into(), (1..3).into()])?.fill(1)?;
    array.transpose(None)?.index(&[0.into()])?.assign(&context.counting(&[4])?)?;
    array.index(&[slice(None, None, -3), 3.into()])?.copy_from_slice(&[8, 9])?;
    assert_eq!(array.to_vec()?, [0, 0, 0, 9, 1, 1, 1, 0, 2, 1, 1, 0, 3, 0, 0, 8]);
    Ok(())
}

fn an_overlapping_update_reads_before_it_writes(context: &Context) -> Outcome {
    for count in [5isize, 1000, 300_000] {
        let array = context.counting(&[count as usize])?;
        let mut late = array.index(&[(1..).into()])?;
        late.update(functions::Add, &array.index(&[(..count - 1).into()])?)?;
        let host = counting(count as usize);
        let expected: Vec<i32> =
            (0..host.len()).map(|i| if i == 0 { 0 } else { 2 * host[i] - 1 }).collect();
        assert!(array.to_vec()? == expected, "a[1:] += a[:-1] of {count}");
        let array = context.counting(&[count as usize])?;
        array.index(&[(..count - 1).into()])?.assign(&array.index(&[(1..).into()])?)?;
        let expected: Vec<i32> = (0..count as i32).map(|i| (i + 1).min(count as i32 - 1)).collect();
        assert!(array.to_vec()? == expected, "a[:-1] = a[1:] of {count}");
    }
    Ok(())
}

fn a_reversed_update_reads_before_it_writes(context: &Context) -> Outcome {
    let mut array = context.counting(&[1001])?;
    let reversed = array.index(&[slice(None, None, -1)])?;
    array.update(functions::Add, &reversed)?;
    assert_eq!(array.to_vec()?, [1000; 1001]);
    Ok(())
}

fn a_transposed_update_reads_before_it_writes(context: &Context) -> Outcome {
    let mut array = context.counting(&[50, 50])?;
    array.update(functions::Subtract, &array.transpose(None)?)?;
    for (index, value) in array.to_vec()?.into_iter().enumerate() {
        let (row, column) = ((index / 50) as i32, (index % 50) as i32);
        assert_eq!(value, row * 50 + column - column * 50 - row);
    }
    Ok(())
}

fn reshaping_is_a_view_where_strides_allow(context: &Context) -> Outcome {
    let array = context.counting(&[4, 6])?;
    let view = array.reshape(&[2, -1, 3])?;
    assert_eq!(view.shape(), [2, 4, 3]);
    assert_eq!(view.as_device_pointer(), array.as_device_pointer());
    let turned = array.transpose(None)?.reshape(&[24])?;
    assert_ne!(turned.as_device_pointer(), array.as_device_pointer());
    let expected: Vec<i32> = (0..24).map(|i| i % 4 * 6 + i / 4).collect();
    assert_eq!(turned.to_vec()?, expected);
    let every_second = array.index(&[slice(None, None, 2)])?.reshape(&[2, 2, 3])?;
    assert_eq!(every_second.as_device_pointer(), array.as_device_pointer());
    assert_eq!(every_second.to_vec()?, [0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17]);
    Ok(())
}

fn fortran_order_is_kept(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3])?;
    let fortran = array.untyped().contiguous(Order::F)?;
    assert_eq!(fortran.strides(), [4, 8]);
    let fortran = DeviceArray::<i32>::from_untyped(fortran)?;
    assert_eq!(fortran.to_vec()?, [0, 1, 2, 3, 4, 5]);
    let sum = (&fortran + &fortran)?;
    assert!(sum.layout().is_f_contiguous());
    assert_eq!(sum.to_vec()?, [0, 2, 4, 6, 8, 10]);
    let mixed = (&fortran + &array)?;
    assert_eq!(mixed.to_vec()?, sum.to_vec()?);
    let flat = fortran.untyped().reshape(&[6], Order::F)?;
    assert_eq!(DeviceArray::<i32>::from_untyped(flat)?.to_vec()?, [0, 3, 1, 4, 2, 5]);
    Ok(())
}

fn bytes_can_be_seen_as_another_type(context: &Context) -> Outcome {
    let array = context.array(&[2, 2], &[1.0f32, -2.0, 0.0, 1.5])?;
    let bits = DeviceArray::<u32>::from_untyped(array.untyped().view(DType::UInt32)?)?;
    assert_eq!(bits.to_vec()?, [1.0f32, -2.0, 0.0, 1.5].map(f32::to_bits));
    let bytes = array.untyped().view(DType::UInt8)?;
    assert_eq!(bytes.shape(), [2, 8]);
    assert_eq!(bytes.view(DType::Float64)?.shape(), [2, 1]);
    assert!(array.index(&[(..).into(), (..1).into()])?.untyped().view(DType::UInt16).is_err());
    Ok(())
}

fn parts_of_complex_numbers_are_views(context: &Context) -> Outcome {
    let host = samples::<gpuarray::Complex<f32>>(0, 6);
    let array = context.array(&[2, 3], &host)?;
    let real = DeviceArray::<f32>::from_untyped(array.untyped().real_view())?;
    let mut imaginary = DeviceArray::<f32>::from_untyped(array.untyped().imaginary_view()?)?;
    assert_eq!(real.to_vec()?, host.iter().map(|x| x.re).collect::<Vec<_>>());
    assert_eq!(imaginary.to_vec()?, host.iter().map(|x| x.im).collect::<Vec<_>>());
    imaginary.fill(0.25)?;
    assert!(array.to_vec()?.iter().zip(&host).all(|(a, b)| a.re == b.re && a.im == 0.25));
    Ok(())
}

fn operations_mix_any_strides(context: &Context) -> Outcome {
    let shapes = context.counting(&[5, 5])?;
    let views = [
        shapes.clone(),
        shapes.transpose(None)?,
        shapes.index(&[slice(None, None, -1)])?,
        shapes.index(&[(..).into(), slice(None, None, -1)])?,
        shapes.index(&[(1..2).into()])?.broadcast_to(&[5, 5])?,
        shapes.index(&[2.into(), 3.into()])?.broadcast_to(&[5, 5])?,
    ];
    for a in &views {
        for b in &views {
            let (x, y) = (a.to_vec()?, b.to_vec()?);
            let expected: Vec<i32> = x.iter().zip(&y).map(|(x, y)| x * 100 + y).collect();
            assert_eq!((&(a * 100)? + b)?.to_vec()?, expected);
            let compared = a.zip(functions::Less, b)?.to_vec()?;
            assert!(compared.iter().zip(x.iter().zip(&y)).all(|(c, (x, y))| *c == (x < y)));
            let dot: i32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            assert_eq!(a.dot(b)?, dot);
        }
    }
    Ok(())
}

fn external_layouts_describe_any_view(context: &Context) -> Outcome {
    let base = context.counting(&[20])?;
    let memory: Arc<_> = base.untyped().memory().clone();
    // Three overlapping windows of four elements that start two elements apart.
    let layout = Layout::with_strides(&[3, 4], &[8, 4], 16, 4)?;
    let stream = context.device.default_stream();
    let windows = Array::from_memory(memory.clone(), layout, DType::Int32, stream.clone())?;
    let windows = DeviceArray::<i32>::from_untyped(windows)?;
    assert_eq!(windows.to_vec()?, [4, 5, 6, 7, 6, 7, 8, 9, 8, 9, 10, 11]);
    assert!(windows.clone().fill(0).is_err(), "some elements have two indices");
    for (strides, offset) in [([80, 4], 0), ([8, 4], 60), ([8, 3], 0), ([8, 4], 2)] {
        let layout = Layout::with_strides(&[3, 4], &strides, offset, 4)?;
        let (memory, stream) = (memory.clone(), stream.clone());
        assert!(Array::from_memory(memory, layout, DType::Int32, stream).is_err());
    }
    assert!(Layout::with_strides(&[3, 4], &[-8, 4], 8, 4).is_err());
    Ok(())
}

/// A record type defined by the program: larger than any number type, and aligned like an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Particle {
    position: [f32; 6],
    number: u64,
}

// SAFETY: six floats and an integer fill 32 bytes without padding; every bit pattern is valid.
unsafe impl Element for Particle {
    const DTYPE: DType = DType::Opaque(32);
    const ZERO: Particle = Particle { position: [0.0; 6], number: 0 };
    const ONE: Particle = Particle { position: [1.0; 6], number: 1 };
}

fn records_of_a_program_are_elements(context: &Context) -> Outcome {
    let particle = |i: u64| Particle { position: [i as f32; 6], number: i * i };
    let values: Vec<Particle> = (0..50).map(particle).collect();
    let mut array = DeviceArray::from_slice(&context.device, &values)?;
    assert_eq!(array.to_vec()?, values);
    let odd = array.index(&[slice(Some(1), None, 2)])?;
    let expected: Vec<Particle> = values.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(odd.copy()?.to_vec()?, expected);
    assert_eq!(array.index(&[7.into()])?.item()?, particle(7));
    array.index(&[slice(None, Some(25), 1)])?.assign(&odd)?;
    assert_eq!(array.to_vec()?[..25], expected);
    array.copy_from_slice(&values)?;
    assert_eq!(array.reshape(&[5, -1])?.transpose(None)?.to_vec()?[1], particle(10));
    Ok(())
}

fn records_are_copied_whole(context: &Context) -> Outcome {
    let bytes: Vec<u8> = (0..48).collect();
    let array = context.array(&[48], &bytes)?;
    let records = array.untyped().view(DType::Opaque(12))?;
    assert_eq!(records.shape(), [4]);
    let reversed = records.index(&[slice(None, None, -1)])?.copy()?;
    let seen = DeviceArray::<u8>::from_untyped(reversed.view(DType::UInt8)?)?.to_vec()?;
    let expected: Vec<u8> = bytes.chunks(12).rev().flatten().copied().collect();
    assert_eq!(seen, expected);
    Ok(())
}
