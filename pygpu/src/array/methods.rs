//! Methods: views, copies, elements.

use super::arguments::{
    Value, expect_array, expect_value, optional_array, parse_index, parse_new_shape, parse_order,
};
use super::functions::unary_into;
use super::operators::unary;
use super::transfer::{on_stream, store};
use super::{GPUArray, run, wrap_like, wrap_view};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::numpy_array;
use gpuarray::function::UnaryFunction;
use gpuarray::{Array, DType, Error, IndexItem, Kind, Number, Order, Scalar, SliceBounds};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyIterator, PyString, PyTuple};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// Sets every element of an array to a number, or to a record of its dtype.
pub(super) fn fill_with(array: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    if let DType::Opaque(_) = array.dtype() {
        return fill_with_record(array, value);
    }
    let scalar = match expect_value("value", value)? {
        // The element of an array wraps in numpy; a scalar must fit.
        Value::Scalar(scalar) if value.is_instance_of::<PyUntypedArray>() => scalar,
        Value::Scalar(scalar) => fitting(scalar, array.dtype()).or_raise()?,
        Value::Number(Number::Float(number)) => {
            fitting(Scalar::new(number), array.dtype()).or_raise()?
        }
        Value::Number(number) => number.to_scalar(array.dtype()).or_raise()?,
        Value::Array(other) => {
            let other = other.get().array()?;
            return run(py, array.size(), || array.assign(other));
        }
    };
    run(py, array.size(), || array.fill(scalar))
}

/// A scalar that is to become an element of `dtype`. Set into integers, a fraction is cut off, and
/// what does not fit is refused, as by numpy's assignment.
fn fitting(scalar: Scalar, dtype: DType) -> gpuarray::Result<Scalar> {
    if !matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) {
        return Ok(scalar);
    }
    let whole = match scalar.dtype().kind() {
        Kind::Signed => scalar.cast(DType::Int64)?.get::<i64>().map(i128::from),
        Kind::Unsigned => scalar.cast(DType::UInt64)?.get::<u64>().map(i128::from),
        Kind::Float => {
            let number = scalar.as_f64();
            if number.is_nan() {
                let text = format!("value is NaN, which cannot become an element of {dtype}");
                return Err(Error::invalid("scalar", text));
            }
            if number.abs() >= 1e30 {
                let text = format!("number {number} out of bounds for {dtype}");
                return Err(Error::overflow("scalar", text));
            }
            Some(number as i128)
        }
        _ => None,
    };
    whole.map_or(Ok(scalar), |whole| Number::Integer(whole).to_scalar(dtype))
}

fn fill_with_record(array: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let from = numpy_array::expect_array("value", value)?;
    let (_, dtype) = numpy_array::dtype_of(&from)?;
    if dtype != array.dtype() || from.len() != 1 {
        return Err(PyTypeError::new_err(format!(
            "value is {value}; one record of {} bytes is needed",
            array.dtype().size()
        )));
    }
    let one = Array::empty(array.device(), &[], dtype, Order::C).or_raise()?;
    store(py, &one, &from, true)?;
    run(py, array.size(), || array.assign(&one))
}

/// The view of one field of each record.
fn field<'py>(slf: &Bound<'py, GPUArray>, name: &Bound<'py, PyString>) -> Object<'py> {
    let py = slf.py();
    let content = slf.get().content()?;
    let descr = content.descr.bind(py);
    if !descr.has_fields() {
        return Err(PyIndexError::new_err(format!(
            "index is {:?}, the name of a field; elements of {descr} have no fields",
            name.to_string()
        )));
    }
    let fields = descr.getattr("fields")?;
    let Ok(found) = fields.get_item(name) else {
        return Err(PyValueError::new_err(format!(
            "no field of name {}; the fields are {}",
            name.repr()?,
            descr.getattr("names")?
        )));
    };
    let part = found.get_item(0)?.cast_into::<PyArrayDescr>()?;
    if !part.getattr("subdtype")?.is_none() {
        return Err(PyTypeError::new_err(format!(
            "field {} is of {part}, an array in each record; view the whole with a dtype without it",
            name.repr()?
        )));
    }
    let dtype = dtypes::from_numpy(&part)?;
    let array = content.array.field(found.get_item(1)?.extract()?, dtype).or_raise()?;
    wrap_view(slf, array, Some(part.unbind()))
}

