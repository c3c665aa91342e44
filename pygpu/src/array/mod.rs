//! The class `GPUArray`.

mod arguments;
mod construct;
mod functions;
mod join;
mod methods;
mod operators;
mod transfer;

pub(crate) use arguments::{parse_order, parse_shape};
pub(crate) use functions::*;
pub(crate) use join::*;
pub(crate) use transfer::to_gpu;

use crate::allocator::{Source, allocation_object, mem_alloc_object};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::init::InitCell;
use crate::pool::{DevicePool, Ticket};
use gpuarray::{Array, DType, Layout};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, OnceLock};

/// Operations on more elements than this release Python's lock while they are queued, since
/// the host backend may carry them out before it returns.
const RELEASE_FROM: usize = 1 << 15;

/// What an array is made of.
pub(crate) struct Content {
    pub(crate) array: Array,
    pub(crate) descr: Py<PyArrayDescr>,
    /// Where results get their memory from, as the program sees it.
    allocator: Option<Py<PyAny>>,
    base: Option<Py<PyAny>>,
    gpudata: OnceLock<Py<PyAny>>,
    /// Behind the references to the memory, since fields are dropped in this order.
    ticket: Ticket,
}

impl Content {
    /// `array` with its allocator as the program sees it.
    fn new(
        array: Array,
        descr: Py<PyArrayDescr>,
        allocator: Option<Py<PyAny>>,
        pool: Option<&Arc<DevicePool>>,
        base: Option<Py<PyAny>>,
    ) -> Content {
        let ticket = Ticket::new(pool, array.memory());
        Content { array, descr, allocator, base, gpudata: OnceLock::new(), ticket }
    }

    /// The allocator, as the program sees it.
    fn allocator_object(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.allocator.as_ref().map(|allocator| allocator.clone_ref(py))
    }
}

/// An array in device memory, used as numpy's are: operators and functions work element by
/// element and broadcast.
#[pyclass(frozen, subclass, dict, weakref, name = "GPUArray", module = "pygpu.gpuarray")]
pub(crate) struct GPUArray {
    /// Empty only between `__new__` and `__init__` of a subclass.
    content: InitCell<Content>,
}

impl GPUArray {
    fn with(content: Content) -> GPUArray {
        GPUArray { content: InitCell::full(content) }
    }

    /// The array, unless a subclass has not called `GPUArray.__init__`.
    pub(crate) fn content(&self) -> PyResult<&Content> {
        self.content.get().ok_or_else(|| {
            PyRuntimeError::new_err("GPUArray.__init__ has not been called for this object")
        })
    }

    pub(crate) fn array(&self) -> PyResult<&Array> {
        Ok(&self.content()?.array)
    }
}

/// The dtype object for a result: `like`'s own if it stands for the same type.
fn descr_for(py: Python<'_>, dtype: DType, like: &Content) -> PyResult<Py<PyArrayDescr>> {
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
    let allocator = content.allocator_object(py);
    let pool = content.ticket.pool();
    if like.is_exact_instance_of::<GPUArray>() {
        let content = Content::new(array, descr, allocator, pool, None);
        return Ok(Bound::new(py, GPUArray::with(content))?.into_any());
    }
    // A subclass decides how its objects are made, as PyCUDA's `_new_like_me` does.
    let arguments = PyDict::new(py);
    if let Some(allocator) = allocator {
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
    let source = Source::from_argument(allocator)?;
    if source.allocator.is_none() || !like.is_exact_instance_of::<GPUArray>() {
        return wrap_like(like, array, None);
    }
    let descr = descr_for(like.py(), array.dtype(), like.get().content()?)?;
    wrap_new(like.py(), array, descr, source)
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
    let allocator = content.allocator_object(py);
    let base = Some(base.clone().into_any().unbind());
    let content = Content::new(array, descr, allocator, content.ticket.pool(), base);
    Ok(Bound::new(py, GPUArray::with(content))?.into_any())
}

/// A new array without anything to be like.
pub(crate) fn wrap_new(
    py: Python<'_>,
    array: Array,
    descr: Py<PyArrayDescr>,
    source: Source,
) -> PyResult<Bound<'_, PyAny>> {
    let content = Content::new(array, descr, source.object, source.pool.as_ref(), None);
    Ok(Bound::new(py, GPUArray::with(content))?.into_any())
}

