//! Exits, forks, other processes, and missing libraries.

use super::{FILE_VARIABLE, HANDLE_VARIABLE, backend, check_error, check_works, device};
use crate::backends::is_double;
use crate::harness::Outcome;
use crate::programs::{self, ONE, SOURCE, grid};
use gpuarray::array::functions;
use gpuarray::launch::ArgumentList;
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, PinnedMemory};
use gpuarray::{
    CaptureMode, Choice, Device, DeviceArray, ErrorKind, EventOptions, Feature, IpcHandle,
    LoadOptions, ModuleSource, Result, StreamOptions,
};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

const FOREVER: &str = "extern \"C\" __global__ void forever(volatile int* flag) {
    while (*flag == 0) {}
}";

/// Work on many streams that takes a while.
struct Busy {
    _streams: Vec<Arc<dyn gpuarray::Stream>>,
    _arrays: Vec<DeviceArray<f32>>,
    _pinned: PinnedMemory,
}

fn start_work(device: &Arc<dyn Device>) -> Result<Busy> {
    // The fake driver and the host are much slower than a GPU.
    let count = match device.id().backend {
        "host" => 1 << 16,
        _ if is_double(backend()?.as_ref())? => 1 << 10,
        _ => 1 << 22,
    };
    let pinned = PinnedMemory::new(device, 4 * 4 * count)?;
    let (mut streams, mut arrays) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let options = StreamOptions::default().non_blocking(number % 2 == 0);
        let stream = device.create_stream(options)?;
        let mut array = DeviceArray::<f32>::zeros(device, &[count])?.on(&stream)?.copy()?;
        for _ in 0..50 {
            array.update_scalar(functions::Add, 1.0)?;
            let doubled = (&array + &array)?;
            array.update(functions::Add, &doubled)?;
            // SAFETY: this stream alone uses this part of the pinned memory, which the host does
            // not read. The memory is freed after the work, or never.
            unsafe {
                let part = pinned.pointer().add(4 * count * number);
                array.untyped().download(part, false)?;
            }
        }
        streams.push(stream);
        arrays.push(array);
    }
    Ok(Busy { _streams: streams, _arrays: arrays, _pinned: pinned })
}

pub(super) fn exit(how: &str) -> Outcome {
    let device = device()?;
    if how == "forever" {
        let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
        let source = ModuleSource::Source { text: FOREVER, name: "forever.cu", options: &[] };
        // SAFETY: the text contains only functions.
        let module = unsafe { device.load_module(&source, &LoadOptions::default()) }?;
        let kernel = module.kernel("forever")?;
        let mut flag = DeviceArray::<i32>::zeros(&device, &[1])?;
        // Load the kernel now: the driver does not load code while a kernel runs.
        flag.update_scalar(functions::Add, 0)?;
        // SAFETY: the kernel takes an array of one number.
        unsafe { kernel.launch(ONE, &stream, (&mut flag,))? };
        flag.clone().update_scalar(functions::Add, 1)?;
        // Nothing is dropped, like in a program that exits early.
        std::process::exit(0);
    }
    let busy = start_work(&device)?;
    match how {
        "return" => {
            drop(busy);
            Ok(())
        }
        "call" => std::process::exit(0),
        "panic" => panic!("on purpose"),
        "thread" => {
            std::thread::spawn(|| std::process::exit(0));
            loop {
                start_work(&device)?;
            }
        }
        other => Err(format!("{other} is no way to end").into()),
    }
}

// Declarations of the C library.
unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Runs `child` in a forked process; returns true if it succeeds.
pub(super) fn in_child(handlers: bool, child: impl FnOnce() -> Outcome) -> bool {
    // SAFETY: only this thread uses the library's locks at this time; the child exits below.
    let process = unsafe { fork() };
    assert!(process >= 0, "there is no further process");
    if process == 0 {
        // SAFETY: the signal calls no function of this program.
        unsafe { alarm(20) };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        let status = match result {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => {
                let _ = writeln!(std::io::stderr(), "the forked child: {error}");
                1
            }
            Err(_) => 2,
        };
        if handlers {
            std::process::exit(status);
        }
        // SAFETY: ends the process without running destructors.
        unsafe { _exit(status) }
    }
    let mut status = -1;
    // SAFETY: the process is a child of this one; the status is written before it returns.
    assert_eq!(unsafe { waitpid(process, &mut status, 0) }, process);
    status == 0
}

