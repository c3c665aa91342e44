//! Indexing of elements: views, assignment and filling.

use super::arguments::{expect_value, is_sequence, parse_index, records_of};
use super::host_copies::store;
use super::transfer::on_stream;
use super::views::view;
use super::{GPUArray, Object, wrap_view};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::numpy_array::{self, HostArray};
use crate::profile::at_line;
use crate::synchronize::run;
use gpuarray::{Argument, Array, DType, Error, Kind, Number, Scalar};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PyString, PyTuple};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Stores a value in every element of an array, as numpy's assignment does.
pub(super) fn assign(
    target: &Array,
    descr: &Bound<'_, PyArrayDescr>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    match value.cast::<PyUntypedArray>() {
        Ok(given) if !matches!(target.dtype(), DType::Opaque(_)) => store_broadcast(target, given),
        _ => fill_with(target, descr, value),
    }
}

/// Sets every element of an array to a number, or to a value that its dtype can represent.
pub(super) fn fill_with(
    array: &Array,
    descr: &Bound<'_, PyArrayDescr>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = value.py();
    if let Ok(other) = value.cast::<GPUArray>()
        && let Some(pending) = other.get().pending()
    {
        return run(py, array.size(), || pending.expression.assign_to(array));
    }
    if matches!(array.dtype(), DType::Opaque(_)) || is_sequence(value) {
        let value = records_of("value", descr, value)?;
        return match value.cast::<GPUArray>() {
            Ok(other) => {
                let other = other.get().array()?;
                run(py, array.size(), || array.assign(other))
            }
            Err(_) => store_broadcast(array, &numpy_array::expect_array("value", &value)?),
        };
    }
    let scalar = match expect_value("value", value)? {
        // As in numpy, the element of an array wraps, but a scalar must fit.
        Argument::Scalar(scalar) if value.is_instance_of::<PyUntypedArray>() => scalar,
        Argument::Scalar(scalar) => fitting(scalar, array.dtype()).or_raise()?,
        Argument::Number(Number::Float(number)) => {
            fitting(Scalar::new(number), array.dtype()).or_raise()?
        }
        Argument::Number(number) => number.to_scalar(array.dtype()).or_raise()?,
        Argument::Array(other) => return run(py, array.size(), || array.assign(other)),
    };
    run(py, array.size(), || array.fill(scalar))
}

/// Converts a scalar for an element of `dtype`. As in numpy's assignment, a fraction is truncated for
/// integers, and a value out of range is refused.
fn fitting(scalar: Scalar, dtype: DType) -> gpuarray::Result<Scalar> {
    if !matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) {
        return Ok(scalar);
    }
    let whole = match scalar.dtype().kind() {
        Kind::Signed => scalar.cast(DType::Int64)?.get::<i64>().map(i128::from),
        Kind::Unsigned => scalar.cast(DType::UInt64)?.get::<u64>().map(i128::from),
        Kind::Float => {
            let number = scalar.as_f64();
            if number.is_nan() {
                let text = format!("value is NaN, which cannot become an element of {dtype}");
                return Err(Error::invalid("scalar", text));
            }
            if number.abs() >= 1e30 {
                let text = format!("number {number} out of bounds for {dtype}");
                return Err(Error::overflow("scalar", text));
            }
            Some(number as i128)
        }
        _ => None,
    };
    whole.map_or(Ok(scalar), |whole| Number::Integer(whole).to_scalar(dtype))
}

/// Sets the elements from a host array, which is copied unchanged, then converted and broadcast on the
/// device.
fn store_broadcast(target: &Array, given: &HostArray<'_>) -> PyResult<()> {
    let py = given.py();
    let _line = at_line(py);
    let (_, dtype) = numpy_array::dtype_of(given)?;
    target.layout().broadcast_to(target.shape()).or_raise()?;
    let layout = numpy_array::dense_like(given, dtype.size())?;
    layout.trim_leading(target.ndim()).broadcast_to(target.shape()).or_raise()?;
    if dtype == target.dtype() && given.shape() == target.shape() {
        return store(py, target, given, true);
    }
    let staged =
        Array::with_new_memory(target.device(), target.stream(), layout, dtype).or_raise()?;
    store(py, &staged, given, true)?;
    run(py, target.size(), || target.assign(&staged))
}

