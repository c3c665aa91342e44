//! Code for a device: compiling, linking, loading.

use crate::current_device::{CurrentDevice, current_device};
use crate::deferred_drop::DeferredDrop;
use crate::entries::Entries;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::kernel::{Declared, Function};
use crate::numpy_array;
use crate::owner::Filled;
use crate::profile::at_line;
use crate::texture::{Bindings, PyTextureObject};
use gpuarray::signature::{self, Signatures};
use gpuarray::{Error, Kernel, LinkInput, LinkKind, LoadOptions, Module, ModuleSource};
use hal::module::read_regular;
use hal::poison::Unpoisoned as _;
use hal::recording::{Kind, during};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Loaded code: kernels and variables. `module_from_file`, `module_from_buffer` and `compiler.SourceModule`
/// create it. It is unloaded when neither it nor a function of it is referenced any longer.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, compiler, driver
/// >>> source = "__device__ int numbers[3]; __global__ void nothing() {}"
/// >>> module = compiler.SourceModule(source).module
/// >>> address, size = module.get_global("numbers")
/// >>> size
/// 12
/// >>> module.get_function("nothing")(block=(1, 1, 1))
/// >>> unbound = driver.TextureReference()  # where the device has textures
/// >>> references = compiler.SourceModule('''
/// ... texture<float, 1> row;
/// ... surface<void, 2> image;
/// ... __global__ void use(float *x) {
/// ...     *x = tex1Dfetch(row, 0);
/// ...     surf2Dwrite(*x, image, 0, 0);
/// ... }''').module
/// >>> references.get_texref("row").get_flags(), type(references.get_surfref("image")).__name__
/// (0, 'SurfaceReference')
#[pyclass(frozen, dict, weakref, name = "Module", module = "pygpu.driver")]
pub(crate) struct PyModuleObject {
    /// Unloading code waits for the device.
    module: DeferredDrop<Arc<dyn Module>>,
    home: CurrentDevice,
    bindings: Arc<Bindings>,
    /// The signatures of kernels in the texts that it was compiled from.
    signatures: Mutex<Vec<Signatures>>,
    /// The kernels that the program has looked up, of which each warns once.
    declared: Mutex<HashMap<String, Arc<Declared>>>,
}

impl PyModuleObject {
    fn new(module: DeferredDrop<Arc<dyn Module>>, home: CurrentDevice) -> PyModuleObject {
        PyModuleObject {
            module,
            home,
            bindings: Arc::default(),
            signatures: Mutex::default(),
            declared: Mutex::default(),
        }
    }

    /// Returns the parameters of a kernel, if a text declares them.
    fn declared(&self, kernel: &dyn Kernel) -> Option<Arc<Declared>> {
        let mut known = self.declared.lock().unpoisoned();
        if let Some(declared) = known.get(kernel.name()) {
            return Some(declared.clone());
        }
        let signatures = self.signatures.lock().unpoisoned();
        let signature = signatures.iter().find_map(|it| signature::of_kernel(it, kernel))?;
        let declared = Arc::new(Declared::new(signature, kernel));
        known.insert(kernel.name().to_owned(), declared.clone());
        Some(declared)
    }
}

/// Returns an object for a variable of a module, created by a class of a Python module.
fn reference<'py>(
    module: &Bound<'py, PyModuleObject>,
    (file, class): (&str, &str),
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let class = module.py().import(file)?.getattr(class)?;
    class.call_method1("_of_module", (module, name))
}

#[pymethods]
impl PyModuleObject {
    fn __repr__(&self) -> String {
        format!("<Module of {}>", self.home.device.id())
    }

    /// Returns a kernel of the module (`cuModuleGetFunction`, `hipModuleGetFunction`).
    ///
    /// Parameters
    /// ----------
    /// name : str. The kernel's name: the mangled one, unless it was declared `extern "C"`.
    ///
    /// Returns
    /// -------
    /// Function
    ///     The kernel.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The kernel does not exist.
    fn get_function<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, Function>> {
        let (py, this) = (slf.py(), slf.get());
        let kernel = this.module.kernel(name).or_raise()?;
        let declared = this.declared(kernel.as_ref());
        let shown = declared.as_ref().map(|it| it.to_string());
        let function = Function::new(kernel, this.home.clone(), this.bindings.clone(), declared);
        let function = Bound::new(py, function)?;
        function.setattr(intern!(py, "_module"), slf)?;
        if let Some(shown) = shown {
            function.setattr(
                intern!(py, "__doc__"),
                format!("{shown}\n\nA kernel, which a call launches."),
            )?;
        }
        Ok(function)
    }