/// Starts a thread that holds more guards than it has slots for, until the sender is dropped.
fn queue_on_a_thread(device: &Arc<dyn Device>) -> Result<mpsc::Sender<()>> {
    let stream = device.create_stream(StreamOptions::default())?;
    let memory = Arc::new(DeviceMemory::for_stream(device, &stream, 64)?);
    let (queueing, queues) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let uses = [(&memory, Access::Read)];
        let guards: Vec<_> = (0..6).map(|_| AccessGuard::acquire(&stream, &uses)).collect();
        let _ = queueing.send(guards.iter().all(Result::is_ok));
        let _ = ended.recv();
    });
    assert_eq!(queues.recv(), Ok(true));
    Ok(end)
}

pub(super) fn fork_after_use(handlers: bool) -> Outcome {
    let device = device()?;
    let host = device.id().backend == "host";
    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let event = device.create_event(EventOptions::default())?;
    let array = DeviceArray::<i32>::ones(&device, &[1000])?.on(&stream)?.copy()?;
    let plain = DeviceMemory::plain(&device, 4096)?;
    let pinned = PinnedMemory::new(&device, 4096)?;
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    let module = match host {
        true => None,
        // SAFETY: the text contains only functions.
        false => Some(unsafe { device.load_module(&source, &LoadOptions::default()) }?),
    };
    let kernel = module.as_ref().map(|module| module.kernel("add")).transpose()?;
    stream.record(event.as_ref())?;
    let mine = (device.clone(), stream.clone(), array.clone());
    let theirs = (stream.clone(), event.clone(), array.clone(), module.clone(), kernel.clone());
    let queueing = queue_on_a_thread(&device)?;
    let well = in_child(handlers, move || {
        let (device, stream, array) = mine;
        let told = |what: &str, result: Result<()>| {
            check_error(what, result, ErrorKind::InvalidHandle, &["fork"]);
        };
        if host {
            check_works(&device)?;
            let mut own = DeviceArray::<i32>::ones(&device, &[10])?.on(&stream)?;
            assert!(own.fill(1).is_err(), "the parent's stream is not here");
            // The parent's queueing thread does not exist in the child.
            let own = device.create_stream(StreamOptions::default())?;
            own.begin_capture(CaptureMode::default())?;
            drop(own.end_capture()?);
        } else {
            told("synchronize", device.synchronize());
            told("memory_info", device.memory_info().map(drop));
            told("stream", stream.synchronize());
            told("create_stream", device.create_stream(StreamOptions::default()).map(drop));
            told("download", array.to_vec().map(drop));
            told("new array", DeviceArray::<f64>::full(&device, &[77_777], 1.0).map(drop));
            told("plain memory", device.allocate(64).map(drop));
            // SAFETY: the handle belongs to the stream.
            told("taken", unsafe { device.stream_from_handle(stream.handle()).map(drop) });
            // In the child, opening the backend returns the parent's instance.
            told("open", backend()?.device(0)?.synchronize());
        }
        drop((stream, array, theirs));
        Ok(())
    });
    assert!(well, "the child failed");
    drop(queueing);
    // Another child drops the last references to the parent's objects.
    let objects = (plain, pinned);
    assert!(in_child(handlers, || Ok(())), "a child that does nothing failed");
    assert_eq!((&array + &array)?.sum()?, 2000);
    event.synchronize()?;
    if let Some(kernel) = kernel {
        programs::launch(&kernel, grid(8, 128), &stream, (&mut array.clone(), 4, 1000))?;
        assert_eq!(array.to_vec()?, [5; 1000]);
    }
    drop(objects);
    check_works(&device)
}

pub(super) fn fork_before_use() -> Outcome {
    // Objects that do not use the driver may exist before the fork.
    let options = StreamOptions::default();
    assert!(!options.non_blocking);
    assert!(in_child(false, || check_works(&device()?)), "the child failed");
    check_works(&device()?)?;
    Ok(())
}

/// Returns the handle that the parent process passed.
fn handle() -> Result<IpcHandle> {
    let text = std::env::var(HANDLE_VARIABLE).unwrap_or_default();
    let mut handle = IpcHandle([0; 64]);
    for (index, byte) in handle.0.iter_mut().enumerate() {
        let digits = text.get(2 * index..2 * index + 2).unwrap_or("no");
        *byte = u8::from_str_radix(digits, 16).expect("128 hexadecimal digits");
    }
    Ok(handle)
}

