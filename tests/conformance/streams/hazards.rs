//! Arrays order the streams that use them: these tests only synchronise to read results.

use crate::context::{Context, Gate, pause};
use crate::harness::{Outcome, tests};
use gpuarray::DeviceArray;
use gpuarray::array::functions;

tests![
    a_read_on_another_stream_comes_after_the_write,
    a_write_on_another_stream_comes_after_the_reads,
    a_write_on_another_stream_comes_after_the_write,
    a_write_on_a_reader_comes_after_later_reads_of_the_writer,
    views_are_ordered_as_the_arrays_they_show,
    the_default_stream_comes_after_a_non_blocking_one,
    a_non_blocking_stream_comes_after_the_default_one,
    an_operation_waits_for_both_of_its_inputs,
    memory_is_not_freed_while_another_stream_uses_it needs [ExactAccounting],
    a_chain_over_many_streams_is_ordered,
    transfers_are_ordered_like_other_uses,
    reads_on_two_streams_do_not_wait_for_each_other,
];

fn a_read_on_another_stream_comes_after_the_write(context: &Context) -> Outcome {
    let (writer, reader) = (context.stream()?, context.stream()?);
    let mut array = DeviceArray::<i32>::zeros(&context.device, &[100])?.on(&writer)?;
    let seen = array.on(&reader)?;
    let gate = Gate::on(writer.as_ref())?;
    array.fill(7)?;
    let doubled = (&seen + &seen)?;
    pause();
    assert!(!reader.query()?, "the reader waits for the writer");
    gate.open();
    assert_eq!(doubled.to_vec()?, [14; 100]);
    Ok(())
}

fn a_write_on_another_stream_comes_after_the_reads(context: &Context) -> Outcome {
    let (first, second, writer) = (context.stream()?, context.stream()?, context.stream()?);
    let array = DeviceArray::<i32>::full(&context.device, &[100], 3)?;
    let gates = [Gate::on(first.as_ref())?, Gate::on(second.as_ref())?];
    let sums = [(&array.on(&first)? + 1)?, (&array.on(&second)? + 2)?];
    let mut written = array.on(&writer)?;
    written.fill(50)?;
    for gate in gates {
        pause();
        assert!(!writer.query()?, "the writer waits for both readers");
        gate.open();
    }
    assert_eq!(sums[0].to_vec()?, [4; 100]);
    assert_eq!(sums[1].to_vec()?, [5; 100]);
    assert_eq!(written.to_vec()?, [50; 100]);
    Ok(())
}

fn a_write_on_another_stream_comes_after_the_write(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let array = DeviceArray::<i32>::zeros(&context.device, &[100])?;
    let gate = Gate::on(first.as_ref())?;
    array.on(&first)?.fill(1)?;
    array.on(&second)?.fill(2)?;
    gate.open();
    assert_eq!(array.to_vec()?, [2; 100]);
    Ok(())
}

fn a_write_on_a_reader_comes_after_later_reads_of_the_writer(context: &Context) -> Outcome {
    for writer in [context.stream()?, context.blocking_stream()?, context.device.default_stream()] {
        let reader = context.stream()?;
        let array = DeviceArray::<i32>::zeros(&context.device, &[100])?;
        array.on(&writer)?.fill(2)?;
        let early = (&array.on(&reader)? + 1)?;
        let gate = Gate::on(writer.as_ref())?;
        let late = (&array.on(&writer)? + 2)?;
        array.on(&reader)?.fill(5)?;
        pause();
        assert!(!reader.query()?, "the second write waits for the read on the writer's stream");
        gate.open();
        assert_eq!(early.to_vec()?, [3; 100]);
        assert_eq!(late.to_vec()?, [4; 100]);
        assert_eq!(array.to_vec()?, [5; 100]);
    }
    Ok(())
}

fn views_are_ordered_as_the_arrays_they_show(context: &Context) -> Outcome {
    let (writer, reader) = (context.stream()?, context.stream()?);
    let array = context.counting(&[4, 4])?;
    let gate = Gate::on(writer.as_ref())?;
    array.on(&writer)?.index(&[1.into()])?.fill(-1)?;
    let column = array.transpose(None)?.index(&[0.into()])?.on(&reader)?.copy()?;
    assert!(!reader.query()?);
    gate.open();
    assert_eq!(column.to_vec()?, [0, -1, 8, 12]);
    Ok(())
}

