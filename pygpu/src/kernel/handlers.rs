//! Arguments that stand for others: host arrays to be copied, and objects of other libraries.

use super::arguments::{self, Pushed, interface_address};
use super::remedies;
use crate::current_device::CurrentDevice;
use crate::errors::{OrRaise, to_python};
use crate::stream::by_handle;
use gpuarray::launch::ArgumentList;
use gpuarray::{Error, EventOptions, Parameter, Stream};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::sync::Arc;

/// The arguments of one call, each a thing that [`arguments::push`] takes.
pub(super) struct Direct<'py> {
    pub(super) arguments: Bound<'py, PyTuple>,
    /// Those that copy something before or behind the call.
    pub(super) handlers: Vec<Bound<'py, PyAny>>,
}

fn handler_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "pygpu._driver.handlers", "ArgumentHandler")
}

/// Replaces every argument that stands for another.
///
/// Raises PyCUDA's `TypeError` for one that a kernel does not take, before anything is done
/// for the others.
pub(super) fn resolve<'py>(
    given: &Bound<'py, PyTuple>,
    current: &CurrentDevice,
    stream: &Arc<dyn Stream>,
    parameters: Option<&[Parameter]>,
) -> PyResult<Direct<'py>> {
    let py = given.py();
    let class = handler_class(py)?;
    let mut handlers = Vec::new();
    let mut direct = Vec::with_capacity(given.len());
    for (position, value) in given.iter().enumerate() {
        if value.is_instance(class)? {
            direct.push(value.call_method0("get_device_alloc")?);
            handlers.push(value);
        } else if arguments::push(value.as_borrowed(), &mut ArgumentList::new())? != Pushed::Not {
            direct.push(value);
        } else {
            let memory = stands_for(&value, current, stream)?;
            direct.push(memory.ok_or_else(|| {
                let parameter = parameters.filter(|all| all.len() == given.len());
                remedies::invalid_type(position, &value, parameter.map(|all| all[position]))
            })?);
        }
    }
    check_capture(&handlers, stream)?;
    Ok(Direct { arguments: PyTuple::new(py, direct)?, handlers })
}

/// Refuses handlers that copy during the call where the stream captures: its graph would run the kernel alone.
fn check_capture(handlers: &[Bound<'_, PyAny>], stream: &Arc<dyn Stream>) -> PyResult<()> {
    for handler in handlers {
        if handler.getattr("_copies")?.is_truthy()? && stream.is_capturing().or_raise()? {
            return Err(to_python(Error::invalid(
                "launch",
                "the stream captures: In, Out and InOut copy when the kernel is called, and not when its graph \
                 is launched; copy from and to page-locked memory with the functions named async",
            )));
        }
    }
    Ok(())
}

/// The allocation, or the number, that an object of another library stands for; `None` for one that stands for
/// none.
fn stands_for<'py>(
    value: &Bound<'py, PyAny>,
    current: &CurrentDevice,
    stream: &Arc<dyn Stream>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let address = |address: Bound<'py, PyAny>| {
        if arguments::push(address.as_borrowed(), &mut ArgumentList::new())? != Pushed::Not {
            return Ok(Some(address));
        }
        value.py().import("numpy")?.getattr("uintp")?.call1((address,)).map(Some)
    };
    if let Some(number) = interface_address(value)? {
        order_behind_owner(value, current, stream)?;
        return address(number.into_pyobject(value.py())?.into_any());
    }
    if let Some(gpudata) = value.getattr_opt("gpudata")? {
        return address(gpudata);
    }
    if let Some(method) = value.getattr_opt("get_pointer")? {
        return address(method.call0()?);
    }
    Ok(None)
}

/// Has the stream wait for the one that `__cuda_array_interface__` names, as its version 3 asks
/// for.
fn order_behind_owner(
    value: &Bound<'_, PyAny>,
    current: &CurrentDevice,
    stream: &Arc<dyn Stream>,
) -> PyResult<()> {
    let interface = value.getattr("__cuda_array_interface__")?;
    let owner = interface.call_method1("get", ("stream",))?;
    if owner.is_none() {
        return Ok(());
    }
    let other = by_handle(current, owner.extract()?, Some(value))?;
    if other.id() == stream.id() {
        return Ok(());
    }
    let ordered = || {
        let event = current.device.create_event(EventOptions::ORDERING)?;
        other.record(event.as_ref())?;
        stream.wait_event(event.as_ref())
    };
    ordered().or_raise()
}
