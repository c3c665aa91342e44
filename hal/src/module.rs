//! Modules: loaded code, and the kernels in it.

use crate::error::{Error, Result};
use crate::stream::Stream;
use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// What a module is made from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ModuleSource<'a> {
    /// CUDA C source for the device's run-time compiler.
    Source {
        /// The text.
        text: &'a str,
        /// The name that messages of the compiler show.
        name: &'a str,
        /// Options of the compiler.
        options: &'a [&'a str],
    },
    /// Code for the device: a cubin, fatbin, PTX text or code object.
    Image(&'a [u8]),
    /// A file with such code.
    File(&'a Path),
}

/// How the driver compiles and loads code that is not yet in the device's own form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Registers per thread at most.
    pub max_registers: Option<u32>,
    /// 0 to 4; the driver's default is 4.
    pub optimization_level: Option<u32>,
    /// Code for a debugger.
    pub debug: bool,
    /// Line numbers for a profiler.
    pub line_info: bool,
    /// A verbose log.
    pub verbose: bool,
}

/// Code that a linker takes.
#[derive(Clone, Copy, Debug)]
pub struct LinkInput<'a> {
    /// What kind of code it is.
    pub kind: LinkKind,
    /// The bytes.
    pub data: &'a [u8],
    /// The name that messages show.
    pub name: &'a str,
}

/// What kind of code a linker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A cubin.
    Cubin,
    /// PTX text.
    Ptx,
    /// Several of them for several devices.
    Fatbin,
    /// An object file with device code.
    Object,
    /// An archive of those.
    Library,
}

/// Loaded code. It is unloaded when the last kernel of it is gone.
pub trait Module: Send + Sync + Debug {
    /// The kernel with this name.
    ///
    /// # Errors
    /// A status `NOT_FOUND` that names it if there is none.
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>>;

    /// Address and bytes of a variable in device memory. It lives as long as the module.
    ///
    /// # Errors
    /// A status `NOT_FOUND` that names it if there is none.
    fn global(&self, name: &str) -> Result<(u64, usize)>;

    /// What the compiler and the driver had to say while the module was made; empty if
    /// nothing.
    fn log(&self) -> &str {
        ""
    }

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}

/// How many threads a launch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
}

impl LaunchConfig {
    /// Enough blocks of `block` threads for `count` threads along x.
    pub const fn linear(count: u32, block: u32) -> Self {
        let block = if block == 0 { 1 } else { block };
        LaunchConfig { grid: [count.div_ceil(block), 1, 1], block: [block, 1, 1], shared_bytes: 0 }
    }
}

/// A property of a kernel with a number of its own: those of `CUfunction_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelAttribute(pub i32);

impl KernelAttribute {
    /// Threads of a block at most.
    pub const MAX_THREADS_PER_BLOCK: Self = Self(0);
    /// Bytes of static shared memory.
    pub const SHARED_SIZE_BYTES: Self = Self(1);
    /// Bytes of constant memory.
    pub const CONST_SIZE_BYTES: Self = Self(2);
    /// Bytes of local memory of a thread.
    pub const LOCAL_SIZE_BYTES: Self = Self(3);
    /// Registers of a thread.
    pub const NUM_REGS: Self = Self(4);
    /// Version of the PTX that it was compiled from.
    pub const PTX_VERSION: Self = Self(5);
    /// Version of the device code.
    pub const BINARY_VERSION: Self = Self(6);
    /// Bytes of dynamic shared memory at most; can be set.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: Self = Self(8);
    /// Percentage of on-chip memory that is to be shared memory; can be set.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: Self = Self(9);
}

/// Where a parameter of a kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes from the first parameter.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// A function that a device runs.
///
/// `kernel.launch(config, &stream, (a, &x, &mut y, n))` launches with typed arguments: see
/// [`crate::launch`].
pub trait Kernel: Send + Sync + Debug {
    /// Its name in the module.
    fn name(&self) -> &str;

    /// Queues a launch. Dynamic shared memory above 48 KiB is asked for where needed.
    ///
    /// # Errors
    /// `InvalidArgument` or `LaunchFailed` that names what is too large; nothing is queued.
    ///
    /// # Safety
    /// `arguments` point to values of the types and in the order that the kernel declares,
    /// and memory that it uses stays allocated until it has run.
    unsafe fn launch_raw(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()>;

    /// As [`Kernel::launch_raw`], with all blocks on the device at once, so that they can
    /// wait for each other.
    ///
    /// # Errors
    /// As for [`Kernel::launch_raw`], and a `LaunchFailed` if the blocks do not fit at once.
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

    /// The kernel's parameters in order; `None` where neither the driver nor the code says.
    ///
    /// # Errors
    /// The driver's.
    fn parameters(&self) -> Result<Option<&[Parameter]>> {
        Ok(None)
    }

    /// A numbered property.
    ///
    /// # Errors
    /// `InvalidArgument` for a number that the driver does not know.
    fn attribute(&self, attribute: KernelAttribute) -> Result<i32> {
        let _ = attribute;
        Err(Error::unsupported("attribute", "the backend has no kernel attributes"))
    }

    /// Sets a numbered property.
    ///
    /// # Errors
    /// `InvalidArgument` for a number or value that the driver refuses.
    fn set_attribute(&self, attribute: KernelAttribute, value: i32) -> Result<()> {
        let _ = (attribute, value);
        Err(Error::unsupported("set_attribute", "the backend has no kernel attributes"))
    }

    /// How many blocks of `threads` threads with so much dynamic shared memory one
    /// multiprocessor runs at once.
    ///
    /// # Errors
    /// The driver's.
    fn active_blocks(&self, threads: u32, shared_bytes: usize) -> Result<u32> {
        let _ = (threads, shared_bytes);
        Err(Error::unsupported("active_blocks", "the backend cannot tell the occupancy"))
    }

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}