fn the_default_stream_comes_after_a_non_blocking_one(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = DeviceArray::<i32>::zeros(&context.device, &[10])?;
    let gate = Gate::on(stream.as_ref())?;
    array.on(&stream)?.fill(4)?;
    let doubled = (&array + &array)?;
    gate.open();
    assert_eq!(doubled.to_vec()?, [8; 10]);
    Ok(())
}

fn a_non_blocking_stream_comes_after_the_default_one(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut array = DeviceArray::<i32>::zeros(&context.device, &[10])?;
    let gate = Gate::on(context.device.default_stream().as_ref())?;
    array.fill(4)?;
    let seen = array.on(&stream)?;
    let doubled = (&seen + &seen)?;
    gate.open();
    assert_eq!(doubled.to_vec()?, [8; 10]);
    Ok(())
}

fn an_operation_waits_for_both_of_its_inputs(context: &Context) -> Outcome {
    let streams = [context.stream()?, context.stream()?, context.stream()?];
    let a = DeviceArray::<i32>::zeros(&context.device, &[10])?;
    let b = DeviceArray::<i32>::zeros(&context.device, &[10])?;
    let gates = [Gate::on(streams[0].as_ref())?, Gate::on(streams[1].as_ref())?];
    a.on(&streams[0])?.fill(1)?;
    b.on(&streams[1])?.fill(10)?;
    let sum = (&a.on(&streams[2])? + &b)?;
    for gate in gates {
        pause();
        assert!(!streams[2].query()?);
        gate.open();
    }
    assert_eq!(sum.to_vec()?, [11; 10]);
    Ok(())
}

fn memory_is_not_freed_while_another_stream_uses_it(context: &Context) -> Outcome {
    let (home, user) = (context.stream()?, context.stream()?);
    let before = context.free_memory()?;
    let array = DeviceArray::<i32>::full(&context.device, &[1000], 6)?.on(&home)?.copy()?;
    let gate = Gate::on(user.as_ref())?;
    let total = array.on(&user)?.reduce(functions::Sum, None)?;
    drop(array);
    home.query()?;
    pause();
    assert_eq!(context.free_memory()?, before - 4000 - 4);
    gate.open();
    assert_eq!(total.item()?, 6000);
    home.synchronize()?;
    drop(total);
    context.device.synchronize()?;
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn a_chain_over_many_streams_is_ordered(context: &Context) -> Outcome {
    let streams = (0..6).map(|_| context.stream()).collect::<Result<Vec<_>, _>>()?;
    let array = DeviceArray::<i64>::ones(&context.device, &[500])?;
    let gate = Gate::on(streams[0].as_ref())?;
    let mut expected = 1i64;
    for step in 0..60usize {
        let mut view = array.on(&streams[step * 5 % streams.len()])?;
        let value = step as i64 % 3 + 1;
        if step % 2 == 0 {
            view.update_scalar(functions::Multiply, value)?;
            expected = expected.wrapping_mul(value);
        } else {
            view.update_scalar(functions::Add, value)?;
            expected = expected.wrapping_add(value);
        }
    }
    gate.open();
    assert_eq!(array.to_vec()?, [expected; 500]);
    Ok(())
}

fn transfers_are_ordered_like_other_uses(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let array = DeviceArray::<i32>::zeros(&context.device, &[64])?;
    let gate = Gate::on(first.as_ref())?;
    array.on(&first)?.fill(1)?;
    let opener = gate.open_later();
    array.on(&second)?.copy_from_slice(&[2; 64])?;
    opener.join().unwrap();
    assert_eq!(array.to_vec()?, [2; 64]);
    Ok(())
}

fn reads_on_two_streams_do_not_wait_for_each_other(context: &Context) -> Outcome {
    let (held, free) = (context.stream()?, context.stream()?);
    let array = context.counting(&[8])?;
    let gate = Gate::on(held.as_ref())?;
    let slow = (&array.on(&held)? + 1)?;
    let quick = (&array.on(&free)? + 2)?;
    assert_eq!(quick.to_vec()?[0], 2);
    assert!(!held.query()?);
    gate.open();
    assert_eq!(slow.to_vec()?[0], 1);
    Ok(())
}
