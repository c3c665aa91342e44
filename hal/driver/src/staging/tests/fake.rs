//! A fake driver that runs queued work as late as possible: only when a caller waits for it, or for work that
//! must come after it. Device memory is memory of the test.

use crate::calls::{Calls, Handle, Names};
use crate::context::Context;
use crate::state::DeviceState;
use crate::vendor::{Driver, Vendor};
use codegen::compile::{Compiled, Compiler};
use hal::error::{Error, Result};
use hal::module::{LinkInput, LoadOptions};
use hal::poison::Unpoisoned as _;
use hal::properties::Feature;
use hal::status::{Api, Status};
use hal::stream::Transfer;
use hal::texture::ArrayCopy;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

thread_local! {
    /// The number of the thread's driver, which is also its context.
    static CURRENT: Cell<Handle> = const { Cell::new(0) };
}

static DRIVERS: Mutex<BTreeMap<Handle, Arc<Fake>>> = Mutex::new(BTreeMap::new());

enum Work {
    Copy { to: u64, from: u64, bytes: usize },
    Fill { to: u64, value: u8, count: usize },
    Mark { event: Handle, number: usize },
}

#[derive(Default)]
struct State {
    last: usize,
    streams: BTreeMap<Handle, VecDeque<Work>>,
    /// Streams that do not wait for the default stream, nor it for them.
    non_blocking: BTreeSet<Handle>,
    /// The stream and the number of the last mark of each event.
    events: BTreeMap<Handle, (Handle, usize)>,
    pinned: BTreeMap<usize, Vec<u8>>,
    /// The number of times each call was made.
    counts: BTreeMap<&'static str, usize>,
    /// Calls that fail: the call, the count from which it fails, and the status.
    failures: Vec<(&'static str, usize, c_int)>,
    /// Streams whose work is blocked.
    shut: BTreeSet<Handle>,
}

impl State {
    fn new_handle(&mut self) -> Handle {
        self.last += 1;
        self.last
    }

    fn pins(&self, address: u64) -> bool {
        let below = self.pinned.range(..=address as usize).next_back();
        below.is_some_and(|(start, bytes)| address as usize - start < bytes.len())
    }

    /// Runs a stream's work, up to the mark with this number.
    fn run(&mut self, stream: Handle, until: Option<usize>) -> c_int {
        loop {
            match self.step(stream) {
                Ok(Some(Work::Mark { number, .. })) if Some(number) == until => {
                    return Status::SUCCESS;
                }
                Ok(Some(_)) => {}
                Ok(None) => return Status::SUCCESS,
                Err(code) => return code,
            }
        }
    }

    /// Runs the first queued work of a stream.
    fn step(&mut self, stream: Handle) -> std::result::Result<Option<Work>, c_int> {
        let queue = self.streams.get_mut(&stream).ok_or(Status::INVALID_HANDLE)?;
        let work = queue.pop_front();
        if let Some(work) = &work {
            match *work {
                // SAFETY: the test keeps both ranges until the work has run.
                Work::Copy { to, from, bytes } => unsafe {
                    copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
                },
                // SAFETY: as above.
                Work::Fill { to, value, count } => unsafe {
                    (to as *mut u8).write_bytes(value, count);
                },
                Work::Mark { .. } => {}
            }
        }
        Ok(work)
    }

    /// Returns true if this mark of an event has not run yet.
    fn is_queued(&self, stream: Handle, event: Handle, number: usize) -> bool {
        self.streams.get(&stream).into_iter().flatten().any(|work| {
            matches!(work, Work::Mark { event: e, number: n } if (*e, *n) == (event, number))
        })
    }
}

/// A test's access to its driver.
pub(super) struct Fake {
    state: Mutex<State>,
    /// Calls of staging threads to [`Vendor::current`] before one panics.
    pub(super) calls_to_panic: AtomicUsize,
}

impl Fake {
    /// Returns a device of a new driver.
    pub(super) fn device() -> (Arc<Fake>, Arc<DeviceState>) {
        let mut state = State::default();
        state.streams.insert(0, VecDeque::new());
        let calls_to_panic = AtomicUsize::new(usize::MAX);
        let fake = Arc::new(Fake { state: Mutex::new(state), calls_to_panic });
        let mut drivers = DRIVERS.lock().unpoisoned();
        let number = drivers.len() + 1;
        drivers.insert(number, fake.clone());
        let driver = Driver::new(Box::new(FakeVendor { number }), calls());
        (fake, DeviceState::new(Context::new(Arc::new(driver), 0, 0, String::new())))
    }

