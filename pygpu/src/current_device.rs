//! The backend of this process, and the current device of each thread.

use crate::errors::OrRaise;
use gpuarray::{Backend, Choice, Device, Feature, Stream};
use hal::library::add_search_directory;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A device, and the stream for work that does not name one: the default stream, or the stream of a `with`
/// block.
#[derive(Clone)]
pub(crate) struct CurrentDevice {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) stream: Arc<dyn Stream>,
}

static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
static DEFAULT: OnceLock<CurrentDevice> = OnceLock::new();

thread_local! {
    static CURRENT: RefCell<Option<CurrentDevice>> = const { RefCell::new(None) };
    /// The current device outside of each `with stream:` that this thread is in.
    static OUTSIDE: RefCell<Vec<Option<CurrentDevice>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the backend that the environment names, or the best one. It is opened once.
pub(crate) fn backend() -> PyResult<&'static Arc<dyn Backend>> {
    if let Some(backend) = BACKEND.get() {
        return Ok(backend);
    }
    add_search_directories()?;
    let opened = gpuarray::open(Choice::Auto).or_raise()?;
    #[cfg(feature = "testing")]
    let opened = crate::testing::watched(opened);
    Ok(BACKEND.get_or_init(|| opened))
}

/// Returns the backend if it has been opened already.
pub(crate) fn opened_backend() -> Option<&'static Arc<dyn Backend>> {
    BACKEND.get()
}

/// Passes this interpreter's package folders to the backends, because some packages contain compilers. The
/// folders are searched at the first compilation.
fn add_search_directories() -> PyResult<()> {
    Python::attach(|py| {
        for entry in py.import("sys")?.getattr("path")?.try_iter()? {
            // The empty entry is the folder in which the program was started.
            if let Ok(path) = entry?.extract::<PathBuf>()
                && !path.as_os_str().is_empty()
            {
                add_search_directory(path);
            }
        }
        Ok(())
    })
}

/// Returns a device by its number.
pub(crate) fn device(ordinal: usize) -> PyResult<CurrentDevice> {
    let device = backend()?.device(ordinal).or_raise()?;
    let stream = device.default_stream();
    Ok(CurrentDevice { device, stream })
}

/// Returns the device of this thread: the one of its current context, else the first.
pub(crate) fn current_device() -> PyResult<CurrentDevice> {
    if let Some(current) = CURRENT.with(|current| current.borrow().clone()) {
        return Ok(current);
    }
    if let Some(default) = DEFAULT.get() {
        return Ok(default.clone());
    }
    let first = device(0)?;
    Ok(DEFAULT.get_or_init(|| first).clone())
}

/// Returns true if kernels are compiled by the system's C++ compiler, which has its own headers, and run on
/// the processor's cores. All devices of a process belong to the same backend.
#[pyfunction]
pub(crate) fn runs_kernels_on_host() -> PyResult<bool> {
    static ON_HOST: OnceLock<bool> = OnceLock::new();
    if let Some(on_host) = ON_HOST.get() {
        return Ok(*on_host);
    }
    let on_host = current_device()?.device.features().contains(Feature::HostKernels);
    Ok(*ON_HOST.get_or_init(|| on_host))
}

/// Sets the device of this thread, for this library and for other libraries' driver calls. With `None`, the
/// thread has no device of its own.
#[pyfunction]
#[pyo3(signature = (ordinal))]
pub(crate) fn set_current_device(ordinal: Option<usize>) -> PyResult<()> {
    let chosen = ordinal.map(device).transpose()?;
    if let Some(chosen) = &chosen {
        chosen.device.make_current().or_raise()?;
    }
    CURRENT.with(|current| *current.borrow_mut() = chosen);
    Ok(())
}

/// Makes a stream the default for this thread's work until [`leave_stream`]. The driver's current context,
/// which other libraries use, does not change.
pub(crate) fn enter_stream(stream: &Arc<dyn Stream>) -> PyResult<()> {
    let device = device(stream.device_id().ordinal)?.device;
    let chosen = CurrentDevice { device, stream: stream.clone() };
    let outside = CURRENT.with(|current| current.borrow_mut().replace(chosen));
    OUTSIDE.with(|stack| stack.borrow_mut().push(outside));
    Ok(())
}

/// Restores the state before the last [`enter_stream`] of this thread.
pub(crate) fn leave_stream() -> PyResult<()> {
    let outside = OUTSIDE.with(|stack| stack.borrow_mut().pop()).ok_or_else(|| {
        PyRuntimeError::new_err("the block of the stream was entered in another thread")
    })?;
    CURRENT.with(|current| *current.borrow_mut() = outside);
    Ok(())
}

/// Returns the name of the backend that is used, or would be: the one in `PYGPU_BACKEND`, else the best one
/// available.
///
/// Returns
/// -------
/// str
///     "cuda", "hip" or "host".
///
/// Raises
/// ------
/// BackendUnavailable
///     The backend is not available here; the message lists the attempts.
///
/// Examples
/// --------
/// >>> import pygpu
/// >>> pygpu.choose_backend() in ("cuda", "hip", "host")
/// True
#[pyfunction]
pub(crate) fn choose_backend() -> PyResult<&'static str> {
    Ok(backend()?.name())
}

/// Returns how this library was built, without opening a backend.
///
/// Returns
/// -------
/// dict
///     `default_backend`, the backend that is tried first, or None; and `targets`, a list of
///     dictionaries with `name`, `compiler`, `kernels` (a number) and `bytes` for each target of
///     `PYBIND_GPU_TARGET`.
///
/// Examples
/// --------
/// >>> import pygpu
/// >>> list(pygpu.build_info())
/// ['default_backend', 'targets']
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = gpuarray::build_info();
    let preferred = Some(info.default_backend).filter(|choice| *choice != Choice::Auto);
    let targets = PyList::empty(py);
    for embedded in info.targets {
        let target = PyDict::new(py);
        target.set_item("name", embedded.name())?;
        target.set_item("compiler", embedded.compiler())?;
        target.set_item("kernels", embedded.kernel_count())?;
        target.set_item("bytes", embedded.bytes())?;
        targets.append(target)?;
    }
    let all = PyDict::new(py);
    all.set_item("default_backend", preferred.map(Choice::name))?;
    all.set_item("targets", targets)?;
    Ok(all)
}
