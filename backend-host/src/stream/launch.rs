//! Launches of kernels on streams.

use super::outcome::Outcome;
use super::{HostStream, Kind};
use crate::checked::{self, CheckedLaunch};
use crate::code::LoadedCode;
use crate::launch::{self, Arguments};
use crate::queue::{Mark, Queue};
use hal::{Parameter, Result, interruption, nonblocking};
use host_executor::Shape;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

/// A checked launch that the launching thread still has to wait for.
struct Unfinished {
    mark: Mark,
    queue: Arc<Queue>,
    outcome: Arc<Outcome>,
}

impl Drop for Unfinished {
    /// If the thread does not wait until the end, other calls report the failure.
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
    /// Runs a kernel immediately, or queues it.
    ///
    /// # Safety
    /// The same as for [`hal::Kernel::launch_raw`]; the shape is within the kernel's limits.
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
                // A kernel may run for any length of time.
                nonblocking::before_waiting()?;
                // SAFETY: the caller's promise.
                return unsafe { launch::run(&self.device, kernel, &shape, arguments) };
            }
            // SAFETY: the caller's promise.
            let arguments = unsafe { Arguments::copy(parameters, arguments) };
            let (device, code, kernel) = (self.device.clone(), code.clone(), kernel.clone());
            self.queue_launch(move || {
                // Keeps the code loaded.
                let _code = &code;
                // SAFETY: the caller's promise holds until the kernel has run.
                unsafe { launch::run(&device, &kernel, &shape, &arguments.pointers()) }
            })
        })
    }

    /// Like [`HostStream::launch`], with checks.
    ///
    /// On the default stream, the launching call reports the failure of the kernel. That is this call if the
    /// kernel could run immediately, otherwise [`HostStream::finish_launch`]. The exception is a launch while
    /// a function of the program is queued, because that function may itself wait for the calling thread.
    ///
    /// # Safety
    /// The same as for [`HostStream::launch`].
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
            // Work waits only for work that was queued before it, so a function queued later cannot delay it.
            let ends = !self.device.engine().room.has_functions();
            // In a thread-local destructor nothing waits; the next call that waits reports the failure.
            let _ = UNFINISHED.try_with(|it| it.set(waits.filter(|_| ends)));
            Ok(())
        })
    }

    /// Waits for the launch that [`HostStream::launch_checked`] has queued on the default stream, and returns
    /// its failure.
    pub(crate) fn finish_launch(&self) -> Result<()> {
        let unfinished = UNFINISHED.try_with(Cell::take).ok().flatten();
        let Some(unfinished) = unfinished else { return Ok(()) };
        self.status.during(|| {
            unfinished.mark.wait_interruptibly()?;
            unfinished.outcome.leave().map_or(Ok(()), Err)
        })
    }
}
