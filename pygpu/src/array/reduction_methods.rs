//! The methods of arrays that combine elements.

use super::reductions::Arguments;
use super::{GPUArray, Object};
use gpuarray::function::Reduction;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

type Given<'py> = Option<Bound<'py, PyAny>>;

/// Methods with `dtype`. They take PyCUDA's positional arguments, or numpy's if the first one is an axis.
macro_rules! with_dtype {
    ($(
        $(#[doc = $doc:literal])+
        $method:ident $variant:ident $pycuda:tt;
    )*) => {
        #[pymethods]
        impl GPUArray {
            $(
                $(#[doc = $doc])+
                #[pyo3(
                    signature = (
                        *positional, axis = None, dtype = None, out = None, keepdims = None,
                        stream = None, allocator = None, **masked
                    ),
                    text_signature = "($self, *positional, axis=None, dtype=None, out=None, keepdims=None, \
                                      initial=..., where=..., stream=None, allocator=None)"
                )]
                #[allow(clippy::too_many_arguments, reason = "numpy's and PyCUDA's signature")]
                fn $method<'py>(
                    slf: &Bound<'py, Self>,
                    positional: &Bound<'py, PyTuple>,
                    axis: Given<'py>,
                    dtype: Given<'py>,
                    out: Given<'py>,
                    keepdims: Given<'py>,
                    stream: Given<'py>,
                    allocator: Given<'py>,
                    masked: Option<Bound<'py, PyDict>>,
                ) -> Object<'py> {
                    Arguments { axis, dtype, out, keepdims, stream, allocator, masked }
                        .with_positional(
                            positional,
                            stringify!($method),
                            &$pycuda,
                            &["axis", "dtype", "out", "keepdims"],
                        )?
                        .reduce_method(slf, stringify!($method), Reduction::$variant)
                }
            )*
        }
    };
}

/// The same methods without `dtype`.
macro_rules! without_dtype {
    ($(
        $(#[doc = $doc:literal])+
        $method:ident $variant:ident $pycuda:tt $text:literal;
    )*) => {
        #[pymethods]
        impl GPUArray {
            $(
                $(#[doc = $doc])+
                #[pyo3(
                    signature = (
                        *positional, axis = None, out = None, keepdims = None, stream = None,
                        allocator = None, **masked
                    ),
                    text_signature = $text
                )]
                #[allow(clippy::too_many_arguments, reason = "numpy's and PyCUDA's signature")]
                fn $method<'py>(
                    slf: &Bound<'py, Self>,
                    positional: &Bound<'py, PyTuple>,
                    axis: Given<'py>,
                    out: Given<'py>,
                    keepdims: Given<'py>,
                    stream: Given<'py>,
                    allocator: Given<'py>,
                    masked: Option<Bound<'py, PyDict>>,
                ) -> Object<'py> {
                    Arguments { axis, dtype: None, out, keepdims, stream, allocator, masked }
                        .with_positional(
                            positional,
                            stringify!($method),
                            &$pycuda,
                            &["axis", "out", "keepdims"],
                        )?
                        .reduce_method(slf, stringify!($method), Reduction::$variant)
                }
            )*
        }
    };
}

/// Methods with `dtype` and `ddof`.
macro_rules! with_ddof {
    ($(
        $(#[doc = $doc:literal])+
        $method:ident $function:ident;
    )*) => {
        #[pymethods]
        impl GPUArray {
            $(
                $(#[doc = $doc])+
                #[pyo3(
                    signature = (axis = None, dtype = None, out = None, ddof = 0.0, keepdims = None, *, stream = None, allocator = None, **masked),
                    text_signature = "($self, axis=None, dtype=None, out=None, ddof=0.0, keepdims=None, *, where=..., stream=None, allocator=None)"
                )]
                #[allow(clippy::too_many_arguments, reason = "numpy's signature")]
                fn $method<'py>(
                    slf: &Bound<'py, Self>,
                    axis: Given<'py>,
                    dtype: Given<'py>,
                    out: Given<'py>,
                    ddof: f64,
                    keepdims: Given<'py>,
                    stream: Given<'py>,
                    allocator: Given<'py>,
                    masked: Option<Bound<'py, PyDict>>,
                ) -> Object<'py> {
                    let given = Arguments { axis, dtype, out, keepdims, stream, allocator, masked };
                    if given.masked.is_some() {
                        return given.moment(slf, stringify!($method), Some(ddof));
                    }
                    let dtype = given.dtype()?;
                    let fused = given.fused(slf, false, |expression, axes, keeps| {
                        expression.$function(dtype, axes, keeps, ddof)
                    })?;
                    match fused {
                        Some(value) => Ok(value),
                        None => given.compute(slf, |array, axes, keeps| {
                            array.$function(dtype, axes, keeps, ddof)
                        }),
                    }
                }
            )*
        }
    };
}

