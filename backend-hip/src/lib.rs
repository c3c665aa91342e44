//! The HIP backend: the runtime's functions, found at run time, as the table of
//! [`driver`]. One build runs on ROCm 5, 6 and 7.
//!
//! Types and signatures come from the bindings, which bindgen made from real headers; the tests
//! compare them with the headers of four versions. The versions differ, and the backend handles it,
//! as follows:
//!
//! - memory types were renumbered in 6: the backend reads none of the numbers;
//! - `HIP_MEMCPY3D` has wider members since 6: `hipMemcpy3DAsync` is used, which takes another
//!   struct;
//! - `hipGetDeviceProperties` fills another struct since 6, under another symbol;
//! - `hipIpcOpenMemHandle` has a flag since 6, and accepts only 0 before;
//! - since 7 a failed call is remembered until `hipGetLastError` reads it: the backend reads it
//!   after each failure;
//! - handle 1 for the legacy default stream was added in 6.2: the backend passes 0 instead;
//! - hipRTC is part of the runtime in 5, and a separate library since;
//! - functions that were added later are optional.

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

/// Opens AMD's HIP runtime. Creates no context.
///
/// If `PYGPU_HIP_LIBRARY` is set, only that file is tried. Otherwise the runtime is the first of: a
/// runtime that the process has already loaded, the loader's folders, `ROCM_PATH`, `HIP_PATH` and
/// `/opt/rocm`, and the directories of [`hal::library::add_search_directory`].
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the runtime's status if the
/// runtime cannot be initialised or finds no device.
pub fn open() -> Result<Arc<dyn Backend>> {
    let paths = SearchPaths::of_environment();
    let search = driver::search::<Hip>()
        .explicit(DRIVER_VARIABLE, paths.driver.clone())
        .candidates(paths.drivers())
        .advice(paths.advice("it", DRIVER_VARIABLE));
    // SAFETY: the names are AMD's runtime, or the user chose the file.
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

/// Returns the runtime symbols that this crate looks up: the required ones, and the optional ones,
/// each of which makes one call unsupported if it is missing.
pub fn symbols() -> (Vec<&'static str>, Vec<&'static str>) {
    driver::symbols::<Hip>()
}
