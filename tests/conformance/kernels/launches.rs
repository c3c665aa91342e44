//! Launches: arguments, configurations, order.

use crate::context::{Context, Gate, error_of, expect_error, pause};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE, grid, launch};
use gpuarray::launch::ArgumentList;
use gpuarray::memory::DeviceMemory;
use gpuarray::{
    Complex, DeviceArray, DeviceAttribute, ErrorKind, Kernel, LaunchConfig, Result, Scalar, f16,
};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::channel;

tests![
    arguments_are_passed_by_their_types needs [Kernels],
    arguments_of_every_type_arrive needs [Kernels],
    a_structure_is_passed_by_its_bytes needs [Kernels],
    a_structure_is_given_by_its_components needs [Kernels, ParameterInfo],
    blocks_and_threads_have_three_axes needs [Kernels],
    wrong_numbers_of_arguments_are_refused needs [Kernels, ParameterInfo],
    arguments_of_wrong_sizes_are_refused_by_position needs [Kernels, ParameterInfo],
    parameters_are_told_as_declared needs [Kernels, ParameterInfo],
    an_argument_of_too_many_bytes_is_refused needs [Kernels],
    an_empty_grid_or_block_is_refused needs [Kernels],
    extents_beyond_the_limits_are_refused_with_the_limit needs [Kernels],
    a_kernel_with_a_limit_of_its_own_is_refused_above_it needs [Kernels],
    shared_memory_goes_up_to_what_the_device_allows needs [Kernels],
    a_refused_launch_does_not_hurt_the_next needs [Kernels],
    a_launch_waits_for_other_streams_writes needs [Kernels],
    operations_wait_for_a_launch_that_writes needs [Kernels],
    a_launch_that_reads_does_not_wait_for_readers needs [Kernels, Progress],
    memory_of_a_launch_is_freed_behind_it needs [Kernels],
    freed_memory_is_no_argument needs [Kernels],
    launches_of_many_threads_do_not_mix needs [Kernels],
    the_last_destructor_of_a_thread_launches_kernels needs [Kernels],
    a_stream_of_another_device_is_refused needs [Kernels, SecondDevice],
];

fn arguments_are_passed_by_their_types(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "axpy")?;
    for stream in [context.stream()?, context.blocking_stream()?, context.device.default_stream()] {
        let n = 1000;
        let x = DeviceArray::<f32>::full(&context.device, &[n as usize], 3.0)?;
        let mut y = DeviceArray::<f32>::ones(&context.device, &[n as usize])?;
        let config = LaunchConfig::linear(n as u32, 128);
        launch(&kernel, config, &stream, (2.0f32, &x, &mut y, n))?;
        launch(&kernel, config, &stream, (0.5f32, &x, &mut y, n - 1))?;
        let values = y.to_vec()?;
        assert!(values[..999].iter().all(|&value| value == 8.5), "{:?}", &values[..4]);
        assert_eq!(values[999], 7.0, "the launch ends where it was told to");
    }
    Ok(())
}

fn arguments_of_every_type_arrive(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "types")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<f64>::zeros(&context.device, &[16])?;
    let half = f16::from_bits(0x3c01);
    let wide = Scalar::new(Complex::new(-1.5f64, 2.5));
    let integers = (true, -2i8, -300i16, -70_000i32, -(1i64 << 40));
    let (a, b, c, d, e) = integers;
    let (f, g, h, i) = (200u8, 60_000u16, 4_000_000_000u32, 1u64 << 50);
    let complex = Complex::new(0.5f32, -0.25);
    let floats = (1.25f32, -1e300f64);
    launch(
        &kernel,
        ONE,
        &stream,
        (&mut out, a, b, c, d, e, f, g, h, i, floats.0, floats.1, half, complex, wide),
    )?;
    let expected = [
        1.0,
        -2.0,
        -300.0,
        -70_000.0,
        -((1i64 << 40) as f64),
        200.0,
        60_000.0,
        4e9,
        (1u64 << 50) as f64,
        1.25,
        -1e300,
        f64::from(0x3c01),
        0.5,
        -0.25,
        -1.5,
        2.5,
    ];
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

