//! The calls that work differently in CUDA than in HIP.

use crate::copies;
use crate::cublas;
use crate::nvrtc::Nvrtc;
use crate::table::{NAMES, OwnCalls};
use codegen::compile::{Compiled, Compiler, JitOptions, Target};
use codegen::source::NVRTC_OPTIONS;
use cudarc::driver::sys;
use driver::DriverLibrary;
use driver::blas::{Blas, BlasLibrary};
use driver::calls::{Calls, Handle, Names};
use driver::vendor::{NO_SYMBOL, Vendor};
use hal::library::Library;
use hal::texture::ArrayCopy;
use hal::{Api, Error, Feature, LinkInput, LinkKind, LoadOptions, Result, Status, Transfer};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

/// NVIDIA's driver.
#[derive(Debug)]
pub(crate) struct Cuda {
    calls: OwnCalls,
    compiler: Arc<Nvrtc>,
    blas: BlasLibrary,
    /// The version as `cuDriverGetVersion` encodes it; 0 if unknown.
    version: c_int,
}

impl DriverLibrary for Cuda {
    const LIBRARY: &'static str = "the CUDA driver";
    const NAMES: &'static Names = &NAMES;
    type Own = OwnCalls;

    fn new(own: OwnCalls, calls: &Calls, _library: Library) -> Cuda {
        let mut version = 0;
        // SAFETY: the number is written before the call returns; the call works without
        // initialisation.
        unsafe { (calls.driver_version)(&mut version) };
        Cuda {
            calls: own,
            compiler: Arc::new(Nvrtc::new(version)),
            blas: BlasLibrary::default(),
            version,
        }
    }
}

/// Returns the driver's text for a status number.
fn describe(
    read: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    code: c_int,
) -> Option<&'static str> {
    let mut text = std::ptr::null();
    // SAFETY: the driver leaves the pointer unchanged or stores a text that lives as long as its
    // library, which is never unloaded.
    let code = unsafe { read(code, &mut text) };
    if code != Status::SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// The state of a linker, destroyed on drop.
struct Link<'a> {
    cuda: &'a Cuda,
    state: Handle,
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.cuda.calls.link_destroy {
            // SAFETY: the state is live, and nothing else uses it.
            unsafe { destroy(self.state) };
        }
    }
}

impl Vendor for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn api(&self) -> Api {
        Api::Cuda
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        describe(self.calls.error_name?, code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        describe(self.calls.error_string?, code)
    }

