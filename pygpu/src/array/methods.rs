//! Methods that return new arrays: copies, conversions, parts of complex numbers, `mul_add`.

use super::arguments::{check_records, expect_array, expect_value, optional_array};
use super::functions::unary_into;
use super::indexing::assign;
use super::operators::unary;
use super::results::descr_for;
use super::transfer::on_stream;
use super::views::order_for;
use super::{GPUArray, Object, fused, run_on, wrap_like};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::event::CallTime;
use crate::fused_block;
use crate::shape::order_argument;
use gpuarray::function::UnaryFunction;
use gpuarray::{Array, DType, IndexItem, Order, SliceBounds};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Parses the memory order of a result; `None` keeps the order of the array's axes.
fn result_order(slf: &Bound<'_, GPUArray>, order: Option<&str>) -> PyResult<Option<Order>> {
    match order {
        None | Some("K" | "k") => Ok(None),
        order => order_for(slf, order, "C, F, A and K").map(Some),
    }
}

/// Returns the new array, copied if it is not in the order.
fn in_order(result: Array, order: Option<Order>) -> gpuarray::Result<Array> {
    match order {
        Some(order) if !result.layout().is_contiguous(order) => result.contiguous(order),
        _ => Ok(result),
    }
}

/// Stores a value in the real or imaginary parts of an array.
fn set_part(slf: &Bound<'_, GPUArray>, part: Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let descr = descr_for(slf.py(), part.dtype(), slf.get().content()?)?;
    assign(&part, descr.bind(slf.py()), value)
}

