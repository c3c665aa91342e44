//! A launch that is put together one part after the other.

use super::{ArgumentList, KernelArgument};
use crate::error::Result;
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Stream;
use std::sync::Arc;

/// A launch whose arguments are added one after the other, where their number is not known when the program is
/// compiled, or a tuple of them is too long. [`dyn Kernel::launcher`](trait.Kernel.html#method.launcher) makes it.
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
    /// Begins a launch of one block of one thread on a stream.
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
    /// Sets grid, block and shared memory.
    pub fn config(mut self, config: LaunchConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the number of blocks along x, y and z.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.config.grid = grid;
        self
    }

    /// Sets the number of threads of a block along x, y and z.
    pub fn block(mut self, block: [u32; 3]) -> Self {
        self.config.block = block;
        self
    }

    /// Sets the bytes of dynamic shared memory of a block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.config.shared_bytes = bytes;
        self
    }

    /// Makes all blocks run at once, so that the grid can wait for itself.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds an argument: `argument(&n)` for a number, `argument(&x)` for an array that the kernel only reads,
    /// `argument(&&mut y)` for one that it writes. What cannot be passed is an error of [`Launcher::launch`].
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
    /// Those of `dyn Kernel::launch`.
    ///
    /// # Safety
    /// As for `dyn Kernel::launch`.
    pub unsafe fn launch(self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.arguments?.launch(self.kernel, &self.config, self.stream, self.cooperative) }
    }
}
