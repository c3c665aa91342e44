//! Arguments for parameters whose types the program's text declares. They are passed unchanged, converted as in C if
//! nothing is lost, or refused.

use super::Object;
use super::arguments::{self, Pushed, Scalar, ScalarKind, managed};
use super::conversion::{Elements, Given, needed, numpy_name};
use super::remedies::{self, ADDRESS};
use crate::allocation::DeviceAllocation;
use crate::array::GPUArray;
use crate::errors::OrRaise;
use crate::numpy_array::type_name;
use crate::pool::PooledDeviceAllocation;
use gpuarray::launch::ArgumentList;
use gpuarray::signature::{Number, Signature, ValueType};
use gpuarray::{Error, Kernel};
use hal::environment;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList};
use std::env;
use std::ffi::CString;
use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that says how to treat an array whose elements have another type than the parameter's.
const VARIABLE: &str = "PYGPU_ARGUMENT_TYPES";

/// The parameters of a kernel.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(super) signature: Signature,
    parameters: Box<[Parameter]>,
    /// True for parameters about which the program has been warned.
    warned: Box<[AtomicBool]>,
}

/// The properties of a parameter that a launch needs.
#[derive(Clone, Copy, Debug)]
struct Parameter {
    of: ValueType,
    is_pointer: bool,
    /// The bytes of its value; `None` if neither the text nor the driver provides them.
    size: Option<usize>,
}

impl Parameter {
    /// Returns true for a numpy scalar that is passed unchanged.
    #[inline]
    fn takes(self, scalar: Scalar) -> bool {
        let is_integer = matches!(scalar.kind, ScalarKind::Signed | ScalarKind::Unsigned);
        let has = |size: u8| scalar.size == usize::from(size);
        match self.of {
            ValueType::Number(Number::Signed(size) | Number::Unsigned(size)) => {
                has(size) && (is_integer || (size == 2 && scalar.kind == ScalarKind::Float))
            }
            ValueType::Number(Number::Float(size)) => {
                let is_bits = size == 2 && scalar.kind == ScalarKind::Unsigned;
                has(size) && (scalar.kind == ScalarKind::Float || is_bits)
            }
            ValueType::Number(Number::Bool) => has(1),
            ValueType::Number(Number::Bfloat16) => has(2),
            ValueType::Complex(part) => has(2 * part) && scalar.kind == ScalarKind::Complex,
            ValueType::Vector(..) => self.size == Some(scalar.size),
            _ => true,
        }
    }

    /// Returns true for an array with one number that is passed unchanged.
    fn takes_array(self, array: &Bound<'_, PyUntypedArray>) -> bool {
        let elements = Elements::of_descr(&array.dtype());
        let kind = match elements.kind {
            b'i' => ScalarKind::Signed,
            b'u' | b'b' => ScalarKind::Unsigned,
            b'f' => ScalarKind::Float,
            b'c' => ScalarKind::Complex,
            _ => return true,
        };
        self.takes(Scalar { word: 0, size: elements.size, kind })
    }

    fn is_number(self) -> bool {
        matches!(
            self.of,
            ValueType::Number(_)
                | ValueType::Complex(_)
                | ValueType::Vector(Number::Float(4 | 8), 2)
        )
    }
}

/// Writes the declaration of the kernel as in the program.
impl Display for Declared {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.signature.fmt(f)
    }
}

impl Declared {
    pub(crate) fn new(signature: Signature, kernel: &dyn Kernel) -> Declared {
        let known = kernel.parameters().ok().flatten();
        let parameters = signature.parameters.iter().enumerate().map(|(position, it)| Parameter {
            of: it.of,
            is_pointer: it.is_pointer,
            size: known.and_then(|all| Some(all.get(position)?.size)).or(it.of.size()),
        });
        let parameters: Box<[Parameter]> = parameters.collect();
        let warned = parameters.iter().map(|_| AtomicBool::new(false)).collect();
        Declared { signature, parameters, warned }
    }

    pub(super) fn len(&self) -> usize {
        self.parameters.len()
    }

    pub(super) fn is_pointer(&self, position: usize) -> bool {
        self.parameters[position].is_pointer
    }

