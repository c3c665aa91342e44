//! Element-wise operations of a fused block, and the arrays whose elements are pending.

use super::arguments::parse_value;
use super::replaced::Replaced;
use super::{Any, Content, GPUArray, Object, wrap_new};
use crate::allocator::ResultAllocator;
use crate::dtypes;
use crate::fused_block;
use crate::running_line::running_line;
use crate::synchronize::run;
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::{Array, DType, Expression, ExpressionArgument};
use numpy::PyArrayDescr;
use once_cell::sync::OnceCell;
use pyo3::prelude::*;

/// The elements of an array object that may not have been computed.
pub(super) struct Deferred {
    pub(super) expression: Expression,
    pub(super) descr: Py<PyArrayDescr>,
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.expression.keep(false);
    }
}

impl Deferred {
    /// Computes the elements.
    pub(super) fn compute(&self) -> PyResult<Content> {
        Python::attach(|py| {
            let elements = self.expression.layout().size();
            let array = run(py, elements, || self.expression.evaluate())?;
            let descr = self.descr.clone_ref(py);
            Ok(Content::new(array, descr, ResultAllocator::default(), None))
        })
    }
}

/// An argument of an operation in a block.
pub(super) enum Operand<'a> {
    Pending(&'a Deferred),
    Value(ExpressionArgument<'a>),
}

impl<'a> Operand<'a> {
    /// Returns an operand; `None` for one whose operations are not deferred: records, arrays of subclasses and arrays
    /// with an allocator.
    pub(super) fn of(value: Any<'a, '_>) -> PyResult<Option<Operand<'a>>> {
        let Ok(array) = value.cast::<GPUArray>() else {
            let value = parse_value(value)?;
            return Ok(value.map(|value| Operand::Value(ExpressionArgument::Value(value))));
        };
        if !array.is_exact_instance_of::<GPUArray>() {
            return Ok(None);
        }
        if let Some(pending) = array.get().pending()
            && !pending.expression.is_large()
        {
            return Ok(Some(Operand::Pending(pending)));
        }
        let content = array.get().content()?;
        let is_plain =
            content.allocator.is_none() && !matches!(content.array.dtype(), DType::Opaque(_));
        Ok(is_plain.then(|| Operand::Value((&content.array).into())))
    }

    pub(super) fn argument(&self) -> ExpressionArgument<'a> {
        match self {
            Operand::Pending(pending) => (&pending.expression).into(),
            Operand::Value(value) => *value,
        }
    }
}

/// Returns `left function right` as a pending array; `None` if it has to be computed now.
#[cold]
pub(super) fn binary<'py>(
    function: BinaryFunction,
    [left, right]: [Any<'_, 'py>; 2],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some(a), Some(b)) = (Operand::of(left)?, Operand::of(right)?) else { return Ok(None) };
    let (a, b) = (a.argument(), b.argument());
    let made = run(left.py(), 0, || Expression::binary(function, a, b))?;
    defer(made, &[left, right], None).map(Some)
}

/// Returns a function of an array as a pending array; `None` if it has to be computed now.
#[cold]
pub(super) fn unary<'py>(
    function: UnaryFunction,
    array: Any<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(a) = Operand::of(array)? else { return Ok(None) };
    let a = a.argument();
    let made = run(array.py(), 0, || Expression::unary(function, a))?;
    defer(made, &[array], None).map(Some)
}

/// Returns a selection as a pending array; `None` if it has to be computed now.
#[cold]
pub(super) fn select<'py>(
    [criterion, then, otherwise]: [Any<'_, 'py>; 3],
    positive: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let operands = (Operand::of(criterion)?, Operand::of(then)?, Operand::of(otherwise)?);
    let (Some(condition), Some(a), Some(b)) = operands else { return Ok(None) };
    let (condition, a, b) = (condition.argument(), a.argument(), b.argument());
    let made = run(criterion.py(), 0, || Expression::select(condition, a, b, positive))?;
    defer(made, &[then, otherwise, criterion], None).map(Some)
}

