//! Errors from status numbers: the kind, the vendor's name, and a sentence that helps.

use super::cache::CodeCache;
use super::calls::Calls;
use super::vendor::Vendor;
use crate::error::{Error, ErrorKind, Result};
use crate::process;
use crate::status::Status;
use std::ffi::c_int;
use std::sync::OnceLock;

/// One vendor's driver: its functions, its quirks, and the process that opened it.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) vendor: Box<dyn Vendor>,
    pub(super) calls: Calls,
    /// [`crate::process::generation`] of the process that may use it.
    pub(super) generation: u32,
    /// Compiled code on disk, opened at first use.
    cache: OnceLock<Result<CodeCache>>,
}

impl Driver {
    pub(super) fn new(vendor: Box<dyn Vendor>, calls: Calls) -> Driver {
        Driver { vendor, calls, generation: process::generation(), cache: OnceLock::new() }
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
        self.error_with(call, code, self.vendor.explain(code).unwrap_or_else(|| explain(code)))
    }

    /// The error for a status number, explained in the caller's words.
    #[cold]
    pub(super) fn error_with(&self, call: &'static str, code: c_int, detail: &str) -> Error {
        let kind = self.kind(code);
        let name = self.vendor.status_name(code).unwrap_or("a status without a name");
        let detail = match detail {
            "" => format!("the driver returned {name}"),
            detail => format!("{detail} ({name})"),
        };
        Error::new(kind, Status::new(self.vendor.api(), code), call, detail)
    }

    /// The error for a function that this driver does not have.
    #[cold]
    pub(super) fn missing(&self, call: &'static str, symbol: &str) -> Error {
        let what = match symbol {
            "" => format!("{} has no such call", self.vendor.name()),
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
        $driver.calls.$field.ok_or_else(|| $driver.missing($call, $driver.vendor.names().$field))
    };
}
pub(super) use optional;

/// What a status number means for the program where the vendors agree; empty where the name
/// says it all.
pub(super) fn explain(code: c_int) -> &'static str {
    match code {
        Status::INVALID_VALUE => "the driver refused an argument",
        Status::OUT_OF_MEMORY => "there is not enough memory",
        Status::NOT_INITIALIZED => "the driver is not initialised in this process",
        Status::DEINITIALIZED => "the driver is shutting down",
        Status::NO_DEVICE => "there is no device that the driver can use",
        Status::INVALID_DEVICE => "there is no device with this number",
        200 => "the bytes are no code that the driver can load",
        201 => "the context is gone or belongs to another device",
        209 => "the code has no version for this device's architecture",
        214 => "the device's memory failed beyond repair; the device must be reset",
        217 => "the device cannot access the other one's memory directly",
        218 => "the PTX text does not compile",
        222 => "the PTX text is for a newer driver: its compiler is newer than the driver",
        Status::INVALID_SOURCE => "the source of the kernel cannot be used",
        302 | 303 => "a library that the driver needs could not be loaded",
        Status::INVALID_HANDLE => "the object is gone, or belongs to another context",
        Status::NOT_FOUND => "there is no symbol with this name",
        Status::NOT_READY => "work is still under way",
        Status::ILLEGAL_ADDRESS => "a kernel touched memory that is not its own",
        Status::LAUNCH_OUT_OF_RESOURCES => {
            "the launch needs more registers or shared memory than the device has"
        }
        702 => "a kernel ran longer than the device allows",
        703 => "the launch does not fit how the kernel was compiled",
        705 => "peer access was not enabled",
        709 => "the context was destroyed or lost",
        710 => "an assertion in a kernel failed",
        Status::HOST_MEMORY_ALREADY_REGISTERED => "the host memory is registered already",
        Status::HOST_MEMORY_NOT_REGISTERED => "the host memory is not registered",
        714 => "a kernel's stack was damaged",
        715 => "a kernel ran an illegal instruction",
        716 => "a kernel used an address that is not aligned",
        717 => "a kernel used an address in the wrong memory space",
        718 => "a kernel jumped to an address outside its code",
        Status::LAUNCH_FAILED => "a kernel failed while it ran",
        720 => "the blocks of a cooperative launch do not fit on the device at once",
        Status::NOT_PERMITTED => "the driver does not permit this here",
        Status::NOT_SUPPORTED => "the driver or the device cannot do this",
        900 => "the call is not allowed while the stream captures",
        901 => "the capture became invalid through an earlier call",
        902..=905 => "the capture cannot have this dependency",
        906 => "the default stream cannot be used while a stream that it waits for captures",
        907 => "the event was recorded in a capture",
        908 => "the capture was begun by another thread",
        _ => "",
    }
}
