//! The compiler and executor of CUDA C behind a C interface, `cuda_c.h`, for the driver double.

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
        // SAFETY: what makes a sink takes bytes with it, as long as the call runs that it is given to.
        unsafe { (self.write)(self.to, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// The text at an address, with a mark in place of what is no UTF-8.
///
/// # Safety
/// It is a C string that outlives the result.
unsafe fn text<'a>(address: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(address) }.to_string_lossy()
}
