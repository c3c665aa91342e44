//! The arguments of one call: those that stand for others are host arrays to be copied, and objects of other
//! libraries.

use super::argument_handlers::Handler;
use super::arguments::{self, Pushed, interface};
use super::remedies;
use crate::current_device::CurrentDevice;
use crate::errors::{OrRaise, to_python};
use crate::stream::by_handle;
use gpuarray::launch::ArgumentList;
use gpuarray::{Error, EventOptions, Kernel, Stream};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// What is launched where, as far as arguments need to know.
pub(super) struct Target<'a> {
    pub(super) kernel: &'a dyn Kernel,
    pub(super) home: &'a CurrentDevice,
    pub(super) stream: &'a Arc<dyn Stream>,
}

/// What stands behind the arguments of a call; empty for most calls.
#[derive(Default)]
pub(super) struct Replaced<'py> {
    /// Those that copy something before or behind the call.
    pub(super) handlers: Vec<Handler<'py>>,
    /// What others stand for, which nobody else may keep.
    objects: Vec<Bound<'py, PyAny>>,
}

/// Adds every argument of a call to the list, and what it stands for in place of one that stands for another.
///
/// Raises PyCUDA's `TypeError` for one that a kernel does not take.
pub(super) fn push_all<'a, 'py>(
    given: &'a Bound<'py, PyTuple>,
    target: &Target<'_>,
    list: &mut ArgumentList<'a>,
    replaced: &mut Replaced<'py>,
) -> PyResult<Pushed> {
    let mut all = Pushed::Done;
    for value in given.iter_borrowed() {
        let pushed = match arguments::push(value, list)? {
            Pushed::Not => push_replaced(&value, given, target, list, replaced)?,
            pushed => pushed,
        };
        all = all.min(pushed);
    }
    if replaced.handlers.iter().any(Handler::copies) {
        check_capture(target.stream)?;
    }
    Ok(all)
}

fn push_replaced<'py>(
    value: &Bound<'py, PyAny>,
    given: &Bound<'py, PyTuple>,
    target: &Target<'_>,
    list: &mut ArgumentList<'_>,
    replaced: &mut Replaced<'py>,
) -> PyResult<Pushed> {
    let position = list.len();
    let memory = match Handler::of(value)? {
        Some(handler) => {
            let memory = handler.memory()?;
            replaced.handlers.push(handler);
            Some(memory)
        }
        None => stands_for(value, target)?,
    };
    if let Some(memory) = memory {
        let pushed = match arguments::push_kept(memory.as_borrowed(), list)? {
            Pushed::Not => {
                let address = value.py().import("numpy")?.getattr("uintp")?.call1((&memory,))?;
                arguments::push_kept(address.as_borrowed(), list)?
            }
            pushed => pushed,
        };
        replaced.objects.push(memory);
        return Ok(pushed);
    }
    let parameters = target.kernel.parameters().or_raise()?;
    let parameter = parameters.filter(|all| all.len() == given.len());
    Err(remedies::invalid_type(position, value, parameter.map(|all| all[position])))
}

/// Refuses handlers that copy during the call where the stream captures: its graph would run the kernel alone.
fn check_capture(stream: &Arc<dyn Stream>) -> PyResult<()> {
    match stream.is_capturing().or_raise()? {
        false => Ok(()),
        true => Err(to_python(Error::invalid(
            "launch",
            "the stream captures: In, Out and InOut copy when the kernel is called, and not when its graph \
             is launched; copy from and to page-locked memory with the functions named async",
        ))),
    }
}

/// The allocation, or the address, that an object of another library stands for; `None` for one that stands for
/// none.
fn stands_for<'py>(
    value: &Bound<'py, PyAny>,
    target: &Target<'_>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some((interface, number)) = interface(value)? {
        order_behind_owner(value, &interface, target.home, target.stream)?;
        return Ok(Some(number.into_pyobject(value.py())?.into_any()));
    }
    if let Some(gpudata) = value.getattr_opt("gpudata")? {
        return Ok(Some(gpudata));
    }
    match value.getattr_opt("get_pointer")? {
        Some(method) => method.call0().map(Some),
        None => Ok(None),
    }
}

/// Has the stream wait for the one that `__cuda_array_interface__` names, as its version 3 asks
/// for.
fn order_behind_owner(
    value: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyAny>,
    current: &CurrentDevice,
    stream: &Arc<dyn Stream>,
) -> PyResult<()> {
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
