//! The arguments of one call, including those that must be replaced: host arrays to be copied, and objects of
//! other libraries.

use super::argument_handlers::Handler;
use super::arguments::{self, Pushed, interface};
use super::conversion::{Elements, is_number};
use super::declared::Declared;
use super::remedies;
use crate::current_device::CurrentDevice;
use crate::errors::{OrRaise, to_python};
use crate::stream::by_handle;
use gpuarray::launch::ArgumentList;
use gpuarray::{Error, EventOptions, Kernel, Parameter, Stream};
use hal::recording;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The properties of a launch that affect its arguments.
pub(super) struct Target<'a> {
    pub(super) kernel: &'a dyn Kernel,
    pub(super) home: &'a CurrentDevice,
    pub(super) stream: &'a Arc<dyn Stream>,
    /// The types of the parameters, if they are known.
    pub(super) declared: Option<&'a Declared>,
}

/// The objects that replace arguments of a call; empty for most calls.
#[derive(Default)]
pub(super) struct Replaced<'py> {
    /// The handlers that copy something before or after the call.
    pub(super) handlers: Vec<Handler<'py>>,
    /// Replacements that nothing else may keep alive.
    objects: Vec<Bound<'py, PyAny>>,
}

/// Adds every argument of a call to the list. If an argument represents another object, that object is added
/// instead.
///
/// Raises PyCUDA's `TypeError` for an argument that kernels do not support.
pub(super) fn push_all<'a, 'py>(
    given: &'a Bound<'py, PyTuple>,
    target: &Target<'_>,
    list: &mut ArgumentList<'a>,
    replaced: &mut Replaced<'py>,
) -> PyResult<Pushed> {
    let declared = target.declared.filter(|it| it.len() == given.len());
    let mut pushed = match push_each(given, target, declared, list, replaced) {
        // An argument that a parameter refuses may be part of a structure.
        Err(error) if declared.is_some() && is_packed(given, target, &error) => None,
        pushed => pushed?,
    };
    if pushed.is_none() {
        (*list, *replaced) = (ArgumentList::new(), Replaced::default());
        pushed = push_each(given, target, None, list, replaced)?;
    }
    if replaced.handlers.iter().any(Handler::copies) {
        check_capture(target.stream)?;
    }
    Ok(pushed.unwrap_or(Pushed::Done))
}

/// Like [`push_all`], by the types of the parameters; `None` if the arguments do not correspond one to one to
/// them.
#[inline]
fn push_each<'a, 'py>(
    given: &'a Bound<'py, PyTuple>,
    target: &Target<'_>,
    declared: Option<&Declared>,
    list: &mut ArgumentList<'a>,
    replaced: &mut Replaced<'py>,
) -> PyResult<Option<Pushed>> {
    let mut all = Pushed::Done;
    for (position, value) in given.iter_borrowed().enumerate() {
        let pushed = match declared {
            None => arguments::push(value, list)?,
            Some(declared) => match declared.push(position, value, list)? {
                Some(pushed) => pushed,
                None => return Ok(None),
            },
        };
        all = all.min(match pushed {
            Pushed::Not => push_replaced(&value, given, target, declared, list, replaced)?,
            pushed => pushed,
        });
    }
    Ok(Some(all))
}

/// Returns true if arguments that were refused one by one are parts of structures, or several parameters in one
/// array.
#[cold]
fn is_packed(given: &Bound<'_, PyTuple>, target: &Target<'_>, error: &PyErr) -> bool {
    let (mut list, mut replaced) = (ArgumentList::new(), Replaced::default());
    error.is_instance_of::<PyTypeError>(given.py())
        && push_each(given, target, None, &mut list, &mut replaced).is_ok()
        && list.is_packed(target.kernel).unwrap_or(false)
}

fn push_replaced<'py>(
    value: &Bound<'py, PyAny>,
    given: &Bound<'py, PyTuple>,
    target: &Target<'_>,
    declared: Option<&Declared>,
    list: &mut ArgumentList<'_>,
    replaced: &mut Replaced<'py>,
) -> PyResult<Pushed> {
    let position = list.len();
    let memory = match Handler::of(value)? {
        Some(handler) => {
            if let (Some(declared), Some(array)) = (declared, handler.array(given.py())?) {
                declared.check_array(position, array.bind(given.py()))?;
            }
            let memory = handler.memory()?;
            replaced.handlers.push(handler);
            Some(memory)
        }
        None => stands_for(value, position, target, declared)?,
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
    let parameter = match declared {
        Some(declared) if declared.is_pointer(position) => {
            Some(Parameter { offset: 0, size: size_of::<u64>(), is_pointer: Some(true) })
        }
        _ => parameter.map(|all| all[position]),
    };
    if let Some(declared) = target.declared.filter(|it| it.len() != given.len())
        && is_number(value)?
    {
        return Err(declared.wrong_count(given.len()));
    }
    Err(remedies::invalid_type(position, value, parameter, declared.map(|it| &it.signature)))
}

/// Refuses handlers that copy during the call if the stream captures, because its graph would only run the
/// kernel.
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

/// Returns the allocation or the address that another library's object represents; `None` if it does not
/// represent one.
fn stands_for<'py>(
    value: &Bound<'py, PyAny>,
    position: usize,
    target: &Target<'_>,
    declared: Option<&Declared>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some((interface, number)) = interface(value)? {
        if let Some(declared) = declared
            && let Ok(text) = interface.get_item("typestr")
            && let Some(elements) = text.extract().ok().and_then(Elements::of_typestr)
        {
            declared.check_elements(value.py(), position, elements)?;
        }
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

/// Makes the stream wait for the one that `__cuda_array_interface__` names, as version 3 requires.
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
        recording::wait_event(stream.as_ref(), event.as_ref())
    };
    ordered().or_raise()
}
