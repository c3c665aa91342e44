//! Recordings of a run: which calls they contain, and the times of host and device.
//!
//! Other tests run at the same time, so each test looks at its own streams, and at memory of its own size.

use crate::captures::graphs::capture;
use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::programs::{self, launch};
use gpuarray::recording::{
    AtLine, Kind, Recording, Row, Session, Sort, Work, line_number, queued, wait_event,
};
use gpuarray::{DeviceArray, EventOptions, LaunchConfig, PinnedBuffer, Result, Stream};
use std::thread;
use std::time::Duration;

tests![
    each_call_is_recorded_once,
    a_launch_is_recorded_with_its_configuration needs [Kernels],
    captured_work_has_no_device_time needs [Graphs],
    memory_in_use_follows_allocations_and_frees,
    sessions_contain_what_they_saw,
    calls_of_several_threads_are_kept_apart,
    events_of_many_calls_are_reused,
    work_begins_after_the_work_that_it_waits_for,
    a_call_that_fails_is_not_recorded,
    tables_timelines_and_pages_contain_the_calls,
];

fn on<'a>(recording: &'a Recording, stream: &dyn Stream) -> Vec<&'a Row> {
    recording.rows.iter().filter(|row| row.stream == stream.id()).collect()
}

fn told(rows: &[&Row]) -> Vec<(Kind, String, u64)> {
    rows.iter().map(|row| (row.kind, row.name.clone(), row.bytes)).collect()
}

fn each_call_is_recorded_once(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = DeviceArray::<f32>::ones_on(&context.device, &stream, &[1000])?;
    let session = Session::begin();
    let line = AtLine::new(line_number("program.py:7"));
    let y = (&x + &x)?;
    drop(line);
    let total = y.sum()?;
    let buffer = PinnedBuffer::new(&context.device, 1000)?;
    let values = y.copy_to_pinned(buffer)?.wait()?;
    let recording = session.finish();
    assert_eq!((total, values[999]), (2000.0, 2.0));

    let rows = on(&recording, stream.as_ref());
    let expected = [
        (Kind::Operation, "add float32", 12_000),
        (Kind::Operation, "sum float32", 4004),
        (Kind::Copy, "device to host", 4),
        (Kind::Copy, "device to host", 4000),
    ];
    assert_eq!(told(&rows), expected.map(|(kind, name, bytes)| (kind, name.to_owned(), bytes)));
    assert_eq!((&*rows[0].line, &*rows[1].line), ("program.py:7", ""));
    let mut end = f64::MIN;
    for row in rows {
        assert!(row.start >= 0.0 && row.seconds >= 0.0 && row.start <= recording.seconds);
        let start = row.device_start.expect("work has a time");
        assert!(start >= end, "work on one stream does not overlap");
        end = start + row.device_seconds.expect("work has a time");
    }
    Ok(())
}

fn a_launch_is_recorded_with_its_configuration(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let kernel = programs::kernel(context, "add")?;
    let mut values = DeviceArray::<i32>::zeros_on(&context.device, &stream, &[300])?;
    let config = LaunchConfig::linear(300, 128);
    let session = Session::begin();
    launch(&kernel, config, &stream, (&mut values, 5, 300))?;
    let recording = session.finish();
    let rows = on(&recording, stream.as_ref());
    assert_eq!(told(&rows), [(Kind::Kernel, "add".to_owned(), 1200)]);
    assert_eq!(rows[0].launch, Some(config));
    assert!(rows[0].device_seconds.is_some());
    assert_eq!(values.to_vec()?, [5; 300]);
    Ok(())
}

fn captured_work_has_no_device_time(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = DeviceArray::<f32>::ones_on(&context.device, &stream, &[10])?;
    stream.synchronize()?;
    let unrecorded = capture(&stream, || x.mul_assign(2.0))?;
    let session = Session::begin();
    let graph = capture(&stream, || x.mul_assign(2.0))?;
    let work = || Work::new(Kind::Graph, "graph");
    // SAFETY: the graph's array lives until the end of the test.
    queued(stream.as_ref(), work, || unsafe { graph.launch(&stream) })?;
    let recording = session.finish();
    let rows = on(&recording, stream.as_ref());
    let timed: Vec<_> = rows.iter().map(|row| (row.kind, row.device_seconds.is_some())).collect();
    assert_eq!(timed, [(Kind::Operation, false), (Kind::Graph, true)]);
    assert_eq!(graph.node_count(), unrecorded.node_count(), "no event is captured");
    assert_eq!(x.to_vec()?, [2.0; 10]);
    Ok(())
}

fn memory_in_use_follows_allocations_and_frees(context: &Context) -> Outcome {
    const BYTES: usize = 76_543;
    let session = Session::begin();
    let x = DeviceArray::<u8>::zeros(&context.device, &[BYTES])?;
    let y = DeviceArray::<u8>::zeros(&context.device, &[BYTES])?;
    drop((x, y));
    let recording = session.finish();
    let own = |row: &&Row| row.bytes == BYTES as u64 && row.in_use.is_some();
    let rows: Vec<_> = recording.rows.iter().filter(own).collect();
    let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [Kind::Allocate, Kind::Allocate, Kind::Free, Kind::Free]);
    assert!(rows.iter().all(|row| row.device == Some(context.device.id())));
    Ok(())
}

