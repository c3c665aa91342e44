//! The calls that work differently in HIP than in CUDA.
//!
//! In HIP a device's context is the device itself. Its token is the device number plus one, because
//! 0 stands for no context. The runtime creates a primary context on first use and keeps it;
//! `hipDevicePrimaryCtxRetain` and `hipCtxSetCurrent` are deprecated.

use crate::attribute;
use crate::bindings as sys;
use crate::copies;
use crate::hiprtc::{self, Hiprtc};
use crate::metadata;
use crate::rocblas;
use crate::table::{NAMES, OwnCalls};
use codegen::compile::{Compiled, Compiler};
use codegen::source::HIPRTC_OPTIONS;
use driver::DriverLibrary;
use driver::blas::{Blas, BlasLibrary};
use driver::calls::{Calls, Handle, Names};
use driver::vendor::{KernelParameters, Lasting, NO_SYMBOL, Vendor, common_lasting};
use hal::error::common_kind;
use hal::library::Library;
use hal::texture::{ArrayCopy, ArrayShape, Sampling, TextureResource};
use hal::{
    Api, DeviceAttribute, Error, ErrorKind, Feature, LinkInput, LoadOptions, Result, Status,
    Transfer,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;

/// AMD's HIP runtime.
#[derive(Debug)]
pub(crate) struct Hip {
    calls: OwnCalls,
    compiler: Arc<Hiprtc>,
    blas: BlasLibrary,
    /// The file of the runtime.
    file: Option<PathBuf>,
}

impl DriverLibrary for Hip {
    const LIBRARY: &'static str = "the HIP runtime";
    const NAMES: &'static Names = &NAMES;
    type Own = OwnCalls;

    fn new(own: OwnCalls, _calls: &Calls, library: Library) -> Hip {
        let file = library.file(NAMES.init);
        let compiler = Arc::new(Hiprtc::new(file.clone()));
        Hip { calls: own, compiler, blas: BlasLibrary::default(), file }
    }
}

/// Values of `hipError_t` that report invalid arguments, and that CUDA lacks or has under another number.
const REFUSED: [sys::hipError_t::Type; 5] = [
    sys::hipError_t::hipErrorInvalidConfiguration,
    sys::hipError_t::hipErrorInvalidDevicePointer,
    sys::hipError_t::hipErrorInvalidMemcpyDirection,
    sys::hipError_t::hipErrorInvalidDeviceFunction,
    sys::hipError_t::hipErrorUnsupportedLimit,
];

/// Numbers that mean a lost device in CUDA, but not in HIP.
const REFUSED_LAUNCH: c_int = sys::hipError_t::hipErrorLaunchFailure as c_int;
const UNKNOWN_HANDLE: c_int = sys::hipError_t::hipErrorContextIsDestroyed as c_int;

impl Hip {
    /// Returns the code. Clears the runtime's remembered failure, so that other libraries do not
    /// see it.
    fn own(&self, code: c_int) -> c_int {
        if code != Status::SUCCESS {
            self.forget_failure();
        }
        code
    }

    /// Reads a device's properties with `read`, and returns the status and the text that `text`
    /// selects.
    fn property<P, const N: usize>(
        read: unsafe extern "C" fn(*mut P, c_int) -> c_int,
        device: c_int,
        text: impl FnOnce(&P) -> &[c_char; N],
    ) -> (c_int, String) {
        let mut properties = MaybeUninit::<P>::zeroed();
        // SAFETY: the struct is the one that this function fills.
        let code = unsafe { read(properties.as_mut_ptr(), device) };
        // SAFETY: all fields are numbers, texts and pointers, for which zeros are valid.
        let properties = unsafe { properties.assume_init() };
        #[allow(clippy::unnecessary_cast, reason = "a char is signed on some processors only")]
        let bytes = text(&properties).map(|it| it as u8);
        let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy);
        (code, text.unwrap_or_default().into_owned())
    }
}

/// Returns the runtime's text for a status number.
fn describe(
    read: unsafe extern "C" fn(c_int) -> *const c_char,
    code: c_int,
) -> Option<&'static str> {
    // SAFETY: the result is null or a constant of the library, which is never unloaded.
    unsafe {
        let text = read(code);
        if text.is_null() { None } else { CStr::from_ptr(text).to_str().ok() }
    }
}