    fn features(&self) -> &'static [Feature] {
        &[Feature::Ptx, Feature::Linker, Feature::ExternalContexts]
    }

    fn retain_context(&self, device: c_int) -> (c_int, Handle) {
        let mut context = 0;
        // SAFETY: the handle is written before the call returns.
        let code = unsafe { (self.calls.retain)(&mut context, device) };
        (code, context)
    }

    fn release_context(&self, device: c_int) -> c_int {
        // SAFETY: balances a call of `retain_context`.
        unsafe { (self.calls.release)(device) }
    }

    fn reset_context(&self, device: c_int) -> c_int {
        // SAFETY: the driver returned the device's number.
        unsafe { (self.calls.reset)(device) }
    }

    #[inline]
    fn current(&self) -> (c_int, Handle) {
        let mut context = 0;
        // SAFETY: the handle is written before the call returns.
        let code = unsafe { (self.calls.current)(&mut context) };
        (code, context)
    }

    #[inline]
    fn number_of(&self, context: Handle) -> (c_int, u64) {
        let mut number = 0;
        // SAFETY: the driver returned the handle; the number is written before the call returns.
        let code =
            self.calls.number.map_or(NO_SYMBOL, |read| unsafe { read(context, &mut number) });
        (code, number)
    }

    fn set_current(&self, context: Handle) -> c_int {
        // SAFETY: the driver returned the handle.
        unsafe { (self.calls.set_current)(context) }
    }

    fn architecture(&self, calls: &Calls, device: c_int) -> Result<String> {
        let number = |attribute: sys::CUdevice_attribute| {
            let mut value = 0;
            // SAFETY: the number is written before the call returns.
            match unsafe { (calls.device_attribute)(&mut value, attribute as c_int, device) } {
                Status::SUCCESS => Ok(value),
                code => Err(self.error("architecture", code, "")),
            }
        };
        use sys::CUdevice_attribute_enum as Attribute;
        let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(format!("sm_{major}{minor}"))
    }

    fn is_architecture(&self, text: &str) -> bool {
        matches!(text.parse(), Ok(Target::Cuda { .. }))
    }

    unsafe fn copy_rows(&self, transfer: &Transfer, stream: Handle) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { copies::rows(&self.calls, transfer, stream) }
    }

    unsafe fn copy_peer(
        &self,
        destination: (u64, c_int, Handle),
        source: (u64, c_int, Handle),
        bytes: usize,
        stream: Handle,
    ) -> c_int {
        let ((to, _, to_context), (from, _, from_context)) = (destination, source);
        // SAFETY: the caller's promise.
        unsafe { (self.calls.copy_peer)(to, to_context, from, from_context, bytes, stream) }
    }

    unsafe fn copy_array(&self, copy: &ArrayCopy, stream: Handle) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { copies::copy(&self.calls, copy, stream) }
    }

    fn enable_peer(&self, _device: c_int, context: Handle) -> c_int {
        // SAFETY: the driver returned the handle.
        self.calls.enable_peer.map_or(NO_SYMBOL, |enable| unsafe { enable(context, 0) })
    }

    fn disable_peer(&self, _device: c_int, context: Handle) -> c_int {
        // SAFETY: the driver returned the handle.
        self.calls.disable_peer.map_or(NO_SYMBOL, |disable| unsafe { disable(context) })
    }

    fn knows(&self, address: u64) -> bool {
        let mut kind = 0_u32;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as c_int;
        // SAFETY: this attribute is an unsigned int; the driver only looks up the address.
        let code =
            unsafe { (self.calls.pointer_attribute)((&raw mut kind).cast(), attribute, address) };
        code == Status::SUCCESS
    }

    fn compiler(&self) -> Result<Arc<dyn Compiler>> {
        Ok(self.compiler.clone())
    }

    fn blas(&self) -> Result<Option<Arc<dyn Blas>>> {
        cublas::find(&self.blas, self.version / 1000)
    }

    fn builtin_options(&self) -> &'static [&'static str] {
        NVRTC_OPTIONS
    }

    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        let calls = &self.calls;
        let (Some(create), Some(add), Some(complete)) =
            (calls.link_create, calls.link_add, calls.link_complete)
        else {
            return Err(Error::unsupported("link", "this cuda driver has no linker"));
        };
        let mut jit = JitOptions::new(options);
        let (count, keys, values) = jit.as_arguments();
        let mut state = 0;
        // SAFETY: options and logs live until the linker is destroyed, below.
        let code = unsafe { create(count, keys, values, &mut state) };
        if code != Status::SUCCESS {
            return Err(self.error("link", code, ""));
        }
        let link = Link { cuda: self, state };
        let failed = |code| self.error("link", code, &jit.errors());
        for input in inputs {
            use sys::CUjitInputType as Kind;
            let kind = match input.kind {
                LinkKind::Cubin => Kind::CU_JIT_INPUT_CUBIN,
                LinkKind::Ptx => Kind::CU_JIT_INPUT_PTX,
                LinkKind::Fatbin => Kind::CU_JIT_INPUT_FATBINARY,
                LinkKind::Object => Kind::CU_JIT_INPUT_OBJECT,
                LinkKind::Library => Kind::CU_JIT_INPUT_LIBRARY,
                other => {
                    return Err(Error::unsupported("link", format!("input of kind {other:?}")));
                }
            };
            let name = CString::new(input.name).map_err(|_| {
                Error::invalid("link", format!("name is {:?}, with a zero in it", input.name))
            })?;
            // PTX is text that ends with a zero byte.
            let mut data = input.data.to_vec();
            if input.kind == LinkKind::Ptx && data.last() != Some(&0) {
                data.push(0);
            }
            let null: *mut c_void = std::ptr::null_mut();
            // SAFETY: data and name outlive the call, and the driver copies the parts that it
            // keeps.
            let code = unsafe {
                add(
                    link.state,
                    kind as c_int,
                    data.as_mut_ptr().cast(),
                    data.len(),
                    name.as_ptr(),
                    0,
                    null.cast(),
                    null.cast(),
                )
            };
            if code != Status::SUCCESS {
                return Err(failed(code));
            }
        }
        let (mut image, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the results are written before the call returns.
        let code = unsafe { complete(link.state, &mut image, &mut bytes) };
        if code != Status::SUCCESS || image.is_null() {
            return Err(failed(code));
        }
        // SAFETY: the linker owns `bytes` bytes at this address until it is destroyed.
        let code = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec();
        Ok(Compiled { code, log: jit.info(), lowered: Vec::new() })
    }
}
