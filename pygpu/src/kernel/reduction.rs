//! Calls of reductions with a program's expressions.

use super::arrangement::Arrangement;
use super::signature::{Signature, refuse_keywords};
use super::variants::{Variant, Variants, config, geometries, host_config};
use crate::allocator::ResultAllocator;
use crate::array::{GPUArray, wrap_new};
use crate::current_device::{CurrentDevice, current_device, runs_kernels_on_host};
use crate::dtypes;
use crate::entries::Entries;
use crate::errors::OrRaise;
use crate::profile::at_line;
use crate::stream::stream_argument;
use gpuarray::launch::ArgumentList;
use gpuarray::memory::Access;
use gpuarray::{Array, DType, LaunchConfig, Layout, Order, Stream};
use numpy::PyArrayDescr;
use once_cell::sync::OnceCell;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// The maximum number of blocks of the first launch, whose results one block combines; enough to fill
/// a device.
const MOST_BLOCKS: u64 = 1024;

/// The number of elements per thread that makes another block worthwhile.
const ELEMENTS: u64 = 8;

/// Checks, packs and launches for `pygpu.reduction.ReductionKernel`, which derives from it and
/// generates the source.
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu._core")]
pub(crate) struct ReductionLauncher {
    content: OnceCell<Content>,
}

struct Content {
    signature: Signature,
    descr: Py<PyArrayDescr>,
    dtype: DType,
    variants: Variants,
}

/// Returns the configuration of a launch for `count` elements, in which each block has one result.
fn launch_config(count: u64, on_host: bool) -> LaunchConfig {
    match on_host {
        true => host_config(count, MOST_BLOCKS),
        false => config(count.div_ceil(ELEMENTS), MOST_BLOCKS),
    }
}

/// Returns memory for the result, allocated like the first array's results.
fn result_array(
    source: &ResultAllocator,
    home: &CurrentDevice,
    queue: &Arc<dyn Stream>,
    dtype: DType,
) -> PyResult<Array> {
    let layout = Layout::contiguous(&[], dtype.size(), Order::C).or_raise()?;
    let array = match &source.allocator {
        None => Array::with_new_memory(&home.device, queue, layout, dtype),
        Some(allocator) => allocator
            .allocate(&home.device, queue, dtype.size())
            .and_then(|memory| Array::from_memory(memory, layout, dtype, queue.clone())),
    };
    array.or_raise()
}

/// Checks the array that a program provides for the result.
fn check_out<'a>(out: &'a Bound<'_, PyAny>, dtype: DType) -> PyResult<&'a Array> {
    let Ok(array) = out.cast::<GPUArray>() else {
        return Err(PyTypeError::new_err(format!(
            "out is of type {}; a GPUArray is needed",
            out.get_type().name()?
        )));
    };
    let array = array.get().array()?;
    if array.dtype() != dtype {
        return Err(PyValueError::new_err(format!(
            "out must have the same dtype as dtype_out: it has {}, and dtype_out is {dtype}",
            array.dtype()
        )));
    }
    match array.size() {
        1 => Ok(array),
        0 => Err(PyValueError::new_err("out array is empty")),
        size => Err(PyValueError::new_err(format!("out has {size} elements; one is needed"))),
    }
}

#[pymethods]
impl ReductionLauncher {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> ReductionLauncher {
        ReductionLauncher { content: OnceCell::new() }
    }

    /// Sets the arguments once, as for `ElementwiseLauncher`, and the result's dtype.
    #[pyo3(signature = (name, parameters, order_free, dtype))]
    fn _declare(
        &self,
        name: String,
        parameters: &Bound<'_, PyAny>,
        order_free: bool,
        dtype: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let signature = Signature::parse(name, parameters, order_free)?;
        let (descr, dtype) = dtypes::parse(dtype)?;
        let descr = descr.unbind();
        let content = Content { signature, descr, dtype, variants: Variants::default() };
        self.content
            .set(content)
            .map_err(|_| PyRuntimeError::new_err("the kernel was declared a second time"))
    }

