//! Typed arrays: operators with scalars on either side, typed values, streams, asynchronous copies, methods that
//! correspond to elementwise functions, indices in Rust syntax, and records.

use crate::context::{Context, Gate, expect_error, pause};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE};
use gpuarray::array::functions::{Any, Less, Sqrt};
use gpuarray::random::{Distribution, Generator};
use gpuarray::{
    CaptureMode, Complex, DeviceArray, ErrorKind, IndexItem, LaunchConfig, PinnedBuffer,
    SliceBounds, Strided, f16, s,
};

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
    statistics_have_the_type_of_means,
    orders_and_selections_keep_their_types,
    matrices_are_multiplied,
    arrays_are_joined_along_an_axis,
    what_cannot_be_joined_is_named,
    elements_go_to_another_device,
    random_numbers_repeat,
    ranges_are_those_of_rust,
    a_record_is_an_argument needs [Kernels],
    a_launch_is_put_together needs [Kernels],
    a_view_with_gaps_is_no_argument needs [Kernels],
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
    // An array with gaps, copied in both directions.
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
    // The pending copy keeps its source alive.
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
    // Dropping a pending copy waits for it.
    drop(a.copy_from_pinned(ones)?);
    assert_eq!(a.to_vec()?, [1; 50]);
    Ok(())
}

