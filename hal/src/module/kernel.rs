//! Kernels: their launch configurations, limits, attributes and parameters.

use crate::enumeration::setters;
use crate::error::{Error, Result};
use crate::stream::Stream;
use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;

/// The launch configuration of a kernel: grid, blocks and dynamic shared memory.
///
/// Enough blocks of 256 threads for 1000 elements; the last 24 threads have no element:
///
/// ```
/// use gpuarray::LaunchConfig;
///
/// # fn main() -> gpuarray::Result<()> {
/// let config = LaunchConfig::linear(1000, 256).shared_bytes(1024);
/// assert_eq!((config.grid, config.block), ([4, 1, 1], [256, 1, 1]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// The number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads per block along x, y and z.
    pub block: [u32; 3],
    /// The bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
}

setters! {
    LaunchConfig:
    grid: [u32; 3]; block: [u32; 3]; shared_bytes: u32;
}

impl LaunchConfig {
    /// Returns a launch configuration without dynamic shared memory.
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig { grid, block, shared_bytes: 0 }
    }

    /// Returns a launch configuration along x with at least `count` threads, in blocks of `block` threads. If either
    /// is zero, a launch refuses the configuration.
    pub const fn linear(count: u32, block: u32) -> Self {
        let blocks = if block == 0 { count } else { count.div_ceil(block) };
        LaunchConfig { grid: [blocks, 1, 1], block: [block, 1, 1], shared_bytes: 0 }
    }
}

/// The limits of a kernel's launch configuration on its device.
///
/// A launch that exceeds these limits, and the message that explains it:
///
/// ```
/// use gpuarray::{LaunchConfig, LaunchLimits};
///
/// # fn main() -> gpuarray::Result<()> {
/// let limits = LaunchLimits {
///     grid: [65_535; 3],
///     block: [1024, 1024, 64],
///     threads: 1024,
///     kernel_threads: 512,
///     static_shared: 0,
///     shared: Some(48 << 10),
/// };
/// let said = limits.excess("axpy", &LaunchConfig::linear(4096, 1024)).expect("too many threads");
/// assert!(said.contains("at most 512 are allowed for kernel axpy with its registers"));
/// assert_eq!(limits.excess("axpy", &LaunchConfig::linear(4096, 512)), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchLimits {
    /// The maximum number of blocks along x, y and z.
    pub grid: [u64; 3],
    /// The maximum number of threads per block along x, y and z.
    pub block: [u64; 3],
    /// The maximum number of threads per block for any kernel.
    pub threads: u64,
    /// The maximum number of threads per block for this kernel.
    pub kernel_threads: u64,
    /// The bytes of the kernel's static shared memory.
    pub static_shared: u64,
    /// The maximum bytes of shared memory per block, static and dynamic; `None` if the device does not report it.
    pub shared: Option<u64>,
}

impl LaunchLimits {
    /// Returns a sentence about the first value of a launch configuration that exceeds the limits for the kernel
    /// called `name`; `None` if all values are allowed.
    pub fn excess(&self, name: &str, config: &LaunchConfig) -> Option<String> {
        for (what, extents, limits) in
            [("grid", config.grid, self.grid), ("block", config.block, self.block)]
        {
            for (axis, (extent, most)) in extents.into_iter().zip(limits).enumerate() {
                if extent == 0 || u64::from(extent) > most {
                    return Some(format!(
                        "{what} is {extents:?} for kernel {name}; along {} 1 to {most} is allowed",
                        ["x", "y", "z"][axis]
                    ));
                }
            }
        }
        let (block, shared_bytes) = (config.block, config.shared_bytes);
        let threads = block.into_iter().fold(1, |all: u64, it| all.saturating_mul(it.into()));
        if threads > self.threads {
            return Some(format!(
                "block is {block:?} for kernel {name}, {threads} threads; at most {} are allowed",
                self.threads
            ));
        }
        if threads > self.kernel_threads {
            return Some(format!(
                "block is {block:?}, {threads} threads; at most {} are allowed for kernel {name} with \
                 its registers",
                self.kernel_threads
            ));
        }
        let fixed = self.static_shared;
        let most = self.shared.filter(|most| fixed.saturating_add(shared_bytes.into()) > *most)?;
        Some(format!(
            "shared_bytes is {shared_bytes} for kernel {name}, which itself needs {fixed}; a block can \
             have {most} in all"
        ))
    }
}

/// A numbered attribute of a kernel for [`Kernel::attribute`]. Every backend uses the numbers of
/// `CUfunction_attribute`.
///
/// The largest block for this kernel. It may be smaller than the largest block of the device:
///
/// ```
/// use gpuarray::{KernelAttribute, LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let kernel = module.kernel("scale")?;
/// let most = kernel.attribute(KernelAttribute::MAX_THREADS_PER_BLOCK)?;
/// assert!(most >= 256);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelAttribute(pub i32);

impl KernelAttribute {
    /// The maximum number of threads per block.
    pub const MAX_THREADS_PER_BLOCK: Self = Self(0);
    /// Bytes of static shared memory.
    pub const SHARED_SIZE_BYTES: Self = Self(1);
    /// Bytes of constant memory.
    pub const CONST_SIZE_BYTES: Self = Self(2);
    /// Bytes of local memory per thread.
    pub const LOCAL_SIZE_BYTES: Self = Self(3);
    /// Registers per thread.
    pub const NUM_REGS: Self = Self(4);
    /// Version of the PTX that the kernel was compiled from.
    pub const PTX_VERSION: Self = Self(5);
    /// Version of the device code.
    pub const BINARY_VERSION: Self = Self(6);
    /// The maximum bytes of dynamic shared memory; can be set.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: Self = Self(8);
    /// The preferred percentage of on-chip memory to use as shared memory; can be set.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: Self = Self(9);
}

