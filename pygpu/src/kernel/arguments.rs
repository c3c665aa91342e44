//! Python objects as a kernel's arguments.

use super::Object;
use super::format::{Code, struct_error};
use crate::allocation::{DeviceAllocation, address_of};
use crate::array::GPUArray;
use crate::errors::OrRaise;
use crate::managed::ManagedAllocation;
use crate::numpy_array;
use crate::pool::PooledDeviceAllocation;
use gpuarray::f16;
use gpuarray::launch::ArgumentList;
use gpuarray::memory::{Access, DeviceMemory};
use hal::dtype::narrow::Narrow as _;
use numpy::npyffi::{NPY_TYPES, PY_ARRAY_API};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyComplex, PyInt, PyString};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// The name of an argument in errors.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Number(usize),
    Named { argument: &'a str, kernel: &'a str },
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Number(position) => write!(f, "argument {position} (0-based)"),
            Place::Named { argument, kernel } => {
                write!(f, "argument {argument} of kernel {kernel}")
            }
        }
    }
}

/// Returns the memory that an object of this module represents, and the address in it; `None` for any other
/// object.
fn memory_of<'a>(value: Object<'a, '_>) -> PyResult<Option<(u64, &'a Arc<DeviceMemory>)>> {
    let memory = if let Ok(allocation) = value.cast::<DeviceAllocation>() {
        allocation.get().memory()
    } else if let Ok(array) = value.cast::<GPUArray>() {
        let array = array.get().array()?;
        return Ok(Some((array.address(), array.memory())));
    } else if let Ok(allocation) = value.cast::<PooledDeviceAllocation>() {
        allocation.get().memory()?
    } else {
        return Ok(None);
    };
    Ok(Some((memory.address(), memory)))
}

/// Adds memory that the device may read and write; returns false if the object does not represent memory.
fn push_memory<'a>(value: Object<'a, '_>, list: &mut ArgumentList<'a>) -> PyResult<bool> {
    let Some((address, memory)) = memory_of(value)? else { return Ok(false) };
    list.memory(address, memory, Access::Write);
    Ok(true)
}

/// Like [`push_memory`], for exact instances of the classes, which is very fast.
fn push_exact_memory<'a>(value: Object<'a, '_>, list: &mut ArgumentList<'a>) -> PyResult<bool> {
    if value.is_exact_instance_of::<DeviceAllocation>()
        || value.is_exact_instance_of::<GPUArray>()
        || value.is_exact_instance_of::<PooledDeviceAllocation>()
    {
        return push_memory(value, list);
    }
    Ok(false)
}

fn push_bytes<const N: usize>(list: &mut ArgumentList<'_>, bytes: [u8; N]) -> PyResult<()> {
    list.number(&bytes, N).or_raise()
}

/// Adds the argument at `place` according to its format code.
pub(super) fn push_as<'a>(
    code: Code,
    value: Object<'a, '_>,
    place: Place<'_>,
    list: &mut ArgumentList<'a>,
) -> PyResult<()> {
    match code {
        Code::Address => {
            if push_exact_memory(value, list)? {
                return Ok(());
            }
            push_address(value, place, list)
        }
        Code::Signed(bytes) => {
            let number = signed(value, code, place)?;
            let unused = 64 - 8 * u32::from(bytes);
            if number << unused >> unused != number {
                return Err(out_of_range(value, code, place));
            }
            push_number(list, &number.to_le_bytes()[..usize::from(bytes)], ScalarKind::Signed)
        }
        Code::Unsigned(bytes @ ..8) => {
            let number = signed(value, code, place)?;
            if number < 0 || number >> (8 * u32::from(bytes)) != 0 {
                return Err(out_of_range(value, code, place));
            }
            push_number(list, &number.to_le_bytes()[..usize::from(bytes)], ScalarKind::Unsigned)
        }
        Code::Unsigned(_) => {
            let number =
                value.extract::<u64>().map_err(|error| not_whole(value, code, place, &error))?;
            push_number(list, &number.to_ne_bytes(), ScalarKind::Unsigned)
        }
        Code::Bool => push_bytes(list, [u8::from(value.is_truthy()?)]),
        Code::Half => {
            push_bytes(list, f16::narrow_double(float(value, code, place)?).to_ne_bytes())
        }
        Code::Float => push_bytes(list, (float(value, code, place)? as f32).to_ne_bytes()),
        Code::Double => push_bytes(list, float(value, code, place)?.to_ne_bytes()),
        Code::Complex => {
            let (real, imaginary) = complex(value, code, place)?;
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&(real as f32).to_ne_bytes());
            bytes[4..].copy_from_slice(&(imaginary as f32).to_ne_bytes());
            list.number(&bytes, 4).or_raise()
        }
        Code::DoubleComplex => {
            let (real, imaginary) = complex(value, code, place)?;
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&real.to_ne_bytes());
            bytes[8..].copy_from_slice(&imaginary.to_ne_bytes());
            list.number(&bytes, 8).or_raise()
        }
        Code::Bytes(size) => push_structure(value, size, list),
    }
}