/// Returns the view of one field of each record.
fn field<'py>(slf: &Bound<'py, GPUArray>, name: &Bound<'py, PyString>) -> Object<'py> {
    let py = slf.py();
    let content = slf.get().content()?;
    let descr = content.descr.bind(py);
    if !descr.has_fields() {
        return Err(PyIndexError::new_err(format!(
            "index is {:?}, the name of a field; elements of {descr} have no fields",
            name.to_string()
        )));
    }
    let fields = descr.getattr("fields")?;
    let Ok(found) = fields.get_item(name) else {
        return Err(PyValueError::new_err(format!(
            "no field of name {}; the fields are {}",
            name.repr()?,
            descr.getattr("names")?
        )));
    };
    let part = found.get_item(0)?.cast_into::<PyArrayDescr>()?;
    if !part.getattr("subdtype")?.is_none() {
        return Err(PyTypeError::new_err(format!(
            "field {} is of {part}, an array in each record; view the whole with a dtype without it",
            name.repr()?
        )));
    }
    let dtype = dtypes::from_numpy(&part)?;
    let array = content.array.field(found.get_item(1)?.extract()?, dtype).or_raise()?;
    wrap_view(slf, array, Some(part.unbind()))
}

/// A view that `a[i]` has made: the identity of the object, which is not dereferenced, and the address of
/// its elements.
#[derive(Clone, Copy)]
struct Made {
    object: usize,
    address: u64,
}

const NONE: Made = Made { object: 0, address: 0 };

/// The number of views that a thread remembers: a rotation of this many elements is refused.
const REMEMBERED: usize = 8;

thread_local! {
    /// The last views that were made on this thread, as far as they still exist.
    static MADE: [Cell<Made>; REMEMBERED] = const { [const { Cell::new(NONE) }; REMEMBERED] };
    /// The position for the next one.
    static NEXT: Cell<u8> = const { Cell::new(0) };
}

fn identity(view: &GPUArray) -> usize {
    std::ptr::from_ref(view).addr()
}

/// Records a view that `a[i]` has made.
fn note_made(part: &Bound<'_, PyAny>) -> PyResult<()> {
    let view = part.cast::<GPUArray>()?.get();
    let address = view.array()?.address();
    let place = NEXT.get();
    NEXT.set((place + 1) % REMEMBERED as u8);
    MADE.with(|made| made[usize::from(place)].set(Made { object: identity(view), address }));
    // Zero means none.
    view.noted.store(place + 1, Ordering::Relaxed);
    Ok(())
}

/// Removes the record of a view that is being dropped.
pub(super) fn forget_made(view: &GPUArray) {
    if let Some(place) = usize::from(view.noted.load(Ordering::Relaxed)).checked_sub(1) {
        MADE.with(|made| {
            if made[place].get().object == identity(view) {
                made[place].set(NONE);
            }
        });
    }
}

/// Refuses the first half of `a[i], a[j] = a[j], a[i]`, which numpy's shuffle also executes. All four are
/// views, so the second half would store the values that the first half has written.
///
/// In a swap, only the interpreter refers to the value, and the view that is stored next was made after
/// it. If the program has named the value or keeps it in a list, the view is intended.
fn refuse_swap(target: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: the object is alive, and the interpreter's lock is held.
    if unsafe { ffi::Py_REFCNT(value.as_ptr()) } != 1 {
        return Ok(());
    }
    let Ok(view) = value.cast::<GPUArray>() else { return Ok(()) };
    let noted = usize::from(view.get().noted.load(Ordering::Relaxed));
    let is_swap = noted != 0
        && MADE.with(|made| {
            let own = made[noted - 1].get();
            let next = usize::from(NEXT.get());
            let later =
                (0..).map(|it| (noted + it) % REMEMBERED).take_while(|&place| place != next);
            own.object == identity(view.get())
                && own.address != target.address()
                && later
                    .map(|place| made[place].get())
                    .any(|it| it.object != 0 && it.address == target.address())
        });
    if !is_swap || is_local_variable(value)? {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "a[i] = a[j] while a[i] is held: both are views, so a swap would store one of them twice; write \
         a[[i, j]] = a[[j, i]], and a[:] = a[numpy.random.permutation(len(a))] for a shuffle",
    ))
}

