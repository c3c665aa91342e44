//! The primary context of a device: retained at first use, made current for each call, and
//! the thread's own put back.

use super::calls::Handle;
use super::errors::Driver;
use super::memory::DeviceAllocator;
use super::query_support::QuerySupport;
use super::state::{CaptureState, capture_of};
use super::vendor::Lasting;
use hal::device::DeviceId;
use hal::error::{Error, ErrorKind, Result};
use hal::failures::Failures;
use hal::interruption::outside_functions;
use hal::locks::{OPENING, Ranked};
use hal::process;
use hal::status::{Status, meaning};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// `CUDA_ERROR_INVALID_CONTEXT` and `_CONTEXT_IS_DESTROYED`.
const GONE: [c_int; 2] = [201, 709];

/// Locks; what the locks protect is valid after every step, so a panic elsewhere spoils
/// nothing.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device's primary context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) driver: Arc<Driver>,
    pub(super) ordinal: usize,
    /// The driver's number of the device.
    pub(super) device: c_int,
    /// What the driver calls the device's architecture, which may be any text.
    pub(super) architecture: String,
    /// The context once it is retained, else 0.
    handle: AtomicUsize,
    /// Its number; 0 if it is not retained, or the driver has no numbers. A context that somebody has reset, and that
    /// was retained again, has the same handle and another number.
    number: AtomicU64,
    /// What forgets memory when another library has reset the device.
    memory: OnceLock<Weak<DeviceAllocator>>,
    opening: Ranked<(), OPENING>,
    /// Raised by a reset when it begins and when it ends: what is made meanwhile is of neither time.
    epoch: AtomicU64,
    /// The epoch, and in the lower half the status after which the context cannot be used; 0
    /// without one.
    lost: AtomicU64,
    /// Which streams capture: asked in front of calls that would end a capture.
    pub(super) capture_state: CaptureState,
    /// What queries are good for, once tried.
    query_support: OnceLock<QuerySupport>,
    /// What host functions have failed with, until somebody waits.
    pub(super) failures: Arc<Failures>,
}

