//! What numpy asks an object for that is given to its functions.

use super::GPUArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

#[pymethods]
impl GPUArray {
    /// Refuses to become a numpy array by the way: `get` copies to the host.
    ///
    /// numpy asks for this wherever it meets an array that is not its own, in ufuncs as well.
    /// There is no `__array_ufunc__`: numpy's scalars and arrays then leave their operators to
    /// this class (by `__array_priority__`) before any ufunc is called.
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

    /// Answers numpy's functions about shape and dtype, and refuses all others with a hint; see
    /// `pygpu._numpy_functions`.
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
}
