//! Captured work: recorded once, replayed many times, and the memory that it uses.

use crate::context::{Context, Gate};
use crate::harness::{Outcome, tests};
use crate::programs::{self, grid, launch};
use gpuarray::array::functions;
use gpuarray::memory::{DeviceMemory, PinnedMemory};
use gpuarray::{
    CaptureMode, DeviceArray, Direction, EventOptions, Graph, Result, Stream, Transfer,
};
use std::sync::Arc;

tests![
    captured_operations_run_at_every_launch needs [Graphs],
    a_capture_runs_nothing needs [Graphs],
    kernels_of_the_program_are_captured needs [Graphs, Kernels],
    a_kernel_compiled_during_a_capture_is_captured needs [Graphs],
    copies_and_fills_are_captured needs [Graphs],
    a_capture_forks_and_joins needs [Graphs],
    memory_of_a_capture_outlives_the_array needs [Graphs],
    memory_of_a_capture_outlives_the_graph needs [Graphs],
    memory_freed_in_a_capture_is_kept_for_replays needs [Graphs],
    memory_from_before_a_capture_is_kept_for_replays needs [Graphs],
    a_graph_is_launched_on_other_streams needs [Graphs],
    a_graph_waits_for_the_work_of_its_stream needs [Graphs],
    a_graph_outlives_its_stream needs [Graphs],
    a_launch_is_ordered_with_uses_of_what_the_capture_made needs [Graphs],
];

/// Captures the work that `work` queues on the stream.
pub(crate) fn capture(
    stream: &Arc<dyn Stream>,
    work: impl FnOnce() -> Result<()>,
) -> Result<Arc<dyn Graph>> {
    stream.begin_capture(CaptureMode::default())?;
    let done = work();
    let graph = stream.end_capture();
    done?;
    graph
}

/// Launches a graph and waits for it.
pub(crate) fn replay(graph: &Arc<dyn Graph>, stream: &Arc<dyn Stream>) -> Result<()> {
    // SAFETY: the tests keep the arrays that their captures use.
    unsafe { graph.launch(stream)? };
    stream.synchronize()
}

/// Returns an array of `0, 1, 2, ...` whose own stream is `stream`.
pub(crate) fn numbers(
    context: &Context,
    stream: &Arc<dyn Stream>,
    count: usize,
) -> Result<DeviceArray<i32>> {
    let array = context.counting(&[count])?.on(stream)?.copy()?;
    stream.synchronize()?;
    Ok(array)
}

fn captured_operations_run_at_every_launch(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.blocking_stream()?] {
        let mut x = numbers(context, &stream, 100)?;
        let graph = capture(&stream, || {
            x.update_scalar(functions::Multiply, 2)?;
            x.update_scalar(functions::Add, 1)
        })?;
        assert_eq!(graph.node_count(), 2);
        let mut expected: Vec<i32> = (0..100).collect();
        for _ in 0..3 {
            replay(&graph, &stream)?;
            expected.iter_mut().for_each(|it| *it = *it * 2 + 1);
            assert_eq!(x.to_vec()?, expected);
        }
        // The graph works on the array's current elements.
        x.copy_from_slice(&[5; 100])?;
        replay(&graph, &stream)?;
        assert_eq!(x.to_vec()?, [11; 100]);
    }
    Ok(())
}

fn a_capture_runs_nothing(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, 10)?;
    assert!(!stream.is_capturing()?);
    stream.begin_capture(CaptureMode::default())?;
    assert!(stream.is_capturing()?);
    x.fill(-1)?;
    let graph = stream.end_capture()?;
    assert!(!stream.is_capturing()?);
    context.device.synchronize()?;
    assert_eq!(x.to_vec()?, (0..10).collect::<Vec<_>>());
    replay(&graph, &stream)?;
    assert_eq!(x.to_vec()?, [-1; 10]);
    Ok(())
}

fn kernels_of_the_program_are_captured(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let kernel = programs::kernel(context, "add")?;
    let mut x = numbers(context, &stream, 100)?;
    let graph = capture(&stream, || {
        // The graph keeps the values that the arguments have when the launch is captured.
        for value in [1, 10] {
            launch(&kernel, grid(1, 128), &stream, (&mut x, value, 100))?;
        }
        Ok(())
    })?;
    drop(kernel);
    assert_eq!(graph.node_count(), 2);
    for _ in 0..4 {
        replay(&graph, &stream)?;
    }
    assert_eq!(x.to_vec()?, (44..144).collect::<Vec<_>>());
    Ok(())
}