#[cold]
fn refused(value: Object<'_, '_>, code: Code, place: Place<'_>, what: &str) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    let text = format!("{place} is of type {kind}; {what} is needed for {code}");
    struct_error(value.py(), text)
}

#[cold]
fn out_of_range(value: Object<'_, '_>, code: Code, place: Place<'_>) -> PyErr {
    let text = format!("{place} is {}, out of range for {code}", &*value);
    struct_error(value.py(), text)
}

#[cold]
fn not_whole(value: Object<'_, '_>, code: Code, place: Place<'_>, error: &PyErr) -> PyErr {
    match error.is_instance_of::<PyOverflowError>(value.py()) {
        true => out_of_range(value, code, place),
        false => refused(value, code, place, "a whole number"),
    }
}

fn signed(value: Object<'_, '_>, code: Code, place: Place<'_>) -> PyResult<i64> {
    long(value).map_err(|error| not_whole(value, code, place, &error))
}

fn float(value: Object<'_, '_>, code: Code, place: Place<'_>) -> PyResult<f64> {
    if value.is_exact_instance_of::<PyInt>() {
        // SAFETY: the object is an integer.
        let number = unsafe { ffi::PyLong_AsDouble(value.as_ptr()) };
        if number != -1.0 {
            return Ok(number);
        }
        // -1, or a number that is too large; distinguished below.
        drop(PyErr::take(value.py()));
    }
    value.extract::<f64>().map_err(|_| refused(value, code, place, "a number"))
}

fn complex(value: Object<'_, '_>, code: Code, place: Place<'_>) -> PyResult<(f64, f64)> {
    if let Ok(number) = value.cast::<PyComplex>() {
        return Ok((number.real(), number.imag()));
    }
    let refused = || refused(value, code, place, "a complex number");
    if value.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let number = value.py().get_type::<PyComplex>().call1((value,)).map_err(|_| refused())?;
    let number = number.cast_into::<PyComplex>()?;
    Ok((number.real(), number.imag()))
}

/// Adds the bytes of a structure, truncated or padded with zeros to its size.
fn push_structure(value: Object<'_, '_>, size: usize, list: &mut ArgumentList<'_>) -> PyResult<()> {
    let mut padded = vec![0; size];
    let mut fill = |bytes: &[u8]| {
        let length = bytes.len().min(size);
        padded[..length].copy_from_slice(&bytes[..length]);
    };
    match value.cast::<PyBytes>() {
        Ok(bytes) => fill(bytes.as_bytes()),
        Err(_) => {
            let block = numpy_array::block("a kernel's argument", &value, false)?;
            // SAFETY: the block's owner has this many bytes, and no Python code runs meanwhile.
            fill(unsafe { std::slice::from_raw_parts(block.pointer, block.bytes) });
        }
    }
    list.bytes(&padded).or_raise()
}

/// Adds an address that is not an exact instance of the usual classes.
fn push_address<'a>(
    value: Object<'a, '_>,
    place: Place<'_>,
    list: &mut ArgumentList<'a>,
) -> PyResult<()> {
    // Numbers are checked first, because a subclass check takes longer.
    if let Ok(address) = value.extract::<u64>()
        && !value.is_instance_of::<DeviceAllocation>()
        && !value.is_instance_of::<PooledDeviceAllocation>()
    {
        list.address(address);
        return Ok(());
    }
    if push_memory(value, list)? || push_managed(value, list)? {
        return Ok(());
    }
    if let Some((_, address)) = interface(&value)? {
        list.address(address);
        return Ok(());
    }
    list.address(address_of(&place.to_string(), &value)?);
    Ok(())
}

/// Returns `__cuda_array_interface__` of an object, if any, and the address in it.
pub(super) fn interface<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
    let interface = match value.getattr("__cuda_array_interface__") {
        Ok(interface) => interface,
        Err(error) if error.is_instance_of::<PyAttributeError>(value.py()) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !interface.is_truthy()? {
        return Ok(None);
    }
    match interface.get_item("data").and_then(|data| data.get_item(0)?.extract()) {
        Ok(address) => Ok(Some((interface, address))),
        Err(error) => {
            let kind = numpy_array::type_name(value);
            let what =
                format!("__cuda_array_interface__ of an argument of type {kind} has no address");
            let refused = PyTypeError::new_err(format!("{what} as data[0]: {error}"));
            refused.set_cause(value.py(), Some(error));
            Err(refused)
        }
    }
}

