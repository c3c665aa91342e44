//! The differences between the two vendors that the table of calls cannot express. Also a vendor's driver: its calls,
//! and the errors that its status numbers mean.

use super::blas::Blas;
use super::calls::{Calls, Handle};
use codegen::compile::{CodeCache, Compiled, Compiler};
use hal::error::{Error, ErrorKind, Result, common_kind};
use hal::module::{LinkInput, LoadOptions, Parameter};
use hal::process;
use hal::properties::Feature;
use hal::properties::{DeviceAttribute, DeviceId};
use hal::status::{Api, Status, meaning};
use hal::stream::Transfer;
use hal::texture::{ArrayCopy, ArrayShape, Sampling, TextureResource};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// The parameters of kernels, by the kernels' names.
pub type KernelParameters = HashMap<String, Vec<Parameter>>;

/// The status that a method of [`Vendor`] returns if the symbol of its call is missing.
pub const NO_SYMBOL: c_int = Status::NOT_SUPPORTED;

/// The vendor-specific part of a driver. Codes are the driver's status numbers; every method may be called from any
/// thread.
pub trait Vendor: Send + Sync + Debug {
    /// Returns the backend's name: `cuda` or `hip`.
    fn name(&self) -> &'static str;

    /// Returns the vendor whose status numbers the calls return.
    fn api(&self) -> Api;

    /// Returns the vendor's name of a status number.
    fn status_name(&self, code: i32) -> Option<&'static str>;

    /// Returns the vendor's description of a status number.
    fn status_message(&self, code: i32) -> Option<&'static str>;

    /// Returns the features that cannot be derived from the table of calls.
    fn features(&self) -> &'static [Feature];

    /// Returns the kind of error for a status number.
    fn kind(&self, code: i32) -> ErrorKind {
        common_kind(code)
    }

    /// Returns the lasting effect of a status number on the context.
    fn lasting(&self, code: i32) -> Lasting {
        common_lasting(code)
    }

