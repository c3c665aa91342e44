//! Launches element-wise kernels whose statements come from the program.

use super::arrangement::Arrangement;
use super::signature::{Signature, refuse_keywords};
use super::variants::{Variant, Variants, elementwise_config, geometries, packable};
use crate::current_device::{current_device, runs_kernels_on_host};
use crate::errors::OrRaise;
use crate::integer::integer;
use crate::stream::stream_argument;
use gpuarray::launch::ArgumentList;
use once_cell::sync::OnceCell;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

/// Checks, packs and launches for `pygpu.elementwise.ElementwiseKernel`, which derives from it and
/// generates the source.
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu._core")]
pub(crate) struct ElementwiseLauncher {
    content: OnceCell<Content>,
}

struct Content {
    /// The object that generates and compiles the source of a variant.
    generator: Py<PyAny>,
    signature: Signature,
    /// The number of elements that a thread processes together if the arrays allow it; 1 if the
    /// statements do not.
    pack: usize,
    /// True if there are several statements, so that a store may change what a later one reads.
    sequential: bool,
    variants: Variants,
}

/// Indices from `start`, `step` apart.
struct Indices {
    start: i64,
    stop: i64,
    step: i64,
}

impl Indices {
    fn count(&self) -> u64 {
        let (distance, step) =
            (i128::from(self.stop) - i128::from(self.start), i128::from(self.step));
        let count = if step > 0 { distance + step - 1 } else { distance + step + 1 } / step;
        u64::try_from(count).unwrap_or(0)
    }

    /// Returns the smallest and the largest of at least one index.
    fn ends(&self) -> (i64, i64) {
        let last = (self.count() as i64 - 1).wrapping_mul(self.step).wrapping_add(self.start);
        (self.start.min(last), self.start.max(last))
    }
}

fn given<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

impl Indices {
    /// Returns the indices from three numbers that come from `argument`.
    fn new(argument: &str, [start, stop, step]: [Bound<'_, PyAny>; 3]) -> PyResult<Indices> {
        let number = |name: &str, value: Bound<'_, PyAny>| -> PyResult<i64> {
            Ok(integer::<isize>(&format!("the {name} of {argument}"), &value)? as i64)
        };
        let (start, stop) = (number("start", start)?, number("stop", stop)?);
        match number("step", step)? {
            0 => Err(PyValueError::new_err(format!("{argument} has the step 0"))),
            step => Ok(Indices { start, stop, step }),
        }
    }

    /// Returns the indices of a slice or a range, whose numbers are used unchanged.
    fn of_range(value: &Bound<'_, PyAny>) -> PyResult<Indices> {
        let part = |name: &str, default: i64| {
            let part = value.getattr(name).map_err(|_| {
                PyTypeError::new_err(format!("range is {value}; a slice or a range is needed"))
            })?;
            if part.is_none() { default.into_bound_py_any(value.py()) } else { Ok(part) }
        };
        let (start, step) = (part("start", 0)?, part("step", 1)?);
        Indices::new("range", [start, value.getattr("stop")?, step])
    }

    /// Returns the indices of a slice of `size` elements.
    fn of_slice(value: &Bound<'_, PyAny>, size: usize) -> PyResult<Indices> {
        let Ok(slice) = value.cast::<PySlice>() else {
            return Err(PyTypeError::new_err(format!("slice is {value}; a slice is needed")));
        };
        let numbers = slice.call_method1("indices", (size,))?;
        Indices::new("slice", numbers.extract()?)
    }
}

/// The result of the Python class's `_define`:
///
/// - the generator
/// - the kernel's name
/// - the arguments, as [`Signature::parse`] takes them
/// - whether elements may be visited in any order
/// - `pack` and `sequential` of [`Content`]
type Definition<'py> = (Bound<'py, PyAny>, String, Bound<'py, PyAny>, bool, usize, bool);

impl ElementwiseLauncher {
    /// Returns the content, which the first call creates. If first calls on several threads coincide,
    /// each creates it, because threads must not wait for each other in Python code; one of them is kept.
    fn content<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Content> {
        let cell = &slf.get().content;
        if let Some(content) = cell.get() {
            return Ok(content);
        }
        let definition: Definition<'_> = slf.call_method0("_define")?.extract()?;
        let (generator, name, parameters, order_free, pack, sequential) = definition;
        let signature = Signature::parse(name, &parameters, order_free)?;
        let (generator, variants) = (generator.unbind(), Variants::default());
        Ok(cell.get_or_init(|| Content { generator, signature, pack, sequential, variants }))
    }
}

#[pymethods]
impl ElementwiseLauncher {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> ElementwiseLauncher {
        ElementwiseLauncher { content: OnceCell::new() }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.content.get().map_or(Ok(()), |content| visit.call(&content.generator))
    }

    /// Queues the kernel for all elements, or for the elements of `range` or `slice`.
    #[pyo3(signature = (*args, range = None, slice = None, stream = None, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        range: Option<&Bound<'py, PyAny>>,
        slice: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let py = slf.py();
        refuse_keywords(kwargs)?;
        let content = ElementwiseLauncher::content(slf)?;
        let signature = &content.signature;
        let adopted = signature.adopt(args)?;
        let args = adopted.as_ref().unwrap_or(args);
        let arrays = signature.arrays(args)?;
        let size = arrays.first().map_or(0, |(_, array)| array.size());
        let indices = match (given(range), given(slice)) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err(
                    "may not specify both range and slice keyword arguments",
                ));
            }
            (Some(range), None) => Some(Indices::of_range(range)?),
            (None, Some(slice)) => Some(Indices::of_slice(slice, size)?),
            (None, None) => None,
        };
        let count = match &indices {
            None => signature.count(&arrays)? as u64,
            Some(indices) => {
                let count = indices.count();
                if count > 0 {
                    let (least, most) = indices.ends();
                    signature.check_range(&arrays, least, most)?;
                }
                count
            }
        };
        let home = current_device()?;
        let queue = stream_argument(stream, &home)?;
        let arrangement = Arrangement::of(signature, &arrays);
        let on_host = runs_kernels_on_host()?;
        let packed = content.pack > 1
            && !on_host
            && indices.is_none()
            && arrangement.ranks.is_empty()
            && packable(&arrays, content.pack, content.sequential);
        let mut list = ArgumentList::new();
        signature.pack(args, &arrays, &arrangement.addresses, &mut list)?;
        match &indices {
            None => list.bytes(&count.to_ne_bytes()).or_raise()?,
            Some(Indices { start, stop, step }) => {
                for value in [start, stop, step] {
                    list.bytes(&value.to_ne_bytes()).or_raise()?;
                }
            }
        }
        for geometry in geometries(&arrangement) {
            list.bytes(&geometry).or_raise()?;
        }
        if count == 0 {
            return Ok(());
        }
        let variant = Variant::new(&home, &arrangement, indices.is_some(), packed);
        let functions = content.variants.functions(content.generator.bind(py), &variant)?;
        let work = if packed { count.div_ceil(content.pack as u64) } else { count };
        let Some(function) = functions.first() else {
            return Err(PyRuntimeError::new_err("no kernel was generated"));
        };
        function
            .get()
            .launch(py, &list, &elementwise_config(work, on_host), &queue, false)
            .or_raise()
    }
}
