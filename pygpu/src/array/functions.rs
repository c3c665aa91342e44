//! Array functions, which the Python modules expose under PyCUDA's names.

use super::arguments::{
    check_records, elements, expect_array, expect_value, is_sequence, operand, optional_array,
    records_of,
};
use super::indexing::fill_with;
use super::reductions::{PyReduction, compute_dtype};
use super::transfer::{on_stream, to_gpu};
use super::{
    GPUArray, Object, OptionalAny, fused, run_on, wrap_like, wrap_new, wrap_with_allocator,
};
use crate::allocator::ResultAllocator;
use crate::current_device::{CurrentDevice, current_device};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::fused_block;
use crate::integer::argument;
use crate::profile::at_line;
use crate::shape::{order_argument, parse_order, parse_shape};
use crate::synchronize::run;
use gpuarray::function::UnaryFunction;
use gpuarray::{Argument, Array, DType, Layout, Number, Scalar};
use numpy::PyArrayDescr;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::borrow::Cow;

/// Returns the array with another allocator for its results, if one is given.
pub(super) fn with_allocator(array: Array, allocator: OptionalAny<'_, '_>) -> PyResult<Array> {
    match ResultAllocator::from_argument(allocator)?.allocator {
        Some(own) => Ok(array.with_allocator(Some(own))),
        None => Ok(array),
    }
}

/// Applies a function to each element, in a new array or in `out`.
pub(super) fn unary_into<'py>(
    function: UnaryFunction,
    array: &Bound<'py, GPUArray>,
    out: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> Object<'py> {
    if let Some(out) = optional_array("out", out)? {
        let (input, target) = (array.get().array()?, on_stream(out.get().array()?, stream)?);
        run_on(array, target.size(), || target.set_unary(function, input))?;
        return Ok(out.clone().into_any());
    }
    if fused_block::is_on_without([stream])
        && let Some(pending) = fused::unary(function, array)?
    {
        return Ok(pending);
    }
    let input = on_stream(array.get().array()?, stream)?;
    let result = run_on(array, input.size(), || input.unary(function))?;
    wrap_like(array, result, None)
}

/// Returns the dtype of the first device array whose elements the device treats as bytes, such as records
/// and dates.
fn record_descr<'py>(
    values: [&Bound<'py, PyAny>; 2],
) -> PyResult<Option<Bound<'py, PyArrayDescr>>> {
    for value in values {
        if let Ok(array) = value.cast::<GPUArray>()
            && let content = array.get().content()?
            && matches!(content.array.dtype(), DType::Opaque(_))
        {
            return Ok(Some(content.descr.bind(value.py()).clone()));
        }
    }
    Ok(None)
}

/// Returns an array as a device array.
fn on_device<'py>(array: &Bound<'py, PyAny>) -> Object<'py> {
    match array.is_instance_of::<GPUArray>() {
        true => Ok(array.clone()),
        false => to_gpu(array.py(), array, None, None, true),
    }
}

/// Refuses to move elements between records of different dtypes, which the device only distinguishes by
/// size.
fn check_moved(name: &str, own: &Bound<'_, GPUArray>, other: &Bound<'_, GPUArray>) -> PyResult<()> {
    let Some(descr) = record_descr([own.as_any(), other.as_any()])? else { return Ok(()) };
    check_records(name, &descr, other.get().content()?.descr.bind(own.py()))
}

/// Returns `criterion ? then_ : else_`, with a criterion that is true if not zero, or if greater than
/// zero.
#[pyfunction]
#[pyo3(signature = (criterion, then_, else_, positive, out = None, stream = None))]
pub(crate) fn select<'py>(
    py: Python<'py>,
    criterion: &Bound<'py, PyAny>,
    then_: &Bound<'py, PyAny>,
    else_: &Bound<'py, PyAny>,
    positive: bool,
    out: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> Object<'py> {
    let criterion = &operand(criterion)?;
    let criterion = expect_array("criterion", criterion)?;
    let out = optional_array("out", out)?;
    if out.is_none()
        && fused_block::is_on_without([stream])
        && !is_sequence(then_)
        && !is_sequence(else_)
        && let Some(pending) = fused::select([criterion, then_, else_], positive)?
    {
        return Ok(pending);
    }
    let descr = record_descr([then_, else_])?;
    let chosen = |name: &str, value: &Bound<'py, PyAny>| match &descr {
        Some(descr) => on_device(&records_of(name, descr, value)?),
        None => operand(value),
    };
    let (then_, else_) = (&chosen("then_", then_)?, &chosen("else_", else_)?);
    let (x, y) = (expect_value("then_", then_)?, expect_value("else_", else_)?);
    if let Some(out) = out {
        if let Some(descr) = &descr {
            check_records("out", descr, out.get().content()?.descr.bind(py))?;
        }
        let (condition, target) =
            (criterion.get().array()?, on_stream(out.get().array()?, stream)?);
        run(py, target.size(), || target.set_select(condition, x, y, positive))?;
        return Ok(out.clone().into_any());
    }
    let condition = on_stream(criterion.get().array()?, stream)?;
    let elements = condition.size().max(elements(&x)).max(elements(&y));
    let result = run(py, elements, || Array::select(&condition, x, y, positive))?;
    let like = then_.cast().or_else(|_| else_.cast()).unwrap_or(criterion);
    wrap_like(like, result, None)
}