/// Adds the memory of a numpy array in managed memory; returns false for any other object.
fn push_managed(value: Object<'_, '_>, list: &mut ArgumentList<'_>) -> PyResult<bool> {
    let Ok(array) = value.cast::<PyUntypedArray>() else {
        return Ok(false);
    };
    let Some(allocation) = managed(&array) else { return Ok(false) };
    // Code of another argument may replace the base of the array.
    let memory = allocation.get().memory().clone();
    list.kept_memory(numpy_array::data(&array) as u64, memory, Access::Write);
    Ok(true)
}

/// Returns the managed memory of a numpy array; `None` for any other array.
pub(super) fn managed<'py>(
    array: &Bound<'py, PyUntypedArray>,
) -> Option<Bound<'py, DeviceAllocation>> {
    let mut owner = numpy_array::base(array);
    while let Some(base) = owner {
        if base.is_exact_instance_of::<ManagedAllocation>()
            && let Ok(allocation) = base.cast::<DeviceAllocation>()
        {
            return Some(allocation.clone());
        }
        owner = base.cast::<PyUntypedArray>().ok().and_then(numpy_array::base);
    }
    None
}

/// The kind of a numpy number, as kernels see it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Signed,
    Unsigned,
    Float,
    Complex,
}

/// A numpy scalar type: its class, its size in bytes, and its kind.
type ScalarType = (usize, usize, ScalarKind);

/// Returns the size in bytes and the kind of a numpy scalar that kernels support.
fn scalar_type(value: Object<'_, '_>) -> Option<(usize, ScalarKind)> {
    static TYPES: PyOnceLock<Vec<ScalarType>> = PyOnceLock::new();
    let py = value.py();
    let types = TYPES.get_or_init(py, || {
        use NPY_TYPES::*;
        // The most common ones first.
        const LONG: usize = size_of::<std::ffi::c_long>();
        let types = [
            (NPY_FLOAT, 4, ScalarKind::Float),
            (NPY_INT, 4, ScalarKind::Signed),
            (NPY_DOUBLE, 8, ScalarKind::Float),
            (NPY_LONG, LONG, ScalarKind::Signed),
            (NPY_UINT, 4, ScalarKind::Unsigned),
            (NPY_ULONG, LONG, ScalarKind::Unsigned),
            (NPY_LONGLONG, 8, ScalarKind::Signed),
            (NPY_ULONGLONG, 8, ScalarKind::Unsigned),
            (NPY_CFLOAT, 8, ScalarKind::Complex),
            (NPY_CDOUBLE, 16, ScalarKind::Complex),
            (NPY_HALF, 2, ScalarKind::Float),
            (NPY_SHORT, 2, ScalarKind::Signed),
            (NPY_USHORT, 2, ScalarKind::Unsigned),
            (NPY_BYTE, 1, ScalarKind::Signed),
            (NPY_UBYTE, 1, ScalarKind::Unsigned),
            (NPY_BOOL, 1, ScalarKind::Unsigned),
        ];
        types
            .into_iter()
            .filter_map(|(number, size, kind)| {
                // SAFETY: the number is a type number; the result is a new reference or null.
                let class = unsafe { PY_ARRAY_API.PyArray_TypeObjectFromType(py, number as i32) };
                // numpy's types live as long as the process, so the reference may be kept.
                (!class.is_null()).then_some((class as usize, size, kind))
            })
            .collect()
    });
    let class = value.get_type_ptr() as usize;
    types.iter().find(|(known, ..)| *known == class).map(|&(_, size, kind)| (size, kind))
}

/// A number: its bytes, padded with zeros.
#[derive(Clone, Copy)]
pub(super) struct Scalar {
    pub(super) word: u128,
    pub(super) size: usize,
    pub(super) kind: ScalarKind,
}

/// Returns the value of a numpy scalar that kernels support; `None` for any other object.
pub(super) fn scalar(value: Object<'_, '_>) -> Option<Scalar> {
    let (size, kind) = scalar_type(value)?;
    let mut word = 0u128;
    // SAFETY: the scalar has this many bytes, at most 16, which the call copies.
    unsafe {
        let target = (&raw mut word).cast();
        PY_ARRAY_API.PyArray_ScalarAsCtype(value.py(), value.as_ptr(), target);
    }
    Some(Scalar { word, size, kind })
}

