//! The methods on the critical path of short kernel launches. They avoid the tuple that pyo3
//! creates for variable arguments, which saves a sixth of the call.

use super::{Function, Object};
use crate::stream::{PyStream, stream_argument};
use hal::poison::caught;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::slice;

type Method = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

const PREPARED_CALL: &CStr = c"prepared_call($self, grid, block, *args, shared_size=0)
--

Launches the kernel on the default stream, with arguments of the types that `prepare` fixed.

Parameters
----------
grid : tuple of int
    One to three extents of the grid, in blocks.
block : tuple of int
    One to three extents of a block, in threads.
*args : object
    The kernel's arguments: Python's and numpy's numbers, arrays and allocations of the device,
    addresses.
shared_size : int
    Bytes of dynamic shared memory of a block.

Raises
------
struct.error
    There are more or fewer arguments than `prepare` was told, or one does not fit its type.
TypeError
    `grid` or `block` is no tuple of one to three whole numbers.
LogicError
    The device has no such launch configuration, or an argument is memory that was freed.
LaunchError
    The kernel could not be started.

Examples
--------
>>> import numpy as np
>>> from pygpu import autoinit, compiler, gpuarray
>>> module = compiler.SourceModule(
...     '__global__ void add(float *x, float a) { x[threadIdx.x] += a; }'
... )
>>> add = module.get_function('add').prepare('Pf')
>>> x = gpuarray.zeros(3, np.float32)
>>> add.prepared_call((1, 1), (3, 1, 1), x.gpudata, 2)
>>> x
array([2., 2., 2.], dtype=float32)
";

const PREPARED_ASYNC_CALL: &CStr =
    c"prepared_async_call($self, grid, block, stream, *args, shared_size=0)
--

Launches the kernel on a stream, with arguments of the types that `prepare` fixed. Other arguments
are as in :meth:`prepared_call`.

Parameters
----------
stream : Stream or None. The stream; None is the default stream.

Raises
------
struct.error
    As for `prepared_call`.
LaunchError
    The kernel could not be started.
";

/// Adds the methods to the class `Function`.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    add(py, c"prepared_call", PREPARED_CALL, prepared_call)?;
    add(py, c"prepared_async_call", PREPARED_ASYNC_CALL, prepared_async_call)
}

fn add(py: Python<'_>, name: &'static CStr, doc: &'static CStr, method: Method) -> PyResult<()> {
    let class = py.get_type::<Function>();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: method },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: the definition lives as long as the process, and the method is of the kind that its
    // flags say.
    let method = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))?
    };
    class.setattr(&*name.to_string_lossy(), method)
}

unsafe extern "C" fn prepared_call(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python passes arguments of the declared types.
    unsafe { call(this, arguments, count, names, "prepared_call", false) }
}

unsafe extern "C" fn prepared_async_call(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { call(this, arguments, count, names, "prepared_async_call", true) }
}

/// # Safety
/// Python's lock is held. `this` is a `Function`, and `arguments` are `count` objects plus one for
/// each entry of `names`, a tuple or null. They stay alive until the call returns.
#[inline]
unsafe fn call(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    method: &str,
    takes_stream: bool,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise; `Object` consists only of the pointer, on which pyo3 also
    // relies.
    let (py, this, names, arguments) = unsafe {
        let py = Python::assume_attached();
        let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) as usize };
        let arguments: &[Object<'_, '_>] = match count as usize + named {
            0 => &[],
            all => slice::from_raw_parts(arguments.cast(), all),
        };
        let this = Borrowed::from_ptr(py, this).cast_unchecked::<Function>().get();
        (py, this, Borrowed::from_ptr_or_opt(py, names), arguments)
    };
    let (positional, named) = arguments.split_at(count as usize);
    let launch = || launch(py, this, method, takes_stream, positional, names, named);
    match caught(launch) {
        Some(Ok(())) => return py.None().into_ptr(),
        Some(Err(error)) => error.restore(py),
        None => PanicException::new_err(format!("{method} failed")).restore(py),
    }
    null_mut()
}

#[inline]
fn launch<'a, 'py>(
    py: Python<'py>,
    this: &Function,
    method: &str,
    takes_stream: bool,
    positional: &[Object<'a, 'py>],
    names: Option<Object<'a, 'py>>,
    named: &[Object<'a, 'py>],
) -> PyResult<()> {
    let shared_size = names.map_or(Ok(0), |names| shared_size(method, names, named))?;
    let missing = || {
        PyTypeError::new_err(format!(
            "{method}() takes grid, block{} and the kernel's arguments; {} were given",
            if takes_stream { ", stream" } else { "" },
            positional.len()
        ))
    };
    let [grid, block, rest @ ..] = positional else { return Err(missing()) };
    let config = super::config::config(Some(grid), block, shared_size)?;
    if !takes_stream {
        return this.launch_prepared(py, &config, &this.home.stream, rest);
    }
    let [stream, rest @ ..] = rest else { return Err(missing()) };
    match stream.cast_exact::<PyStream>() {
        Ok(stream) => this.launch_prepared(py, &config, &stream.get().stream, rest),
        Err(_) => {
            let stream = stream_argument(Some(stream), &this.home)?;
            this.launch_prepared(py, &config, &stream, rest)
        }
    }
}

/// Parses the only keyword argument.
#[cold]
fn shared_size(method: &str, names: Object<'_, '_>, values: &[Object<'_, '_>]) -> PyResult<u32> {
    let mut shared_size = 0;
    for (name, value) in names.cast::<PyTuple>()?.iter_borrowed().zip(values) {
        if !name.eq("shared_size")? {
            return Err(PyTypeError::new_err(format!(
                "{method}() got an unexpected keyword argument {}",
                name.repr()?
            )));
        }
        shared_size = value.extract()?;
    }
    Ok(shared_size)
}
