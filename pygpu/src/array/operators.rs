//! Python's operators.
#![allow(unsafe_op_in_unsafe_fn, reason = "PyO3 expands the methods of the macro below")]

use super::arguments::{elements, parse_value, sequence};
use super::{GPUArray, Object, fused, run_on, wrap_like};
use crate::errors::OrRaise;
use crate::fused_block;
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::{Array, DType, Number, Scalar};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyString};

/// Computes `slf function other`, or `other function slf` if `reflected`.
fn binary<'py>(
    slf: &Bound<'py, GPUArray>,
    other: &Bound<'py, PyAny>,
    function: BinaryFunction,
    reflected: bool,
) -> Object<'py> {
    let py = slf.py();
    if fused_block::is_on() {
        let operands = if reflected { [other, slf.as_any()] } else { [slf.as_any(), other] };
        if let Some(pending) = fused::binary(function, operands)? {
            return Ok(pending);
        }
    }
    let Some(other) = parse_value(other)? else {
        return match listed(other, function)? {
            Some(array) => binary(slf, &array, function, reflected),
            None => Ok(py.NotImplemented().into_bound(py)),
        };
    };
    let this = slf.get().array()?;
    let elements = this.size().max(elements(&other));
    let (left, right) = if reflected { (other, this.into()) } else { (this.into(), other) };
    let array = run_on(slf, elements, || Array::binary(function, left, right))?;
    wrap_like(slf, array, None)
}

/// Returns an operand that is a list or a tuple of numbers as a device array; `None` for any other object.
#[cold]
fn listed<'py>(
    value: &Bound<'py, PyAny>,
    function: BinaryFunction,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_equality = matches!(function, BinaryFunction::Equal | BinaryFunction::NotEqual);
    let is_text = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>();
    if is_text && !is_equality {
        // Python would take the array for the number of repetitions.
        return Err(PyTypeError::new_err(format!(
            "operand is of type {}; a GPUArray or a number is needed",
            value.get_type().name()?
        )));
    }
    sequence(value, is_equality)
}

/// Computes `slf = slf function other` in place.
fn in_place(
    slf: &Bound<'_, GPUArray>,
    other: &Bound<'_, PyAny>,
    function: BinaryFunction,
) -> PyResult<()> {
    if fused_block::is_on() && fused::in_place(function, slf, other)? {
        return Ok(());
    }
    let Some(other) = parse_value(other)? else {
        if let Some(array) = listed(other, function)? {
            return in_place(slf, &array, function);
        }
        return Err(PyTypeError::new_err(format!(
            "operand is of type {}; a GPUArray or a number is needed",
            other.get_type().name()?
        )));
    };
    let target = slf.get().array()?;
    run_on(slf, target.size(), || target.set_binary(function, target.into(), other))
}

pub(super) fn unary<'py>(slf: &Bound<'py, GPUArray>, function: UnaryFunction) -> Object<'py> {
    if fused_block::is_on()
        && let Some(pending) = fused::unary(function, slf)?
    {
        return Ok(pending);
    }
    let array = slf.get().array()?;
    let result = run_on(slf, array.size(), || array.unary(function))?;
    wrap_like(slf, result, None)
}

macro_rules! arithmetic {
    ($($function:ident: $forward:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl GPUArray {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                    binary(slf, other, BinaryFunction::$function, false)
                }

                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                    binary(slf, other, BinaryFunction::$function, true)
                }

                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    in_place(slf, other, BinaryFunction::$function)
                }
            )*
        }
    };
}

arithmetic! {
    Add: __add__ __radd__ __iadd__;
    Subtract: __sub__ __rsub__ __isub__;
    Multiply: __mul__ __rmul__ __imul__;
    Divide: __truediv__ __rtruediv__ __itruediv__;
    FloorDivide: __floordiv__ __rfloordiv__ __ifloordiv__;
    Remainder: __mod__ __rmod__ __imod__;
    BitwiseAnd: __and__ __rand__ __iand__;
    BitwiseOr: __or__ __ror__ __ior__;
    BitwiseXor: __xor__ __rxor__ __ixor__;
    LeftShift: __lshift__ __rlshift__ __ilshift__;
    RightShift: __rshift__ __rrshift__ __irshift__;
}

#[pymethods]
impl GPUArray {
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        refuse_modulo(modulo)?;
        let array = slf.get().array()?;
        if array.dtype() == DType::Bool && other.is_instance_of::<PyInt>() && other.eq(2)? {
            // In numpy, the operator's square of truth values has dtype int8, unlike `power`, which gives
            // int64.
            let two = Scalar::new(2i8).into();
            let square = run_on(slf, array.size(), || {
                Array::binary(BinaryFunction::Power, array.into(), two)
            })?;
            return wrap_like(slf, square, None);
        }
        binary(slf, other, BinaryFunction::Power, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        refuse_modulo(modulo)?;
        binary(slf, other, BinaryFunction::Power, true)
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        refuse_modulo(modulo)?;
        in_place(slf, other, BinaryFunction::Power)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        quotient_and_remainder(slf, other, false)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        quotient_and_remainder(slf, other, true)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Negative)
    }

    fn __pos__<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        slf
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Absolute)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        unary(slf, UnaryFunction::Invert)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> Object<'py> {
        let function = match operator {
            CompareOp::Eq => BinaryFunction::Equal,
            CompareOp::Ne => BinaryFunction::NotEqual,
            CompareOp::Lt => BinaryFunction::Less,
            CompareOp::Le => BinaryFunction::LessEqual,
            CompareOp::Gt => BinaryFunction::Greater,
            CompareOp::Ge => BinaryFunction::GreaterEqual,
        };
        binary(slf, other, function, false)
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("GPUArrays are not hashable."))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.array()?
            .shape()
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("len() of unsized object"))
    }

    /// Returns true if any element equals the value, as in numpy.
    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let equal = slf.rich_compare(value, CompareOp::Eq)?;
        match equal.is_instance_of::<GPUArray>() {
            true => equal.call_method0("any")?.is_truthy(),
            false => equal.is_truthy(),
        }
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let array = slf.get().array()?;
        if array.size() != 1 {
            return Err(PyValueError::new_err(format!(
                "The truth value of an array with {} elements is ambiguous. Use a.any() or a.all()",
                array.size()
            )));
        }
        let (zero, different) = (Number::Bool(false).into(), BinaryFunction::NotEqual);
        let is_true = Array::binary(different, array.into(), zero).or_raise()?;
        let mut byte = 0u8;
        let place = &mut byte;
        // SAFETY: the array has one element of one byte, and the call waits for it.
        slf.py().detach(|| unsafe { is_true.download(place, true) }).or_raise()?;
        Ok(byte != 0)
    }
}

fn quotient_and_remainder<'py>(
    slf: &Bound<'py, GPUArray>,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> Object<'py> {
    let quotient = binary(slf, other, BinaryFunction::FloorDivide, reflected)?;
    if quotient.is(slf.py().NotImplemented()) {
        return Ok(quotient);
    }
    let remainder = binary(slf, other, BinaryFunction::Remainder, reflected)?;
    Ok((quotient, remainder).into_pyobject(slf.py())?.into_any())
}

fn refuse_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(modulo) if !modulo.is_none() => {
            Err(PyTypeError::new_err("pow() with three arguments is not defined for arrays"))
        }
        _ => Ok(()),
    }
}
