//! Streams: order, asynchrony, and waits between the default stream and others.

use crate::context::{Context, Gate, error_of, pause};
use crate::harness::{Outcome, tests};
use crate::programs::{self, launch};
use gpuarray::array::functions;
use gpuarray::checking::{Checking, Checks};
use gpuarray::{DeviceArray, ErrorKind, LaunchConfig, Status, Stream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

tests![
    functions_of_a_stream_run_in_order,
    queueing_does_not_wait,
    operations_on_arrays_do_not_wait,
    a_function_on_the_default_stream_does_not_block_the_caller,
    query_tells_whether_work_is_left needs [Progress],
    a_stream_that_has_been_waited_for_is_done,
    the_default_stream_waits_for_blocking_streams,
    blocking_streams_wait_for_the_default_stream,
    non_blocking_streams_and_the_default_stream_do_not_wait needs [Progress],
    streams_run_beside_each_other needs [ConcurrentHostFunctions],
    a_device_waits_for_all_of_its_streams,
    a_panic_in_a_queued_function_is_reported_once,
    a_panic_on_the_default_stream_is_reported needs [Progress],
    a_panic_does_not_stop_the_work_behind_it,
    a_dropped_stream_still_runs_its_work,
    many_streams_come_and_go,
    a_launch_with_checks_waits_for_no_function_of_the_program needs [Kernels, Progress],
];

fn functions_of_a_stream_run_in_order(context: &Context) -> Outcome {
    let default = context.device.default_stream();
    for stream in [context.stream()?, context.blocking_stream()?, default] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        for number in 0..100 {
            let seen = seen.clone();
            stream.host_function(Box::new(move || seen.lock().unwrap().push(number)))?;
        }
        stream.synchronize()?;
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }
    Ok(())
}

fn queueing_does_not_wait(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let gate = Gate::on(stream.as_ref())?;
    let ran = count_on(stream.as_ref())?;
    pause();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    gate.open();
    stream.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Ok(())
}

fn operations_on_arrays_do_not_wait(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = context.counting(&[10])?.on(&stream)?;
    let twice_the_sum = || {
        let doubled = (&array + &array)?;
        doubled.reduce(functions::Sum, None)
    };
    // A kernel is compiled and loaded at its first use, which may wait.
    assert_eq!(twice_the_sum()?.item()?, 90);
    let gate = Gate::on(stream.as_ref())?;
    let total = twice_the_sum()?;
    assert!(!stream.query()?, "the results wait behind the gate");
    gate.open();
    assert_eq!(total.item()?, 90);
    Ok(())
}

fn a_function_on_the_default_stream_does_not_block_the_caller(context: &Context) -> Outcome {
    let stream = context.device.default_stream();
    let gate = Gate::on(stream.as_ref())?;
    let filled = DeviceArray::<i32>::full(&context.device, &[3], 5)?;
    assert!(!stream.query()?);
    gate.open();
    assert_eq!(filled.to_vec()?, [5; 3]);
    Ok(())
}

fn query_tells_whether_work_is_left(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.device.default_stream()] {
        assert!(stream.query()?, "a stream without work is done");
        let gate = Gate::on(stream.as_ref())?;
        assert!(!stream.query()?);
        gate.open();
        stream.synchronize()?;
        assert!(stream.query()?);
    }
    Ok(())
}

fn a_stream_that_has_been_waited_for_is_done(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.device.default_stream()] {
        for _ in 0..2000 {
            stream.host_function(Box::new(|| ()))?;
            stream.synchronize()?;
            assert!(stream.query()?);
        }
    }
    Ok(())
}

fn the_default_stream_waits_for_blocking_streams(context: &Context) -> Outcome {
    let (first, second) = (context.blocking_stream()?, context.blocking_stream()?);
    let gates = [Gate::on(first.as_ref())?, Gate::on(second.as_ref())?];
    let default = context.device.default_stream();
    let ran = count_on(default.as_ref())?;
    for gate in gates {
        pause();
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        gate.open();
    }
    default.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Ok(())
}

fn blocking_streams_wait_for_the_default_stream(context: &Context) -> Outcome {
    let stream = context.blocking_stream()?;
    let gate = Gate::on(context.device.default_stream().as_ref())?;
    let ran = count_on(stream.as_ref())?;
    pause();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    gate.open();
    stream.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Ok(())
}

fn non_blocking_streams_and_the_default_stream_do_not_wait(context: &Context) -> Outcome {
    let default = context.device.default_stream();
    let stream = context.stream()?;
    for (held, free) in [(&stream, &default), (&default, &stream)] {
        let gate = Gate::on(held.as_ref())?;
        let ran = count_on(free.as_ref())?;
        free.synchronize()?;
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert!(!held.query()?);
        gate.open();
        held.synchronize()?;
    }
    Ok(())
}

