//! Typed arrays: operators on either side, typed values, streams, and copies that do not wait.

use crate::context::{Context, Gate, expect_error, pause};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions::{Any, Less, Sqrt};
use gpuarray::{CaptureMode, Complex, DeviceArray, ErrorKind, PinnedBuffer};

tests![
    numbers_and_arrays_stand_on_either_side,
    updates_take_arrays_and_numbers,
    functions_have_values_of_their_own_type,
    reductions_go_along_axes,
    arrays_are_made_on_a_stream,
    pinned_copies_return_their_buffers,
    a_pinned_copy_is_not_waited_for needs [Progress],
    a_forgotten_copy_keeps_its_buffer,
    more_elements_than_the_host_has_memory_for_are_refused,
    a_capture_has_no_copy_that_owns_its_buffer needs [Graphs],
];

fn numbers_and_arrays_stand_on_either_side(context: &Context) -> Outcome {
    let (a, b) = (context.array(&[3], &[1.0f32, 2.0, 4.0])?, context.array(&[3], &[8.0f32; 3])?);
    assert_eq!((2.0 * &a)?.to_vec()?, [2.0, 4.0, 8.0]);
    assert_eq!((1.0 - &a)?.to_vec()?, [0.0, -1.0, -3.0]);
    assert_eq!((8.0 / a.clone())?.to_vec()?, [8.0, 4.0, 2.0]);
    assert_eq!((a.clone() + b.clone())?.to_vec()?, [9.0, 10.0, 12.0]);
    assert_eq!((a.clone() - &b)?.to_vec()?, [-7.0, -6.0, -4.0]);
    assert_eq!((&b % a.clone())?.to_vec()?, [0.0; 3]);
    assert_eq!((-(a * b)?)?.to_vec()?, [-8.0, -16.0, -32.0]);
    let bits = context.array(&[2], &[0b1100u8, 0b1010])?;
    assert_eq!((&bits & 0b0110)?.to_vec()?, [0b0100, 0b0010]);
    assert_eq!((0b0001 | &bits)?.to_vec()?, [0b1101, 0b1011]);
    let same = bits.clone();
    assert_eq!((&bits ^ &same)?.to_vec()?, [0, 0]);
    assert_eq!((!&bits)?.to_vec()?, [0b1111_0011, 0b1111_0101]);
    assert_eq!(((&bits << 1)? >> 2)?.to_vec()?, [0b110, 0b101]);
    Ok(())
}

fn updates_take_arrays_and_numbers(context: &Context) -> Outcome {
    let mut a = context.array(&[2, 2], &[1i64, 2, 3, 4])?;
    a.add_assign(10)?;
    a.mul_assign(&context.array(&[2], &[1i64, 2])?)?;
    a.sub_assign(&a.clone())?;
    assert_eq!(a.to_vec()?, [0; 4]);
    a.add_assign(7)?;
    a.rem_assign(4)?;
    a.shl_assign(2)?;
    a.bitor_assign(1)?;
    assert_eq!(a.to_vec()?, [13; 4]);
    let wrong = context.array(&[3], &[1i64; 3])?;
    expect_error(a.add_assign(&wrong), ErrorKind::InvalidArgument, &["(3,)", "(2, 2)"])?;
    Ok(())
}

fn functions_have_values_of_their_own_type(context: &Context) -> Outcome {
    let a = context.array(&[3], &[4.0f64, f64::NAN, 9.0])?;
    assert_eq!(a.is_nan()?.to_vec()?, [false, true, false]);
    assert_eq!(a.map(Sqrt)?.index(&[2.into()])?.item()?, 3.0);
    let limits = context.array(&[3], &[5.0f64; 3])?;
    assert_eq!(a.less(&limits)?.to_vec()?, [true, false, false]);
    assert_eq!(a.zip(Less, &limits)?.to_vec()?, [true, false, false]);
    assert!(a.is_nan()?.any()? && !a.is_nan()?.all()?);
    assert!(a.is_nan()?.reduce(Any, None)?.item()?);
    let z = context.array(&[2], &[Complex::new(3.0f32, 4.0), Complex::new(0.0, -2.0)])?;
    let sizes: DeviceArray<f32> = z.abs()?;
    assert_eq!(sizes.to_vec()?, [5.0, 2.0]);
    assert_eq!(z.imaginary()?.to_vec()?, [4.0, -2.0]);
    Ok(())
}

fn reductions_go_along_axes(context: &Context) -> Outcome {
    let a = context.array(&[2, 3], &[1i32, 5, 3, 4, 2, 0])?;
    assert_eq!(a.sum_along(&[0])?.to_vec()?, [5, 7, 3]);
    assert_eq!(a.max_along(&[1])?.to_vec()?, [5, 4]);
    assert_eq!(a.all_along(&[-1])?.to_vec()?, [true, false]);
    assert_eq!((a.product()?, a.min()?, a.sum()?), (0, 0, 15));
    expect_error(a.sum_along(&[2]), ErrorKind::IndexOutOfRange, &["axis 2"])?;
    Ok(())
}

