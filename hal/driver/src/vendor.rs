//! What the two vendors do differently: everything that the table of calls cannot hold.

use super::blas::Blas;
use super::calls::{Calls, Handle};
use codegen::compile::{Compiled, Compiler};
use hal::device::DeviceAttribute;
use hal::error::{Error, ErrorKind, Result, common_kind};
use hal::features::Feature;
use hal::module::{LinkInput, LoadOptions, Parameter};
use hal::status::{Api, Status};
use hal::stream::Transfer;
use hal::texture::{ArrayCopy, ArrayShape, Sampling, TextureResource};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::fmt::Debug;
use std::sync::Arc;

/// The parameters of kernels by the kernels' names.
pub type KernelParameters = HashMap<String, Vec<Parameter>>;

/// What a method of [`Vendor`] returns in place of a call whose symbol is missing.
pub const NO_SYMBOL: c_int = Status::NOT_SUPPORTED;

/// A vendor's quirks. Codes are the driver's status numbers; every method may be called from
/// any thread.
pub trait Vendor: Send + Sync + Debug {
    /// Returns the backend's name: `cuda`, `hip`.
    fn name(&self) -> &'static str;

    /// Returns the vendor whose status numbers the calls return.
    fn api(&self) -> Api;

    /// Returns the vendor's name of a status number.
    fn status_name(&self, code: i32) -> Option<&'static str>;

    /// Returns the vendor's sentence about a status number.
    fn status_message(&self, code: i32) -> Option<&'static str>;

    /// Features that the table of calls does not show.
    fn features(&self) -> &'static [Feature];

    /// Returns the kind of error that a status number stands for.
    fn kind(&self, code: i32) -> ErrorKind {
        common_kind(code)
    }

    /// Returns the lasting effect of a status number on the context.
    fn lasting(&self, code: i32) -> Lasting {
        common_lasting(code)
    }

    /// Returns what a status number means for the program, where this vendor means something else
    /// by it than the other.
    fn explain(&self, code: i32) -> Option<&'static str> {
        let _ = code;
        None
    }

    /// Returns the error for a status number that `call` returned: `detail`, or the driver's words
    /// without one, and the vendor's name of the number. The driver forgets the failure.
    #[cold]
    fn error(&self, call: &'static str, code: c_int, detail: &str) -> Error {
        self.forget_failure();
        let name = self.status_name(code).map_or_else(|| format!("status {code}"), String::from);
        let detail = match detail {
            "" => format!("the driver returned {name}"),
            detail => format!("{detail} ({name})"),
        };
        Error::new(self.kind(code), Status::new(self.api(), code), call, detail)
    }

    /// Makes the driver forget a failed call of this thread, where it keeps the failure for
    /// whoever asks next: another library may ask, and would take it for its own.
    fn forget_failure(&self) {}

    /// Returns a version of the driver as `1000 * major + 10 * minor`.
    fn version(&self, driver_version: c_int) -> i32 {
        driver_version
    }

    /// Returns the driver's number of a [`DeviceAttribute`], which are
    /// numbered as CUDA's; `None` if it has no such attribute.
    fn device_attribute(&self, number: i32) -> Option<c_int> {
        Some(number)
    }

    /// Returns the flags with which another process's memory is opened: peer access as needed.
    fn ipc_open_flags(&self) -> c_uint {
        1
    }

    /// Returns the context of a device, retained: what [`Vendor::set_current`] takes.
    fn retain_context(&self, device: c_int) -> (c_int, Handle);

    /// Releases the retained context of a device.
    fn release_context(&self, device: c_int) -> c_int;

    /// Destroys everything in it. A use counted by [`Vendor::retain_context`] stays counted.
    fn reset_context(&self, device: c_int) -> c_int;

    /// Returns the calling thread's context; 0 for none.
    fn current(&self) -> (c_int, Handle);

    /// Returns the number of a context, which no other one has or had, unlike its handle; with 0 that of the calling
    /// thread's. Without such numbers the status is [`NO_SYMBOL`].
    fn number_of(&self, context: Handle) -> (c_int, u64) {
        let _ = context;
        (NO_SYMBOL, 0)
    }

    /// Makes a context the calling thread's current one; 0 for none.
    fn set_current(&self, context: Handle) -> c_int;

    /// Returns the compilers' name of the device, as the driver reports it.
    ///
    /// # Errors
    /// The driver's.
    fn architecture(&self, calls: &Calls, device: c_int) -> Result<String>;

    /// Returns true if a text is such a name: there are drivers that answer with another.
    fn is_architecture(&self, text: &str) -> bool;

    /// Queues a copy of rows. Every slice's stride is a multiple of its rows' pitch.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamCore::transfer`].
    unsafe fn copy_rows(&self, transfer: &Transfer, stream: Handle) -> c_int;

    /// Returns true if a copy of rows, or to an array, has read pageable memory when the call that
    /// queues it returns.
    fn reads_rows_at_once(&self) -> bool {
        true
    }

    /// Queues a copy between devices, each given with its context.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamMemory::transfer_peer`].
    unsafe fn copy_peer(
        &self,
        destination: (u64, c_int, Handle),
        source: (u64, c_int, Handle),
        bytes: usize,
        stream: Handle,
    ) -> c_int;

    /// Returns the attribute, and the vendor's name of it, that is 0 on devices without hardware
    /// for textures; `None` where all devices have it.
    fn texture_attribute(&self) -> Option<(DeviceAttribute, &'static str)> {
        None
    }

    /// Checks that the driver has such arrays.
    ///
    /// # Errors
    /// `Unsupported` by name.
    fn check_array(&self, shape: &ArrayShape) -> Result<()> {
        let _ = shape;
        Ok(())
    }

    /// Checks that the driver reads a texture as it is to be read.
    ///
    /// # Errors
    /// `Unsupported` that says what the driver would do instead.
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

    /// Returns true if the driver knows the address (`cuPointerGetAttribute`,
    /// `hipPointerGetAttributes`): memory of a device, page-locked or managed memory. The driver
    /// copies from and to such memory of the host without waiting.
    fn knows(&self, address: u64) -> bool;

    /// Returns the run-time compiler.
    ///
    /// # Errors
    /// `Unsupported` that says what to install.
    fn compiler(&self) -> Result<Arc<dyn Compiler>>;

    /// Options that the compiler needs for builtin operations.
    fn builtin_options(&self) -> &'static [&'static str];

    /// Returns the library of linear algebra; `None` where there is none.
    ///
    /// # Errors
    /// Those of a library that the user named and that cannot be opened.
    fn blas(&self) -> Result<Option<Arc<dyn Blas>>> {
        Ok(None)
    }

    /// Returns the parameters of all kernels in an image for a device of architecture `target`, as
    /// far as the image tells them: for drivers without a call that does. The image may be any
    /// bytes.
    fn parameters(&self, image: &[u8], target: &str) -> Option<KernelParameters> {
        let _ = (image, target);
        None
    }

    /// Links code to one image.
    ///
    /// # Errors
    /// `CompileFailed` with the linker's log; `Unsupported` without a linker.
    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled>;
}

/// What a failed call says of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lasting {
    /// The context is as it was.
    No,
    /// The context cannot be used any longer.
    Yes,
    /// Calls that are refused and contexts that are lost have the same number: another call
    /// tells which it is.
    Unclear,
}

/// Returns the lasting effect of a status number on the context, where the vendors agree.
pub fn common_lasting(code: i32) -> Lasting {
    match code {
        214 | 220 | 221 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 722 => Lasting::Yes,
        _ => Lasting::No,
    }
}
