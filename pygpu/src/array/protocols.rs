//! What numpy and other processes ask an array for.

use super::GPUArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

#[pymethods]
impl GPUArray {
    /// Refuses to become a numpy array by the way: `get` copies to the host.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     Always.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        &self,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(PyTypeError::new_err(
            "a GPUArray does not become a numpy array by itself: a.get() copies it to the host. On \
             the device there are Python's operators (a + b for numpy.add(a, b)), the functions of \
             pygpu.cumath (cumath.exp(a) for numpy.exp(a)) and those of pygpu.gpuarray \
             (gpuarray.sum(a) for numpy.sum(a))",
        ))
    }

    /// Runs numpy's functions that have a counterpart here on the device, and refuses all others with
    /// a hint; see `pygpu._numpy_functions`.
    fn __array_function__<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = func.py().import("pygpu._numpy_functions")?;
        numpy.getattr("array_function")?.call1((func, types, args, kwargs))
    }

    /// Runs numpy's universal functions, and the operators of numpy's scalars, on the device; see
    /// `pygpu._numpy_functions`.
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = ufunc.py().import("pygpu._numpy_functions")?;
        let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(ufunc.py()));
        numpy.getattr("array_ufunc")?.call1((ufunc, method, inputs, kwargs))
    }

    /// Returns a descriptor with which another process opens the array's memory; see
    /// `pygpu.ipc.export`.
    ///
    /// Parameters
    /// ----------
    /// copy : bool, optional
    ///     True exports a copy, False refuses memory that cannot be shared. Without it such memory is
    ///     exported through a copy, with a warning, and other memory as it is.
    ///
    /// Returns
    /// -------
    /// pygpu.ipc.Descriptor
    ///     Plain data: an object that can be pickled, or JSON.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `copy` is False, and the memory cannot be shared.
    /// Unsupported
    ///     The device shares no memory.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import ipc
    /// >>> with ipc.empty(4).ipc_handle() as descriptor:
    /// ...     descriptor.shape
    /// (4,)
    #[pyo3(signature = (copy = None))]
    fn ipc_handle<'py>(
        slf: &Bound<'py, Self>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pygpu.ipc")?.getattr("export")?.call1((slf, copy))
    }
}
