//! numpy's dtypes and those of the core.

use gpuarray::DType;
use numpy::npyffi::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static BUILTIN: PyOnceLock<Vec<Py<PyArrayDescr>>> = PyOnceLock::new();

fn index(dtype: DType) -> Option<usize> {
    DType::ALL.iter().position(|&other| other == dtype)
}

/// numpy's dtype for one of the core; records have none of their own.
pub(crate) fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Py<PyArrayDescr>> {
    let all = BUILTIN.get_or_try_init(py, || {
        DType::ALL
            .iter()
            .map(|dtype| Ok(PyArrayDescr::new(py, dtype.name())?.unbind()))
            .collect::<PyResult<Vec<_>>>()
    })?;
    match index(dtype) {
        Some(index) => Ok(all[index].clone_ref(py)),
        None => Ok(PyArrayDescr::new(py, format!("V{}", dtype.size()))?.unbind()),
    }
}

/// The core's dtype for one of numpy.
pub(crate) fn from_numpy(descr: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    let number = descr.num();
    let size = descr.itemsize();
    let native = descr.is_native_byteorder().unwrap_or(true);
    let found = match (descr.kind(), size) {
        _ if !native => None,
        (b'b', 1) => Some(DType::Bool),
        (b'i', 1) => Some(DType::Int8),
        (b'i', 2) => Some(DType::Int16),
        (b'i', 4) => Some(DType::Int32),
        (b'i', 8) => Some(DType::Int64),
        (b'u', 1) => Some(DType::UInt8),
        (b'u', 2) => Some(DType::UInt16),
        (b'u', 4) => Some(DType::UInt32),
        (b'u', 8) => Some(DType::UInt64),
        (b'f', 2) => Some(DType::Float16),
        (b'f', 4) => Some(DType::Float32),
        (b'f', 8) => Some(DType::Float64),
        (b'c', 8) => Some(DType::Complex64),
        (b'c', 16) => Some(DType::Complex128),
        (b'V' | b'S' | b'U' | b'M' | b'm', _)
            if size > 0 && !descr.has_object() && number != NPY_TYPES::NPY_OBJECT as i32 =>
        {
            u32::try_from(size).ok().map(DType::Opaque)
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let text = descr.str().map_or_else(|_| "?".into(), |text| text.to_string());
        PyTypeError::new_err(format!(
            "dtype {text} cannot be on a device; allowed are bool, int8 to int64, uint8 to uint64, \
             float16, float32, float64, complex64, complex128 in native byte order, and records of \
             fixed size without objects"
        ))
    })
}

/// A dtype argument: numpy's dtype object and the core's dtype. `None` is numpy's default,
/// float64.
pub(crate) fn parse<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyArrayDescr>, DType)> {
    let descr = match value.cast::<PyArrayDescr>() {
        Ok(descr) => descr.clone(),
        // The converter of numpy's C interface makes no dtype of it, and sets no exception.
        Err(_) if value.is_none() => to_numpy(value.py(), DType::Float64)?.into_bound(value.py()),
        Err(_) => PyArrayDescr::new(value.py(), value)?,
    };
    let dtype = from_numpy(&descr)?;
    Ok((descr, dtype))
}
