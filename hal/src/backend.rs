//! Backends: the entry to the devices of one vendor.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::status::{Api, Status};
use crate::{process, submission};
use std::fmt::Debug;
use std::sync::{Arc, Once};

/// Begins to watch for exit and fork of the process. A backend calls this function when it is opened.
pub fn watch_process() {
    static REGISTER: Once = Once::new();
    #[cfg(unix)]
    unsafe extern "C" fn in_child() {
        process::begin_generation();
        submission::forget_threads_of_parent();
    }
    REGISTER.call_once(|| {
        #[cfg(unix)]
        // SAFETY: both handlers only store to atomics, which is allowed in a forked child and at exit, and
        // they are not unloaded before the process ends.
        unsafe {
            libc::atexit(process::begin_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

/// The devices of one vendor, or the host as a device, with one interface for all vendors.
///
/// Programs get a backend from `gpuarray::open`, and devices from the backend; few call its other methods. Each backend
/// implements the trait once, together with a function that loads the vendor's library and returns the object. A value
/// of this type is therefore an opened backend. Every method may be called from any thread.
///
/// The device with the most free memory:
///
/// ```
/// use gpuarray::Choice;
///
/// # fn main() -> gpuarray::Result<()> {
/// let backend = gpuarray::open(Choice::Host)?;
/// let mut devices = Vec::new();
/// for ordinal in 0..backend.device_count()? {
///     let device = backend.device(ordinal)?;
///     devices.push((device.memory_info()?.free, device));
/// }
/// let (free, device) = devices.into_iter().max_by_key(|it| it.0).expect("a backend has a device");
/// assert!(free > 0 && device.id().backend == backend.name());
/// # Ok(())
/// # }
/// ```
pub trait Backend: Send + Sync + Debug {
    /// Returns the backend's name, by which programs choose it: `cuda`, `hip` or `host`.
    fn name(&self) -> &'static str;

    /// Returns the vendor whose status codes the backend's errors carry.
    fn api(&self) -> Api;

    /// Returns the version of the driver as `1000 * major + 10 * minor` (`cuDriverGetVersion`,
    /// `hipRuntimeGetVersion`).
    ///
    /// # Errors
    /// The driver's.
    fn version(&self) -> Result<i32>;

    /// Returns the number of devices (`cuDeviceGetCount`, `hipGetDeviceCount`).
    ///
    /// # Errors
    /// The driver's.
    fn device_count(&self) -> Result<usize>;

    /// Returns the device with the number `ordinal`, counted from 0. Every call returns the same device, with the same
    /// identity.
    ///
    /// # Errors
    /// `InvalidArgument` if no device has this number.
    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>>;

    /// Returns the device with the PCI bus id `domain:bus:device.function`, in hexadecimal. The domain may be omitted
    /// if it is 0.
    ///
    /// # Errors
    /// `InvalidArgument` if no device has this id. The message lists the devices.
    fn device_by_pci_bus_id(&self, id: &str) -> Result<Arc<dyn Device>> {
        let wanted = parse_pci_bus_id(id).ok_or_else(|| {
            Error::invalid(
                "device_by_pci_bus_id",
                format!("id is {id:?}; a PCI bus id reads domain:bus:device.function"),
            )
        })?;
        self.find_device("PCI bus id", id, &|device| {
            parse_pci_bus_id(&device.properties().pci_bus_id) == Some(wanted)
        })
    }

    /// Returns the device with a UUID, written as `GPU-` and 32 hexadecimal digits, with or without hyphens.
    ///
    /// # Errors
    /// `InvalidArgument` if no device has this UUID. The message lists the devices.
    fn device_by_uuid(&self, uuid: &str) -> Result<Arc<dyn Device>> {
        let digits = |text: &str| -> String {
            let text = text.trim_start_matches("GPU-");
            text.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase()
        };
        let wanted = digits(uuid);
        self.find_device("UUID", uuid, &|device| {
            device.properties().uuid_text().is_some_and(|text| digits(&text) == wanted)
        })
    }

    /// Returns the first device that `matches`. The error message names the property `what` and the wanted `value`.
    #[doc(hidden)]
    fn find_device(
        &self,
        what: &str,
        value: &str,
        matches: &dyn Fn(&dyn Device) -> bool,
    ) -> Result<Arc<dyn Device>> {
        let mut seen = Vec::new();
        for ordinal in 0..self.device_count()? {
            let device = self.device(ordinal)?;
            if matches(device.as_ref()) {
                return Ok(device);
            }
            let properties = device.properties();
            seen.push(format!(
                "{ordinal}: {} {}",
                properties.pci_bus_id,
                properties.uuid_text().unwrap_or_default()
            ));
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            Status::host(Status::INVALID_DEVICE),
            "find_device",
            format!("no device has the {what} {value:?}; the devices have {}", seen.join(", ")),
        ))
    }

    /// Starts the recording of a profiler that is attached to the process (`cuProfilerStart`,
    /// `hipProfilerStart`).
    ///
    /// # Errors
    /// `Unsupported` if the driver lacks this call.
    fn profiler_start(&self) -> Result<()> {
        Err(Error::unsupported("profiler_start", "the backend has no profiler"))
    }

    /// Stops the recording of a profiler that is attached to the process (`cuProfilerStop`,
    /// `hipProfilerStop`).
    ///
    /// # Errors
    /// `Unsupported` if the driver lacks this call.
    fn profiler_stop(&self) -> Result<()> {
        Err(Error::unsupported("profiler_stop", "the backend has no profiler"))
    }

    /// Returns the vendor's name of a status code; `None` for an unknown number.
    fn status_name(&self, code: i32) -> Option<&'static str>;

    /// Returns the vendor's description of a status code; `None` if it has none, and for unknown numbers.
    fn status_message(&self, code: i32) -> Option<&'static str>;
}

/// Returns the domain, bus, device and function of `domain:bus:device.function`.
fn parse_pci_bus_id(text: &str) -> Option<[u32; 4]> {
    let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
    let (address, function) = match text.trim().rsplit_once('.') {
        Some((address, function)) => (address, number(function)?),
        None => (text.trim(), 0),
    };
    let parts: Vec<_> = address.split(':').map(number).collect::<Option<_>>()?;
    match parts[..] {
        [bus, device] => Some([0, bus, device, function]),
        [domain, bus, device] => Some([domain, bus, device, function]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_pci_bus_id;

    #[test]
    fn bus_ids_are_compared_as_numbers() {
        assert_eq!(parse_pci_bus_id("0000:3B:00.0"), Some([0, 0x3b, 0, 0]));
        assert_eq!(parse_pci_bus_id("00000000:3b:00.0"), parse_pci_bus_id("3b:00.0"));
        assert_eq!(parse_pci_bus_id("gpu"), None);
        assert_eq!(parse_pci_bus_id("1:2:3:4.5"), None);
    }
}
