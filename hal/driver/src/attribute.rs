//! Questions about a device and its addresses.

use super::context::Context;
use super::errors::optional;
use codegen::compile::TARGETS;
use hal::device::DeviceAttribute;
use hal::error::{Error, ErrorKind, Result};
use hal::status::Status;

impl Context {
    /// A numbered property; needs no context.
    pub(super) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        let mut value = 0;
        let code = match self.driver.vendor.device_attribute(attribute.0) {
            // SAFETY: the device is one that the driver returned; the result is written before
            // the call returns.
            Some(number) => unsafe {
                (self.driver.calls.device_attribute)(&mut value, number, self.device)
            },
            None => Status::INVALID_VALUE,
        };
        match code {
            Status::INVALID_VALUE => Err(self.driver.error_with(
                "attribute",
                code,
                &format!("attribute is {}, which this driver does not know", attribute.0),
            )),
            code => self.driver.check("attribute", code).map(|()| value),
        }
    }

    /// Start and bytes of the allocation that an address lies in. The context is current.
    pub(super) fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let read = optional!(self.driver, address_range, "address_range")?;
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: the driver looks the address up; the results are written before it returns.
        let code = unsafe { read(&mut start, &mut bytes, address) };
        if code != Status::SUCCESS && self.driver.kind(code) == ErrorKind::InvalidArgument {
            let detail = format!("address {address:#x} lies in no allocation of the device");
            return Err(self.driver.error_with("address_range", code, &detail));
        }
        self.check("address_range", code)?;
        Ok((start, bytes))
    }

    /// What compilers call the device, for code that is to run on it.
    ///
    /// # Errors
    /// `Unsupported` if the driver answers with what is no such name.
    pub(super) fn target(&self) -> Result<&str> {
        let name = self.architecture.as_str();
        if self.driver.vendor.is_architecture(name) {
            return Ok(name);
        }
        Err(Error::unsupported(
            "target",
            format!(
                "the driver names the architecture of device {}:{} {name:?}, which no compiler \
                 knows (expected is {TARGETS}): copies and fills work there, no kernels",
                self.driver.vendor.name(),
                self.ordinal
            ),
        ))
    }
}
