//! numpy's dtypes and those of the core.

use gpuarray::{DType, Kind};
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

/// numpy's code for a family of types.
fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Bool => b'b',
        Kind::Unsigned => b'u',
        Kind::Signed => b'i',
        Kind::Float => b'f',
        Kind::Complex => b'c',
        Kind::Opaque => b'V',
    }
}

/// The core's dtype for one of numpy.
pub(crate) fn from_numpy(descr: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    let number = descr.num();
    let size = descr.itemsize();
    let native = descr.is_native_byteorder().unwrap_or(true);
    let found = match (descr.kind(), size) {
        _ if !native => None,
        (b'V' | b'S' | b'U' | b'M' | b'm', _)
            if size > 0 && !descr.has_object() && number != NPY_TYPES::NPY_OBJECT as i32 =>
        {
            u32::try_from(size).ok().map(DType::Opaque)
        }
        (kind, _) => DType::ALL
            .into_iter()
            .find(|dtype| kind_code(dtype.kind()) == kind && dtype.size() == size),
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