#[pymethods]
impl GPUArray {
    /// Returns a contiguous copy, by default with its axes in the same memory order.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     The stream on which the work is queued, as in PyCUDA. A string is an order, as in numpy.
    /// order : str, optional. As in :meth:`numpy.ndarray.astype`.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The copy, from the array's allocator.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(6)[::2].copy().strides
    /// (8,)
    #[pyo3(signature = (stream = None, *, order = "K"))]
    pub(super) fn copy<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    ) -> Object<'py> {
        let text = stream.filter(|it| it.is_instance_of::<PyString>());
        let order = text.map_or(Ok(order), order_argument)?;
        let array = on_stream(slf.get().array()?, stream.filter(|_| text.is_none()))?;
        let order = result_order(slf, order)?;
        let copy = run_on(slf, array.size(), || in_order(array.copy()?, order))?;
        wrap_like(slf, copy, None)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        Self::copy(slf, None, None)
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Object<'py> {
        Self::copy(slf, None, None)
    }

    /// Returns the elements converted to another dtype, in a new array.
    ///
    /// Parameters
    /// ----------
    /// dtype : dtype. The type of the result; None means float64.
    /// stream : Stream, optional. The stream on which the work is queued.
    /// order, casting, subok, copy : optional
    ///     As in :meth:`numpy.ndarray.astype`. By default the axes keep their memory order, every
    ///     conversion is allowed, and the result is a copy; ``subok`` has no effect.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The array.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The conversion does not exist, as for records, ``casting`` excludes it, or the dtype is
    ///     not supported on a device, as for Python objects.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).astype("f4").get()
    /// array([0., 1., 2.], dtype=float32)
    #[pyo3(
        signature = (dtype, stream = None, *, order = "K", casting = "unsafe", subok = true, copy = true)
    )]
    fn astype<'py>(
        slf: &Bound<'py, Self>,
        dtype: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
        casting: &str,
        #[allow(unused_variables)] subok: bool,
        copy: bool,
    ) -> Object<'py> {
        let (descr, dtype) = dtypes::parse(dtype)?;
        if fused_block::is_on_without([stream])
            && (order, casting, copy) == (Some("K"), "unsafe", true)
            && let Some(pending) = fused::cast(slf, &descr, dtype)?
        {
            return Ok(pending);
        }
        let array = on_stream(slf.get().array()?, stream)?;
        let own = slf.get().content()?.descr.bind(slf.py());
        if let DType::Opaque(_) = dtype {
            check_records("a", &descr, own)?;
        }
        if casting != "unsafe" {
            let numpy = slf.py().import("numpy")?;
            if !numpy.call_method1("can_cast", (own, &descr, casting))?.is_truthy()? {
                return Err(PyTypeError::new_err(format!(
                    "dtype is {descr}, which elements of {own} do not become with casting {casting:?}"
                )));
            }
        }
        let order = result_order(slf, order)?;
        let fits = order.is_none_or(|order| array.layout().is_contiguous(order));
        if !copy && fits && array.dtype() == dtype && own.eq(&descr)? {
            return Ok(slf.clone().into_any());
        }
        let result = run_on(slf, array.size(), || in_order(array.astype(dtype)?, order))?;
        wrap_like(slf, result, Some(descr.unbind()))
    }

    /// The real parts in a new array, unlike numpy's view; the array itself if it is real.
    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        if slf.get().array()?.dtype().is_complex() {
            return unary(slf, UnaryFunction::Real);
        }
        Ok(slf.clone().into_any())
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        set_part(slf, slf.get().array()?.real_view(), value)
    }

    /// The imaginary parts in a new array, unlike numpy's view; zeros if the array is real.
    #[getter]
    fn imag<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Imaginary)
    }

    #[setter]
    fn set_imag(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        set_part(slf, slf.get().array()?.imaginary_view().or_raise()?, value)
    }

    /// Returns the complex conjugates; the array itself if it is real.
    ///
    /// Parameters
    /// ----------
    /// out : GPUArray, optional. Receives the result; the array itself is allowed.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The array itself, a new one, or `out`.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `out` is not a GPUArray, or its dtype cannot hold the result.
    /// ValueError
    ///     The shape does not broadcast to the shape of `out`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.to_gpu(np.array([1 + 2j])).conj().get()
    /// array([1.-2.j])
    #[pyo3(signature = (out = None))]
    fn conj<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let is_complex = slf.get().array()?.dtype().is_complex();
        let function = if is_complex { UnaryFunction::Conjugate } else { UnaryFunction::Copy };
        if is_complex || optional_array("out", out)?.is_some() {
            return unary_into(function, slf, out, None);
        }
        Ok(slf.clone().into_any())
    }

    /// Returns the complex conjugates; another name for `conj`. Arguments are as in :meth:`conj`.
    ///
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.to_gpu(np.array([1 + 2j])).conjugate().get()
    /// array([1.-2.j])
    #[pyo3(signature = (out = None))]
    fn conjugate<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        Self::conj(slf, out)
    }

    /// Returns the elements in reverse order, read as one-dimensional, in a new array of the same shape.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional. The stream on which the work is queued.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The array.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).reverse().get()
    /// array([2, 1, 0])
    #[pyo3(signature = (stream = None))]
    fn reverse<'py>(slf: &Bound<'py, Self>, stream: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let array = on_stream(slf.get().array()?, stream)?;
        let backwards = SliceBounds { step: Some(-1), ..SliceBounds::default() };
        let shape: Vec<isize> = array.shape().iter().map(|&extent| extent as isize).collect();
        let result = run_on(slf, array.size(), || {
            let flat = array.reshape(&[-1], Order::C)?;
            let copy = flat.index(&[IndexItem::Slice(backwards)])?.contiguous(Order::C)?;
            copy.reshape(&shape, Order::C)
        })?;
        wrap_like(slf, result, None)
    }

    /// Returns `selffac * self + otherfac * other`.
    ///
    /// Parameters
    /// ----------
    /// selffac, otherfac : number. The factors.
    /// other : GPUArray. The other array.
    /// add_timer : callable, optional. Called with three times the number of elements, and a function that waits for
    ///     the work and returns the seconds that it took.
    /// stream : Stream, optional. The stream on which the work is queued.
    /// out : GPUArray, optional. Receives the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The values, with the common dtype of the arrays and factors; or `out`.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `other` is not a GPUArray, a factor is not a number, or the elements are records.
    /// ValueError
    ///     The shapes do not broadcast, to each other or to the shape of `out`.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.arange(3)
    /// >>> a.mul_add(2, a, 10).get()
    /// array([ 0, 12, 24])
    #[pyo3(signature = (selffac, other, otherfac, add_timer = None, stream = None, out = None))]
    fn mul_add<'py>(
        slf: &Bound<'py, Self>,
        selffac: &Bound<'py, PyAny>,
        other: &Bound<'py, PyAny>,
        otherfac: &Bound<'py, PyAny>,
        add_timer: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        let (other, out) = (expect_array("other", other)?, optional_array("out", out)?);
        let x = on_stream(slf.get().array()?, stream)?;
        let y = other.get().array()?;
        let (a, b) = (expect_value("selffac", selffac)?, expect_value("otherfac", otherfac)?);
        let target = out.map(|out| on_stream(out.get().array()?, stream)).transpose()?;
        let elements = x.size().max(y.size());
        let work =
            || run_on(slf, elements, || Array::linear_combination(a, &x, b, y, target.as_ref()));
        let result = match add_timer.filter(|timer| !timer.is_none()) {
            Some(timer) => {
                let stream = target.as_ref().unwrap_or(&x).stream();
                let (result, time) = CallTime::of(x.device().as_ref(), stream.as_ref(), work)?;
                timer.call1((3 * x.size(), time))?;
                result
            }
            None => work()?,
        };
        match out {
            Some(out) => Ok(out.clone().into_any()),
            None => wrap_like(slf, result, None),
        }
    }
}
