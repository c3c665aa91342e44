//! Kernels that fault, and device resets.

use super::{backend, check_error, check_works, device};
use crate::backends::is_double;
use crate::harness::Outcome;
use crate::programs::{ONE, grid};
use gpuarray::memory::{DeviceMemory, Managed, PinnedMemory, RegisteredMemory, last_failed_free};
use gpuarray::{
    CaptureMode, Device, DeviceArray, ErrorKind, Event, EventOptions, Graph, Kernel, LoadOptions,
    Module, ModuleSource, Result, Status, Stream, StreamOptions,
};
use std::sync::Arc;

const SOURCE: &str = r#"
extern "C" {
__global__ void set(int* out, int value) { *out = value; }
__global__ void out_of_bounds(int* out) { *(volatile int*)16 = *out; }
__global__ void trap(int* out) { if (*out == 0) __trap(); }
__global__ void assertion(int* out) { assert(*out != 0); }
__global__ void misaligned(char* out) { *(volatile int*)(out + 1) = 1; }
}
"#;

/// One object of each kind, all in use.
struct Objects {
    device: Arc<dyn Device>,
    stream: Arc<dyn Stream>,
    event: Arc<dyn Event>,
    array: DeviceArray<i32>,
    plain: DeviceMemory,
    pooled: DeviceMemory,
    pinned: PinnedMemory,
    module: Arc<dyn Module>,
    kernel: Arc<dyn Kernel>,
    graph: Arc<dyn Graph>,
}

impl Objects {
    fn new(device: &Arc<dyn Device>) -> Result<Objects> {
        let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
        let event = device.create_event(EventOptions::default())?;
        let mut array = DeviceArray::<i32>::zeros(device, &[100])?.on(&stream)?.copy()?;
        array.update_scalar(gpuarray::array::functions::Add, 0)?;
        let plain = DeviceMemory::plain(device, 4096)?;
        let pooled = DeviceMemory::for_stream(device, &stream, 5 << 20)?;
        let pinned = PinnedMemory::new(device, 4096)?;
        let source = ModuleSource::Source { text: SOURCE, name: "faults.cu", options: &[] };
        // SAFETY: the text contains only functions.
        let module = unsafe { device.load_module(&source, &LoadOptions::default()) }?;
        let kernel = module.kernel("set")?;
        stream.begin_capture(CaptureMode::default())?;
        array.fill(0)?;
        let graph = stream.end_capture()?;
        stream.record(event.as_ref())?;
        stream.synchronize()?;
        let device = device.clone();
        Ok(Objects { device, stream, event, array, plain, pooled, pinned, module, kernel, graph })
    }

    /// Launches a kernel whose only parameter is the array.
    fn launch(&self, name: &str) -> Result<()> {
        let kernel = self.module.kernel(name)?;
        // SAFETY: some of these kernels fault on purpose; no other work runs in the process.
        unsafe { kernel.launch(ONE, &self.stream, (&mut self.array.clone(),)) }
    }

    fn launch_set(&self) -> Result<()> {
        // SAFETY: the kernel takes an array and a number.
        unsafe { self.kernel.launch(grid(1, 1), &self.stream, (&mut self.array.clone(), 1)) }
    }

    /// Checks that every kind of call fails with this kind of error.
    fn check_all(&self, kind: ErrorKind, named: &[&str]) {
        let Objects { device, stream, event, .. } = self;
        let check = |what: &str, result: Result<()>| drop(check_error(what, result, kind, named));
        check("synchronize", stream.synchronize());
        check("query", stream.query().map(drop));
        check("record", stream.record(event.as_ref()));
        check("event synchronize", event.synchronize());
        check("event query", event.query().map(drop));
        check("launch", self.launch_set());
        check("kernel", self.module.kernel("set").map(drop));
        // SAFETY: the graph is refused.
        check("graph launch", unsafe { self.graph.launch(stream) });
        check("operation", (&self.array + &self.array).map(drop));
        check("download", self.array.to_vec().map(drop));
        // SAFETY: the range is inside the allocation, and the call is refused.
        check("fill", unsafe { stream.fill(self.plain.address(), 0, 1, 64) });
        check("large allocation", stream.allocate(9 << 20).map(drop));
        let _ = device;
    }

    /// Checks that calls which create an object fail with this kind of error.
    fn check_new(&self, kind: ErrorKind, named: &[&str]) {
        let device = &self.device;
        let check = |what: &str, result: Result<()>| drop(check_error(what, result, kind, named));
        check("create_stream", device.create_stream(StreamOptions::default()).map(drop));
        check("create_event", device.create_event(EventOptions::default()).map(drop));
        check("allocate", device.allocate(64).map(drop));
        check("memory_info", device.memory_info().map(drop));
        check("device synchronize", device.synchronize());
        let source = ModuleSource::Source { text: SOURCE, name: "faults.cu", options: &[] };
        // SAFETY: the text contains only functions.
        let loaded = unsafe { device.load_module(&source, &LoadOptions::default()) };
        check("load_module", loaded.map(drop));
    }
}

