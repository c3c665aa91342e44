//! Reductions of elements along axes, and the methods for them.

use super::arguments::{expect_array, optional_array};
use super::functions::with_allocator;
use super::transfer::on_stream;
use super::{GPUArray, Object, OptionalAny, fused, run_on, wrap_like, wrap_with_allocator};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::fused_block;
use crate::integer::argument;
use gpuarray::function::Reduction;
use gpuarray::layout::shape_text;
use gpuarray::{Array, DType, Expression, Kind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyTuple};
use smallvec::SmallVec;

macro_rules! class {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal ($($rule:ident),*) = $numpy:literal
            $(-> $module:ident($python:ident))?;
    )*) => {
        /// The ways in which elements are combined into one.
        #[pyclass(module = "pygpu._core", name = "Reduction", frozen, eq, hash)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum PyReduction { $($(#[doc = $doc])+ $variant,)* }

        impl PyReduction {
            pub(super) fn value(self) -> Reduction {
                match self { $(PyReduction::$variant => Reduction::$variant,)* }
            }

            pub(super) fn of(reduction: Reduction) -> Self {
                match reduction { $(Reduction::$variant => PyReduction::$variant,)* }
            }
        }
    };
}
hal::reductions!(class);

type Axes = SmallVec<[isize; 4]>;

/// Parses the axes of a reduction: an axis, a tuple of axes, or None for all.
fn parse_axes(axis: OptionalAny<'_, '_>) -> PyResult<Option<Axes>> {
    let Some(axis) = axis.filter(|axis| !axis.is_none()) else { return Ok(None) };
    match axis.cast::<PyTuple>() {
        Ok(axes) => {
            axes.iter().map(|axis| argument::axis(&axis)).collect::<PyResult<_>>().map(Some)
        }
        Err(_) => Ok(Some(SmallVec::from_slice(&[argument::axis(axis)?]))),
    }
}

/// Parses the axes of a reduction of an array with `ndim` axes. As in numpy, an array without axes may also be reduced
/// along axis 0 or -1, if that is the only one named.
fn parse_reduced_axes(axis: OptionalAny<'_, '_>, ndim: usize) -> PyResult<Option<Axes>> {
    let axes = parse_axes(axis)?;
    let is_tuple = axis.is_some_and(|axis| axis.is_instance_of::<PyTuple>());
    Ok(axes.map(|axes| match axes[..] {
        [0 | -1] if ndim == 0 && !is_tuple => Axes::new(),
        _ => axes,
    }))
}

/// Returns true for a positional argument that is an axis, or a tuple of axes.
fn is_axis(value: &Bound<'_, PyAny>) -> bool {
    let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    is_number || value.is_instance_of::<PyTuple>()
}

/// Returns the dtype in which elements are combined: the given one, or numpy's for the array and the output.
pub(super) fn compute_dtype(
    reduction: Reduction,
    own: DType,
    given: Option<DType>,
    out: Option<&Bound<'_, GPUArray>>,
) -> PyResult<DType> {
    let usual = reduction.numpy_compute(own);
    match (given, reduction) {
        (Some(given), _) => Ok(given),
        (None, Reduction::Sum | Reduction::Product) => computed_for(own, usual, out),
        _ => Ok(usual),
    }
}

/// Returns the dtype of a computation whose result is stored in `out`: one that holds elements of both if the output
/// has fractions, otherwise `usual`. Integers have the same remainders in every dtype.
fn computed_for(own: DType, usual: DType, out: Option<&Bound<'_, GPUArray>>) -> PyResult<DType> {
    let Some(out) = out else { return Ok(usual) };
    let stored = out.get().array()?.dtype();
    match stored.kind() {
        Kind::Float | Kind::Complex => own.promote(stored).or_raise(),
        _ => Ok(usual),
    }
}

