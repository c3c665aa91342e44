//! Streams of a driver.

use super::blocks::FreeBlocks;
use super::calls::Handle;
use super::capture::capture_of;
use super::context::{Context, lock};
use super::event;
use super::kept::Kept;
use super::status::optional;
use crate::device::{Device, DeviceId};
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::memory::Use;
use crate::operation::Operation;
use crate::status::Status;
use crate::stream::{
    CaptureMode, Graph, MayCapture, PrefetchTarget, Stream, StreamOptions, Transfer, unique_id,
};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};

/// `CU_STREAM_NON_BLOCKING`; HIP's is the same.
pub(super) const NON_BLOCKING: u32 = 1;
/// The legacy default stream by an explicit handle, which HIP has only since 6.2 and which
/// means what 0 does; and that of each thread.
pub(super) const LEGACY: Handle = 1;
pub(super) const PER_THREAD: Handle = 2;

/// Whose a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// The default stream: it survives resets and is never destroyed.
    Default,
    /// Made here, and destroyed with the object.
    Own(StreamOptions),
    /// Another library's.
    Foreign,
}

/// A queue of work of a device.
#[derive(Debug)]
pub(super) struct DriverStream {
    context: Arc<Context>,
    pub(super) epoch: u64,
    id: u64,
    handle: Handle,
    ownership: Ownership,
    /// Whose default stream it is, if the handle means another one on each thread.
    thread: Option<ThreadId>,
    blocks: Arc<FreeBlocks>,
    /// Set once others know the handle, or work of theirs was waited for: they may capture on the
    /// stream, so from then on the driver is asked.
    exposed: OnceLock<MayCapture>,
    /// What captures of other libraries use, where the driver's graphs cannot keep it.
    kept: Mutex<Vec<Arc<Kept>>>,
    /// The failure of a host function, until somebody waits for the stream.
    failure: Arc<Mutex<Option<Error>>>,
}

impl DriverStream {
    fn over(context: &Arc<Context>, handle: Handle, ownership: Ownership) -> DriverStream {
        DriverStream {
            epoch: context.epoch(),
            id: unique_id(),
            handle,
            ownership,
            thread: (handle == PER_THREAD).then(|| thread::current().id()),
            blocks: FreeBlocks::new(context, handle),
            exposed: OnceLock::new(),
            kept: Mutex::default(),
            failure: Arc::default(),
            context: context.clone(),
        }
    }

    /// The default stream. Makes no context.
    pub(super) fn default_of(context: &Arc<Context>) -> DriverStream {
        Self::over(context, 0, Ownership::Default)
    }

    /// A new stream.
    pub(super) fn create(context: &Arc<Context>, options: StreamOptions) -> Result<DriverStream> {
        let _scope = context.enter()?;
        let flags = if options.non_blocking { NON_BLOCKING } else { 0 };
        let mut handle = 0;
        // SAFETY: the handle is written before the call returns.
        let code = unsafe {
            (context.driver.calls.stream_create)(&mut handle, flags, options.priority as c_int)
        };
        context.check("create_stream", code)?;
        Ok(Self::over(context, handle, Ownership::Own(options)))
    }

    /// The stream of another library's handle.
    pub(super) fn foreign(context: &Arc<Context>, handle: u64) -> Result<DriverStream> {
        drop(context.enter()?);
        let stream = Self::over(context, handle as Handle, Ownership::Foreign);
        stream.expose();
        if stream.handle != PER_THREAD {
            // The driver refuses most handles that are none.
            stream.options()?;
        }
        Ok(stream)
    }