/// A fault: every later call reports it, and a reset recovers the device.
pub(super) fn fault(kernel: &str) -> Outcome {
    let device = device()?;
    let objects = Objects::new(&device)?;
    objects.launch(kernel)?;
    let first = objects.stream.synchronize();
    let name = &device.id().to_string();
    check_error("the first call", first, ErrorKind::LaunchFailed, &["reset", name]);
    objects.check_all(ErrorKind::DeviceLost, &["reset", "Device.reset()"]);
    objects.check_new(ErrorKind::DeviceLost, &["reset", "Device.reset()"]);
    if !recover(&device)? {
        objects.check_all(ErrorKind::InvalidHandle, &["reset"]);
        objects.check_new(ErrorKind::DeviceLost, &["start the program again"]);
        return Ok(());
    }
    objects.check_all(ErrorKind::InvalidHandle, &["reset"]);
    check_works(&device)?;
    drop(objects);
    check_works(&device)?;
    // After the reset a second fault is reported like the first one.
    let objects = Objects::new(&device)?;
    objects.launch(kernel)?;
    let first = objects.stream.synchronize();
    check_error("the first call", first, ErrorKind::LaunchFailed, &["reset"]);
    drop(objects);
    recover(&device)?;
    check_works(&device)
}

/// Resets the device. Returns false if the driver cannot recover within the process, and its error
/// says so.
fn recover(device: &Arc<dyn Device>) -> Result<bool> {
    let epoch = device.epoch();
    // SAFETY: nothing else in the process uses the device, and no earlier memory is read.
    let result = unsafe { device.reset() };
    assert!(device.epoch() > epoch);
    match result {
        Err(error) if error.kind() == ErrorKind::DeviceLost => {
            assert!(error.detail().contains("start the program again"), "{error}");
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Different calls that are the first to report the fault.
pub(super) fn noticed(by: &str) -> Outcome {
    let device = device()?;
    let objects = Objects::new(&device)?;
    let event = device.create_event(EventOptions::default())?;
    let plain = DeviceMemory::plain(&device, 64)?;
    objects.launch("out_of_bounds")?;
    let result = match by {
        "event" => {
            objects.stream.record(event.as_ref())?;
            event.synchronize()
        }
        "download" => objects.array.to_vec().map(drop),
        "device" => device.synchronize(),
        "drop" => {
            // Freeing waits for the device, and its failure is only logged.
            drop(plain);
            objects.stream.synchronize()
        }
        other => return Err(format!("{other} notices nothing").into()),
    };
    let kind = match last_failed_free().code {
        0 => ErrorKind::LaunchFailed,
        _ => ErrorKind::DeviceLost,
    };
    check_error(by, result, kind, &["kernel", "reset"]);
    assert!(kind == ErrorKind::LaunchFailed || by == "drop");
    objects.check_all(ErrorKind::DeviceLost, &["reset"]);
    Ok(())
}

/// A second device while a kernel has faulted on the first.
pub(super) fn beside() -> Outcome {
    let backend = backend()?;
    let (first, second) = (backend.device(0)?, backend.device(1)?);
    let (objects, others) = (Objects::new(&first)?, Objects::new(&second)?);
    objects.launch("trap")?;
    check_error("fault", objects.stream.synchronize(), ErrorKind::LaunchFailed, &["reset"]);
    // Some drivers end the process's work on every device.
    if !is_double(backend.as_ref())? && check_works(&second).is_err() {
        others.check_all(ErrorKind::DeviceLost, &["reset", "Device.reset()"]);
        return Ok(());
    }
    others.launch_set()?;
    assert_eq!(others.array.to_vec()?[0], 1);
    if recover(&first)? {
        check_works(&first)?;
    }
    assert_eq!(others.array.to_vec()?[0], 1);
    check_works(&second)
}

/// A process that exits after a fault, and drops its objects on the way.
pub(super) fn exit() -> Outcome {
    let objects = Objects::new(&device()?)?;
    objects.launch("trap")?;
    assert!(objects.stream.synchronize().is_err());
    Ok(())
}

/// A reset without a fault.
pub(super) fn reset() -> Outcome {
    let device = device()?;
    let mut bytes = vec![0u8; 8192];
    for round in 1..=2 {
        let mut objects = Objects::new(&device)?;
        objects.pinned.fill(round as u8);
        // Small ranges may share a page. Some runtimes do not have managed memory.
        let sizes = [100, 1000, 3 << 20];
        let managed = |bytes| Managed::new(&device, bytes).ok().map(|memory| (memory, bytes));
        let managed: Vec<_> = sizes.into_iter().filter_map(managed).collect();
        for (memory, bytes) in &managed {
            // SAFETY: the host may write the memory, which no work uses.
            unsafe { memory.pointer().write_bytes(round as u8, *bytes) };
        }
        // SAFETY: the object is dropped before the bytes are.
        let registered = unsafe { RegisteredMemory::new(&device, &mut bytes)? };
        objects.launch_set()?;
        let unused = device.create_stream(StreamOptions::default())?;
        recover(&device)?;
        assert_eq!(device.epoch(), round);
        objects.check_all(ErrorKind::InvalidHandle, &["reset"]);
        let error = unused.synchronize();
        check_error("another stream", error, ErrorKind::InvalidHandle, &["reset"]);
        check_works(&device)?;
        // The host's page-locked bytes survive the reset, and the host may go on using them.
        assert!(objects.pinned.iter().all(|&byte| u64::from(byte) == round));
        objects.pinned.fill(9);
        let error = device.pinned_address(objects.pinned.pointer());
        check_error("page-locked memory", error, ErrorKind::InvalidHandle, &["reset"]);
        for (memory, bytes) in managed {
            // SAFETY: a reset leaves the bytes valid, and nothing else uses them.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.pointer(), bytes) };
            assert!(bytes.iter().all(|&byte| u64::from(byte) == round));
            bytes.fill(9);
            let error = memory.allocation().memory().check();
            check_error("managed memory", error, ErrorKind::InvalidHandle, &["reset"]);
            memory.allocation().free()?;
        }
        // New objects coexist with old ones, which can be dropped in any order.
        let new = Objects::new(&device)?;
        new.launch_set()?;
        assert_eq!(new.array.to_vec()?[0], 1);
        drop((registered, unused, objects));
        assert_eq!(last_failed_free(), Status::OK, "nothing is freed that the reset took");
        assert_eq!(new.array.to_vec()?[0], 1);
        assert!(new.pinned.iter().all(|&byte| byte == 0) && new.pooled.is_allocated());
    }
    check_works(&device)
}

/// A reset releases all memory, including memory of pools, captures, and objects that still exist.
pub(super) fn reset_gives_back() -> Outcome {
    let device = device()?;
    let options = StreamOptions::default().non_blocking(true);
    let mut kept = Vec::new();
    let mut free = Vec::new();
    for _ in 0..4 {
        free.push(device.memory_info()?.free);
        let stream = device.create_stream(options)?;
        let mut small = DeviceArray::<i32>::zeros(&device, &[100])?.on(&stream)?.copy()?;
        drop((&small + &small)?);
        let large = DeviceArray::<i32>::zeros(&device, &[8 << 20])?;
        drop((&large + 1)?);
        stream.synchronize()?;
        if stream.begin_capture(CaptureMode::Relaxed).is_ok() {
            // The call is refused, because a graph could not wait.
            small.on(&stream)?.to_vec().expect_err("the stream captures");
            small.fill(1)?;
        }
        kept.push((stream, small, large));
        recover(&device)?;
    }
    drop(kept);
    assert_eq!(last_failed_free(), Status::OK, "nothing is freed that the reset took");
    free.push(device.memory_info()?.free);
    // The first round has created the context and loaded code. A driver may keep some memory for
    // itself.
    let most_lost = if is_double(backend()?.as_ref())? { 0 } else { 8 << 20 };
    let lost = free[1].saturating_sub(free[4]);
    assert!(lost <= most_lost, "{lost} bytes are lost: {free:?} were free");
    check_works(&device)
}

/// A reset during a capture. The restrictions of a capture end with it: large copies are staged,
/// and streams wait for each other.
pub(super) fn reset_in_a_capture() -> Outcome {
    let device = device()?;
    let options = StreamOptions::default().non_blocking(false);
    let captured = device.create_stream(options)?;
    captured.begin_capture(CaptureMode::Relaxed)?;
    assert!(captured.is_capturing()?);
    recover(&device)?;
    drop(captured);
    let [first, second] = [device.create_stream(options)?, device.create_stream(options)?];
    for value in 0..20 {
        let array = DeviceArray::<i32>::full(&device, &[1 << 16], value)?.on(&first)?.copy()?;
        let sum = (&array.on(&second)? + 1)?;
        array.on(&first)?.fill(-1)?;
        assert!(sum.to_vec()?.iter().all(|&it| it == value + 1), "program order is kept");
    }
    // The count of active captures is right: another capture begins and ends.
    let array = DeviceArray::<i32>::full(&device, &[100], 1)?.on(&first)?.copy()?;
    first.begin_capture(CaptureMode::default())?;
    array.on(&first)?.fill(7)?;
    let graph = first.end_capture()?;
    // SAFETY: the array lives until the work has run.
    unsafe { graph.launch(&first)? };
    assert_eq!(array.to_vec()?, [7; 100]);
    assert!(!first.is_capturing()? && !second.is_capturing()?);
    check_works(&device)
}

/// A second device while the first one is reset.
pub(super) fn reset_beside() -> Outcome {
    let backend = backend()?;
    let (first, second) = (backend.device(0)?, backend.device(1)?);
    let others = Objects::new(&second)?;
    check_works(&first)?;
    recover(&first)?;
    assert_eq!(second.epoch(), 0);
    others.launch_set()?;
    assert_eq!(others.array.to_vec()?[0], 1);
    check_works(&first)?;
    check_works(&second)
}
