//! Concatenation and stacking of arrays.

use super::arguments::{check_records, expect_array};
use super::results::descr_for;
use super::{GPUArray, wrap_new};
use crate::allocator::ResultAllocator;
use crate::dtypes;
use crate::errors::OrRaise;
use crate::integer::argument;
use crate::numpy_array::type_name;
use crate::synchronize::run;
use gpuarray::layout::{normalize_axis, shape_text};
use gpuarray::{Array, DType, IndexItem, Layout, Order, SliceBounds};
use hal::operation::Shape;
use numpy::PyArrayDescr;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

type Arrays<'py> = SmallVec<[Bound<'py, GPUArray>; 4]>;

fn arrays_of<'py>(arrays: &Bound<'py, PyAny>, verb: &str) -> PyResult<Arrays<'py>> {
    let refused = || {
        let kind = type_name(arrays);
        PyTypeError::new_err(format!("arrays is of type {kind}; a sequence of GPUArrays is needed"))
    };
    if arrays.is_instance_of::<GPUArray>() || arrays.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let items = arrays.try_iter().map_err(|_| refused())?;
    let arrays = items
        .enumerate()
        .map(|(position, array)| {
            let array = array?;
            match array.cast::<GPUArray>() {
                Ok(array) => Ok(array.clone()),
                Err(_) => expect_array(&format!("arrays[{position}]"), &array).cloned(),
            }
        })
        .collect::<PyResult<Arrays<'py>>>()?;
    if arrays.is_empty() {
        return Err(PyValueError::new_err(format!("need at least one array to {verb}")));
    }
    Ok(arrays)
}

/// Returns the dtype to which all arrays are converted by numpy's rules.
fn common_descr<'py>(py: Python<'py>, arrays: &Arrays<'py>) -> PyResult<Py<PyArrayDescr>> {
    let first = arrays[0].get().content()?;
    let dtype = first.array.dtype();
    let mut is_same = !matches!(dtype, DType::Opaque(_));
    for array in &arrays[1..] {
        is_same &= array.get().array()?.dtype() == dtype;
    }
    if is_same {
        return descr_for(py, dtype, first);
    }
    // Not pairwise: int8, uint8 and float16 have the common dtype float16.
    let descrs = arrays
        .iter()
        .map(|array| Ok(array.get().content()?.descr.clone_ref(py)))
        .collect::<PyResult<Vec<_>>>()?;
    let common = py.import("numpy")?.call_method1("result_type", PyTuple::new(py, descrs)?)?;
    Ok(common.cast_into::<PyArrayDescr>()?.unbind())
}

/// Returns an array of the joined shape, and its pieces to which the arrays are copied.
fn join<'py>(
    arrays: &Arrays<'py>,
    shape: &Shape,
    order: Order,
    allocator: Option<&Bound<'py, PyAny>>,
    piece: impl Fn(&Array, usize, usize) -> gpuarray::Result<Array> + Sync,
    length: impl Fn(&Array) -> usize,
) -> PyResult<Bound<'py, PyAny>> {
    let first = &arrays[0];
    let py = first.py();
    let descr = common_descr(py, arrays)?;
    let dtype = dtypes::from_numpy(descr.bind(py))?;
    if let DType::Opaque(_) = dtype {
        for (place, array) in arrays.iter().enumerate() {
            let own = array.get().content()?.descr.bind(py);
            check_records(&format!("arrays[{place}]"), descr.bind(py), own)?;
        }
    }
    let layout = Layout::contiguous(shape, dtype.size(), order).or_raise()?;
    let own = first.get().content()?.allocator.as_ref().map(|own| own.bind(py).clone());
    let result_allocator = ResultAllocator::from_argument(
        allocator.filter(|given| !given.is_none()).or(own.as_ref()),
    )?;
    let like = first.get().array()?.clone().with_allocator(result_allocator.allocator.clone());
    let result = like.new_array(layout, dtype).or_raise()?;
    let mut start = 0;
    for array in arrays {
        let array = array.get().array()?;
        let stop = start + length(array);
        run(py, array.size(), || piece(&result, start, stop)?.assign(array))?;
        start = stop;
    }
    wrap_new(py, result, descr, result_allocator)
}

/// Returns `item` for an axis, preceded by full slices of the axes before it.
fn at_axis(axis: usize, item: IndexItem) -> SmallVec<[IndexItem; 4]> {
    let all = IndexItem::Slice(SliceBounds { start: None, stop: None, step: None });
    (0..axis).map(|_| all).chain([item]).collect()
}

/// Joins arrays along an existing axis.
#[pyfunction]
#[pyo3(signature = (arrays, axis = 0, allocator = None))]
pub(crate) fn concatenate<'py>(
    arrays: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::axis)] axis: isize,
    allocator: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let arrays = arrays_of(arrays, "concatenate")?;
    let first = arrays[0].get().array()?;
    let axis = normalize_axis(axis, first.ndim()).or_raise()?;
    let mut shape = Shape::from_slice(first.shape());
    shape[axis] = 0;
    for (position, array) in arrays.iter().enumerate() {
        let array = array.get().array()?;
        if array.ndim() != first.ndim() {
            return Err(PyValueError::new_err(format!(
                "{position}'th array has a different number of axes (should have {}, has {})",
                first.ndim(),
                array.ndim()
            )));
        }
        let differs = |other: usize| other != axis && array.shape()[other] != first.shape()[other];
        if (0..first.ndim()).any(differs) {
            return Err(PyValueError::new_err(format!(
                "{position}'th array has shape {}, which does not fit {} along axis {axis}",
                shape_text(array.shape()),
                shape_text(first.shape())
            )));
        }
        shape[axis] = shape[axis].saturating_add(array.shape()[axis]);
    }
    let piece = |result: &Array, start: usize, stop: usize| {
        let (start, stop) = (Some(start as isize), Some(stop as isize));
        result.index(&at_axis(axis, IndexItem::Slice(SliceBounds { start, stop, step: None })))
    };
    join(&arrays, &shape, Order::C, allocator, piece, |array| array.shape()[axis])
}

/// Joins arrays of one shape along a new axis, as :func:`numpy.stack`.
#[pyfunction]
#[pyo3(signature = (arrays, axis = 0, allocator = None))]
pub(crate) fn stack<'py>(
    arrays: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::axis)] axis: isize,
    allocator: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let arrays = arrays_of(arrays, "stack")?;
    let first = arrays[0].get().array()?;
    for array in &arrays {
        if array.get().array()?.shape() != first.shape() {
            return Err(PyValueError::new_err("arrays must have the same shape"));
        }
    }
    let axis = normalize_axis(axis, first.ndim() + 1).or_raise()?;
    let mut shape = Shape::from_slice(first.shape());
    shape.insert(axis, arrays.len());
    let order = if axis == 0 { Order::C } else { Order::F };
    let piece = |result: &Array, position: usize, _: usize| {
        result.index(&at_axis(axis, IndexItem::At(position as isize)))
    };
    join(&arrays, &shape, order, allocator, piece, |_| 1)
}