/// Reduces the elements at the indices `subset`.
#[pyfunction]
#[pyo3(signature = (reduction, subset, a, dtype = None, stream = None, allocator = None))]
pub(crate) fn reduce_subset<'py>(
    reduction: &Bound<'py, PyReduction>,
    subset: &Bound<'py, PyAny>,
    a: &Bound<'py, PyAny>,
    dtype: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
    allocator: OptionalAny<'_, 'py>,
) -> Object<'py> {
    let subset = expect_array("subset", subset)?;
    let a = expect_array("a", a)?;
    let reduction = reduction.get().value();
    let array = with_allocator(on_stream(a.get().array()?, stream)?, allocator)?;
    let subset = subset.get().array()?;
    let compute = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtypes::parse(dtype)?.1,
        None => array.dtype(),
    };
    let result = run_on(a, subset.size(), || array.reduce_subset(reduction, compute, subset))?;
    wrap_with_allocator(a, result, allocator)
}

/// Returns the sum of products of corresponding elements of ``a`` and ``b``, without axes.
///
/// numpy's function multiplies matrices. Elements are combined in ``dtype``, by default the dtype of the arrays, on
/// ``stream``, in memory of ``allocator``.
///
/// >>> gpuarray.dot(gpuarray.arange(3), gpuarray.arange(3)).get()
/// array(5)
#[pyfunction]
#[pyo3(signature = (a, b, dtype = None, stream = None, allocator = None))]
pub(crate) fn dot<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    dtype: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
    allocator: OptionalAny<'_, 'py>,
) -> Object<'py> {
    let a = expect_array("a", a)?;
    let b = expect_array("b", b)?;
    let x = with_allocator(on_stream(a.get().array()?, stream)?, allocator)?;
    let y = b.get().array()?;
    let compute = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtypes::parse(dtype)?.1,
        None => x.dtype().promote(y.dtype()).or_raise()?,
    };
    let result = run_on(a, x.size(), || x.dot(y, compute))?;
    wrap_with_allocator(a, result, allocator)
}

/// Returns running values along an axis. If the dtype is omitted, numpy's is used.
#[pyfunction]
#[pyo3(signature = (reduction, a, axis = 0, exclusive = false, dtype = None, out = None, stream = None, allocator = None))]
#[allow(clippy::too_many_arguments, reason = "numpy's signature")]
pub(crate) fn scan<'py>(
    reduction: &Bound<'py, PyReduction>,
    a: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::axis)] axis: isize,
    exclusive: bool,
    dtype: OptionalAny<'_, 'py>,
    out: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
    allocator: OptionalAny<'_, 'py>,
) -> Object<'py> {
    let a = expect_array("a", a)?;
    let out = optional_array("out", out)?;
    let reduction = reduction.get().value();
    let array = on_stream(a.get().array()?, stream)?;
    let dtype = dtype.filter(|dtype| !dtype.is_none());
    let dtype = dtype.map(|dtype| Ok::<_, PyErr>(dtypes::parse(dtype)?.1)).transpose()?;
    let compute = compute_dtype(reduction, array.dtype(), dtype, out)?;
    if let Some(out) = out {
        let target = on_stream(out.get().array()?, stream)?;
        run_on(a, array.size(), || {
            array.scan_into(reduction, compute, axis, exclusive, None, &target)
        })?;
        return Ok(out.clone().into_any());
    }
    let array = with_allocator(array, allocator)?;
    let result = run_on(a, array.size(), || array.scan(reduction, compute, axis, exclusive, None))?;
    wrap_with_allocator(a, result, allocator)
}

