//! Errors from status numbers: the kind, the vendor's name, and a sentence that helps.

use super::calls::Calls;
use super::vendor::Vendor;
use codegen::compile::CodeCache;
use hal::device::DeviceId;
use hal::error::{Error, ErrorKind, Result};
use hal::process;
use hal::status::{Status, meaning};
use std::ffi::c_int;
use std::sync::OnceLock;

/// One vendor's driver: its functions, its quirks, and the process that opened it.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) vendor: Box<dyn Vendor>,
    pub(super) calls: Calls,
    /// [`hal::process::generation`] of the process that may use it.
    pub(super) generation: u32,
    /// That of its devices' [`DeviceId`](hal::DeviceId).
    pub(super) instance: u32,
    /// Compiled code on disk, opened at first use.
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

    /// Compiled code on disk, as the environment says.
    pub(super) fn cache(&self) -> Result<&CodeCache> {
        self.cache.get_or_init(CodeCache::from_environment).as_ref().map_err(Clone::clone)
    }

    /// The result of a call that returned `code`.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == Status::SUCCESS { Ok(()) } else { Err(self.error(call, code)) }
    }

    /// The error for a status number.
    #[cold]
    pub(super) fn error(&self, call: &'static str, code: c_int) -> Error {
        self.error_with(call, code, self.vendor.explain(code).unwrap_or_else(|| meaning(code)))
    }

    /// The error for a status number, explained in the caller's words.
    #[cold]
    pub(super) fn error_with(&self, call: &'static str, code: c_int, detail: &str) -> Error {
        self.vendor.error(call, code, detail)
    }

    /// The error for a function that this driver does not have.
    #[cold]
    pub(super) fn missing(&self, call: &'static str, symbol: &str) -> Error {
        let what = match symbol {
            "" => format!("the {} driver has no call for this", self.vendor.name()),
            symbol => format!("this {} driver has no {symbol}", self.vendor.name()),
        };
        Error::unsupported(call, what)
    }

    /// What kind of failure a status is. It is dealt with here, so the driver forgets it.
    #[cold]
    pub(super) fn kind(&self, code: c_int) -> ErrorKind {
        self.vendor.forget_failure();
        self.vendor.kind(code)
    }

    /// True if a status says that there is not enough memory.
    #[inline]
    pub(super) fn is_out_of_memory(&self, code: c_int) -> bool {
        code != Status::SUCCESS && self.kind(code) == ErrorKind::OutOfMemory
    }

    /// True if a status says that the driver has the symbol but not the function.
    #[inline]
    pub(super) fn is_unsupported(&self, code: c_int) -> bool {
        code != Status::SUCCESS && self.kind(code) == ErrorKind::Unsupported
    }
}

/// The optional function of a driver, or an error that names it.
macro_rules! optional {
    ($driver:expr, $field:ident, $call:literal) => {
        $driver.calls.$field.ok_or_else(|| $driver.missing($call, $driver.calls.names.$field))
    };
}
pub(super) use optional;