/// The arguments of a reduction of an array.
#[derive(Clone, Default)]
pub(super) struct Arguments<'py> {
    pub(super) axis: Option<Bound<'py, PyAny>>,
    pub(super) dtype: Option<Bound<'py, PyAny>>,
    pub(super) out: Option<Bound<'py, PyAny>>,
    pub(super) keepdims: Option<Bound<'py, PyAny>>,
    pub(super) stream: Option<Bound<'py, PyAny>>,
    pub(super) allocator: Option<Bound<'py, PyAny>>,
    /// numpy's `initial` and `where`, if either is given.
    pub(super) masked: Option<Bound<'py, PyDict>>,
}

impl<'py> Arguments<'py> {
    fn slot(&mut self, name: &str) -> &mut Option<Bound<'py, PyAny>> {
        match name {
            "axis" => &mut self.axis,
            "dtype" => &mut self.dtype,
            "out" => &mut self.out,
            "keepdims" => &mut self.keepdims,
            "stream" => &mut self.stream,
            _ => &mut self.allocator,
        }
    }

    /// Adds positional arguments: PyCUDA's, or numpy's if the first one is an axis (or None, in methods that PyCUDA
    /// lacks).
    ///
    /// Raises `TypeError` for too many arguments, and for one that is also given by keyword.
    pub(super) fn with_positional(
        mut self,
        positional: &Bound<'py, PyTuple>,
        method: &str,
        pycuda: &[&str],
        numpy: &[&str],
    ) -> PyResult<Self> {
        if positional.is_empty() {
            return Ok(self);
        }
        let first = positional.get_item(0)?;
        // Of these methods, PyCUDA's arrays only have `any` and `all`.
        let is_numpys = first.is_none() && !matches!(method, "any" | "all");
        let is_numpys = is_numpys || is_axis(&first);
        let mut names = SmallVec::<[&str; 6]>::from_slice(if is_numpys { numpy } else { pycuda });
        if is_numpys && positional.len() > names.len() && !matches!(method, "any" | "all") {
            names.extend(["initial", "where"]);
        }
        if positional.len() > names.len() {
            return Err(PyTypeError::new_err(format!(
                "{method}() takes the positional arguments {}; {} were given",
                names.join(", "),
                positional.len()
            )));
        }
        for (name, value) in names.iter().zip(positional.iter()) {
            if matches!(*name, "initial" | "where") {
                let masked = self.masked.get_or_insert_with(|| PyDict::new(positional.py()));
                if masked.contains(name)? {
                    return Err(PyTypeError::new_err(format!(
                        "{method}() got {name} by position and by keyword"
                    )));
                }
                masked.set_item(name, value)?;
                continue;
            }
            let slot = self.slot(name);
            if value.is_none() {
                continue;
            }
            if slot.as_ref().is_some_and(|given| !given.is_none()) {
                return Err(PyTypeError::new_err(format!(
                    "{method}() got {name} by position and by keyword"
                )));
            }
            *slot = Some(value);
        }
        Ok(self)
    }

    fn keeps_axes(&self) -> PyResult<bool> {
        self.keepdims
            .as_ref()
            .filter(|given| !given.is_none())
            .map_or(Ok(false), |it| it.is_truthy())
    }

    /// Returns the dtype of a mean: the given one, or what [`computed_for`] returns for fractions; None for the array's.
    pub(super) fn mean_dtype(&self, a: &Bound<'py, GPUArray>) -> PyResult<Option<DType>> {
        let (given, out) = (self.dtype()?, optional_array("out", self.out.as_ref())?);
        let Some(out) = out.filter(|_| given.is_none()) else { return Ok(given) };
        let own = a.get().array()?.dtype();
        match own.kind() {
            Kind::Float | Kind::Complex => computed_for(own, own, Some(out)).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn dtype(&self) -> PyResult<Option<DType>> {
        let given = self.dtype.as_ref().filter(|dtype| !dtype.is_none());
        given.map(|dtype| Ok(dtypes::parse(dtype)?.1)).transpose()
    }

    /// Combines elements by a method with `initial` and `where`, through the package's function.
    pub(super) fn reduce_method(
        &self,
        a: &Bound<'py, GPUArray>,
        name: &str,
        reduction: Reduction,
    ) -> Object<'py> {
        if self.masked.is_none() {
            return self.reduce(a, reduction);
        }
        let given = self.named(a.py(), name)?;
        let module = a.py().import("pygpu._array.reductions")?;
        module.getattr("reduce_some")?.call((name, a), Some(&given))
    }

    /// Returns a mean, a variance or a standard deviation through the package's function.
    pub(super) fn moment(
        &self,
        a: &Bound<'py, GPUArray>,
        name: &str,
        ddof: Option<f64>,
    ) -> Object<'py> {
        let given = self.named(a.py(), name)?;
        if let Some(ddof) = ddof {
            given.set_item("ddof", ddof)?;
        }
        let module = a.py().import("pygpu._array.reductions")?;
        module.getattr(name)?.call((a,), Some(&given))
    }

    /// Returns the given arguments by name.
    fn named(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let given = match &self.masked {
            Some(masked) => masked.clone(),
            None => PyDict::new(py),
        };
        let takes_initial = matches!(name, "sum" | "prod" | "min" | "max");
        for key in given.keys() {
            let key: String = key.extract()?;
            if key != "where" && !(takes_initial && key == "initial") {
                return Err(PyTypeError::new_err(format!(
                    "GPUArray.{name}() got an unexpected keyword argument '{key}'"
                )));
            }
        }
        let values = [
            ("axis", &self.axis),
            ("dtype", &self.dtype),
            ("out", &self.out),
            ("keepdims", &self.keepdims),
            ("stream", &self.stream),
            ("allocator", &self.allocator),
        ];
        for (name, value) in values {
            if let Some(value) = value.as_ref().filter(|it| !it.is_none()) {
                given.set_item(name, value)?;
            }
        }
        Ok(given)
    }

    /// Combines elements. If the dtype is omitted, numpy's is used.
    pub(super) fn reduce(&self, a: &Bound<'py, GPUArray>, reduction: Reduction) -> Object<'py> {
        let dtype = self.dtype()?;
        let fused = self.fused(a, true, |expression, axes, keeps_axes| {
            let compute = dtype.unwrap_or_else(|| reduction.numpy_compute(expression.dtype()));
            expression.reduce(reduction, compute, axes, keeps_axes)
        })?;
        if let Some(result) = fused {
            return Ok(result);
        }
        let array = on_stream(a.get().array()?, self.stream.as_ref())?;
        let axes = parse_reduced_axes(self.axis.as_ref(), array.ndim())?;
        let keeps_axes = self.keeps_axes()?;
        let axes = axes.as_deref();
        let out = optional_array("out", self.out.as_ref())?;
        let compute = compute_dtype(reduction, array.dtype(), dtype, out)?;
        if let Some(out) = out {
            let target = on_stream(out.get().array()?, self.stream.as_ref())?;
            run_on(a, array.size(), || {
                array.reduce_into(reduction, compute, axes, keeps_axes, &target)
            })?;
            return Ok(out.clone().into_any());
        }
        let array = with_allocator(array, self.allocator.as_ref())?;
        let result =
            run_on(a, array.size(), || array.reduce(reduction, compute, axes, keeps_axes))?;
        wrap_with_allocator(a, result, self.allocator.as_ref())
    }

    /// Computes a function of pending elements, the axes, and a flag that is true if the axes are kept. Returns `None`
    /// if the elements are not pending, or with options. `is_reduction` tells which rule of axes applies.
    pub(super) fn fused(
        &self,
        a: &Bound<'py, GPUArray>,
        is_reduction: bool,
        function: impl Fn(&Expression, Option<&[isize]>, bool) -> gpuarray::Result<Array> + Send + Sync,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let options = [&self.out, &self.stream, &self.allocator].map(Option::as_ref);
        if !fused_block::is_on_without(options) {
            return Ok(None);
        }
        let Some(pending) = a.get().pending() else { return Ok(None) };
        let axes = match is_reduction {
            true => parse_reduced_axes(self.axis.as_ref(), pending.expression.layout().ndim())?,
            false => parse_axes(self.axis.as_ref())?,
        };
        let keeps_axes = self.keeps_axes()?;
        fused::combine(a, |expression| function(expression, axes.as_deref(), keeps_axes))
    }

    /// Computes a function of an array, the axes, and a flag that is true if the axes are kept.
    pub(super) fn compute(
        &self,
        a: &Bound<'py, GPUArray>,
        function: impl Fn(&Array, Option<&[isize]>, bool) -> gpuarray::Result<Array> + Send + Sync,
    ) -> Object<'py> {
        let out = optional_array("out", self.out.as_ref())?;
        let array = on_stream(a.get().array()?, self.stream.as_ref())?;
        let (axes, keeps_axes) = (parse_axes(self.axis.as_ref())?, self.keeps_axes()?);
        let axes = axes.as_deref();
        let array = with_allocator(array, self.allocator.as_ref())?;
        let Some(out) = out else {
            let result = run_on(a, array.size(), || function(&array, axes, keeps_axes))?;
            return wrap_with_allocator(a, result, self.allocator.as_ref());
        };
        let target = on_stream(out.get().array()?, self.stream.as_ref())?;
        run_on(a, array.size(), || {
            function(&array.on(target.stream())?, axes, keeps_axes)?.copy_into(&target)
        })?;
        Ok(out.clone().into_any())
    }
}

