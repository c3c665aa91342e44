//! Conversion of numbers to the types of parameters by C's rules, and matching of array elements with pointer types.

use super::Object;
use super::arguments::{Scalar, ScalarKind};
use gpuarray::signature::{Number, ValueType};
use gpuarray::{DType, Kind, bf16, f16};
use hal::dtype::narrow::Narrow as _;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

/// The element type of an array: the letter of its kind in numpy, and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) kind: u8,
    pub(super) size: usize,
}

impl Elements {
    #[inline]
    pub(super) fn of(dtype: DType) -> Elements {
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

    pub(super) fn of_descr(descr: &Bound<'_, PyArrayDescr>) -> Elements {
        Elements { kind: descr.kind(), size: descr.itemsize() }
    }

    /// Returns the elements for a text such as `<f4`.
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

    /// Returns true if a pointer to values of a type may also be meant for such elements. Bytes match everything, and a
    /// structure matches what the program chooses. Integers of equal size match each other, as do vectors and complex
    /// numbers.
    pub(super) fn stand_for(self, of: ValueType) -> bool {
        let number = match of {
            ValueType::Number(number) => number,
            ValueType::Vector(number, count) => {
                let is_complex = |part| count > 1 && self.is_of(b'c', 2 * part);
                // Textures only support doubles as pairs of integers.
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
            // Half-precision numbers may be passed as integers of their size.
            Number::Bfloat16 | Number::Float(2) | Number::Signed(2) | Number::Unsigned(2) => {
                self.size == 2
            }
            Number::Signed(size) | Number::Unsigned(size) => {
                self.is_integer() && self.size == usize::from(size)
            }
            // Real and imaginary parts are adjacent.
            Number::Float(size) => self.is_of(b'f', size) || self.is_of(b'c', 2 * size),
            _ => true,
        }
    }
}

/// A number that a program passes.
#[derive(Clone, Copy)]
pub(super) enum Given {
    Whole(i128),
    /// An integer of more than 64 bits, rounded.
    Long(f64),
    Real(f64),
    Complex(f64, f64),
}

impl Given {
    pub(super) fn of_scalar(scalar: Scalar) -> Given {
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

    /// Returns a Python number; `None` for any other object.
    pub(super) fn of_object(value: Object<'_, '_>) -> PyResult<Option<Given>> {
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

    /// Returns the bits of a floating-point number with `size` bytes; `None` for a number beyond its range.
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

    /// Returns the number converted to a type by C's rules; `None` if anything would be lost except digits beyond the
    /// precision of a floating-point type.
    pub(super) fn converted(self, of: ValueType) -> Option<u128> {
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

/// Returns true for a Python number.
pub(super) fn is_number(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Given::of_object(value.as_borrowed()).map(|it| it.is_some())
}

/// Returns the advice for a parameter that cannot represent a number.
pub(super) fn needed(given: Given, of: ValueType) -> String {
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

/// Returns the name of numpy's type for a C type.
pub(super) fn numpy_name(of: ValueType) -> String {
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