fn view<'py>(slf: &Bound<'py, GPUArray>, array: gpuarray::Result<Array>) -> Object<'py> {
    wrap_view(slf, array.or_raise()?, None)
}

/// A result of `reshape`: a view, or a copy where the strides allow no view.
///
/// The elements are those of numpy. An array without gaps stays one, in the order asked for,
/// as PyCUDA promises; numpy would keep a view in the other order.
fn reshaped<'py>(slf: &Bound<'py, GPUArray>, shape: &[isize], order: Order) -> Object<'py> {
    let array = slf.get().array()?;
    let is_dense = array.layout().is_c_contiguous() || array.layout().is_f_contiguous();
    let result = run(slf.py(), array.size(), || {
        let view = array.reshape(shape, order)?;
        if is_dense && !view.layout().is_contiguous(order) {
            view.contiguous(order)
        } else {
            Ok(view)
        }
    })?;
    if std::sync::Arc::ptr_eq(result.memory(), array.memory()) {
        return wrap_view(slf, result, None);
    }
    wrap_like(slf, result, None)
}

/// "C", "F", or "A": Fortran's order for an array that has that order only.
fn order_for(slf: &Bound<'_, GPUArray>, order: Option<&str>) -> PyResult<Order> {
    if !matches!(order, Some("A" | "a")) {
        return parse_order(order);
    }
    let layout = slf.get().array()?.layout();
    let fortran = layout.is_f_contiguous() && !layout.is_c_contiguous();
    Ok(if fortran { Order::F } else { Order::C })
}

/// The elements along one axis, as they follow each other in memory.
fn in_memory_order<'py>(slf: &Bound<'py, GPUArray>) -> Object<'py> {
    let array = slf.get().array()?;
    let dense = array.layout().dense_like(1).or_raise()?;
    let mut axes: Vec<usize> = (0..array.ndim()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(dense.strides()[axis]));
    let sorted = array.transpose(Some(&axes)).or_raise()?;
    let flat = run(slf.py(), array.size(), || sorted.reshape(&[-1], Order::C))?;
    if std::sync::Arc::ptr_eq(flat.memory(), array.memory()) {
        return wrap_view(slf, flat, None);
    }
    wrap_like(slf, flat, None)
}

