//! The class `GPUArray`.

mod arguments;
mod attributes;
mod construct;
mod dlpack;
mod elements;
mod functions;
mod fused;
mod host_copies;
mod indexing;
mod join;
mod matrices;
mod methods;
mod named;
mod operators;
mod reduction_methods;
mod reductions;
mod replaced;
mod results;
mod sorting;
mod textures;
mod transfer;
mod ufuncs;
mod views;

pub(crate) use attributes::ArrayFlags;
pub(crate) use dlpack::*;
pub(crate) use functions::*;
pub(crate) use join::*;
pub(crate) use matrices::*;
pub(crate) use named::named_functions;
pub(crate) use reductions::*;
pub(crate) use results::*;
pub(crate) use sorting::*;
pub(crate) use transfer::{on_stream, to_gpu};
pub(crate) use ufuncs::{UniversalFunction, universal_functions};
pub(crate) use views::strided_view;

use crate::allocator::{PythonAllocator, ResultAllocator, take_object};
use crate::checks::note_array;
use crate::owner::OwnerReference;
use crate::pool::Ticket;
use crate::synchronize::run;
use gpuarray::{Array, DType};
use numpy::PyArrayDescr;
use once_cell::sync::OnceCell;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use replaced::{Replaced, State, drop_state};
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, OnceLock};

/// An argument, an optional one, and a result that is any object.
type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type OptionalAny<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// The state of an array object.
pub(crate) struct Content {
    /// Keeps the owner of external memory alive. Declared before the array, because fields are dropped in
    /// this order.
    owner: Option<OwnerReference>,
    pub(crate) array: Array,
    pub(crate) descr: Py<PyArrayDescr>,
    /// The allocator of results, as the program sees it.
    allocator: Option<Py<PyAny>>,
    /// The allocator in the array's own form, if it is a Python callable.
    python: Option<Arc<PythonAllocator>>,
    base: Option<Py<PyAny>>,
    gpudata: OnceLock<Py<PyAny>>,
    /// Declared after the references to the memory, because fields are dropped in this order.
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
        note_array(&array);
        let ticket = Ticket::new(result_allocator.pool.as_ref(), array.memory());
        let made = result_allocator.python.as_ref().and_then(|_| take_object(array.memory()));
        let gpudata = made.filter(|_| base.is_none()).map_or_else(OnceLock::new, OnceLock::from);
        Content {
            owner: OwnerReference::of(array.memory().external_owner()),
            array: array.with_allocator(result_allocator.allocator),
            descr,
            allocator: result_allocator.object,
            python: result_allocator.python,
            base,
            gpudata,
            ticket,
        }
    }

    /// Returns the allocator of results, for another array object.
    pub(crate) fn result_allocator(&self, py: Python<'_>) -> ResultAllocator {
        match &self.allocator {
            None => ResultAllocator::default(),
            // The garbage collector only sees references that belong to a single array object.
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

    /// Returns true if dropping the content may drop other objects of the program.
    fn keeps_objects(&self) -> bool {
        self.base.is_some()
            || self.owner.is_some()
            || self.allocator.is_some()
            || self.gpudata.get().is_some()
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.descr)?;
        visit.call(&self.allocator)?;
        visit.call(&self.base)?;
        visit.call(self.gpudata.get())?;
        if let Some(owner) = &self.owner {
            owner.traverse(visit, Arc::strong_count(self.array.memory()))?;
        }
        // This object and its array each hold one reference; a call in progress holds another.
        match &self.python {
            Some(python) if Arc::strong_count(python) == 2 => visit.call(&python.callable),
            _ => Ok(()),
        }
    }
}

