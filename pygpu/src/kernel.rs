//! Kernels as callable Python objects.

mod argument_handlers;
mod arguments;
mod arrangement;
mod config;
mod conversion;
mod declared;
mod elementwise;
mod fast;
mod format;
mod handlers;
mod reduction;
mod remedies;
mod signature;
mod variants;

use crate::current_device::CurrentDevice;
use crate::deferred_drop::DeferredDrop;
use crate::errors::{OrRaise, to_python};
use crate::event::CallTime;
use crate::integer::argument;
use crate::profile::at_line;
use crate::stream::stream_argument;
use crate::synchronize;
use crate::texture::Bindings;
pub(crate) use argument_handlers::{ArgumentHandler, In, Out, install as install_handlers};
use arguments::{Place, Pushed};
use config::config;
pub(crate) use declared::Declared;
use declared::signature_of_call;
pub(crate) use elementwise::ElementwiseLauncher;
pub(crate) use fast::install;
use format::{Format, Formats, struct_error};
use gpuarray::launch::ArgumentList;
use gpuarray::{Error, Kernel, KernelAttribute, LaunchConfig, Stream};
use hal::nonblocking::try_without_waiting;
use handlers::{Replaced, Target};
use pyo3::exceptions::{PyAssertionError, PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
pub(crate) use reduction::ReductionLauncher;
use std::sync::Arc;
use std::time::Instant;

/// An argument of a kernel.
type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// A kernel: a function that the device runs, returned by `Module.get_function`.
///
/// A call launches it: `function(*args, block, grid=(1, 1), stream=None, shared=0, texrefs=None, time_kernel=False,
/// cooperative=False)`. `prepare` fixes the types of the arguments, so that `prepared_call` takes plain Python numbers
/// and costs less.
///
/// Notes
/// -----
/// A call takes
///
/// - `args`, the kernel's arguments: arrays and other device memory; numpy scalars, whose types determine their sizes;
///   records and numpy arrays as structures; and host arrays in `In`, `Out` and `InOut`. If the module was compiled
///   from source, Python numbers and scalars of another type are converted to the parameter's type, and refused if it
///   cannot represent their value. If the driver reports the parameters, a structure may be passed as its components,
///   and several parameters as one array. They are packed as in PyCUDA, each at a multiple of its alignment;
/// - `block`, a tuple of one to three extents of a block, in threads; required;
/// - `grid`, a tuple of one to three extents of the grid, in blocks;
/// - `stream`, the stream on which the kernel is queued; the default stream if omitted;
/// - `shared`, bytes of dynamic shared memory per block;
/// - `texrefs`, the texture references that the kernel reads, of which only the types are checked;
/// - `time_kernel`, True to wait for the kernel and return its time in seconds. Otherwise, the call returns None after
///   the kernel is queued or, without a stream, after host arrays are copied back;
/// - `cooperative`, True for blocks that run concurrently, so that they can wait for each other
///   (`cuLaunchCooperativeKernel`, `hipModuleLaunchCooperativeKernel`) with `grid.sync()` of cooperative groups. All of
///   them must fit on the device at the same time. PyCUDA does not have this keyword.
///
/// A call raises
///
/// - `ValueError` if `block` is omitted, and for an unknown keyword;
/// - `TypeError` for an argument of an unsupported type;
/// - `LogicError` if the arguments do not match the kernel in number and sizes, if the device does not support the
///   launch configuration, and for memory that was freed;
/// - `LaunchError` if the kernel cannot be started;
/// - `Unsupported` if the device does not support cooperative launches;
/// - `AssertionError` for `time_kernel` with a stream.
///
/// PyCUDA does not check the number of arguments.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, compiler, driver, gpuarray
/// >>> module = compiler.SourceModule(
/// ...     "__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }"
/// ... )
/// >>> scale = module.get_function("scale")
/// >>> scale
/// <Function scale(float *x, float a) of ...>
/// >>> x = gpuarray.arange(3, dtype=np.float32)
/// >>> scale(x, np.float32(2), block=(3, 1, 1), grid=(1, 1))
/// >>> scale.prepare("Pf").prepared_call((1, 1), (3, 1, 1), x.gpudata, 10)
/// >>> x
/// array([ 0., 20., 40.], dtype=float32)
/// >>> seconds = scale.prepared_timed_call((1, 1), (3, 1, 1), x.gpudata, 1)()
/// >>> scale.prepared_async_call((1, 1), (3, 1, 1), None, x.gpudata, 1)
/// >>> most = driver.function_attribute.MAX_THREADS_PER_BLOCK
/// >>> scale.get_attribute(most) == scale.max_threads_per_block
/// True
/// >>> scale.active_blocks(128) > 0
/// True
/// >>> scale.set_cache_config(driver.func_cache.PREFER_SHARED)
/// >>> scale.set_shared_config(driver.shared_config.DEFAULT_BANK_SIZE)
/// >>> dynamic = driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
/// >>> scale.set_attribute(dynamic, 32768)
#[pyclass(frozen, dict, weakref, module = "pygpu.driver")]
pub(crate) struct Function {
    /// Unloading the code of the kernel waits for the device.
    kernel: DeferredDrop<Arc<dyn Kernel>>,
    /// The device that the function was loaded for.
    home: CurrentDevice,
    formats: Formats,
    /// The objects bound to the texture references of its module.
    bindings: Arc<Bindings>,
    /// Its parameters, if the text that the module was compiled from declares them.
    declared: Option<Arc<Declared>>,
}

impl Function {
    pub(crate) fn new(
        kernel: Arc<dyn Kernel>,
        home: CurrentDevice,
        bindings: Arc<Bindings>,
        declared: Option<Arc<Declared>>,
    ) -> Function {
        let kernel = DeferredDrop::new(&home.device, kernel);
        Function { kernel, home, formats: Formats::new(), bindings, declared }
    }

    /// Refuses a host array if the kernel has a pointer parameter.
    fn check_arrays(&self, given: &Bound<'_, PyTuple>, pushed: Pushed) -> PyResult<()> {
        if pushed != Pushed::Array {
            return Ok(());
        }
        let (kernel, device) = (self.kernel.as_ref(), self.home.device.as_ref());
        remedies::check_arrays(kernel, device, given, self.declared.as_deref())
    }

    /// Launches with the arguments of a call; errors say what to write instead.
    fn launch_given(
        &self,
        given: &Bound<'_, PyTuple>,
        list: &ArgumentList<'_>,
        config: &LaunchConfig,
        stream: &Arc<dyn Stream>,
        cooperative: bool,
    ) -> PyResult<()> {
        self.launch(given.py(), list, config, stream, cooperative).map_err(|error| {
            let signature = self.declared.as_ref().map(|it| &it.signature);
            to_python(remedies::explain(self.kernel.as_ref(), given, list, signature, error))
        })
    }

    fn launch(
        &self,
        py: Python<'_>,
        list: &ArgumentList<'_>,
        config: &LaunchConfig,
        stream: &Arc<dyn Stream>,
        cooperative: bool,
    ) -> gpuarray::Result<()> {
        let _line = at_line(py);
        let queue = || {
            self.bindings.prepare_launch(stream)?;
            // SAFETY: as with every GPU library, the program is responsible for its kernel's behaviour; the number and
            // sizes of the arguments are checked if the driver reports them.
            unsafe { list.launch(self.kernel.as_ref(), config, stream, cooperative) }
        };
        let tried = match synchronize::launch_may_block(stream.as_ref())? {
            true => None,
            false => try_without_waiting(queue),
        };
        // The exception of a signal handler is stored per thread, and `detach` stays on this thread.
        tried.unwrap_or_else(|| py.detach(|| synchronize::interruptible(queue)))
    }

    /// Launches with arguments packed by the format of `prepare`.
    fn launch_prepared(
        &self,
        py: Python<'_>,
        config: &LaunchConfig,
        stream: &Arc<dyn Stream>,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<()> {
        let format = self.formats.current();
        if format.codes.len() != arguments.len() {
            let (name, given) = (self.kernel.name(), arguments.len());
            return Err(struct_error(
                py,
                match format.codes.len() {
                    0 => format!(
                        "kernel {name} is prepared for no arguments, and the call has {given}; prepare names the \
                         types first, as in prepare(\"Pf\") for a pointer and a float"
                    ),
                    wanted => format!(
                        "pack requires exactly {wanted} arguments for kernel {name}, which is prepared for \
                         {:?}; the call has {given}",
                        format.text
                    ),
                },
            ));
        }
        let mut list = ArgumentList::new();
        for (position, (&value, &code)) in arguments.iter().zip(&format.codes).enumerate() {
            arguments::push_as(code, value, Place::Number(position), &mut list)?;
        }
        self.launch(py, &list, config, stream, false).or_raise()
    }

    fn set(&self, attribute: KernelAttribute, value: i32) -> PyResult<()> {
        self.kernel.set_attribute(attribute, value).or_raise()
    }
}

fn given<'a, 'py>(value: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    value.filter(|value| !value.is_none())
}

/// Checks that each entry of a sequence is a texture reference. Kernels of its module read the objects bound to it
/// without further setup.
fn check_texrefs(texrefs: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(texrefs) = given(texrefs) else { return Ok(()) };
    for texref in texrefs.try_iter()? {
        check_texref("an entry of texrefs", &texref?)?;
    }
    Ok(())
}

fn check_texref(name: &str, texref: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = texref.py().import("pygpu._driver.textures")?.getattr("TextureReference")?;
    if texref.is_instance(&class)? {
        return Ok(());
    }
    let kind = crate::numpy_array::type_name(texref);
    Err(PyTypeError::new_err(format!("{name} is of type {kind}; a texture reference is needed")))
}

#[pymethods]
impl Function {
    /// Launches the kernel on `grid` blocks of `block` threads. Arguments are numpy scalars, device arrays and
    /// allocations, numpy arrays and records as structures, and `In`, `Out` and `InOut` around numpy arrays that are to
    /// be copied. With `time_kernel`, returns the kernel's time in seconds.
    #[pyo3(signature = (
        *args, block = None, grid = None, stream = None, shared = 0, texrefs = None,
        time_kernel = false, cooperative = false, **kwargs
    ))]
    #[allow(clippy::too_many_arguments, reason = "PyCUDA's signature, and a keyword")]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        block: Option<&Bound<'py, PyAny>>,
        grid: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::shared)] shared: u32,
        texrefs: Option<&Bound<'py, PyAny>>,
        time_kernel: bool,
        cooperative: bool,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<f64>> {
        if let Some(names) = kwargs.filter(|kwargs| !kwargs.is_empty()) {
            let names: Vec<_> = names.keys().iter().map(|name| name.to_string()).collect();
            return Err(PyValueError::new_err(format!(
                "extra keyword arguments: {}",
                names.join(",")
            )));
        }
        let Some(block) = given(block) else {
            return Err(PyValueError::new_err(format!(
                "must specify block size: the threads of a block, as in {}(..., block=(256, 1, 1), grid=(8, 1))",
                self.kernel.name()
            )));
        };
        let stream = given(stream);
        if time_kernel && stream.is_some() {
            return Err(PyAssertionError::new_err(
                "Can't time the kernel on an asynchronous invocation",
            ));
        }
        check_texrefs(texrefs)?;
        let config = config(given(grid), block, shared)?;
        let queue = stream_argument(stream, &self.home)?;
        let (kernel, home) = (self.kernel.as_ref(), &self.home);
        let target = Target { kernel, home, stream: &queue, declared: self.declared.as_deref() };
        let (mut list, mut replaced) = (ArgumentList::new(), Replaced::default());
        let pushed = handlers::push_all(args, &target, &mut list, &mut replaced)?;
        self.check_arrays(args, pushed)?;
        for handler in &replaced.handlers {
            handler.before(stream)?;
        }
        if time_kernel {
            synchronize::synchronize_device(py, &self.home.device)?;
        }
        let start = time_kernel.then(Instant::now);
        self.launch_given(args, &list, &config, &queue, cooperative)?;
        let mut after = Vec::new();
        for handler in &replaced.handlers {
            if handler.has_after()? {
                after.push(handler);
            }
        }
        if stream.is_none() && (time_kernel || !after.is_empty()) {
            synchronize::synchronize_device(py, &self.home.device)?;
        }
        let seconds = start.map(|start| start.elapsed().as_secs_f64());
        for handler in after {
            handler.after(stream)?;
        }
        Ok(seconds)
    }

    /// Checks that the argument is a texture reference. Kernels read the objects bound to the references of their
    /// module without further setup.
    ///
    /// Parameters
    /// ----------
    /// texref : TextureReference. The reference.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     It is not a texture reference.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import autoinit, compiler, driver
    /// >>> module = compiler.SourceModule("__global__ void nothing() {}")
    /// >>> module.get_function("nothing").param_set_texref(driver.TextureReference())
    #[allow(clippy::unused_self, reason = "PyCUDA's signature")]
    fn param_set_texref(&self, texref: &Bound<'_, PyAny>) -> PyResult<()> {
        check_texref("texref", texref)
    }

    /// Fixes the types of the arguments for `prepared_call` and similar methods.
    ///
    /// Parameters
    /// ----------
    /// arg_types : str or sequence. Dtypes, numpy's scalar types and format codes of `struct` ("P"
    ///     is an address, "F" and "D" are complex); or one text of such codes.
    /// texrefs : sequence, optional
    ///     Texture references that the kernel reads; only their types are checked.
    ///
    /// Returns
    /// -------
    /// Function
    ///     The function itself.
    ///
    /// Raises
    /// ------
    /// struct.error
    ///     A code is not supported by `struct`.
    /// TypeError
    ///     `arg_types` is not a sequence, or `texrefs` contains other objects than texture references.
    #[pyo3(signature = (arg_types, texrefs = None))]
    fn prepare<'py>(
        slf: Bound<'py, Self>,
        arg_types: &Bound<'py, PyAny>,
        texrefs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        check_texrefs(texrefs)?;
        slf.get().formats.set(Format::parse(arg_types)?);
        Ok(slf)
    }

    /// Launches like `prepared_call`, and times the kernel.
    ///
    /// Parameters
    /// ----------
    /// grid : tuple of int. One to three extents of the grid, in blocks.
    /// block : tuple of int. One to three extents of a block, in threads.
    /// *args : object. The kernel's arguments: Python and numpy numbers, device arrays and
    ///     allocations, and addresses.
    /// shared_size : int. Bytes of dynamic shared memory per block.
    ///
    /// Returns
    /// -------
    /// callable
    ///     Waits for the kernel, and returns its time in seconds.
    ///
    /// Raises
    /// ------
    /// struct.error
    ///     The number of arguments differs from `prepare`, or an argument does not fit its type.
    /// TypeError
    ///     `grid` or `block` is not a tuple of one to three integers.
    /// LogicError
    ///     The device does not support the launch configuration, or an argument is memory that was freed.
    /// LaunchError
    ///     The kernel could not be started.
    #[pyo3(signature = (grid, block, *args, shared_size = 0))]
    fn prepared_timed_call(
        &self,
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        #[pyo3(from_py_with = argument::shared_size)] shared_size: u32,
    ) -> PyResult<CallTime> {
        let config = config(Some(grid), block, shared_size)?;
        let CurrentDevice { device, stream } = &self.home;
        let arguments: Vec<_> = args.iter_borrowed().collect();
        let launch = || self.launch_prepared(args.py(), &config, stream, &arguments);
        Ok(CallTime::of(device.as_ref(), stream.as_ref(), launch)?.1)
    }

    /// Copies and pickles contain the module, the name and the types that `prepare` fixed.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String,), Option<String>)> {
        let function = slf.getattr("_module")?.getattr("get_function")?;
        let format = Some(slf.get().arg_format()).filter(|text| !text.is_empty());
        Ok((function, (slf.get().name().to_owned(),), format))
    }

    fn __setstate__(&self, arg_types: &Bound<'_, PyAny>) -> PyResult<()> {
        self.formats.set(Format::parse(arg_types)?);
        Ok(())
    }

    /// Returns the format codes that `prepare` fixed.
    #[getter]
    fn arg_format(&self) -> String {
        self.formats.current().text.clone()
    }

    /// The kernel's name in its module.
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// Returns a numbered property of the kernel (`cuFuncGetAttribute`, `hipFuncGetAttribute`).
    ///
    /// Parameters
    /// ----------
    /// attr : function_attribute. The property.
    ///
    /// Returns
    /// -------
    /// int
    ///     Its value.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The property does not exist.
    fn get_attribute(
        &self,
        #[pyo3(from_py_with = crate::integer::argument::attr)] attr: i32,
    ) -> PyResult<i32> {
        self.kernel.attribute(KernelAttribute(attr)).or_raise()
    }

    /// Sets a numbered property of the kernel (`cuFuncSetAttribute`, `hipFuncSetAttribute`).
    ///
    /// Parameters
    /// ----------
    /// attr : function_attribute. The property.
    /// value : int. Its value.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The property does not exist, or cannot be set to this value.
    fn set_attribute(
        &self,
        #[pyo3(from_py_with = crate::integer::argument::attr)] attr: i32,
        #[pyo3(from_py_with = crate::integer::argument::value)] value: i32,
    ) -> PyResult<()> {
        self.set(KernelAttribute(attr), value)
    }

    /// Sets the preference for on-chip memory: shared memory or cache. Devices that do not divide it ignore this.
    ///
    /// Parameters
    /// ----------
    /// fc : func_cache. The preference.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `fc` is another number.
    fn set_cache_config(
        &self,
        #[pyo3(from_py_with = crate::integer::argument::fc)] fc: i32,
    ) -> PyResult<()> {
        // The percentage of shared memory for each value of the enumeration; -1 is the default.
        let percent = match fc {
            0 => -1,
            1 => 100,
            2 => 0,
            3 => 50,
            _ => {
                return Err(to_python(Error::invalid(
                    "set_cache_config",
                    format!("fc is {fc}; allowed are 0 to 3"),
                )));
            }
        };
        let set =
            self.kernel.set_attribute(KernelAttribute::PREFERRED_SHARED_MEMORY_CARVEOUT, percent);
        match set {
            Err(error) if error.kind() == gpuarray::ErrorKind::Unsupported => Ok(()),
            result => result.or_raise(),
        }
    }

    /// Sets the preferred width of shared memory banks. It cannot be changed on any device that current drivers
    /// support.
    ///
    /// Parameters
    /// ----------
    /// config : shared_config. The width.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `config` is another number.
    fn set_shared_config(
        &self,
        #[pyo3(from_py_with = crate::integer::argument::config)] config: i32,
    ) -> PyResult<()> {
        match config {
            0..=2 => Ok(()),
            _ => Err(to_python(Error::invalid(
                "set_shared_config",
                format!("config is {config}; allowed are 0 to 2"),
            ))),
        }
    }

    /// Returns the number of blocks of the kernel that a multiprocessor runs concurrently
    /// (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
    ///
    /// Parameters
    /// ----------
    /// threads : int. The number of threads per block.
    /// shared : int. Bytes of dynamic shared memory per block.
    ///
    /// Returns
    /// -------
    /// int
    ///     The number of blocks; 0 if a multiprocessor does not have room for one.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `threads` is not above zero.
    #[pyo3(signature = (threads, shared = 0))]
    fn active_blocks(
        &self,
        #[pyo3(from_py_with = argument::threads)] threads: u32,
        #[pyo3(from_py_with = argument::shared)] shared: usize,
    ) -> PyResult<u32> {
        self.kernel.active_blocks(threads, shared).or_raise()
    }

    /// Returns the properties of `function_attribute` by their names in lower case.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if name == "__signature__"
            && let Some(declared) = &slf.get().declared
        {
            return signature_of_call(py, &declared.signature);
        }
        let attributes = py.import("pygpu._driver.enumerations")?.getattr("function_attribute")?;
        let unknown =
            || PyAttributeError::new_err(format!("Function object has no attribute {name:?}"));
        if name.starts_with('_') {
            return Err(unknown());
        }
        let attribute = attributes.get_item(name.to_uppercase()).map_err(|_| unknown())?;
        let value = slf.get().get_attribute(attribute.extract()?)?;
        Ok(value.into_pyobject(py)?.into_any())
    }

    fn __repr__(&self) -> String {
        let declared = self.declared.as_ref().map(|it| it.signature.to_string());
        let shown = declared.unwrap_or_else(|| self.kernel.name().to_owned());
        format!("<Function {shown} of {}>", self.home.device.id())
    }
}