    /// Makes `call` return `code` from its `time`th call on.
    pub(super) fn fail(&self, call: &'static str, time: usize, code: c_int) {
        self.state.lock().unpoisoned().failures.push((call, time, code));
    }

    /// Blocks or unblocks a stream's work.
    pub(super) fn shut(&self, stream: u64, shut: bool) {
        let streams = &mut self.state.lock().unpoisoned().shut;
        if shut {
            streams.insert(stream as Handle)
        } else {
            streams.remove(&(stream as Handle))
        };
    }

    /// Makes all calls succeed again.
    pub(super) fn mend(&self) {
        self.state.lock().unpoisoned().failures.clear();
    }

    /// Returns the number of times a call was made.
    pub(super) fn count(&self, call: &str) -> usize {
        self.state.lock().unpoisoned().counts.get(call).copied().unwrap_or(0)
    }

    /// Returns the bytes of page-locked memory.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.state.lock().unpoisoned().pinned.values().map(Vec::len).sum()
    }

    /// Returns the number of live objects: streams except the default one, events, pinned blocks.
    pub(super) fn live(&self) -> [usize; 3] {
        let state = self.state.lock().unpoisoned();
        [state.streams.len() - 1, state.events.len(), state.pinned.len()]
    }

    /// Returns true if no queued copy might still run.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.lock().unpoisoned();
        !state.streams.values().flatten().any(|work| matches!(work, Work::Copy { .. }))
    }

    /// Registers the range as page-locked.
    pub(super) fn pin(&self, memory: Vec<u8>) -> u64 {
        let address = memory.as_ptr() as usize;
        self.state.lock().unpoisoned().pinned.insert(address, memory);
        address as u64
    }
}

/// Runs a call on the current driver, unless the test makes it fail.
fn call(name: &'static str, run: impl FnOnce(&mut State) -> c_int) -> c_int {
    let Some(fake) = DRIVERS.lock().unpoisoned().get(&CURRENT.get()).cloned() else { return 201 };
    let mut state = fake.state.lock().unpoisoned();
    let count = state.counts.entry(name).or_default();
    *count += 1;
    let count = *count;
    let failure = state.failures.iter().find(|it| it.0 == name && count >= it.1);
    match failure.map(|failure| failure.2) {
        Some(code) => code,
        None => run(&mut state),
    }
}

/// Queues work, after running the work of the streams that the stream waits for. Waiting for a stream is not
/// queued work: CUDA does not wait for the other streams then.
fn queue(state: &mut State, stream: Handle, work: Work) -> c_int {
    let others: Vec<_> = state.streams.keys().copied().collect();
    for other in others.into_iter().filter(|other| *other != stream) {
        let pair = other == 0 || stream == 0;
        if pair && !state.non_blocking.contains(&other) && !state.non_blocking.contains(&stream) {
            state.run(other, None);
        }
    }
    match state.streams.get_mut(&stream) {
        Some(queue) => queue.push_back(work),
        None => return Status::INVALID_HANDLE,
    }
    Status::SUCCESS
}

fn copy(name: &'static str, host: u64, work: Work, stream: Handle) -> c_int {
    let mut direct = false;
    let code = call(name, |state| {
        direct = !state.pins(host);
        let code = queue(state, stream, work);
        // Pageable memory is read and written during the call.
        if direct { state.run(stream, None).max(code) } else { code }
    });
    if direct { call("direct", |_| code) } else { code }
}

