//! Parts of one memory that two streams use concurrently: `split_at_mut`.
//!
//! `GPUARRAY_PARTS` is the number of steps of the random search; `GPUARRAY_PARTS_SEED` is its seed.

use crate::captures::graphs::{capture, numbers, replay};
use crate::context::{Context, Gate, counting, error_of, expect_error, pause};
use crate::harness::{Outcome, tests};
use crate::streams::random_streams::{Random, setting};
use gpuarray::array::functions;
use gpuarray::{CaptureMode, DeviceArray, ErrorKind, EventOptions, Result, Stream};
use std::sync::Arc;

tests![
    halves_are_used_at_the_same_time,
    the_whole_waits_for_both_halves,
    halves_wait_for_the_whole,
    parts_of_parts_wait_for_what_they_share,
    parts_between_each_other_are_ordered,
    memory_is_freed_behind_both_halves needs [ExactAccounting],
    halves_keep_the_memory,
    memory_that_is_released_takes_its_parts,
    splits_that_do_not_exist_are_refused,
    threads_update_halves_while_others_read_the_whole,
    a_graph_of_both_halves_keeps_and_orders_them needs [Graphs],
    captures_at_once_write_one_half_each needs [Graphs],
    random_uses_of_parts_agree_with_a_reference,
];

fn halves_are_used_at_the_same_time(context: &Context) -> Outcome {
    let (held, free) = (context.stream()?, context.stream()?);
    let mut array = DeviceArray::<i32>::zeros(&context.device, &[1001])?;
    let mut marker = numbers(context, &held, 10)?;
    context.device.synchronize()?;
    // Code is loaded in a first pass, before gates are closed.
    for (index, is_held) in [0, 1, 500, 1001].into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (head, tail) = array.split_at_mut(index)?;
        for (first, second) in [(&head, &tail), (&tail, &head)] {
            let gate = is_held.then(|| Gate::on(held.as_ref())).transpose()?;
            first.on(&held)?.fill(1)?;
            // On a fake driver a query runs one operation, the gate; this fill keeps the stream busy.
            marker.fill(1)?;
            second.on(&free)?.fill(2)?;
            let copy = (&second.on(&free)? + 1)?;
            assert!(copy.to_vec()?.iter().all(|&it| it == 3));
            if let Some(gate) = gate {
                assert!(!held.query()?, "the other half has not been waited for");
                gate.open();
            }
            assert!(first.to_vec()?.iter().all(|&it| it == 1));
            // A stream waits for all earlier work of another stream, not only for work on the same part. So
            // every round starts with idle streams.
            array.fill(0)?;
            context.device.synchronize()?;
        }
    }
    Ok(())
}

fn the_whole_waits_for_both_halves(context: &Context) -> Outcome {
    let streams = [context.stream()?, context.stream()?, context.stream()?];
    let mut array = DeviceArray::<i32>::zeros(&context.device, &[100])?;
    for writes in [false, true] {
        let (head, tail) = array.split_at_mut(30)?;
        let gates = [Gate::on(streams[0].as_ref())?, Gate::on(streams[1].as_ref())?];
        head.on(&streams[0])?.fill(1)?;
        tail.on(&streams[1])?.fill(2)?;
        // The whole waits even after the halves are dropped.
        drop((head, tail));
        let mut whole = array.on(&streams[2])?;
        let seen = match writes {
            true => whole.update_scalar(functions::Add, 10).map(|()| whole)?,
            false => (&whole + 10)?,
        };
        for gate in gates {
            pause();
            assert!(!streams[2].query()?, "the whole waits for both halves");
            gate.open();
        }
        let expected: Vec<_> = (0..100).map(|it| if it < 30 { 11 } else { 12 }).collect();
        assert_eq!(seen.to_vec()?, expected);
    }
    Ok(())
}

