//! Sorting, and selection of elements by masks.

use super::arguments::expect_array;
use super::indexing::advanced;
use super::{GPUArray, Object, OptionalAny, run_on, wrap_like};
use gpuarray::Order;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The algorithms that numpy names. Every sort here is stable, which all of them are allowed to be.
const KINDS: [&str; 4] = ["quicksort", "heapsort", "mergesort", "stable"];

fn check_kind(kind: Option<&str>) -> PyResult<()> {
    match kind {
        Some(kind) if !KINDS.contains(&kind) => {
            Err(PyValueError::new_err(format!("kind is {kind:?}; allowed are None and {KINDS:?}")))
        }
        _ => Ok(()),
    }
}

/// Returns the elements of `a` in ascending order along an axis, or with `indices` the indices that
/// sort them. Without an axis, the elements are read as one-dimensional.
#[pyfunction]
#[pyo3(
    signature = (a, axis = Some(-1), kind = None, indices = false),
    text_signature = "(a, axis=-1, kind=None, indices=False)"
)]
pub(crate) fn sorted<'py>(
    a: &Bound<'py, PyAny>,
    axis: Option<isize>,
    kind: Option<&str>,
    indices: bool,
) -> Object<'py> {
    check_kind(kind)?;
    let a = expect_array("a", a)?;
    let array = a.get().array()?;
    let result = run_on(a, array.size(), || {
        // As in numpy, an array without axes has sorting indices along axis 0 or -1, but cannot be
        // sorted along it.
        let is_flat =
            axis.is_none() || (indices && array.ndim() == 0 && matches!(axis, Some(0 | -1)));
        let flat = is_flat.then(|| array.reshape(&[-1], Order::C)).transpose()?;
        let (array, axis) = (flat.as_ref().unwrap_or(array), axis.unwrap_or(0));
        if indices { array.argsort(axis) } else { array.sort(axis) }
    })?;
    let descr = (!indices).then(|| a.get().content().map(|it| it.descr.clone_ref(a.py())));
    wrap_like(a, result, descr.transpose()?)
}

#[pymethods]
impl GPUArray {
    /// Sorts the elements in place, in ascending order along an axis.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional. The axis.
    /// kind : {"quicksort", "mergesort", "heapsort", "stable"}, optional
    ///     Accepted as by numpy; every sort is stable.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The axis does not exist, or `kind` is another name.
    /// TypeError
    ///     The elements are records.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.to_gpu(np.array([3, 1, 2]))
    /// >>> a.sort()
    /// >>> a.get()
    /// array([1, 2, 3])
    #[pyo3(signature = (axis = -1, kind = None), text_signature = "($self, axis=-1, kind=None)")]
    fn sort(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = crate::integer::argument::axis)] axis: isize,
        kind: Option<&str>,
    ) -> PyResult<()> {
        check_kind(kind)?;
        let array = slf.get().array()?;
        run_on(slf, array.size(), || array.assign(&array.sort(axis)?))
    }

    /// Returns the indices that sort the elements along an axis, as an array of int64.
    ///
    /// PyCUDA does not have this method.
    ///
    /// With None as the ``axis``, the elements are read as one-dimensional, and so is the result. ``kind`` is as in
    /// :meth:`sort`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.to_gpu(np.array([3, 1, 2])).argsort().get()
    /// array([1, 2, 0])
    #[pyo3(
        signature = (axis = Some(-1), kind = None),
        text_signature = "($self, axis=-1, kind=None)"
    )]
    fn argsort<'py>(
        slf: &Bound<'py, Self>,
        axis: Option<isize>,
        kind: Option<&str>,
    ) -> Object<'py> {
        sorted(slf.as_any(), axis, kind, true)
    }

    /// Returns the indices of the nonzero elements, like `gpuarray.nonzero`.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Returns
    /// -------
    /// tuple of GPUArray
    ///     The indices along each axis, of int64. The call waits for their number.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     The array has zero axes.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.to_gpu(np.array([3, 0, 2])).nonzero()[0].get()
    /// array([0, 2])
    fn nonzero<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        advanced(slf.py())?.getattr("nonzero")?.call1((slf,))
    }

    /// Returns the elements along an axis at which a condition is true, like `gpuarray.compress`.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// condition : GPUArray or sequence of bool. One-dimensional, not longer than `axis`.
    /// axis : int, optional. The axis; if omitted, the elements are read as one-dimensional.
    /// out : GPUArray, optional. Receives the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The elements, in new memory. The call waits for their number.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `condition` is not one-dimensional.
    /// IndexError
    ///     A true element of `condition` is outside the axis.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).compress([True, False, True]).get()
    /// array([0, 2])
    #[pyo3(signature = (condition, axis = None, out = None))]
    fn compress<'py>(
        slf: &Bound<'py, Self>,
        condition: &Bound<'py, PyAny>,
        axis: Option<isize>,
        out: OptionalAny<'_, 'py>,
    ) -> Object<'py> {
        advanced(slf.py())?.getattr("compress")?.call1((condition, slf, axis, out))
    }
}