fn a_structure_is_passed_by_its_bytes(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "record")?;
    let stream = context.stream()?;
    let out = DeviceArray::<f64>::zeros(&context.device, &[4])?;
    let mut bytes = [0u8; 24];
    bytes[..8].copy_from_slice(&(-0.5f64).to_ne_bytes());
    bytes[8..12].copy_from_slice(&(-7i32).to_ne_bytes());
    for (index, value) in [1.0f32, 2.0, 3.0].into_iter().enumerate() {
        bytes[12 + 4 * index..][..4].copy_from_slice(&value.to_ne_bytes());
    }
    let mut list = ArgumentList::new();
    assert!(list.is_empty());
    let array = out.untyped();
    list.memory(array.address(), array.memory(), gpuarray::memory::Access::Write);
    list.bytes(&bytes)?;
    list.bytes(&99i32.to_ne_bytes())?;
    for no_integer in [&[][..], &[0; 9], &[0; 40]] {
        let named = format!("integer of size {}", no_integer.len());
        expect_error(list.integer(no_integer, true), ErrorKind::InvalidArgument, &[&named])?;
    }
    assert_eq!(list.len(), 3);
    // SAFETY: these are the kernel's parameters, and it writes four numbers.
    unsafe { list.launch(kernel.as_ref(), &ONE, &stream, false)? };
    assert_eq!(out.to_vec()?, [-0.5, -7.0, 321.0, 99.0]);
    Ok(())
}

fn a_structure_is_given_by_its_components(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "record")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<f64>::zeros(&context.device, &[4])?;
    launch(&kernel, ONE, &stream, (&mut out, -0.5f64, -7, 1.0f32, 2.0f32, 3.0f32, 99))?;
    assert_eq!(out.to_vec()?, [-0.5, -7.0, 321.0, 99.0]);
    let kind = ErrorKind::InvalidArgument;
    let refused = launch(&kernel, ONE, &stream, (&mut out, 1.0f64, 1, 1.0f32, 1.0f32, 1));
    expect_error(refused, kind, &["takes 3 arguments", "6 were given"])?;
    let refused = launch(&kernel, ONE, &stream, (&mut out, 1.0f64, 1));
    expect_error(refused, kind, &["argument 1", "8 bytes", "has 24"])?;
    Ok(())
}

fn blocks_and_threads_have_three_axes(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "places")?;
    let stream = context.stream()?;
    let config = LaunchConfig::new([2, 3, 4], [4, 3, 2]);
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[24 * 24])?;
    launch(&kernel, config, &stream, (&mut out,))?;
    let mut expected = Vec::new();
    let places = |[x, y, z]: [i32; 3]| {
        let axes = (0..z).flat_map(move |z| (0..y).map(move |y| (y, z)));
        axes.flat_map(move |(y, z)| (0..x).map(move |x| (x * 10 + y) * 10 + z))
    };
    for block in places([2, 3, 4]) {
        expected.extend(places([4, 3, 2]).map(|thread| block * 1000 + thread));
    }
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

fn wrong_numbers_of_arguments_are_refused(context: &Context) -> Outcome {
    let set = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::full(&context.device, &[1], -1)?;
    let kind = ErrorKind::InvalidArgument;
    let named = |given| ["kernel set", "takes 2 arguments", given];
    expect_error(launch(&set, ONE, &stream, ()), kind, &named("0 were given"))?;
    expect_error(launch(&set, ONE, &stream, (&mut out,)), kind, &named("1 was given"))?;
    expect_error(launch(&set, ONE, &stream, (&mut out, 1, 1)), kind, &named("3 were given"))?;
    let nothing = programs::kernel(context, "nothing")?;
    let refused = launch(&nothing, ONE, &stream, (1,));
    expect_error(refused, kind, &["takes 0 arguments", "1 was given"])?;
    launch(&nothing, ONE, &stream, ())?;
    stream.synchronize()?;
    assert_eq!(out.item()?, -1, "nothing was launched");
    Ok(())
}

