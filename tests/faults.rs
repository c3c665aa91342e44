//! The fault sweep: every fallible call of a representative program fails once. Each time the program
//! reports that error, nothing leaks, and the next run succeeds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use backend_host::{HostBackend, HostConfig};
use gpuarray::array::functions;
use gpuarray::function::{BinaryFunction, Reduction};
use gpuarray::memory::{DeviceMemory, PinnedMemory, RegisteredMemory, last_failed_free};
use gpuarray::{
    Array, Backend, DType, DeviceArray, ErrorKind, EventOptions, Expression, ExpressionArgument,
    FusedBlock, MemoryInfo, Number, Result, Status, StreamOptions,
};
use hal::interruption;
use hal::layers::{Call, Fault, FaultInjector, Interceptor, intercept};
use hal::memory::TextureArray;
use hal::texture::{ArrayShape, ChannelFormat, TexelFormat};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// A separate backend, with and without fault injection.
struct Bench {
    plain: Arc<dyn Backend>,
    faulty: Arc<dyn Backend>,
    injector: Arc<FaultInjector>,
}

impl Bench {
    fn new() -> Bench {
        let config = HostConfig { memory: 16 << 20, cache: 4 << 20, threads: 1 };
        let plain = HostBackend::with_config(config);
        let injector = Arc::new(FaultInjector::new());
        let faulty = intercept(plain.clone(), injector.clone());
        Bench { plain, faulty, injector }
    }

    /// Waits for all work, and returns the number of bytes still in use.
    fn leaked(&self) -> usize {
        let device = self.plain.device(0).unwrap();
        device.synchronize().unwrap();
        let MemoryInfo { free, total } = device.memory_info().unwrap();
        total - free
    }
}

/// Uses every part of a device; returns a number that depends on all of it.
fn program(backend: &dyn Backend) -> Result<f64> {
    let device = backend.device(0)?;
    let mut host = vec![1.0f64; 512];
    let mut a = DeviceArray::from_slice(&device, &host)?;
    let b = DeviceArray::full(&device, &[512], 2.0)?;
    let c = (&(&a * &b)? + &a)?;
    a.update(functions::Add, &c)?;
    a.index(&[(1..).into()])?.update(functions::Add, &a.index(&[(..511).into()])?)?;

    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let other = device.create_stream(StreamOptions::default())?;
    let options = EventOptions::default();
    let (start, end) = (device.create_event(options)?, device.create_event(options)?);
    stream.record(start.as_ref())?;

    // Work that is queued after this waits, so that the streams have to wait for each other.
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    for stream in [&stream, &other] {
        let gate = gate.clone();
        stream.host_function(Box::new(move || {
            let _ = gate.lock().map(|gate| gate.recv_timeout(Duration::from_millis(100)));
        }))?;
    }
    let mut doubled = c.on(&stream)?;
    doubled.update_scalar(functions::Multiply, 2.0)?;
    let seen = c.on(&other)?.scan(functions::Sum, 0)?;
    let indices = DeviceArray::<i32>::sequence(&device, 511, -1, 512)?;
    let reversed = seen.take(&indices, 0)?;
    drop(seen);
    doubled.fill(1.0)?;
    stream.record(end.as_ref())?;
    other.wait_event(end.as_ref())?;
    let busy = !end.query()? && !stream.query()?;
    drop(open);

    let mut pinned = PinnedMemory::new(&device, 4096)?;
    pinned[..8].copy_from_slice(&3.0f64.to_ne_bytes());
    // SAFETY: the pinned bytes live until the stream has been waited for.
    unsafe { reversed.index(&[(..1).into()])?.untyped().upload(pinned.pointer(), false)? };
    end.synchronize()?;
    other.synchronize()?;

    let plain = DeviceMemory::plain(&device, 1024)?;
    // SAFETY: the fill is inside the allocation, and is waited for.
    unsafe { stream.fill(plain.address(), 7, 4, 256)? };
    stream.synchronize()?;
    let bytes: &mut [u8] = &mut [0; 4096];
    // SAFETY: the object is dropped before the bytes are.
    let registered = unsafe { RegisteredMemory::new(&device, bytes)? };
    let elapsed = end.elapsed_since(start.as_ref())?;
    let used = device.memory_info()?;
    drop(registered);
    reversed.copy_to_slice(&mut host)?;
    device.synchronize()?;
    assert!(busy && elapsed >= 0.0 && used.free < used.total);
    Ok(host.iter().sum::<f64>() + a.sum()? + doubled.dot(&b)?)
}

