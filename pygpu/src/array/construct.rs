//! Construction of arrays from arguments.

use super::replaced::{State, Vacant};
use super::{Content, GPUArray};
use crate::allocation::{address_of, known_memory_of, memory_of};
use crate::allocator::ResultAllocator;
use crate::current_device::current_device;
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::owner::OwnerObject;
use crate::pinned::{PagelockedHostAllocation, RegisteredHostMemory};
use crate::pool::PooledHostAllocation;
use crate::profile::at_line;
use crate::shape::{order_argument, parse_entry, parse_order, parse_shape};
use gpuarray::layout::{checked_size, shape_text};
use gpuarray::memory::DeviceMemory;
use gpuarray::{Array, DType, Error, Layout};
use hal::operation::{Shape, Strides};
use once_cell::sync::OnceCell;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};
use std::sync::{Arc, OnceLock};

#[pymethods]
impl GPUArray {
    /// A subclass may take other arguments, so only `__init__` examines them.
    #[new]
    #[classmethod]
    #[pyo3(
        signature = (*_args, **_kwargs),
        text_signature = "(shape, dtype=None, allocator=None, base=None, gpudata=None, strides=None, \
                          order='C')"
    )]
    fn new(
        _class: &Bound<'_, PyType>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> GPUArray {
        GPUArray::of(OnceCell::new())
    }

    #[pyo3(signature = (shape, dtype = None, allocator = None, base = None, gpudata = None, strides = None, order = "C"))]
    #[allow(clippy::too_many_arguments, reason = "PyCUDA's signature")]
    fn __init__(
        &self,
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        allocator: Option<&Bound<'_, PyAny>>,
        base: Option<&Bound<'_, PyAny>>,
        gpudata: Option<&Bound<'_, PyAny>>,
        strides: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    ) -> PyResult<()> {
        // numpy's dtype for None is float64.
        let none = shape.py().None().into_bound(shape.py());
        let (descr, element) = dtypes::parse(dtype.unwrap_or(&none))?;
        let shape = parse_shape(shape)?;
        let order = parse_order(order)?;
        let strides = strides.map(parse_strides).transpose()?;
        let result_allocator = ResultAllocator::from_argument(allocator)?;
        let base = base.filter(|base| !base.is_none());
        let current = current_device()?;
        let layout = |low: usize| match &strides {
            Some(strides) => Layout::with_strides(&shape, strides, low, element.size()),
            None => Layout::contiguous(&shape, element.size(), order),
        };
        let low = bytes_below(&shape, strides.as_ref(), element.size())?;
        let layout = layout(low).or_raise()?;
        let (array, kept) = match gpudata {
            Some(gpudata) => {
                let Some(memory) = memory_for(gpudata, base, low, &layout)? else {
                    return self.init_vacant(Vacant {
                        layout,
                        element,
                        descr: descr.unbind(),
                        gpudata: gpudata.clone().unbind(),
                        allocator: result_allocator.object,
                        base: base.map(|base| base.clone().unbind()),
                    });
                };
                let stream = match base.and_then(|base| base.cast::<GPUArray>().ok()) {
                    Some(base) => base.get().array()?.stream().clone(),
                    None => current.stream.clone(),
                };
                (place(memory, &layout, element, &stream)?, Some(gpudata.clone().unbind()))
            }
            None => {
                if base.is_some() {
                    return Err(PyValueError::new_err(
                        "base is given without gpudata; give both or neither",
                    ));
                }
                match new_array(descr.py(), &result_allocator, layout.clone(), element)? {
                    Ok(array) => (array, None),
                    Err(null) => {
                        return self.init_vacant(Vacant {
                            layout,
                            element,
                            descr: descr.unbind(),
                            gpudata: null,
                            allocator: result_allocator.object,
                            base: None,
                        });
                    }
                }
            }
        };
        let base = base.map(|base| base.clone().unbind());
        let mut content = Content::new(array, descr.unbind(), result_allocator, base);
        if let Some(kept) = kept {
            content.gpudata = OnceLock::from(kept);
        }
        if self.replaced.get().is_some() {
            return Err(second_init());
        }
        self.content.set(content).map_err(|_| second_init())
    }
}

fn second_init() -> PyErr {
    PyRuntimeError::new_err("GPUArray.__init__ was called a second time")
}

impl GPUArray {
    fn init_vacant(&self, vacant: Vacant) -> PyResult<()> {
        if self.content.get().is_some() || self.replaced.get().is_some() {
            return Err(second_init());
        }
        self.replace(State::Vacant(vacant));
        Ok(())
    }
}