/// An array in device memory, used like a numpy array: operators and functions work element by element and
/// broadcast.
///
/// Parameters
/// ----------
/// shape : int or sequence of int. The extents of the axes, at most 64.
/// dtype : dtype
///     The type of the elements: a boolean, integer, floating-point or complex type of numpy, or a
///     record of fixed size, which can be stored but not used in arithmetic. None means float64.
/// allocator : callable, optional. Takes a number of bytes and returns memory, for this array and
///     the results of its operations; `driver.mem_alloc` if omitted.
/// base : object, optional. The owner of `gpudata`, which is kept alive.
/// gpudata : object, optional
///     Memory for the elements: an allocation, or an address. New memory is allocated if omitted.
/// strides : sequence of int, optional. Bytes between neighbours along each axis.
/// order : {"C", "F"}, optional. The memory order if `strides` is omitted.
///
/// Raises
/// ------
/// ValueError
///     The elements are not inside `gpudata`, or are not aligned.
/// TypeError
///     An argument has the wrong type.
///
/// Notes
/// -----
/// Unlike in PyCUDA, arrays of different shapes are broadcast, and views with any strides are operands.
/// Dtypes are promoted as by numpy 2, so that dividing integers by integers gives float64. Memory that
/// several streams use is ordered among them.
///
/// An integer array to the power of a negative number is refused. A device cannot refuse negative exponents
/// in an array: there, the result is the exact quotient rounded towards zero.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, gpuarray
/// >>> a = gpuarray.GPUArray((2, 3), np.float32)
/// >>> _ = a.fill(1)
/// >>> (a + gpuarray.arange(3, dtype=np.float32))[0]
/// array([1., 2., 3.], dtype=float32)
#[pyclass(frozen, subclass, dict, weakref, name = "GPUArray", module = "pygpu.gpuarray")]
pub(crate) struct GPUArray {
    /// Empty only between `__new__` and `__init__` of a subclass, and in objects made without memory.
    ///
    /// std's `OnceLock` is not used, because it takes twice the time to create a full one, and an array
    /// object is created for every result of an operation. An object full of zeros, which the garbage
    /// collector may visit (see [`crate::owner::Filled`]), is also empty.
    content: OnceCell<Content>,
    /// Empty in nearly all objects.
    replaced: OnceCell<Replaced>,
    /// The position of the record for a view that `a[i]` made (see [`indexing::forget_made`]).
    noted: AtomicU8,
}

impl GPUArray {
    fn with(content: Content) -> GPUArray {
        GPUArray::of(OnceCell::with_value(content))
    }

    fn of(content: OnceCell<Content>) -> GPUArray {
        GPUArray { content, replaced: OnceCell::new(), noted: AtomicU8::new(0) }
    }

    /// Returns the content; fails if the array does not have memory, or if a subclass has not called
    /// `GPUArray.__init__`.
    pub(crate) fn content(&self) -> PyResult<&Content> {
        if let Some(replaced) = self.replaced.get()
            && let Some(content) = GPUArray::later_content(replaced)?
        {
            return Ok(content);
        }
        match self.content.get() {
            Some(content) => Ok(content),
            None => self.computed(),
        }
    }

    /// Returns the content after computing pending elements.
    #[cold]
    fn computed(&self) -> PyResult<&Content> {
        match self.pending() {
            Some(pending) => {
                let content = pending.compute()?;
                // Another thread may have computed them meanwhile.
                Ok(self.content.get_or_init(|| content))
            }
            None => Err(PyRuntimeError::new_err(
                "GPUArray.__init__ has not been called for this object",
            )),
        }
    }

    pub(crate) fn array(&self) -> PyResult<&Array> {
        Ok(&self.content()?.array)
    }
}

impl Drop for GPUArray {
    fn drop(&mut self) {
        if self.content.get().is_some_and(Content::keeps_objects)
            && let Some(content) = self.content.take()
        {
            indexing::forget_made(self);
            drop_state(State::Filled(content));
        }
    }
}

/// Runs work on an array of `elements` elements; see [`run`]. In errors, the array's numpy dtype replaces a
/// dtype that the core only knows by its element size.
pub(crate) fn run_on<T: Send>(
    array: &Bound<'_, GPUArray>,
    elements: usize,
    work: impl Fn() -> gpuarray::Result<T> + Send,
) -> PyResult<T> {
    run(array.py(), elements, work).map_err(|error| with_name_of_dtype(error, array))
}

#[cold]
fn with_name_of_dtype(error: PyErr, array: &Bound<'_, GPUArray>) -> PyErr {
    let (py, value) = (array.py(), error.value(array.py()));
    let rename = || -> PyResult<()> {
        let content = array.get().content()?;
        let element = content.array.dtype();
        if matches!(element, DType::Opaque(_)) {
            let name = content.descr.bind(py).str()?;
            let text = value.str()?.to_string();
            value.setattr("args", (text.replace(&element.to_string(), &name.to_string()),))?;
        }
        Ok(())
    };
    // If renaming fails, the message stays unchanged.
    let _ = rename();
    error
}
