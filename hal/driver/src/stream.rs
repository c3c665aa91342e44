//! Streams of a driver: their ownership and lifetime. Their operations are in `queue`.

mod capture;
mod operation;
mod queue;
mod transfer;

use crate::calls::{Handle, NON_BLOCKING, PER_THREAD};
use crate::context::Context;
use crate::memory::FreeList;
use crate::open_captures::Unattached;
use crate::state::DeviceState;
use hal::error::{Error, Result};
use hal::locks::RankedGuard;
use hal::memory::{BlockOwner, is_left};
use hal::module::LaunchConfig;
use hal::process;
use hal::properties::DeviceId;
use hal::status::{AtomicStatus, Status};
use hal::stream::{Stream, StreamOptions, StreamState, unique_id};
use hal::submission::{MayCapture, keeps_captures_from, some_may_capture};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};

/// The owner of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// The default stream, which survives resets and is never destroyed.
    Default,
    /// Created here, and destroyed with the object.
    Own(StreamOptions),
    /// Owned by another library.
    External,
}

/// A queue of work of a device.
#[derive(Debug)]
pub(crate) struct DriverStream {
    device: Arc<DeviceState>,
    /// The device's context, for faster access.
    context: Arc<Context>,
    pub(crate) epoch: u64,
    id: u64,
    handle: Handle,
    ownership: Ownership,
    /// The thread that the stream belongs to, if the handle means the per-thread default stream.
    thread: Option<ThreadId>,
    blocks: Arc<FreeList>,
    /// Set when other libraries know the handle, or when the stream has waited for their work. They may then capture
    /// on the stream, so the driver is asked from then on.
    exposed: OnceLock<MayCapture>,
    unattached: Unattached,
    /// The number of host functions that were queued.
    functions: AtomicU64,
    status: AtomicStatus,
}

impl DriverStream {
    fn over(device: &Arc<DeviceState>, handle: Handle, ownership: Ownership) -> DriverStream {
        DriverStream {
            epoch: device.context.epoch(),
            id: unique_id(),
            handle,
            ownership,
            thread: (handle == PER_THREAD).then(|| thread::current().id()),
            blocks: device.memory.new_list(handle),
            exposed: OnceLock::new(),
            unattached: Mutex::default(),
            functions: AtomicU64::new(0),
            status: AtomicStatus::new(),
            context: device.context.clone(),
            device: device.clone(),
        }
    }

    /// Returns the default stream, without creating a context.
    pub(crate) fn default_of(device: &Arc<DeviceState>) -> DriverStream {
        let mut stream = Self::over(device, 0, Ownership::Default);
        stream.id = device.default_stream_id;
        stream
    }

    /// Creates a stream.
    pub(crate) fn create(
        device: &Arc<DeviceState>,
        options: StreamOptions,
    ) -> Result<DriverStream> {
        let context = &device.context;
        let _scope = context.enter()?;
        let flags = if options.non_blocking { NON_BLOCKING } else { 0 };
        let mut handle = 0;
        // SAFETY: the handle is written before the call returns.
        let code = unsafe {
            (context.driver.calls.stream_create)(&mut handle, flags, options.priority as c_int)
        };
        context.check("create_stream", code)?;
        Ok(Self::over(device, handle, Ownership::Own(options)))
    }

    /// Returns the stream of another library's handle.
    pub(crate) fn external(device: &Arc<DeviceState>, handle: u64) -> Result<DriverStream> {
        drop(device.context.enter()?);
        // Drivers dereference a handle before they refuse it.
        if handle as Handle != PER_THREAD && !process::may_be_read(handle) {
            let detail = format!("handle is {handle:#x}, where no stream can be");
            return Err(Error::handle("stream_from_handle", detail));
        }
        let stream = Self::over(device, handle as Handle, Ownership::External);
        stream.expose();
        if stream.handle != PER_THREAD {
            // The driver refuses most invalid handles.
            stream.options()?;
        }
        Ok(stream)
    }

