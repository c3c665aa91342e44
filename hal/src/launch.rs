//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the
//! arguments against what the driver says the kernel takes, orders the launch behind other
//! streams' work on the same memory, and queues it. Arguments that are not one for each parameter are packed as
//! PyCUDA packs them ([`ArgumentList::launch`]).

mod arguments;
mod builder;
mod list;
mod packing;
mod place;

pub use arguments::{KernelArgument, KernelArguments};
pub use builder::Launcher;
pub use list::ArgumentList;

use crate::error::Result;
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Stream;
use std::sync::Arc;

impl dyn Kernel + '_ {
    /// Queues a launch with a tuple of up to 16 arguments: numbers, [`Scalar`](crate::Scalar)s, `&array` for
    /// one that the kernel only reads, `&mut array` for one that it writes. The launch is ordered
    /// behind the work of other streams on the same memory, by what the references say.
    ///
    /// # Errors
    /// `InvalidArgument` if number or sizes of the arguments are not those of the kernel's
    /// parameters, as far as the driver tells them, or if the configuration exceeds the
    /// device's limits. Nothing is queued then.
    ///
    /// # Safety
    /// - The arguments are of the types that the kernel declares.
    /// - The kernel stays inside the arrays that they name.
    /// - It writes no array that is passed as `&DeviceArray`: other streams may read it at the same
    ///   time. For one that it writes there is `&mut DeviceArray`.
    /// - `stream` and the kernel are of one device, which can access the arrays.
    pub unsafe fn launch(
        &self,
        config: LaunchConfig,
        stream: &Arc<dyn Stream>,
        arguments: impl KernelArguments,
    ) -> Result<()> {
        let mut list = ArgumentList::new();
        arguments.add_all(&mut list)?;
        // SAFETY: the caller's promise.
        unsafe { list.launch(self, &config, stream, false) }
    }
}