/// Returns an array in new memory; or the object that a Python allocator returned if that object does not
/// represent memory.
fn new_array(
    py: Python<'_>,
    result_allocator: &ResultAllocator,
    layout: Layout,
    element: DType,
) -> PyResult<Result<Array, Py<PyAny>>> {
    let _line = at_line(py);
    let current = current_device()?;
    let (device, stream) = (&current.device, &current.stream);
    let Some(allocator) = result_allocator.allocator.as_ref().filter(|_| layout.size() > 0) else {
        return Ok(Ok(Array::with_new_memory(device, stream, layout, element).or_raise()?));
    };
    let bytes = layout.extent().end;
    let memory = match &result_allocator.python {
        None => allocator.allocate(device, stream, bytes).or_raise()?,
        Some(python) => match python.memory_or_null(py, device, bytes)? {
            Ok(memory) => memory,
            Err(null) => return Ok(Err(null)),
        },
    };
    Ok(Ok(Array::from_memory(memory, layout, element, stream.clone()).or_raise()?))
}

pub(super) fn parse_strides(value: &Bound<'_, PyAny>) -> PyResult<Strides> {
    let entries = value.try_iter().map_err(|_| {
        PyTypeError::new_err(format!("strides is {value}; a sequence of whole numbers is needed"))
    })?;
    entries.map(|entry| parse_entry("strides", &entry?)).collect()
}

/// Returns the number of bytes that negative strides extend below the first element.
pub(super) fn bytes_below(
    shape: &Shape,
    strides: Option<&Strides>,
    itemsize: usize,
) -> PyResult<usize> {
    checked_size(shape, itemsize).or_raise()?;
    let Some(strides) = strides.filter(|_| !shape.contains(&0)) else {
        return Ok(0);
    };
    let below: i128 = shape
        .iter()
        .zip(strides)
        .map(|(&extent, &stride)| ((extent as i128 - 1) * stride as i128).min(0))
        .sum();
    usize::try_from(-below).map_err(|_| {
        to_python(Error::overflow("array", format!("strides {strides:?} reach below address zero")))
    })
}

/// Returns the memory that `gpudata` names, which extends `low` bytes below it, and the address in it; `None`
/// for a null address.
pub(super) fn memory_for(
    gpudata: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    low: usize,
    layout: &Layout,
) -> PyResult<Option<(Arc<DeviceMemory>, u64)>> {
    if let Some(memory) = memory_of(gpudata)? {
        return Ok(Some((memory.clone(), memory.address())));
    }
    let address = address_of("gpudata", gpudata)?;
    if address == 0 && layout.size() > 0 {
        return Ok(None);
    }
    // A manual view of a known array or allocation: its memory is used, with its bounds.
    let known = match base {
        Some(base) => match base.cast::<GPUArray>() {
            Ok(array) => Some(array.get().array()?.memory()),
            Err(_) => known_memory_of(base),
        },
        None => None,
    };
    if let Some(memory) = known {
        let range = memory.address()..memory.address() + memory.bytes() as u64;
        if range.contains(&address) {
            return Ok(Some((memory.clone(), address)));
        }
    }
    let device = current_device()?.device;
    let bytes = layout.extent().end;
    let start = address.wrapping_sub(low as u64);
    if bytes > 0 && (low as u64 > address || !device.can_access(start, bytes)) {
        return Err(to_python(Error::invalid(
            "array",
            format!(
                "gpudata is {address:#x}, where device {} has no memory for shape {} and strides {:?}",
                device.id(),
                shape_text(layout.shape()),
                layout.strides()
            ),
        )));
    }
    let py = gpudata.py();
    let host = hold_of(gpudata).or_else(|| base.and_then(hold_of));
    let host =
        host.map(|hold| PyCapsule::new_with_value(py, hold, c"pygpu.host.memory")).transpose()?;
    let keeps = PyTuple::new(py, [Some(gpudata), base, host.as_ref().map(|it| it.as_any())])?;
    let owner = Box::new(OwnerObject::new(keeps.into_any().unbind()));
    // SAFETY: as with every GPU library, code that passes a raw address is responsible for it; the objects that
    // represent the memory are kept.
    let memory = unsafe { DeviceMemory::from_raw_parts(&device, start, bytes, owner) };
    Ok(Some((Arc::new(memory), address)))
}

/// Returns the array at an address inside a memory.
pub(super) fn place(
    (memory, address): (Arc<DeviceMemory>, u64),
    layout: &Layout,
    element: DType,
    stream: &Arc<dyn gpuarray::Stream>,
) -> PyResult<Array> {
    let offset = (address - memory.address()) as usize;
    let layout = Layout::with_strides(layout.shape(), layout.strides(), offset, element.size())
        .or_raise()?;
    Array::from_memory(memory, layout, element, stream.clone()).or_raise()
}

/// Returns an object that prevents the memory of a page-locked allocation from being freed; `None`
/// for any other object.
fn hold_of(value: &Bound<'_, PyAny>) -> Option<Arc<()>> {
    if let Ok(allocation) = value.cast::<PagelockedHostAllocation>() {
        return Some(allocation.get().hold());
    }
    if let Ok(registered) = value.cast::<RegisteredHostMemory>() {
        return Some(registered.get().hold());
    }
    value.cast::<PooledHostAllocation>().ok().map(|allocation| allocation.get().hold())
}
