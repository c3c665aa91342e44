//! Elements as Python numbers, and rounding.

use super::arguments::optional_array;
use super::host_copies::fetch_number;
use super::{GPUArray, Object, run_on, wrap_like};
use crate::errors::OrRaise;
use crate::integer::{argument, integer};
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::layout::shape_text;
use gpuarray::{Array, Complex, DType, IndexItem, Kind, Number};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyTuple};

fn indices(index: &Bound<'_, PyTuple>) -> PyResult<Vec<isize>> {
    index.iter_borrowed().map(|index| integer("index", &index)).collect()
}

/// Returns the element at the arguments of `item`: one index for each axis, one for the elements
/// read in C order, or none for the only element.
fn element(array: &Array, index: &Bound<'_, PyTuple>) -> PyResult<Array> {
    let items: Vec<isize> = match index.len() {
        1 => match index.get_item(0)?.cast::<PyTuple>() {
            Ok(tuple) => indices(tuple)?,
            Err(_) => indices(index)?,
        },
        _ => indices(index)?,
    };
    let size = array.size();
    let mut rest = match items[..] {
        [] if size == 1 => return Ok(array.clone()),
        [] => {
            return Err(PyValueError::new_err(format!(
                "item() needs an array of one element; this one has {size}"
            )));
        }
        [flat] if array.ndim() != 1 => {
            let wrapped = if flat < 0 { flat.saturating_add_unsigned(size) } else { flat };
            usize::try_from(wrapped).ok().filter(|&place| place < size).ok_or_else(|| {
                PyIndexError::new_err(format!("index {flat} is out of bounds for size {size}"))
            })?
        }
        _ if items.len() == array.ndim() => {
            let items: Vec<_> = items.into_iter().map(IndexItem::At).collect();
            return array.index(&items).or_raise();
        }
        _ => {
            return Err(PyValueError::new_err(format!(
                "the number of indices of item() is {}; an array of shape {} needs one for each axis, \
             or one for all",
                items.len(),
                shape_text(array.shape())
            )));
        }
    };
    let mut places: Vec<_> = array
        .shape()
        .iter()
        .rev()
        .map(|&extent| {
            let place = rest % extent;
            rest /= extent;
            IndexItem::At(place as isize)
        })
        .collect();
    places.reverse();
    array.index(&places).or_raise()
}

/// Returns the number of an array with one element, or `None` for other elements than numpy's own numbers.
fn number<'py>(py: Python<'py>, array: &Array) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dtype = array.dtype();
    let wide = match dtype.kind() {
        _ if dtype.extension().is_some() => return Ok(None),
        Kind::Bool | Kind::Unsigned => DType::UInt64,
        Kind::Signed => DType::Int64,
        Kind::Float => DType::Float64,
        Kind::Complex => DType::Complex128,
        _ => return Ok(None),
    };
    let number = fetch_number(py, array)?.cast(wide).or_raise()?;
    Ok(if let Some(number) = number.get::<f64>() {
        Some(PyFloat::new(py, number).into_any())
    } else if let Some(number) = number.get::<Complex<f64>>() {
        Some(PyComplex::from_doubles(py, number.re, number.im).into_any())
    } else if let Some(number) = number.get::<i64>() {
        Some(number.into_pyobject(py)?.into_any())
    } else if dtype == DType::Bool {
        Some(PyBool::new(py, number.get::<u64>() != Some(0)).to_owned().into_any())
    } else {
        number.get::<u64>().map(|number| number.into_pyobject(py)).transpose()?.map(Bound::into_any)
    })
}

/// Rounds real elements in place to a number of decimals, by numpy's steps: scaled by a power of
/// ten, rounded to even, and scaled back.
fn round_in_place(array: &Array, decimals: i32) -> gpuarray::Result<()> {
    if decimals == 0 {
        return array.set_unary(UnaryFunction::Rint, array);
    }
    let scale = Number::Float(10f64.powi(decimals.saturating_abs())).into();
    let (up, down) = match decimals > 0 {
        true => (BinaryFunction::Multiply, BinaryFunction::Divide),
        false => (BinaryFunction::Divide, BinaryFunction::Multiply),
    };
    array.set_binary(up, array.into(), scale)?;
    array.set_unary(UnaryFunction::Rint, array)?;
    array.set_binary(down, array.into(), scale)
}

fn rounded(array: &Array, decimals: i32) -> gpuarray::Result<Array> {
    let dtype = array.dtype();
    if dtype.is_integer() && decimals >= 0 {
        return array.copy();
    }
    if dtype.is_complex() {
        let copy = array.copy()?;
        round_in_place(&copy.real_view(), decimals)?;
        round_in_place(&copy.imaginary_view()?, decimals)?;
        return Ok(copy);
    }
    let computing = if dtype.is_integer() { DType::Float64 } else { dtype.inexact() };
    let copy = array.astype(computing)?;
    round_in_place(&copy, decimals)?;
    if dtype.is_integer() { copy.astype(dtype) } else { Ok(copy) }
}