/// Returns the array and the axis for `indices`; if the axis is omitted, the array with all elements
/// along one axis.
fn along<'a>(
    py: Python<'_>,
    array: &'a Array,
    axis: Option<isize>,
) -> PyResult<(Cow<'a, Array>, isize)> {
    match axis {
        Some(axis) => Ok((Cow::Borrowed(array), axis)),
        None => {
            let flat = run(py, array.size(), || array.reshape(&[-1], gpuarray::Order::C))?;
            Ok((Cow::Owned(flat), 0))
        }
    }
}

/// Returns the elements of `a` at `indices` along an axis, or in `a` read as one-dimensional.
#[pyfunction]
#[pyo3(signature = (a, indices, out = None, stream = None, axis = None))]
pub(crate) fn take<'py>(
    a: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    out: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
    axis: Option<isize>,
) -> Object<'py> {
    let a = expect_array("a", a)?;
    let indices = expect_array("indices", indices)?;
    let out = optional_array("out", out)?;
    let array = on_stream(a.get().array()?, stream)?;
    let names = indices.get().array()?;
    let (flat, axis) = along(a.py(), &array, axis)?;
    match out {
        Some(out) => {
            check_moved("out", a, out)?;
            let target = on_stream(out.get().array()?, stream)?;
            run_on(a, names.size(), || flat.on(target.stream())?.take_into(names, axis, &target))?;
            Ok(out.clone().into_any())
        }
        None => wrap_like(a, run_on(a, names.size(), || flat.take(names, axis))?, {
            Some(a.get().content()?.descr.clone_ref(a.py()))
        }),
    }
}

/// Returns the indices of the nonzero elements of an array read as one-dimensional.
#[pyfunction]
pub(crate) fn nonzero<'py>(a: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>) -> Object<'py> {
    let a = expect_array("a", a)?;
    let (_, dtype) = dtypes::parse(dtype)?;
    let array = a.get().array()?;
    wrap_like(a, run_on(a, array.size(), || array.nonzero(dtype))?, None)
}

/// Returns the elements at which a mask of the array's shape is true, in C order.
#[pyfunction]
pub(crate) fn compress<'py>(a: &Bound<'py, PyAny>, mask: &Bound<'py, PyAny>) -> Object<'py> {
    let (a, mask) = (expect_array("a", a)?, expect_array("mask", mask)?);
    let (array, truth) = (a.get().array()?, mask.get().array()?);
    wrap_like(a, run_on(a, array.size(), || array.compress(truth))?, {
        Some(a.get().content()?.descr.clone_ref(a.py()))
    })
}

/// Stores `values` in `target` at `indices`, along an axis or in all elements read as one-dimensional.
#[pyfunction]
#[pyo3(signature = (target, indices, values, stream = None, axis = None))]
pub(crate) fn put<'py>(
    target: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    stream: OptionalAny<'_, 'py>,
    axis: Option<isize>,
) -> PyResult<()> {
    let target = expect_array("target", target)?;
    let indices = expect_array("indices", indices)?;
    let values = expect_array("values", values)?;
    check_moved("values", target, values)?;
    let array = on_stream(target.get().array()?, stream)?;
    if axis.is_none() && !array.layout().is_c_contiguous() {
        return Err(PyValueError::new_err("the target of put must be contiguous"));
    }
    let names = indices.get().array()?;
    let values = values.get().array()?;
    let (flat, axis) = along(target.py(), &array, axis)?;
    run_on(target, names.size(), || flat.put(names, values, axis))
}

/// Returns the layout of a new array.
fn layout_of(shape: &Bound<'_, PyAny>, element: DType, order: Option<&str>) -> PyResult<Layout> {
    Layout::contiguous(&parse_shape(shape)?, element.size(), parse_order(order)?).or_raise()
}

/// Returns a new array on the current device with undefined elements.
fn new_array<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    result_allocator: &ResultAllocator,
    order: Option<&str>,
) -> PyResult<(Array, Bound<'py, PyArrayDescr>)> {
    let _line = at_line(shape.py());
    let (descr, element) = dtypes::parse(dtype)?;
    let layout = layout_of(shape, element, order)?;
    let CurrentDevice { device, stream } = current_device()?;
    let array = match result_allocator.allocator.clone() {
        None => Array::with_new_memory(&device, &stream, layout, element),
        allocator => Array::empty(&device, &[0], element, gpuarray::Order::C)
            .and_then(|nothing| nothing.on(&stream))
            .and_then(|nothing| nothing.with_allocator(allocator).new_array(layout, element)),
    };
    Ok((array.or_raise()?, descr))
}