/// The position of a kernel's parameter in its argument buffer.
///
/// The sizes of the parameters of `scale(float *x, float by)`:
///
/// ```
/// use gpuarray::{LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let kernel = module.kernel("scale")?;
/// let sizes = kernel.parameters()?.map(|all| all.iter().map(|it| it.size).collect::<Vec<_>>());
/// assert_eq!(sizes, Some(vec![8, 4]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The bytes from the first parameter to this one.
    pub offset: usize,
    /// The bytes of the parameter.
    pub size: usize,
    /// True for a pointer to memory; `None` if only offsets and sizes are known.
    pub is_pointer: Option<bool>,
}

/// A function in a module that a device runs.
///
/// Programs get kernels from [`Module::kernel`](super::Module::kernel) and launch them with typed arguments: `kernel.launch(config, &stream,
/// (a, &x, &mut y, n))` (see [`crate::launch`]). That call checks the arguments, orders the uses of memory, and calls
/// [`Kernel::launch_raw`]. Backends with modules implement the trait. They rely on those checks, and report the
/// vendor's errors.
///
/// A launch, and a configuration that is refused:
///
/// ```
/// use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let scale = module.kernel("scale")?;
/// let (mut x, stream) = (DeviceArray::<f32>::ones(&device, &[4])?, device.default_stream());
/// // SAFETY: `scale(float *x, float by)` multiplies one element with each of four threads.
/// unsafe { scale.launch(LaunchConfig::linear(4, 4), &stream, (&mut x, 2.5f32))? };
/// assert_eq!(x.to_vec()?, [2.5; 4]);
///
/// // SAFETY: as above; nothing is launched.
/// let refused = unsafe { scale.launch(LaunchConfig::new([0; 3], [4, 1, 1]), &stream, (&mut x, 2.5f32)) };
/// assert!(refused.is_err());
/// # Ok(())
/// # }
/// ```
pub trait Kernel: Send + Sync + Debug {
    /// Returns the kernel's name in the module.
    fn name(&self) -> &str;

    /// Queues a launch (`cuLaunchKernel`, `hipModuleLaunchKernel`). If a launch needs more than 48 KiB of dynamic
    /// shared memory, the kernel's limit is raised first.
    ///
    /// # Errors
    /// `InvalidArgument` or `LaunchFailed` that names the value that is too large. Nothing is queued then.
    ///
    /// # Safety
    /// `arguments` point to values of the types and in the order that the kernel declares, and memory that the kernel
    /// uses stays allocated until it has run.
    unsafe fn launch_raw(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()>;

    /// Queues a cooperative launch: all blocks are resident on the device at the same time, so that they can wait for
    /// each other (`cuLaunchCooperativeKernel`, `hipModuleLaunchCooperativeKernel`).
    ///
    /// # Errors
    /// As for [`Kernel::launch_raw`]; `LaunchFailed` if the blocks do not all fit at the same time; `Unsupported` if
    /// the driver lacks cooperative launches.
    ///
    /// # Safety
    /// As for [`Kernel::launch_raw`].
    unsafe fn launch_cooperative(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        let _ = (stream, config, arguments);
        Err(Error::unsupported("launch_cooperative", "the backend has no cooperative launch"))
    }

    /// Waits for a launch that the calling thread has just queued, on backends whose launches wait. It is called
    /// after the launch has released its memory guards, because the wait may be long and may run the program's signal
    /// handlers.
    ///
    /// # Errors
    /// The kernel's failure.
    fn finish_launch(&self, stream: &dyn Stream) -> Result<()> {
        let _ = stream;
        Ok(())
    }

    /// Returns the kernel's parameters in order; `None` if neither the driver nor the code describes them
    /// (`cuFuncGetParamInfo`; metadata of the code object on HIP).
    ///
    /// # Errors
    /// The driver's.
    fn parameters(&self) -> Result<Option<&[Parameter]>> {
        Ok(None)
    }

    /// Returns a numbered attribute (`cuFuncGetAttribute`, `hipFuncGetAttribute`).
    ///
    /// # Errors
    /// `InvalidArgument` for a number that is unknown to the driver.
    fn attribute(&self, attribute: KernelAttribute) -> Result<i32> {
        let _ = attribute;
        Err(Error::unsupported("attribute", "the backend has no kernel attributes"))
    }

    /// Sets a numbered attribute (`cuFuncSetAttribute`, `hipFuncSetAttribute`).
    ///
    /// # Errors
    /// `InvalidArgument` for a number or a value that the driver refuses.
    fn set_attribute(&self, attribute: KernelAttribute, value: i32) -> Result<()> {
        let _ = (attribute, value);
        Err(Error::unsupported("set_attribute", "the backend has no kernel attributes"))
    }

    /// Returns the number of blocks of `threads` threads, each with `shared_bytes` bytes of dynamic shared memory,
    /// that one multiprocessor runs concurrently (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`,
    /// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
    ///
    /// # Errors
    /// The driver's.
    fn active_blocks(&self, threads: u32, shared_bytes: usize) -> Result<u32> {
        let _ = (threads, shared_bytes);
        Err(Error::unsupported("active_blocks", "the backend cannot tell the occupancy"))
    }

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}
