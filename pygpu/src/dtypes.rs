//! Conversion between numpy's dtypes and the core's.

use gpuarray::{DType, Kind};
use hal::dtype::Extension;
use numpy::npyffi::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use std::collections::HashMap;

/// numpy's objects for the dtypes of the core, in the order of [`DType::ALL`].
static DESCRIPTIONS: [PyOnceLock<Py<PyArrayDescr>>; DType::ALL.len()] =
    [const { PyOnceLock::new() }; DType::ALL.len()];

fn index(dtype: DType) -> Option<usize> {
    DType::ALL.iter().position(|&other| other == dtype)
}

/// Returns numpy's dtype for one of the core's; for a record, an untyped record dtype of its size.
pub(crate) fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Py<PyArrayDescr>> {
    let Some(index) = index(dtype) else {
        return Ok(PyArrayDescr::new(py, format!("V{}", dtype.size()))?.unbind());
    };
    let descr = DESCRIPTIONS[index].get_or_try_init(py, || match dtype.extension() {
        Some(extension) => import(py, dtype.name(), extension.package),
        None => Ok(PyArrayDescr::new(py, dtype.name())?.unbind()),
    })?;
    Ok(descr.clone_ref(py))
}

/// Imports a dtype that numpy lacks from its package, which is only needed for this.
fn import(py: Python<'_>, dtype: &str, package: &str) -> PyResult<Py<PyArrayDescr>> {
    let module = py.import(package).map_err(|error| {
        let refused = PyTypeError::new_err(format!(
            "dtype {dtype} needs the package {package} (python -m pip install {package})"
        ));
        refused.set_cause(py, Some(error));
        refused
    })?;
    Ok(PyArrayDescr::new(py, module.getattr(dtype)?)?.unbind())
}

/// Returns the dtypes that numpy lacks.
fn extensions() -> impl Iterator<Item = (DType, Extension)> {
    DType::ALL.into_iter().filter_map(|dtype| Some((dtype, dtype.extension()?)))
}

/// Returns the core's dtype for a dtype from a package outside numpy. Without the package, a program
/// cannot have such a dtype.
fn from_extension(descr: &Bound<'_, PyArrayDescr>) -> PyResult<Option<DType>> {
    if descr.num() < NPY_TYPES::NPY_USERDEF as i32 {
        return Ok(None);
    }
    let py = descr.py();
    let imported = py.import("sys")?.getattr("modules")?;
    for (dtype, extension) in extensions() {
        if imported.contains(extension.package)?
            && to_numpy(py, dtype)?.bind(py).num() == descr.num()
        {
            return Ok(Some(dtype));
        }
    }
    Ok(None)
}

/// Returns the names of the dtypes that numpy lacks, with DLPack's code and bits of each. No package is
/// imported.
#[pyfunction]
pub(crate) fn extension_dtypes() -> HashMap<&'static str, (u8, usize)> {
    let entry = |(dtype, extension): (DType, Extension)| {
        (dtype.name(), (extension.dlpack_code, dtype.size() * 8))
    };
    extensions().map(entry).collect()
}

/// Returns numpy's object for a dtype of `extension_dtypes`.
///
/// Raises `TypeError` if its package is not installed, or for another name.
#[pyfunction]
pub(crate) fn extension_dtype<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<Bound<'py, PyArrayDescr>> {
    match extensions().find(|(dtype, _)| dtype.name() == name) {
        Some((dtype, _)) => Ok(to_numpy(py, dtype)?.into_bound(py)),
        None => {
            Err(PyTypeError::new_err(format!("{name:?} is not a dtype that pygpu adds to numpy")))
        }
    }
}

/// Returns numpy's code for a kind of types.
fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Bool => b'b',
        Kind::Unsigned => b'u',
        Kind::Signed => b'i',
        Kind::Float => b'f',
        Kind::Complex => b'c',
        _ => b'V',
    }
}

/// Returns the core's dtype for one of numpy's.
pub(crate) fn from_numpy(descr: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    let number = descr.num();
    let size = descr.itemsize();
    let native = descr.is_native_byteorder().unwrap_or(true);
    let extension = from_extension(descr)?;
    let found = match (descr.kind(), size) {
        // numpy expands it to axes.
        _ if !native || descr.has_subarray() => None,
        _ if extension.is_some() => extension,
        (b'V' | b'S' | b'U' | b'M' | b'm', _)
            if size > 0 && !descr.has_object() && number != NPY_TYPES::NPY_OBJECT as i32 =>
        {
            u32::try_from(size).ok().map(DType::Opaque)
        }
        (kind, _) => DType::ALL
            .into_iter()
            .filter(|dtype| kind_code(dtype.kind()) == kind && dtype.size() == size)
            .find(|dtype| dtype.extension().is_none()),
    };
    found.ok_or_else(|| {
        let text = descr.str().map_or_else(|_| "?".into(), |text| text.to_string());
        let allowed = DType::ALL.map(DType::name).join(", ");
        PyTypeError::new_err(format!(
            "dtype {text} cannot be on a device; allowed are {allowed} in native byte order, and \
             records of fixed size without objects"
        ))
    })
}

/// Parses a dtype argument: returns numpy's dtype object and the core's dtype. `None` means numpy's
/// default, float64.
pub(crate) fn parse<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyArrayDescr>, DType)> {
    let descr = match value.cast::<PyArrayDescr>() {
        Ok(descr) => descr.clone(),
        // numpy's C converter does not return a dtype for None, and does not set an exception.
        Err(_) if value.is_none() => to_numpy(value.py(), DType::Float64)?.into_bound(value.py()),
        // numpy only recognises the name after the package is imported.
        Err(_) => match extensions().find(|(dtype, _)| is_text(value, dtype.name())) {
            Some((dtype, _)) => to_numpy(value.py(), dtype)?.into_bound(value.py()),
            None => PyArrayDescr::new(value.py(), value)?,
        },
    };
    let dtype = from_numpy(&descr)?;
    Ok((descr, dtype))
}

/// Parses a dtype argument for host memory: returns numpy's dtype object and the bytes of an element.
/// Dtypes that only numpy supports are also allowed, such as another byte order.
pub(crate) fn parse_for_host<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyArrayDescr>, usize)> {
    let descr = match (value.cast::<PyArrayDescr>(), parse(value)) {
        (Ok(descr), _) => descr.clone(),
        (_, Ok((descr, _))) => descr,
        (_, Err(error)) => PyArrayDescr::new(value.py(), value).map_err(|_| error)?,
    };
    if descr.has_object() || descr.has_subarray() || descr.itemsize() == 0 {
        from_numpy(&descr)?;
    }
    let itemsize = descr.itemsize();
    Ok((descr, itemsize))
}

fn is_text(value: &Bound<'_, PyAny>, text: &str) -> bool {
    value.cast::<PyString>().is_ok_and(|value| value.to_str().is_ok_and(|value| value == text))
}