fn halves_wait_for_the_whole(context: &Context) -> Outcome {
    let streams = [context.stream()?, context.stream()?, context.stream()?];
    let mut array = DeviceArray::<i32>::zeros(&context.device, &[100])?;
    let early = array.split_at_mut(30)?;
    for round in 0..2 {
        let gate = Gate::on(streams[0].as_ref())?;
        array.on(&streams[0])?.fill(5)?;
        // Halves made before the use, and halves made after it.
        let (head, tail) = if round == 0 { early.clone() } else { array.split_at_mut(60)? };
        let head = (&head.on(&streams[1])? + 1)?;
        let mut tail = tail.on(&streams[2])?;
        tail.update_scalar(functions::Add, 2)?;
        pause();
        assert!(!streams[1].query()? && !streams[2].query()?);
        gate.open();
        assert!(head.to_vec()?.iter().all(|&it| it == 6));
        assert!(tail.to_vec()?.iter().all(|&it| it == 7));
    }
    Ok(())
}

fn parts_of_parts_wait_for_what_they_share(context: &Context) -> Outcome {
    let (held, free, other) = (context.stream()?, context.stream()?, context.stream()?);
    // Code is loaded in a first pass, before the gate is closed.
    for is_held in [false, true] {
        let mut array = context.counting(&[90])?;
        let (_, mut middle) = array.split_at_mut(30)?;
        let (mut inner, _) = middle.split_at_mut(30)?;
        let (low, high) = inner.split_at_mut(10)?;
        let (before, after) = array.split_at_mut(35)?;
        let gate = is_held.then(|| Gate::on(held.as_ref())).transpose()?;
        low.on(&held)?.fill(-1)?;
        assert_eq!(high.on(&free)?.to_vec()?, counting(60)[40..]);
        if is_held {
            assert!(!held.query()?, "40 to 60 shares nothing with 30 to 40");
        }
        // The ranges 0 to 35 and 35 to 90 each share five elements with 30 to 40.
        before.on(&free)?.update_scalar(functions::Multiply, 2)?;
        let copy = after.on(&other)?.copy()?;
        if let Some(gate) = gate {
            pause();
            gate.open();
        }
        assert_eq!(before.to_vec()?[28..], [56, 58, -2, -2, -2, -2, -2]);
        assert_eq!(copy.to_vec()?[..7], [-1, -1, -1, -1, -1, 40, 41]);
    }
    Ok(())
}

fn parts_between_each_other_are_ordered(context: &Context) -> Outcome {
    let (held, free) = (context.stream()?, context.stream()?);
    let columns = context.counting(&[4, 6])?;
    let (left, right) = columns.transpose(None)?.split_at_mut(3)?;
    let gate = Gate::on(held.as_ref())?;
    left.on(&held)?.fill(0)?;
    let copy = right.on(&free)?.copy()?;
    pause();
    assert!(!free.query()?, "the rows of one part lie between those of the other");
    gate.open();
    assert_eq!(copy.index(&[0.into()])?.to_vec()?, [3, 9, 15, 21]);
    Ok(())
}

fn memory_is_freed_behind_both_halves(context: &Context) -> Outcome {
    let streams = [context.stream()?, context.stream()?];
    for last in [0, 1] {
        let before = context.free_memory()?;
        let mut array = DeviceArray::<i32>::full(&context.device, &[1000], 6)?.copy()?;
        context.device.synchronize()?;
        let (head, tail) = array.split_at_mut(400)?;
        let gates = [Gate::on(streams[0].as_ref())?, Gate::on(streams[1].as_ref())?];
        head.on(&streams[0])?.fill(1)?;
        tail.on(&streams[1])?.fill(2)?;
        let done = context.device.create_event(EventOptions::default())?;
        streams[1 - last].record(done.as_ref())?;
        drop((array, head, tail));
        gates[1 - last].open();
        done.synchronize()?;
        pause();
        assert_eq!(context.free_memory()?, before - 4000, "a half is still used");
        gates[last].open();
        context.device.synchronize()?;
        assert_eq!(context.free_memory()?, before);
    }
    Ok(())
}

fn halves_keep_the_memory(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut array = context.counting(&[1000])?.on(&stream)?.copy()?;
    let (head, tail) = array.split_at_mut(400)?;
    let memory = Arc::downgrade(array.untyped().memory());
    drop((array, head));
    let others: Vec<_> =
        (0..8).map(|_| DeviceArray::full(&context.device, &[1000], 9)).collect::<Result<_>>()?;
    assert_eq!(tail.to_vec()?, counting(1000)[400..]);
    assert!(memory.upgrade().is_some());
    drop((tail, others));
    assert!(memory.upgrade().is_none());
    Ok(())
}