impl Vendor for Hip {
    fn name(&self) -> &'static str {
        "hip"
    }

    fn api(&self) -> Api {
        Api::Hip
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        let name = describe(self.calls.error_name?, code)?;
        // The runtime returns this name for every number that it does not know.
        (name != "hipErrorUnknown" || code == Status::UNKNOWN).then_some(name)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        // The runtime returns the same sentence for every number that it does not know.
        self.status_name(code)?;
        describe(self.calls.error_string?, code)
    }

    fn features(&self) -> &'static [Feature] {
        &[]
    }

    fn kind(&self, code: i32) -> ErrorKind {
        if REFUSED.contains(&(code as u32)) {
            return ErrorKind::InvalidArgument;
        }
        common_kind(code)
    }

    /// Before a launch the runtime checks the block against `__launch_bounds__`, and whether the
    /// device supports cooperative launches; it returns `hipErrorLaunchFailure` if a check fails.
    /// It returns `hipErrorContextIsDestroyed` for an unknown stream or array. Neither changes the
    /// device (`hipamd/src/hip_module.cpp`, `hip_stream.cpp` and `hip_memory.cpp` of clr).
    fn lasting(&self, code: i32) -> Lasting {
        match code {
            REFUSED_LAUNCH => Lasting::Unclear,
            UNKNOWN_HANDLE => Lasting::No,
            code => common_lasting(code),
        }
    }

    fn explain(&self, code: i32) -> Option<&'static str> {
        match code {
            REFUSED_LAUNCH => Some("the runtime refused the launch"),
            UNKNOWN_HANDLE => {
                Some("the stream or array no longer exists, or belongs to another driver")
            }
            _ => None,
        }
    }

    /// Clears the thread's last failure. Other libraries check their kernel launches with
    /// `hipGetLastError`, which returns the thread's last failed call, regardless of the caller. Up
    /// to ROCm 6 the next successful call erases it; since 7 it stays until it is read.
    fn forget_failure(&self) {
        // SAFETY: no argument.
        unsafe { (self.calls.last_error)() };
    }

    /// Decodes `HIP_VERSION`: ten million times the major version plus a hundred thousand times the
    /// minor.
    fn version(&self, driver_version: c_int) -> i32 {
        driver_version / 10_000_000 * 1000 + driver_version / 100_000 % 100 * 10
    }

    fn device_attribute(&self, number: i32) -> Option<c_int> {
        attribute::of_hip(number)
    }

    /// Returns the flag that ROCm has since version 6; older runtimes accept only 0.
    fn ipc_open_flags(&self) -> c_uint {
        match self.calls.properties {
            Some(_) => sys::hipIpcMemLazyEnablePeerAccess,
            None => 0,
        }
    }

    fn retain_context(&self, device: c_int) -> (c_int, Handle) {
        (Status::SUCCESS, device as Handle + 1)
    }

    fn release_context(&self, _device: c_int) -> c_int {
        Status::SUCCESS
    }

    fn reset_context(&self, device: c_int) -> c_int {
        let (code, previous) = self.current();
        if code != Status::SUCCESS {
            return code;
        }
        let code = self.set_current(device as Handle + 1);
        if code != Status::SUCCESS {
            return code;
        }
        // SAFETY: no argument.
        let code = unsafe { (self.calls.reset)() };
        let back = self.own(self.set_current(previous));
        if code == Status::SUCCESS { back } else { code }
    }

    #[inline]
    fn current(&self) -> (c_int, Handle) {
        let mut device = 0;
        // SAFETY: the number is written before the call returns.
        let code = unsafe { (self.calls.device)(&mut device) };
        (code, device as Handle + 1)
    }

    fn set_current(&self, context: Handle) -> c_int {
        match context.checked_sub(1) {
            // SAFETY: the runtime returned the number.
            Some(device) => unsafe { (self.calls.set_device)(device as c_int) },
            None => Status::SUCCESS,
        }
    }

    fn architecture(&self, _calls: &Calls, device: c_int) -> Result<String> {
        let (code, name) = match (self.calls.properties, self.calls.old_properties) {
            (Some(read), _) => Hip::property(read, device, |it| &it.gcnArchName),
            (None, Some(read)) => Hip::property(read, device, |it| &it.gcnArchName),
            (None, None) => (NO_SYMBOL, String::new()),
        };
        if code == Status::SUCCESS { Ok(name) } else { Err(self.error("architecture", code, "")) }
    }

    fn is_architecture(&self, text: &str) -> bool {
        hiprtc::is_target(text)
    }

    unsafe fn copy_rows(&self, transfer: &Transfer, stream: Handle) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { copies::rows(&self.calls, transfer, stream) }
    }

    /// Returns false: the runtime copies rows with a kernel that reads the host's memory later,
    /// when it runs.
    fn reads_rows_at_once(&self) -> bool {
        false
    }

    unsafe fn copy_peer(
        &self,
        destination: (u64, c_int, Handle),
        source: (u64, c_int, Handle),
        bytes: usize,
        stream: Handle,
    ) -> c_int {
        let ((to, to_device, _), (from, from_device, _)) = (destination, source);
        // SAFETY: the caller's promise.
        unsafe { (self.calls.copy_peer)(to, to_device, from, from_device, bytes, stream) }
    }

    fn texture_attribute(&self) -> Option<(DeviceAttribute, &'static str)> {
        let number = sys::hipDeviceAttribute_t::hipDeviceAttributeImageSupport;
        Some((DeviceAttribute(number as i32), "hipDeviceAttributeImageSupport"))
    }

    fn check_array(&self, shape: &ArrayShape) -> Result<()> {
        if shape.cubemap {
            return Err(Error::unsupported("create_array", "HIP has no cubemaps; use six layers"));
        }
        Ok(())
    }

    /// Refuses different modes for different axes: the runtime uses the mode of x for all
    /// (`hipamd/src/hip_texture.cpp` of clr).
    fn check_texture(&self, resource: &TextureResource, sampling: &Sampling) -> Result<()> {
        let modes = &sampling.effective_modes()[..resource.axes()];
        if modes.iter().all(|mode| *mode == modes[0]) {
            return Ok(());
        }
        Err(Error::unsupported(
            "create_texture",
            format!(
                "address is {modes:?}; HIP reads all axes by one mode: give x, y and z the same"
            ),
        ))
    }

    unsafe fn copy_array(&self, copy: &ArrayCopy, stream: Handle) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { copies::copy(&self.calls, copy, stream) }
    }

    fn enable_peer(&self, device: c_int, _context: Handle) -> c_int {
        // SAFETY: the runtime returned the number.
        self.own(self.calls.enable_peer.map_or(NO_SYMBOL, |enable| unsafe { enable(device, 0) }))
    }

    fn disable_peer(&self, device: c_int, _context: Handle) -> c_int {
        // SAFETY: the runtime returned the number.
        self.own(self.calls.disable_peer.map_or(NO_SYMBOL, |disable| unsafe { disable(device) }))
    }

    /// Returns true if the runtime knows an address. For an unknown address, some runtimes return a failure,
    /// and others a memory type, whose number depends on the runtime. Only a known address makes them return
    /// addresses.
    fn knows(&self, address: u64) -> bool {
        let mut all = MaybeUninit::<sys::hipPointerAttribute_t>::zeroed();
        // SAFETY: the struct has the header's layout; the runtime only looks up the address.
        let code =
            unsafe { (self.calls.pointer_attributes)(all.as_mut_ptr(), address as *const c_void) };
        // SAFETY: zeros are valid for every field.
        let all = unsafe { all.assume_init() };
        let known = !all.devicePointer.is_null() || !all.hostPointer.is_null();
        self.own(code) == Status::SUCCESS && known
    }

    fn compiler(&self) -> Result<Arc<dyn Compiler>> {
        Ok(self.compiler.clone())
    }

    fn blas(&self) -> Result<Option<Arc<dyn Blas>>> {
        rocblas::find(&self.blas, self.file.as_deref())
    }

    fn builtin_options(&self) -> &'static [&'static str] {
        HIPRTC_OPTIONS
    }

    fn parameters(&self, image: &[u8], target: &str) -> Option<KernelParameters> {
        metadata::parameters(image, target)
    }

    fn link(&self, inputs: &[LinkInput<'_>], _options: &LoadOptions) -> Result<Compiled> {
        let kind = inputs.first().map(|input| input.kind);
        let detail = format!(
            "input of kind {} cannot be linked, because hip links LLVM bitcode only; compile all \
             of the source together",
            kind.map_or_else(String::new, |kind| format!("{kind:?}"))
        );
        Err(Error::unsupported("link", detail))
    }
}