fn a_kernel_compiled_during_a_capture_is_captured(context: &Context) -> Outcome {
    let stream = context.stream()?;
    // No other test uses an arctangent of strided 32-bit floats, so this kernel is not compiled
    // yet.
    let x = DeviceArray::<f32>::full(&context.device, &[20, 3], 0.5)?.on(&stream)?;
    let column = x.index(&[(..).into(), 1.into()])?;
    stream.synchronize()?;
    context.device.synchronize()?;
    let mut y = None;
    let graph = capture(&stream, || {
        y = Some(column.map(functions::Atan)?);
        Ok(())
    })?;
    assert_eq!(graph.node_count(), 1);
    replay(&graph, &stream)?;
    let y = y.expect("captured").to_vec()?;
    assert!(y.iter().all(|value| (value - 0.5f32.atan()).abs() < 1e-6), "{y:?}");
    Ok(())
}

fn copies_and_fills_are_captured(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let memory = DeviceMemory::plain(&context.device, 4096)?;
    let mut source = PinnedMemory::new(&context.device, 1024)?;
    let mut target = PinnedMemory::new(&context.device, 4096)?;
    let (from, to) = (source.pointer() as u64, target.pointer() as u64);
    let graph = capture(&stream, || {
        let up = Transfer::linear(Direction::HostToDevice, memory.address(), from, 1024, false);
        let around = Transfer::linear(
            Direction::DeviceToDevice,
            memory.address() + 1024,
            memory.address(),
            1024,
            false,
        );
        let down = Transfer::linear(Direction::DeviceToHost, to, memory.address(), 4096, false);
        // SAFETY: all of the memory lives until the last launch of the graph has run.
        unsafe {
            stream.transfer(&up)?;
            stream.transfer(&around)?;
            stream.fill(memory.address() + 2048, 0x0102, 2, 1024)?;
            stream.transfer(&down)
        }
    })?;
    assert_eq!(graph.node_count(), 4);
    for value in [3, 4] {
        source.fill(value);
        target.fill(0);
        replay(&graph, &stream)?;
        assert!(target[..2048].iter().all(|&byte| byte == value));
        assert_eq!(target[2048..], 0x0102u16.to_ne_bytes().repeat(1024));
    }
    Ok(())
}

fn a_capture_forks_and_joins(context: &Context) -> Outcome {
    let (main, side) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &main, 50)?;
    let mut y = numbers(context, &side, 50)?;
    let z = numbers(context, &main, 50)?;
    let event = || context.device.create_event(EventOptions::ORDERING);
    let (fork, join) = (event()?, event()?);
    let graph = capture(&main, || {
        x.update_scalar(functions::Add, 1)?;
        main.record(fork.as_ref())?;
        side.wait_event(fork.as_ref())?;
        assert!(side.is_capturing()?, "the other stream takes part");
        y.update(functions::Add, &x.on(&side)?)?;
        side.record(join.as_ref())?;
        main.wait_event(join.as_ref())?;
        z.clone().update(functions::Add, &y.on(&main)?)
    })?;
    assert!(!side.is_capturing()?);
    assert_eq!(graph.node_count(), 3);
    let (mut a, mut b, mut c): (Vec<i32>, Vec<i32>, Vec<i32>) =
        ((0..50).collect(), (0..50).collect(), (0..50).collect());
    for _ in 0..2 {
        replay(&graph, &main)?;
        for i in 0..50 {
            a[i] += 1;
            b[i] += a[i];
            c[i] += b[i];
        }
        assert_eq!((x.to_vec()?, y.to_vec()?, z.to_vec()?), (a.clone(), b.clone(), c.clone()));
    }
    Ok(())
}

/// Returns a graph that computes `y = 2 x + 1` in memory that it allocates, and the array `y`.
fn allocating(
    stream: &Arc<dyn Stream>,
    x: &DeviceArray<i32>,
) -> Result<(Arc<dyn Graph>, DeviceArray<i32>)> {
    let mut y = None;
    let graph = capture(stream, || {
        let doubled = (x + x)?;
        y = Some((&doubled + 1)?);
        Ok(())
    })?;
    Ok((graph, y.expect("captured")))
}

fn memory_of_a_capture_outlives_the_array(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = numbers(context, &stream, 1000)?;
    let (graph, y) = allocating(&stream, &x)?;
    replay(&graph, &stream)?;
    assert_eq!(y.to_vec()?[999], 1999);
    let address = y.as_device_pointer();
    drop(y);
    stream.synchronize()?;
    // New allocations get other memory, because the graph still writes the capture's memory.
    let others: Vec<_> = (0..20)
        .map(|_| DeviceArray::<i32>::full(&context.device, &[1000], 9)?.on(&stream)?.copy())
        .collect::<Result<_>>()?;
    assert!(others.iter().all(|other| other.as_device_pointer() != address));
    replay(&graph, &stream)?;
    for other in &others {
        assert_eq!((other.min()?, other.max()?), (9, 9));
    }
    drop(graph);
    Ok(())
}

