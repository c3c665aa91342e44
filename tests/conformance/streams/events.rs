//! Events: recording, queries, waits and times.

use crate::context::{Context, Gate, expect_error, pause};
use crate::harness::{Outcome, tests};
use gpuarray::{ErrorKind, Event, EventOptions, Result, Status, StatusExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

tests![
    an_event_that_was_never_recorded_counts_as_complete,
    an_event_is_complete_once_the_work_before_it_has_run,
    synchronize_waits_for_the_recorded_place_only needs [Progress],
    a_stream_waits_for_an_event_of_another,
    a_stream_does_not_wait_for_what_is_recorded_later,
    recording_again_moves_the_mark,
    elapsed_time_is_that_of_the_work_between,
    elapsed_time_of_reversed_events_is_negative,
    elapsed_time_of_unfinished_work_is_not_ready,
    elapsed_time_needs_recorded_events_with_timing,
    events_of_the_default_stream_are_timed,
    an_event_outlives_its_stream,
    events_have_handles_of_their_own,
    the_last_status_is_that_of_the_last_call,
];

fn event(context: &Context) -> Result<Arc<dyn Event>> {
    context.device.create_event(EventOptions::default())
}

fn the_last_status_is_that_of_the_last_call(context: &Context) -> Outcome {
    let (start, end) = (event(context)?, event(context)?);
    assert_eq!(end.last_status(), Status::OK);
    let refused = end.elapsed_since(start.as_ref());
    assert_eq!(refused.status().code, Status::INVALID_HANDLE);
    assert_eq!(end.last_status(), refused.status());
    assert_eq!(start.last_status(), Status::OK);
    let (done, status) = end.query().split_or_default();
    assert!(done && status.is_success());
    assert_eq!(end.last_status(), Status::OK);
    Ok(())
}

fn an_event_that_was_never_recorded_counts_as_complete(context: &Context) -> Outcome {
    let event = event(context)?;
    assert_eq!(event.device_id(), context.device.id());
    assert!(event.query()?);
    event.synchronize()?;
    let stream = context.stream()?;
    stream.wait_event(event.as_ref())?;
    stream.synchronize()?;
    Ok(())
}

fn an_event_is_complete_once_the_work_before_it_has_run(context: &Context) -> Outcome {
    for stream in [context.stream()?, context.blocking_stream()?, context.device.default_stream()] {
        let event = event(context)?;
        let gate = Gate::on(stream.as_ref())?;
        stream.record(event.as_ref())?;
        assert!(!event.query()?);
        let opener = gate.open_later();
        event.synchronize()?;
        assert!(event.query()?);
        opener.join().unwrap();
    }
    Ok(())
}

fn synchronize_waits_for_the_recorded_place_only(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let event = event(context)?;
    stream.host_function(Box::new(|| ()))?;
    stream.record(event.as_ref())?;
    let gate = Gate::on(stream.as_ref())?;
    event.synchronize()?;
    assert!(!stream.query()?);
    gate.open();
    Ok(())
}

fn a_stream_waits_for_an_event_of_another(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let event = event(context)?;
    let gate = Gate::on(first.as_ref())?;
    first.record(event.as_ref())?;
    second.wait_event(event.as_ref())?;
    let ran = flag_on(second.as_ref())?;
    pause();
    assert!(!ran.load(Ordering::SeqCst));
    gate.open();
    second.synchronize()?;
    assert!(ran.load(Ordering::SeqCst));
    Ok(())
}

fn a_stream_does_not_wait_for_what_is_recorded_later(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let event = event(context)?;
    second.wait_event(event.as_ref())?;
    let gate = Gate::on(first.as_ref())?;
    first.record(event.as_ref())?;
    let ran = flag_on(second.as_ref())?;
    second.synchronize()?;
    assert!(ran.load(Ordering::SeqCst));
    gate.open();
    Ok(())
}

fn recording_again_moves_the_mark(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let event = event(context)?;
    stream.record(event.as_ref())?;
    stream.synchronize()?;
    assert!(event.query()?);
    let gate = Gate::on(stream.as_ref())?;
    stream.record(event.as_ref())?;
    assert!(!event.query()?);
    gate.open();
    event.synchronize()?;
    Ok(())
}

fn elapsed_time_is_that_of_the_work_between(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let (start, end) = (event(context)?, event(context)?);
    let begun = Instant::now();
    stream.record(start.as_ref())?;
    stream.host_function(Box::new(|| std::thread::sleep(Duration::from_millis(20))))?;
    stream.record(end.as_ref())?;
    end.synchronize()?;
    let limit = begun.elapsed().as_secs_f32() * 1e3;
    let milliseconds = end.elapsed_since(start.as_ref())?;
    assert!((19.0..=limit + 1.0).contains(&milliseconds), "{milliseconds} of {limit} ms");
    Ok(())
}

fn elapsed_time_of_reversed_events_is_negative(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let (first, second) = (event(context)?, event(context)?);
    stream.record(first.as_ref())?;
    stream.host_function(Box::new(|| std::thread::sleep(Duration::from_millis(2))))?;
    stream.record(second.as_ref())?;
    stream.synchronize()?;
    assert!(first.elapsed_since(second.as_ref())? < 0.0);
    assert_eq!(first.elapsed_since(first.as_ref())?, 0.0);
    Ok(())
}

fn elapsed_time_of_unfinished_work_is_not_ready(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let (start, end) = (event(context)?, event(context)?);
    stream.record(start.as_ref())?;
    let gate = Gate::on(stream.as_ref())?;
    stream.record(end.as_ref())?;
    expect_error(end.elapsed_since(start.as_ref()), ErrorKind::NotReady, &[])?;
    gate.open();
    Ok(())
}

fn elapsed_time_needs_recorded_events_with_timing(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let (recorded, never) = (event(context)?, event(context)?);
    let options = EventOptions::ORDERING.blocking(true);
    let untimed = context.device.create_event(options)?;
    stream.record(recorded.as_ref())?;
    stream.record(untimed.as_ref())?;
    stream.synchronize()?;
    for (end, start) in
        [(&never, &recorded), (&recorded, &never), (&untimed, &recorded), (&recorded, &untimed)]
    {
        expect_error(end.elapsed_since(start.as_ref()), ErrorKind::InvalidHandle, &[])?;
    }
    assert!(untimed.query()?);
    Ok(())
}

fn events_of_the_default_stream_are_timed(context: &Context) -> Outcome {
    let stream = context.device.default_stream();
    let (start, end) = (event(context)?, event(context)?);
    stream.record(start.as_ref())?;
    let array = context.counting(&[1000])?;
    let _doubled = (&array + &array)?;
    stream.record(end.as_ref())?;
    end.synchronize()?;
    assert!(end.elapsed_since(start.as_ref())? >= 0.0);
    Ok(())
}

fn an_event_outlives_its_stream(context: &Context) -> Outcome {
    let event = event(context)?;
    let stream = context.stream()?;
    let gate = Gate::on(stream.as_ref())?;
    stream.record(event.as_ref())?;
    drop(stream);
    assert!(!event.query()?);
    gate.open();
    event.synchronize()?;
    Ok(())
}

fn events_have_handles_of_their_own(context: &Context) -> Outcome {
    let (first, second) = (event(context)?, event(context)?);
    assert_ne!(first.handle(), second.handle());
    assert_ne!(first.handle(), 0);
    Ok(())
}

fn flag_on(stream: &dyn gpuarray::Stream) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let copy = flag.clone();
    stream.host_function(Box::new(move || copy.store(true, Ordering::SeqCst)))?;
    Ok(flag)
}
