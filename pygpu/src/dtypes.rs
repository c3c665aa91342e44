//! numpy's dtypes and those of the core.

use gpuarray::{DType, Kind};
use numpy::npyffi::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// numpy's objects for the dtypes of the core, in the order of [`DType::ALL`].
static DESCRIPTIONS: [PyOnceLock<Py<PyArrayDescr>>; DType::ALL.len()] =
    [const { PyOnceLock::new() }; DType::ALL.len()];

/// The package that has numpy's dtype for bfloat16. It is imported when a program asks for the
/// dtype, and nothing else needs it.
const BFLOAT16_PACKAGE: &str = "ml_dtypes";

fn index(dtype: DType) -> Option<usize> {
    DType::ALL.iter().position(|&other| other == dtype)
}

/// numpy's dtype for one of the core; records have none of their own.
pub(crate) fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Py<PyArrayDescr>> {
    let Some(index) = index(dtype) else {
        return Ok(PyArrayDescr::new(py, format!("V{}", dtype.size()))?.unbind());
    };
    let descr = DESCRIPTIONS[index].get_or_try_init(py, || match dtype {
        DType::BFloat16 => import_bfloat16(py),
        _ => Ok(PyArrayDescr::new(py, dtype.name())?.unbind()),
    })?;
    Ok(descr.clone_ref(py))
}

/// Imports numpy's dtype for bfloat16.
fn import_bfloat16(py: Python<'_>) -> PyResult<Py<PyArrayDescr>> {
    let package = py.import(BFLOAT16_PACKAGE).map_err(|error| {
        let refused = PyTypeError::new_err(format!(
            "dtype bfloat16 needs the package {BFLOAT16_PACKAGE} (python -m pip install \
             {BFLOAT16_PACKAGE})"
        ));
        refused.set_cause(py, Some(error));
        refused
    })?;
    Ok(PyArrayDescr::new(py, package.getattr("bfloat16")?)?.unbind())
}

/// Returns true for the dtype `ml_dtypes.bfloat16`, which no program has without the package.
fn is_bfloat16(descr: &Bound<'_, PyArrayDescr>) -> PyResult<bool> {
    if descr.num() < NPY_TYPES::NPY_USERDEF as i32 {
        return Ok(false);
    }
    let py = descr.py();
    let is_imported = || py.import("sys")?.getattr("modules")?.contains(BFLOAT16_PACKAGE);
    Ok(is_imported()? && to_numpy(py, DType::BFloat16)?.bind(py).num() == descr.num())
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
        _ if is_bfloat16(descr)? => Some(DType::BFloat16),
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
             float16, bfloat16, float32, float64, complex64, complex128 in native byte order, and records of \
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
        // numpy knows the name once the package is imported.
        Err(_) if is_text(value, DType::BFloat16.name()) => {
            to_numpy(value.py(), DType::BFloat16)?.into_bound(value.py())
        }
        Err(_) => PyArrayDescr::new(value.py(), value)?,
    };
    let dtype = from_numpy(&descr)?;
    Ok((descr, dtype))
}

fn is_text(value: &Bound<'_, PyAny>, text: &str) -> bool {
    value.cast::<PyString>().is_ok_and(|value| value.to_str().is_ok_and(|value| value == text))
}