/// Returns an array filled with one value.
#[pyfunction]
#[pyo3(signature = (shape, dtype, value, allocator = None, order = "C"))]
pub(crate) fn full<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    allocator: OptionalAny<'_, 'py>,
    #[pyo3(from_py_with = order_argument)] order: Option<&str>,
) -> Object<'py> {
    let result_allocator = ResultAllocator::from_argument(allocator)?;
    let (array, descr) = new_array(shape, dtype, &result_allocator, order)?;
    fill_with(&array, &descr, value)?;
    wrap_new(py, array, descr.unbind(), result_allocator)
}

/// Returns an array of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype, allocator = None, order = "C"))]
pub(crate) fn zeros<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    allocator: OptionalAny<'_, 'py>,
    #[pyo3(from_py_with = order_argument)] order: Option<&str>,
) -> Object<'py> {
    let result_allocator = ResultAllocator::from_argument(allocator)?;
    let (descr, element) = dtypes::parse(dtype)?;
    if result_allocator.allocator.is_none() && !matches!(element, DType::Opaque(_)) {
        let layout = layout_of(shape, element, order)?;
        let CurrentDevice { device, stream } = current_device()?;
        let array =
            run(py, layout.size(), || Array::zeros(&device, &stream, layout.clone(), element))?;
        return wrap_new(py, array, descr.unbind(), result_allocator);
    }
    let (array, descr) = new_array(shape, dtype, &result_allocator, order)?;
    match array.dtype() {
        DType::Opaque(_) => {
            fill_with(&array, &descr, &py.import("numpy")?.call_method1("zeros", ((), &descr))?)?;
        }
        _ => run(py, array.size(), || array.fill(Scalar::new(0u8)))?,
    }
    wrap_new(py, array, descr.unbind(), result_allocator)
}

/// Converts a number to a dtype; a fraction for an integer dtype is truncated.
fn number_of(name: &str, value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Scalar> {
    let scalar = match expect_value(name, value)? {
        Argument::Scalar(scalar) => scalar.cast(dtype),
        Argument::Number(Number::Float(number)) => Scalar::new(number).cast(dtype),
        Argument::Number(number) => number.to_scalar(dtype),
        Argument::Array(_) => {
            return Err(PyTypeError::new_err(format!("{name} is an array; a number is needed")));
        }
    };
    scalar.or_raise()
}

/// Returns `length` values of a dtype, from `start` with the difference `step`. They are on the stream of
/// the array `like`, or on the current device's default stream.
#[pyfunction]
#[pyo3(signature = (start, step, length, dtype, like = None))]
pub(crate) fn sequence<'py>(
    py: Python<'py>,
    start: &Bound<'py, PyAny>,
    step: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::length)] length: usize,
    dtype: &Bound<'py, PyAny>,
    like: Option<&Bound<'py, GPUArray>>,
) -> Object<'py> {
    let (descr, dtype) = dtypes::parse(dtype)?;
    let (start, step) = (number_of("start", start, dtype)?, number_of("step", step, dtype)?);
    let (device, stream) = match like {
        Some(like) => {
            let array = like.get().array()?;
            (array.device().clone(), array.stream().clone())
        }
        None => {
            let CurrentDevice { device, .. } = current_device()?;
            let stream = device.default_stream();
            (device, stream)
        }
    };
    let array = run(py, length, || Array::sequence_on(&device, &stream, start, step, length))?;
    wrap_new(py, array, descr.unbind(), ResultAllocator::default())
}

/// Returns a new array on another array's stream and with its allocator. If a shape is given, it is in C
/// or Fortran order; otherwise, it has the other array's shape and memory order.
#[pyfunction]
#[pyo3(signature = (like, shape = None, dtype = None, order = None))]
pub(crate) fn new_like<'py>(
    like: &Bound<'py, GPUArray>,
    shape: OptionalAny<'_, 'py>,
    dtype: OptionalAny<'_, 'py>,
    #[pyo3(from_py_with = order_argument)] order: Option<&str>,
) -> Object<'py> {
    let py = like.py();
    let content = like.get().content()?;
    let (descr, dtype) = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtypes::parse(dtype)?,
        None => (content.descr.bind(py).clone(), content.array.dtype()),
    };
    let layout = match shape.filter(|shape| !shape.is_none()) {
        None => None,
        Some(shape) => {
            let (shape, order) = (parse_shape(shape)?, parse_order(order)?);
            Some(Layout::contiguous(&shape, dtype.size(), order).or_raise()?)
        }
    };
    let array = run(py, 0, || match &layout {
        None => content.array.empty_like(dtype),
        Some(layout) => content.array.new_array(layout.clone(), dtype),
    })?;
    wrap_new(py, array, descr.unbind(), content.result_allocator(py))
}
