//! Array objects without memory, and array objects whose memory or allocator the program has replaced.
//!
//! In PyCUDA, `gpudata`, `allocator`, `shape` and `strides` are plain attributes. Programs create arrays on a
//! null address as placeholders for memory that they assign later, and move arrays to other memory.

use super::construct::{bytes_below, memory_for, parse_strides, place};
use super::fused::Deferred;
use super::{Content, GPUArray};
use crate::allocator::ResultAllocator;
use crate::current_device::current_device;
use crate::errors::{OrRaise, to_python};
use crate::shape::parse_new_shape;
use gpuarray::{Array, DType, Error, Layout, Order};
use hal::operation::{Shape, Strides};
use numpy::PyArrayDescr;
use once_cell::sync::OnceCell;
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::cell::{Cell, RefCell};
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The state of an array object without memory.
pub(super) struct Vacant {
    pub(super) layout: Layout,
    pub(super) element: DType,
    pub(super) descr: Py<PyArrayDescr>,
    /// The null address that the program passed.
    pub(super) gpudata: Py<PyAny>,
    pub(super) allocator: Option<Py<PyAny>>,
    pub(super) base: Option<Py<PyAny>>,
}

/// The state of an array object after a replacement.
pub(super) enum State {
    Vacant(Vacant),
    Filled(Content),
}

/// The states of an array object since its first replacement, in order.
///
/// Calls that run without Python's lock refer to the object's state at their beginning. So no state is removed
/// before the object is dropped. A program that alternates between several memory objects adds each of them only
/// once.
#[derive(Default)]
pub(super) struct Replaced {
    /// The elements of an object that a block of fused operations made.
    pub(super) deferred: OnceCell<Deferred>,
    /// The number of the current entry; 0 is the object's original state.
    current: AtomicUsize,
    entries: OnceCell<Box<Entry>>,
}

struct Entry {
    state: State,
    next: OnceCell<Box<Entry>>,
}

impl Drop for Replaced {
    /// Iterative, because dropping a linked list recursively would use a stack frame per entry.
    fn drop(&mut self) {
        let mut entries = self.entries.take();
        while let Some(entry) = entries {
            let Entry { state, next } = *entry;
            entries = next.into_inner();
            drop_state(state);
        }
    }
}