    /// Returns the stream of this layer inside a trait object, if it belongs to the context's device.
    #[inline]
    pub(crate) fn own<'a>(stream: &'a dyn Stream, context: &Arc<Context>) -> Result<&'a Self> {
        match stream.as_any().downcast_ref::<DriverStream>() {
            Some(own) if Arc::ptr_eq(&own.context, context) => Ok(own),
            _ => Err(wrong_device(stream, context.device_id())),
        }
    }

    /// Returns the stream of this layer inside a trait object, if it belongs to any device of the context's driver.
    pub(crate) fn of_any_device<'a>(stream: &'a dyn Stream, context: &Context) -> Result<&'a Self> {
        match stream.as_any().downcast_ref::<DriverStream>() {
            Some(own) if Arc::ptr_eq(&own.context.driver, &context.driver) => Ok(own),
            _ => Err(wrong_device(stream, context.device_id())),
        }
    }

    /// Returns the driver's handle.
    #[inline]
    pub(crate) fn raw(&self) -> Handle {
        self.handle
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    #[inline]
    pub(crate) fn device(&self) -> &Arc<DeviceState> {
        &self.device
    }

    /// Makes the context current, unless the stream was made before a reset.
    #[inline]
    pub(crate) fn enter(&self) -> Result<crate::context::Scope<'_>> {
        if self.is_elsewhere() {
            return Err(elsewhere());
        }
        self.enter_anywhere()
    }

    #[inline]
    fn enter_anywhere(&self) -> Result<crate::context::Scope<'_>> {
        match self.ownership {
            Ownership::Default => self.context.enter(),
            _ => self.context.enter_for(self.epoch),
        }
    }

    /// Returns true if the handle means another stream on this thread. Then work that must come after this stream
    /// waits on the host, and nothing is queued.
    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.handle == PER_THREAD && self.thread != Some(thread::current().id())
    }

    /// Waits for the device, and so for a stream that only another thread can name.
    fn synchronize_device(&self) -> Result<()> {
        let _scope = self.context.enter_for(self.epoch)?;
        // SAFETY: the call does not take arguments.
        let code = unsafe { (self.context.driver.calls.synchronize)() };
        self.context.check("synchronize", code)
    }

    /// Waits for the work of the stream. While it captures, that is an error, which ends the capture.
    fn wait(&self, captures: bool) -> Result<()> {
        if self.is_elsewhere() {
            return self.synchronize_device();
        }
        let _scope = self.enter()?;
        let context = &self.context;
        // SAFETY: the handle is a live stream.
        let wait = || unsafe { (context.driver.calls.stream_synchronize)(self.handle) };
        if some_may_capture() && !keeps_captures_from(self.id) && self.supports_queries() {
            return self.poll(|| {
                let refused = captures || self.capture_number()?.is_some() || self.is_barred()?;
                // SAFETY: as above.
                let query = || unsafe { (context.driver.calls.stream_query)(self.handle) };
                let code = if refused {
                    let _adding = self.adding()?;
                    wait()
                } else {
                    context.outside_captures(query)
                };
                if code == Status::NOT_READY {
                    return Ok(false);
                }
                context.check("synchronize", code).map(|()| true)
            });
        }
        let code = if captures { wait() } else { context.outside_captures(wait) };
        context.check("synchronize", code)
    }

    /// Returns true if the handle is one of the default streams, which cannot capture.
    pub(crate) fn is_default(&self) -> bool {
        self.handle == 0
    }

    /// Returns true for the default stream while a stream that it waits for captures.
    fn is_barred(&self) -> Result<bool> {
        if !self.is_default() {
            return Ok(false);
        }
        let _scope = self.enter()?;
        Ok(self.context.default_is_barred())
    }

    /// Records that other libraries can reach the stream from now on, and may capture on it. The default stream cannot
    /// capture.
    pub(crate) fn expose(&self) {
        if !self.is_default() && self.context.is_of_this_process() {
            self.exposed.get_or_init(|| {
                self.context.capture_state.expose(self.id, self.handle, self.epoch);
                MayCapture::begin()
            });
        }
    }

    /// Returns true for a stream created here for which the default stream does not wait. Other streams would have
    /// to be queried, which would end a capture on them.
    fn is_surely_non_blocking(&self) -> bool {
        matches!(self.ownership, Ownership::Own(options) if options.non_blocking)
    }

    /// Returns true if other libraries can reach the stream.
    fn is_exposed(&self) -> bool {
        self.exposed.get().is_some()
    }

    /// Returns false if the stream is known not to capture now, without asking the driver.
    #[inline]
    pub(crate) fn may_capture(&self) -> bool {
        !self.is_default() && (self.exposed.get().is_some() || self.context.capture_state.any())
    }

    /// If the stream captures, returns the lock under which captures change. Each call that queues work holds this
    /// lock, because the call adds to the capture. The lock is also held on the default stream while a capture bars
    /// it: the driver then ends the capture.
    #[inline]
    pub(crate) fn adding(&self) -> Result<Option<RankedGuard<'_, ()>>> {
        // No stream captures in most programs.
        if self.exposed.get().is_some() || self.context.capture_state.any() {
            self.adding_where_captures_are()
        } else {
            Ok(None)
        }
    }

    #[cold]
    fn adding_where_captures_are(&self) -> Result<Option<RankedGuard<'_, ()>>> {
        let changes =
            if self.is_default() { self.is_barred()? } else { self.capture_number()?.is_some() };
        Ok(changes.then(|| self.context.capture_state.adding()))
    }

    /// Queues a launch of a kernel; returns the driver's status. The context is current.
    ///
    /// # Safety
    /// The function is live and belongs to the stream's context. The arguments match it, and the memory that they name
    /// lives until the kernel has run. The driver reads the arguments before it returns.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        function: Handle,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<c_int> {
        let ([gx, gy, gz], [bx, by, bz], shared) = (config.grid, config.block, config.shared_bytes);
        let (launch, arguments) = (self.context.driver.calls.launch, arguments.as_ptr().cast_mut());
        let (stream, extra) = (self.handle, null_mut());
        let _adding = self.adding()?;
        // SAFETY: the stream is live; the caller's promise.
        Ok(unsafe { launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra) })
    }

    /// Reports the failure of a host function, once.
    pub(crate) fn take_failure(&self) -> Result<()> {
        self.context.failures.take(self.id)
    }
}