/// Returns the elements in another type as a pending array; `None` if they have to be converted now.
#[cold]
pub(super) fn cast<'py>(
    array: Any<'_, 'py>,
    descr: &Bound<'py, PyArrayDescr>,
    dtype: DType,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(a) = Operand::of(array)? else { return Ok(None) };
    if let DType::Opaque(_) = dtype {
        return Ok(None);
    }
    let a = a.argument();
    let made = run(array.py(), 0, || Expression::cast(a, dtype))?;
    defer(made, &[array], Some(descr.clone().unbind())).map(Some)
}

/// Combines pending elements without storing them. Returns `None` if they are not pending.
#[cold]
pub(super) fn combine<'py>(
    array: &Bound<'py, GPUArray>,
    function: impl Fn(&Expression) -> gpuarray::Result<Array> + Send + Sync,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(pending) = array.get().pending() else { return Ok(None) };
    let (py, expression) = (array.py(), &pending.expression);
    let result = run(py, expression.layout().size(), || function(expression))?;
    let descr = match result.dtype() == expression.dtype() {
        true => pending.descr.clone_ref(py),
        false => dtypes::to_numpy(py, result.dtype())?,
    };
    wrap_new(py, result, descr, ResultAllocator::default()).map(Some)
}

/// Computes `target = target function other` in place, together with the pending elements of `other`. Returns false if
/// there are none, or if the operands do not fit.
#[cold]
pub(super) fn in_place(
    function: BinaryFunction,
    target: &Bound<'_, GPUArray>,
    other: Any<'_, '_>,
) -> PyResult<bool> {
    if other.is(target) {
        return Ok(false);
    }
    let (Some(a), Some(b @ Operand::Pending(_))) = (Operand::of(target)?, Operand::of(other)?)
    else {
        return Ok(false);
    };
    let (a, b, array) = (a.argument(), b.argument(), target.get().array()?);
    run(target.py(), array.size(), || match Expression::binary(function, a, b) {
        Ok(value) if value.layout().shape() == array.shape() => {
            value.evaluate_into(array).map(|()| true)
        }
        // The operation on its own refuses the operands, and says why.
        _ => Ok(false),
    })
}

/// Returns an expression as a pending array of this thread's block, with the dtype object of the first of `likes` that
/// has its dtype.
fn defer<'py>(
    expression: Expression,
    likes: &[Any<'_, 'py>],
    descr: Option<Py<PyArrayDescr>>,
) -> Object<'py> {
    let py = likes[0].py();
    let descr = match descr {
        Some(descr) => descr,
        None => descr_of(&expression, likes)?,
    };
    expression.asked_at(running_line(py));
    expression.keep(true);
    let is_added = fused_block::add(&expression);
    let deferred = Deferred { expression, descr };
    let array = match is_added {
        true => GPUArray::pending_on(deferred),
        false => GPUArray::with(deferred.compute()?),
    };
    Ok(Bound::new(py, array)?.into_any())
}

fn descr_of(expression: &Expression, likes: &[Any<'_, '_>]) -> PyResult<Py<PyArrayDescr>> {
    let py = likes[0].py();
    for like in likes {
        if let Ok(array) = like.cast::<GPUArray>()
            && array.get().element()? == expression.dtype()
        {
            return Ok(array.get().descr()?.clone_ref(py));
        }
    }
    dtypes::to_numpy(py, expression.dtype())
}

impl GPUArray {
    /// Returns an array object whose elements are pending.
    fn pending_on(deferred: Deferred) -> GPUArray {
        let array = GPUArray::of(OnceCell::new());
        // The cells are new, so that both are empty.
        let _ = array.replaced.get_or_init(Replaced::default).deferred.set(deferred);
        array
    }

    /// Returns the elements if they have not been computed for this object.
    pub(super) fn pending(&self) -> Option<&Deferred> {
        match self.content.get() {
            None => self.replaced.get()?.deferred.get(),
            Some(_) => None,
        }
    }
}
