//! Streams of the host.
//!
//! A stream's work runs in order on a thread of its own. The default stream runs work at
//! once, on the calling thread, while nothing that it has to wait for is queued; so small
//! operations cost no thread switch.

use crate::checked::{self, CheckedLaunch};
use crate::device::{DEVICE, HostDevice};
use crate::event::{HostEvent, Pending, Record};
use crate::kernel::{self, Arguments};
use crate::module::LoadedCode;
use crate::queue::{Counted, Mark, Queue, Task};
use crate::texture;
use crate::transfer;
use cuda_c::Shape;
use hal::attempt;
use hal::operation::Operation;
use hal::poison::Unpoisoned as _;
use hal::status::AtomicStatus;
use hal::texture::ArrayCopy;
use hal::{
    DeviceId, Direction, Event, Parameter, PrefetchTarget, Result, Status, Stream, Transfer,
};
use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, MutexGuard, OnceLock, TryLockError};
use std::time::Instant;

#[derive(Debug)]
enum Kind {
    /// The default stream; its queue belongs to the device.
    Default,
    Own {
        queue: Arc<Queue>,
        blocking: bool,
    },
}

/// A queue of work on the host.
#[derive(Debug)]
pub(crate) struct HostStream {
    device: Arc<HostDevice>,
    id: u64,
    kind: Kind,
    status: AtomicStatus,
}

impl HostStream {
    pub(crate) fn default_of(device: Arc<HostDevice>) -> HostStream {
        let (id, status) = (device.default_stream_id(), AtomicStatus::new());
        HostStream { device, id, kind: Kind::Default, status }
    }

    pub(crate) fn new(device: Arc<HostDevice>, id: u64, queue: Arc<Queue>, blocking: bool) -> Self {
        HostStream { device, id, kind: Kind::Own { queue, blocking }, status: AtomicStatus::new() }
    }

    fn queue(&self) -> &Arc<Queue> {
        match &self.kind {
            Kind::Default => &self.device.engine().default_queue,
            Kind::Own { queue, .. } => queue,
        }
    }

    /// True if nothing is queued that work of the default stream has to wait for.
    fn is_clear_default(&self) -> bool {
        matches!(self.kind, Kind::Default) && self.device.engine().default_is_clear()
    }

    /// The right to run work at once on the calling thread, while it is held. Not given while
    /// another thread's work runs: then work is queued behind it.
    fn at_once(&self) -> Option<MutexGuard<'_, ()>> {
        if !self.is_clear_default() {
            return None;
        }
        match self.device.engine().turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Queues a task behind all work that this stream's work has to wait for.
    fn submit(&self, task: Task) -> Result<()> {
        let engine = self.device.engine();
        let (queue, waits_for) = match &self.kind {
            Kind::Default => (&engine.default_queue, engine.marks(true)),
            Kind::Own { queue, blocking: true } if !engine.default_queue.is_idle() => {
                (queue, vec![engine.default_queue.mark()])
            }
            Kind::Own { queue, .. } => (queue, Vec::new()),
        };
        for mark in waits_for {
            queue.submit(Box::new(move || mark.wait()))?;
        }
        if matches!(self.kind, Kind::Own { .. }) {
            return queue.submit(task);
        }
        let turn = engine.turn.clone();
        queue.submit(Box::new(move || {
            let _turn = turn.lock().unpoisoned();
            task()
        }))
    }

    /// Runs a kernel at once, or queues it.
    ///
    /// # Safety
    /// As for [`hal::Kernel::launch_raw`]; the shape is within the kernel's limits.
    pub(crate) unsafe fn launch(
        &self,
        code: &Arc<LoadedCode>,
        kernel: &Arc<cuda_c::Kernel>,
        shape: Shape,
        parameters: &[Parameter],
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // A kernel takes as long as its program wants.
                attempt::before_waiting()?;
                // SAFETY: the caller's promise.
                return unsafe { kernel::run(&self.device, kernel, &shape, arguments) };
            }
            // SAFETY: the caller's promise.
            let mut arguments = unsafe { Arguments::copy(parameters, arguments) };
            let (device, code, kernel) = (self.device.clone(), code.clone(), kernel.clone());
            let failure = self.device.engine().kernel_failure.clone();
            self.submit(Box::new(move || {
                // Keeps the code loaded.
                let _code = code;
                let pointers = arguments.pointers();
                // SAFETY: the caller's promise holds until the kernel has run.
                unsafe { kernel::run(&device, &kernel, &shape, &pointers) }
                    .inspect_err(|error| failure.keep(error))
            }))
        })
    }

    /// As [`HostStream::launch`], with checks.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_checked(
        &self,
        code: &Arc<LoadedCode>,
        kernel: &Arc<cuda_c::Kernel>,
        launch: CheckedLaunch,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                attempt::before_waiting()?;
                // SAFETY: the caller's promise.
                return unsafe { checked::run(code, kernel, &launch, arguments) };
            }
            // SAFETY: the caller's promise.
            let mut arguments = unsafe { Arguments::copy(&launch.parameters, arguments) };
            let (code, kernel) = (code.clone(), kernel.clone());
            let failure = self.device.engine().kernel_failure.clone();
            self.submit(Box::new(move || {
                let pointers = arguments.pointers();
                // SAFETY: the caller's promise holds until the kernel has run.
                unsafe { checked::run(&code, &kernel, &launch, &pointers) }
                    .inspect_err(|error| failure.keep(error))
            }))
        })
    }

    /// Counts a task that may wait for a thread of the program: until it has run, nobody waits for
    /// room.
    fn count_function(&self) -> Counted {
        let room = self.device.engine().room.clone();
        if room.begin_function() {
            self.device.engine().look_again();
        }
        Counted::new(room)
    }

    fn mark(&self) -> Mark {
        self.queue().mark()
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        if let Kind::Own { queue, .. } = &self.kind {
            queue.retire();
        }
    }
}