pub(super) fn share_memory() -> Outcome {
    let device = device()?;
    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let address = device.import_memory(&handle()?)?;
    assert!(device.can_access(address, 4000));
    let mut seen = vec![0i32; 1000];
    programs::read(stream.as_ref(), address, &mut seen)?;
    assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{:?}", &seen[..4]);
    if device.features().contains(Feature::Kernels) {
        let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
        // SAFETY: the text contains only functions.
        let add = unsafe { device.load_module(&source, &LoadOptions::default()) }?.kernel("add")?;
        let mut list = ArgumentList::new();
        list.address(address);
        list.bytes(&100i32.to_ne_bytes())?;
        list.bytes(&1000i32.to_ne_bytes())?;
        // SAFETY: the memory has a thousand numbers.
        unsafe { list.launch(add.as_ref(), &grid(8, 128), &stream, false)? };
    } else {
        let more: Vec<i32> = seen.iter().map(|number| number + 100).collect();
        programs::write(stream.as_ref(), address, &more)?;
    }
    stream.synchronize()?;
    // SAFETY: all work that uses it has run.
    unsafe { device.close_imported(address)? };
    // SAFETY: the call is refused.
    let again = unsafe { device.close_imported(address) };
    check_error("the second close", again, ErrorKind::InvalidArgument, &[]);
    check_works(&device)
}

pub(super) fn share_event() -> Outcome {
    let device = device()?;
    let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
    let event = device.import_event(&handle()?)?;
    assert!(!event.query()?, "the other process's work is held back");
    stream.wait_event(event.as_ref())?;
    let done = device.create_event(EventOptions::ORDERING)?;
    stream.record(done.as_ref())?;
    assert!(!done.query()?);
    writeln!(std::io::stdout(), "waiting")?;
    event.synchronize()?;
    stream.synchronize()?;
    assert!(event.query()? && done.query()?);
    Ok(())
}

pub(super) fn no_library() -> Outcome {
    for (choice, variable) in
        [(Choice::Cuda, "PYGPU_CUDA_LIBRARY"), (Choice::Hip, "PYGPU_HIP_LIBRARY")]
    {
        let opened = gpuarray::open(choice);
        let named = [variable, "/nonexistent/driver.so"];
        check_error(choice.name(), opened, ErrorKind::BackendUnavailable, &named);
    }
    let backend = gpuarray::open(Choice::Auto)?;
    assert_eq!(backend.name(), "host");
    check_works(&backend.device(0)?)
}

pub(super) fn no_compiler() -> Outcome {
    let device = device()?;
    let remedy = ["/nonexistent/compiler.so", "install"];
    // Operations without a kernel work.
    let array = DeviceArray::from_slice(&device, &(0..100).collect::<Vec<i32>>())?;
    assert_eq!(array.to_vec()?[99], 99);
    let kind = ErrorKind::Unsupported;
    match &array + &array {
        // The program contains embedded kernels for this device.
        Ok(doubled) => assert_eq!(doubled.to_vec()?[99], 198),
        refused => {
            let target = device.properties().architecture.as_str();
            let error = check_error("operation", refused, kind, &remedy);
            assert!(error.detail().contains(target) && error.call() == "execute", "{error}");
        }
    }
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    let options = LoadOptions::default();
    // SAFETY: the text contains only functions.
    check_error("module", unsafe { device.load_module(&source, &options) }, kind, &remedy);
    check_error("compile", device.compile(SOURCE, "programs.cu", &[]), kind, &remedy);
    // Code that is already compiled loads without a compiler.
    let file = PathBuf::from(std::env::var_os(FILE_VARIABLE).unwrap_or_default());
    // SAFETY: the text contains only functions.
    let module = unsafe { device.load_module(&ModuleSource::File(&file), &options) }?;
    let stream = device.default_stream();
    let (kernel, mut numbers) = (module.kernel("add")?, array.clone());
    programs::launch(&kernel, grid(1, 128), &stream, (&mut numbers, 1, 100))?;
    assert_eq!(array.to_vec()?[99], 100);
    Ok(())
}