/// Returns the failure that a driver would report for the call.
fn fault(call: Call, after: usize) -> Fault {
    let (kind, code) = match call {
        Call::Allocate | Call::AllocatePinned | Call::CreateStream | Call::RegisterHost => {
            (ErrorKind::OutOfMemory, Status::OUT_OF_MEMORY)
        }
        _ => (ErrorKind::Driver, Status::UNKNOWN),
    };
    Fault { call, after, kind, code }
}

/// Returns true if a failure of the call may stay unreported: a failure during a drop is only logged,
/// and if the query for page-locked memory fails, the memory counts as pageable.
fn may_be_swallowed(call: Call) -> bool {
    call.releases()
        || matches!(
            call,
            Call::Query
                | Call::CreateEvent
                | Call::Record
                | Call::WaitEvent
                | Call::Synchronize
                | Call::Lookup
        )
}

/// Runs the program with a fault, and then again. Returns whether the failure was only logged, or a
/// description of the error.
fn check(fault: Fault, expected: f64) -> std::result::Result<bool, String> {
    let bench = Bench::new();
    bench.injector.arm(Some(fault));
    let result = catch_unwind(AssertUnwindSafe(|| program(bench.faulty.as_ref())))
        .map_err(|_| "the program panics")?;
    if bench.injector.injected() == 0 {
        // The number of waits between streams depends on their progress.
        let varies = matches!(fault.call, Call::CreateEvent | Call::Record | Call::WaitEvent);
        return match result {
            Ok(value) if varies && value == expected && bench.leaked() == 0 => Ok(false),
            _ => Err("the call was not reached".into()),
        };
    }
    let swallowed = match result {
        Err(error) => {
            let text = error.to_string();
            let clear = (error.kind(), error.status().code) == (fault.kind, fault.code)
                && text.contains(&format!("{:?}", fault.call))
                && text.contains("injected");
            if !clear {
                return Err(format!("the program fails with {text}"));
            }
            false
        }
        Ok(_) if !may_be_swallowed(fault.call) => return Err("it goes unnoticed".into()),
        Ok(value) if value != expected => return Err(format!("the result is {value}")),
        Ok(_) => true,
    };
    if swallowed && fault.call.releases() && last_failed_free().code != fault.code {
        return Err("last_failed_free does not know of it".into());
    }
    match bench.leaked() {
        0 => {}
        bytes => return Err(format!("{bytes} bytes leak")),
    }
    bench.injector.arm(None);
    match program(bench.faulty.as_ref()) {
        Ok(value) if value == expected && bench.leaked() == 0 => Ok(swallowed),
        other => Err(format!("the next run gives {other:?} and leaks {}", bench.leaked())),
    }
}