/// Adds a number.
pub(super) fn push_scalar(scalar: Scalar, list: &mut ArgumentList<'_>) -> PyResult<()> {
    push_number(list, &scalar.word.to_ne_bytes()[..scalar.size], scalar.kind)
}

/// Adds a number as bytes.
fn push_number(list: &mut ArgumentList<'_>, bytes: &[u8], kind: ScalarKind) -> PyResult<()> {
    let pushed = match kind {
        ScalarKind::Signed => list.integer(bytes, true),
        ScalarKind::Unsigned => list.integer(bytes, false),
        ScalarKind::Float => list.number(bytes, bytes.len()),
        ScalarKind::Complex => list.number(bytes, bytes.len() / 2),
    };
    pushed.or_raise()
}

/// The result of adding an argument, or all arguments of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pushed {
    /// It must first be replaced by the memory or number that it represents.
    Not,
    /// It is a numpy array with axes, and was added as bytes.
    Array,
    /// It was added.
    Done,
}

/// Adds an argument according to its type.
pub(super) fn push<'a>(value: Object<'a, '_>, list: &mut ArgumentList<'a>) -> PyResult<Pushed> {
    if push_exact_memory(value, list)? {
        return Ok(Pushed::Done);
    }
    if let Some(scalar) = scalar(value) {
        push_scalar(scalar, list)?;
        return Ok(Pushed::Done);
    }
    if push_memory(value, list)? {
        return Ok(Pushed::Done);
    }
    push_structure_of(value, list)
}

/// Like [`push`], for an object that the program does not keep.
pub(super) fn push_kept(value: Object<'_, '_>, list: &mut ArgumentList<'_>) -> PyResult<Pushed> {
    if let Some((address, memory)) = memory_of(value)? {
        list.kept_memory(address, memory.clone(), Access::Write);
        return Ok(Pushed::Done);
    }
    match scalar(value) {
        Some(scalar) => push_scalar(scalar, list).map(|()| Pushed::Done),
        None => push_structure_of(value, list),
    }
}

/// Adds a numpy array, a record or bytes.
fn push_structure_of(value: Object<'_, '_>, list: &mut ArgumentList<'_>) -> PyResult<Pushed> {
    if push_managed(value, list)? {
        return Ok(Pushed::Done);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        list.bytes(bytes.as_bytes()).or_raise()?;
        return Ok(Pushed::Done);
    }
    let array = value.cast::<PyUntypedArray>().ok();
    if array.is_none() && !is_record(value)? {
        return Ok(Pushed::Not);
    }
    let block = numpy_array::block("a kernel's argument", &value, false)?;
    // SAFETY: the block's owner has this many bytes, and no Python code runs meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts(block.pointer, block.bytes) };
    push_array(list, bytes, array)?;
    Ok(if array.is_some_and(|array| array.ndim() > 0) { Pushed::Array } else { Pushed::Done })
}

/// Adds the bytes of an array, or of another structure.
fn push_array(
    list: &mut ArgumentList<'_>,
    bytes: &[u8],
    array: Option<Borrowed<'_, '_, PyUntypedArray>>,
) -> PyResult<()> {
    let Some(array) = array else { return list.bytes(bytes).or_raise() };
    let dtype = array.dtype();
    let pushed = match (dtype.kind(), array.len()) {
        (b'i', 1) => list.integer(bytes, true),
        (b'u' | b'b', 1) => list.integer(bytes, false),
        (b'i' | b'u' | b'f' | b'c', _) => list.elements(bytes, dtype.itemsize()),
        _ => list.bytes(bytes),
    };
    pushed.or_raise()
}

/// Returns true for instances of `numpy.void`, for numbers of types that numpy lacks, and for instances of
/// classes derived from numpy's.
fn is_record(value: Object<'_, '_>) -> PyResult<bool> {
    if !numpy_array::is_numpy_scalar(&value)? {
        return Ok(false);
    }
    // Extended-precision types are not supported on any device.
    let Ok((_, dtype)) = crate::dtypes::parse(&value.getattr("dtype")?) else { return Ok(false) };
    let numpy = value.py().import("numpy")?;
    let classes = (numpy.getattr("void")?, numpy.getattr("number")?);
    Ok(dtype.extension().is_some()
        || value.is_instance(classes.into_pyobject(value.py())?.as_any())?)
}

/// Converts an integer with `PyLong_AsLongLong`; fails with that function's exception for any other object.
pub(super) fn long(value: Object<'_, '_>) -> PyResult<i64> {
    // SAFETY: the object is live.
    let number = unsafe { ffi::PyLong_AsLongLong(value.as_ptr()) };
    if number == -1
        && let Some(error) = PyErr::take(value.py())
    {
        return Err(error);
    }
    Ok(number)
}
