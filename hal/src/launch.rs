//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the arguments against
//! the kernel's parameters, if the driver reports them. It orders the launch after other streams' work on the same
//! memory, and queues it. Arguments that do not correspond one to one to the parameters are packed as PyCUDA packs
//! them ([`ArgumentList::launch`]).

mod arguments;
mod list;
mod packing;

use crate::error::Result;
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Stream;
pub use arguments::{KernelArgument, KernelArguments};
pub use list::ArgumentList;
use std::sync::Arc;

impl dyn Kernel + '_ {
    /// Queues a launch with a tuple of up to 16 arguments: numbers, [`Scalar`](crate::Scalar)s, `&array` for an
    /// array that the kernel only reads, `&mut array` for one that it writes. The kind of reference determines how
    /// the launch is ordered after other streams' work on the same memory.
    ///
    /// # Errors
    /// `InvalidArgument` if the number or sizes of the arguments do not match the kernel's parameters, as far as
    /// the driver reports them, or if the configuration exceeds the device's limits. Nothing is queued then.
    ///
    /// # Safety
    /// - The arguments have the types that the kernel declares.
    /// - The kernel stays inside the arrays that they name.
    /// - The kernel writes only to arrays passed as `&mut DeviceArray`. Other streams may read arrays that are
    ///   passed as `&DeviceArray` at the same time.
    /// - `stream` and the kernel belong to the same device, and this device can access the arrays.
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

// A launch whose arguments are added one by one.

/// A launch whose arguments are added one by one, for a number of arguments known only at run time or too large
/// for a tuple. [`dyn Kernel::launcher`](trait.Kernel.html#method.launcher) creates it.
///
/// The arguments of a kernel, one call for each:
///
/// ```
/// use gpuarray::{DeviceArray, LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let kernel = module.kernel("scale")?;
/// let stream = device.default_stream();
/// let mut x = DeviceArray::from_slice(&device, &[1.0f32, 2.0])?;
/// let y = &mut x;
/// let launch = kernel.launcher(&stream).block([2, 1, 1]).argument(&y).argument(&3.0f32);
/// // SAFETY: the kernel takes a pointer and a float, and two threads stay inside the array.
/// unsafe { launch.launch()? };
/// assert_eq!(x.to_vec()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is launched before `launch`"]
pub struct Launcher<'a> {
    kernel: &'a dyn Kernel,
    stream: &'a Arc<dyn Stream>,
    config: LaunchConfig,
    arguments: Result<ArgumentList<'a>>,
    cooperative: bool,
}

impl dyn Kernel + '_ {
    /// Begins a launch on a stream, by default with one block of one thread.
    pub fn launcher<'a>(&'a self, stream: &'a Arc<dyn Stream>) -> Launcher<'a> {
        Launcher {
            kernel: self,
            stream,
            config: LaunchConfig::linear(1, 1),
            arguments: Ok(ArgumentList::new()),
            cooperative: false,
        }
    }
}

impl<'a> Launcher<'a> {
    /// Sets the grid, the block and the shared memory.
    pub fn config(mut self, config: LaunchConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the number of blocks along x, y and z.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.config.grid = grid;
        self
    }

    /// Sets the number of threads per block along x, y and z.
    pub fn block(mut self, block: [u32; 3]) -> Self {
        self.config.block = block;
        self
    }

    /// Sets the bytes of dynamic shared memory per block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.config.shared_bytes = bytes;
        self
    }

    /// Makes all blocks run concurrently, so that the whole grid can synchronize.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds an argument: `argument(&n)` for a number, `argument(&x)` for an array that the kernel only reads,
    /// `argument(&&mut y)` for one that it writes. [`Launcher::launch`] returns the error if the argument cannot
    /// be passed.
    pub fn argument(mut self, argument: &'a impl KernelArgument) -> Self {
        self.arguments = self.arguments.and_then(|mut list| {
            argument.add_to(&mut list)?;
            Ok(list)
        });
        self
    }

    /// Queues the launch.
    ///
    /// # Errors
    /// As for `dyn Kernel::launch`.
    ///
    /// # Safety
    /// As for `dyn Kernel::launch`.
    pub unsafe fn launch(self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.arguments?.launch(self.kernel, &self.config, self.stream, self.cooperative) }
    }
}
