//! The class `GPUArray`.

mod arguments;
mod construct;
mod dlpack;
mod elements;
mod functions;
mod join;
mod methods;
mod named;
mod operators;
mod protocols;
mod reductions;
mod textures;
mod transfer;

pub(crate) use arguments::{parse_order, parse_shape};
pub(crate) use dlpack::*;
pub(crate) use functions::*;
pub(crate) use join::*;
pub(crate) use named::named_functions;
pub(crate) use reductions::PyReduction;
pub(crate) use transfer::to_gpu;

use crate::allocator::{PythonAllocator, ResultAllocator, allocation_object, mem_alloc_object};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::owner::OwnerReference;
use crate::pool::Ticket;
use crate::status;
use crate::stream::{LEGACY, PER_THREAD};
use gpuarray::hal::attempt::attempt;
use gpuarray::{Array, DType, Layout};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use once_cell::sync::OnceCell;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, OnceLock};

/// Operations on more elements than this release Python's lock while they are queued, since
/// the host backend may carry them out before it returns.
const RELEASE_FROM: usize = 1 << 15;

/// What an array is made of.
pub(crate) struct Content {
    /// Keeps the owner of external memory alive. Before the array, since fields are dropped in this order.
    owner: Option<OwnerReference>,
    pub(crate) array: Array,
    pub(crate) descr: Py<PyArrayDescr>,
    /// Where results get their memory from, as the program sees it.
    allocator: Option<Py<PyAny>>,
    /// The same as the array has it, if it is a Python callable.
    python: Option<Arc<PythonAllocator>>,
    base: Option<Py<PyAny>>,
    gpudata: OnceLock<Py<PyAny>>,
    /// Behind the references to the memory, since fields are dropped in this order.
    ticket: Ticket,
}

impl Content {
    /// Returns the content of an array object whose results are allocated by `result_allocator`.
    fn new(
        array: Array,
        descr: Py<PyArrayDescr>,
        result_allocator: ResultAllocator,
        base: Option<Py<PyAny>>,
    ) -> Content {
        let ticket = Ticket::new(result_allocator.pool.as_ref(), array.memory());
        Content {
            owner: OwnerReference::of(array.memory().external_owner()),
            array: array.with_allocator(result_allocator.allocator),
            descr,
            allocator: result_allocator.object,
            python: result_allocator.python,
            base,
            gpudata: OnceLock::new(),
            ticket,
        }
    }

    /// Returns the allocator of results, for another array object.
    pub(crate) fn result_allocator(&self, py: Python<'_>) -> ResultAllocator {
        match &self.allocator {
            None => ResultAllocator::default(),
            // The collector sees what one array object alone refers to.
            Some(callable) if self.python.is_some() => {
                ResultAllocator::python(callable.clone_ref(py), py)
            }
            Some(object) => ResultAllocator {
                allocator: self.array.allocator().cloned(),
                pool: self.ticket.pool().cloned(),
                python: None,
                object: Some(object.clone_ref(py)),
            },
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.descr)?;
        visit.call(&self.allocator)?;
        visit.call(&self.base)?;
        visit.call(self.gpudata.get())?;
        if let Some(owner) = &self.owner {
            owner.traverse(visit, Arc::strong_count(self.array.memory()))?;
        }
        // This object and its array have one each; a call in progress has another.
        match &self.python {
            Some(python) if Arc::strong_count(python) == 2 => visit.call(&python.callable),
            _ => Ok(()),
        }
    }
}

/// An array in device memory, used as numpy's are: operators and functions work element by
/// element and broadcast.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     The extents of the axes, at most 64.
/// dtype : dtype
///     The type of the elements: bool, an integer, floating-point or complex type of numpy, or a
///     record of fixed size, which is stored but not calculated with. None means float64.
/// allocator : callable, optional
///     Takes a number of bytes and returns memory, for this array and the results of its
///     operations; `driver.mem_alloc` without one.
/// base : object, optional
///     What `gpudata` belongs to, which is kept alive.
/// gpudata : object, optional
///     Memory for the elements: an allocation, or an address. New memory without it.
/// strides : sequence of int, optional
///     Bytes between neighbours along each axis.
/// order : {"C", "F"}, optional
///     The memory order without `strides`.
///
/// Raises
/// ------
/// ValueError
///     The elements do not lie inside `gpudata`, or are not aligned.
/// TypeError
///     An argument has the wrong type.
///
/// Notes
/// -----
/// An integer array to the power of a negative number is refused. A device cannot refuse negative
/// exponents in an array: there the result is what the exact quotient rounds to towards zero.
#[pyclass(frozen, subclass, dict, weakref, name = "GPUArray", module = "pygpu.gpuarray")]
pub(crate) struct GPUArray {
    /// Empty only between `__new__` and `__init__` of a subclass.
    ///
    /// Not std's `OnceLock`, which takes twice the time to make a full one: an array object is made
    /// for every result of an operation.
    content: OnceCell<Content>,
}