fn memory_of_a_capture_outlives_the_graph(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = numbers(context, &stream, 1000)?;
    let (graph, y) = allocating(&stream, &x)?;
    // SAFETY: the array that the capture uses is alive.
    unsafe { graph.launch(&stream)? };
    drop(graph);
    let others: Vec<_> = (0..20)
        .map(|_| DeviceArray::<i32>::full(&context.device, &[1000], 9)?.on(&stream)?.copy())
        .collect::<Result<_>>()?;
    assert_eq!(y.to_vec()?, (0..1000).map(|it| 2 * it + 1).collect::<Vec<_>>());
    let z = (&y + &others[0])?;
    drop(y);
    assert_eq!(z.to_vec()?[0], 10);
    Ok(())
}

fn memory_freed_in_a_capture_is_kept_for_replays(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = numbers(context, &stream, 1000)?;
    let mut total = DeviceArray::<i32>::zeros(&context.device, &[1])?.on(&stream)?.copy()?;
    stream.synchronize()?;
    let graph = capture(&stream, || {
        // Temporaries are dropped while the capture is active.
        let sum = (&(&x + &x)? + &x)?.reduce(functions::Sum, None)?;
        total.update(functions::Add, &sum.reshape(&[1])?)
    })?;
    for round in 1..=3 {
        let kept = DeviceArray::<i32>::full(&context.device, &[1000], 7)?.on(&stream)?.copy()?;
        replay(&graph, &stream)?;
        assert_eq!(total.item()?, round * 3 * 499_500);
        assert_eq!((kept.min()?, kept.max()?), (7, 7));
    }
    Ok(())
}

fn memory_from_before_a_capture_is_kept_for_replays(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut sum = DeviceArray::<i32>::zeros(&context.device, &[1000])?.on(&stream)?.copy()?;
    let x = numbers(context, &stream, 1000)?;
    let mut x = Some(x);
    let graph = capture(&stream, || {
        sum.update(functions::Add, x.as_ref().expect("not dropped yet"))?;
        x = None;
        Ok(())
    })?;
    for round in 1..=3 {
        let kept = DeviceArray::<i32>::full(&context.device, &[1000], 7)?.on(&stream)?.copy()?;
        replay(&graph, &stream)?;
        assert_eq!(sum.to_vec()?[999], 999 * round);
        assert_eq!((kept.min()?, kept.max()?), (7, 7));
    }
    Ok(())
}

fn a_graph_is_launched_on_other_streams(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &first, 100)?;
    let graph = capture(&first, || x.update_scalar(functions::Add, 1))?;
    for stream in [&second, &context.device.default_stream(), &first] {
        replay(&graph, stream)?;
    }
    assert_eq!(x.to_vec()?, (3..103).collect::<Vec<_>>());
    Ok(())
}

fn a_graph_waits_for_the_work_of_its_stream(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, 100)?;
    let graph = capture(&stream, || x.update_scalar(functions::Multiply, 3))?;
    replay(&graph, &stream)?;
    let gate = Gate::on(stream.as_ref())?;
    x.fill(5)?;
    // SAFETY: the array is alive.
    unsafe { graph.launch(&stream)? };
    x.update_scalar(functions::Add, 1)?;
    assert!(!stream.query()?);
    gate.open();
    assert_eq!(x.to_vec()?, [16; 100]);
    Ok(())
}

fn a_graph_outlives_its_stream(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &second, 100)?;
    x = x.on(&first)?;
    let graph = capture(&first, || x.update_scalar(functions::Add, 1))?;
    let x = x.on(&second)?;
    drop(first);
    replay(&graph, &second)?;
    assert_eq!(x.to_vec()?[0], 1);
    Ok(())
}

fn a_launch_is_ordered_with_uses_of_what_the_capture_made(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let x = numbers(context, &first, 100)?;
    let mut made = None;
    let graph = capture(&first, || {
        made = Some((&x + 1)?);
        Ok(())
    })?;
    let mut made = made.expect("captured");
    // Run the graph once before a gate is closed, so that everything is loaded.
    replay(&graph, &second)?;
    made.fill(4)?;
    first.synchronize()?;
    let gate = Gate::on(second.as_ref())?;
    // SAFETY: the capture uses only arrays.
    unsafe { graph.launch(&second)? };
    made.fill(5)?;
    gate.open();
    assert_eq!(made.to_vec()?, [5; 100]);
    Ok(())
}