with_dtype! {
    /// Returns the sum of the elements, along axes or of all.
    ///
    /// Parameters
    /// ----------
    /// *positional : object
    ///     PyCUDA's arguments (dtype, stream, allocator), or numpy's (axis, dtype, out, keepdims) where the first is an axis.
    /// axis : int or tuple of int, optional
    ///     The axes along which elements are combined; all axes if omitted.
    /// dtype : dtype, optional
    ///     The dtype in which elements are added; if omitted, numpy's, which widens small integers.
    ///     PyCUDA's function :func:`pygpu.gpuarray.sum` keeps the array's own dtype.
    /// out : GPUArray, optional. Receives the result; it has the shape of the result.
    /// keepdims : bool, optional. True to keep the combined axes with extent 1.
    /// initial : number, optional. As in numpy: a value that is combined with the elements.
    /// where : GPUArray or bool, optional. As in numpy: a mask that selects the elements.
    /// stream : Stream, optional. The stream on which the work is queued.
    /// allocator : callable, optional. The allocator of the result's memory.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The sums: an array without axes if all elements are added.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records.
    /// ValueError
    ///     An axis does not exist or is repeated, or `out` has another shape.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.sum().get()
    /// array(15)
    /// >>> a.sum(axis=0).get()
    /// array([3, 5, 7])
    sum Sum ["dtype", "stream", "allocator"];
    /// Returns the product of the elements, as :func:`numpy.prod`. Arguments and errors are as in :meth:`sum`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.prod(axis=1).get()
    /// array([ 0, 60])
    prod Product ["dtype", "stream", "allocator"];
}

without_dtype! {
    /// Returns the smallest element, NaN if any element is, as :func:`numpy.min`.
    ///
    /// Arguments and errors are as in :meth:`sum`, without `dtype`; PyCUDA's only positional one is the stream.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.min(axis=1).get()
    /// array([0, 3], dtype=int32)
    min Minimum ["stream"]
        "($self, *positional, axis=None, out=None, keepdims=None, initial=..., where=..., stream=None, allocator=None)";
    /// Returns the largest element, NaN if any element is, as :func:`numpy.max`. Arguments are as in :meth:`min`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.max().get()
    /// array(5, dtype=int32)
    max Maximum ["stream"]
        "($self, *positional, axis=None, out=None, keepdims=None, initial=..., where=..., stream=None, allocator=None)";
    /// Returns True if any element is not zero, as :func:`numpy.any`.
    ///
    /// Arguments and errors are as in :meth:`sum`, without `dtype` and `initial`; PyCUDA's positional ones are
    /// (stream, allocator).
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.any(axis=0, keepdims=True).get()
    /// array([[ True,  True,  True]])
    any Any ["stream", "allocator"]
        "($self, *positional, axis=None, out=None, keepdims=None, where=..., stream=None, allocator=None)";
    /// Returns True if no element is zero, as :func:`numpy.all`. Arguments are as in :meth:`any`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.all(axis=0).get()
    /// array([False,  True,  True])
    all All ["stream", "allocator"]
        "($self, *positional, axis=None, out=None, keepdims=None, where=..., stream=None, allocator=None)";
}

#[pymethods]
impl GPUArray {
    /// Returns the mean of the elements, NaN of zero elements, as :func:`numpy.mean`; PyCUDA does not have this method.
    ///
    /// `dtype` is the dtype of the result: if omitted, the array's own if inexact, else float64. 16-bit floating-point
    /// numbers are added in float32. Other arguments and errors are as in :meth:`sum`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.mean(axis=0).get()
    /// array([1.5, 2.5, 3.5])
    #[pyo3(
        signature = (axis = None, dtype = None, out = None, keepdims = None, *, stream = None, allocator = None, **masked),
        text_signature = "($self, axis=None, dtype=None, out=None, keepdims=None, *, where=..., stream=None, allocator=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "numpy's signature")]
    fn mean<'py>(
        slf: &Bound<'py, Self>,
        axis: Given<'py>,
        dtype: Given<'py>,
        out: Given<'py>,
        keepdims: Given<'py>,
        stream: Given<'py>,
        allocator: Given<'py>,
        masked: Option<Bound<'py, PyDict>>,
    ) -> Object<'py> {
        let given = Arguments { axis, dtype, out, keepdims, stream, allocator, masked };
        let dtype = given.mean_dtype(slf)?;
        // NaN is not an integer.
        let is_none = dtype.is_some_and(|it| it.is_integer()) && slf.get().array()?.size() == 0;
        if given.masked.is_some() || is_none {
            return given.moment(slf, "mean", None);
        }
        let fused = given
            .fused(slf, false, |expression, axes, keeps| expression.mean(dtype, axes, keeps))?;
        match fused {
            Some(mean) => Ok(mean),
            None => given.compute(slf, |array, axes, keeps| array.mean(dtype, axes, keeps)),
        }
    }
}

with_ddof! {
    /// Returns the variance, the mean squared distance from the mean, as :func:`numpy.var`.
    ///
    /// It is real also for complex numbers. `ddof` is subtracted from the number of elements before the sum of squares is
    /// divided by it; `dtype` must be inexact. Other arguments are as in :meth:`mean`. PyCUDA does not have this method.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.var(axis=1).get()
    /// array([0.66666667, 0.66666667])
    var variance;
    /// Returns the standard deviation, the square root of :meth:`var`, as :func:`numpy.std`.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(6, dtype=np.int32).reshape(2, 3)
    /// >>> a.std(axis=0, ddof=1).get()
    /// array([2.12132034, 2.12132034, 2.12132034])
    std standard_deviation;
}