impl GPUArray {
    fn with(content: Content) -> GPUArray {
        GPUArray { content: OnceCell::with_value(content) }
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

/// Runs work on arrays of `elements` elements, without Python's lock if they are many, or if it
/// would wait for other work or for room in a queue.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    elements: usize,
    work: impl Fn() -> gpuarray::Result<T> + Send,
) -> PyResult<T> {
    if elements < RELEASE_FROM
        && !gpuarray::hal::backlog::exists()
        && let Some(result) = attempt(&work)
    {
        return result.or_raise();
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

    /// Neither locks nor counts references. There is nothing to clear: all that an array refers
    /// to is older than the array, so a cycle goes through something else that can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.content.get().map_or(Ok(()), |content| content.traverse(&visit))
    }

    /// The extents of the axes, as numpy's `shape`.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array()?.shape())
    }

    /// The distances in bytes between neighbours along each axis, as numpy's `strides`.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array()?.strides())
    }

    /// The type of the elements, as a numpy dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyArrayDescr>> {
        Ok(self.content()?.descr.clone_ref(py))
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.array()?.size())
    }

    /// The number of elements: PyCUDA's other name of `size`.
    #[getter]
    fn mem_size(&self) -> PyResult<usize> {
        self.size()
    }

    /// The bytes of all elements; gaps between them do not count.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.array()?.layout().nbytes())
    }

    /// The bytes of one element.
    #[getter]
    fn itemsize(&self) -> PyResult<usize> {
        Ok(self.array()?.dtype().size())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.array()?.ndim())
    }

    /// Which memory orders the elements have: an object with `c_contiguous`, `f_contiguous` and
    /// `forc` (either of the two).
    #[getter]
    fn flags(&self) -> PyResult<ArrayFlags> {
        Ok(ArrayFlags::of(self.array()?.layout()))
    }

    /// The callable that results of this array get their memory from: what was given when it was
    /// made, else `driver.mem_alloc`.
    #[getter]
    fn allocator(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.content()?.allocator {
            Some(allocator) => Ok(allocator.clone_ref(py)),
            None => mem_alloc_object(py),
        }
    }

    /// The array that this one is a view of, or the object given as `base`; else None.
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

    /// The device address of the first element; 0 without elements.
    #[getter]
    fn ptr(&self) -> PyResult<u64> {
        Ok(self.array()?.address())
    }

    /// The status of the last operation that this object took part in.
    #[getter]
    fn last_status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        status::object(py, self.array()?.last_status())
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
        interface.set_item("stream", self.stream_for_others(py)?)?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// The grid of a launch with a thread or more for each element; see `gpuarray.splay`.
    #[getter]
    fn _grid(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 0)
    }

    /// The block of a launch with a thread or more for each element; see `gpuarray.splay`.
    #[getter]
    fn _block(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 1)
    }
}

impl GPUArray {
    /// The handle of the stream behind whose work others may use the array; `None` if nothing is
    /// queued, and on the host, where no stream has a handle.
    fn stream_for_others(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let array = self.array()?;
        if array.size() == 0 || !array.device().shares_streams() {
            return Ok(None);
        }
        let handle = || {
            let stream = array.memory().stream_in_order()?;
            if !stream.is_capturing()? && stream.query()? {
                return Ok(None);
            }
            if stream.has_handle(PER_THREAD) {
                // The number means another stream on the thread that reads it.
                stream.synchronize()?;
                return Ok(None);
            }
            // The interface's number of the default stream is not 0.
            Ok(Some(stream.handle().max(LEGACY)))
        };
        py.detach(handle).or_raise()
    }

    fn splay(&self, py: Python<'_>, part: usize) -> PyResult<Py<PyAny>> {
        let pair = py.import("pygpu.gpuarray")?.call_method1("splay", (self.size()?,))?;
        Ok(pair.get_item(part)?.unbind())
    }
}
