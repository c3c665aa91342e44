//! The HIP backend: the runtime's functions, found at run time, as the table of
//! [`driver`]. One build runs on ROCm 5, 6 and 7.
//!
//! Types and signatures are those of the bindings, which bindgen made of real headers; the
//! tests hold them against the headers of four versions. What the versions do differently:
//!
//! - memory types have other numbers since 6: none is looked at;
//! - `HIP_MEMCPY3D` has wider members since 6: `hipMemcpy3DAsync` takes another struct;
//! - `hipGetDeviceProperties` fills another struct since 6, under another symbol;
//! - the flag of `hipIpcOpenMemHandle` has had a value since 6;
//! - a failed call is remembered until somebody asks, since 7: it is asked after each failure;
//! - the handle 1 for the legacy default stream came with 6.2: it is replaced by 0;
//! - hipRTC is inside the runtime in 5, in a library of its own since;
//! - functions that came later are looked for, and done without.

mod abi;
mod attribute;
mod bindings;
mod comgr;
mod copies;
pub mod hiprtc;
pub mod metadata;
mod options;
mod rocblas;
mod search;
mod table;
mod vendor;

use driver::{self};
use hal::{Backend, Result};
use search::{DRIVER_VARIABLE, SearchPaths};
use std::path::Path;
use std::sync::Arc;
use vendor::Hip;

/// Opens AMD's HIP runtime. Makes no context.
///
/// The file in `PYGPU_HIP_LIBRARY` alone if that is set, else the first of: a runtime that the
/// process has loaded already, the loader's own folders, `ROCM_PATH`, `HIP_PATH` and
/// `/opt/rocm`, and the directories of [`hal::library::add_search_directory`].
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the runtime's status if it
/// cannot be initialised or has no device.
pub fn open() -> Result<Arc<dyn Backend>> {
    let paths = SearchPaths::of_environment();
    let search = driver::search::<Hip>()
        .explicit(DRIVER_VARIABLE, paths.driver.clone())
        .candidates(paths.drivers())
        .advice(paths.advice("it", DRIVER_VARIABLE));
    // SAFETY: the names are those of AMD's runtime, or the user chose the file.
    unsafe { driver::open::<Hip>(&search) }
}

/// Opens the runtime in a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// The file is AMD's HIP runtime, or a library that behaves like it.
pub unsafe fn open_file(path: &Path) -> Result<Arc<dyn Backend>> {
    // SAFETY: the caller's promise.
    unsafe { driver::open_file::<Hip>(path) }
}

/// Returns the symbols of the runtime that this crate looks for: those that it needs, and those
/// without which one call is unsupported.
pub fn symbols() -> (Vec<&'static str>, Vec<&'static str>) {
    driver::symbols::<Hip>()
}