#[cold]
fn elsewhere() -> Error {
    Error::handle(
        "stream",
        "stream is the default stream of the thread that took it by handle 2; on another thread \
         the handle means another stream, which has to be taken there",
    )
}

#[cold]
fn wrong_device(stream: &dyn Stream, device: DeviceId) -> Error {
    let refused = device.check_same("stream", "stream", stream.device_id());
    refused.err().unwrap_or_else(|| Error::invalid("stream", "stream belongs to another backend"))
}

impl Drop for DriverStream {
    fn drop(&mut self) {
        let context = &self.context;
        context.failures.forget(self.id);
        if self.exposed.get().is_some() && context.is_of_this_process() {
            context.capture_state.conceal(self.id);
        }
        let epoch = match self.ownership {
            Ownership::Default => context.epoch(),
            _ => self.epoch,
        };
        if !context.is_alive(epoch) || !context.is_open() {
            return;
        }
        if context.is_lost() {
            context.capture_state.withdraw(self.id);
            return;
        }
        // The driver refuses to destroy a stream inside a host function.
        let (exposed, unattached) = (&mut self.exposed, &mut self.unattached);
        let same = || DriverStream {
            device: self.device.clone(),
            context: context.clone(),
            blocks: self.blocks.clone(),
            exposed: std::mem::take(exposed),
            unattached: std::mem::take(unattached),
            functions: AtomicU64::new(self.functions.load(Ordering::Acquire)),
            status: AtomicStatus::new(),
            epoch: self.epoch,
            id: self.id,
            handle: self.handle,
            ownership: self.ownership,
            thread: self.thread,
        };
        if self.ownership != Ownership::Default && is_left(context.device_id(), same) {
            return;
        }
        let destroy = || {
            self.drop_capture()?;
            match self.capture_number()? {
                // The last uses of the blocks may still run, and the stream cannot be waited for.
                Some(capture) => {
                    let captures = &self.device.open_captures;
                    for (address, bytes) in self.blocks.take() {
                        // SAFETY: the blocks are allocations that only this stream held, for reuse.
                        let is_kept = unsafe {
                            captures.keep(self.handle, &self.unattached, capture, address, bytes)?
                        };
                        if !is_kept {
                            // SAFETY: as above.
                            unsafe { self.device.memory.free_block(address, bytes)? };
                        }
                    }
                }
                None => self.blocks.close(&self.device.memory.pool)?,
            }
            if let Ownership::Own(_) = self.ownership {
                let _scope = context.enter()?;
                let _adding = self.adding()?;
                // SAFETY: the handle is live and has no other references; the driver finishes queued work first,
                // without a wait here.
                let code = unsafe { (context.driver.calls.stream_destroy)(self.handle) };
                return context.check("destroy_stream", code);
            }
            Ok(())
        };
        if let Err(error) = destroy() {
            log::warn!("destroying a stream failed: {error}");
        }
    }
}
