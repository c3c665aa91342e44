//! Modules: loaded code, and the kernels in it.

use crate::error::Result;
use crate::stream::Stream;
use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;
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
}

/// Loaded code. It is unloaded when the last kernel of it is gone.
pub trait Module: Send + Sync + Debug {
    /// The kernel with this name.
    ///
    /// # Errors
    /// A status `NOT_FOUND` that names it if there is none.
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>>;

    /// Address and bytes of a variable in device memory.
    ///
    /// # Errors
    /// A status `NOT_FOUND` that names it if there is none.
    fn global(&self, name: &str) -> Result<(u64, usize)>;

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

/// A function that a device runs.
pub trait Kernel: Send + Sync + Debug {
    /// Its name in the module.
    fn name(&self) -> &str;

    /// Queues a launch.
    ///
    /// # Safety
    /// `arguments` point to values of the types and in the order that the kernel declares,
    /// and memory that it uses stays allocated until it has run.
    unsafe fn launch(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()>;

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}
