//! Arguments for parameters whose types the program's text tells: they are taken as they are, converted as C would
//! where nothing is lost, or refused.

use super::arguments::{self, Pushed, Scalar, ScalarKind, managed};
use super::remedies::{self, ADDRESS};
use crate::allocation::DeviceAllocation;
use crate::array::GPUArray;
use crate::errors::OrRaise;
use crate::numpy_array::type_name;
use crate::pool::PooledDeviceAllocation;
use gpuarray::launch::ArgumentList;
use gpuarray::signature::{Number, Signature, ValueType};
use gpuarray::{DType, Error, Kernel, Kind, bf16, f16};
use hal::dtype::narrow::Narrow as _;
use hal::environment;
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use std::env;
use std::ffi::CString;
use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};

type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// Says what becomes of an array whose elements are of another type than a parameter's.
const VARIABLE: &str = "PYGPU_ARGUMENT_TYPES";

/// The parameters of a kernel.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(super) signature: Signature,
    parameters: Box<[Parameter]>,
    /// A bit for each parameter about which the program has been warned.
    warned: AtomicU64,
}

/// What a launch needs to know of a parameter.
#[derive(Clone, Copy, Debug)]
struct Parameter {
    of: ValueType,
    is_pointer: bool,
    /// The bytes of its value; `None` where neither the text nor the driver tells them.
    size: Option<usize>,
}

/// Elements of an array: a letter as numpy's kinds of dtypes have it, and the bytes of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    kind: u8,
    size: usize,
}

impl Elements {
    #[inline]
    fn of(dtype: DType) -> Elements {
        let kind = match dtype.kind() {
            Kind::Bool => b'b',
            Kind::Unsigned => b'u',
            Kind::Signed => b'i',
            Kind::Float => b'f',
            Kind::Complex => b'c',
            _ => b'V',
        };
        Elements { kind, size: dtype.size() }
    }

    fn of_descr(descr: &Bound<'_, PyArrayDescr>) -> Elements {
        Elements { kind: descr.kind(), size: descr.itemsize() }
    }

    /// Those of a text such as `<f4`.
    pub(super) fn of_typestr(text: &str) -> Option<Elements> {
        let text = text.trim_start_matches(['<', '>', '|', '=']);
        let kind = *text.as_bytes().first()?;
        Some(Elements { kind, size: text.get(1..)?.parse().ok()? })
    }

    fn is_integer(self) -> bool {
        matches!(self.kind, b'i' | b'u' | b'm' | b'M')
    }

    fn is_of(self, kind: u8, size: u8) -> bool {
        self.kind == kind && self.size == usize::from(size)
    }

    /// True if a pointer to values of a type is meant for such elements, too: bytes are anything, a structure is what
    /// the program says, and integers of one size, vectors and complex numbers are one another.
    fn stand_for(self, of: ValueType) -> bool {
        let number = match of {
            ValueType::Number(number) => number,
            ValueType::Vector(number, count) => {
                let is_complex = |part| count > 1 && self.is_of(b'c', 2 * part);
                // Textures have no doubles but in pairs of integers.
                let is_pair = matches!(number, Number::Signed(4) | Number::Unsigned(4))
                    && count > 1
                    && (self.is_of(b'f', 8) || self.is_of(b'c', 16));
                if is_pair || matches!(number, Number::Float(part) if is_complex(part)) {
                    return true;
                }
                number
            }
            ValueType::Complex(part) => {
                if self.is_of(b'c', 2 * part) {
                    return true;
                }
                Number::Float(part)
            }
            _ => return true,
        };
        let has_meaning = matches!(self.kind, b'b' | b'f' | b'c') || self.is_integer();
        if number.size() == 1 || !has_meaning || (self.size == 1 && self.is_integer()) {
            return true;
        }
        match number {
            // Halves travel as integers of their size.
            Number::Bfloat16 | Number::Float(2) | Number::Signed(2) | Number::Unsigned(2) => {
                self.size == 2
            }
            Number::Signed(size) | Number::Unsigned(size) => {
                self.is_integer() && self.size == usize::from(size)
            }
            // Real and imaginary parts lie side by side.
            Number::Float(size) => self.is_of(b'f', size) || self.is_of(b'c', 2 * size),
            _ => true,
        }
    }
}

