//! A vendor's backend: opening its library, its initialised driver, and its devices.

use super::calls::{Calls, Names, VendorCalls};
use super::context::Context;
use super::device::DriverDevice;
use super::state::DeviceState;
use super::vendor::{Driver, Vendor, optional};
use hal::backend::{Backend, watch_process};
use hal::device::Device;
use hal::error::{Error, ErrorKind, Result};
use hal::library::{Library, Search};
use hal::poison::Unpoisoned as _;
use hal::properties::{DeviceAttribute, DeviceProperties};
use hal::status::{Api, Status, meaning};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A vendor's driver as a library that may be present.
pub trait DriverLibrary: Vendor + Sized + 'static {
    /// The name of the library in messages: "the CUDA driver".
    const LIBRARY: &'static str;
    /// The symbols of the table's functions.
    const NAMES: &'static Names;
    /// The vendor-specific functions.
    type Own: VendorCalls;

    /// Returns the vendor's driver, over the functions found in `library`. The driver is not
    /// initialised yet.
    fn new(own: Self::Own, calls: &Calls, library: Library) -> Self;
}

/// Returns a search for the library of the driver `D`, without candidates.
pub fn search<D: DriverLibrary>() -> Search {
    Search::new(D::LIBRARY)
}

/// Opens the first library of a search that is the driver `D`, initialises it (`cuInit`, `hipInit`)
/// and returns its backend. Does not create a context.
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the driver's status if it cannot be
/// initialised or does not have a device.
///
/// # Safety
/// The files of the search are the vendor's driver, or libraries that behave like it; the types of
/// `D`'s tables match the vendor's declarations.
pub unsafe fn open<D: DriverLibrary>(search: &Search) -> Result<Arc<dyn Backend>> {
    let accept = |library: Library| {
        // SAFETY: the caller's promise, here and below.
        let (calls, own) = unsafe { (Calls::find(D::NAMES, library)?, D::Own::find(library)?) };
        let vendor = Box::new(D::new(own, &calls, library));
        // SAFETY: as above.
        unsafe { initialise(vendor, calls) }
    };
    // SAFETY: as above.
    unsafe { search.open(accept) }
}

/// Opens the driver `D` from a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// As for [`open`], for this file.
pub unsafe fn open_file<D: DriverLibrary>(path: &Path) -> Result<Arc<dyn Backend>> {
    // SAFETY: the caller's promise.
    unsafe { open::<D>(&search::<D>().candidates([path])) }
}

/// Returns the symbols that are looked up in the library of the driver `D`: the required ones, and the
/// ones without which a single call is `Unsupported`.
pub fn symbols<D: DriverLibrary>() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut required = D::NAMES.required();
    required.extend(D::Own::REQUIRED);
    let mut optional = D::NAMES.optional();
    optional.extend(D::Own::OPTIONAL);
    (required, optional)
}

/// The devices of one vendor.
#[derive(Debug)]
struct DriverBackend {
    driver: Arc<Driver>,
    count: usize,
    devices: Mutex<BTreeMap<usize, Arc<DriverDevice>>>,
}

/// Initialises a driver and returns its backend. Does not create a context or use a device.
///
/// # Errors
/// `BackendUnavailable` with the driver's status if it cannot be initialised or does not have a
/// device.
///
/// # Safety
/// The functions of the table behave as the vendor documents for their names, with the parameters
/// of [`Calls`]; the vendor's part returns the driver's results unchanged. All other code of this crate
/// trusts their results: addresses, sizes, handles.
unsafe fn initialise(vendor: Box<dyn Vendor>, calls: Calls) -> Result<Arc<dyn Backend>> {
    watch_process();
    let driver = Arc::new(Driver::new(vendor, calls));
    let unavailable = |code: c_int, what: &str| {
        // A driver without devices returns either number from its first call.
        let none = matches!(code, Status::NO_DEVICE | Status::INVALID_DEVICE);
        let reason = match none {
            true => meaning(Status::NO_DEVICE).into(),
            false => driver.vendor.reason(code),
        };
        let error = driver.error_with("open", code, &format!("{what}: {reason}"));
        Error::new(ErrorKind::BackendUnavailable, error.status(), "open", error.detail().to_owned())
    };
    // SAFETY: 0 is the only value that the flags may have.
    match unsafe { (driver.calls.init)(0) } {
        Status::SUCCESS => {}
        code => return Err(unavailable(code, "the driver could not be initialised")),
    }
    let mut count = 0;
    // SAFETY: the number is written before the call returns.
    match unsafe { (driver.calls.device_count)(&mut count) } {
        Status::SUCCESS if count > 0 => {}
        Status::SUCCESS => return Err(unavailable(Status::NO_DEVICE, "the driver cannot be used")),
        code => return Err(unavailable(code, "the driver does not list its devices")),
    }
    let devices = Mutex::new(BTreeMap::new());
    Ok(Arc::new(DriverBackend { driver, count: count as usize, devices }))
}

