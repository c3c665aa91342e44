//! Export of memory and events to other processes, as far as one process can test it. `isolated`
//! uses two processes.

use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::memory::DeviceMemory;
use gpuarray::{ErrorKind, EventOptions, Feature, IpcHandle};

tests![
    sharing_is_refused_by_name,
    an_event_is_either_shared_or_timed needs [Sharing],
    plain_memory_is_exported needs [Sharing],
    memory_of_the_pool_is_not_exported needs [Sharing, DriverPool],
    an_event_made_for_one_process_is_not_exported needs [Sharing],
    an_event_for_other_processes_works_in_its_own needs [Sharing],
    handles_that_are_none_are_refused needs [Sharing],
];

const INTERPROCESS: EventOptions = EventOptions::ORDERING.interprocess(true);

fn sharing_is_refused_by_name(context: &Context) -> Outcome {
    if context.can(Feature::Sharing) {
        return Ok(());
    }
    let kind = ErrorKind::Unsupported;
    let device = &context.device;
    let event = device.create_event(EventOptions::ORDERING)?;
    let handle = IpcHandle([1; 64]);
    let memory = DeviceMemory::plain(device, 64)?;
    expect_error(device.export_memory(memory.address()), kind, &["export_memory"])?;
    expect_error(device.import_memory(&handle), kind, &["import_memory"])?;
    // SAFETY: the call is refused.
    let closed = unsafe { device.close_imported(memory.address()) };
    expect_error(closed, kind, &["close_imported"])?;
    expect_error(device.export_event(event.as_ref()), kind, &["export_event"])?;
    expect_error(device.import_event(&handle), kind, &["import_event"])
}

fn an_event_is_either_shared_or_timed(context: &Context) -> Outcome {
    let both = INTERPROCESS.timing(true);
    let refused = context.device.create_event(both);
    expect_error(refused, ErrorKind::InvalidArgument, &["interprocess", "timing"])
}

fn plain_memory_is_exported(context: &Context) -> Outcome {
    let (first, second) =
        (DeviceMemory::plain(&context.device, 64)?, DeviceMemory::plain(&context.device, 4 << 20)?);
    let handle = context.device.export_memory(first.address())?;
    assert_eq!(context.device.export_memory(first.address())?, handle, "the same each time");
    assert_ne!(context.device.export_memory(second.address())?, handle);
    // A process cannot import its own memory.
    let error = error_of(context.device.import_memory(&handle));
    assert!(!error.detail().is_empty());
    Ok(())
}

fn memory_of_the_pool_is_not_exported(context: &Context) -> Outcome {
    let memory = DeviceMemory::for_stream(&context.device, &context.stream()?, 4096)?;
    let named = format!("{:#x}", memory.address());
    let refused = context.device.export_memory(memory.address());
    expect_error(refused, ErrorKind::InvalidArgument, &[&named, "plain memory"])?;
    let refused = context.device.export_memory(64);
    expect_error(refused, ErrorKind::InvalidArgument, &["0x40", "plain memory"])
}

fn an_event_made_for_one_process_is_not_exported(context: &Context) -> Outcome {
    for options in [EventOptions::default(), EventOptions::ORDERING] {
        let event = context.device.create_event(options)?;
        let error = error_of(context.device.export_event(event.as_ref()));
        assert!(error.detail().contains("interprocess"), "{error}");
    }
    Ok(())
}

fn an_event_for_other_processes_works_in_its_own(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let event = context.device.create_event(INTERPROCESS)?;
    assert_ne!(context.device.export_event(event.as_ref())?, IpcHandle([0; 64]));
    stream.record(event.as_ref())?;
    context.device.default_stream().wait_event(event.as_ref())?;
    event.synchronize()?;
    assert!(event.query()?);
    let refused = event.elapsed_since(event.as_ref());
    expect_error(refused, ErrorKind::InvalidHandle, &["without timing"])
}

fn handles_that_are_none_are_refused(context: &Context) -> Outcome {
    for bytes in [[0; 64], [0xff; 64]] {
        for error in [
            error_of(context.device.import_memory(&IpcHandle(bytes))),
            error_of(context.device.import_event(&IpcHandle(bytes))),
        ] {
            assert!(!error.status().is_success(), "{error}");
            assert!(!error.detail().is_empty(), "{error}");
        }
    }
    Ok(())
}
