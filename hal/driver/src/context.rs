//! The primary context of a device. It is retained at first use. Each call makes it current, and afterwards restores
//! the thread's own context.

use crate::calls::{Handle, NO_TIMING, NON_BLOCKING};
use crate::capture_state::{CaptureState, capture_of};
use crate::vendor::{Driver, Lasting, optional};
use codegen::compile::TARGETS;
use hal::error::{Error, ErrorKind, Result};
use hal::failures::Failures;
use hal::interruption::outside_functions;
use hal::locks::{OPENING, Ranked};
use hal::process;
use hal::properties::{DeviceAttribute, DeviceId};
use hal::status::Status;
use std::cell::Cell;
use std::ffi::c_int;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// `CUDA_ERROR_INVALID_CONTEXT` and `_CONTEXT_IS_DESTROYED`.
const GONE: [c_int; 2] = [201, 709];

/// The contents of a context, which end with it.
pub(super) trait Contents: Debug + Send + Sync {
    /// Forgets everything, because another library has reset the device.
    fn forget(&self);
}

/// A device's primary context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) driver: Arc<Driver>,
    pub(super) ordinal: usize,
    /// The driver's number of the device.
    pub(super) device: c_int,
    /// The driver's name of the device's architecture, which may be any text.
    pub(super) architecture: String,
    /// The handle of the context after it has been retained, else 0.
    handle: AtomicUsize,
    /// The context's unique number; 0 if it is not retained, or if the driver does not provide numbers. A context
    /// that is retained again after a reset has the same handle but another number.
    number: AtomicU64,
    /// The contents, which are forgotten if another library resets the device.
    contents: OnceLock<Weak<dyn Contents>>,
    opening: Ranked<(), OPENING>,
    /// Incremented when a reset begins and when it ends. Objects made during a reset belong to neither epoch.
    epoch: AtomicU64,
    /// The epoch in the upper half and, in the lower half, the status of the failure after which the context cannot
    /// be used; 0 if it is usable.
    lost: AtomicU64,
    /// The streams that capture, checked before calls that would end a capture.
    pub(super) capture_state: CaptureState,
    /// The result of testing whether queries work, after the first test.
    query_support: OnceLock<QuerySupport>,
    /// The failures of host functions, until a call reports them.
    pub(super) failures: Arc<Failures>,
}

thread_local! {
    /// The context that this thread has entered last, and its epoch at that time. If a reset came in between, a
    /// call's failure says nothing about the context's current epoch.
    static ENTERED: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// Restores the thread's own context when dropped.
#[must_use]
#[derive(Debug)]
pub(super) struct Scope<'a> {
    driver: &'a Driver,
    previous: Option<Handle>,
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(previous) = self.previous {
            let code = self.driver.vendor.set_current(previous);
            if code != Status::SUCCESS {
                log::warn!("the thread's context could not be put back: status {code}");
            }
        }
    }
}

impl Context {
    #[inline]
    pub(super) fn device_id(&self) -> DeviceId {
        let Driver { vendor, instance, .. } = &*self.driver;
        DeviceId { backend: vendor.name(), ordinal: self.ordinal, instance: *instance }
    }

