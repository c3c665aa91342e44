//! The CUDA C compiler and executor with a C interface, `cuda_c.h`, for the fake drivers.

mod cache;
mod compile;
mod run;
mod status;

use std::ffi::{CStr, c_char, c_void};

/// `CudaCSink`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink {
    to: *mut c_void,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
}

impl Sink {
    fn put(self, bytes: &[u8]) {
        // SAFETY: the sink's creator keeps it valid for the duration of the call that it is passed to.
        unsafe { (self.write)(self.to, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Returns the text at an address, with replacement characters for invalid UTF-8.
///
/// # Safety
/// The address is a C string that outlives the result.
unsafe fn text<'a>(address: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(address) }.to_string_lossy()
}