fn arguments_of_wrong_sizes_are_refused_by_position(context: &Context) -> Outcome {
    let axpy = programs::kernel(context, "axpy")?;
    let stream = context.stream()?;
    let x = DeviceArray::<f32>::ones(&context.device, &[4])?;
    let mut y = DeviceArray::<f32>::ones(&context.device, &[4])?;
    let kind = ErrorKind::InvalidArgument;
    let wrong = launch(&axpy, ONE, &stream, (2.0f64, &x, &mut y, 4));
    expect_error(wrong, kind, &["argument 0", "axpy", "8 bytes", "has 4"])?;
    let wrong = launch(&axpy, ONE, &stream, (2.0f32, &x, &mut y, 4usize));
    expect_error(wrong, kind, &["argument 3", "8 bytes", "has 4"])?;
    let wrong = launch(&axpy, ONE, &stream, (2.0f32, 1i32, &mut y, 4));
    expect_error(wrong, kind, &["argument 1", "4 bytes", "has 8"])?;
    stream.synchronize()?;
    assert_eq!(y.to_vec()?, [1.0; 4], "nothing was launched");
    Ok(())
}

fn parameters_are_told_as_declared(context: &Context) -> Outcome {
    let of = |name: &str| -> Result<Vec<(usize, usize)>> {
        let kernel = programs::kernel(context, name)?;
        let parameters = kernel.parameters()?.expect("this driver tells them");
        Ok(parameters.iter().map(|it| (it.offset, it.size)).collect())
    };
    assert_eq!(of("nothing")?, []);
    assert_eq!(of("axpy")?, [(0, 4), (8, 8), (16, 8), (24, 4)]);
    assert_eq!(of("record")?, [(0, 8), (8, 24), (32, 4)]);
    Ok(())
}

fn an_argument_of_too_many_bytes_is_refused(context: &Context) -> Outcome {
    let mut list = ArgumentList::new();
    list.bytes(&[0; 32 << 10])?;
    let error = error_of(list.bytes(&[0; (32 << 10) + 1]));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.detail().contains("argument 1 has a size of 32769"), "{error}");
    assert!(!programs::kernel(context, "set")?.name().is_empty());
    Ok(())
}

fn an_empty_grid_or_block_is_refused(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    for axis in 0..3 {
        for what in ["grid", "block"] {
            let mut config = ONE;
            match what {
                "grid" => config.grid[axis] = 0,
                _ => config.block[axis] = 0,
            }
            let refused = launch(&kernel, config, &stream, (&mut out, 1));
            let named = ["x", "y", "z"][axis];
            expect_error(refused, ErrorKind::InvalidArgument, &["set", what, named])?;
        }
    }
    for (config, what) in
        [(LaunchConfig::linear(4, 0), "block is [0, 1, 1]"), (LaunchConfig::linear(0, 4), "grid")]
    {
        let refused = launch(&kernel, config, &stream, (&mut out, 1));
        expect_error(refused, ErrorKind::InvalidArgument, &["set", what])?;
    }
    stream.synchronize()?;
    assert_eq!(out.item()?, 0);
    Ok(())
}

fn extents_beyond_the_limits_are_refused_with_the_limit(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    let limit = |attribute| context.device.attribute(attribute);
    let threads = limit(DeviceAttribute::MAX_THREADS_PER_BLOCK)?;
    let grid_y = limit(DeviceAttribute::MAX_GRID_DIM_Y)?;
    let block_z = limit(DeviceAttribute::MAX_BLOCK_DIM_Z)?;
    let config = |grid, block| LaunchConfig::new(grid, block);
    for (config, what, most) in [
        (config([1; 3], [threads as u32 + 1, 1, 1]), "block", threads),
        (config([1; 3], [threads as u32, 2, 1]), "block", threads),
        (config([1, grid_y as u32 + 1, 1], [1; 3]), "grid", grid_y),
        (config([1; 3], [1, 1, block_z as u32 + 1]), "block", block_z),
        (config([u32::MAX, 1, 1], [1; 3]), "grid", limit(DeviceAttribute::MAX_GRID_DIM_X)?),
    ] {
        let refused = launch(&kernel, config, &stream, (&mut out, 1));
        let named = most.to_string();
        expect_error(refused, ErrorKind::InvalidArgument, &["set", what, &named])?;
    }
    stream.synchronize()?;
    assert_eq!(out.item()?, 0);
    Ok(())
}

fn a_kernel_with_a_limit_of_its_own_is_refused_above_it(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "narrow")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[128])?;
    launch(&kernel, grid(1, 64), &stream, (&mut out,))?;
    let error = error_of(launch(&kernel, grid(1, 128), &stream, (&mut out,)));
    assert!(
        matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::LaunchFailed),
        "{error}"
    );
    assert!(!error.detail().contains("reset"), "the device is well: {error}");
    for word in ["narrow", "128", "64"] {
        assert!(error.detail().contains(word), "the text does not name {word}: {error}");
    }
    stream.synchronize()?;
    assert_eq!(out.sum()?, 63 * 64 / 2);
    Ok(())
}