unsafe extern "C" fn to_device(to: u64, from: *const c_void, bytes: usize, on: Handle) -> c_int {
    copy("to_device", from as u64, Work::Copy { to, from: from as u64, bytes }, on)
}

unsafe extern "C" fn to_host(to: *mut c_void, from: u64, bytes: usize, on: Handle) -> c_int {
    copy("to_host", to as u64, Work::Copy { to: to as u64, from, bytes }, on)
}

unsafe extern "C" fn to_device_now(to: u64, from: *const c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { to_device(to, from, bytes, 0) }
}

unsafe extern "C" fn to_host_now(to: *mut c_void, from: u64, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { to_host(to, from, bytes, 0) }
}

unsafe extern "C" fn fill(to: u64, value: u8, count: usize, stream: Handle) -> c_int {
    call("fill", |state| queue(state, stream, Work::Fill { to, value, count }))
}

unsafe extern "C" fn allocate_pinned(result: *mut *mut c_void, bytes: usize, _: c_uint) -> c_int {
    call("allocate_pinned", |state| {
        let mut memory = vec![0xcd; bytes];
        // SAFETY: the caller's result.
        unsafe { *result = memory.as_mut_ptr().cast() };
        state.pinned.insert(memory.as_ptr() as usize, memory);
        Status::SUCCESS
    })
}

fn found<T>(removed: Option<T>) -> c_int {
    if removed.is_some() { Status::SUCCESS } else { Status::INVALID_HANDLE }
}

unsafe extern "C" fn free_pinned(pointer: *mut c_void) -> c_int {
    call("free_pinned", |state| {
        let memory = state.pinned.remove(&(pointer as usize));
        let range = memory.as_ref().map_or(0..0, |memory| {
            let start = memory.as_ptr() as u64;
            start..start + memory.len() as u64
        });
        let used = state.streams.values().flatten().any(|work| match work {
            Work::Copy { to, from, .. } => range.contains(to) || range.contains(from),
            _ => false,
        });
        assert!(!used, "freed under a copy");
        found(memory)
    })
}

unsafe extern "C" fn stream_create(result: *mut Handle, flags: c_uint, _: c_int) -> c_int {
    call("stream_create", |state| {
        let handle = state.new_handle();
        if flags == 1 {
            state.non_blocking.insert(handle);
        }
        state.streams.insert(handle, VecDeque::new());
        // SAFETY: the caller's result.
        unsafe { *result = handle };
        Status::SUCCESS
    })
}

unsafe extern "C" fn stream_destroy(stream: Handle) -> c_int {
    call("stream_destroy", |state| {
        state.run(stream, None);
        found(state.streams.remove(&stream))
    })
}

unsafe extern "C" fn stream_synchronize(stream: Handle) -> c_int {
    call("stream_synchronize", |state| state.run(stream, None))
}

/// Each query runs one more piece of work, so that polling makes progress and also sees "not ready".
unsafe extern "C" fn stream_query(stream: Handle) -> c_int {
    call("stream_query", |state| match state.step(stream) {
        Ok(None) => Status::SUCCESS,
        Ok(Some(_)) => Status::NOT_READY,
        Err(code) => code,
    })
}

unsafe extern "C" fn event_create(result: *mut Handle, _: c_uint) -> c_int {
    call("event_create", |state| {
        let handle = state.new_handle();
        state.events.insert(handle, (0, 0));
        // SAFETY: the caller's result.
        unsafe { *result = handle };
        Status::SUCCESS
    })
}

unsafe extern "C" fn event_destroy(event: Handle) -> c_int {
    call("event_destroy", |state| found(state.events.remove(&event)))
}

unsafe extern "C" fn event_record(event: Handle, stream: Handle) -> c_int {
    call("event_record", |state| {
        let number = state.new_handle();
        match state.events.get_mut(&event) {
            Some(mark) => *mark = (stream, number),
            None => return Status::INVALID_HANDLE,
        }
        queue(state, stream, Work::Mark { event, number })
    })
}

