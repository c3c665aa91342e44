//! Sorting, and elements picked by masks.

use super::arguments::expect_array;
use super::indexing::advanced;
use super::{GPUArray, run_on, wrap_like};
use gpuarray::Order;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Object<'py> = PyResult<Bound<'py, PyAny>>;
type OptionalAny<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The algorithms that numpy has names for. Every sort here is stable, as all of them may be.
const KINDS: [&str; 4] = ["quicksort", "heapsort", "mergesort", "stable"];

fn check_kind(kind: Option<&str>) -> PyResult<()> {
    match kind {
        Some(kind) if !KINDS.contains(&kind) => {
            Err(PyValueError::new_err(format!("kind is {kind:?}; allowed are None and {KINDS:?}")))
        }
        _ => Ok(()),
    }
}

/// The elements of `a` in ascending order along an axis, or with `indices` the indices that sort
/// them; along one axis of all elements without an axis.
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
        // As in numpy, what has no axes has indices along axis 0 or -1, but is not sorted along it.
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
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional
    ///     The axis.
    /// kind : {"quicksort", "mergesort", "heapsort", "stable"}, optional
    ///     Accepted as by numpy; every sort is stable.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The array has no such axis, or `kind` is another name.
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
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int or None, optional
    ///     The axis; with None the elements are read as along one axis.
    /// kind : {"quicksort", "mergesort", "heapsort", "stable"}, optional
    ///     Accepted as by numpy; every sort is stable.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The indices, of the array's shape, or of one axis with None.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The array has no such axis, or `kind` is another name.
    /// TypeError
    ///     The elements are records.
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

    /// Returns the indices of the elements that are not zero, as `gpuarray.nonzero`.
    ///
    /// PyCUDA has no such method.
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
    ///     The array has no axes.
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

    /// Returns the elements along an axis at which a condition is true, as `gpuarray.compress`.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// condition : GPUArray or sequence of bool
    ///     One axis, not longer than `axis`.
    /// axis : int, optional
    ///     The axis; without it the elements are read as along one.
    /// out : GPUArray, optional
    ///     Receives the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The elements, in memory of their own. The call waits for their number.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `condition` has not one axis.
    /// IndexError
    ///     A true element of `condition` lies outside the axis.
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