fn more_elements_than_the_host_has_memory_for_are_refused(context: &Context) -> Outcome {
    // Broadcasting repeats one element, so the device allocates only that one.
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

gpuarray::record! {
    /// The structure that the kernel `record` takes by value.
    struct Parameters {
        scale: f64,
        offset: i32,
        weights: [f32; 3],
    }
}

fn statistics_have_the_type_of_means(context: &Context) -> Outcome {
    let integers = context.array(&[2, 3], &[1, 2, 3, 4, 5, 9])?;
    let mean: f64 = integers.mean()?;
    assert_eq!(mean, 4.0);
    let along: DeviceArray<f64> = integers.mean_along(&[0])?;
    assert_eq!(along.to_vec()?, [2.5, 3.5, 6.0]);
    let (population, sample): (f64, f64) = (integers.variance(0.0)?, integers.variance(1.0)?);
    assert!((population * 6.0 - 40.0).abs() < 1e-9 && (sample * 5.0 - 40.0).abs() < 1e-9);
    let single: f32 = context.array(&[2], &[1.0f32, 5.0])?.standard_deviation(0.0)?;
    assert_eq!(single, 2.0);
    let half: f16 = context.array(&[2], &[f16::from_f32(1.0), f16::from_f32(2.0)])?.mean()?;
    assert_eq!(half.to_f32(), 1.5);
    assert_eq!(context.array(&[4], &[true, false, true, true])?.mean()?, 0.75);
    assert!(DeviceArray::<f64>::zeros(&context.device, &[0])?.mean()?.is_nan());
    expect_error(integers.mean_along(&[2]), ErrorKind::IndexOutOfRange, &["axis", "2"])
}

fn orders_and_selections_keep_their_types(context: &Context) -> Outcome {
    let mut array = context.array(&[5], &[3.0f32, 0.0, -1.0, 0.0, 2.0])?;
    assert_eq!(array.sort(0)?.to_vec()?, [-1.0, 0.0, 0.0, 2.0, 3.0]);
    let order: DeviceArray<i64> = array.argsort(-1)?;
    assert_eq!(order.to_vec()?, [2, 1, 3, 4, 0]);
    assert_eq!(array.take(&order, 0)?.to_vec()?, array.sort(0)?.to_vec()?);
    assert_eq!((array.nonzero()?.to_vec()?, array.count_nonzero()?), (vec![0, 2, 4], 3));
    let mask = context.array(&[5], &[true, false, false, true, true])?;
    assert_eq!(array.compress(&mask)?.to_vec()?, [3.0, 0.0, 2.0]);
    array.put(&context.array(&[2], &[-1i32, 0])?, &context.array(&[2], &[8.0f32, 9.0])?, 0)?;
    assert_eq!(array.to_vec()?, [9.0, 0.0, -1.0, 0.0, 8.0]);
    expect_error(array.sort(1), ErrorKind::IndexOutOfRange, &["axis"])
}

fn matrices_are_multiplied(context: &Context) -> Outcome {
    let left = context.array(&[2, 3], &[1i64, 2, 3, 4, 5, 6])?;
    let right = context.array(&[3, 1], &[1i64, 0, -1])?;
    let product = left.matmul(&right)?;
    assert_eq!((product.shape(), product.to_vec()?), (&[2, 1][..], vec![-2, -2]));
    expect_error(left.matmul(&left), ErrorKind::InvalidArgument, &["(2, 3)"])
}

fn arrays_are_joined_along_an_axis(context: &Context) -> Outcome {
    let array = context.counting(&[2, 3])?;
    let turned = array.transpose(None)?;
    let rows = DeviceArray::concatenate(&[&array, &array.index(&s![..1])?], 0)?;
    assert_eq!((rows.shape(), rows.to_vec()?), (&[3, 3][..], vec![0, 1, 2, 3, 4, 5, 0, 1, 2]));
    let columns = DeviceArray::concatenate(&[&turned, &turned.index(&s![.., ..;-1])?], -1)?;
    assert_eq!(columns.to_vec()?, [0, 3, 3, 0, 1, 4, 4, 1, 2, 5, 5, 2]);
    let alone = DeviceArray::concatenate(&[&array], 1)?;
    assert_ne!(alone.as_device_pointer(), array.as_device_pointer());
    let none = array.index(&s![.., 0..0])?;
    assert_eq!(DeviceArray::concatenate(&[&none, &none], 0)?.shape(), [4, 0]);
    Ok(())
}

fn what_cannot_be_joined_is_named(context: &Context) -> Outcome {
    let (array, kind) = (context.counting(&[2, 3])?, ErrorKind::InvalidArgument);
    expect_error(DeviceArray::<i32>::concatenate(&[], 0), kind, &["arrays is empty"])?;
    let other = context.counting(&[2, 4])?;
    expect_error(DeviceArray::concatenate(&[&array, &other], 0), kind, &["arrays[1]", "(2, 4)"])?;
    let flat = context.counting(&[3])?;
    expect_error(DeviceArray::concatenate(&[&array, &array, &flat], 0), kind, &["arrays[2]"])?;
    expect_error(DeviceArray::concatenate(&[&array], 2), ErrorKind::IndexOutOfRange, &["axis"])?;
    let wide = array.untyped().astype(gpuarray::DType::Int64)?;
    let joined = gpuarray::Array::concatenate(&[array.untyped(), &wide], 0);
    expect_error(joined, ErrorKind::InvalidType, &["arrays[1]", "int64", "int32"])
}

fn elements_go_to_another_device(context: &Context) -> Outcome {
    let array = context.counting(&[3, 4])?.transpose(None)?;
    let host = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    let there = array.to_device(&host)?;
    assert_eq!(there.device().id(), host.id());
    assert_eq!((there.shape(), there.to_vec()?), (array.shape(), array.to_vec()?));
    assert_eq!(there.to_device(&context.device)?.to_vec()?, array.to_vec()?);
    Ok(())
}

fn random_numbers_repeat(context: &Context) -> Outcome {
    let mut first = DeviceArray::<f32>::zeros(&context.device, &[1000])?;
    let mut second = first.copy()?;
    first.fill_uniform(7)?;
    second.index(&s![..;2])?.copy()?.fill_uniform(8)?;
    second.fill_uniform(7)?;
    assert_eq!(first.to_vec()?, second.to_vec()?);
    assert!(first.to_vec()?.iter().all(|it| (0.0..1.0).contains(it)));
    assert!((first.mean()? - 0.5).abs() < 0.05);
    let seeds: Vec<u32> = (0..Generator::Xorwow.count() as u32).collect();
    let words = Generator::Xorwow.seeded(&seeds, 0).expect("memory").expect("pseudo-random");
    let mut states = context.array(&[words.len()], &words)?;
    let normal = Distribution::Normal;
    first.fill_random(Generator::Xorwow, &mut states, normal)?;
    second.fill_random(Generator::Xorwow, &mut states, normal)?;
    assert_ne!(first.to_vec()?, second.to_vec()?, "the states have advanced");
    assert!(first.mean()?.abs() < 0.15 && (first.standard_deviation(0.0)? - 1.0).abs() < 0.15);
    let refused =
        second.fill_random(Generator::Xorwow, &mut context.array(&[3], &[1u32; 3])?, normal);
    expect_error(refused, ErrorKind::InvalidArgument, &["states"])
}

fn ranges_are_those_of_rust(context: &Context) -> Outcome {
    let array = context.counting(&[10])?;
    let (start, end) = (2_usize, 5_usize);
    for (item, expected) in [
        (IndexItem::from(start..end), vec![2, 3, 4]),
        ((start..=end).into(), vec![2, 3, 4, 5]),
        ((..=1).into(), vec![0, 1]),
        ((7..).into(), vec![7, 8, 9]),
        ((-3..=-1).into(), vec![7, 8, 9]),
        ((..=-2_isize).into(), vec![0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ((8..usize::MAX).into(), vec![8, 9]),
        ((8..=usize::MAX).into(), vec![8, 9]),
        (SliceBounds::from(..).step_by(-4).into(), vec![9, 5, 1]),
        (SliceBounds::from(1..8).step_by(3).into(), vec![1, 4, 7]),
    ] {
        assert_eq!(array.index(&[item])?.to_vec()?, expected, "{item:?}");
    }
    let matrix = context.counting(&[3, 4])?;
    assert_eq!(matrix.index(&s![1_usize.., ..;2])?.to_vec()?, [4, 6, 8, 10]);
    assert_eq!(matrix.index(&s![-1, IndexItem::NewAxis, 1..3])?.shape(), [1, 2]);
    expect_error(matrix.index(&s![usize::MAX]), ErrorKind::IndexOutOfRange, &["axis 0"])?;
    expect_error(matrix.index(&s![..;0]), ErrorKind::InvalidArgument, &["step"])
}

fn a_record_is_an_argument(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "record")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<f64>::zeros(&context.device, &[4])?;
    let parameters = Parameters { scale: -0.5, offset: -7, weights: [1.0, 2.0, 3.0] };
    // SAFETY: these are the kernel's parameters, and it writes four numbers.
    unsafe { kernel.launch(ONE, &stream, (&mut out, parameters, 99))? };
    assert_eq!(out.to_vec()?, [-0.5, -7.0, 321.0, 99.0]);
    let all = context.array(&[2], &[parameters, Parameters { offset: 1, ..parameters }])?;
    assert_eq!(all.index(&s![1])?.item()?.offset, 1);
    Ok(())
}

fn a_launch_is_put_together(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "axpy")?;
    let stream = context.stream()?;
    let x = DeviceArray::<f32>::full(&context.device, &[300], 3.0)?;
    let mut y = DeviceArray::<f32>::ones(&context.device, &[300])?;
    let launch = |y: &mut DeviceArray<f32>, blocks| {
        let (factor, n) = (2.0f32, 300);
        let launcher = kernel.launcher(&stream).grid([blocks, 1, 1]).block([128, 1, 1]);
        let launcher = launcher.argument(&factor).argument(&x).argument(&y).argument(&n);
        // SAFETY: these are the kernel's parameters, and it stays below `n`.
        unsafe { launcher.shared_bytes(16).launch() }
    };
    launch(&mut y, 3)?;
    assert_eq!(y.to_vec()?, [7.0; 300]);
    expect_error(launch(&mut y, 0), ErrorKind::InvalidArgument, &["grid"])?;
    assert_eq!(y.to_vec()?, [7.0; 300]);
    Ok(())
}

fn a_view_with_gaps_is_no_argument(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "axpy")?;
    let stream = context.stream()?;
    let x = DeviceArray::<f32>::full(&context.device, &[8], 3.0)?;
    let config = LaunchConfig::linear(2, 32);
    for items in [s![..;2], s![..;-1]] {
        let view = x.index(&items)?;
        let mut y = DeviceArray::<f32>::ones(&context.device, &[2])?;
        // SAFETY: two elements of each are used.
        let refused = unsafe { kernel.launch(config, &stream, (2.0f32, &view, &mut y, 2)) };
        expect_error(refused, ErrorKind::InvalidArgument, &["argument 1", "strides", "copy()"])?;
        assert_eq!(y.to_vec()?, [1.0; 2], "nothing was queued");
    }
    let (part, y) = (x.index(&s![4..])?, DeviceArray::<f32>::ones(&context.device, &[4])?);
    let strided = y.index(&s![..;2])?;
    // SAFETY: the kernel writes one element, which is the view's first.
    unsafe { kernel.launch(config, &stream, (2.0f32, &part, Strided(&mut strided.clone()), 1))? };
    assert_eq!(y.to_vec()?, [7.0, 1.0, 1.0, 1.0]);
    Ok(())
}