    /// Adds the argument at a position according to its parameter. Returns `None` if the arguments do not correspond
    /// one to one to the parameters, but are components of structures or several parameters in one array.
    #[inline]
    pub(super) fn push<'a>(
        &self,
        position: usize,
        value: Object<'a, '_>,
        list: &mut ArgumentList<'a>,
    ) -> PyResult<Option<Pushed>> {
        let parameter = self.parameters[position];
        if parameter.is_pointer {
            if !value.is_exact_instance_of::<DeviceAllocation>() {
                self.check_pointer(position, value)?;
            }
            return arguments::push(value, list).map(Some);
        }
        if let Some(scalar) = arguments::scalar(value) {
            match (parameter.takes(scalar), parameter.of) {
                (true, _) => arguments::push_scalar(scalar, list)?,
                // A component of the vector.
                (_, ValueType::Vector(..)) if scalar.kind != ScalarKind::Complex => {
                    return Ok(None);
                }
                _ => self.push_converted(position, value, Given::of_scalar(scalar), list)?,
            }
            return Ok(Some(Pushed::Done));
        }
        self.push_object(position, value, list)
    }

    /// Adds an object that is not a numpy scalar, for a parameter that is not a pointer.
    fn push_object<'a>(
        &self,
        position: usize,
        value: Object<'a, '_>,
        list: &mut ArgumentList<'a>,
    ) -> PyResult<Option<Pushed>> {
        let parameter = self.parameters[position];
        if parameter.is_number()
            && let Some(given) = Given::of_object(value)?
        {
            self.push_converted(position, value, given, list)?;
            return Ok(Some(Pushed::Done));
        }
        if parameter.is_number()
            && let Ok(array) = value.cast::<PyUntypedArray>()
            && array.len() == 1
            && !parameter.takes_array(&array)
            && let Ok(element) = array.call_method0("item")
            && let Some(given) = Given::of_object(element.as_borrowed())?
        {
            self.push_converted(position, value, given, list)?;
            return Ok(Some(Pushed::Done));
        }
        let is_memory = value.is_instance_of::<GPUArray>()
            || value.is_instance_of::<DeviceAllocation>()
            || value.is_instance_of::<PooledDeviceAllocation>();
        let is_address =
            matches!(parameter.of, ValueType::Number(Number::Signed(8) | Number::Unsigned(8)));
        if is_memory && parameter.is_number() && !is_address {
            let remedy = "it is memory of the device, and a number belongs there";
            return Err(self.refused(position, value, remedy));
        }
        let pushed = arguments::push(value, list)?;
        let is_whole =
            pushed == Pushed::Not || parameter.size.is_none() || list.last_size() == parameter.size;
        Ok(is_whole.then_some(pushed))
    }

    #[cold]
    fn push_converted(
        &self,
        position: usize,
        value: Object<'_, '_>,
        given: Given,
        list: &mut ArgumentList<'_>,
    ) -> PyResult<()> {
        let Parameter { of, .. } = self.parameters[position];
        let Some(word) = given.converted(of) else {
            return Err(self.refused(position, value, &needed(given, of)));
        };
        let size = of.size().unwrap_or_default();
        let kind = match of {
            ValueType::Number(Number::Signed(_)) => ScalarKind::Signed,
            ValueType::Number(Number::Unsigned(_) | Number::Bool) => ScalarKind::Unsigned,
            ValueType::Number(_) => ScalarKind::Float,
            _ => ScalarKind::Complex,
        };
        arguments::push_scalar(Scalar { word, size, kind }, list)
    }

    /// Checks an argument for a pointer parameter, if the argument has an element type.
    fn check_pointer(&self, position: usize, value: Object<'_, '_>) -> PyResult<()> {
        if let Ok(array) = value.cast::<GPUArray>() {
            let elements = Elements::of(array.get().array()?.dtype());
            return self.check_elements(value.py(), position, elements);
        }
        if let Some(scalar) = arguments::scalar(value) {
            return match scalar.kind {
                ScalarKind::Signed | ScalarKind::Unsigned => Ok(()),
                _ => Err(self.refused(position, value, ADDRESS)),
            };
        }
        match value.cast::<PyUntypedArray>() {
            Ok(array) if managed(&array).is_some() => self.check_array(position, &array),
            _ => Ok(()),
        }
    }

    /// Checks an array that an argument copies to the device.
    pub(super) fn check_array(&self, position: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(array) = value.cast::<PyUntypedArray>() else { return Ok(()) };
        self.check_elements(value.py(), position, Elements::of_descr(&array.dtype()))
    }

    /// Warns about an array whose elements do not have the type that a parameter points to, or refuses it, as the
    /// environment variable says.
    #[inline]
    pub(super) fn check_elements(
        &self,
        py: Python<'_>,
        position: usize,
        elements: Elements,
    ) -> PyResult<()> {
        let Parameter { of, is_pointer, .. } = self.parameters[position];
        if !is_pointer || elements.stand_for(of) {
            return Ok(());
        }
        self.report(py, position, elements, of)
    }

    #[cold]
    fn report(
        &self,
        py: Python<'_>,
        position: usize,
        elements: Elements,
        of: ValueType,
    ) -> PyResult<()> {
        if self.warned[position].load(Ordering::Relaxed) {
            return Ok(());
        }
        let is_error = match setting()? {
            Setting::Ignore => return Ok(()),
            Setting::Warn => false,
            Setting::Error => true,
        };
        let names =
            [(b'b', "bool"), (b'i', "int"), (b'u', "uint"), (b'f', "float"), (b'c', "complex")];
        let kind = names.iter().find(|it| it.0 == elements.kind).map_or("elements of", |it| it.1);
        let bits =
            if elements.kind == b'b' { String::new() } else { (8 * elements.size).to_string() };
        let text = format!(
            "{} is an array of {kind}{bits}; pass x.astype({}), or set {VARIABLE}={}",
            self.place(position),
            numpy_name(of),
            if is_error { "warn" } else { "ignore" }
        );
        if is_error {
            return Err(Error::invalid_type("launch", text)).or_raise();
        }
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        self.warned[position].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the error of a call with a wrong number of arguments.
    #[cold]
    pub(super) fn wrong_count(&self, given: usize) -> PyErr {
        let (Signature { name, .. }, count) = (&self.signature, self.len());
        let (plural, were) =
            (if count == 1 { "" } else { "s" }, if given == 1 { "was" } else { "were" });
        let text = format!(
            "kernel {name} takes {count} argument{plural}; {given} {were} given; it is {self}"
        );
        crate::errors::to_python(Error::invalid_type("launch", text))
    }

    /// Returns the description of an argument in errors: its position, its kernel and its declaration.
    fn place(&self, position: usize) -> String {
        let Signature { name, parameters, .. } = &self.signature;
        format!("argument {position} (0-based) of kernel {name}, {},", parameters[position])
    }

    #[cold]
    fn refused(&self, position: usize, value: Object<'_, '_>, remedy: &str) -> PyErr {
        let (shown, kind) = (remedies::shown(&value), type_name(&value));
        let text = format!("{} is {shown} of type {kind}; {remedy}", self.place(position));
        crate::errors::to_python(Error::invalid_type("launch", text))
    }
}