#[test]
fn every_call_of_a_program_fails_once_with_a_clear_error_and_no_leak() {
    let bench = Bench::new();
    bench.injector.arm(None);
    let expected = program(bench.faulty.as_ref()).unwrap();
    assert_eq!(bench.leaked(), 0);
    let calls = Call::ALL.map(|call| (call, bench.injector.calls(call)));
    let unused: Vec<Call> = calls.iter().filter(|(_, n)| *n == 0).map(|(call, _)| *call).collect();
    // Calls that the host does not support, or that the program does not make.
    let expected_unused = [
        Call::LoadModule,
        Call::Launch,
        Call::Compile,
        Call::Capture,
        Call::Share,
        Call::Configure,
    ];
    assert_eq!(unused, expected_unused, "the program is thin");

    let (mut swallowed, mut wrong) = (0, Vec::new());
    for (call, after) in calls.into_iter().flat_map(|(call, n)| (0..n).map(move |i| (call, i))) {
        match check(fault(call, after), expected) {
            Ok(quiet) => swallowed += usize::from(quiet),
            Err(why) => wrong.push(format!("with {call:?} number {} failing, {why}", after + 1)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(swallowed > 0, "failed frees do not fail the program");
}

/// An array that a signal handler frees while it interrupts a kernel.
static FREED_INSIDE: Mutex<Option<Arc<TextureArray>>> = Mutex::new(None);

#[test]
fn what_cannot_be_waited_for_stays() {
    let bench = Bench::new();
    let device = bench.faulty.device(0).unwrap();
    let format = TexelFormat::new(ChannelFormat::Float, 1).unwrap();
    let shape = ArrayShape::new(16, 4, 0, format);
    let array = || TextureArray::new(&device, shape).unwrap();
    let freed = || bench.injector.calls(Call::Free);
    drop(array());
    assert_eq!(freed(), 1);
    // A failure that is reported once is queried again.
    let kept = array();
    bench.injector.arm(Some(fault(Call::Synchronize, 0)));
    drop(kept);
    assert_eq!((bench.injector.injected(), freed()), (1, 1));
    // Queued work may still use the array, so its memory is leaked instead of being reused.
    bench.injector.arm(None);
    *FREED_INSIDE.lock().unwrap() = Some(array());
    let stream = device.create_stream(StreamOptions::default().non_blocking(true)).unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let wait = move || {
        let _ = gate.lock().unwrap().recv();
    };
    stream.host_function(Box::new(wait)).unwrap();
    let free = || {
        drop(FREED_INSIDE.lock().unwrap().take());
        Ok(())
    };
    interruption::call_in_kernel(free).unwrap();
    assert_eq!(freed(), 0);
    drop(open);
    stream.synchronize().unwrap();
    drop(array());
    assert_eq!(freed(), 1);
}

#[test]
fn real_exhaustion_fails_at_any_point_and_leaves_nothing_behind() {
    let mut succeeded = 0;
    for memory in (512..=64 << 10).step_by(1536) {
        let backend = HostBackend::with_config(HostConfig { memory, cache: 0, threads: 1 });
        match program(backend.as_ref()) {
            Ok(_) => succeeded += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfMemory, "with {memory} bytes: {error}");
                assert!(error.detail().contains("available"), "{error}");
            }
        }
        let device = backend.device(0).unwrap();
        device.synchronize().unwrap();
        assert_eq!(device.memory_info().unwrap().free, memory);
    }
    assert!(succeeded > 0);
}

/// Writes an array on another thread, before the next allocation.
#[derive(Debug, Default)]
struct Writer(Mutex<Option<DeviceArray<i64>>>);

impl Interceptor for Writer {
    fn before(&self, call: Call) -> Result<()> {
        let target = if call == Call::Allocate { self.0.lock().unwrap().take() } else { None };
        let Some(mut target) = target else { return Ok(()) };
        std::thread::spawn(move || target.fill(9)).join().unwrap()
    }
}

/// The write happens when memory for the result is allocated: the functions have been read, but nothing is queued.
#[test]
fn values_are_those_before_another_threads_write() {
    let config = HostConfig { memory: 16 << 20, cache: 0, threads: 1 };
    let writer = Arc::new(Writer::default());
    let backend = intercept(HostBackend::with_config(config), writer.clone());
    let device = backend.device(0).unwrap();
    let combine: [fn(&Expression, Array) -> Result<Array>; 4] = [
        |it, _| it.reduce(Reduction::Sum, DType::Int64, None, true),
        |it, _| it.mean(Some(DType::Float64), None, true)?.astype(DType::Int64),
        |it, _| it.evaluate(),
        |it, target| {
            // Memory is allocated for this function of the target, before the target is written.
            let block = FusedBlock::new();
            let reader = Expression::cast((&target).into(), DType::Int32)?;
            reader.keep(true);
            assert!(block.add(&reader));
            it.evaluate_into(&target)?;
            Ok(target)
        },
    ];
    let number = |value| ExpressionArgument::from(Number::Integer(value));
    for (combine, is_outside) in combine.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let x = DeviceArray::from_slice(&device, &[3i64]).unwrap();
        let block = FusedBlock::new();
        let array = x.untyped().clone();
        let argument = || ExpressionArgument::from(&array);
        let square = Expression::binary(BinaryFunction::Multiply, argument(), argument()).unwrap();
        let more = Expression::binary(BinaryFunction::Add, (&square).into(), number(3)).unwrap();
        for expression in [&square, &more] {
            expression.keep(true);
            assert!(block.add(expression));
        }
        // Like the expression of a thread without the block.
        let same = Expression::binary(BinaryFunction::Add, (&more).into(), number(0)).unwrap();
        let target = DeviceArray::<i64>::zeros(&device, &[1]).unwrap().into_untyped();
        *writer.0.lock().unwrap() = Some(x);
        let result = combine(if is_outside { &same } else { &more }, target).unwrap();
        assert!(writer.0.lock().unwrap().is_none());
        assert_eq!(DeviceArray::<i64>::from_untyped(result).unwrap().to_vec().unwrap(), [12]);
    }
}