/// Runs work on arrays of `elements` elements, without Python's lock if they are many.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    elements: usize,
    work: impl FnOnce() -> gpuarray::Result<T> + Send,
) -> PyResult<T> {
    if elements < RELEASE_FROM {
        return work().or_raise();
    }
    // The exception of a Python allocator is kept per thread, and `detach` stays on this one.
    py.detach(work).or_raise()
}

/// Which memory orders an array's elements have.
#[pyclass(frozen, module = "pygpu.gpuarray")]
pub(crate) struct ArrayFlags {
    /// The last axis is the fastest, without gaps.
    #[pyo3(get)]
    c_contiguous: bool,
    /// The first axis is the fastest, without gaps.
    #[pyo3(get)]
    f_contiguous: bool,
    /// Either of the two.
    #[pyo3(get)]
    forc: bool,
}

impl ArrayFlags {
    fn of(layout: &Layout) -> ArrayFlags {
        let (c, f) = (layout.is_c_contiguous(), layout.is_f_contiguous());
        ArrayFlags { c_contiguous: c, f_contiguous: f, forc: c || f }
    }
}

#[pymethods]
impl ArrayFlags {
    fn __repr__(&self) -> String {
        let python = |flag| if flag { "True" } else { "False" };
        format!(
            "  C_CONTIGUOUS : {}\n  F_CONTIGUOUS : {}",
            python(self.c_contiguous),
            python(self.f_contiguous)
        )
    }
}

/// The attributes.
#[pymethods]
impl GPUArray {
    #[classattr]
    fn __array_priority__() -> i32 {
        100
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array()?.shape())
    }

    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array()?.strides())
    }

    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyArrayDescr>> {
        Ok(self.content()?.descr.clone_ref(py))
    }

    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.array()?.size())
    }

    #[getter]
    fn mem_size(&self) -> PyResult<usize> {
        self.size()
    }

    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.array()?.layout().nbytes())
    }

    #[getter]
    fn itemsize(&self) -> PyResult<usize> {
        Ok(self.array()?.dtype().size())
    }

    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.array()?.ndim())
    }

    #[getter]
    fn flags(&self) -> PyResult<ArrayFlags> {
        Ok(ArrayFlags::of(self.array()?.layout()))
    }

    #[getter]
    fn allocator(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.content()?.allocator_object(py) {
            Some(allocator) => Ok(allocator),
            None => mem_alloc_object(py),
        }
    }

    #[getter]
    fn base(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.content()?.base.as_ref().map(|base| base.clone_ref(py)))
    }

    /// What stands for the memory: an allocation, an address for a view, `None` without
    /// elements.
    #[getter]
    fn gpudata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let content = self.content()?;
        let array = &content.array;
        if array.size() == 0 {
            return Ok(py.None());
        }
        if let Some(object) = content.gpudata.get() {
            return Ok(object.clone_ref(py));
        }
        let object = if content.base.is_some() {
            array.address().into_pyobject(py)?.into_any().unbind()
        } else {
            let bytes = array.layout().nbytes();
            allocation_object(py, array.memory(), content.ticket.pool(), bytes)?
        };
        Ok(content.gpudata.get_or_init(|| object).clone_ref(py))
    }

    #[getter]
    fn ptr(&self) -> PyResult<u64> {
        Ok(self.array()?.address())
    }

    /// The status code of the last operation that this object took part in.
    #[getter]
    fn last_status(&self) -> PyResult<i32> {
        Ok(self.array()?.last_status())
    }

    /// The description of the array that other libraries read, version 3.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let content = self.content()?;
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("strides", self.strides(py)?)?;
        interface.set_item("data", (content.array.address(), false))?;
        interface.set_item("typestr", content.descr.bind(py).getattr("str")?)?;
        let is_record = content.descr.bind(py).has_fields();
        if is_record {
            interface.set_item("descr", content.descr.bind(py).getattr("descr")?)?;
        }
        interface.set_item("stream", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    #[getter]
    fn _grid(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 0)
    }

    #[getter]
    fn _block(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 1)
    }
}

impl GPUArray {
    fn splay(&self, py: Python<'_>, part: usize) -> PyResult<Py<PyAny>> {
        let pair = py.import("pygpu.gpuarray")?.call_method1("splay", (self.size()?,))?;
        Ok(pair.get_item(part)?.unbind())
    }
}