    /// Copies and pickles contain the source or the code, which they load for their own device.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(intern!(slf.py(), "_made"))
    }

    /// Adds a text that the module was compiled from, with its options, so that its kernels know their
    /// parameters.
    fn _describe(&self, text: &str, options: Entries<String>) {
        let options: Vec<_> = options.0.iter().map(String::as_str).collect();
        self.signatures.lock().unpoisoned().push(Signatures::of(text, &options));
    }

    /// Returns the address and size of a variable of the module (`cuModuleGetGlobal`, `hipModuleGetGlobal`).
    ///
    /// Parameters
    /// ----------
    /// name : str. The variable's name.
    ///
    /// Returns
    /// -------
    /// address : int
    ///     Its address in device memory, valid as long as the module.
    /// size : int
    ///     Its bytes.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The variable does not exist.
    fn get_global(&self, name: &str) -> PyResult<(u64, usize)> {
        self.module.global(name).or_raise()
    }

    /// Returns a texture reference: a variable that was declared as `texture<...>`. Kernels of the module read
    /// the bound memory through `tex2D` and similar functions.
    ///
    /// Parameters
    /// ----------
    /// name : str. The variable's name.
    ///
    /// Returns
    /// -------
    /// TextureReference
    ///     The reference.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The variable does not exist, or is not such a reference.
    /// Unsupported
    ///     The device does not support textures.
    fn get_texref<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        reference(slf, ("pygpu._driver.textures", "TextureReference"), name)
    }

    /// Returns a surface reference: a variable that was declared as `surface<...>`.
    ///
    /// Parameters
    /// ----------
    /// name : str. The variable's name.
    ///
    /// Returns
    /// -------
    /// SurfaceReference
    ///     The reference.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The variable does not exist, or is not such a reference.
    /// Unsupported
    ///     The device does not support surfaces.
    fn get_surfref<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        reference(slf, ("pygpu._driver.textures", "SurfaceReference"), name)
    }

    /// Writes an object's number to a texture or surface reference, and keeps the object alive.
    fn _bind(
        &self,
        py: Python<'_>,
        name: &str,
        object: &Bound<'_, PyTextureObject>,
    ) -> PyResult<()> {
        let CurrentDevice { device, stream } = &self.home;
        let module = self.module.as_ref();
        self.bindings.bind(py, module, device.as_ref(), stream, name, object.get())
    }

    /// Prevents kernel launches until another object is bound to a reference, because the device cannot read
    /// it with its current settings.
    fn _refuse(&self, name: &str, reason: String) {
        self.bindings.refuse(name, reason);
    }

    /// The messages of the compiler and the driver while the code was loaded.
    #[getter]
    fn log(&self) -> &str {
        self.module.log()
    }
}

/// `CU_JIT_MAX_REGISTERS` and the other options that affect a loader.
const MAX_REGISTERS: i32 = 0;
const OPTIMIZATION_LEVEL: i32 = 7;
const GENERATE_DEBUG_INFO: i32 = 11;
const LOG_VERBOSE: i32 = 12;
const GENERATE_LINE_INFO: i32 = 13;

/// Parses pairs of `jit_option` and value.
fn load_options(pairs: Option<&Bound<'_, PyAny>>) -> PyResult<LoadOptions> {
    let mut options = LoadOptions::default();
    let Some(pairs) = pairs.filter(|pairs| !pairs.is_none()) else {
        return Ok(options);
    };
    for pair in pairs.try_iter()? {
        let (option, value): (i32, i64) = pair?.extract()?;
        let refused = |what: &str| {
            to_python(Error::invalid("options", format!("option {option} is {value}; {what}")))
        };
        let number = || u32::try_from(value).map_err(|_| refused("allowed are 0 to 4294967295"));
        match option {
            MAX_REGISTERS => options.max_registers = Some(number()?),
            OPTIMIZATION_LEVEL => options.optimization_level = Some(number()?),
            GENERATE_DEBUG_INFO => options.debug = value != 0,
            LOG_VERBOSE => options.verbose = value != 0,
            GENERATE_LINE_INFO => options.line_info = value != 0,
            _ => {
                return Err(refused(
                    "allowed options are 0 (registers), 7 (optimization level), 11 (debug \
                     information), 12 (verbose log) and 13 (line information)",
                ));
            }
        }
    }
    Ok(options)
}

fn load(
    py: Python<'_>,
    source: &ModuleSource<'_>,
    options: &LoadOptions,
) -> PyResult<gpuarray::Result<PyModuleObject>> {
    let home = current_device()?;
    let _line = at_line(py);
    // SAFETY: a Python program that loads code trusts it, as it trusts a library.
    let load = || unsafe { home.device.load_module(source, options) };
    let module = py.detach(|| during(Kind::Compile, "load", load));
    Ok(module.map(|module| {
        let module = DeferredDrop::new(&home.device, module);
        PyModuleObject::new(module, home)
    }))
}