    pub(super) fn new(
        driver: Arc<Driver>,
        ordinal: usize,
        device: c_int,
        architecture: String,
    ) -> Context {
        Context {
            driver,
            ordinal,
            device,
            architecture,
            handle: AtomicUsize::new(0),
            number: AtomicU64::new(0),
            contents: OnceLock::new(),
            opening: Ranked::new(()),
            epoch: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            capture_state: CaptureState::default(),
            query_support: OnceLock::new(),
            failures: Arc::default(),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns false in a forked child, where every lock may be held by a thread of the parent.
    pub(super) fn is_of_this_process(&self) -> bool {
        process::generation() == self.driver.generation
    }

    /// Returns true if objects of an epoch may still be passed to the driver, for destructors.
    pub(super) fn is_alive(&self, epoch: u64) -> bool {
        !process::is_exiting() && self.is_of_this_process() && self.epoch() == epoch
    }

    /// Makes the context current on this thread until the scope is dropped.
    #[inline]
    pub(super) fn enter(&self) -> Result<Scope<'_>> {
        if process::generation() != self.driver.generation {
            return Err(self.forked());
        }
        // Drivers do not allow any call inside a host function, but do not refuse all of them.
        outside_functions("device")?;
        ENTERED.set((std::ptr::from_ref(self) as usize, self.epoch()));
        let number = self.number.load(Ordering::Acquire);
        if number != 0 {
            let (code, current) = self.driver.vendor.number_of(0);
            if current == number && code == Status::SUCCESS {
                return Ok(Scope { driver: &self.driver, previous: None });
            }
            return self.switch_from_another();
        }
        let mut handle = self.handle.load(Ordering::Acquire);
        if handle == 0 {
            handle = self.open()?;
        }
        let (code, current) = self.driver.vendor.current();
        if code == Status::SUCCESS && current == handle {
            return Ok(Scope { driver: &self.driver, previous: None });
        }
        self.switch(code, current, handle)
    }

    /// Makes the context current if the thread's current context has another number, or if the number cannot be read.
    #[cold]
    fn switch_from_another(&self) -> Result<Scope<'_>> {
        let vendor = &self.driver.vendor;
        let (handle, (code, current)) = (self.handle()?, vendor.current());
        let scope = match code == Status::SUCCESS && current == handle {
            true => Scope { driver: &self.driver, previous: None },
            false => self.switch(code, current, handle)?,
        };
        let known = self.number.load(Ordering::Acquire);
        let is_another = match vendor.number_of(0) {
            (Status::SUCCESS, number) => number != known,
            // Any other failure belongs to earlier work, and the next call will report it.
            (code, _) => GONE.contains(&code),
        };
        if known != 0 && is_another { Err(self.taken(known)) } else { Ok(scope) }
    }

    /// Handles a reset or release of the context by another library: everything made before belongs to an earlier
    /// epoch.
    #[cold]
    fn taken(&self, number: u64) -> Error {
        // Any other thread that is opening or resetting the context detects the same.
        if let Some(_opening) = self.opening.try_lock()
            && self.number.load(Ordering::Acquire) == number
        {
            self.epoch.fetch_add(2, Ordering::AcqRel);
            self.lost.store(0, Ordering::Release);
            self.number.store(0, Ordering::Release);
            self.handle.store(0, Ordering::Release);
            // The context is not released here: if the other library has already done so, a second release would end
            // that library's own use.
            self.capture_state.forget();
            if let Some(contents) = self.contents.get().and_then(Weak::upgrade) {
                contents.forget();
            }
        }
        Error::handle(
            "device",
            format!(
                "device {}:{} was reset by another library of this process, which freed \
                 everything on it; create arrays, streams and events again",
                self.driver.vendor.name(),
                self.ordinal
            ),
        )
    }

    /// Sets the contents that are forgotten when another library resets the device.
    pub(super) fn on_loss(&self, contents: Weak<dyn Contents>) {
        let _ = self.contents.set(contents);
    }

