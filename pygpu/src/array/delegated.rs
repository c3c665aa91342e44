//! Methods that are functions of the module `gpuarray` of the same name.

use super::GPUArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Calls a function of the module with the array as its first argument.
fn call<'py>(
    slf: &Bound<'py, GPUArray>,
    function: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let first = slf.clone().into_any();
    let all: Vec<_> = std::iter::once(first).chain(args.iter()).collect();
    let all = PyTuple::new(py, all)?;
    py.import("pygpu.gpuarray")?.getattr(function)?.call(all, kwargs)
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $method:ident $signature:literal;)*) => {
        #[pymethods]
        impl GPUArray {
            $(
                $(#[doc = $doc])+
                #[pyo3(signature = (*args, **kwargs), text_signature = $signature)]
                fn $method<'py>(
                    slf: &Bound<'py, Self>,
                    args: &Bound<'py, PyTuple>,
                    kwargs: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    call(slf, stringify!($method), args, kwargs)
                }
            )*
        }
    };
}

methods! {
    /// Returns the index of the smallest element, along an axis or of all; of the first NaN if any
    /// element is.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional
    ///     The axis; without it the elements are read as along one axis.
    /// out : GPUArray, optional
    ///     Receives the result; it has the shape of the result.
    /// keepdims : bool
    ///     Whether the axis stays, with extent 1.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The first of the indices, of dtype int64.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     There is no such axis, `out` has another shape, or there are no elements to choose from.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).argmin().get()
    /// array(0)
    argmin "($self, axis=None, out=None, *, keepdims=False)";
    /// Returns the index of the largest element, along an axis or of all; of the first NaN if any
    /// element is.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional
    ///     The axis; without it the elements are read as along one axis.
    /// out : GPUArray, optional
    ///     Receives the result; it has the shape of the result.
    /// keepdims : bool
    ///     Whether the axis stays, with extent 1.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The first of the indices, of dtype int64.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     There is no such axis, `out` has another shape, or there are no elements to choose from.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).argmax().get()
    /// array(2)
    argmax "($self, axis=None, out=None, *, keepdims=False)";
    /// Returns the running sums along an axis.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional
    ///     The axis; without it all elements are read as along one axis.
    /// dtype : dtype, optional
    ///     What elements are added in; without it the array's own, small integers widened.
    /// out : GPUArray, optional
    ///     Receives the result; the array itself is allowed.
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// allocator : callable, optional
    ///     Where the result's memory comes from.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The sums up to each element, itself included.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     There is no such axis, or `out` has another shape.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(4).cumsum().get()
    /// array([0, 1, 3, 6])
    cumsum "($self, axis=None, dtype=None, out=None, *, stream=None, allocator=None)";
    /// Returns the running products along an axis.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis : int, optional
    ///     The axis; without it all elements are read as along one axis.
    /// dtype : dtype, optional
    ///     What elements are multiplied in; without it the array's own, small integers widened.
    /// out : GPUArray, optional
    ///     Receives the result; the array itself is allowed.
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// allocator : callable, optional
    ///     Where the result's memory comes from.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The products up to each element, itself included.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     There is no such axis, or `out` has another shape.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(1, 4).cumprod().get()
    /// array([1, 2, 6])
    cumprod "($self, axis=None, dtype=None, out=None, *, stream=None, allocator=None)";
    /// Returns the elements, or the bounds where these are nearer to the others.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// a_min, a_max : number or GPUArray, optional
    ///     The smallest and the largest value of the result; None is no bound.
    /// out : GPUArray, optional
    ///     Receives the result; the array itself is allowed.
    /// min, max : number or GPUArray, optional
    ///     Other names of the bounds.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The larger bound where the smaller one is above it; NaN where the element is.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     A bound is neither an array nor a number, or the elements are records.
    /// ValueError
    ///     A bound is given twice, or the shapes do not broadcast, to each other or to that of `out`.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(4).clip(1, 2).get()
    /// array([1, 1, 2, 2])
    clip "($self, a_min=None, a_max=None, out=None, *, min=None, max=None)";
    /// Repeats each element.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// repeats : int
    ///     How often: one number for all elements, unlike numpy's, which may be one for each.
    /// axis : int, optional
    ///     The axis along which copies follow each other; without it the elements are read as along
    ///     one axis.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     A new array, its extent along the axis `repeats` times as large.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records, or `repeats` is no whole number.
    /// ValueError
    ///     `repeats` is negative, or there is no such axis.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(2).repeat(2).get()
    /// array([0, 0, 1, 1])
    repeat "($self, repeats, axis=None)";
    /// Returns the view with two axes exchanged.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// axis1, axis2 : int
    ///     The axes.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The view.
    ///
    /// Raises
    /// ------
    /// IndexError, ValueError
    ///     There is no such axis: numpy's `AxisError` is both.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.zeros((2, 3)).swapaxes(0, 1).shape
    /// (3, 2)
    swapaxes "($self, axis1, axis2)";
    /// Returns the diagonal of two axes.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// offset : int
    ///     How far the diagonal is above the main one.
    /// axis1, axis2 : int
    ///     The axes; the diagonal is the last axis of the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     A view, which can be written, unlike numpy's.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The array has fewer axes than two or no such axis, or both axes are the same.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.eye(2).diagonal().get()
    /// array([1., 1.])
    diagonal "($self, offset=0, axis1=0, axis2=1)";
    /// Returns the sum along a diagonal.
    ///
    /// PyCUDA has no such method.
    ///
    /// Parameters
    /// ----------
    /// offset : int
    ///     How far the diagonal is above the main one.
    /// axis1, axis2 : int
    ///     The axes of the diagonal.
    /// dtype : dtype, optional
    ///     What elements are added in; small integers are widened without it.
    /// out : GPUArray, optional
    ///     Receives the result; it has the shape of the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The sums, with the axes that are not the diagonal's.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     The array has fewer axes than two or no such axis, both axes are the same, or `out` has
    ///     another shape.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.eye(3).trace().get()
    /// array(3.)
    trace "($self, offset=0, axis1=0, axis2=1, dtype=None, out=None)";
}
