//! Advice for arguments that a kernel cannot take. Everything here is only for calls that are refused.

use super::arguments::managed;
use super::declared::Declared;
use crate::allocation::DeviceAllocation;
use crate::array::GPUArray;
use crate::errors::OrRaise;
use crate::numpy_array::{self, type_name};
use crate::pool::PooledDeviceAllocation;
use gpuarray::launch::ArgumentList;
use gpuarray::signature::Signature;
use gpuarray::{Device, Error, ErrorKind, Kernel, Parameter};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};

const COPY: &str = "driver.In(x), Out or InOut copies it for the call, gpuarray.to_gpu(x) once";

pub(super) const ADDRESS: &str = "pass an array or device memory, or np.uintp(address)";

/// Returns PyCUDA's error for an argument that kernels do not support.
#[cold]
pub(super) fn invalid_type(
    position: usize,
    value: &Bound<'_, PyAny>,
    parameter: Option<Parameter>,
    signature: Option<&Signature>,
) -> PyErr {
    let declared = signature.and_then(|it| it.parameters.get(position));
    let declared = declared.map_or_else(String::new, |it| format!(", {it}"));
    PyTypeError::new_err(format!(
        "invalid type on parameter #{position} (0-based){declared}: {} is of type {}; {}",
        shown(value),
        type_name(value),
        remedy(value, parameter)
    ))
}