#[derive(Clone, Copy)]
enum Setting {
    Warn,
    Error,
    Ignore,
}

fn setting() -> PyResult<Setting> {
    let read = |text: &str| match text {
        "warn" => Some(Setting::Warn),
        "error" => Some(Setting::Error),
        "ignore" => Some(Setting::Ignore),
        _ => None,
    };
    let setting =
        environment::parse(VARIABLE, env::var_os(VARIABLE), "warn, error and ignore", read);
    Ok(setting.or_raise()?.unwrap_or(Setting::Warn))
}

/// Returns the result of `inspect.signature` for a kernel: its parameters, and the keywords of a call.
pub(super) fn signature_of_call<'py>(
    py: Python<'py>,
    signature: &Signature,
) -> PyResult<Bound<'py, PyAny>> {
    let inspect = py.import("inspect")?;
    let (class, keywords) =
        (inspect.getattr("Parameter")?, py.import("keyword")?.getattr("iskeyword")?);
    let positional = class.getattr("POSITIONAL_ONLY")?;
    let parameters = PyList::empty(py);
    for (position, parameter) in signature.parameters.iter().enumerate() {
        let mut name = parameter.name.clone();
        if name.is_empty() || keywords.call1((&name,))?.is_truthy()? {
            name = format!("{name}_{position}");
        }
        let named = PyDict::new(py);
        named.set_item("annotation", parameter.type_name())?;
        parameters.append(class.call((name, &positional), Some(&named))?)?;
    }
    let only_named = class.getattr("KEYWORD_ONLY")?;
    let (none, no, zero) = (py.None().into_bound(py), PyBool::new(py, false), PyInt::new(py, 0));
    for (name, default) in [
        ("block", &none),
        ("grid", &none),
        ("stream", &none),
        ("shared", zero.as_any()),
        ("texrefs", &none),
        ("time_kernel", no.as_any()),
        ("cooperative", no.as_any()),
    ] {
        let named = PyDict::new(py);
        named.set_item("default", default)?;
        parameters.append(class.call((name, &only_named), Some(&named))?)?;
    }
    inspect.getattr("Signature")?.call1((parameters,))
}