#[pymethods]
impl GPUArray {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> Object<'py> {
        if let Ok(name) = index.cast::<PyString>() {
            return field(slf, name);
        }
        let items = parse_index(index)?;
        view(slf, slf.get().array()?.index(&items))
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = slf.py();
        if let Ok(name) = index.cast::<PyString>() {
            let everything = PyEllipsis::get(py).to_owned().into_any();
            let part = field(slf, name)?.cast_into::<GPUArray>()?;
            return Self::__setitem__(&part, &everything, value);
        }
        let target = slf.get().array()?.index(&parse_index(index)?).or_raise()?;
        let Ok(given) = value.cast::<PyUntypedArray>() else {
            return fill_with(&target, value);
        };
        // A numpy array: sent over as it is, then converted and broadcast on the device.
        let (_, dtype) = numpy_array::dtype_of(given)?;
        target.layout().broadcast_to(target.shape()).or_raise()?;
        let layout = numpy_array::dense_like(given, dtype.size())?;
        layout.trim_leading(target.ndim()).broadcast_to(target.shape()).or_raise()?;
        if dtype == target.dtype() && given.shape() == target.shape() {
            return store(py, &target, given, true);
        }
        let staged =
            Array::with_new_memory(target.device(), target.stream(), layout, dtype).or_raise()?;
        store(py, &staged, given, true)?;
        run(py, target.size(), || target.assign(&staged))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        if slf.get().array()?.shape().is_empty() {
            return Err(PyTypeError::new_err("iteration over an array without axes"));
        }
        // SAFETY: the object is live; the call returns a new iterator, or null with an exception.
        unsafe {
            let iterator = ffi::PySeqIter_New(slf.as_ptr());
            Ok(Bound::from_owned_ptr_or_err(slf.py(), iterator)?.cast_into_unchecked())
        }
    }

    /// Returns a copy without gaps, its axes in the same memory order.
    fn copy<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        let array = slf.get().array()?;
        let copy = run(slf.py(), array.size(), || array.copy())?;
        wrap_like(slf, copy, None)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        Self::copy(slf)
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Object<'py> {
        Self::copy(slf)
    }

    /// Sets every element to a value, and returns the array.
    ///
    /// Parameters
    /// ----------
    /// value : number, GPUArray or record
    ///     Converted to the dtype of the array as by numpy's assignment.
    /// stream : Stream, optional
    ///     Where the work is queued.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     A whole number outside the range of the dtype.
    /// TypeError
    ///     What is no number, or a complex number for a real dtype.
    #[pyo3(signature = (value, stream = None))]
    fn fill<'py>(
        slf: Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        fill_with(&on_stream(slf.get().array()?, stream)?, value)?;
        Ok(slf)
    }

    /// Returns the elements converted to another dtype, in a new array.
    ///
    /// Parameters
    /// ----------
    /// dtype : dtype
    ///     The type of the result; None means float64.
    /// stream : Stream, optional
    ///     Where the work is queued.
    #[pyo3(signature = (dtype, stream = None))]
    fn astype<'py>(
        slf: &Bound<'py, Self>,
        dtype: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        let (descr, dtype) = dtypes::parse(dtype)?;
        let array = on_stream(slf.get().array()?, stream)?;
        let result = run(slf.py(), array.size(), || array.astype(dtype))?;
        wrap_like(slf, result, Some(descr.unbind()))
    }

    /// Returns the elements under another shape: a view where strides allow it, else a copy.
    ///
    /// Parameters
    /// ----------
    /// *shape : int, or one sequence of int
    ///     The extents; one may be -1, which is worked out from the others.
    /// order : {"C", "F", "A"}, optional
    ///     The order in which elements are read and placed; "A" is "F" for an array that has
    ///     Fortran's order only. The result of an array without gaps has none either, in that
    ///     order, where numpy may return a view in another.
    #[pyo3(signature = (*shape, order = "C"))]
    fn reshape<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyTuple>,
        order: Option<&str>,
    ) -> Object<'py> {
        if shape.is_empty() {
            return Err(PyTypeError::new_err("reshape needs a shape"));
        }
        reshaped(slf, &parse_new_shape(shape)?, order_for(slf, order)?)
    }

    /// Returns the elements along one axis: a view where strides allow it, else a copy.
    ///
    /// Parameters
    /// ----------
    /// order : {"C", "F", "A", "K"}, optional
    ///     The order in which elements are read; "A" is "F" for an array that has Fortran's order
    ///     only, "K" the order in memory.
    #[pyo3(signature = (order = "C"))]
    fn ravel<'py>(slf: &Bound<'py, Self>, order: Option<&str>) -> Object<'py> {
        if matches!(order, Some("K" | "k")) {
            return in_memory_order(slf);
        }
        reshaped(slf, &[-1], order_for(slf, order)?)
    }

    /// Returns a view of the same bytes as elements of another dtype.
    ///
    /// Parameters
    /// ----------
    /// dtype : dtype, optional
    ///     The type of the view's elements: that of the array if left out or None. The extent of
    ///     the axis with the smallest stride changes with the size of an element.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The bytes of that axis are no whole number of the new elements, or not aligned.
    #[pyo3(signature = (dtype = None))]
    fn view<'py>(slf: &Bound<'py, Self>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
            return wrap_view(slf, slf.get().array()?.clone(), None);
        };
        let (descr, dtype) = dtypes::parse(dtype)?;
        wrap_view(slf, slf.get().array()?.view(dtype).or_raise()?, Some(descr.unbind()))
    }

    /// Returns a view without the axes of extent 1.
    fn squeeze<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        wrap_view(slf, slf.get().array()?.squeeze(), None)
    }

    /// Returns the view with its axes in another order.
    ///
    /// Parameters
    /// ----------
    /// *positions : int, or one sequence of int
    ///     The axes in their new order; reversed without them.
    /// axes : sequence of int, optional
    ///     The same by keyword.
    #[pyo3(signature = (*positions, axes = None))]
    fn transpose<'py>(
        slf: &Bound<'py, Self>,
        positions: &Bound<'py, PyTuple>,
        axes: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        let array = slf.get().array()?;
        let named = axes.map(|axes| PyTuple::new(slf.py(), [axes])).transpose()?;
        let axes = named.as_ref().unwrap_or(positions);
        let whole = axes.is_empty() || (axes.len() == 1 && axes.get_item(0)?.is_none());
        if whole {
            return view(slf, array.transpose(None));
        }
        let axes = parse_new_shape(axes)?
            .iter()
            .map(|&axis| array.layout().normalize_axis(axis))
            .collect::<gpuarray::Result<Vec<_>>>()
            .map_err(|_| PyValueError::new_err(format!("axes {axes} don't match array")))?;
        view(slf, array.transpose(Some(&axes)))
    }

    /// The view with its axes reversed.
    #[getter(T)]
    fn transposed<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        view(slf, slf.get().array()?.transpose(None))
    }

    /// The real parts in a new array, unlike numpy's view; the array itself if it is real.
    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        if slf.get().array()?.dtype().is_complex() {
            return unary(slf, UnaryFunction::Real);
        }
        Ok(slf.clone().into_any())
    }

    /// The imaginary parts in a new array, unlike numpy's view; zeros if the array is real.
    #[getter]
    fn imag<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Imaginary)
    }

    /// Returns the complex conjugates: the array itself if it is real.
    ///
    /// Parameters
    /// ----------
    /// out : GPUArray, optional
    ///     Receives the result; the array itself is allowed.
    #[pyo3(signature = (out = None))]
    fn conj<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let array = slf.get().array()?;
        if optional_array("out", out)?.is_some() {
            return unary_into(UnaryFunction::Conjugate, slf, out, None);
        }
        if array.dtype().is_complex() {
            return unary(slf, UnaryFunction::Conjugate);
        }
        Ok(slf.clone().into_any())
    }

    /// Returns the complex conjugates: another name of `conj`.
    #[pyo3(signature = (out = None))]
    fn conjugate<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        Self::conj(slf, out)
    }

    /// Returns the elements in reverse order, read as along one axis, in a new array of the same
    /// shape.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Where the work is queued.
    #[pyo3(signature = (stream = None))]
    fn reverse<'py>(slf: &Bound<'py, Self>, stream: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let array = on_stream(slf.get().array()?, stream)?;
        let backwards = SliceBounds { step: Some(-1), ..SliceBounds::default() };
        let shape: Vec<isize> = array.shape().iter().map(|&extent| extent as isize).collect();
        let result = run(slf.py(), array.size(), || {
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
    /// selffac, otherfac : number
    ///     The factors.
    /// other : GPUArray
    ///     The other array.
    /// add_timer : None
    ///     PyCUDA's timer is not supported; time the work with `driver.Event`.
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// out : GPUArray, optional
    ///     Receives the result.
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
        if add_timer.is_some_and(|timer| !timer.is_none()) {
            return Err(crate::errors::to_python(gpuarray::Error::unsupported(
                "mul_add",
                "add_timer is not supported; time the work with driver.Event",
            )));
        }
        let x = on_stream(slf.get().array()?, stream)?;
        let y = other.get().array()?;
        let (a, b) = (expect_value("selffac", selffac)?, expect_value("otherfac", otherfac)?);
        let (a, b) = (a.argument()?, b.argument()?);
        let target = out.map(|out| on_stream(out.get().array()?, stream)).transpose()?;
        let elements = x.size().max(y.size());
        let result =
            run(slf.py(), elements, || Array::linear_combination(a, &x, b, y, target.as_ref()))?;
        match out {
            Some(out) => Ok(out.clone().into_any()),
            None => wrap_like(slf, result, None),
        }
    }

    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyIndexError::new_err("elements of an array cannot be deleted"))
    }
}