/// Returns a text that a driver writes to a buffer, and the driver's status.
fn text(write: impl FnOnce(*mut c_char, c_int) -> c_int) -> (c_int, String) {
    let mut buffer = [0_u8; 256];
    let code = write(buffer.as_mut_ptr().cast(), buffer.len() as c_int - 1);
    let text = CStr::from_bytes_until_nul(&buffer).map(CStr::to_string_lossy);
    (code, text.unwrap_or_default().into_owned())
}

impl DriverBackend {
    fn open_device(&self, ordinal: usize) -> Result<DriverDevice> {
        let calls = &self.driver.calls;
        let check = |call, code| self.driver.check(call, code);
        let mut device = 0;
        // SAFETY: here and below, results are written before a call returns, and the driver
        // returned the device.
        check("device", unsafe { (calls.device_get)(&mut device, ordinal as c_int) })?;
        // SAFETY: the buffer has this many bytes.
        let name = |buffer, bytes| unsafe { (calls.device_name)(buffer, bytes, device) };
        let (code, name) = text(name);
        check("device_name", code)?;
        // SAFETY: as above.
        let bus = |buffer, bytes| unsafe { (calls.device_pci_bus_id)(buffer, bytes, device) };
        let (code, bus) = text(bus);
        check("device_pci_bus_id", code)?;
        let mut memory = 0;
        // SAFETY: the number is written before the call returns.
        check("device_total_memory", unsafe { (calls.device_total_memory)(&mut memory, device) })?;
        let architecture = self.driver.vendor.architecture(calls, device)?;
        let context = Context::new(self.driver.clone(), ordinal, device, architecture);
        let number = |attribute| context.attribute(attribute).map(|value| value.max(0) as u32);
        let capability = (
            number(DeviceAttribute::COMPUTE_CAPABILITY_MAJOR)?,
            number(DeviceAttribute::COMPUTE_CAPABILITY_MINOR)?,
        );
        let mut properties = DeviceProperties::new(name, bus, capability, memory);
        properties.architecture = context.architecture.clone();
        if let Some(read) = calls.device_uuid {
            let mut uuid = [0; 16];
            // SAFETY: a UUID has 16 bytes.
            match unsafe { read(&mut uuid, device) } {
                Status::SUCCESS => properties.uuid = Some(uuid),
                _ => self.driver.vendor.forget_failure(),
            }
        }
        Ok(DriverDevice::new(DeviceState::new(context), properties))
    }
}

impl Backend for DriverBackend {
    fn name(&self) -> &'static str {
        self.driver.vendor.name()
    }

    fn api(&self) -> Api {
        self.driver.vendor.api()
    }

    fn version(&self) -> Result<i32> {
        let mut version = 0;
        // SAFETY: the number is written before the call returns.
        let code = unsafe { (self.driver.calls.driver_version)(&mut version) };
        self.driver.check("version", code)?;
        Ok(self.driver.vendor.version(version))
    }

    fn device_count(&self) -> Result<usize> {
        Ok(self.count)
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        if ordinal >= self.count {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::new(self.api(), Status::INVALID_DEVICE),
                "device",
                format!(
                    "device number is {ordinal}; {} has devices 0 to {}",
                    self.name(),
                    self.count - 1
                ),
            ));
        }
        let mut devices = self.devices.lock().unpoisoned();
        if let Some(known) = devices.get(&ordinal) {
            return Ok(known.clone());
        }
        let opened = Arc::new(self.open_device(ordinal)?);
        devices.insert(ordinal, opened.clone());
        Ok(opened)
    }

    fn profiler_start(&self) -> Result<()> {
        let start = optional!(self.driver, profiler_start, "profiler_start")?;
        // SAFETY: the call does not take arguments.
        self.driver.check("profiler_start", unsafe { start() })
    }

    fn profiler_stop(&self) -> Result<()> {
        let stop = optional!(self.driver, profiler_stop, "profiler_stop")?;
        // SAFETY: the call does not take arguments.
        self.driver.check("profiler_stop", unsafe { stop() })
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        self.driver.vendor.status_name(code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        self.driver.vendor.status_message(code)
    }
}