thread_local! {
    /// The context that this thread has entered last, and its epoch then: a call may fail since a
    /// reset came in between, which says nothing about the context of today.
    static ENTERED: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// The thread's context, put back when dropped.
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
            memory: OnceLock::new(),
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

    /// False in a forked child, where the parent's threads may have had every lock.
    pub(super) fn is_of_this_process(&self) -> bool {
        process::generation() == self.driver.generation
    }

    /// True if objects of an epoch may still be handed to the driver: for drops.
    pub(super) fn is_alive(&self, epoch: u64) -> bool {
        !process::is_exiting() && self.is_of_this_process() && self.epoch() == epoch
    }

    /// Makes the context the thread's for the calls that follow.
    #[inline]
    pub(super) fn enter(&self) -> Result<Scope<'_>> {
        if process::generation() != self.driver.generation {
            return Err(self.forked());
        }
        // Drivers allow no call in a function that a stream runs, and do not all refuse it.
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

    /// Makes the context current where that of the thread has another number, or none.
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
            // Any other failure is one of work, which the call behind this one reports.
            (code, _) => GONE.contains(&code),
        };
        if known != 0 && is_another { Err(self.taken(known)) } else { Ok(scope) }
    }

    /// Another library has reset the device, or released its context: what was made before is of an earlier epoch.
    #[cold]
    fn taken(&self, number: u64) -> Error {
        // Whoever else opens or resets the context finds the same.
        if let Some(_opening) = self.opening.try_lock()
            && self.number.load(Ordering::Acquire) == number
        {
            self.epoch.fetch_add(2, Ordering::AcqRel);
            self.lost.store(0, Ordering::Release);
            self.number.store(0, Ordering::Release);
            self.handle.store(0, Ordering::Release);
            // The use that was counted stays so: where somebody has released it, another use would be ended.
            self.capture_state.forget();
            if let Some(memory) = self.memory.get().and_then(Weak::upgrade) {
                memory.forget();
            }
        }
        Error::handle(
            "device",
            format!(
                "device {}:{} was reset by another library of this process, which took all that was on it; \
                 create arrays, streams and events again",
                self.driver.vendor.name(),
                self.ordinal
            ),
        )
    }

    /// Sets what forgets memory when another library has reset the device.
    pub(super) fn on_loss(&self, memory: Weak<DeviceAllocator>) {
        let _ = self.memory.set(memory);
    }

    /// As [`Context::enter`], for an object made in `epoch`.
    #[inline]
    pub(super) fn enter_for(&self, epoch: u64) -> Result<Scope<'_>> {
        self.check_epoch(epoch)?;
        self.enter()
    }

    /// Refuses an object that a reset took.
    #[inline]
    pub(super) fn check_epoch(&self, epoch: u64) -> Result<()> {
        if self.epoch() == epoch { Ok(()) } else { Err(self.stale()) }
    }

    #[cold]
    fn switch(&self, code: c_int, current: Handle, handle: Handle) -> Result<Scope<'_>> {
        self.check("current", code)?;
        self.check("set_current", self.driver.vendor.set_current(handle))?;
        // A thread without any context keeps that of device 0, as the vendors' runtime
        // libraries do; every other thread's own is restored.
        let previous = (current != 0 || self.ordinal != 0).then_some(current);
        Ok(Scope { driver: &self.driver, previous })
    }

    /// Makes the context the thread's, for other libraries' calls.
    pub(super) fn make_current(&self) -> Result<()> {
        let mut scope = self.enter()?;
        scope.previous = None;
        Ok(())
    }

    /// True once the context has been used.
    pub(super) fn is_open(&self) -> bool {
        self.handle.load(Ordering::Acquire) != 0
    }

    /// The context's handle.
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

    /// The result of a call that returned `code`; remembers a failure that lasts.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == Status::SUCCESS { Ok(()) } else { Err(self.failed(call, code)) }
    }

    #[cold]
    pub(super) fn failed(&self, call: &'static str, code: c_int) -> Error {
        let driver = &self.driver;
        let lasts = match driver.vendor.lasting(code) {
            // A context that a reset did not bring back answers with any number.
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
        let error = driver.error_with(call, code, meaning(code));
        let detail = format!(
            "{}; device {}:{} cannot be used by this process until it is reset \
             (Device::reset, Device.reset() in Python), which loses what is in its memory; a \
             driver that refuses that needs the program started again",
            error.detail(),
            driver.vendor.name(),
            self.ordinal
        );
        let kind = if first { error.kind() } else { ErrorKind::DeviceLost };
        Error::new(kind, error.status(), call, detail)
    }

    /// Runs a call that a capture on this or another thread would make the driver refuse.
    #[inline]
    pub(super) fn outside_captures<R>(&self, call: impl FnOnce() -> R) -> R {
        self.capture_state.outside(&self.driver, call)
    }

    /// Runs a call that begins or ends a capture, while the driver is asked about none and adds to none.
    pub(super) fn asking<R>(&self, call: impl FnOnce() -> R) -> R {
        let _adding = self.capture_state.adding();
        let _asking = self.capture_state.ask();
        call()
    }

    /// True if the default stream must be left alone, since it waits for a stream that
    /// captures: a call on it would end that capture. The context is current.
    pub(super) fn default_is_barred(&self) -> bool {
        self.capture_state.bars_default(&self.driver)
    }

    /// True if some stream captures, whoever began that.
    pub(super) fn has_captures(&self) -> bool {
        if self.capture_state.any() || !self.capture_state.any_exposed() {
            return self.capture_state.any();
        }
        let Ok(_scope) = self.enter() else { return false };
        self.capture_state.any_exposed_captures(&self.driver, self.epoch())
    }

    /// The number of the capture that a stream, not the default one, is part of, whoever began
    /// it; `None` if the driver cannot tell. The context is current.
    pub(super) fn capture_of(&self, stream: Handle) -> Result<Option<u64>> {
        let _asking = self.capture_state.ask();
        capture_of(&self.driver, stream).map_err(|code| self.failed("capture_info", code))
    }

    /// What queries say where there is nothing to wait for; tried once.
    pub(super) fn query_support(&self) -> QuerySupport {
        *self.query_support.get_or_init(|| {
            let Ok(_scope) = self.enter() else { return QuerySupport::UNKNOWN };
            self.outside_captures(|| QuerySupport::of(&self.driver, self.ordinal))
        })
    }

    /// True if the driver reports a failure once more: a lost context fails every call. The
    /// context is current.
    fn fails_again(&self) -> bool {
        if self.default_is_barred() {
            // The question would end the capture. Work that is queued later fails anyhow.
            return false;
        }
        let code =
            // SAFETY: 0 is the default stream.
            self.outside_captures(|| unsafe { (self.driver.calls.stream_query)(0) });
        self.driver.vendor.lasting(code) != Lasting::No
    }

    /// True once a failure has made the context useless.
    pub(super) fn is_lost(&self) -> bool {
        let lost = self.lost.load(Ordering::Acquire);
        lost != 0 && self.failure_in(lost) != Status::SUCCESS
    }

    /// The status in a value of `lost`, if it is of this epoch.
    fn failure_in(&self, lost: u64) -> c_int {
        if lost >> 32 == self.epoch() & u64::from(u32::MAX) { lost as c_int } else { 0 }
    }

    /// Remembers a failure that lasts, and returns the one that was known.
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
                "the object is from before device {}:{} was reset, which took it; create it again",
                self.driver.vendor.name(),
                self.ordinal
            ),
        )
    }

    /// Destroys everything in the context; the next call opens a new one. Before that, `end` lets
    /// go of what lies in it; what `end` returns is called once the driver has reset the context.
    pub(super) fn reset<F: FnOnce()>(&self, end: impl FnOnce() -> F) -> Result<()> {
        if process::generation() != self.driver.generation {
            return Err(self.forked());
        }
        let (code, failure) = {
            let _opening = self.opening.lock();
            // From here on nothing made before is handed to the driver again.
            self.epoch.fetch_add(1, Ordering::AcqRel);
            let afterwards = end();
            self.number.store(0, Ordering::Release);
            let retained = self.handle.swap(0, Ordering::AcqRel) != 0;
            let code = self.driver.vendor.reset_context(self.device);
            if retained {
                // The reset keeps the uses counted; the next call counts a new one.
                self.driver.vendor.release_context(self.device);
            }
            afterwards();
            if self.driver.vendor.lasting(code) == Lasting::No
                && let Err(error) = self.driver.check("reset", code)
            {
                self.epoch.fetch_add(1, Ordering::AcqRel);
                return Err(error);
            }
            // The failure is of the epoch before.
            let failure = self.lost.swap(0, Ordering::AcqRel) as c_int;
            self.epoch.fetch_add(1, Ordering::AcqRel);
            (code, failure)
        };
        if failure == Status::SUCCESS && code == Status::SUCCESS {
            return Ok(());
        }
        // Some drivers do not get over a kernel's failure in the same process, and say so
        // at once or when the context is opened again.
        let opened = self.driver.check("reset", code).and_then(|()| self.open().map(drop));
        opened.map_err(|error| {
            let failure = if failure == Status::SUCCESS { code } else { failure };
            self.set_lost(self.epoch(), failure);
            let detail = format!(
                "the driver does not recover device {}:{} from the failure in this process: \
                 start the program again; other processes are not affected ({})",
                self.driver.vendor.name(),
                self.ordinal,
                self.driver.vendor.status_name(error.status().code).unwrap_or("no name")
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