    /// Like [`Context::enter`], for an object made in `epoch`.
    #[inline]
    pub(super) fn enter_for(&self, epoch: u64) -> Result<Scope<'_>> {
        self.check_epoch(epoch)?;
        self.enter()
    }

    /// Refuses an object that a reset destroyed.
    #[inline]
    pub(super) fn check_epoch(&self, epoch: u64) -> Result<()> {
        if self.epoch() == epoch { Ok(()) } else { Err(self.stale()) }
    }

    #[cold]
    fn switch(&self, code: c_int, current: Handle, handle: Handle) -> Result<Scope<'_>> {
        self.check("current", code)?;
        self.check("set_current", self.driver.vendor.set_current(handle))?;
        // As with the vendors' runtime libraries, a thread without a context keeps the context of device 0. Any other
        // context is restored.
        let previous = (current != 0 || self.ordinal != 0).then_some(current);
        Ok(Scope { driver: &self.driver, previous })
    }

    /// Makes the context current on this thread permanently, for other libraries' calls.
    pub(super) fn make_current(&self) -> Result<()> {
        let mut scope = self.enter()?;
        scope.previous = None;
        Ok(())
    }

    /// Returns true after the context's first use.
    pub(super) fn is_open(&self) -> bool {
        self.handle.load(Ordering::Acquire) != 0
    }

    /// Returns the context's handle, and opens the context if necessary.
    pub(super) fn handle(&self) -> Result<Handle> {
        match self.handle.load(Ordering::Acquire) {
            0 => self.open(),
            handle => Ok(handle),
        }
    }

    #[cold]
    fn open(&self) -> Result<Handle> {
        if process::generation() != self.driver.generation {
            return Err(self.forked());
        }
        let _opening = self.opening.lock();
        let known = self.handle.load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        let vendor = &self.driver.vendor;
        let (code, handle) = vendor.retain_context(self.device);
        self.check("retain_context", code)?;
        self.handle.store(handle, Ordering::Release);
        let (code, number) = vendor.number_of(handle);
        if code == Status::SUCCESS {
            self.number.store(number, Ordering::Release);
        }
        Ok(handle)
    }

    /// Returns the result of a call that returned `code`, and records a lasting failure.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == Status::SUCCESS { Ok(()) } else { Err(self.failed(call, code)) }
    }

    #[cold]
    pub(super) fn failed(&self, call: &'static str, code: c_int) -> Error {
        let driver = &self.driver;
        let lasts = match driver.vendor.lasting(code) {
            // After a reset that did not restore it, a context returns arbitrary numbers.
            Lasting::No => self.is_lost() && !self.driver.is_out_of_memory(code),
            Lasting::Yes => true,
            Lasting::Unclear => self.fails_again(),
        };
        let epoch = match ENTERED.get() {
            (context, epoch) if context == std::ptr::from_ref(self) as usize => epoch,
            _ => self.epoch(),
        };
        if !lasts || epoch != self.epoch() {
            return driver.error(call, code);
        }
        let first = self.set_lost(epoch, code) == Status::SUCCESS;
        let error = driver.error(call, code);
        let detail = format!(
            "{}; device {}:{} cannot be used by this process until it is reset \
             (Device::reset, Device.reset() in Python), which loses the contents of its memory; if \
             the driver refuses the reset, start the program again",
            error.detail(),
            driver.vendor.name(),
            self.ordinal
        );
        let kind = if first { error.kind() } else { ErrorKind::DeviceLost };
        Error::new(kind, error.status(), call, detail)
    }

    /// Runs a call that the driver would refuse during a capture on this or another thread.
    #[inline]
    pub(super) fn outside_captures<R>(&self, call: impl FnOnce() -> R) -> R {
        self.capture_state.outside(&self.driver, call)
    }

    /// Runs a call that begins or ends a capture, while no other thread queries or extends a capture.
    pub(super) fn asking<R>(&self, call: impl FnOnce() -> R) -> R {
        let _adding = self.capture_state.adding();
        let _asking = self.capture_state.ask();
        call()
    }

    /// Returns true if the default stream must not be used, because it waits for a stream that captures: a call on it
    /// would end that capture. The context is current.
    pub(super) fn default_is_barred(&self) -> bool {
        self.capture_state.bars_default(&self.driver)
    }

    /// Returns true if any stream captures, including captures that other libraries began.
    pub(super) fn has_captures(&self) -> bool {
        if self.capture_state.any() || !self.capture_state.any_exposed() {
            return self.capture_state.any();
        }
        let Ok(_scope) = self.enter() else { return false };
        self.capture_state.any_exposed_captures(&self.driver, self.epoch())
    }

    /// Returns the number of the capture that a stream other than the default stream is part of, including captures
    /// of other libraries; `None` if the driver cannot report it. The context is current.
    pub(super) fn capture_of(&self, stream: Handle) -> Result<Option<u64>> {
        let _asking = self.capture_state.ask();
        capture_of(&self.driver, stream).map_err(|code| self.failed("capture_info", code))
    }

    /// Returns a numbered attribute, without creating a context.
    pub(super) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        let mut value = 0;
        let code = match self.driver.vendor.device_attribute(attribute.0) {
            // SAFETY: the driver returned the device; the result is written before the call
            // returns.
            Some(number) => unsafe {
                (self.driver.calls.device_attribute)(&mut value, number, self.device)
            },
            None => Status::INVALID_VALUE,
        };
        match code {
            Status::INVALID_VALUE => Err(self.driver.error_with(
                "attribute",
                code,
                &format!("attribute is {}, which this driver does not know", attribute.0),
            )),
            code => self.driver.check("attribute", code).map(|()| value),
        }
    }

    /// Returns the start and the bytes of the allocation that contains an address. The context is
    /// current.
    pub(super) fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let read = optional!(self.driver, address_range, "address_range")?;
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: the driver looks the address up; the results are written before it returns.
        let code = unsafe { read(&mut start, &mut bytes, address) };
        if code != Status::SUCCESS && self.driver.kind(code) == ErrorKind::InvalidArgument {
            let detail =
                format!("address is {address:#x}, which is not in an allocation of the device");
            return Err(self.driver.error_with("address_range", code, &detail));
        }
        self.check("address_range", code)?;
        Ok((start, bytes))
    }

    /// Returns the compilers' name of the device, for code that is to run on it.
    ///
    /// # Errors
    /// `Unsupported` if the driver reports a text that is not such a name.
    pub(super) fn target(&self) -> Result<&str> {
        let name = self.architecture.as_str();
        if self.driver.vendor.is_architecture(name) {
            return Ok(name);
        }
        Err(Error::unsupported(
            "target",
            format!(
                "the driver names the architecture of device {}:{} {name:?}, which no compiler \
                 knows (expected is {TARGETS}): copies and fills work, kernels do not",
                self.driver.vendor.name(),
                self.ordinal
            ),
        ))
    }

    /// Returns whether queries of idle objects work; tests this once.
    pub(super) fn query_support(&self) -> QuerySupport {
        *self.query_support.get_or_init(|| {
            let Ok(_scope) = self.enter() else { return QuerySupport::UNKNOWN };
            self.outside_captures(|| QuerySupport::of(&self.driver, self.ordinal))
        })
    }

    /// Returns true if the driver reports a failure again, because a lost context fails every call. The context is
    /// current.
    fn fails_again(&self) -> bool {
        if self.default_is_barred() {
            // The query would end the capture. Work that is queued later fails anyway.
            return false;
        }
        let code =
            // SAFETY: 0 is the default stream.
            self.outside_captures(|| unsafe { (self.driver.calls.stream_query)(0) });
        self.driver.vendor.lasting(code) != Lasting::No
    }

    /// Returns true after a failure has made the context unusable.
    pub(super) fn is_lost(&self) -> bool {
        let lost = self.lost.load(Ordering::Acquire);
        lost != 0 && self.failure_in(lost) != Status::SUCCESS
    }

    /// Returns the status in a value of `lost`, if it belongs to this epoch.
    fn failure_in(&self, lost: u64) -> c_int {
        if lost >> 32 == self.epoch() & u64::from(u32::MAX) { lost as c_int } else { 0 }
    }

    /// Records a lasting failure, and returns the previous one.
    fn set_lost(&self, epoch: u64, code: c_int) -> c_int {
        let lost = epoch << 32 | u64::from(code as u32);
        self.failure_in(self.lost.swap(lost, Ordering::AcqRel))
    }

    #[cold]
    fn forked(&self) -> Error {
        Error::handle(
            "device",
            format!(
                "this process was forked from one that had opened {}, whose driver does not \
                 survive a fork; start workers with spawn or forkserver, or open the device in \
                 the child only",
                self.driver.vendor.name()
            ),
        )
    }

    #[cold]
    fn stale(&self) -> Error {
        Error::handle(
            "device",
            format!(
                "the object is from before device {}:{} was reset, which destroyed it; create it again",
                self.driver.vendor.name(),
                self.ordinal
            ),
        )
    }

    /// Destroys everything in the context; the next call opens a new one. `end` is called first, to release or forget
    /// the contents. The function that `end` returns is called after the driver has reset the context.
    pub(super) fn reset<F: FnOnce()>(&self, end: impl FnOnce() -> F) -> Result<()> {
        if process::generation() != self.driver.generation {
            return Err(self.forked());
        }
        let (code, failure) = {
            let _opening = self.opening.lock();
            // From here on, older objects are not passed to the driver again.
            self.epoch.fetch_add(1, Ordering::AcqRel);
            let afterwards = end();
            self.number.store(0, Ordering::Release);
            let retained = self.handle.swap(0, Ordering::AcqRel) != 0;
            let code = self.driver.vendor.reset_context(self.device);
            if retained {
                // The reset leaves the number of retained uses unchanged; the next call retains another one.
                self.driver.vendor.release_context(self.device);
            }
            afterwards();
            if self.driver.vendor.lasting(code) == Lasting::No
                && let Err(error) = self.driver.check("reset", code)
            {
                self.epoch.fetch_add(1, Ordering::AcqRel);
                return Err(error);
            }
            // The failure belongs to the previous epoch.
            let failure = self.lost.swap(0, Ordering::AcqRel) as c_int;
            self.epoch.fetch_add(1, Ordering::AcqRel);
            (code, failure)
        };
        if failure == Status::SUCCESS && code == Status::SUCCESS {
            return Ok(());
        }
        // Some drivers cannot recover from a kernel's failure in the same process. They report this immediately or
        // when the context is opened again.
        let opened = self.driver.check("reset", code).and_then(|()| self.open().map(drop));
        opened.map_err(|error| {
            let failure = if failure == Status::SUCCESS { code } else { failure };
            self.set_lost(self.epoch(), failure);
            let detail = format!(
                "the driver does not recover device {}:{} from the failure in this process: \
                 start the program again; other processes are not affected",
                self.driver.vendor.name(),
                self.ordinal
            );
            Error::new(ErrorKind::DeviceLost, error.status(), "reset", detail)
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let handle = self.handle.load(Ordering::Acquire);
        if handle == 0 || !self.is_alive(self.epoch()) {
            return;
        }
        let code = self.driver.vendor.release_context(self.device);
        if code != Status::SUCCESS {
            log::warn!("releasing the context of device {} failed: status {code}", self.ordinal);
        }
    }
}

// Tests if queries of streams and events work: on some runtimes they return "not ready" forever.

/// The kinds of objects whose queries report completion after their work has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuerySupport {
    pub(super) streams: bool,
    pub(super) events: bool,
    /// True if queries of events that were never recorded report completion, as they should.
    pub(super) unrecorded: bool,
}