fn streams_run_beside_each_other(context: &Context) -> Outcome {
    // Each function waits until the other has begun, which would not work on a single queue.
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let streams = [context.blocking_stream()?, context.blocking_stream()?];
    for stream in &streams {
        let barrier = barrier.clone();
        stream.host_function(Box::new(move || {
            barrier.wait();
        }))?;
    }
    for stream in &streams {
        stream.synchronize()?;
    }
    Ok(())
}

fn a_device_waits_for_all_of_its_streams(context: &Context) -> Outcome {
    let default = context.device.default_stream();
    let streams = [context.stream()?, context.blocking_stream()?, default];
    let gate = Gate::on(streams[0].as_ref())?;
    let counts = streams.iter().map(|s| count_on(s.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let opener = gate.open_later();
    context.device.synchronize()?;
    assert!(counts.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    opener.join().unwrap();
    Ok(())
}

fn a_panic_in_a_queued_function_is_reported_once(context: &Context) -> Outcome {
    let stream = context.stream()?;
    stream.host_function(Box::new(|| panic!("on purpose")))?;
    let error = error_of(stream.synchronize());
    assert_eq!(error.kind(), ErrorKind::LaunchFailed);
    assert_eq!(error.status().code, Status::LAUNCH_FAILED);
    assert_eq!(stream.last_status(), error.status());
    stream.synchronize()?;
    assert_eq!(stream.last_status(), Status::OK);
    Ok(())
}

fn a_panic_on_the_default_stream_is_reported(context: &Context) -> Outcome {
    let stream = context.device.default_stream();
    stream.host_function(Box::new(|| panic!("on purpose")))?;
    pause();
    assert!(stream.query()?, "the function has run");
    assert_eq!(error_of(stream.synchronize()).kind(), ErrorKind::LaunchFailed);
    stream.synchronize()?;
    Ok(())
}

fn a_panic_does_not_stop_the_work_behind_it(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = context.counting(&[4])?.on(&stream)?;
    stream.host_function(Box::new(|| panic!("on purpose")))?;
    let doubled = (&array + &array)?;
    let ran = count_on(stream.as_ref())?;
    assert!(stream.synchronize().is_err());
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(doubled.to_vec()?, [0, 2, 4, 6]);
    Ok(())
}

fn a_dropped_stream_still_runs_its_work(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let gate = Gate::on(stream.as_ref())?;
    let ran = count_on(stream.as_ref())?;
    drop(stream);
    gate.open();
    context.device.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Ok(())
}

fn many_streams_come_and_go(context: &Context) -> Outcome {
    let ran = Arc::new(AtomicUsize::new(0));
    for number in 0..200 {
        let stream = if number % 2 == 0 { context.stream()? } else { context.blocking_stream()? };
        let copy = ran.clone();
        stream.host_function(Box::new(move || {
            copy.fetch_add(1, Ordering::SeqCst);
        }))?;
    }
    context.device.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 200);
    Ok(())
}

/// Queues a function that counts its runs.
fn count_on(stream: &dyn Stream) -> gpuarray::Result<Arc<AtomicUsize>> {
    let count = Arc::new(AtomicUsize::new(0));
    let copy = count.clone();
    stream.host_function(Box::new(move || {
        copy.fetch_add(1, Ordering::SeqCst);
    }))?;
    Ok(count)
}

/// A checked launch on the default stream waits for its kernel, unless a host function is queued
/// before it.
fn a_launch_with_checks_waits_for_no_function_of_the_program(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "axpy")?;
    let stream = context.device.default_stream();
    let x = DeviceArray::<f32>::ones(&context.device, &[100])?;
    let mut y = DeviceArray::<f32>::ones(&context.device, &[100])?;
    // Compiled with checks before the gate is closed.
    let _checking = Checking::begin(Checks::BOUNDS);
    let config = LaunchConfig::linear(100, 32);
    launch(&kernel, config, &stream, (2.0f32, &x, &mut y, 100))?;
    stream.synchronize()?;
    let gate = Gate::on(stream.as_ref())?;
    let launched = launch(&kernel, config, &stream, (2.0f32, &x, &mut y, 100));
    let is_done = stream.query();
    gate.open();
    launched?;
    assert!(!is_done?, "the launch has waited until the gate opened by itself");
    assert_eq!(y.to_vec()?, [5.0; 100]);
    Ok(())
}