/// Returns the element of an array with one element, for Python's conversions to numbers.
fn only_element<'py>(slf: &Bound<'py, GPUArray>) -> Object<'py> {
    let array = slf.get().array()?;
    if array.size() != 1 {
        return Err(PyTypeError::new_err(format!(
            "only length-1 arrays can be converted to Python scalars; this one has shape {}",
            shape_text(array.shape())
        )));
    }
    GPUArray::item(slf, &PyTuple::empty(slf.py()))
}

#[pymethods]
impl GPUArray {
    /// Returns one element as a Python number, and waits for it.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// *args : int or tuple of int. An index for each axis, or one index into the elements in C
    ///     order. If omitted, the array must have one element.
    ///
    /// Returns
    /// -------
    /// int, float, complex, bool or tuple
    ///     The element; a record is a tuple of its fields.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     More than one element and no index, or a wrong number of indices.
    /// IndexError
    ///     An index is out of bounds.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(6).reshape(2, 3).item(1, 2)
    /// 5
    #[pyo3(signature = (*args))]
    fn item<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> Object<'py> {
        let one = element(slf.get().array()?, args)?;
        if let Some(number) = number(slf.py(), &one)? {
            return Ok(number);
        }
        let one = super::wrap_view(slf, one, None)?.cast_into::<GPUArray>()?;
        one.get().get(slf.py(), None, false, false, None, None)?.call_method0("item")
    }

    /// Returns the elements as nested lists of Python numbers, as numpy's `tolist` does, and waits
    /// for them.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Returns
    /// -------
    /// list or number
    ///     The lists; one number for an array without axes.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(4).reshape(2, 2).tolist()
    /// [[0, 1], [2, 3]]
    fn tolist<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        slf.get().get(slf.py(), None, false, false, None, None)?.call_method0("tolist")
    }

    /// Returns the elements rounded to a number of decimals, with halves rounded to even, in a new
    /// array.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// decimals : int, optional. The digits after the point; negative for digits before it. The
    ///     real and imaginary parts of complex numbers are rounded separately.
    /// out : GPUArray, optional. Receives the result; it has the shape of the result.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The array, with the same dtype; truth values become float16.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The elements are records, or truth values and `decimals` is not 0.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.to_gpu(np.array([0.126, 2.5])).round(1).get()
    /// array([0.1, 2.5])
    #[pyo3(signature = (decimals = 0, out = None))]
    fn round<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument::decimals)] decimals: i32,
        out: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        let out = optional_array("out", out)?;
        let array = slf.get().array()?;
        if matches!(array.dtype(), DType::Opaque(_)) {
            return Err(PyTypeError::new_err(format!(
                "round is not defined for dtype {}",
                array.dtype()
            )));
        }
        if array.dtype() == DType::Bool && decimals != 0 {
            return Err(PyTypeError::new_err(format!(
                "decimals is {decimals}; truth values are rounded to 0 decimals only"
            )));
        }
        let result = run_on(slf, array.size(), || rounded(array, decimals))?;
        let Some(out) = out else { return wrap_like(slf, result, None) };
        let target = out.get().array()?;
        run_on(slf, result.size(), || result.copy_into(target))?;
        Ok(out.clone().into_any())
    }

    #[pyo3(signature = (ndigits = None))]
    fn __round__<'py>(slf: &Bound<'py, Self>, ndigits: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let ndigits = ndigits.filter(|ndigits| !ndigits.is_none());
        Self::round(slf, ndigits.map_or(Ok(0), |ndigits| integer("ndigits", ndigits))?, None)
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        only_element(slf)?.call_method0("__int__")
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        let number = only_element(slf)?;
        if number.is_exact_instance_of::<PyFloat>() {
            Ok(number)
        } else {
            number.call_method0("__float__")
        }
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        slf.py().get_type::<PyComplex>().call1((only_element(slf)?,))
    }

    fn __index__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        let array = slf.get().array()?;
        if array.ndim() > 0 || !array.dtype().is_integer() {
            return Err(PyTypeError::new_err(format!(
                "only an array of integers without axes is an index; this one has dtype {} and \
                 shape {}",
                array.dtype(),
                shape_text(array.shape())
            )));
        }
        Self::item(slf, &PyTuple::empty(slf.py()))
    }

    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &str) -> Object<'py> {
        if slf.get().array()?.ndim() == 0 {
            let item = Self::item(slf, &PyTuple::empty(slf.py()))?;
            return item.call_method1("__format__", (spec,));
        }
        if spec.is_empty() {
            return Ok(slf.str()?.into_any());
        }
        Err(PyTypeError::new_err(format!(
            "format specification {spec:?} is for one number; this array has shape {}",
            shape_text(slf.get().array()?.shape())
        )))
    }
}
