//! AMD's code object manager, which hipRTC compiles with. hipRTC of ROCm 5 aborts the process for a
//! target that this library does not support, so the target is checked first.

use crate::search::SearchPaths;
use hal::library::{Library, Search};
use std::ffi::{CString, c_char, c_int};
use std::path::Path;

/// `amd_comgr_get_version`: major, minor.
type GetVersion = unsafe extern "C" fn(*mut usize, *mut usize);
/// `amd_comgr_create_action_info`: the result, a struct of one u64.
type CreateInfo = unsafe extern "C" fn(*mut u64) -> c_int;
/// `amd_comgr_action_info_set_isa_name`: the action info, the name.
type SetName = unsafe extern "C" fn(u64, *const c_char) -> c_int;
/// `amd_comgr_destroy_action_info`.
type DestroyInfo = unsafe extern "C" fn(u64) -> c_int;

/// The prefix of a target in an instruction set's name.
const PREFIX: &str = "amdgcn-amd-amdhsa--";

/// The functions that report which targets are supported.
#[derive(Debug)]
pub(crate) struct Comgr {
    version: (usize, usize),
    create: CreateInfo,
    set_name: SetName,
    destroy: DestroyInfo,
}

impl Comgr {
    /// Returns the library that the hipRTC in a file works with, if it can be found.
    pub(crate) fn beside(compiler: &Path) -> Option<Comgr> {
        let search =
            Search::new("the code object manager").candidates(SearchPaths::comgrs(compiler));
        // SAFETY: the names are AMD's library, which hipRTC also opens.
        let comgr = unsafe { search.open(Comgr::load) };
        comgr.inspect_err(|error| log::debug!("targets cannot be checked: {error}")).ok()
    }

    fn load(library: Library) -> hal::Result<Comgr> {
        let mut symbols = library.symbols();
        // SAFETY: the types come from amd_comgr.h, whose struct of one u64 is passed as a u64.
        let (version, create, set_name, destroy) = unsafe {
            (
                symbols.required::<GetVersion>("amd_comgr_get_version"),
                symbols.required::<CreateInfo>("amd_comgr_create_action_info"),
                symbols.required::<SetName>("amd_comgr_action_info_set_isa_name"),
                symbols.required::<DestroyInfo>("amd_comgr_destroy_action_info"),
            )
        };
        let all = || {
            let (mut major, mut minor) = (0, 0);
            // SAFETY: both numbers are written before the call returns.
            unsafe { version?(&mut major, &mut minor) };
            let version = (major, minor);
            Some(Comgr { version, create: create?, set_name: set_name?, destroy: destroy? })
        };
        symbols.complete(all())
    }

    /// Returns the major and minor version.
    pub(crate) fn version(&self) -> (usize, usize) {
        self.version
    }

    /// Returns true if the library makes code for a target such as `gfx90a` or
    /// `gfx90a:sramecc+:xnack-`.
    pub(crate) fn knows(&self, target: &str) -> bool {
        let Ok(name) = CString::new(format!("{PREFIX}{target}")) else { return false };
        let mut info = 0;
        // SAFETY: the result is written before the call returns.
        if unsafe { (self.create)(&mut info) } != 0 {
            // hipRTC itself reports that memory is short.
            return true;
        }
        // SAFETY: the object is live, the name ends with a zero.
        let known = unsafe { (self.set_name)(info, name.as_ptr()) } == 0;
        // SAFETY: the object is live, and not used again.
        unsafe { (self.destroy)(info) };
        known
    }
}
