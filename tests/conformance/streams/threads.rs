//! Many threads on many streams, with shared arrays.

use crate::captures::graphs::capture;
use crate::context::{Context, Gate, pause};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::function::{BinaryFunction, Reduction};
use gpuarray::memory::{Access, AccessGuard};
use gpuarray::{DType, DeviceArray, Expression, FusedBlock, Number, Result, Status};
use hal::nonblocking::try_without_waiting;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

tests![
    threads_with_streams_of_their_own_update_one_array,
    threads_on_the_default_stream_update_one_array,
    threads_on_one_stream_update_one_array,
    threads_on_the_default_stream_see_whole_results,
    readers_and_writers_on_many_streams_see_whole_results,
    fused_functions_of_an_array_see_one_write,
    threads_allocate_and_free_at_once needs [ExactAccounting],
    an_array_made_by_one_thread_is_freed_by_another needs [ExactAccounting],
    streams_are_dropped_while_others_trim_memory,
    an_attempt_waits_for_no_other_use,
    copies_of_different_arrays_do_not_wait_for_each_other needs [Progress],
    whoever_waits_for_one_array_keeps_no_other needs [Progress],
    frees_do_not_wait_for_copies_of_other_arrays needs [Progress],
    captures_begin_and_end_while_a_copy_waits needs [Graphs, Progress],
    arrays_are_used_in_every_order_at_once,
];

const THREADS: usize = 4;
const ROUNDS: usize = 60;
/// Large enough that one update takes a while.
const ELEMENTS: usize = 100_000;

fn update(array: &DeviceArray<i64>) -> Result<()> {
    let mut view = array.clone();
    (0..ROUNDS).try_for_each(|_| view.update_scalar(functions::Add, 1))
}

fn check_updates(array: &DeviceArray<i64>) -> Outcome {
    let expected = (THREADS * ROUNDS) as i64;
    assert_eq!((array.min()?, array.max()?), (expected, expected), "no update is lost");
    Ok(())
}

/// Runs a function on several threads, and returns the first error.
fn on_threads(function: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| (number, &function))
            .map(|(n, f)| scope.spawn(move || f(n)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

fn threads_with_streams_of_their_own_update_one_array(context: &Context) -> Outcome {
    let array = DeviceArray::<i64>::zeros(&context.device, &[ELEMENTS])?;
    on_threads(|_| update(&array.on(&context.stream()?)?))?;
    check_updates(&array)
}

fn threads_on_the_default_stream_update_one_array(context: &Context) -> Outcome {
    let array = DeviceArray::<i64>::zeros(&context.device, &[ELEMENTS])?;
    on_threads(|_| update(&array))?;
    check_updates(&array)
}

fn threads_on_one_stream_update_one_array(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = DeviceArray::<i64>::zeros(&context.device, &[ELEMENTS])?.on(&stream)?;
    on_threads(|_| update(&array))?;
    check_updates(&array)
}

/// Writers fill the array with one value each, and readers copy it. An atomic copy contains a single
/// value.
fn check_whole(
    context: &Context,
    place: impl Fn(&DeviceArray<i64>) -> Result<DeviceArray<i64>> + Sync,
) -> Outcome {
    let array = DeviceArray::<i64>::zeros(&context.device, &[ELEMENTS])?;
    let torn = AtomicI64::new(0);
    on_threads(|number| {
        let mut view = place(&array)?;
        for round in 0..ROUNDS {
            if number % 2 == 0 {
                view.fill((round * THREADS + number) as i64)?;
            } else {
                let copy = view.copy()?;
                torn.fetch_add(i64::from(copy.min()? != copy.max()?), Ordering::SeqCst);
            }
        }
        Ok(())
    })?;
    assert_eq!(torn.load(Ordering::SeqCst), 0, "copies that show two writes");
    Ok(())
}

fn threads_on_the_default_stream_see_whole_results(context: &Context) -> Outcome {
    check_whole(context, |array| Ok(array.clone()))
}

fn readers_and_writers_on_many_streams_see_whole_results(context: &Context) -> Outcome {
    check_whole(context, |array| array.on(&context.stream()?))
}

/// A thread writes an array while another defers functions of it: all of a block see the same elements.
fn fused_functions_of_an_array_see_one_write(context: &Context) -> Outcome {
    let array = DeviceArray::<i32>::zeros(&context.device, &[ELEMENTS / 100])?;
    let is_over = AtomicBool::new(false);
    let mixed = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut array = array.clone();
            (0..).take_while(|_| !is_over.load(Ordering::SeqCst)).try_for_each(|n| {
                array.fill(n % 100)?;
                // The reader would wait for a long queue.
                if n % 4 == 0 { array.stream().synchronize() } else { Ok(()) }
            })
        });
        let mixed = (0..60 * ROUNDS).try_fold(0, |mixed, _| {
            let block = FusedBlock::new();
            let twice = Expression::binary(
                BinaryFunction::Multiply,
                array.untyped().into(),
                Number::Integer(2).into(),
            )?;
            twice.keep(true);
            if !block.add(&twice) {
                twice.evaluate()?;
            }
            let most = twice.reduce(Reduction::Maximum, DType::Int32, None, false)?;
            block.compute()?;
            let most = DeviceArray::<i32>::from_untyped(most)?.item()?;
            let twice = DeviceArray::<i32>::from_untyped(twice.evaluate()?)?.max()?;
            Ok(mixed + usize::from(most != twice))
        });
        is_over.store(true, Ordering::SeqCst);
        writer.join().unwrap().and(mixed)
    })?;
    assert_eq!(mixed, 0, "blocks that show two writes");
    Ok(())
}