    /// The stream of this layer behind a trait object, if it is of the context's device.
    #[inline]
    pub(super) fn own<'a>(stream: &'a dyn Stream, context: &Arc<Context>) -> Result<&'a Self> {
        match stream.as_any().downcast_ref::<DriverStream>() {
            Some(own) if Arc::ptr_eq(&own.context, context) => Ok(own),
            _ => Err(foreign(stream, context)),
        }
    }

    /// The driver's handle.
    #[inline]
    pub(super) fn raw(&self) -> Handle {
        self.handle
    }

    #[inline]
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Makes the context current, if the stream is not of a time before a reset.
    #[inline]
    pub(super) fn enter(&self) -> Result<super::context::Scope<'_>> {
        if self.is_elsewhere() {
            return Err(elsewhere());
        }
        self.enter_anywhere()
    }

    #[inline]
    fn enter_anywhere(&self) -> Result<super::context::Scope<'_>> {
        match self.ownership {
            Ownership::Default => self.context.enter(),
            _ => self.context.enter_for(self.epoch),
        }
    }

    /// True if the handle means another stream on this thread: what orders work behind this one
    /// waits on the host then, and nothing is queued.
    #[inline]
    pub(super) fn is_elsewhere(&self) -> bool {
        self.handle == PER_THREAD && self.thread != Some(thread::current().id())
    }

    /// Waits for the device, and with it for a stream that only another thread can name.
    fn synchronize_device(&self) -> Result<()> {
        let _scope = self.context.enter_for(self.epoch)?;
        // SAFETY: no argument.
        let code = unsafe { (self.context.driver.calls.synchronize)() };
        self.context.check("synchronize", code)
    }

    /// True if the handle is one of the default streams, which cannot capture.
    pub(super) fn is_default(&self) -> bool {
        self.handle == 0
    }

    /// Others can reach the stream from now on, and may capture on it. The default stream cannot
    /// capture.
    pub(super) fn expose(&self) {
        if !self.is_default() && self.context.is_of_this_process() {
            self.exposed.get_or_init(|| {
                self.context.captures.expose(self.id, self.handle, self.epoch);
                MayCapture::new()
            });
        }
    }

    /// False if the stream cannot capture now, which is known without the driver.
    #[inline]
    pub(super) fn may_capture(&self) -> bool {
        !self.is_default() && (self.exposed.get().is_some() || self.context.captures.any())
    }

    /// Keeps what a capture uses for as long as this object lives.
    pub(super) fn keep(&self, kept: Arc<Kept>) {
        lock(&self.kept).push(kept);
    }

    /// Reports the failure of a host function, once.
    pub(super) fn take_failure(&self) -> Result<()> {
        lock(&self.failure).take().map_or(Ok(()), Err)
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
fn foreign(stream: &dyn Stream, context: &Context) -> Error {
    Error::invalid(
        "stream",
        format!(
            "stream belongs to device {}, not to {}:{}",
            stream.device_id(),
            context.driver.vendor.name(),
            context.ordinal
        ),
    )
}

impl Drop for DriverStream {
    fn drop(&mut self) {
        let context = &self.context;
        if self.exposed.get().is_some() && context.is_of_this_process() {
            context.captures.conceal(self.id);
        }
        let epoch = match self.ownership {
            Ownership::Default => context.epoch(),
            _ => self.epoch,
        };
        if !context.is_alive(epoch) || !context.is_open() {
            return;
        }
        if context.is_lost() {
            context.captures.withdraw(self.id);
            return;
        }
        let destroy = || {
            self.drop_capture()?;
            match self.capture_number()? {
                // The blocks' last uses may be under way, and the stream cannot be waited for.
                Some(capture) => {
                    for address in self.blocks.take() {
                        context.captures.keep(self, capture, address)?;
                    }
                }
                None => self.blocks.close(context)?,
            }
            if let Ownership::Own(_) = self.ownership {
                let _scope = context.enter()?;
                // SAFETY: the handle is live and nobody can reach it any longer; the driver
                // lets queued work finish first, without a wait here.
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

/// What a host function needs when it runs.
struct HostCall {
    function: Box<dyn FnOnce() + Send>,
    failure: Arc<Mutex<Option<Error>>>,
}

unsafe extern "C" fn run_host_call(data: *mut c_void) {
    // SAFETY: the data is a boxed call that was handed over when it was queued, once.
    let call = unsafe { Box::from_raw(data.cast::<HostCall>()) };
    let HostCall { function, failure } = *call;
    if catch_unwind(AssertUnwindSafe(function)).is_err() {
        *lock(&failure) = Some(Error::new(
            ErrorKind::LaunchFailed,
            Status::host(Status::LAUNCH_FAILED),
            "host_function",
            "the function panicked",
        ));
    }
}

unsafe extern "C" fn run_callback(_stream: Handle, _status: c_int, data: *mut c_void) {
    // SAFETY: as the caller's promise.
    unsafe { run_host_call(data) }
}

impl Stream for DriverStream {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        DeviceId { backend: self.context.driver.vendor.name(), ordinal: self.context.ordinal }
    }

    fn handle(&self) -> u64 {
        self.expose();
        self.handle as u64
    }

    fn has_handle(&self, handle: u64) -> bool {
        self.handle as u64 == handle
    }

    fn query(&self) -> Result<bool> {
        if self.is_elsewhere() || self.capture_number()?.is_some() {
            return Ok(false);
        }
        let context = &self.context;
        let _scope = self.enter()?;
        if self.is_default() && context.default_is_barred() {
            // A question would end the capture. What was queued before has run, and nothing
            // can be queued meanwhile.
            return Ok(true);
        }
        // SAFETY: the handle is a live stream.
        let query = || unsafe { (context.driver.calls.stream_query)(self.handle) };
        match context.outside_captures(query) {
            Status::NOT_READY => Ok(false),
            code => context.check("query", code).map(|()| true),
        }
    }

    fn answers_queries(&self) -> bool {
        self.context.answers().streams && !self.is_elsewhere()
    }

    fn synchronize(&self) -> Result<()> {
        if self.is_elsewhere() {
            self.synchronize_device()?;
        } else {
            let _scope = self.enter()?;
            let context = &self.context;
            // SAFETY: the handle is a live stream.
            let wait = || unsafe { (context.driver.calls.stream_synchronize)(self.handle) };
            let code = if self.capture_number()?.is_some() {
                wait()
            } else {
                context.outside_captures(wait)
            };
            context.check("synchronize", code)?;
        }
        self.take_failure()
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        if self.is_elsewhere() {
            // The mark is behind all that the other thread has queued until now.
            self.synchronize_device()?;
        }
        let captured = self.capture_number()?.is_some();
        let _scope = self.enter_anywhere()?;
        event::own(event)?.record_on(&self.context, self.handle, captured)
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        let event = event::own(event)?;
        let handle = event.handle_for(&self.context)?;
        if !event.is_recorded() {
            return Ok(());
        }
        if self.is_elsewhere() {
            return event.synchronize();
        }
        let _scope = self.enter()?;
        if event.is_captured() && self.capture_number()?.is_none() {
            // The stream becomes part of a capture: nobody could wait for its earlier work then.
            // SAFETY: the handle is a live stream.
            let wait = || unsafe { (self.context.driver.calls.stream_synchronize)(self.handle) };
            self.context.check("wait_event", self.context.outside_captures(wait))?;
        }
        // To become part of a capture is to begin one.
        let joins = event.is_captured().then(|| self.context.captures.beginning.lock());
        // SAFETY: both handles are live objects of the driver.
        let code = unsafe { (self.context.driver.calls.stream_wait_event)(self.handle, handle, 0) };
        drop(joins);
        self.context.check("wait_event", code)?;
        // The event may be of a capture of another library, which the stream is part of then.
        if self.context.captures.any_exposed()
            && self.exposed.get().is_none()
            && !self.is_default()
            && capture_of(&self.context, self.handle)?.is_some()
        {
            self.expose();
        }
        Ok(())
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.refuse_in_capture("host_function", "a graph would run the function many times")?;
        let _scope = self.enter()?;
        let calls = &self.context.driver.calls;
        let call = Box::new(HostCall { function, failure: self.failure.clone() });
        let data = Box::into_raw(call).cast::<c_void>();
        // A runtime may have the newer symbol and not the function.
        let mut code = Status::NOT_SUPPORTED;
        if let Some(launch) = calls.host_function {
            // SAFETY: the function takes the box when it runs, once.
            code = unsafe { launch(self.handle, run_host_call, data) };
        }
        if let (Some(add), true) = (calls.stream_callback, self.context.driver.is_unsupported(code))
        {
            // SAFETY: as above.
            code = unsafe { add(self.handle, run_callback, data, 0) };
        }
        if code != Status::SUCCESS {
            // SAFETY: the driver did not take the function.
            drop(unsafe { Box::from_raw(data.cast::<HostCall>()) });
        }
        self.context.check("host_function", code)
    }

    #[inline]
    fn allocate(&self, bytes: usize) -> Result<u64> {
        if let Some(capture) = self.capture_number()? {
            return self.context.captures.allocate(self, capture, bytes);
        }
        let is_stale = self.ownership != Ownership::Default && self.context.epoch() != self.epoch;
        if is_stale || self.is_elsewhere() {
            drop(self.enter()?);
        }
        self.blocks.allocate(&self.context, bytes)
    }

    #[inline]
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        if let Some(done) = self.context.captures.release(&self.context, address) {
            return done;
        }
        if let Some(capture) = self.capture_number()? {
            return self.context.captures.keep(self, capture, address);
        }
        // SAFETY: the caller's promise.
        unsafe { self.blocks.free(&self.context, address, bytes) }
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        if self.may_capture() {
            self.check_captured_transfer(transfer)?;
        }
        // SAFETY: the caller's promise.
        unsafe { super::transfer::copy(self, transfer) }
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { super::transfer::fill(self, address, value, width, count) }
    }

    unsafe fn transfer_peer(
        &self,
        destination: u64,
        destination_device: &dyn Device,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        let (to, from) = (
            super::device::own(destination_device, &self.context)?.context(),
            super::device::own(source_device, &self.context)?.context(),
        );
        if bytes == 0 {
            return Ok(());
        }
        let destination = (destination, to.device, to.handle()?);
        let source = (source, from.device, from.handle()?);
        let _scope = self.enter()?;
        let vendor = &self.context.driver.vendor;
        // SAFETY: the caller's promise; contexts and stream are live.
        let code = unsafe { vendor.copy_peer(destination, source, bytes, self.handle) };
        self.context.check("transfer_peer", code)
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        let prefetch = optional!(self.context.driver, prefetch, "prefetch")?;
        let device = match to {
            PrefetchTarget::Device => self.context.device,
            PrefetchTarget::Host => -1,
        };
        let _scope = self.enter()?;
        // SAFETY: the caller's promise.
        let code = unsafe { prefetch(address, bytes, device, self.handle) };
        self.context.check("prefetch", code)
    }

    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.begin(mode)
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        Ok(Arc::new(self.end()?))
    }

    fn is_capturing(&self) -> Result<bool> {
        Ok(self.capture_number()?.is_some())
    }

    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        if let Some(capture) = self.capture_number()? {
            let _scope = self.enter()?;
            self.context.captures.kept(self, capture)?.add_uses(uses);
        }
        Ok(())
    }

    fn check_epoch(&self) -> Result<()> {
        match self.ownership {
            Ownership::Default => Ok(()),
            _ => self.context.check_epoch(self.epoch),
        }
    }

    fn check_before_capture(&self) -> Result<()> {
        match self.capture_number()? {
            Some(capture) if !self.context.captures.is_own(capture) => Err(Error::invalid(
                "wait",
                "another library captures the stream: its earlier work cannot be waited for until \
                 the capture has ended",
            )),
            _ => Ok(()),
        }
    }

    fn options(&self) -> Result<StreamOptions> {
        if let Ownership::Own(options) = self.ownership {
            return Ok(options);
        }
        let calls = &self.context.driver.calls;
        let (mut flags, mut priority) = (0, 0);
        let _scope = self.enter()?;
        if let Some(read) = calls.stream_flags {
            // SAFETY: the driver looks the handle up; the result is written before it returns.
            let code = unsafe { read(self.handle, &mut flags) };
            self.context.check("stream_flags", code)?;
        }
        if let Some(read) = calls.stream_priority {
            // SAFETY: as above.
            let code = unsafe { read(self.handle, &mut priority) };
            self.context.check("stream_priority", code)?;
        }
        Ok(StreamOptions { non_blocking: flags & NON_BLOCKING != 0, priority })
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { super::builtin::execute(self, operation) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
