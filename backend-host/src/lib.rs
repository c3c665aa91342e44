//! The embedded default backend: streams, events, memory and kernels on the CPU.
//!
//! It does not need a driver. Its status codes are the codes that CUDA and HIP share.

mod attributes;
mod capture;
mod checked;
mod code;
mod compile;
mod compiled_rows;
mod config;
mod device;
mod engine;
mod event;
mod handle;
mod kernel;
mod launch;
mod memory;
mod module;
mod queue;
mod seal;
mod shared_event;
mod sharing;
mod stream;
mod texture;
mod transfer;

pub use config::HostConfig;

use hal::{Api, Backend, Device, Error, Result, Status, checking};
use handle::HostHandle;
use std::sync::Arc;

/// The host backend, with one device: the machine itself.
#[derive(Debug)]
pub struct HostBackend {
    device: Arc<HostHandle>,
}

impl HostBackend {
    /// Opens the backend with the settings of the environment.
    ///
    /// # Errors
    /// `InvalidArgument` with the variable's name, if a setting cannot be read.
    pub fn open() -> Result<Arc<dyn Backend>> {
        checking::set_from_environment()?;
        Ok(Self::with_config(HostConfig::from_environment()?))
    }

    /// Opens the backend with the given settings. The number of threads is limited to 4096, and the memory to
    /// the size of the address space.
    pub fn with_config(config: HostConfig) -> Arc<dyn Backend> {
        let config = HostConfig {
            memory: config.memory.min(isize::MAX as usize),
            threads: config.threads.clamp(1, 4096),
            ..config
        };
        hal::backend::watch_process();
        host_executor::set_advice(|| match checking::current().are_lasting() {
            false => {
                "Kernels have run on the host before this fault. If one of them wrote outside of its arrays, \
                     PYGPU_CHECK=1 names it.\n"
            }
            true => "",
        });
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

    /// Does nothing, like CUDA without an attached profiler; none attaches to the host's kernels.
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

#[cfg(test)]
mod tests {
    use super::*;
    use array::{Array, Order};
    use hal::{DType, ErrorKind, Scalar, StreamOptions};

    /// Memory freed on one of two devices must not be used by the other.
    #[test]
    fn two_openings_share_no_memory() {
        let open = |cache| {
            let config = HostConfig { memory: 1 << 20, cache, threads: 1 };
            HostBackend::with_config(config).device(0).expect("the device")
        };
        let (exact, cached) = (open(0), open(1 << 20));
        assert_ne!(exact.id(), cached.id());
        let stream = cached.create_stream(StreamOptions::default()).expect("a stream");
        let array = |device| Array::empty(device, &[24], DType::UInt8, Order::C).expect("memory");
        let (x, y) = (array(&exact), array(&cached));
        for error in [x.on(&stream).err(), x.assign(&y).err()] {
            let error = error.expect("another device's");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.detail().contains("of opening"), "{error}");
        }
        x.fill(Scalar::new(7_u8)).expect("its own stream");
        drop((x, y));
        for device in [&exact, &cached] {
            assert_eq!(device.memory_info().expect("sizes").free, 1 << 20);
        }
    }

    #[test]
    fn settings_beyond_an_address_space_are_cut() {
        let config = HostConfig { memory: usize::MAX, cache: 1 << 20, threads: usize::MAX };
        let device = HostBackend::with_config(config).device(0).expect("the device");
        for bytes in [usize::MAX, usize::MAX / 2, usize::MAX / 2 + 2] {
            let error = device.allocate(bytes).expect_err("nobody has as much");
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        }
    }
}