impl QuerySupport {
    /// Assumed after a failure, which the next call reports.
    pub(super) const UNKNOWN: QuerySupport =
        QuerySupport { streams: true, events: true, unrecorded: true };

    /// Queries idle objects of a device. The context is current.
    #[cold]
    pub(super) fn of(driver: &Driver, ordinal: usize) -> QuerySupport {
        let support = QuerySupport::try_queries(driver);
        let all = [support.streams, support.events, support.unrecorded];
        if all.contains(&false) {
            log::warn!(
                "device {}:{ordinal} answers queries of idle objects with \"not ready\" \
                 ({support:?}): waits for them cannot be interrupted",
                driver.vendor.name(),
            );
        }
        support
    }

    fn try_queries(driver: &Driver) -> QuerySupport {
        let (calls, mut support) = (&driver.calls, QuerySupport::UNKNOWN);
        let failed = |code: c_int| match code {
            Status::SUCCESS => false,
            _ => {
                driver.vendor.forget_failure();
                true
            }
        };
        let (mut stream, mut event): (Handle, Handle) = (0, 0);
        // SAFETY: the handles are written before the calls return, used while they are live, and
        // destroyed once.
        unsafe {
            if failed((calls.stream_create)(&mut stream, NON_BLOCKING, 0)) {
                return support;
            }
            support.streams = (calls.stream_query)(stream) != Status::NOT_READY;
            if !failed((calls.event_create)(&mut event, NO_TIMING)) {
                support.unrecorded = (calls.event_query)(event) != Status::NOT_READY;
                if !failed((calls.event_record)(event, stream))
                    && !failed((calls.event_synchronize)(event))
                {
                    support.events = (calls.event_query)(event) != Status::NOT_READY;
                }
                failed((calls.event_destroy)(event));
            }
            failed((calls.stream_destroy)(stream));
        }
        support
    }
}