unsafe extern "C" fn event_synchronize(event: Handle) -> c_int {
    let shut = |state: &mut State| {
        let stream = state.events.get(&event).map_or(0, |mark| mark.0);
        c_int::from(state.shut.contains(&stream))
    };
    while call("is_shut", shut) == 1 {
        thread::sleep(Duration::from_millis(1));
    }
    call("event_synchronize", |state| {
        let Some(&(stream, number)) = state.events.get(&event) else {
            return Status::INVALID_HANDLE;
        };
        if state.is_queued(stream, event, number) {
            state.run(stream, Some(number))
        } else {
            Status::SUCCESS
        }
    })
}

unsafe extern "C" fn event_query(event: Handle) -> c_int {
    call("event_query", |state| {
        let Some(&(stream, number)) = state.events.get(&event) else {
            return Status::INVALID_HANDLE;
        };
        if !state.is_queued(stream, event, number) {
            return Status::SUCCESS;
        }
        if !state.shut.contains(&stream) {
            let _ = state.step(stream);
        }
        Status::NOT_READY
    })
}

unsafe extern "C" fn synchronize() -> c_int {
    call("synchronize", |state| {
        let streams: Vec<_> = state.streams.keys().copied().collect();
        streams.into_iter().map(|stream| state.run(stream, None)).fold(0, c_int::max)
    })
}

/// Calls that these tests do not make, by their number of arguments.
unsafe extern "C" fn none1<A>(_: A) -> c_int {
    Status::NOT_SUPPORTED
}
unsafe extern "C" fn none2<A, B>(_: A, _: B) -> c_int {
    Status::NOT_SUPPORTED
}
unsafe extern "C" fn none3<A, B, C>(_: A, _: B, _: C) -> c_int {
    Status::NOT_SUPPORTED
}
unsafe extern "C" fn none4<A, B, C, D>(_: A, _: B, _: C, _: D) -> c_int {
    Status::NOT_SUPPORTED
}
unsafe extern "C" fn none5<A, B, C, D, E>(_: A, _: B, _: C, _: D, _: E) -> c_int {
    Status::NOT_SUPPORTED
}
unsafe extern "C" fn launch(
    _: Handle,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: Handle,
    _: *mut *mut c_void,
    _: *mut *mut c_void,
) -> c_int {
    Status::NOT_SUPPORTED
}

/// Fills in the optional functions that are omitted.
macro_rules! calls {
    ($($given:ident: $function:expr,)*; without $($missing:ident)*) => {
        /// The symbols equal the names of the fields.
        static NAMES: Names =
            Names { $($given: stringify!($given),)* $($missing: stringify!($missing),)* };

        fn calls() -> Calls {
            Calls { names: &NAMES, $($given: $function,)* $($missing: None,)* }
        }
    };
}

calls! {
    init: none1,
    driver_version: none1,
    device_count: none1,
    device_get: none2,
    device_name: none3,
    device_total_memory: none2,
    device_attribute: none3,
    device_pci_bus_id: none3,
    device_can_access_peer: none3,
    synchronize: synchronize,
    memory_info: none2,
    allocate: none2,
    free: none1,
    allocate_pinned: allocate_pinned,
    free_pinned: free_pinned,
    pinned_address: none3,
    register_host: none3,
    unregister_host: none1,
    copy_to_device: to_device_now,
    copy_to_host: to_host_now,
    copy_to_device_async: to_device,
    copy_to_host_async: to_host,
    copy_on_device_async: none4,
    fill_8: fill,
    fill_16: none4,
    fill_32: none4,
    stream_create: stream_create,
    stream_destroy: stream_destroy,
    stream_query: stream_query,
    stream_synchronize: stream_synchronize,
    stream_wait_event: none3,
    event_create: event_create,
    event_destroy: event_destroy,
    event_record: event_record,
    event_query: event_query,
    event_synchronize: event_synchronize,
    event_elapsed: none3,
    module_load: none5,
    module_unload: none1,
    module_function: none3,
    module_global: none4,
    launch: launch,
    function_attribute: none3,
    ;
    without
    device_uuid priority_range limit set_limit address_range allocate_pitched
    allocate_managed prefetch pool_create pool_destroy pool_set_attribute pool_attribute
    pool_trim pool_set_access pool_allocate free_async ipc_export_memory ipc_open_memory
    ipc_close_memory ipc_export_event ipc_open_event host_function stream_callback
    stream_priority stream_flags capture_begin capture_end capture_info
    capture_graph user_object_create graph_retain
    capture_exchange_mode graph_instantiate graph_launch graph_destroy graph_exec_destroy
    graph_nodes launch_cooperative function_set_attribute function_parameter active_blocks
    array_create array_destroy texture_create texture_destroy surface_create surface_destroy
    profiler_start profiler_stop
}

