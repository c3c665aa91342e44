//! Launches of kernels on streams.

use super::outcome::Outcome;
use super::{HostStream, Kind};
use crate::checked::{self, CheckedLaunch};
use crate::kernel::{self, Arguments};
use crate::module::LoadedCode;
use crate::queue::{Mark, Queue};
use hal::{Parameter, Result, interruption, nonblocking};
use host_executor::Shape;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

/// A launch with checks that its thread is still to wait for.
struct Unfinished {
    mark: Mark,
    queue: Arc<Queue>,
    outcome: Arc<Outcome>,
}

impl Drop for Unfinished {
    /// Where the thread does not wait to the end, others report the failure.
    fn drop(&mut self) {
        if let Some(error) = self.outcome.leave() {
            self.queue.keep_kernel_failure(error);
        }
    }
}

thread_local! {
    static UNFINISHED: Cell<Option<Unfinished>> = const { Cell::new(None) };
}

impl HostStream {
    /// Runs a kernel at once, or queues it.
    ///
    /// # Safety
    /// As for [`hal::Kernel::launch_raw`]; the shape is within the kernel's limits.
    pub(crate) unsafe fn launch(
        &self,
        code: &Arc<LoadedCode>,
        kernel: &Arc<host_executor::Kernel>,
        shape: Shape,
        parameters: &[Parameter],
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // A kernel takes as long as its program wants.
                nonblocking::before_waiting()?;
                // SAFETY: the caller's promise.
                return unsafe { kernel::run(&self.device, kernel, &shape, arguments) };
            }
            // SAFETY: the caller's promise.
            let arguments = unsafe { Arguments::copy(parameters, arguments) };
            let (device, code, kernel) = (self.device.clone(), code.clone(), kernel.clone());
            self.queue_launch(move || {
                // Keeps the code loaded.
                let _code = &code;
                // SAFETY: the caller's promise holds until the kernel has run.
                unsafe { kernel::run(&device, &kernel, &shape, &arguments.pointers()) }
            })
        })
    }

    /// As [`HostStream::launch`], with checks. On the default stream the call returns what the kernel fails with,
    /// whether it could run at once or had to wait for other work, here or in [`HostStream::finish_launch`]; unless
    /// a function of the program is queued, which may itself wait for the calling thread.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_checked(
        &self,
        code: &Arc<LoadedCode>,
        kernel: &Arc<host_executor::Kernel>,
        launch: CheckedLaunch,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.status.during(|| {
            let is_default = matches!(self.kind, Kind::Default);
            if is_default {
                nonblocking::before_waiting()?;
            }
            if let Some(_turn) = self.at_once() {
                // SAFETY: the caller's promise.
                return unsafe { checked::run(code, kernel, &launch, arguments) };
            }
            // SAFETY: the caller's promise.
            let arguments = unsafe { Arguments::copy(&launch.parameters, arguments) };
            let (code, kernel) = (code.clone(), kernel.clone());
            let outcome =
                (is_default && !interruption::is_in_kernel()).then(Arc::<Outcome>::default);
            let of_task = outcome.clone();
            self.queue_launch(move || {
                // SAFETY: the caller's promise holds until the kernel has run.
                let result =
                    unsafe { checked::run(&code, &kernel, &launch, &arguments.pointers()) };
                match &of_task {
                    Some(outcome) => outcome.drain(result),
                    None => result,
                }
            })?;
            let waits = outcome.map(|outcome| Unfinished {
                mark: self.mark(),
                queue: self.queue().clone(),
                outcome,
            });
            // Work waits for what was queued before it alone, so no later function can hold it up.
            let ends = !self.device.engine().room.has_functions();
            // In a destructor of the thread nothing waits: the next call that does reports a failure.
            let _ = UNFINISHED.try_with(|it| it.set(waits.filter(|_| ends)));
            Ok(())
        })
    }

    /// Waits for what [`HostStream::launch_checked`] has queued on the default stream, and returns what it fails
    /// with.
    pub(crate) fn finish_launch(&self) -> Result<()> {
        let unfinished = UNFINISHED.try_with(Cell::take).ok().flatten();
        let Some(unfinished) = unfinished else { return Ok(()) };
        self.status.during(|| {
            unfinished.mark.wait_interruptibly()?;
            unfinished.outcome.leave().map_or(Ok(()), Err)
        })
    }
}
