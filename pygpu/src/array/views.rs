//! Views of the same elements with another shape, order of axes or dtype.

use super::{GPUArray, Object, run_on, wrap_like, wrap_view};
use crate::current_device::current_device;
use crate::dtypes;
use crate::entries::Entries;
use crate::errors::OrRaise;
use crate::shape::{order_argument, parse_new_shape, parse_order, parse_shape, refuse_order};
use crate::stream::stream_argument;
use gpuarray::{Array, Layout, Order};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Returns a view of `slf` as an object of its class.
pub(super) fn view<'py>(slf: &Bound<'py, GPUArray>, array: gpuarray::Result<Array>) -> Object<'py> {
    wrap_view(slf, array.or_raise()?, None)
}

/// Returns a result of `reshape`: a view, or a copy if the strides do not allow a view.
///
/// The elements are the same as numpy's. As PyCUDA promises, a contiguous array stays contiguous, in
/// the requested order; numpy might return a view in the other order.
///
/// The result of `ravel`, which is `flat`, is always contiguous.
fn reshaped<'py>(
    slf: &Bound<'py, GPUArray>,
    array: &Array,
    shape: &[isize],
    order: Order,
    flat: bool,
) -> Object<'py> {
    let is_dense = flat || array.layout().is_c_contiguous() || array.layout().is_f_contiguous();
    let result = run_on(slf, array.size(), || {
        let view = array.reshape(shape, order)?;
        if is_dense && !view.layout().is_contiguous(order) {
            view.contiguous(order)
        } else {
            Ok(view)
        }
    })?;
    if std::sync::Arc::ptr_eq(result.memory(), array.memory()) {
        return wrap_view(slf, result, None);
    }
    wrap_like(slf, result, None)
}

/// Parses "C", "F", or "A", which means Fortran's order for an array that is only contiguous in that
/// order. `allowed` lists the orders that the function supports, for the error.
pub(super) fn order_for(
    slf: &Bound<'_, GPUArray>,
    order: Option<&str>,
    allowed: &str,
) -> PyResult<Order> {
    if !matches!(order, Some("A" | "a")) {
        return parse_order(order).map_err(|_| refuse_order(order.unwrap_or_default(), allowed));
    }
    let layout = slf.get().array()?.layout();
    let fortran = layout.is_f_contiguous() && !layout.is_c_contiguous();
    Ok(if fortran { Order::F } else { Order::C })
}

/// Returns the elements along one axis, in memory order.
fn in_memory_order<'py>(slf: &Bound<'py, GPUArray>) -> Object<'py> {
    let array = slf.get().array()?;
    let dense = array.layout().dense_like(1).or_raise()?;
    let mut axes: Vec<usize> = (0..array.ndim()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(dense.strides()[axis]));
    let sorted = array.transpose(Some(&axes)).or_raise()?;
    reshaped(slf, &sorted, &[-1], Order::C, true)
}

/// Returns the view of an array's memory with another shape and strides, `offset` bytes from its first
/// element.
#[pyfunction]
pub(crate) fn strided_view<'py>(
    a: &Bound<'py, GPUArray>,
    shape: &Bound<'py, PyAny>,
    strides: Entries<isize>,
    offset: isize,
) -> Object<'py> {
    let (array, shape) = (a.get().array()?, parse_shape(shape)?);
    let (start, size) = (array.layout().offset(), array.dtype().size());
    let start = start.checked_add_signed(offset).ok_or_else(|| {
        PyValueError::new_err(format!("offset is {offset}, before the memory of the array"))
    })?;
    let made = Layout::with_strides(&shape, &strides.0, start, size).and_then(|layout| {
        let (memory, stream) = (array.memory().clone(), array.stream().clone());
        Array::from_memory(memory, layout, array.dtype(), stream)
    });
    view(a, made.map(|made| made.with_allocator(array.allocator().cloned())))
}

