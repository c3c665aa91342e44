//! Array objects for the results of operations, and for views.

use super::{Content, GPUArray};
use crate::allocator::{ResultAllocator, allocation_object};
use crate::dtypes;
use gpuarray::{Array, DType};
use numpy::PyArrayDescr;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The dtype object for a result: `like`'s own if it stands for the same type.
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

/// A result as an object of the class of `like`, with its allocator.
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
    // A subclass decides how its objects are made, as PyCUDA's `_new_like_me` does.
    let pool = content.ticket.pool();
    let arguments = PyDict::new(py);
    if let Some(allocator) = &content.allocator {
        arguments.set_item("allocator", allocator)?;
    }
    arguments.set_item("strides", PyTuple::new(py, array.strides())?)?;
    if array.size() > 0 {
        let bytes = array.layout().nbytes();
        let gpudata = allocation_object(py, array.memory(), pool, bytes)?;
        arguments.set_item("gpudata", gpudata)?;
    }
    let shape = PyTuple::new(py, array.shape())?;
    like.get_type().call((shape, descr), Some(&arguments))
}

/// As [`wrap_like`], remembering another allocator if one was given.
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

/// A view of `base`.
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

/// A new array without anything to be like.
pub(crate) fn wrap_new(
    py: Python<'_>,
    array: Array,
    descr: Py<PyArrayDescr>,
    result_allocator: ResultAllocator,
) -> PyResult<Bound<'_, PyAny>> {
    let content = Content::new(array, descr, result_allocator, None);
    Ok(Bound::new(py, GPUArray::with(content))?.into_any())
}
