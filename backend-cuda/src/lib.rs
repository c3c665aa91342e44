//! The CUDA backend: the driver's functions, found at run time, as the table of
//! [`driver`].
//!
//! Types and signatures come from `cudarc`. Its loader is not used: it panics if a library or
//! symbol is missing, and returns statuses as a closed enumeration.

mod abi;
mod copies;
mod cublas;
pub mod nvrtc;
mod table;
mod vendor;

use driver::{self};
use hal::{Backend, Result, environment};
use std::path::Path;
use std::sync::Arc;
use vendor::Cuda;

/// The environment variable that names the driver's library.
const LIBRARY_VARIABLE: &str = "PYGPU_CUDA_LIBRARY";

/// Candidates for the driver's file: names for the loader, and WSL's path.
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];
#[cfg(windows)]
const LIBRARIES: &[&str] = &["nvcuda.dll"];

/// Opens NVIDIA's driver. Creates no context.
///
/// # Errors
/// `BackendUnavailable` with every path and symbol tried, or with the driver's status if the driver
/// cannot be initialised or finds no device.
pub fn open() -> Result<Arc<dyn Backend>> {
    let search = driver::search::<Cuda>()
        .explicit(LIBRARY_VARIABLE, environment::trusted(LIBRARY_VARIABLE))
        .candidates(LIBRARIES.iter().copied())
        .advice("it comes with NVIDIA's GPU driver");
    // SAFETY: the names are NVIDIA's driver, or the user chose the file.
    unsafe { driver::open::<Cuda>(&search) }
}

/// Opens the driver in a file.
///
/// # Errors
/// As for [`open`].
///
/// # Safety
/// The file is NVIDIA's driver, or a library that behaves like it.
pub unsafe fn open_file(path: &Path) -> Result<Arc<dyn Backend>> {
    // SAFETY: the caller's promise.
    unsafe { driver::open_file::<Cuda>(path) }
}

/// Returns the driver symbols that this crate looks up: the required ones, and the optional ones,
/// each of which makes one call unsupported if it is missing.
pub fn symbols() -> (Vec<&'static str>, Vec<&'static str>) {
    driver::symbols::<Cuda>()
}
