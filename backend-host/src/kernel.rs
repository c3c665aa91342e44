//! Kernels of programs on the host.

use crate::attributes::{
    DEFAULT_SHARED, MULTIPROCESSOR_BLOCKS, MULTIPROCESSOR_SHARED, MULTIPROCESSOR_THREADS,
};
use crate::checked::CheckedLaunch;
use crate::code::LoadedCode;
use crate::stream::HostStream;
use hal::{
    Error, ErrorKind, Kernel, KernelAttribute, LaunchConfig, LaunchLimits, Parameter, Result,
    Status, Stream, checking,
};
use host_executor::{MOST_SHARED_BYTES, Shape};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A kernel that runs on the cores.
#[derive(Debug)]
pub(crate) struct HostKernel {
    code: Arc<LoadedCode>,
    kernel: Arc<host_executor::Kernel>,
    parameters: Vec<Parameter>,
    shared_limit: AtomicI32,
    carveout: AtomicI32,
}

impl HostKernel {
    pub(crate) fn new(code: Arc<LoadedCode>, kernel: host_executor::Kernel) -> HostKernel {
        let parameters = kernel.parameters().iter().map(|it| Parameter {
            offset: it.offset,
            size: it.bytes,
            is_pointer: Some(it.is_pointer),
        });
        HostKernel {
            parameters: parameters.collect(),
            code,
            kernel: Arc::new(kernel),
            shared_limit: AtomicI32::new(DEFAULT_SHARED as i32),
            carveout: AtomicI32::new(-1),
        }
    }

    fn limits(&self) -> LaunchLimits {
        LaunchLimits {
            grid: [i32::MAX as u64, 65535, 65535],
            block: [1024, 1024, 64],
            threads: 1024,
            kernel_threads: self.kernel.most_threads().into(),
            static_shared: self.kernel.static_shared_bytes(),
            shared: Some(MOST_SHARED_BYTES.into()),
        }
    }