// SAFETY: one queue has the work in order; allocations are those of the device.
unsafe impl Stream for HostStream {
    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        DEVICE
    }

    fn handle(&self) -> u64 {
        match self.kind {
            Kind::Default => 0,
            Kind::Own { .. } => self.id,
        }
    }

    fn query(&self) -> Result<bool> {
        self.status.during(|| {
            let engine = self.device.engine();
            Ok(match &self.kind {
                Kind::Default => engine.default_is_clear(),
                // The work of a parent's stream never runs in a forked child.
                Kind::Own { queue, .. } => queue.check_process().map(|()| queue.is_idle())?,
            })
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.status.during(|| {
            if self.is_clear_default() {
                return self.queue().take_failure();
            }
            if matches!(self.kind, Kind::Default) {
                for mark in self.device.engine().marks(true) {
                    mark.wait()?;
                }
            }
            self.mark().wait()?;
            self.queue().take_failure()
        })
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| {
            let event = HostEvent::of("event", event)?;
            let at_once = match &self.kind {
                Kind::Default => self.is_clear_default(),
                Kind::Own { queue, .. } => queue.is_idle(),
            };
            if at_once {
                event.set_reached();
                return Ok(());
            }
            if let Some(shared) = event.shared() {
                let (number, shared) = (shared.begin(), shared.clone());
                return self.submit(Box::new(move || {
                    shared.reach(number);
                    Ok(())
                }));
            }
            let time = Arc::new(OnceLock::new());
            let reached = time.clone();
            self.submit(Box::new(move || {
                reached.get_or_init(Instant::now);
                Ok(())
            }))?;
            event.set_queued(Record { time, mark: self.mark() });
            Ok(())
        })
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.status.during(|| match HostEvent::of("event", event)?.pending() {
            Some(Pending::Here(mark)) => self.submit(Box::new(move || mark.wait())),
            Some(pending) => {
                // The other process may itself wait for a thread of this one.
                let counted = self.count_function();
                self.submit(Box::new(move || {
                    let _counted = counted;
                    pending.wait()
                }))
            }
            None => Ok(()),
        })
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.status.during(|| {
            // Never at once: the function may wait for the thread that queues it.
            let counted = self.count_function();
            self.submit(Box::new(move || {
                let _counted = counted;
                function();
                Ok(())
            }))
        })
    }

    fn wait_for_room(&self) {
        self.queue().wait_for_room(&self.device.engine().room);
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.device.allocate_waiting(bytes)
    }

    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        self.device.allocate_zeroed_waiting(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        let memory = self.device.memory();
        if self.is_clear_default() {
            // SAFETY: the caller's promise; no work is left that could use the memory.
            unsafe { memory.free(address, bytes) };
            return Ok(());
        }
        let memory = memory.clone();
        self.submit(Box::new(move || {
            // SAFETY: the caller's promise; this runs behind all work that uses the memory.
            unsafe { memory.free(address, bytes) };
            Ok(())
        }))
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        self.status.during(|| {
            let transfer = *transfer;
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                unsafe { transfer::copy(&transfer, &|| self.device.pool()) };
                return match transfer.direction {
                    Direction::DeviceToHost => self.device.engine().kernel_failure.take(),
                    _ => Ok(()),
                };
            }
            let wait = transfer.wait || transfer::touches_pageable(&transfer, &self.device);
            let device = self.device.clone();
            self.submit(Box::new(move || {
                // SAFETY: the caller's promise holds until the copy has run.
                unsafe { transfer::copy(&transfer, &|| device.pool()) };
                Ok(())
            }))?;
            if wait {
                self.mark().wait()?;
                return self.queue().take_failure();
            }
            Ok(())
        })
    }

    unsafe fn copy_array(&self, copy: &ArrayCopy) -> Result<()> {
        let transfer = self.status.during(|| texture::transfer(&self.device, copy))?;
        // SAFETY: the caller's promise; the array's memory is the device's.
        unsafe { self.transfer(&transfer) }
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        self.status.during(|| {
            transfer::check_fill(address, width)?;
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                unsafe { transfer::fill(address, value, width, count) };
                return Ok(());
            }
            self.submit(Box::new(move || {
                // SAFETY: the caller's promise holds until the fill has run.
                unsafe { transfer::fill(address, value, width, count) };
                Ok(())
            }))
        })
    }

    unsafe fn prefetch(&self, _: u64, _: usize, _: PrefetchTarget) -> Result<()> {
        // Host and device are one.
        Ok(())
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                return unsafe { host_kernels::execute(operation, &|| self.device.pool()) };
            }
            let (operation, device) = (operation.clone(), self.device.clone());
            self.submit(Box::new(move || {
                // SAFETY: the caller's promise holds until the operation has run.
                unsafe { host_kernels::execute(&operation, &|| device.pool()) }
            }))
        })
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