/// Returns a loaded module as an object that keeps its code for pickles.
fn with_code<'py>(
    py: Python<'py>,
    module: PyModuleObject,
    code: &[u8],
    pairs: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyModuleObject>> {
    let module = Bound::new(py, module)?;
    let again = py.import("pygpu._core")?.getattr("module_from_buffer")?;
    module.setattr("_made", (again, (PyBytes::new(py, code), pairs)))?;
    Ok(module)
}

/// Reports the result of a call to a program's function: success, the log, the error.
fn report<T>(
    handler: Option<&Bound<'_, PyAny>>,
    result: &gpuarray::Result<T>,
    log: impl FnOnce(&T) -> String,
) -> PyResult<()> {
    let Some(handler) = handler.filter(|handler| !handler.is_none()) else {
        return Ok(());
    };
    let arguments = match result {
        Ok(value) => (true, log(value), String::new()),
        Err(error) => (false, String::new(), error.detail().to_owned()),
    };
    handler.call1(arguments).map(|_| ())
}

/// Loads code from a file (`cuModuleLoad`, `hipModuleLoad`).
///
/// Parameters
/// ----------
/// filename : str or path. A file with a cubin, a fat binary, PTX, or a code object.
///
/// Returns
/// -------
/// Module
///     The loaded code.
///
/// Raises
/// ------
/// RuntimeError
///     The file cannot be read.
/// LogicError
///     The code is not valid for this device.
/// Unsupported
///     The backend cannot load kernels.
///
/// Examples
/// --------
/// >>> import tempfile
/// >>> from pygpu import autoinit, compiler, driver
/// >>> with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
/// ...     _ = file.write(compiler.compile("__global__ void nothing() {}"))
/// ...     file.flush()
/// ...     module = driver.module_from_file(file.name)
/// >>> module.get_function("nothing")(block=(1, 1, 1))
#[pyfunction]
pub(crate) fn module_from_file(
    py: Python<'_>,
    filename: PathBuf,
) -> PyResult<Bound<'_, PyModuleObject>> {
    let module = load(py, &ModuleSource::File(&filename), &LoadOptions::default())?.or_raise()?;
    with_code(py, module, &read_regular(&filename)?, None)
}

/// Loads code from memory (`cuModuleLoadDataEx`, `hipModuleLoadDataEx`).
///
/// Parameters
/// ----------
/// buffer : bytes or buffer. A cubin, a fat binary, PTX, or a code object.
/// options : sequence of tuple, optional. Pairs of a value of `driver.jit_option` and its value.
/// message_handler : callable, optional
///     Called with True if the code was loaded, the log, and the text of the error.
///
/// Returns
/// -------
/// Module
///     The loaded code.
///
/// Raises
/// ------
/// LogicError
///     The code is not valid for this device.
/// Unsupported
///     The backend cannot load kernels.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, compiler, driver
/// >>> module = driver.module_from_buffer(compiler.compile("__global__ void nothing() {}"))
/// >>> module.get_function("nothing")(block=(1, 1, 1))
#[pyfunction]
#[pyo3(signature = (buffer, options = None, message_handler = None))]
pub(crate) fn module_from_buffer<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyAny>>,
    message_handler: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyModuleObject>> {
    let load_options = load_options(options)?;
    let code = bytes_of("buffer", buffer)?;
    let result = load(py, &ModuleSource::Image(&code), &load_options)?;
    report(message_handler, &result, |loaded| loaded.module.log().to_owned())?;
    with_code(py, result.or_raise()?, &code, options)
}

fn bytes_of(name: &str, buffer: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let block = numpy_array::block(name, buffer, false)?;
    // SAFETY: the block's owner has this many bytes, and no Python code runs meanwhile.
    Ok(unsafe { std::slice::from_raw_parts(block.pointer, block.bytes) }.to_vec())
}

/// Returns the kind of code for a value of `jit_input_type`.
fn link_kind(input_type: i32) -> PyResult<LinkKind> {
    Ok(match input_type {
        0 => LinkKind::Cubin,
        1 => LinkKind::Ptx,
        2 => LinkKind::Fatbin,
        3 => LinkKind::Object,
        4 => LinkKind::Library,
        _ => {
            return Err(to_python(Error::invalid(
                "add_data",
                format!("input_type is {input_type}; allowed are 0 to 4 (jit_input_type)"),
            )));
        }
    })
}