    fn check(&self, config: &LaunchConfig, arguments: &[*mut c_void]) -> Result<()> {
        let name = self.kernel.name();
        if let Some(excess) = self.limits().excess(name, config) {
            return Err(Error::invalid("launch", excess));
        }
        let (given, wanted) = (arguments.len(), self.parameters.len());
        if given != wanted {
            return Err(Error::invalid(
                "launch",
                format!(
                    "kernel {name} takes {wanted} argument{}; the call has {given}",
                    if wanted == 1 { "" } else { "s" }
                ),
            ));
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Kernel::launch_raw`].
    unsafe fn launch(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
        cooperative: bool,
    ) -> Result<()> {
        let stream = HostStream::of("launch", stream, self.code.device().id())?;
        self.check(config, arguments)?;
        let shape = Shape { grid: config.grid, block: config.block, cooperative };
        let checks = checking::current();
        if !checks.is_none() && self.code.checked().looks(checks, self.name()) {
            let launch = CheckedLaunch {
                checks,
                shape,
                shared_bytes: config.shared_bytes,
                parameters: self.parameters.clone(),
            };
            // SAFETY: the caller's promise; the shape is within the kernel's limits.
            return unsafe { stream.launch_checked(&self.code, &self.kernel, launch, arguments) };
        }
        // SAFETY: the caller's promise; the shape is within the kernel's limits.
        unsafe { stream.launch(&self.code, &self.kernel, shape, &self.parameters, arguments) }
    }

    fn settable(&self, attribute: KernelAttribute) -> Option<(&AtomicI32, i32, i32)> {
        match attribute {
            KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let fixed = self.kernel.static_shared_bytes() as i64;
                let most = (i64::from(MOST_SHARED_BYTES) - fixed).max(0) as i32;
                Some((&self.shared_limit, 0, most))
            }
            KernelAttribute::PREFERRED_SHARED_MEMORY_CARVEOUT => Some((&self.carveout, -1, 100)),
            _ => None,
        }
    }
}

impl Kernel for HostKernel {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    unsafe fn launch_raw(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, config, arguments, false) }
    }

    unsafe fn launch_cooperative(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.check(config, arguments)?;
        let threads = config.block.into_iter().product();
        let resident = self.active_blocks(threads, config.shared_bytes as usize)?;
        let multiprocessors = self.code.device().multiprocessors();
        let most = u64::from(resident) * u64::from(multiprocessors);
        let blocks: u64 = config.grid.into_iter().map(u64::from).product();
        if blocks > most {
            return Err(Error::new(
                ErrorKind::LaunchFailed,
                Status::host(Status::COOPERATIVE_LAUNCH_TOO_LARGE),
                "launch_cooperative",
                format!(
                    "grid is {:?} for kernel {}, {blocks} blocks; at most {most} run at the same \
                     time, as a cooperative launch needs",
                    config.grid,
                    self.name()
                ),
            ));
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, config, arguments, true) }
    }

    fn finish_launch(&self, stream: &dyn Stream) -> Result<()> {
        let own: Option<&HostStream> = stream.as_any().downcast_ref();
        own.map_or(Ok(()), HostStream::finish_launch)
    }

    fn parameters(&self) -> Result<Option<&[Parameter]>> {
        Ok(Some(&self.parameters))
    }

    fn attribute(&self, attribute: KernelAttribute) -> Result<i32> {
        use KernelAttribute as A;
        if let Some((value, _, _)) = self.settable(attribute) {
            return Ok(value.load(Ordering::Relaxed));
        }
        Ok(match attribute {
            A::MAX_THREADS_PER_BLOCK => self.kernel.most_threads() as i32,
            A::SHARED_SIZE_BYTES => self.kernel.static_shared_bytes() as i32,
            // As with drivers: the constant memory of the module, whichever part of it the kernel reads.
            A::CONST_SIZE_BYTES => self.kernel.constant_bytes() as i32,
            // A thread's local memory is a growing stack, so no bytes are reserved for it.
            A::LOCAL_SIZE_BYTES | KernelAttribute(7) => 0,
            // The general-purpose registers of the processor.
            A::NUM_REGS => {
                if cfg!(target_arch = "x86_64") {
                    16
                } else {
                    31
                }
            }
            A::PTX_VERSION | A::BINARY_VERSION => (host_executor::DEFAULT_ARCHITECTURE / 10) as i32,
            KernelAttribute(number) => {
                return Err(Error::invalid(
                    "attribute",
                    format!("attribute is {number}; kernels of the host have attributes 0 to 9"),
                ));
            }
        })
    }

    fn set_attribute(&self, attribute: KernelAttribute, value: i32) -> Result<()> {
        let Some((setting, least, most)) = self.settable(attribute) else {
            return Err(Error::invalid(
                "set_attribute",
                format!("attribute is {}; those that can be set are 8 and 9", attribute.0),
            ));
        };
        if !(least..=most).contains(&value) {
            return Err(Error::invalid(
                "set_attribute",
                format!(
                    "value is {value} for kernel {}; allowed are {least} to {most}",
                    self.name()
                ),
            ));
        }
        setting.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn active_blocks(&self, threads: u32, shared_bytes: usize) -> Result<u32> {
        let most = self.kernel.most_threads();
        if threads == 0 {
            return Err(Error::invalid("active_blocks", "threads is 0; at least 1 is needed"));
        }
        let shared = (shared_bytes as u64).saturating_add(self.kernel.static_shared_bytes());
        if threads > most || shared > MOST_SHARED_BYTES.into() {
            return Ok(0);
        }
        let by_threads = MULTIPROCESSOR_THREADS / threads.next_multiple_of(32);
        let by_shared = u64::from(MULTIPROCESSOR_SHARED).checked_div(shared).unwrap_or(u64::MAX);
        Ok(by_threads.min(MULTIPROCESSOR_BLOCKS).min(u32::try_from(by_shared).unwrap_or(u32::MAX)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
