//! Errors from status numbers: the kind, the vendor's name, and an explanation.

use super::calls::Calls;
use super::vendor::Vendor;
use codegen::compile::CodeCache;
use hal::device::DeviceId;
use hal::error::{Error, ErrorKind, Result};
use hal::process;
use hal::status::Status;
use std::ffi::c_int;
use std::sync::OnceLock;

/// One vendor's driver: its functions, its differences, and the process that opened it.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) vendor: Box<dyn Vendor>,
    pub(super) calls: Calls,
    /// [`hal::process::generation`] of the process that opened it.
    pub(super) generation: u32,
    /// The opening in its devices' [`DeviceId`](hal::DeviceId).
    pub(super) instance: u32,
    /// The cache of compiled code, opened at first use.
    cache: OnceLock<Result<CodeCache>>,
}

impl Driver {
    pub(super) fn new(vendor: Box<dyn Vendor>, calls: Calls) -> Driver {
        Driver {
            vendor,
            calls,
            generation: process::generation(),
            instance: DeviceId::next_instance(),
            cache: OnceLock::new(),
        }
    }

    /// Returns the cache of compiled code, configured by the environment.
    pub(super) fn cache(&self) -> Result<&CodeCache> {
        self.cache.get_or_init(CodeCache::from_environment).as_ref().map_err(Clone::clone)
    }

    /// Returns the result of a call that returned `code`.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == Status::SUCCESS { Ok(()) } else { Err(self.error(call, code)) }
    }

    /// Returns the error for a status number: the call and the meaning of the number.
    #[cold]
    pub(super) fn error(&self, call: &'static str, code: c_int) -> Error {
        self.vendor.error(call, code, "")
    }

    /// Returns the error for a status number, with `detail` as its message.
    #[cold]
    pub(super) fn error_with(&self, call: &'static str, code: c_int, detail: &str) -> Error {
        self.vendor.error(call, code, detail)
    }

    /// Returns the error for a function that this driver lacks.
    #[cold]
    pub(super) fn missing(&self, call: &'static str, symbol: &str) -> Error {
        let what = match symbol {
            "" => format!("the {} driver has no call for this", self.vendor.name()),
            symbol => format!("this {} driver has no {symbol}", self.vendor.name()),
        };
        Error::unsupported(call, what)
    }

    /// Returns the kind of failure of a status. The caller handles the failure, so the driver is
    /// made to forget it.
    #[cold]
    pub(super) fn kind(&self, code: c_int) -> ErrorKind {
        self.vendor.forget_failure();
        self.vendor.kind(code)
    }

    /// Returns true if a status means that not enough memory is available.
    #[inline]
    pub(super) fn is_out_of_memory(&self, code: c_int) -> bool {
        code != Status::SUCCESS && self.kind(code) == ErrorKind::OutOfMemory
    }

    /// Returns true if a status means that the driver has the symbol but not the function.
    #[inline]
    pub(super) fn is_unsupported(&self, code: c_int) -> bool {
        code != Status::SUCCESS && self.kind(code) == ErrorKind::Unsupported
    }
}

/// Returns an optional function of a driver, or an error that names it.
macro_rules! optional {
    ($driver:expr, $field:ident, $call:literal) => {
        $driver.calls.$field.ok_or_else(|| $driver.missing($call, $driver.calls.names.$field))
    };
}
pub(super) use optional;