fn sessions_contain_what_they_saw(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = DeviceArray::<f32>::ones_on(&context.device, &stream, &[10])?;
    let outer = Session::begin();
    let _first = (&x * 2.0)?;
    let inner = Session::begin();
    let _second = (&x * 3.0)?;
    let inner = inner.finish();
    let _third = (&x * 4.0)?;
    let outer = outer.finish();
    let _fourth = (&x * 5.0)?;
    let count = |recording: &Recording| on(recording, stream.as_ref()).len();
    assert_eq!((count(&outer), count(&inner)), (3, 1));
    assert_eq!(count(&Session::begin().finish()), 0);
    Ok(())
}

fn calls_of_several_threads_are_kept_apart(context: &Context) -> Outcome {
    let session = Session::begin();
    let run = |calls: usize| -> Result<_> {
        let stream = context.stream()?;
        let x = DeviceArray::<f32>::ones_on(&context.device, &stream, &[10])?;
        for _ in 1..calls {
            let _ = (&x + &x)?;
        }
        Ok(stream)
    };
    let streams: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..5).map(|number| scope.spawn(move || run(number * 20))).collect();
        threads.into_iter().map(|it| it.join().expect("no panic")).collect::<Result<_>>()
    })?;
    let recording = session.finish();
    let mut threads = Vec::new();
    for (number, stream) in (1..).zip(&streams) {
        let rows = on(&recording, stream.as_ref());
        assert_eq!(rows.len(), number * 20);
        assert!(rows.iter().all(|row| row.thread == rows[0].thread));
        assert!(rows.iter().all(|row| row.device_seconds.is_some()));
        threads.push(rows[0].thread);
    }
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 4);
    Ok(())
}

fn events_of_many_calls_are_reused(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut x = DeviceArray::<f32>::zeros_on(&context.device, &stream, &[4])?;
    let session = Session::begin();
    for _ in 0..10_000 {
        x.add_assign(1.0)?;
    }
    let recording = session.finish();
    let rows = on(&recording, stream.as_ref());
    assert_eq!(rows.len(), 10_000);
    assert!(rows.iter().all(|row| row.device_seconds.is_some()));
    assert_eq!(x.to_vec()?, [10_000.0; 4]);
    Ok(())
}

fn work_begins_after_the_work_that_it_waits_for(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let x = DeviceArray::<f32>::ones_on(&context.device, &first, &[10])?;
    let y = DeviceArray::<f32>::ones_on(&context.device, &second, &[10])?;
    let written = context.device.create_event(EventOptions::ORDERING)?;
    let session = Session::begin();
    first.queue_function(Box::new(|| {
        thread::sleep(Duration::from_millis(20));
        Ok(())
    }))?;
    let _earlier = (&x * 2.0)?;
    first.record(written.as_ref())?;
    let _independent = (&y * 2.0)?;
    wait_event(second.as_ref(), written.as_ref())?;
    let _later = (&y * 3.0)?;
    let recording = session.finish();
    let span = |row: &Row| {
        let start = row.device_start.expect("work has a time");
        (start, start + row.device_seconds.expect("work has a time"))
    };
    let (earlier, later) = (on(&recording, first.as_ref()), on(&recording, second.as_ref()));
    assert_eq!((earlier.len(), later.len()), (1, 2));
    let (earlier, later) = (span(earlier[0]), span(later[1]));
    // The clocks of host and device are compared to within microseconds.
    assert!(later.0 > earlier.1 - 1e-4, "{later:?} waits for {earlier:?}");
    Ok(())
}

fn a_call_that_fails_is_not_recorded(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let session = Session::begin();
    let work = || Work::new(Kind::Fill, "fill");
    // SAFETY: a width of 3 bytes is refused, so that nothing is written.
    let refused = queued(stream.as_ref(), work, || unsafe { stream.fill(0, 0, 3, 1) });
    assert!(refused.is_err());
    assert_eq!(on(&session.finish(), stream.as_ref()).len(), 0);
    Ok(())
}

fn tables_timelines_and_pages_contain_the_calls(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = DeviceArray::<f64>::ones_on(&context.device, &stream, &[500])?;
    let session = Session::begin();
    let line = AtLine::new(line_number("a \"quoted\" </script> name.py:3"));
    let _y = x.sqrt()?;
    drop(line);
    let mut recording = session.finish();
    recording.rows.retain(|row| row.stream == stream.id());
    recording.describe(context.device.as_ref(), Some(1e9));

    let table = recording.table(Sort::Time);
    let row = table.lines().find(|row| row.contains("sqrt float64")).expect("the call has a row");
    assert!(row.contains('%') && row.ends_with("name.py:3"), "{row}");
    assert!(table.contains("limit 1.0 GB/s"), "{table}");
    let timeline = recording.timeline();
    assert!(timeline.contains(r#""line":"a \"quoted\" </script> name.py:3""#), "{timeline}");
    assert_eq!(timeline.matches(r#""ph":"X""#).count(), 2, "on the host and on the device");
    let page = recording.page("a < b");
    assert!(page.contains("<title>a &lt; b</title>"));
    assert_eq!(page.matches("</script>").count(), 2, "no text ends the script");
    Ok(())
}