fn threads_allocate_and_free_at_once(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    on_threads(|number| {
        let stream = context.stream()?;
        for round in 0..200usize {
            let size = (round * 977 + number * 131) % 30_000 + 1;
            let array = DeviceArray::<u8>::full(&context.device, &[size], number as u8)?;
            let moved = array.on(&stream)?.copy()?;
            drop(array);
            assert_eq!(moved.min()?, number as u8);
            assert_eq!(moved.max()?, number as u8);
        }
        stream.synchronize()
    })?;
    context.device.synchronize()?;
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn an_array_made_by_one_thread_is_freed_by_another(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let arrays: Vec<Arc<DeviceArray<i64>>> = (0..THREADS)
        .map(|_| Ok(Arc::new(DeviceArray::ones(&context.device, &[1000])?)))
        .collect::<Result<_>>()?;
    on_threads(|number| {
        let mine = arrays[number].on(&context.stream()?)?;
        let next = arrays[(number + 1) % THREADS].clone();
        assert_eq!((&mine + next.as_ref())?.sum()?, 2000);
        Ok(())
    })?;
    drop(arrays);
    context.device.synchronize()?;
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn streams_are_dropped_while_others_trim_memory(context: &Context) -> Outcome {
    let array = DeviceArray::<i64>::ones(&context.device, &[500])?;
    on_threads(|number| {
        for _ in 0..ROUNDS {
            if number % 2 == 0 {
                context.device.trim_memory(0)?;
                continue;
            }
            // The stream keeps the blocks of the sums, and is dropped with them.
            let view = array.on(&context.stream()?)?;
            let sums = (0..3).map(|_| view.zip(functions::Add, &view));
            sums.collect::<Result<Vec<_>>>()?;
        }
        Ok(())
    })?;
    context.device.synchronize()?;
    assert_eq!(gpuarray::memory::last_failed_free(), Status::OK, "every block is freed once");
    assert_eq!(array.sum()?, 500);
    Ok(())
}

fn an_attempt_waits_for_no_other_use(context: &Context) -> Outcome {
    let zeros = DeviceArray::<i32>::zeros(&context.device, &[100])?;
    let mut array = zeros.on(&context.stream()?)?.copy()?;
    let mut elsewhere = array.on(&context.stream()?)?;
    // Loads the code, because compiling might wait.
    elsewhere.copy()?.fill(7)?;
    let memory = array.untyped().memory();
    {
        // The next use on another stream waits until the guard's work is queued, which never
        // happens.
        let _guard = AccessGuard::acquire(array.stream(), &[(memory, Access::Read)])?;
        assert!(try_without_waiting(|| elsewhere.fill(1)).is_none());
    }
    assert!(try_without_waiting(|| elsewhere.fill(1)).is_none(), "it may wait for another thread");
    assert_eq!(array.to_vec()?, [0; 100]);
    elsewhere.fill(1)?;
    for shared in [&mut array, &mut elsewhere] {
        assert!(try_without_waiting(|| shared.fill(2)).is_none(), "the ordering lock may be taken");
    }
    assert_eq!(array.to_vec()?, [1; 100]);
    let mut own = elsewhere.copy()?;
    assert!(matches!(try_without_waiting(|| own.fill(3)), Some(Ok(()))), "nobody else uses it");
    assert_eq!(own.to_vec()?, [3; 100]);
    Ok(())
}

/// Returns an array that two streams have used.
fn shared(context: &Context, value: i32) -> Result<DeviceArray<i32>> {
    let array = DeviceArray::full(&context.device, &[100], value)?;
    array.on(&context.stream()?)?.copy()?;
    array.on(&context.stream()?)?.copy()?;
    Ok(array)
}

/// Runs `meanwhile` while another thread copies an array to the host and waits at a gate.
fn while_a_copy_waits(
    context: &Context,
    array: &DeviceArray<i32>,
    meanwhile: impl FnOnce() -> Outcome,
) -> Outcome {
    let stream = context.stream()?;
    let view = array.on(&stream)?;
    // Loads and allocates everything that might otherwise wait for the closed gate.
    view.to_vec()?;
    let gate = Gate::on(stream.as_ref())?;
    std::thread::scope(|scope| {
        let copy = scope.spawn(|| view.to_vec());
        pause();
        let result = meanwhile();
        // A gate opens by itself after some time, so that a failing test does not hang.
        let is_closed = !stream.query()?;
        gate.open();
        assert_eq!(copy.join().unwrap()?, [7; 100]);
        result?;
        assert!(is_closed, "something has waited for the copy");
        Ok(())
    })
}

fn copies_of_different_arrays_do_not_wait_for_each_other(context: &Context) -> Outcome {
    let (x, mut y) = (shared(context, 7)?, shared(context, 8)?.on(&context.stream()?)?);
    let warm = (&y + &y)?.to_vec()?;
    while_a_copy_waits(context, &x, || {
        assert_eq!(y.to_vec()?, [8; 100]);
        assert_eq!((&y + &y)?.to_vec()?, warm);
        y.copy_from_slice(&[9; 100])?;
        assert_eq!(y.on(&context.stream()?)?.to_vec()?, [9; 100]);
        Ok(())
    })
}

fn whoever_waits_for_one_array_keeps_no_other(context: &Context) -> Outcome {
    let stream = context.stream()?;
    // Only one stream uses the array, so that the copy does not take the lock of shared memory.
    let x = DeviceArray::<i32>::full(&context.device, &[100], 7)?.on(&stream)?.copy()?;
    let elsewhere = context.stream()?;
    let arrays = [shared(context, 1)?, shared(context, 2)?];
    // CUDA's default stream, which has written the arrays, is ordered after the other streams. The
    // readers wait for it before the gate is closed.
    let readers = [context.stream()?, context.stream()?];
    for (array, reader) in arrays.iter().zip(&readers) {
        array.on(reader)?.to_vec()?;
    }
    // Memory before and after the array's address, in the order of locks.
    let (first, second) = ((&arrays[0] + &arrays[1])?, (&arrays[1] + &arrays[0])?);
    x.to_vec()?;
    let gate = Gate::on(stream.as_ref())?;
    std::thread::scope(|scope| {
        let copy = scope.spawn(|| x.to_vec());
        pause();
        let uses = arrays.iter().chain([&first, &second]);
        let sums: Vec<_> = uses
            .map(|array| (array.on(&elsewhere), x.on(&elsewhere)))
            .map(|(array, x)| scope.spawn(move || &array? + &x?))
            .collect();
        pause();
        for ((array, value), reader) in arrays.iter().zip([1, 2]).zip(&readers) {
            assert_eq!(array.on(reader)?.to_vec()?, [value; 100]);
        }
        let is_closed = !copy.is_finished();
        gate.open();
        assert_eq!(copy.join().unwrap()?, [7; 100]);
        for (sum, value) in sums.into_iter().zip([8, 9, 10, 10]) {
            assert_eq!(sum.join().unwrap()?.to_vec()?, [value; 100]);
        }
        assert!(is_closed, "something has waited for the copy");
        Ok(())
    })
}

fn frees_do_not_wait_for_copies_of_other_arrays(context: &Context) -> Outcome {
    let (x, y) = (shared(context, 7)?, shared(context, 8)?);
    while_a_copy_waits(context, &x, || {
        y.untyped().memory().release()?;
        assert!(y.to_vec().is_err());
        Ok(())
    })
}

fn captures_begin_and_end_while_a_copy_waits(context: &Context) -> Outcome {
    let (x, stream) = (shared(context, 7)?, context.stream()?);
    let mut y = shared(context, 8)?.on(&stream)?;
    y.update_scalar(functions::Add, 1)?;
    stream.synchronize()?;
    while_a_copy_waits(context, &x, || {
        let graph = capture(&stream, || y.update_scalar(functions::Add, 1))?;
        assert_eq!(graph.node_count(), 1);
        Ok(())
    })
}

/// Operations on several arrays in all orders, with copies, frees and new arrays in between.
fn arrays_are_used_in_every_order_at_once(context: &Context) -> Outcome {
    let arrays: Vec<_> = (0..4).map(|_| shared(context, 1)).collect::<Result<_>>()?;
    on_threads(|number| {
        let stream = context.stream()?;
        let views = arrays.iter().map(|array| array.on(&stream)).collect::<Result<Vec<_>>>()?;
        for round in 0..ROUNDS {
            let (i, j) = ((round + number) % 4, (round / 4 + 3 * number) % 4);
            let product = (&views[i] * &views[j])?;
            views[j].clone().assign(&product)?;
            // Uses one memory twice in one operation.
            (&views[i] * &views[i].index(&[(0..100).into()])?)?;
            match round % 3 {
                0 => assert_eq!(product.to_vec()?, [1; 100]),
                1 => drop(views[i].on(&context.stream()?)?.copy()?),
                _ => views[i].clone().copy_from_slice(&[1; 100])?,
            }
        }
        Ok(())
    })?;
    for array in &arrays {
        assert_eq!(array.to_vec()?, [1; 100]);
    }
    Ok(())
}