    /// Returns the meaning of a status number, if this vendor uses the number differently from the other.
    fn explain(&self, code: i32) -> Option<&'static str> {
        let _ = code;
        None
    }

    /// Returns the meaning of a status number, or a sentence with the vendor's name of it.
    fn reason(&self, code: c_int) -> Cow<'static, str> {
        match (self.explain(code).unwrap_or_else(|| meaning(code)), self.status_name(code)) {
            ("", Some(name)) => format!("the driver returned {name}").into(),
            ("", None) => format!("the driver returned {code}, which has no name").into(),
            (meaning, _) => meaning.into(),
        }
    }

    /// Returns the error for a status number that `call` returned. The message is `detail`, or the call and the
    /// [reason](Vendor::reason) if `detail` is empty. Makes the driver forget the failure.
    #[cold]
    fn error(&self, call: &'static str, code: c_int, detail: &str) -> Error {
        self.forget_failure();
        let detail = match detail {
            "" => format!("{call} failed: {}", self.reason(code)),
            detail => detail.to_owned(),
        };
        Error::new(self.kind(code), Status::new(self.api(), code), call, detail)
    }

    /// Makes the driver forget a failed call of this thread, if the driver stores the failure for the next query.
    /// Otherwise, another library could take the failure for its own.
    fn forget_failure(&self) {}

    /// Converts the driver's own form of a version to `1000 * major + 10 * minor`.
    fn version(&self, driver_version: c_int) -> i32 {
        driver_version
    }

    /// Returns the driver's number of a [`DeviceAttribute`], which uses CUDA's numbers; `None` if the driver lacks
    /// the attribute.
    fn device_attribute(&self, number: i32) -> Option<c_int> {
        Some(number)
    }

    /// Returns the flags for opening another process's memory: peer access as needed.
    fn ipc_open_flags(&self) -> c_uint {
        1
    }

    /// Retains a device's context, and returns it for [`Vendor::set_current`].
    fn retain_context(&self, device: c_int) -> (c_int, Handle);

    /// Releases the retained context of a device.
    fn release_context(&self, device: c_int) -> c_int;

    /// Destroys everything in a device's context. A use counted by [`Vendor::retain_context`] stays counted.
    fn reset_context(&self, device: c_int) -> c_int;

    /// Returns the calling thread's context; 0 if it has none.
    fn current(&self) -> (c_int, Handle);

    /// Returns the number of a context; with 0, of the calling thread's context. Unlike a handle, the number is
    /// never reused. If the driver does not provide such numbers, the status is [`NO_SYMBOL`].
    fn number_of(&self, context: Handle) -> (c_int, u64) {
        let _ = context;
        (NO_SYMBOL, 0)
    }

    /// Makes a context current on the calling thread; 0 for none.
    fn set_current(&self, context: Handle) -> c_int;

    /// Returns the compilers' name of the device, as the driver reports it.
    ///
    /// # Errors
    /// The driver's.
    fn architecture(&self, calls: &Calls, device: c_int) -> Result<String>;

    /// Returns true if the text is a name that compilers know; some drivers report other texts.
    fn is_architecture(&self, text: &str) -> bool;

    /// Queues a copy of rows. Every slice's stride is a multiple of its rows' pitch.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamCore::transfer`].
    unsafe fn copy_rows(&self, transfer: &Transfer, stream: Handle) -> c_int;

    /// Returns true if a copy of rows, or to an array, has finished reading pageable memory when the call that
    /// queues it returns.
    fn reads_rows_at_once(&self) -> bool {
        true
    }

    /// Queues a copy between devices, each given with its context.
    ///
    /// # Safety
    /// As for [`hal::Device::transfer_peer`].
    unsafe fn copy_peer(
        &self,
        destination: (u64, c_int, Handle),
        source: (u64, c_int, Handle),
        bytes: usize,
        stream: Handle,
    ) -> c_int;

    /// Returns the attribute that is 0 on devices without texture hardware, with the vendor's name of it; `None` if
    /// all devices support textures.
    fn texture_attribute(&self) -> Option<(DeviceAttribute, &'static str)> {
        None
    }

    /// Checks that the driver supports arrays of this shape.
    ///
    /// # Errors
    /// `Unsupported` that names the missing feature.
    fn check_array(&self, shape: &ArrayShape) -> Result<()> {
        let _ = shape;
        Ok(())
    }

    /// Checks that the driver can read a texture with this sampling.
    ///
    /// # Errors
    /// `Unsupported`, with the result that the driver would produce instead.
    fn check_texture(&self, resource: &TextureResource, sampling: &Sampling) -> Result<()> {
        let _ = (resource, sampling);
        Ok(())
    }

    /// Queues a copy from or to an array.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamMemory::copy_array`].
    unsafe fn copy_array(&self, copy: &ArrayCopy, stream: Handle) -> c_int;

    /// Lets the current context use the memory of another device.
    fn enable_peer(&self, device: c_int, context: Handle) -> c_int;

    /// Ends the access to a peer's memory that [`Vendor::enable_peer`] enabled.
    fn disable_peer(&self, device: c_int, context: Handle) -> c_int;

    /// Returns true if the address is known to the driver (`cuPointerGetAttribute`, `hipPointerGetAttributes`):
    /// memory of a device, page-locked or managed memory. The driver copies to and from such host memory without
    /// waiting.
    fn knows(&self, address: u64) -> bool;

    /// Returns the run-time compiler.
    ///
    /// # Errors
    /// `Unsupported` that says what to install.
    fn compiler(&self) -> Result<Arc<dyn Compiler>>;

    /// Returns the options that the compiler needs for builtin operations.
    fn builtin_options(&self) -> &'static [&'static str];

    /// Returns the linear algebra library; `None` if it is not available.
    ///
    /// # Errors
    /// The search's, if the user named a library that cannot be opened.
    fn blas(&self) -> Result<Option<Arc<dyn Blas>>> {
        Ok(None)
    }

    /// Returns the parameters of all kernels in an image for a device of architecture `target`, as far as the image
    /// describes them. Used for drivers without a call that returns parameters. The image may be any bytes.
    fn parameters(&self, image: &[u8], target: &str) -> Option<KernelParameters> {
        let _ = (image, target);
        None
    }

    /// Links code to one image.
    ///
    /// # Errors
    /// `CompileFailed` with the linker's log; `Unsupported` if no linker is available.
    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled>;
}

/// The effect of a failed call on its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lasting {
    /// The context is unaffected.
    No,
    /// The context cannot be used any longer.
    Yes,
    /// The same number is used for refused calls and for lost contexts; another call distinguishes them.
    Unclear,
}

/// Returns the lasting effect of a status number on the context, where the vendors agree.
pub fn common_lasting(code: i32) -> Lasting {
    match code {
        214 | 220 | 221 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 722 => Lasting::Yes,
        _ => Lasting::No,
    }
}

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
