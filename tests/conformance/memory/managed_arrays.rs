//! Managed memory as typed arrays, and as host slices during which streams must not use it.

use crate::captures::graphs::{capture, replay};
use crate::context::{Context, Gate, counting, error_of, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard};
use gpuarray::{DeviceArray, ErrorKind, ManagedArray, PrefetchTarget, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

tests![
    slices_see_what_streams_wrote_and_streams_what_slices_wrote needs [ManagedMemory],
    a_slice_waits_for_the_work_that_it_conflicts_with needs [ManagedMemory],
    operations_beside_a_slice_are_refused needs [ManagedMemory],
    forgotten_slices_refuse_work_and_free_nothing_early needs [ManagedMemory],
    memory_is_not_released_under_a_slice needs [ManagedMemory],
    truth_values_of_other_bytes_are_made_true needs [ManagedMemory],
    failures_of_work_are_reported_by_slices needs [ManagedMemory],
    graphs_do_not_run_beside_a_slice needs [ManagedMemory, Graphs],
    what_would_wait_for_itself_is_refused needs [ManagedMemory],
    threads_take_slices_while_others_queue_work needs [ManagedMemory],
    empty_arrays_have_slices_without_elements needs [ManagedMemory],
];

fn slices_see_what_streams_wrote_and_streams_what_slices_wrote(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = ManagedArray::<i32>::zeros(&context.device, &[2, 50])?;
    assert_eq!(x.as_slice()?[..], [0; 100]);
    for round in 1..4 {
        x.as_mut_slice()?.copy_from_slice(&counting(100));
        x.on(&stream)?.update_scalar(functions::Add, round)?;
        x.prefetch(&stream, PrefetchTarget::Host).or_else(|error| match error.kind() {
            ErrorKind::Unsupported => Ok(()),
            _ => Err(error),
        })?;
        let expected: Vec<_> = (0..100).map(|it| it + round).collect();
        assert_eq!(x.as_slice()?[..], expected);
        assert_eq!(x.index(&[1.into()])?.to_vec()?, expected[50..]);
    }
    let kept = x.into_array();
    assert_eq!(kept.to_vec()?[99], 102);
    Ok(())
}

fn a_slice_waits_for_the_work_that_it_conflicts_with(context: &Context) -> Outcome {
    let (writer, reader) = (context.stream()?, context.stream()?);
    let mut x = ManagedArray::from_slice(&context.device, &[1i32; 1000])?;
    let gate = Gate::on(writer.as_ref())?;
    x.on(&writer)?.update_scalar(functions::Add, 1)?;
    let opener = gate.open_later();
    assert_eq!(x.as_slice()?[..], [2; 1000]);
    opener.join().unwrap();

    let gate = Gate::on(reader.as_ref())?;
    let copy = (&x.on(&reader)? + 1)?;
    // Reading on the host does not wait for another reader.
    assert_eq!(x.as_slice()?[999], 2);
    let opener = gate.open_later();
    x.as_mut_slice()?.fill(9);
    opener.join().unwrap();
    assert_eq!(copy.to_vec()?, [3; 1000]);
    Ok(())
}

fn operations_beside_a_slice_are_refused(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    let (mut view, mut other) = (x.clone(), x.on(&stream)?);
    let (mut half, _) = view.split_at_mut(10)?;
    let slice = x.as_slice()?;
    let again = x.as_slice()?;
    for array in [&mut view, &mut other, &mut half] {
        expect_error(array.fill(0), ErrorKind::InvalidArgument, &["host reads", "slice"])?;
        assert_eq!(array.sum()?, 4 * array.size() as i32);
    }
    drop(slice);
    assert!(view.fill(0).is_err());
    drop(again);
    view.fill(5)?;

    let mut slice = x.as_mut_slice()?;
    for array in [&mut view, &mut other, &mut half] {
        let fill = array.fill(0);
        expect_error(fill, ErrorKind::InvalidArgument, &["host writes", "slice"])?;
        expect_error(array.to_vec(), ErrorKind::InvalidArgument, &["host writes"])?;
        expect_error(&*array + 1, ErrorKind::InvalidArgument, &["host writes"])?;
    }
    // The failed operations have not changed the slice.
    assert_eq!(slice[..], [5; 100]);
    slice[3] = 7;
    drop(slice);
    other.update_scalar(functions::Add, 1)?;
    assert_eq!(half.to_vec()?, [6, 6, 6, 8, 6, 6, 6, 6, 6, 6]);
    Ok(())
}

fn forgotten_slices_refuse_work_and_free_nothing_early(context: &Context) -> Outcome {
    let mut x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    std::mem::forget(x.as_slice()?);
    assert_eq!(x.as_slice()?[5], 4);
    assert_eq!(error_of(x.as_mut_slice()).kind(), ErrorKind::InvalidArgument);
    assert!(!x.last_status().is_success());
    let mut y = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    std::mem::forget(y.as_mut_slice()?);
    assert_eq!(error_of(y.as_slice()).kind(), ErrorKind::InvalidArgument);
    assert_eq!(error_of(y.to_vec()).kind(), ErrorKind::InvalidArgument);
    Ok(())
}

fn memory_is_not_released_under_a_slice(context: &Context) -> Outcome {
    let mut x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    let memory = x.untyped().memory().clone();
    let slice = x.as_mut_slice()?;
    assert_eq!(error_of(memory.release()).kind(), ErrorKind::InvalidHandle);
    assert_eq!(slice[..], [4; 100]);
    drop(slice);
    // Replacing the array does not affect its slices.
    let managed = std::mem::replace(&mut *x, DeviceArray::zeros(&context.device, &[1])?);
    assert_eq!(x.as_slice()?[..], [4; 100]);
    drop(managed);
    memory.release()?;
    assert_eq!(error_of(x.as_slice()).kind(), ErrorKind::InvalidHandle);
    Ok(())
}

fn truth_values_of_other_bytes_are_made_true(context: &Context) -> Outcome {
    let x = ManagedArray::<bool>::zeros(&context.device, &[4])?;
    let bytes = x.untyped().view(gpuarray::DType::UInt8)?;
    DeviceArray::<u8>::from_untyped(bytes)?.copy_from_slice(&[0, 1, 2, 255])?;
    let slice = x.as_slice()?;
    assert_eq!(slice[..], [false, true, true, true]);
    assert!(x.as_slice().is_err(), "slices of truth values exclude each other");
    Ok(())
}

fn failures_of_work_are_reported_by_slices(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    x.on(&stream)?.fill(5)?;
    stream.host_function(Box::new(|| panic!("on purpose")))?;
    expect_error(x.as_slice(), ErrorKind::LaunchFailed, &["panicked"])?;
    assert_eq!(x.as_slice()?[..], [5; 100]);
    Ok(())
}

fn graphs_do_not_run_beside_a_slice(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    let mut view = x.on(&stream)?;
    let graph = capture(&stream, || {
        view.update_scalar(functions::Add, 1)?;
        // Captured work does not run yet.
        assert_eq!(x.as_slice()?[..], [4; 100]);
        Ok(())
    })?;
    for expected in [5, 6] {
        let slice = x.as_slice()?;
        let refused = replay(&graph, &stream);
        expect_error(refused, ErrorKind::InvalidArgument, &["host reads"])?;
        drop(slice);
        replay(&graph, &stream)?;
        assert_eq!(x.as_mut_slice()?[..], [expected; 100]);
    }
    Ok(())
}

fn what_would_wait_for_itself_is_refused(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = ManagedArray::from_slice(&context.device, &[4i32; 100])?;
    let guard = AccessGuard::acquire(&stream, &[(x.untyped().memory(), Access::Write)])?;
    assert_eq!(error_of(x.as_slice()).kind(), ErrorKind::InvalidArgument);
    drop(guard);
    let (x, seen) = (Arc::new(x), Arc::new(Mutex::new(None)));
    let copies = (x.clone(), seen.clone());
    stream.host_function(Box::new(move || {
        *copies.1.lock().unwrap() = Some(copies.0.as_slice().map(|_| ()));
        Ok(())
    }))?;
    stream.synchronize()?;
    let in_function = seen.lock().unwrap().take().unwrap();
    assert_eq!(error_of(in_function).kind(), ErrorKind::InvalidArgument);
    assert_eq!(x.as_slice()?[0], 4);
    Ok(())
}

fn threads_take_slices_while_others_queue_work(context: &Context) -> Outcome {
    let mut x = ManagedArray::<i64>::zeros(&context.device, &[20_000])?;
    let view = x.clone();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| {
            scope.spawn(|| -> Result<usize> {
                let mut array = view.on(&context.stream()?)?;
                let mut added = 0;
                while !done.load(Ordering::SeqCst) {
                    match array.update_scalar(functions::Add, 1) {
                        Ok(()) => added += 1,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
                    }
                }
                Ok(added)
            })
        });
        let mut written = 0;
        let slices = (0..40).try_for_each(|round| {
            if round % 2 == 0 {
                let slice = x.as_slice()?;
                let first = slice[0];
                assert!(slice.iter().all(|&it| it == first), "an addition is seen as a whole");
            } else {
                x.as_mut_slice()?.iter_mut().for_each(|it| *it += 1000);
                written += 1000;
            }
            pause_a_little();
            Ok(())
        });
        done.store(true, Ordering::SeqCst);
        let mut added = written;
        for thread in threads {
            added += thread.join().unwrap()? as i64;
        }
        let slices: Outcome = slices;
        slices?;
        assert!(x.as_slice()?.iter().all(|&it| it == added), "no addition is lost");
        Ok(())
    })
}

fn pause_a_little() {
    std::thread::sleep(std::time::Duration::from_micros(200));
}

fn empty_arrays_have_slices_without_elements(context: &Context) -> Outcome {
    let mut x = ManagedArray::<f64>::zeros(&context.device, &[3, 0])?;
    assert!(x.as_slice()?.is_empty() && x.as_mut_slice()?.is_empty());
    x.prefetch(&context.device.default_stream(), PrefetchTarget::Device)?;
    x.fill(1.0)?;
    assert_eq!(x.to_vec()?, []);
    Ok(())
}