fn arrays_are_made_on_a_stream(context: &Context) -> Outcome {
    let (device, stream) = (&context.device, context.stream()?);
    let a = DeviceArray::from_shaped_on(device, &stream, &[2, 2], &[1u16, 2, 3, 4])?;
    let b = DeviceArray::full_on(device, &stream, &[2], 5u16)?;
    let c = DeviceArray::<u16>::zeros_on(device, &stream, &[2])?;
    let d = DeviceArray::<u16>::ones_on(device, &stream, &[2])?;
    let e = DeviceArray::sequence_on(device, &stream, 10u16, 5, 2)?;
    let f = DeviceArray::from_slice_on(device, &stream, &[4u16, 3])?;
    for array in [&a, &b, &c, &d, &e, &f] {
        assert_eq!(array.stream().id(), stream.id());
        assert!(array.untyped().memory().is_used_only_on(stream.as_ref()));
    }
    assert_eq!((&(&a + &b)? + &c)?.to_vec()?, [6, 7, 8, 9]);
    assert_eq!((&(&d + &e)? + &f)?.to_vec()?, [15, 19]);
    Ok(())
}

fn pinned_copies_return_their_buffers(context: &Context) -> Outcome {
    let mut buffer = PinnedBuffer::<i32>::new(&context.device, 6)?;
    assert_eq!(buffer[..], [0; 6]);
    buffer.copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    let mut a = DeviceArray::<i32>::zeros_on(&context.device, &context.stream()?, &[2, 3])?;
    let buffer = a.copy_from_pinned(buffer)?.wait()?;
    assert_eq!(a.to_vec()?, [1, 2, 3, 4, 5, 6]);
    // An array with gaps, on its way there and back.
    let mut turned = a.transpose(None)?;
    let mut buffer = turned.copy_to_pinned(buffer)?.wait()?;
    assert_eq!(buffer[..], [1, 4, 2, 5, 3, 6]);
    buffer.reverse();
    turned.copy_from_pinned(buffer)?.wait()?;
    assert_eq!(turned.to_vec()?, [6, 3, 5, 2, 4, 1]);
    let short = PinnedBuffer::<i32>::new(&context.device, 5)?;
    expect_error(a.copy_to_pinned(short), ErrorKind::InvalidArgument, &["5", "(2, 3)"])?;
    let none = DeviceArray::<f64>::zeros(&context.device, &[0])?;
    let empty = PinnedBuffer::<f64>::new(&context.device, 0)?;
    assert!(none.copy_to_pinned(empty)?.wait()?.is_empty());
    Ok(())
}

fn a_pinned_copy_is_not_waited_for(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let a = DeviceArray::full_on(&context.device, &stream, &[100], 7i32)?;
    let buffer = PinnedBuffer::new(&context.device, 100)?;
    stream.synchronize()?;
    let gate = Gate::on(stream.as_ref())?;
    let pending = a.copy_to_pinned(buffer)?;
    // The copy keeps what it reads.
    drop(a);
    pause();
    assert!(!pending.is_done()?);
    gate.open();
    assert_eq!(pending.wait()?[..], [7; 100]);
    Ok(())
}

fn a_forgotten_copy_keeps_its_buffer(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut a = DeviceArray::full_on(&context.device, &stream, &[50], 3u8)?;
    std::mem::forget(a.copy_to_pinned(PinnedBuffer::new(&context.device, 50)?)?);
    let mut ones = PinnedBuffer::new(&context.device, 50)?;
    ones.fill(1);
    // Dropped, it waits.
    drop(a.copy_from_pinned(ones)?);
    assert_eq!(a.to_vec()?, [1; 50]);
    Ok(())
}

fn more_elements_than_the_host_has_memory_for_are_refused(context: &Context) -> Outcome {
    // An element for many: the device has a single one of them.
    let many = DeviceArray::<f32>::ones(&context.device, &[1])?.broadcast_to(&[1 << 50])?;
    expect_error(many.to_vec(), ErrorKind::OutOfMemory, &["1125899906842624 elements"])
}

fn a_capture_has_no_copy_that_owns_its_buffer(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let a = DeviceArray::full_on(&context.device, &stream, &[10], 3u8)?;
    let buffer = PinnedBuffer::new(&context.device, 10)?;
    stream.begin_capture(CaptureMode::default())?;
    let refused = a.copy_to_pinned(buffer);
    stream.end_capture()?;
    expect_error(refused, ErrorKind::InvalidArgument, &["captures"])?;
    assert_eq!(a.copy_to_pinned(PinnedBuffer::new(&context.device, 10)?)?.wait()?[..], [3; 10]);
    Ok(())
}
