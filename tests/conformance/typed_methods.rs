//! Methods of typed arrays beside functions of elements, indices as Rust writes them, and records.

use crate::context::{Context, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE};
use gpuarray::random::{Distribution, Generator};
use gpuarray::{DeviceArray, ErrorKind, IndexItem, LaunchConfig, SliceBounds, Strided, f16, s};

tests![
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

gpuarray::record! {
    /// The structure that the kernel `record` takes.
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