fn memory_that_is_released_takes_its_parts(context: &Context) -> Outcome {
    let mut array = context.counting(&[100])?;
    let (mut head, tail) = array.split_at_mut(50)?;
    let lease = tail.untyped().memory().lease()?;
    expect_error(array.untyped().memory().release(), ErrorKind::InvalidHandle, &["address"])?;
    drop(lease);
    let part = tail.untyped().memory();
    expect_error(part.release(), ErrorKind::Unsupported, &["part"])?;
    expect_error(part.reissue(), ErrorKind::Unsupported, &["part"])?;
    assert!(part.is_allocated());
    array.untyped().memory().release()?;
    expect_error(head.fill(1), ErrorKind::InvalidHandle, &["freed"])?;
    assert!(!part.is_allocated() && part.check().is_err() && part.lease().is_err());
    Ok(())
}

fn splits_that_do_not_exist_are_refused(context: &Context) -> Outcome {
    let mut array = context.counting(&[3, 2])?;
    expect_error(array.split_at_mut(4), ErrorKind::IndexOutOfRange, &["4", "3"])?;
    assert!(!array.last_status().is_success());
    let mut scalar = array.index(&[0.into(), 0.into()])?;
    assert_eq!(error_of(scalar.split_at_mut(0)).kind(), ErrorKind::InvalidArgument);
    let (none, all) = array.split_at_mut(0)?;
    assert_eq!((none.shape(), all.shape()), (&[0, 2][..], &[3, 2][..]));
    let memory = array.untyped().memory();
    for bytes in [0..25, 25..25, usize::MAX..usize::MAX] {
        assert_eq!(error_of(memory.part(bytes)).kind(), ErrorKind::IndexOutOfRange);
    }
    Ok(())
}

fn threads_update_halves_while_others_read_the_whole(context: &Context) -> Outcome {
    const ELEMENTS: usize = 60_000;
    const ROUNDS: i64 = 40;
    let mut array = DeviceArray::<i64>::zeros(&context.device, &[ELEMENTS])?;
    let halves: [_; 2] = array.split_at_mut(ELEMENTS / 3)?.into();
    let array = &array;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for half in &halves {
            threads.push(scope.spawn(move || {
                let mut half = half.on(&context.stream()?)?;
                (0..ROUNDS).try_for_each(|_| half.update_scalar(functions::Add, 1))
            }));
        }
        for _ in 0..2 {
            threads.push(scope.spawn(move || {
                let whole = array.on(&context.stream()?)?;
                for _ in 0..ROUNDS / 4 {
                    let (head, tail) = whole.copy()?.split_at_mut(ELEMENTS / 3)?;
                    for half in [head, tail] {
                        assert_eq!(half.min()?, half.max()?, "an update is seen as a whole");
                    }
                }
                Ok(())
            }));
        }
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    assert_eq!((array.min()?, array.max()?), (ROUNDS, ROUNDS), "no update is lost");
    Ok(())
}

fn a_graph_of_both_halves_keeps_and_orders_them(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    for drops in [false, true] {
        let mut array = numbers(context, &first, 100)?;
        let (mut head, mut tail) = array.split_at_mut(50)?;
        let fork = context.device.create_event(EventOptions::default())?;
        let graph = capture(&first, || {
            first.record(fork.as_ref())?;
            second.wait_event(fork.as_ref())?;
            tail = tail.on(&second)?;
            tail.update_scalar(functions::Add, 100)?;
            head.update_scalar(functions::Add, 200)?;
            if drops {
                drop((head, tail));
            }
            // This use makes the second stream join the first one's capture again.
            array.update_scalar(functions::Add, 1000)
        })?;
        let memory = Arc::downgrade(array.untyped().memory());
        let copy = array.copy()?;
        drop(array);
        replay(&graph, &first)?;
        replay(&graph, &second)?;
        assert_eq!(copy.to_vec()?, counting(100));
        let memory = memory.upgrade().expect("the graph keeps it");
        let layout = gpuarray::Layout::contiguous(&[100], 4, gpuarray::Order::C)?;
        let array =
            gpuarray::Array::from_memory(memory, layout, gpuarray::DType::Int32, first.clone())?;
        let values = DeviceArray::<i32>::from_untyped(array)?.to_vec()?;
        assert_eq!((values[1], values[51]), (2401, 2251));
    }
    Ok(())
}

