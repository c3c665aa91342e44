//! The HIP backend: the runtime's functions, found at run time, as the table of
//! [`hal::driver`]. One build runs on ROCm 5, 6 and 7.
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
#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    reason = "made from headers"
)]
mod bindings;
mod comgr;
pub mod hiprtc;
pub mod metadata;
mod options;
mod search;
mod table;
mod vendor;

use hal::driver::calls::Calls;
use hal::library::{Library, Search};
use hal::{Backend, Result};
use hiprtc::Hiprtc;
use search::{DRIVER_VARIABLE, SearchPaths};
use std::path::Path;
use std::sync::Arc;
use table::{NAMES, OwnCalls};
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
    let search = Search::new("the HIP runtime")
        .explicit(DRIVER_VARIABLE, paths.driver.clone())
        .candidates(paths.drivers())
        .advice(paths.advice("it", DRIVER_VARIABLE));
    // SAFETY: the names are those of AMD's runtime, or the user chose the file.
    unsafe { search.open(open_library) }
}

/// Opens the runtime in a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// The file is AMD's HIP runtime, or a library that behaves like it.
pub unsafe fn open_file(path: &Path) -> Result<Arc<dyn Backend>> {
    let search = Search::new("the HIP runtime").candidates([path]);
    // SAFETY: the caller's promise.
    unsafe { search.open(open_library) }
}

/// Returns the symbols of the runtime that this crate looks for: those that it needs, and those
/// without which one call is unsupported.
pub fn symbols() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut required = NAMES.required();
    required.extend(OwnCalls::REQUIRED);
    let mut optional = NAMES.optional();
    optional.extend(OwnCalls::OPTIONAL);
    (required, optional)
}

fn open_library(library: Library) -> Result<Arc<dyn Backend>> {
    // SAFETY: the types of both tables are checked against the bindings.
    let (calls, own) = unsafe { (Calls::find(&NAMES, library)?, OwnCalls::find(library)?) };
    let compiler = Arc::new(Hiprtc::new(library.file(NAMES.init)));
    // SAFETY: the table was found in the library that the program named, or in the runtime,
    // and is checked against the bindings.
    unsafe { hal::driver::open(Box::new(Hip { calls: own, compiler }), calls) }
}