/// Reduces an array. Sums of subsets and of products have separate functions.
#[pyfunction]
#[pyo3(signature = (reduction, a, *, axis = None, dtype = None, out = None, keepdims = None, stream = None, allocator = None))]
#[allow(clippy::too_many_arguments, reason = "numpy's signature")]
pub(crate) fn reduce<'py>(
    reduction: &Bound<'py, PyReduction>,
    a: &Bound<'py, PyAny>,
    axis: Option<Bound<'py, PyAny>>,
    dtype: Option<Bound<'py, PyAny>>,
    out: Option<Bound<'py, PyAny>>,
    keepdims: Option<Bound<'py, PyAny>>,
    stream: Option<Bound<'py, PyAny>>,
    allocator: Option<Bound<'py, PyAny>>,
) -> Object<'py> {
    let masked = None;
    let arguments = Arguments { axis, dtype, out, keepdims, stream, allocator, masked };
    arguments.reduce(expect_array("a", a)?, reduction.get().value())
}

/// Returns the positions of the smallest or largest elements along an axis; of all elements if `axis` is None.
#[pyfunction]
#[pyo3(signature = (reduction, a, axis, keepdims))]
pub(crate) fn position<'py>(
    reduction: &Bound<'py, PyReduction>,
    a: &Bound<'py, PyAny>,
    axis: OptionalAny<'_, 'py>,
    keepdims: bool,
) -> Object<'py> {
    let (a, reduction) = (expect_array("a", a)?, reduction.get().value());
    let layout = a.get().layout()?;
    let axis = axis.filter(|axis| !axis.is_none()).map(argument::axis).transpose()?;
    let axis = axis.filter(|axis| layout.ndim() > 0 || !matches!(axis, 0 | -1));
    let length = match axis {
        None => layout.size(),
        Some(axis) => layout.shape()[layout.normalize_axis(axis).or_raise()?],
    };
    if length == 0 {
        let shape = shape_text(layout.shape());
        return Err(PyValueError::new_err(format!(
            "attempt to get the position of an extreme element of an empty sequence: a has shape {shape}"
        )));
    }
    let find = |expression: &Expression| expression.position(reduction, axis, keepdims);
    if fused_block::is_on()
        && let Some(found) = fused::combine(a, find)?
    {
        return Ok(found);
    }
    let array = a.get().array()?;
    let find = || find(&Expression::from(array));
    wrap_like(a, run_on(a, array.size(), find)?, None)
}