    /// Queues the reduction, and returns an array without axes for the result, or `out`.
    #[pyo3(signature = (
        *args, stream = None, out = None, allocator = None, kernel_wrapper = None, **kwargs
    ))]
    #[allow(clippy::too_many_arguments, reason = "PyCUDA's keywords")]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        stream: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        allocator: Option<&Bound<'py, PyAny>>,
        kernel_wrapper: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        refuse_keywords(kwargs)?;
        let content = slf.get().content.get().ok_or_else(|| {
            PyRuntimeError::new_err("ReductionKernel.__init__ has not been called")
        })?;
        let signature = &content.signature;
        let adopted = signature.adopt(args)?;
        let args = adopted.as_ref().unwrap_or(args);
        let arrays = signature.arrays(args)?;
        let count = signature.count(&arrays)? as u64;
        let out = out.filter(|out| !out.is_none());
        let target = out.map(|out| check_out(out, content.dtype)).transpose()?;
        let home = current_device()?;
        let queue = stream_argument(stream, &home)?;
        let arrangement = Arrangement::of(signature, &arrays);
        let source = match allocator.filter(|allocator| !allocator.is_none()) {
            Some(allocator) => ResultAllocator::from_argument(Some(allocator))?,
            None => source_of_first(args, py)?,
        };
        let _line = at_line(py);
        // The arguments are checked before anything is compiled or allocated.
        signature.pack(args, &arrays, &arrangement.addresses, &mut ArgumentList::new())?;
        let variant = Variant::new(&home, &arrangement, false, false);
        let functions = content.variants.functions(slf.as_any(), &variant)?;
        let [elements, partials] = &functions[..] else {
            return Err(PyRuntimeError::new_err("two kernels are needed"));
        };
        let wrapper = kernel_wrapper.filter(|wrapper| !wrapper.is_none());
        if wrapper.is_some() && arrangement.ranks.iter().any(|rank| *rank > 0) {
            return Err(PyRuntimeError::new_err(
                "ReductionKernel cannot deal with non-contiguous arrays where it has a kernel_wrapper",
            ));
        }
        let fresh = match target {
            Some(_) => None,
            None => Some(result_array(&source, &home, &queue, content.dtype)?),
        };
        let result =
            target.or(fresh.as_ref()).ok_or_else(|| PyRuntimeError::new_err("no result"))?;
        let on_host = runs_kernels_on_host()?;
        let first = launch_config(count, on_host);
        let blocks = first.grid[0] as usize;
        let workspace = match blocks {
            1 => None,
            _ => {
                let layout = Layout::contiguous(&[blocks], content.dtype.size(), Order::C);
                let array = layout.and_then(|layout| {
                    Array::with_new_memory(&home.device, &queue, layout, content.dtype)
                });
                Some(array.or_raise()?)
            }
        };
        if let Some(wrapper) = wrapper {
            let wrapped = Wrapped::new(slf, wrapper, [elements, partials])?;
            let result = match (out, fresh) {
                (Some(out), _) => out.clone(),
                (None, Some(array)) => wrap_new(py, array, content.descr.clone_ref(py), source)?,
                (None, None) => return Err(PyRuntimeError::new_err("no result")),
            };
            let Some(workspace) = workspace else {
                wrapped.call(0, (&first, stream), &[&result], args, count)?;
                return Ok(result);
            };
            let descr = content.descr.clone_ref(py);
            let workspace = wrap_new(py, workspace, descr, ResultAllocator::default())?;
            wrapped.call(0, (&first, stream), &[&workspace], args, count)?;
            let last = launch_config(1, on_host);
            wrapped.call(1, (&last, stream), &[&result, &workspace], args, blocks as u64)?;
            return Ok(result);
        }
        let launch = |function: &super::Function, output: &Array, input: Option<&Array>| {
            let mut list = ArgumentList::new();
            list.memory(output.address(), output.memory(), Access::Write);
            if let Some(input) = input {
                list.memory(input.address(), input.memory(), Access::Read);
            }
            signature.pack(args, &arrays, &arrangement.addresses, &mut list)?;
            let (number, config) = match input {
                None => (count, first),
                Some(_) => (blocks as u64, launch_config(1, on_host)),
            };
            list.bytes(&number.to_ne_bytes()).or_raise()?;
            for geometry in geometries(&arrangement) {
                list.bytes(&geometry).or_raise()?;
            }
            function.launch(py, &list, &config, &queue, false).or_raise()
        };
        launch(elements.get(), workspace.as_ref().unwrap_or(result), None)?;
        if let Some(workspace) = &workspace {
            launch(partials.get(), result, Some(workspace))?;
        }
        match (out, fresh) {
            (None, Some(array)) => wrap_new(py, array, content.descr.clone_ref(py), source),
            (Some(out), _) => Ok(out.clone()),
            (None, None) => Err(PyRuntimeError::new_err("no result")),
        }
    }
}

/// The two kernels after a program's function has wrapped them.
struct Wrapped<'py> {
    kernels: [Bound<'py, PyAny>; 2],
}

impl<'py> Wrapped<'py> {
    /// Prepares the kernels, and calls the program's function with the `prepared_async_call` of each.
    fn new(
        launcher: &Bound<'py, ReductionLauncher>,
        wrapper: &Bound<'py, PyAny>,
        [elements, partials]: [&Py<super::Function>; 2],
    ) -> PyResult<Wrapped<'py>> {
        let py = launcher.py();
        let wrapped = |function: &Py<super::Function>, arrays: &str, own: &str| {
            let Entries(codes): Entries<String> = launcher.getattr(own)?.extract()?;
            let format = format!("{arrays}{}N", codes.concat());
            let prepared = function.bind(py).call_method1("prepare", (format,))?;
            wrapper.call1((prepared.getattr("prepared_async_call")?,))
        };
        Ok(Wrapped {
            kernels: [
                wrapped(elements, "P", "stage1_arg_types")?,
                wrapped(partials, "P", "stage2_arg_types")?,
            ],
        })
    }

    fn call(
        &self,
        stage: usize,
        (config, stream): (&LaunchConfig, Option<&Bound<'py, PyAny>>),
        arrays: &[&Bound<'py, PyAny>],
        args: &Bound<'py, PyTuple>,
        count: u64,
    ) -> PyResult<()> {
        let py = args.py();
        let [x, y, z] = config.block;
        let grid = (config.grid[0], config.grid[1]).into_pyobject(py)?.into_any();
        let block = (x, y, z).into_pyobject(py)?.into_any();
        let stream = stream.map_or_else(|| py.None().into_bound(py), Clone::clone);
        let count = count.into_pyobject(py)?.into_any();
        let mut all = vec![grid, block, stream];
        all.extend(arrays.iter().map(|array| (*array).clone()));
        all.extend(args.iter());
        all.push(count);
        let keywords = PyDict::new(py);
        keywords.set_item("shared_size", config.shared_bytes)?;
        self.kernels[stage].call(PyTuple::new(py, all)?, Some(&keywords)).map(drop)
    }
}

/// Returns the allocator of the first array's results.
fn source_of_first(args: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<ResultAllocator> {
    for value in args.iter_borrowed() {
        if let Ok(array) = value.cast::<GPUArray>() {
            return Ok(array.get().content()?.result_allocator(py));
        }
    }
    Ok(ResultAllocator::default())
}