#[pymethods]
impl GPUArray {
    /// Returns the elements with another shape: a view if the strides allow it, else a copy.
    ///
    /// Parameters
    /// ----------
    /// *shape : int, or one sequence of int
    ///     The extents; one may be -1, which is computed from the others.
    /// order : {"C", "F", "A"}, optional. The order in which elements are read and placed; "A"
    ///     means "F" for an array that is only contiguous in Fortran's order. The result of a
    ///     contiguous array is contiguous in that order, where numpy may return a view in another.
    /// copy : bool, optional. True for a copy in any case, False to refuse one.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The view or the copy.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The sizes differ, more than one extent is -1, or `copy` is False and a copy is needed.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(6).reshape(2, -1).shape
    /// (2, 3)
    #[pyo3(signature = (*shape, order = "C", copy = None))]
    fn reshape<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyTuple>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
        copy: Option<bool>,
    ) -> Object<'py> {
        if shape.is_empty() {
            return Err(PyTypeError::new_err("reshape needs a shape"));
        }
        let order = order_for(slf, order, "C, F and A")?;
        let array = slf.get().array()?;
        let result = reshaped(slf, array, &parse_new_shape(shape)?, order, false)?;
        let Some(copy) = copy else { return Ok(result) };
        let result = result.cast_into::<GPUArray>()?;
        let is_view = std::sync::Arc::ptr_eq(result.get().array()?.memory(), array.memory());
        if copy && is_view {
            return Self::copy(&result, None, None);
        }
        if !copy && !is_view && array.size() > 0 {
            return Err(PyValueError::new_err(format!(
                "copy is False; an array of strides {:?} needs a copy for this shape",
                array.layout().strides()
            )));
        }
        Ok(result.into_any())
    }

    /// Returns the elements along one axis: a view if they are contiguous in that order, else a copy.
    ///
    /// Parameters
    /// ----------
    /// order : {"C", "F", "A", "K"}, optional. The order in which elements are read; "A" means "F"
    ///     for an array that is only contiguous in Fortran's order, and "K" the order in memory.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The view or the copy.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `order` is another name.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.zeros((2, 3)).ravel().shape
    /// (6,)
    #[pyo3(signature = (order = "C"))]
    fn ravel<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    ) -> Object<'py> {
        if matches!(order, Some("K" | "k")) {
            return in_memory_order(slf);
        }
        let order = order_for(slf, order, "C, F, A and K")?;
        reshaped(slf, slf.get().array()?, &[-1], order, true)
    }

    /// Returns a view of the same bytes as elements of another dtype.
    ///
    /// Parameters
    /// ----------
    /// dtype : dtype, optional
    ///     The type of the view's elements; the array's own if omitted or None. The extent of
    ///     the axis with the smallest stride changes with the size of an element.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The view.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The bytes of that axis are not a multiple of the new element size, or not aligned.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.zeros(3, "f8").view("u4").shape
    /// (6,)
    #[pyo3(signature = (dtype = None))]
    fn view<'py>(slf: &Bound<'py, Self>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
            return wrap_view(slf, slf.get().array()?.clone(), None);
        };
        let (descr, dtype) = dtypes::parse(dtype)?;
        wrap_view(slf, slf.get().array()?.view(dtype).or_raise()?, Some(descr.unbind()))
    }

    /// Returns an array over the same elements whose operations are queued on another stream.
    ///
    /// Uses of the memory on several streams are ordered as usual: the operations run after earlier
    /// uses of the elements on other streams, and before later ones. PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream. The stream; the default stream for None.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     A view. Results that are computed from it are on the same stream.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `stream` is not a stream.
    /// ValueError
    ///     The stream belongs to another device.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import driver, gpuarray
    /// >>> stream = driver.Stream()
    /// >>> a = gpuarray.arange(3)
    /// >>> (a.on(stream) + 1).get()
    /// array([1, 2, 3])
    fn on<'py>(slf: &Bound<'py, Self>, stream: &Bound<'py, PyAny>) -> Object<'py> {
        let stream = stream_argument(Some(stream), &current_device()?)?;
        view(slf, slf.get().array()?.on(&stream))
    }

    /// Returns the view with its axes in another order.
    ///
    /// Parameters
    /// ----------
    /// *positions : int, or one sequence of int. The axes in their new order; reversed if omitted.
    /// axes : sequence of int, optional. The same by keyword.
    ///
    /// Returns
    /// -------
    /// GPUArray
    ///     The view.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The axes do not name each axis once.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.zeros((2, 3, 4)).transpose(1, 0, 2).shape
    /// (3, 2, 4)
    #[pyo3(signature = (*positions, axes = None))]
    fn transpose<'py>(
        slf: &Bound<'py, Self>,
        positions: &Bound<'py, PyTuple>,
        axes: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        let array = slf.get().array()?;
        let named = axes.map(|axes| PyTuple::new(slf.py(), [axes])).transpose()?;
        let axes = named.as_ref().unwrap_or(positions);
        let whole = axes.is_empty() || (axes.len() == 1 && axes.get_item(0)?.is_none());
        if whole {
            return view(slf, array.transpose(None));
        }
        let axes = parse_new_shape(axes)?
            .iter()
            .map(|&axis| array.layout().normalize_axis(axis))
            .collect::<gpuarray::Result<Vec<_>>>()
            .map_err(|_| PyValueError::new_err(format!("axes {axes} don't match array")))?;
        view(slf, array.transpose(Some(&axes)))
    }

    /// The view with its axes reversed.
    #[getter(T)]
    fn transposed<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        view(slf, slf.get().array()?.transpose(None))
    }
}
