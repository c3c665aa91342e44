//! The embedded default backend: streams, events, memory and kernels on the CPU.
//!
//! It needs nothing but the machine. Its status codes are those that CUDA and HIP share.

mod attributes;
mod capture;
mod checked;
mod compile;
mod config;
mod device;
mod engine;
mod event;
mod failures;
mod graph;
mod kernel;
mod memory;
mod module;
mod queue;
mod seal;
mod sharing;
mod stream;
mod texture;
mod transfer;

pub use config::HostConfig;

use device::HostHandle;
use hal::{Api, Backend, Device, Error, Result, Status, checking, process};
use std::sync::Arc;

/// The host backend: one device, the machine itself.
#[derive(Debug)]
pub struct HostBackend {
    device: Arc<HostHandle>,
}

impl HostBackend {
    /// Opens the backend with the settings of the environment.
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable if a setting cannot be read.
    pub fn open() -> Result<Arc<dyn Backend>> {
        checking::set_from_environment()?;
        Ok(Self::with_config(HostConfig::from_environment()?))
    }

    /// Opens the backend with settings of the program.
    pub fn with_config(config: HostConfig) -> Arc<dyn Backend> {
        process::watch();
        Arc::new(HostBackend { device: HostHandle::new(config) })
    }
}

impl Backend for HostBackend {
    fn name(&self) -> &'static str {
        "host"
    }

    fn api(&self) -> Api {
        Api::Host
    }

    fn version(&self) -> Result<i32> {
        let number = |text: &str| text.parse().unwrap_or(0);
        Ok(1000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
            + 10 * number(env!("CARGO_PKG_VERSION_MINOR")))
    }

    /// No profiler attaches to the host's kernels, which is what the call does without one.
    fn profiler_start(&self) -> Result<()> {
        Ok(())
    }

    fn profiler_stop(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        if ordinal == 0 {
            return Ok(self.device.clone());
        }
        Err(Error::new(
            hal::ErrorKind::InvalidArgument,
            Status::host(Status::INVALID_DEVICE),
            "device",
            format!("device number is {ordinal}; the host backend has one device, number 0"),
        ))
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        Status::common_name(code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        Some(Status::host(code).message()).filter(|message| !message.is_empty())
    }
}