struct Input {
    kind: LinkKind,
    data: Vec<u8>,
    name: String,
}

/// Links pieces of code into one module (`cuLinkCreate`, `hiprtcLinkCreate`): add them, then call
/// `link_module`.
///
/// Parameters
/// ----------
/// message_handler : callable, optional
///     Called with True if the code was linked, the log, and the text of the error.
/// options : sequence of tuple, optional. Pairs of a value of `driver.jit_option` and its value.
/// log_verbose : bool. True for a more detailed log.
///
/// Raises
/// ------
/// LogicError
///     An option is unknown.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, compiler, driver
/// >>> code = compiler.compile("__global__ void nothing() {}", target="ptx")
/// >>> linker = driver.Linker()
/// >>> linker.add_data(code, driver.jit_input_type.PTX)
/// >>> linker.link_module().get_function("nothing")(block=(1, 1, 1))
/// >>> import tempfile
/// >>> linker = driver.Linker()
/// >>> with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
/// ...     _ = file.write(code)
/// ...     file.flush()
/// ...     linker.add_file(file.name, driver.jit_input_type.PTX)
#[pyclass(frozen, dict, weakref, module = "pygpu.driver")]
pub(crate) struct Linker {
    inputs: Mutex<Vec<Input>>,
    options: LoadOptions,
    message_handler: Option<Py<PyAny>>,
    filled: Filled,
}

impl Linker {
    fn inputs(&self) -> MutexGuard<'_, Vec<Input>> {
        // A list stays valid even if a thread panicked.
        self.inputs.lock().unpoisoned()
    }
}

#[pymethods]
impl Linker {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.filled.is_set() {
            return Ok(());
        }
        visit.call(&self.message_handler)
    }

    #[new]
    #[pyo3(signature = (message_handler = None, options = None, log_verbose = false))]
    fn new(
        message_handler: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        log_verbose: bool,
    ) -> PyResult<Linker> {
        let mut options = load_options(options)?;
        options.verbose |= log_verbose;
        let (inputs, filled) = (Mutex::default(), Filled::new());
        Ok(Linker { inputs, options, message_handler, filled })
    }

    fn __repr__(&self) -> String {
        format!("<Linker with {} inputs>", self.inputs().len())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Linker cannot be pickled; pickle the module of link_module"))
    }

    /// Adds code from memory.
    ///
    /// Parameters
    /// ----------
    /// data : bytes or buffer. The code.
    /// input_type : jit_input_type. The kind of the code.
    /// name : str. The name that messages show.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `input_type` is another number.
    #[pyo3(signature = (data, input_type, name = "unknown"))]
    fn add_data(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::input_type)] input_type: i32,
        name: &str,
    ) -> PyResult<()> {
        let kind = link_kind(input_type)?;
        let data = bytes_of("data", data)?;
        self.inputs().push(Input { kind, data, name: name.to_owned() });
        Ok(())
    }

    /// Adds code from a file.
    ///
    /// Parameters
    /// ----------
    /// filename : str or path. The file.
    /// input_type : jit_input_type. The kind of the code.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     The file cannot be read, or is not a regular file.
    /// LogicError
    ///     `input_type` is another number.
    fn add_file(
        &self,
        filename: PathBuf,
        #[pyo3(from_py_with = argument::input_type)] input_type: i32,
    ) -> PyResult<()> {
        let kind = link_kind(input_type)?;
        let data = read_regular(&filename)?;
        let name = filename.file_name().unwrap_or(filename.as_os_str());
        self.inputs().push(Input { kind, data, name: name.to_string_lossy().into_owned() });
        Ok(())
    }

    /// Links the pieces that were added, and loads the result.
    ///
    /// Returns
    /// -------
    /// Module
    ///     The loaded code.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The pieces do not fit together, or one is not valid code; the text has the linker's messages.
    /// Unsupported
    ///     The backend cannot link code.
    fn link_module<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyModuleObject>> {
        let inputs = std::mem::take(&mut *self.inputs());
        let device = current_device()?.device;
        let linked = py.detach(|| {
            let pieces: Vec<_> = inputs
                .iter()
                .map(|input| LinkInput { kind: input.kind, data: &input.data, name: &input.name })
                .collect();
            device.link(&pieces, &self.options)
        });
        let handler = self.message_handler.as_ref().map(|handler| handler.bind(py));
        report(handler, &linked, |linked| linked.log.clone())?;
        let linked = linked.or_raise()?;
        let module = load(py, &ModuleSource::Image(&linked.code), &LoadOptions::default())?;
        with_code(py, module.or_raise()?, &linked.code, None)
    }
}
