//! Array objects for the results of operations, and for views.

use super::{Content, GPUArray};
use crate::allocator::{ResultAllocator, allocation_object, take_object};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::shape::{order_argument, parse_order};
use crate::synchronize::run;
use gpuarray::{Array, DType, Layout};
use numpy::PyArrayDescr;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Returns the dtype object for a result: `like`'s own if it denotes the same type.
pub(super) fn descr_for(
    py: Python<'_>,
    dtype: DType,
    like: &Content,
) -> PyResult<Py<PyArrayDescr>> {
    if dtype == like.array.dtype() {
        return Ok(like.descr.clone_ref(py));
    }
    dtypes::to_numpy(py, dtype)
}

/// Returns a result as an object of the class of `like`, with its allocator.
pub(crate) fn wrap_like<'py>(
    like: &Bound<'py, GPUArray>,
    array: Array,
    descr: Option<Py<PyArrayDescr>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let content = like.get().content()?;
    let descr = match descr {
        Some(descr) => descr,
        None => descr_for(py, array.dtype(), content)?,
    };
    if like.is_exact_instance_of::<GPUArray>() {
        return wrap_new(py, array, descr, content.result_allocator(py));
    }
    // A subclass may decide how its objects are made.
    let own = like.get_type().getattr("_new_like_me")?;
    if !own.is(py.get_type::<GPUArray>().getattr("_new_like_me")?) {
        return in_new_like(like, &array, descr.bind(py));
    }
    in_class_of(like, array, descr)
}

/// Returns an array as an object of a subclass, by calling the constructor.
fn in_class_of<'py>(
    like: &Bound<'py, GPUArray>,
    array: Array,
    descr: Py<PyArrayDescr>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let content = like.get().content()?;
    let pool = content.ticket.pool();
    let arguments = PyDict::new(py);
    if let Some(allocator) = &content.allocator {
        arguments.set_item("allocator", allocator)?;
    }
    arguments.set_item("strides", PyTuple::new(py, array.strides())?)?;
    if array.size() > 0 {
        let bytes = array.layout().nbytes();
        let gpudata = match take_object(array.memory()) {
            Some(returned) => returned,
            None => allocation_object(py, array.memory(), pool, bytes)?,
        };
        arguments.set_item("gpudata", gpudata)?;
    }
    let shape = PyTuple::new(py, array.shape())?;
    like.get_type().call((shape, descr), Some(&arguments))
}

/// Returns a result in an object that a subclass's own `_new_like_me` makes, as PyCUDA's operations do.
fn in_new_like<'py>(
    like: &Bound<'py, GPUArray>,
    array: &Array,
    descr: &Bound<'py, PyArrayDescr>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    let own = like.get().array()?;
    let made = if array.dtype() == own.dtype() && array.shape() == own.shape() {
        like.call_method0("_new_like_me")?
    } else {
        like.call_method1("_new_like_me", (descr,))?
    };
    let target = made.cast::<GPUArray>()?.get().array()?;
    if target.shape() != array.shape() || target.dtype() != array.dtype() {
        // PyCUDA's operations never request this.
        return wrap_new(
            py,
            array.clone(),
            descr.clone().unbind(),
            like.get().content()?.result_allocator(py),
        );
    }
    run(py, array.size(), || target.assign(array))?;
    // What an allocator returned for the elements is not needed any longer.
    drop(take_object(array.memory()));
    Ok(made)
}

#[pymethods]
impl GPUArray {
    /// Returns a new array of the same shape and memory order, with undefined elements. If a subclass
    /// overrides this method, the results of operations are made by it.
    #[pyo3(signature = (dtype = None, order = None))]
    fn _new_like_me<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let content = slf.get().content()?;
        let (descr, dtype) = match dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => dtypes::parse(dtype)?,
            None => (content.descr.bind(py).clone(), content.array.dtype()),
        };
        let array = match order {
            None => run(py, 0, || content.array.empty_like(dtype))?,
            Some(order) => {
                let order = parse_order(Some(order))?;
                let layout = Layout::contiguous(content.array.shape(), dtype.size(), order);
                let layout = layout.or_raise()?;
                run(py, 0, || content.array.new_array(layout.clone(), dtype))?
            }
        };
        if slf.is_exact_instance_of::<GPUArray>() {
            return wrap_new(py, array, descr.unbind(), content.result_allocator(py));
        }
        in_class_of(slf, array, descr.unbind())
    }
}

/// Like [`wrap_like`], with another allocator if one was given.
pub(crate) fn wrap_with_allocator<'py>(
    like: &Bound<'py, GPUArray>,
    array: Array,
    allocator: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let result_allocator = ResultAllocator::from_argument(allocator)?;
    if result_allocator.allocator.is_none() || !like.is_exact_instance_of::<GPUArray>() {
        return wrap_like(like, array, None);
    }
    let descr = descr_for(like.py(), array.dtype(), like.get().content()?)?;
    wrap_new(like.py(), array, descr, result_allocator)
}

/// Returns a view of `base`.
pub(crate) fn wrap_view<'py>(
    base: &Bound<'py, GPUArray>,
    array: Array,
    descr: Option<Py<PyArrayDescr>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let content = base.get().content()?;
    let descr = descr.unwrap_or_else(|| content.descr.clone_ref(py));
    let base = Some(base.clone().into_any().unbind());
    let content = Content::new(array, descr, content.result_allocator(py), base);
    Ok(Bound::new(py, GPUArray::with(content))?.into_any())
}

/// Returns a new array object that is not modelled on another.
pub(crate) fn wrap_new(
    py: Python<'_>,
    array: Array,
    descr: Py<PyArrayDescr>,
    result_allocator: ResultAllocator,
) -> PyResult<Bound<'_, PyAny>> {
    let content = Content::new(array, descr, result_allocator, None);
    Ok(Bound::new(py, GPUArray::with(content))?.into_any())
}