impl Replaced {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        iter::successors(self.entries.get(), |entry| entry.next.get()).map(|entry| &**entry)
    }

    /// Returns the current state; `None` for the original one.
    pub(super) fn state(&self) -> Option<&State> {
        let number = self.current.load(Ordering::Acquire).checked_sub(1)?;
        self.entries().nth(number).map(|entry| &entry.state)
    }

    /// Makes a state the current one.
    fn replace(&self, first: Option<&Content>, state: State) {
        let is_same = match (&state, first) {
            (State::Filled(new), Some(first)) => first.is_replaceable_by(new),
            _ => false,
        };
        if is_same {
            return self.current.store(0, Ordering::Release);
        }
        if let Some(known) = self.entries().position(|entry| entry.state.is_replaceable_by(&state))
        {
            return self.current.store(known + 1, Ordering::Release);
        }
        let (mut cell, mut number) = (&self.entries, 1);
        let mut entry = Box::new(Entry { state, next: OnceCell::new() });
        while let Err((next, rejected)) = cell.try_insert(entry) {
            (cell, entry, number) = (&next.next, rejected, number + 1);
        }
        self.current.store(number, Ordering::Release);
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.deferred.get().map(|deferred| &deferred.descr))?;
        for entry in self.entries() {
            match &entry.state {
                State::Filled(content) => content.traverse(visit)?,
                State::Vacant(vacant) => {
                    visit.call(&vacant.descr)?;
                    visit.call(&vacant.gpudata)?;
                    visit.call(&vacant.allocator)?;
                    visit.call(&vacant.base)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns true if both are the same object, or both are `None`.
fn is_same(a: Option<&Py<PyAny>>, b: Option<&Py<PyAny>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.is(b),
        (None, None) => true,
        _ => false,
    }
}

impl State {
    fn is_replaceable_by(&self, other: &State) -> bool {
        match (self, other) {
            (State::Filled(own), State::Filled(other)) => own.is_replaceable_by(other),
            (State::Vacant(own), State::Vacant(other)) => {
                own.layout == other.layout
                    && is_same(own.allocator.as_ref(), other.allocator.as_ref())
                    && is_same(own.base.as_ref(), other.base.as_ref())
            }
            _ => false,
        }
    }
}

impl Content {
    /// Returns true if the program cannot distinguish the two contents of one array object.
    fn is_replaceable_by(&self, other: &Content) -> bool {
        let is_same_memory = match (self.gpudata.get(), other.gpudata.get()) {
            // Each access to an address creates a new number object.
            (Some(own), Some(other)) => Python::attach(|py| {
                let is_number = |it: &Py<PyAny>| it.bind(py).is_exact_instance_of::<PyInt>();
                own.is(other) || is_number(own) && is_number(other)
            }),
            (own, other) => is_same(own, other),
        };
        is_same_memory
            && self.array.address() == other.array.address()
            && self.array.layout() == other.array.layout()
            && is_same(self.allocator.as_ref(), other.allocator.as_ref())
            && is_same(self.base.as_ref(), other.base.as_ref())
    }
}

impl GPUArray {
    /// Sets the state of an object without memory, or replaces the current state.
    pub(super) fn replace(&self, state: State) {
        self.replaced.get_or_init(Replaced::default).replace(self.content.get(), state);
    }

    /// Returns the state of an object without memory; `None` if it has memory.
    pub(super) fn vacant(&self) -> Option<&Vacant> {
        match self.replaced.get()?.state()? {
            State::Vacant(vacant) => Some(vacant),
            State::Filled(_) => None,
        }
    }

    /// Returns the content after a replacement; `None` for the original content.
    #[cold]
    pub(super) fn later_content(replaced: &Replaced) -> PyResult<Option<&Content>> {
        match replaced.state() {
            None => Ok(None),
            Some(State::Filled(content)) => Ok(Some(content)),
            Some(State::Vacant(_)) => Err(to_python(Error::invalid(
                "array",
                "it has no memory, for its gpudata is null; assign an allocation or an address to gpudata",
            ))),
        }
    }

    pub(super) fn layout(&self) -> PyResult<&Layout> {
        match (self.vacant(), self.pending()) {
            (Some(vacant), _) => Ok(&vacant.layout),
            (None, Some(pending)) => Ok(pending.expression.layout()),
            (None, None) => Ok(self.array()?.layout()),
        }
    }

    pub(super) fn element(&self) -> PyResult<DType> {
        match (self.vacant(), self.pending()) {
            (Some(vacant), _) => Ok(vacant.element),
            (None, Some(pending)) => Ok(pending.expression.dtype()),
            (None, None) => Ok(self.array()?.dtype()),
        }
    }

    pub(super) fn descr(&self) -> PyResult<&Py<PyArrayDescr>> {
        match (self.vacant(), self.pending()) {
            (Some(vacant), _) => Ok(&vacant.descr),
            (None, Some(pending)) => Ok(&pending.descr),
            (None, None) => Ok(&self.content()?.descr),
        }
    }

    pub(super) fn allocator_object(&self) -> PyResult<Option<&Py<PyAny>>> {
        match self.vacant() {
            Some(vacant) => Ok(vacant.allocator.as_ref()),
            None => Ok(self.content()?.allocator.as_ref()),
        }
    }

    pub(super) fn base_object(&self) -> PyResult<Option<&Py<PyAny>>> {
        match self.vacant() {
            Some(vacant) => Ok(vacant.base.as_ref()),
            None => Ok(self.content()?.base.as_ref()),
        }
    }
}

impl GPUArray {
    /// Gives the object the elements of another array in the same memory.
    fn replace_array(&self, py: Python<'_>, array: Array) -> PyResult<()> {
        let own = self.content()?;
        let copy = |it: &Option<Py<PyAny>>| it.as_ref().map(|it| it.clone_ref(py));
        let base = copy(&own.base);
        let gpudata = own.gpudata.get().map(|it| it.clone_ref(py));
        let mut content =
            Content::new(array, own.descr.clone_ref(py), own.result_allocator(py), base);
        if let Some(object) = gpudata {
            content.gpudata = OnceLock::from(object);
        }
        self.replace(State::Filled(content));
        Ok(())
    }
}

#[pymethods]
impl GPUArray {
    /// Moves the object to other memory: an allocation or an address with room for its shape and strides. With
    /// None or a null address, the object has no memory, and can only be given other memory. The previous memory is
    /// kept as long as the object.
    #[setter]
    fn set_gpudata(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let (layout, element) = (self.layout()?, self.element()?);
        let descr = self.descr()?.clone_ref(py);
        let base = self.base_object()?.map(|base| base.clone_ref(py));
        let allocator = self.allocator_object()?.map(|it| it.clone_ref(py));
        if layout.size() == 0 {
            return Ok(());
        }
        let shape = Shape::from_slice(layout.shape());
        let strides = Strides::from_slice(layout.strides());
        let low = bytes_below(&shape, Some(&strides), element.size())?;
        let layout = Layout::with_strides(&shape, &strides, low, element.size()).or_raise()?;
        let memory = match value.is_none() {
            true => None,
            false => memory_for(value, None, low, &layout)?,
        };
        let Some(memory) = memory else {
            let gpudata = value.clone().unbind();
            let vacant = Vacant { layout, element, descr, gpudata, allocator, base };
            self.replace(State::Vacant(vacant));
            return Ok(());
        };
        let stream = match self.vacant() {
            Some(_) => current_device()?.stream,
            None => self.array()?.stream().clone(),
        };
        let array = place(memory, &layout, element, &stream)?;
        let allocator = ResultAllocator::from_argument(allocator.as_ref().map(|it| it.bind(py)))?;
        let mut content = Content::new(array, descr, allocator, base);
        content.gpudata = OnceLock::from(value.clone().unbind());
        self.replace(State::Filled(content));
        Ok(())
    }

    /// Gives the same elements another shape in the same memory, as numpy does; the number of elements must not
    /// change. One extent may be -1. Raises an error if the strides do not allow a view.
    #[setter]
    fn set_shape(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let shape = parse_new_shape(&PyTuple::new(py, [value])?)?;
        let array = self.array()?;
        let layout = array.layout();
        let view = array.reshape(&shape, Order::C).or_raise()?;
        if !Arc::ptr_eq(view.memory(), array.memory()) {
            return Err(PyAttributeError::new_err(format!(
                "shape: the strides {:?} of shape {:?} allow no view of shape {:?}; reshape makes a copy",
                layout.strides(),
                layout.shape(),
                view.layout().shape(),
            )));
        }
        self.replace_array(py, view)
    }

    /// Sets the strides of the axes in bytes, in the same memory. All elements must be inside it.
    #[setter]
    fn set_strides(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = self.array()?;
        let (own, strides) = (array.layout(), parse_strides(value)?);
        if strides.len() != own.shape().len() {
            return Err(PyValueError::new_err(format!(
                "strides has length {} for shape {:?}; one for each axis is needed",
                strides.len(),
                own.shape()
            )));
        }
        let itemsize = array.dtype().size();
        let layout =
            Layout::with_strides(own.shape(), &strides, own.offset(), itemsize).or_raise()?;
        let (memory, stream) = (array.memory().clone(), array.stream().clone());
        let array = Array::from_memory(memory, layout, array.dtype(), stream).or_raise()?;
        self.replace_array(value.py(), array)
    }

    /// Sets the callable that allocates the results of the object's operations; None means `driver.mem_alloc`.
    #[setter]
    fn set_allocator(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let allocator = ResultAllocator::from_argument(Some(value))?;
        let descr = self.descr()?.clone_ref(py);
        let base = self.base_object()?.map(|base| base.clone_ref(py));
        if let Some(Vacant { layout, element, gpudata, .. }) = self.vacant() {
            self.replace(State::Vacant(Vacant {
                layout: layout.clone(),
                element: *element,
                descr,
                gpudata: gpudata.clone_ref(py),
                allocator: allocator.object,
                base,
            }));
            return Ok(());
        }
        let own = self.content()?;
        let mut content = Content::new(own.array.clone(), descr, allocator, base);
        if let Some(object) = own.gpudata.get() {
            content.gpudata = OnceLock::from(object.clone_ref(py));
        }
        self.replace(State::Filled(content));
        Ok(())
    }
}

// Dropping of arrays that keep one another alive.
//
// A view keeps its base array, which may itself be a view, and the new state of an array keeps the old one. The length of
// such a chain is unlimited, so dropping it must not use stack space for each member.

/// The maximum depth of nested drops; deeper ones are postponed until the outermost is done. It is small but
/// not zero: a drop may run a long part of the program, whose arrays should be dropped immediately.
const DEEPEST: u32 = 16;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PUT_OFF: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

fn next() -> Option<State> {
    PUT_OFF.try_with(|states| states.borrow_mut().pop()).ok().flatten()
}

/// Drops the state of an array object, which may drop other array objects.
pub(super) fn drop_state(state: State) {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        // At the end of a thread, the list no longer exists, and the state is dropped immediately.
        let _ = PUT_OFF.try_with(|states| states.borrow_mut().push(state));
        return;
    }
    DEPTH.set(depth + 1);
    drop(state);
    if depth == 0 {
        while let Some(state) = next() {
            drop(state);
        }
    }
    DEPTH.set(depth);
}