/// A number that a program gives.
#[derive(Clone, Copy)]
enum Given {
    Whole(i128),
    /// A whole number of more than 64 bits, rounded.
    Long(f64),
    Real(f64),
    Complex(f64, f64),
}

impl Given {
    fn of_scalar(scalar: Scalar) -> Given {
        let bytes = scalar.word.to_ne_bytes();
        let unused = 128 - 8 * scalar.size as u32;
        let part = |at: usize| match scalar.size {
            8 => f64::from(f32::from_bits(u32::from_ne_bytes([
                bytes[at],
                bytes[at + 1],
                bytes[at + 2],
                bytes[at + 3],
            ]))),
            _ => f64::from_bits((scalar.word >> (8 * at)) as u64),
        };
        match (scalar.kind, scalar.size) {
            (ScalarKind::Signed, _) => Given::Whole((scalar.word << unused) as i128 >> unused),
            (ScalarKind::Unsigned, _) => Given::Whole(scalar.word as i128),
            (ScalarKind::Float, 2) => Given::Real(f16::from_bits(scalar.word as u16).into()),
            (ScalarKind::Float, 4) => Given::Real(f32::from_bits(scalar.word as u32).into()),
            (ScalarKind::Float, _) => Given::Real(f64::from_bits(scalar.word as u64)),
            (ScalarKind::Complex, size) => Given::Complex(part(0), part(size / 2)),
        }
    }

    /// A number of Python's; `None` for any other object.
    fn of_object(value: Object<'_, '_>) -> PyResult<Option<Given>> {
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(Some(Given::Whole(truth.is_true().into())));
        }
        if value.is_instance_of::<PyInt>() {
            return match value.extract::<i64>().map(i128::from) {
                Ok(number) => Ok(Some(Given::Whole(number))),
                Err(_) => match value.extract::<u64>() {
                    Ok(number) => Ok(Some(Given::Whole(number.into()))),
                    Err(_) => Ok(Some(Given::Long(value.extract().unwrap_or(f64::INFINITY)))),
                },
            };
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(Some(Given::Real(number.value())));
        }
        let complex = value.cast::<PyComplex>();
        Ok(complex.ok().map(|number| Given::Complex(number.real(), number.imag())))
    }

    fn real(self) -> Option<f64> {
        match self {
            Given::Whole(number) => Some(number as f64),
            Given::Long(number) => Some(number).filter(|it| it.is_finite()),
            Given::Real(number) | Given::Complex(number, 0.0) => Some(number),
            Given::Complex(..) => None,
        }
    }

    fn whole(self) -> Option<i128> {
        match self {
            Given::Whole(number) => Some(number),
            Given::Long(_) => None,
            _ => self.real().filter(|it| it.fract() == 0.0 && it.abs() < 1e20).map(|it| it as i128),
        }
    }

    /// The bits of a floating-point number of so many bytes; `None` for a number beyond its range.
    fn float(number: f64, size: u8) -> Option<u64> {
        let (bits, is_finite) = match size {
            2 => {
                let half = f16::narrow_double(number);
                (half.to_bits().into(), half.is_finite())
            }
            4 => ((number as f32).to_bits().into(), (number as f32).is_finite()),
            _ => (number.to_bits(), true),
        };
        (is_finite || !number.is_finite()).then_some(bits)
    }

    /// The value of a type that C makes of the number, where nothing but digits behind the last one of a
    /// floating-point number is lost.
    fn converted(self, of: ValueType) -> Option<u128> {
        match of {
            ValueType::Number(Number::Bool) => match self {
                Given::Long(_) => Some(1),
                _ => self.whole().map(|it| (it != 0).into()),
            },
            ValueType::Number(Number::Signed(size)) => {
                let (number, unused) = (self.whole()?, 128 - 8 * u32::from(size));
                (number << unused >> unused == number).then_some(number as u128)
            }
            ValueType::Number(Number::Unsigned(size)) => {
                let number = self.whole()?;
                (number >> (8 * u32::from(size)) == 0).then_some(number as u128)
            }
            ValueType::Number(Number::Float(4)) if matches!(self, Given::Whole(_)) => {
                // Not by way of a double, which would round twice.
                Some((self.whole()? as f32).to_bits().into())
            }
            ValueType::Number(Number::Float(size)) => {
                Given::float(self.real()?, size).map(u128::from)
            }
            ValueType::Number(Number::Bfloat16) => {
                Some(bf16::narrow_double(self.real()?).to_bits().into())
            }
            ValueType::Complex(part) | ValueType::Vector(Number::Float(part @ (4 | 8)), 2) => {
                let (real, imaginary) = match self {
                    Given::Complex(real, imaginary) => (real, imaginary),
                    _ => (self.real()?, 0.0),
                };
                let (real, imaginary) = (Given::float(real, part)?, Given::float(imaginary, part)?);
                Some(u128::from(real) | u128::from(imaginary) << (8 * u32::from(part)))
            }
            _ => None,
        }
    }
}

