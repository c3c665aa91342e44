//! Methods: views, copies, elements.

use super::arguments::{Value, expect_value, parse_index, parse_new_shape, parse_order};
use super::operators::unary;
use super::transfer::{on_stream, store};
use super::{GPUArray, run, wrap_like, wrap_view};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::host;
use gpuarray::function::{Reduction, UnaryFunction};
use gpuarray::{Array, DType, Error, IndexItem, Kind, Number, Order, Scalar, SliceBounds};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyTuple};

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
    let from = host::expect_array("value", value)?;
    let (_, dtype) = host::dtype_of(&from)?;
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

#[pymethods]
impl GPUArray {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> Object<'py> {
        let items = parse_index(index)?;
        view(slf, slf.get().array()?.index(&items))
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = slf.py();
        let target = slf.get().array()?.index(&parse_index(index)?).or_raise()?;
        let Ok(given) = value.cast::<PyUntypedArray>() else {
            return fill_with(&target, value);
        };
        // A numpy array: sent over as it is, then converted and broadcast on the device.
        let (_, dtype) = host::dtype_of(given)?;
        target.layout().broadcast_to(target.shape()).or_raise()?;
        let layout = host::dense_like(given, dtype.size())?;
        layout.broadcast_to(target.shape()).or_raise()?;
        if dtype == target.dtype() && given.shape() == target.shape() {
            return store(py, &target, given, true);
        }
        let staged =
            Array::with_new_memory(target.device(), target.stream(), layout, dtype).or_raise()?;
        store(py, &staged, given, true)?;
        run(py, target.size(), || target.assign(&staged))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let array = slf.get().array()?;
        let Some(&extent) = array.shape().first() else {
            return Err(PyTypeError::new_err("iteration over an array without axes"));
        };
        let views = (0..extent)
            .map(|index| view(slf, array.index(&[IndexItem::At(index as isize)])))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(slf.py(), views)?.try_iter()
    }

    /// A copy without gaps, its axes in the same memory order.
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

    /// Sets every element to `value`.
    #[pyo3(signature = (value, stream = None))]
    fn fill<'py>(
        slf: Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        fill_with(&on_stream(slf.get().array()?, stream)?, value)?;
        Ok(slf)
    }

    /// The elements converted to another dtype, in a new array.
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

    /// The elements under another shape.
    #[pyo3(signature = (*shape, order = "C"))]
    fn reshape<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyTuple>,
        order: &str,
    ) -> Object<'py> {
        if shape.is_empty() {
            return Err(PyTypeError::new_err("reshape needs a shape"));
        }
        reshaped(slf, &parse_new_shape(shape)?, parse_order(order)?)
    }

    /// The elements along one axis.
    #[pyo3(signature = (order = "C"))]
    fn ravel<'py>(slf: &Bound<'py, Self>, order: &str) -> Object<'py> {
        reshaped(slf, &[-1], parse_order(order)?)
    }

    /// The same bytes as elements of another dtype.
    #[pyo3(signature = (dtype = None))]
    fn view<'py>(slf: &Bound<'py, Self>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
            return wrap_view(slf, slf.get().array()?.clone(), None);
        };
        let (descr, dtype) = dtypes::parse(dtype)?;
        wrap_view(slf, slf.get().array()?.view(dtype).or_raise()?, Some(descr.unbind()))
    }

    /// The view without axes of extent 1.
    fn squeeze<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        wrap_view(slf, slf.get().array()?.squeeze(), None)
    }

    /// The view with its axes in another order; reversed without one.
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

    #[getter(T)]
    fn transposed<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        view(slf, slf.get().array()?.transpose(None))
    }

    /// The real parts: the array itself if it is real.
    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        if slf.get().array()?.dtype().is_complex() {
            return unary(slf, UnaryFunction::Real);
        }
        Ok(slf.clone().into_any())
    }

    /// The imaginary parts: zeros if the array is real.
    #[getter]
    fn imag<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Imaginary)
    }

    /// The complex conjugates: the array itself if it is real.
    #[pyo3(signature = (out = None))]
    fn conj<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, GPUArray>>) -> Object<'py> {
        let array = slf.get().array()?;
        if let Some(out) = out {
            let target = out.get().array()?;
            let result = array.unary(UnaryFunction::Conjugate).or_raise()?;
            super::functions::check_out(target, &result)?;
            target.assign(&result).or_raise()?;
            return Ok(out.clone().into_any());
        }
        if array.dtype().is_complex() {
            return unary(slf, UnaryFunction::Conjugate);
        }
        Ok(slf.clone().into_any())
    }

    #[pyo3(signature = (out = None))]
    fn conjugate<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, GPUArray>>) -> Object<'py> {
        Self::conj(slf, out)
    }

    /// The elements in reverse order, read as along one axis, in a new array of this shape.
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

    /// `selffac * self + otherfac * other`.
    #[pyo3(signature = (selffac, other, otherfac, add_timer = None, stream = None, out = None))]
    fn mul_add<'py>(
        slf: &Bound<'py, Self>,
        selffac: &Bound<'py, PyAny>,
        other: &Bound<'py, GPUArray>,
        otherfac: &Bound<'py, PyAny>,
        add_timer: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, GPUArray>>,
    ) -> Object<'py> {
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

    /// True, as an array without axes, if any element is not zero.
    #[pyo3(signature = (stream = None, allocator = None))]
    fn any<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        allocator: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        super::functions::reduce_all(slf, Reduction::Any, None, stream, allocator)
    }

    /// True, as an array without axes, if no element is zero.
    #[pyo3(signature = (stream = None, allocator = None))]
    fn all<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        allocator: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        super::functions::reduce_all(slf, Reduction::All, None, stream, allocator)
    }

    /// The only element as a Python number.
    fn item<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        let host = slf.get().get(slf.py(), None, false, false, None, None)?;
        if host.len() != 1 {
            return Err(PyValueError::new_err(format!(
                "item() needs an array of one element; this one has {}",
                host.len()
            )));
        }
        host.call_method0("item")
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        Self::item(slf)?.call_method0("__int__")
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        Self::item(slf)?.call_method0("__float__")
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        let item = Self::item(slf)?;
        slf.py().get_type::<pyo3::types::PyComplex>().call1((item,))
    }

    /// Attributes that a program sets on the object are its own; those of the array are not
    /// deleted.
    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyIndexError::new_err("elements of an array cannot be deleted"))
    }
}