fn captures_at_once_write_one_half_each(context: &Context) -> Outcome {
    let streams = [context.stream()?, context.stream()?];
    let mut array = numbers(context, &streams[0], 100)?;
    let halves: [_; 2] = array.split_at_mut(50)?.into();
    streams.iter().try_for_each(|it| it.begin_capture(CaptureMode::Relaxed))?;
    let mut graphs = Vec::new();
    for _ in 0..2 {
        for (half, stream) in halves.iter().zip(&streams) {
            half.on(stream)?.update_scalar(functions::Add, 100)?;
        }
    }
    for stream in &streams {
        graphs.push(stream.end_capture()?);
    }
    let gate = Gate::on(streams[0].as_ref())?;
    // SAFETY: the captures use only arrays.
    unsafe { graphs[0].launch(&streams[0])? };
    // SAFETY: as above.
    unsafe { graphs[1].launch(&streams[1])? };
    streams[1].synchronize()?;
    assert!(!streams[0].query()?, "launches of graphs of different halves are not ordered");
    gate.open();
    let values = array.to_vec()?;
    assert_eq!((values[1], values[51]), (201, 251));
    Ok(())
}

/// A part of an array, and the index of its first element there.
struct Part {
    array: DeviceArray<i32>,
    start: usize,
}

fn random_uses_of_parts_agree_with_a_reference(context: &Context) -> Outcome {
    const ELEMENTS: usize = 3000;
    let mut random = Random(setting("GPUARRAY_PARTS_SEED", 1));
    let streams: Vec<Arc<dyn Stream>> = (0..3).map(|_| context.stream()).collect::<Result<_>>()?;
    let mut expected = counting(ELEMENTS);
    let mut parts = vec![Part { array: context.counting(&[ELEMENTS])?, start: 0 }];
    let mut gate: Option<Gate> = None;
    for step in 0..setting("GPUARRAY_PARTS", 400) {
        let stream = &streams[random.below(streams.len())];
        let number = random.below(parts.len());
        let Part { array, start } = &mut parts[number];
        let (start, length) = (*start, array.size());
        let mut view = array.on(stream)?;
        let own = start..start + length;
        let value = step as i32;
        match random.below(8) {
            0 => {
                let (head, tail) = array.split_at_mut(random.below(length + 1))?;
                let middle = start + head.size();
                parts.extend(
                    [(head, start), (tail, middle)].map(|(array, start)| Part { array, start }),
                );
            }
            1 if parts.len() > 12 => drop(parts.swap_remove(1 + random.below(parts.len() - 1))),
            2 => {
                view.fill(value)?;
                expected[own].fill(value);
            }
            3 | 4 => {
                view.update_scalar(functions::Add, value)?;
                expected[own].iter_mut().for_each(|it| *it = it.wrapping_add(value));
            }
            5 => {
                // The two parts may overlap.
                let other = &parts[random.below(parts.len())];
                let count = length.min(other.array.size());
                let from = other.array.index(&[(0..count).into()])?;
                view.index(&[(0..count).into()])?.assign(&from)?;
                expected.copy_within(other.start..other.start + count, start);
            }
            6 => match gate.take() {
                Some(gate) => gate.open(),
                None => gate = Some(Gate::on(stream.as_ref())?),
            },
            _ if gate.is_none() => assert_eq!(view.to_vec()?, expected[own], "step {step}"),
            _ => {}
        }
    }
    gate.iter().for_each(Gate::open);
    for Part { array, start } in parts.iter().rev() {
        assert_eq!(array.to_vec()?, expected[*start..start + array.size()]);
    }
    Ok(())
}