#[derive(Debug)]
struct FakeVendor {
    number: Handle,
}

impl Vendor for FakeVendor {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn api(&self) -> Api {
        Api::Cuda
    }

    fn status_name(&self, _code: i32) -> Option<&'static str> {
        None
    }

    fn status_message(&self, _code: i32) -> Option<&'static str> {
        None
    }

    fn features(&self) -> &'static [Feature] {
        &[]
    }

    fn retain_context(&self, _device: c_int) -> (c_int, Handle) {
        (Status::SUCCESS, self.number)
    }

    fn release_context(&self, _device: c_int) -> c_int {
        Status::SUCCESS
    }

    fn reset_context(&self, _device: c_int) -> c_int {
        Status::SUCCESS
    }

    fn current(&self) -> (c_int, Handle) {
        let fake = DRIVERS.lock().unpoisoned().get(&self.number).cloned().expect("a driver");
        if thread::current().name() == Some("pygpu-staging") {
            let less = |left: usize| left.checked_sub(1);
            let left = fake.calls_to_panic.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            assert!(left.is_ok(), "a panic that the test wants");
        }
        (Status::SUCCESS, CURRENT.get())
    }

    fn set_current(&self, context: Handle) -> c_int {
        CURRENT.set(context);
        Status::SUCCESS
    }

    fn architecture(&self, _calls: &Calls, _device: c_int) -> Result<String> {
        Err(Error::unsupported("architecture", "a made-up driver"))
    }

    fn is_architecture(&self, _text: &str) -> bool {
        true
    }

    unsafe fn copy_rows(&self, _transfer: &Transfer, _stream: Handle) -> c_int {
        Status::NOT_SUPPORTED
    }

    unsafe fn copy_peer(
        &self,
        _destination: (u64, c_int, Handle),
        _source: (u64, c_int, Handle),
        _bytes: usize,
        _stream: Handle,
    ) -> c_int {
        Status::NOT_SUPPORTED
    }

    unsafe fn copy_array(&self, _copy: &ArrayCopy, _stream: Handle) -> c_int {
        Status::NOT_SUPPORTED
    }

    fn enable_peer(&self, _device: c_int, _context: Handle) -> c_int {
        Status::NOT_SUPPORTED
    }

    fn disable_peer(&self, _device: c_int, _context: Handle) -> c_int {
        Status::NOT_SUPPORTED
    }

    fn knows(&self, address: u64) -> bool {
        let fake = DRIVERS.lock().unpoisoned().get(&self.number).cloned();
        fake.is_some_and(|fake| fake.state.lock().unpoisoned().pins(address))
    }

    fn compiler(&self) -> Result<Arc<dyn Compiler>> {
        Err(Error::unsupported("compile", "a made-up driver"))
    }

    fn builtin_options(&self) -> &'static [&'static str] {
        &[]
    }

    fn link(&self, _inputs: &[LinkInput<'_>], _options: &LoadOptions) -> Result<Compiled> {
        Err(Error::unsupported("link", "a made-up driver"))
    }
}