/// Returns true if a variable of the running function holds the value. Since Python 3.14, such a variable
/// may not add a reference.
fn is_local_variable(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let frame = value.py().import("sys")?.call_method0("_getframe")?;
    let variables = frame.getattr("f_locals")?.call_method0("values")?;
    for variable in variables.try_iter()? {
        if variable?.is(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true for an index that selects elements by arrays of indices, masks, truth values or lists.
fn is_advanced(index: &Bound<'_, PyAny>) -> bool {
    let truth_value = index.py().import("numpy").and_then(|numpy| numpy.getattr("bool_"));
    let names = |item: &Bound<'_, PyAny>| {
        item.is_instance_of::<GPUArray>()
            || item.is_instance_of::<PyUntypedArray>()
            || item.is_instance_of::<PyList>()
            || item.is_instance_of::<PyBool>()
            || truth_value.as_ref().is_ok_and(|kind| item.is_instance(kind).unwrap_or(false))
    };
    names(index) || index.cast::<PyTuple>().is_ok_and(|items| items.iter().any(|item| names(&item)))
}

/// Returns the module that implements indexing by arrays.
pub(super) fn advanced(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("pygpu._array.advanced_indexing")
}

#[pymethods]
impl GPUArray {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> Object<'py> {
        if let Ok(name) = index.cast::<PyString>() {
            let part = field(slf, name)?;
            note_made(&part)?;
            return Ok(part);
        }
        match parse_index(index) {
            Err(_) if is_advanced(index) => {
                advanced(slf.py())?.getattr("get_elements")?.call1((slf, index))
            }
            items => {
                let part = view(slf, slf.get().array()?.index(&items?))?;
                note_made(&part)?;
                Ok(part)
            }
        }
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = slf.py();
        if let Ok(name) = index.cast::<PyString>() {
            let everything = PyEllipsis::get(py).to_owned().into_any();
            let part = field(slf, name)?.cast_into::<GPUArray>()?;
            return Self::__setitem__(&part, &everything, value);
        }
        let items = match parse_index(index) {
            Err(_) if is_advanced(index) => {
                advanced(py)?.getattr("set_elements")?.call1((slf, index, value))?;
                return Ok(());
            }
            items => items?,
        };
        let array = slf.get().array()?;
        let target = array.index(&items).or_raise()?;
        refuse_swap(&target, value)?;
        assign(&target, slf.get().content()?.descr.bind(py), value)
    }

    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyIndexError::new_err("elements of an array cannot be deleted"))
    }

    /// Sets every element to a value.
    ///
    /// Parameters
    /// ----------
    /// value : number, list, GPUArray or record
    ///     The value, converted to the dtype of the array as in numpy's assignment.
    /// stream : Stream, optional. The stream on which the work is queued.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The array itself.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The value is a whole number outside the range of the dtype.
    /// TypeError
    ///     The value is not a number, or is complex while the dtype is real.
    /// ValueError
    ///     The shape of the value does not broadcast to the array's.
    #[pyo3(signature = (value, stream = None))]
    fn fill<'py>(
        slf: Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let descr = slf.get().content()?.descr.bind(slf.py()).clone();
        fill_with(&on_stream(slf.get().array()?, stream)?, &descr, value)?;
        Ok(slf)
    }
}