/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`; 0 if the device does not have it.
const SHARED_MEMORY_OPTIN: DeviceAttribute = DeviceAttribute(97);

fn shared_memory_goes_up_to_what_the_device_allows(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let device = &context.device;
    let usual = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK)?;
    let most = device.attribute(SHARED_MEMORY_OPTIN).unwrap_or(0).max(usual) as u32;
    let mut out = DeviceArray::<i32>::zeros(device, &[1])?;
    let mut run = |kernel: &Arc<dyn Kernel>, bytes: u32| -> Result<i32> {
        let config = grid(1, 256).shared_bytes(bytes);
        launch(kernel, config, &stream, (&mut out, (bytes / 4) as i32))?;
        out.item()
    };
    for sizes in [&[1024, 48 << 10, most][..], &[most], &[most, 4, (48 << 10) + 4]] {
        // A new kernel each time, because a kernel keeps its raised limit.
        let kernel = programs::kernel(context, "dynamic")?;
        for &bytes in sizes.iter().filter(|&&bytes| bytes <= most) {
            let n = i64::from(bytes / 4);
            assert_eq!(run(&kernel, bytes)?, (n * (n - 1) / 2) as i32, "{bytes} bytes");
        }
        for bytes in [most + 4, 2 * most, u32::MAX - 3] {
            let error = error_of(run(&kernel, bytes));
            assert!(
                matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::LaunchFailed),
                "{error}"
            );
            for word in ["dynamic", &bytes.to_string(), &most.to_string()] {
                assert!(error.detail().contains(word), "the text does not name {word}: {error}");
            }
        }
        assert_eq!(run(&kernel, 40)?, 45, "it works as before");
    }
    Ok(())
}

fn a_refused_launch_does_not_hurt_the_next(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    for value in 0..20 {
        let wrong = grid(1, if value % 2 == 0 { 0 } else { 1 << 20 });
        assert!(launch(&kernel, wrong, &stream, (&mut out, -1)).is_err());
        launch(&kernel, ONE, &stream, (&mut out, value))?;
        assert_eq!(out.item()?, value);
    }
    Ok(())
}

fn a_launch_waits_for_other_streams_writes(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "sum_of")?;
    let (writer, reader) = (context.stream()?, context.stream()?);
    let mut values = DeviceArray::<i32>::zeros(&context.device, &[100])?.on(&writer)?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    // The first launch loads the kernel, which would otherwise wait for the gate.
    launch(&kernel, ONE, &reader, (&mut out, &values, 1))?;
    let gate = Gate::on(writer.as_ref())?;
    values.fill(7)?;
    launch(&kernel, ONE, &reader, (&mut out, &values, 100))?;
    pause();
    assert!(!reader.query()?, "the launch waits for the writer");
    gate.open();
    assert_eq!(out.item()?, 700);
    Ok(())
}

fn operations_wait_for_a_launch_that_writes(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let (first, second) = (context.stream()?, context.stream()?);
    let mut values = DeviceArray::<i32>::ones(&context.device, &[100])?;
    let seen = values.on(&second)?;
    launch(&kernel, grid(1, 128), &first, (&mut values, 1, 100))?;
    (&seen + &seen)?.to_vec()?;
    let gate = Gate::on(first.as_ref())?;
    launch(&kernel, grid(1, 128), &first, (&mut values, 10, 100))?;
    let doubled = (&seen + &seen)?;
    pause();
    assert!(!second.query()?, "the operation waits for the launch");
    gate.open();
    assert_eq!(doubled.to_vec()?, [24; 100]);
    Ok(())
}

fn a_launch_that_reads_does_not_wait_for_readers(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "sum_of")?;
    let (held, free) = (context.stream()?, context.stream()?);
    let values = context.counting(&[100])?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[2])?;
    let outs = [out.index(&[(..1).into()])?, out.index(&[(1..).into()])?];
    launch(&kernel, ONE, &free, (&mut out, &values, 1))?;
    free.synchronize()?;
    let gate = Gate::on(held.as_ref())?;
    let slow = (&values.on(&held)? + 1)?;
    let own = DeviceArray::<i32>::zeros(&context.device, &[1])?.on(&free)?;
    launch(&kernel, ONE, &free, (&mut own.clone(), &values, 100))?;
    assert_eq!(own.item()?, 4950);
    assert!(!held.query()?);
    gate.open();
    assert_eq!(slow.to_vec()?[99], 100);
    drop(outs);
    Ok(())
}

fn memory_of_a_launch_is_freed_behind_it(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let (home, user) = (context.stream()?, context.stream()?);
    let n = 4096;
    launch(&kernel, grid(32, 128), &user, (&mut context.counting(&[n])?, 1, n as i32))?;
    let mut first = context.counting(&[n])?.on(&home)?.copy()?;
    let gate = Gate::on(user.as_ref())?;
    launch(&kernel, grid(32, 128), &user, (&mut first, 1, n as i32))?;
    let kept = first.on(&user)?.copy()?;
    drop(first);
    // A later user of the block must not get it before the copy has read it.
    let other = DeviceArray::<i32>::full(&context.device, &[n], -5)?.on(&home)?.copy()?;
    gate.open();
    let expected: Vec<i32> = (1..=n as i32).collect();
    assert_eq!(kept.to_vec()?, expected);
    assert_eq!((other.min()?, other.max()?), (-5, -5));
    Ok(())
}

fn freed_memory_is_no_argument(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "set")?;
    let stream = context.stream()?;
    let memory = Arc::new(DeviceMemory::for_stream(&context.device, &stream, 4)?);
    launch(&kernel, ONE, &stream, (memory.clone(), 3))?;
    memory.release()?;
    let refused = launch(&kernel, ONE, &stream, (memory, 3));
    expect_error(refused, ErrorKind::InvalidHandle, &["freed"])
}

fn launches_of_many_threads_do_not_mix(context: &Context) -> Outcome {
    let add = programs::kernel(context, "add")?;
    let array = DeviceArray::<i32>::zeros(&context.device, &[1000])?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4)
            .map(|number| {
                let (add, array) = (&add, &array);
                scope.spawn(move || -> Result<()> {
                    let stream = context.stream()?;
                    let mut own = DeviceArray::<i32>::zeros(&context.device, &[1000])?;
                    for _ in 0..50 {
                        launch(add, grid(8, 128), &stream, (&mut own, number, 1000))?;
                        launch(add, grid(8, 128), &stream, (&mut array.clone(), number, 1000))?;
                    }
                    assert_eq!((own.min()?, own.max()?), (50 * number, 50 * number));
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    assert_eq!((array.min()?, array.max()?), (500, 500), "no launch is lost");
    Ok(())
}

fn a_stream_of_another_device_is_refused(context: &Context) -> Outcome {
    let second = context.second_device()?;
    let kernel = programs::kernel(context, "nothing")?;
    let (here, there) = (context.device.id().to_string(), second.id().to_string());
    let stream = second.create_stream(gpuarray::StreamOptions::default())?;
    let refused = launch(&kernel, ONE, &stream, ());
    expect_error(refused, ErrorKind::InvalidArgument, &[&here, &there])
}

/// Runs a function after the destructors of everything that the library keeps for a thread.
#[derive(Default)]
struct Last(Option<Box<dyn FnOnce()>>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|last| last());
    }
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

fn the_last_destructor_of_a_thread_launches_kernels(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "axpy")?;
    let (stream, (sender, seen)) = (context.stream()?, channel());
    let x = DeviceArray::<f32>::ones(&context.device, &[100])?;
    let axpy = move || -> Result<(f32, f32)> {
        let mut y = (&x.on(&stream)? * 2.0)?;
        launch(&kernel, grid(1, 128), &stream, (3.0f32, &x, &mut y, 100))?;
        Ok((y.to_vec()?[99], y.sum()?))
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // Thread-local destructors run in the reverse order of first use.
            LAST.with_borrow(|_| ());
            let first = axpy();
            LAST.with_borrow_mut(|last| {
                last.0 = Some(Box::new(move || drop(sender.send((axpy(), axpy())))));
            });
            first
        });
        assert_eq!(thread.join().unwrap()?, (5.0, 500.0));
        let (second, third) = seen.recv().expect("the destructor has run");
        assert_eq!((second?, third?), ((5.0, 500.0), (5.0, 500.0)));
        Ok(())
    })
}