/// Returns the text of a value, shortened.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 40;
    let text = value.repr().map_or_else(|_| "it".into(), |text| text.to_string());
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns the advice for an object that is not a valid argument.
fn remedy(value: &Bound<'_, PyAny>, parameter: Option<Parameter>) -> String {
    let size = parameter.map(|it| it.size);
    if value.is_none() {
        return "np.uintp(0) is a null pointer".into();
    }
    if parameter.and_then(|it| it.is_pointer) == Some(true) && value.is_instance_of::<PyInt>() {
        return format!("the parameter is a pointer: {ADDRESS}");
    }
    let number = shown(value);
    let scalar = |name: &str| format!("np.{name}({number})");
    if value.is_instance_of::<PyBool>() {
        return format!("write {}", scalar("bool_"));
    }
    if value.is_instance_of::<PyInt>() {
        return match size {
            Some(8) => format!("write {}, or {} for a double", scalar("int64"), scalar("float64")),
            Some(1) => format!("write {}", scalar("int8")),
            Some(2) => format!("write {}", scalar("int16")),
            _ => format!("write {} for an int, {} for a float", scalar("int32"), scalar("float32")),
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return match size {
            Some(4) => format!("write {}", scalar("float32")),
            Some(8) => format!("write {}", scalar("float64")),
            Some(2) => format!("write {}", scalar("float16")),
            _ => format!(
                "write {} for a float, {} for a double",
                scalar("float32"),
                scalar("float64")
            ),
        };
    }
    if value.is_instance_of::<PyComplex>() {
        return format!("write {} or {}", scalar("complex64"), scalar("complex128"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return format!("make it an array x = np.array(..., dtype) of the kernel's type; {COPY}");
    }
    if value.is_instance_of::<PyString>() {
        return "a kernel reads text as bytes: driver.In(np.frombuffer(text.encode(), np.uint8))"
            .into();
    }
    "an array or memory of the device, a numpy scalar such as np.int32(2), or driver.In(x) of a numpy array is needed"
        .into()
}

/// Adds to the error of a launch the advice for the argument whose size does not fit.
#[cold]
pub(super) fn explain(
    kernel: &dyn Kernel,
    given: &Bound<'_, PyTuple>,
    list: &ArgumentList<'_>,
    signature: Option<&Signature>,
    error: Error,
) -> Error {
    if error.kind() != ErrorKind::InvalidArgument || error.call() != "launch" {
        return error;
    }
    let Ok(Some(parameters)) = kernel.parameters() else { return error };
    if let Some(signature) = signature.filter(|_| list.len() != parameters.len()) {
        return Error::invalid("launch", format!("{}; it is {signature}", error.detail()));
    }
    let position = list.misfit(parameters).filter(|_| list.len() == parameters.len());
    let Some(position) = position.filter(|_| given.len() == parameters.len()) else { return error };
    let Ok(value) = given.get_item(position) else { return error };
    let mut detail = error.detail().to_owned();
    if let Some(name) = scalar_dtype(&value).and_then(|it| it.getattr("name").ok()) {
        detail = detail.replacen(" has ", &format!(" is {name} of "), 1);
    }
    if let Some(remedy) = of_size(&value, parameters[position]) {
        detail = format!("{detail}; {remedy}");
    }
    Error::invalid("launch", detail)
}

/// Returns the dtype of a numpy scalar.
fn scalar_dtype<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let dtype = value.getattr("dtype").ok()?;
    (numpy_array::is_numpy_scalar(value).ok() == Some(true)).then_some(dtype)
}

/// Returns the advice for a value whose size differs from the parameter's.
fn of_size(value: &Bound<'_, PyAny>, parameter: Parameter) -> Option<String> {
    if value.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() > 0) {
        return (parameter.size == 8).then(|| format!("it is a numpy array: {COPY}"));
    }
    let Some(dtype) = scalar_dtype(value) else {
        let memory = value.is_instance_of::<GPUArray>()
            || value.is_instance_of::<DeviceAllocation>()
            || value.is_instance_of::<PooledDeviceAllocation>();
        return memory
            .then(|| format!("an address has size 8: pass a number of size {}", parameter.size));
    };
    if parameter.is_pointer == Some(true) {
        return Some(ADDRESS.into());
    }
    let item = value.call_method0("item").ok()?;
    let bits = 8 * parameter.size;
    let name = match (dtype.getattr("kind").ok()?.extract::<char>().ok()?, parameter.size) {
        ('i', 1 | 2 | 4 | 8) => format!("int{bits}"),
        ('u', 1 | 2 | 4 | 8) => format!("uint{bits}"),
        ('f', 2 | 4 | 8) => format!("float{bits}"),
        ('c', 8 | 16) => format!("complex{bits}"),
        _ => return None,
    };
    Some(format!("pass np.{name}({})", shown(&item)))
}

/// Refuses a host array, which kernels cannot access, if the kernel has a pointer parameter.
#[cold]
pub(super) fn check_arrays(
    kernel: &dyn Kernel,
    device: &dyn Device,
    given: &Bound<'_, PyTuple>,
    declared: Option<&Declared>,
) -> PyResult<()> {
    let parameters = kernel.parameters().or_raise()?;
    let pointers: Vec<_> = match (declared, parameters) {
        (Some(declared), _) => (0..declared.len()).map(|it| declared.is_pointer(it)).collect(),
        (None, Some(all)) => all.iter().map(|it| it.is_pointer == Some(true)).collect(),
        (None, None) => Vec::new(),
    };
    if pointers.len() != given.len() {
        return Ok(());
    }
    for (position, value) in given.iter().enumerate().filter(|(position, _)| pointers[*position]) {
        if let Ok(array) = value.cast::<PyUntypedArray>()
            && array.ndim() > 0
            && managed(array).is_none()
            && !is_address(array, device)
        {
            return Err(Error::invalid_type(
                "launch",
                format!(
                    "argument {position} (0-based) of kernel {} is a numpy array of {}, and the parameter a \
                     pointer: {COPY}",
                    kernel.name(),
                    array.dtype()
                ),
            ))
            .or_raise();
        }
    }
    Ok(())
}

/// Returns true for an array that contains one number, the address of device memory.
fn is_address(array: &Bound<'_, PyUntypedArray>, device: &dyn Device) -> bool {
    array.len() == 1
        && matches!(array.dtype().kind(), b'i' | b'u')
        && array
            .call_method0("item")
            .and_then(|item| item.extract())
            .is_ok_and(|address| device.address_range(address).is_ok())
}
