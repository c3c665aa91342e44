//! Runtimes that deviate from others; the fake driver is configured to behave like them.

use super::{check_error, check_works, device};
use crate::harness::Outcome;
use crate::kernels::attributes::cooperate;
use crate::programs::{ONE, SOURCE, launch};
use gpuarray::{DeviceArray, ErrorKind, EventOptions, LoadOptions, ModuleSource, StreamOptions};

/// Queries that never report completion: ordering does not rely on them, and `supports_queries`
/// returns false.
pub(super) fn queries() -> Outcome {
    let device = device()?;
    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let event = device.create_event(EventOptions::default())?;
    assert!(!stream.supports_queries() && !event.supports_queries());
    assert!(event.query()?, "an event that was never recorded counts as complete");
    let array = DeviceArray::from_slice(&device, &(0..1000).collect::<Vec<i32>>())?;
    let mut there = array.on(&stream)?.copy()?;
    stream.record(event.as_ref())?;
    event.synchronize()?;
    assert!(!event.query()? && !stream.query()?);
    there.update_scalar(gpuarray::array::functions::Add, 1)?;
    assert_eq!(there.sum()?, 499_500 + 1000);
    stream.synchronize()?;
    drop(there);
    check_works(&device)
}

/// A runtime in which an event that was never recorded is not ready.
pub(super) fn unrecorded() -> Outcome {
    let device = device()?;
    let event = device.create_event(EventOptions::default())?;
    assert!(event.supports_queries() && event.query()?);
    event.synchronize()?;
    let stream = device.create_stream(StreamOptions::default())?;
    stream.record(event.as_ref())?;
    stream.synchronize()?;
    assert!(event.query()?);
    check_works(&device)
}

/// A device with an architecture that no compiler supports: it stores data, and its errors name the
/// architecture.
pub(super) fn architecture() -> Outcome {
    let device = device()?;
    let name = device.properties().architecture.clone();
    let values: Vec<i32> = (0..100).collect();
    let array = DeviceArray::from_slice(&device, &values)?;
    assert_eq!(array.to_vec()?, values);
    let id = device.id().to_string();
    let named = [id.as_str(), &format!("{name:?}")];
    let refused = &array + &array;
    check_error("an operation", refused, ErrorKind::Unsupported, &named);
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    // SAFETY: the text contains only functions.
    let refused = unsafe { device.load_module(&source, &LoadOptions::default()) };
    check_error("a module", refused, ErrorKind::Unsupported, &named);
    Ok(())
}

/// The device does not support a cooperative launch; the error does not mean that the device is
/// lost.
pub(super) fn cooperative() -> Outcome {
    let device = device()?;
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    // SAFETY: the text contains only functions.
    let kernel = unsafe { device.load_module(&source, &LoadOptions::default()) }?.kernel("set")?;
    let stream = device.create_stream(StreamOptions::default())?;
    let mut out = DeviceArray::<i32>::zeros(&device, &[1])?;
    let refused = cooperate(&kernel, ONE, &stream, (&mut out, 3));
    check_error("launch", refused, ErrorKind::Unsupported, &["ooperative"]);
    launch(&kernel, ONE, &stream, (&mut out, 4))?;
    assert_eq!(out.item()?, 4);
    check_works(&device)
}
