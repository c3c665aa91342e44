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
    ($($(#[doc = $doc:literal])+ $method:ident;)*) => {
        #[pymethods]
        impl GPUArray {
            $(
                $(#[doc = $doc])+
                #[pyo3(signature = (*args, **kwargs))]
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
    /// Returns the index of the smallest element, along an axis or of all.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.argmin` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).argmin().get()
    /// array(0)
    argmin;
    /// Returns the index of the largest element, along an axis or of all.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.argmax` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).argmax().get()
    /// array(2)
    argmax;
    /// Returns the running sums along an axis.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.cumsum` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(4).cumsum().get()
    /// array([0, 1, 3, 6])
    cumsum;
    /// Returns the running products along an axis.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.cumprod` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(1, 4).cumprod().get()
    /// array([1, 2, 6])
    cumprod;
    /// Returns the elements, or the bounds where these are nearer to the others.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.clip` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(4).clip(1, 2).get()
    /// array([1, 1, 2, 2])
    clip;
    /// Repeats each element.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.repeat` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(2).repeat(2).get()
    /// array([0, 0, 1, 1])
    repeat;
    /// Returns the view with two axes exchanged.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.swapaxes` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.zeros((2, 3)).swapaxes(0, 1).shape
    /// (3, 2)
    swapaxes;
    /// Returns the diagonal of two axes, as a view.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.diagonal` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.eye(2).diagonal().get()
    /// array([1., 1.])
    diagonal;
    /// Returns the sum along a diagonal.
    ///
    /// Parameters
    /// ----------
    /// *args, **kwargs
    ///     Those of `gpuarray.trace` behind the array.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     What the function returns.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.eye(3).trace().get()
    /// array(3.)
    trace;
}