impl Parameter {
    /// True for a scalar of numpy that is passed as it is.
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

    /// True for an array of one number that is passed as it is.
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

/// As the program declares it.
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
        let parameters = parameters.collect();
        Declared { signature, parameters, warned: AtomicU64::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.parameters.len()
    }

    pub(super) fn is_pointer(&self, position: usize) -> bool {
        self.parameters[position].is_pointer
    }

    /// Adds the argument at a position as its parameter has it. `None` if the arguments are not one for each parameter,
    /// but components of structures or several parameters in an array.
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
                // One of its components.
                (_, ValueType::Vector(..)) if scalar.kind != ScalarKind::Complex => {
                    return Ok(None);
                }
                _ => self.push_converted(position, value, Given::of_scalar(scalar), list)?,
            }
            return Ok(Some(Pushed::Done));
        }
        self.push_object(position, value, list)
    }

    /// Adds what is no scalar of numpy's for a parameter that is no pointer.
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

    /// Checks what is given for a pointer, if it says of what type it is.
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

    /// Warns of an array whose elements are no values of the type that a parameter points to, or refuses it, as the
    /// variable of the environment says.
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
        let bit = 1 << (position % 64);
        if self.warned.load(Ordering::Relaxed) & bit != 0 {
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
        self.warned.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }

    /// The error of a call with more or fewer arguments than parameters.
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

    /// What errors call an argument: its position, its kernel and its declaration.
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

/// True for a number of Python's.
pub(super) fn is_number(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Given::of_object(value.as_borrowed()).map(|it| it.is_some())
}

/// What a parameter takes in place of a number that it cannot have.
fn needed(given: Given, of: ValueType) -> String {
    if matches!(given, Given::Complex(..)) && !matches!(of, ValueType::Complex(_)) {
        return "a real number is needed, such as x.real".into();
    }
    match of {
        ValueType::Number(Number::Signed(size)) => {
            let most = i64::MAX >> (64 - 8 * u32::from(size));
            format!("a whole number from {} to {most} is needed", -most - 1)
        }
        ValueType::Number(Number::Unsigned(size)) => {
            let most = u64::MAX >> (64 - 8 * u32::from(size));
            format!("a whole number from 0 to {most} is needed")
        }
        ValueType::Number(Number::Bool) => "a truth value is needed".into(),
        ValueType::Number(Number::Float(2)) => "a number up to 65504 is needed".into(),
        _ => format!("a number up to {:e} is needed", f32::MAX),
    }
}

/// The name of numpy's type for a type of C.
fn numpy_name(of: ValueType) -> String {
    let number = match of {
        ValueType::Number(number) | ValueType::Vector(number, _) => number,
        ValueType::Complex(part) => return format!("np.complex{}", 16 * u32::from(part)),
        _ => return "np.uint8".into(),
    };
    match number {
        Number::Bool => "np.bool_".into(),
        Number::Signed(size) => format!("np.int{}", 8 * u32::from(size)),
        Number::Unsigned(size) => format!("np.uint{}", 8 * u32::from(size)),
        Number::Float(size) => format!("np.float{}", 8 * u32::from(size)),
        _ => "ml_dtypes.bfloat16".into(),
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
