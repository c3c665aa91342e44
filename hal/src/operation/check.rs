//! Checks of operations, as far as a description shows their properties.

use super::{
    Description, ElementMap, Elementwise, Epilogue, Gather, Indexed, Input, Mapped, MatrixProduct,
    Nonzero, Operand, Random, RandomSource, Reduce, Scan, Scatter, Sequence, Sort, shape_text,
};
use super::{check_strides, is_record};
use crate::Complex;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::{Function, Reduction, UnaryFunction};
use crate::scalar::Scalar;
use random::distribution::Distribution;

impl Description {
    #[inline]
    pub(super) fn check(&mut self) -> Result<()> {
        match self {
            Description::Elementwise(it) => it.check(),
            Description::Fused(it) => it.check(),
            Description::Reduce(it) => it.check(),
            Description::Scan(it) => it.check(),
            Description::Gather(it) => it.check(),
            Description::Scatter(it) => it.check(),
            Description::Sequence(it) => it.check(),
            Description::Random(it) => it.check(),
            Description::Nonzero(it) => it.check(),
            Description::Sort(it) => it.check(),
            Description::MatrixProduct(it) => it.check(),
        }
    }
}

impl Elementwise {
    #[inline]
    fn check(&mut self) -> Result<()> {
        let Elementwise { function, compute, shape, inputs, output } = self;
        if inputs.len() != function.arity() {
            return Err(wrong_inputs(*function, inputs.len()));
        }
        check_strides("elementwise", shape.len(), [&*output])?;
        let is_copy = *function == Function::Unary(UnaryFunction::Copy);
        let mut has_records = is_record(output.dtype) || is_record(*compute);
        let mut is_uniform = *compute == output.dtype;
        for input in &*inputs {
            let dtype = input.dtype();
            has_records |= is_record(dtype);
            is_uniform &= dtype == output.dtype;
            if let Input::Array(operand) = input {
                check_strides("elementwise", shape.len(), [operand])?;
            }
        }
        let is_defined =
            if has_records { is_copy && is_uniform } else { function.computes_in(*compute) };
        if !is_defined {
            return Err(undefined(*function, *compute));
        }
        for (position, input) in inputs.iter_mut().enumerate() {
            let Input::Scalar(value) = input else { continue };
            if is_copy {
                *value = value.cast(*compute)?.cast(output.dtype)?;
                *compute = output.dtype;
                continue;
            }
            *value = function.take_scalar(position, *compute, value)?;
        }
        Ok(())
    }
}

impl Function {
    /// Returns a number in the type that the function takes as the argument at `position`.
    ///
    /// # Errors
    /// `InvalidType` if the number does not convert.
    #[inline]
    pub fn take_scalar(self, position: usize, compute: DType, value: &Scalar) -> Result<Scalar> {
        match self.argument(position, compute) {
            Some(wanted) => value.cast(wanted),
            None => Ok(Scalar::new(selects(self, value))),
        }
    }
}

#[cold]
fn wrong_inputs(function: Function, given: usize) -> Error {
    let detail =
        format!("the number of inputs is {given}; {function:?} takes {}", function.arity());
    Error::invalid("elementwise", detail)
}

#[cold]
fn undefined(function: Function, compute: DType) -> Error {
    Error::invalid_type(
        "elementwise",
        format!("{function:?} does not compute in dtype {compute} for these inputs and output"),
    )
}

/// Returns true if a number used as the condition of a selection selects the second argument.
fn selects(function: Function, value: &Scalar) -> bool {
    if function != Function::SelectPositive || value.dtype() == DType::Bool {
        return value.is_true();
    }
    let value = value.cast(DType::Complex128).ok().and_then(|value| value.get::<Complex<f64>>());
    value.is_some_and(|value| value.re > 0.0 || (value.re == 0.0 && value.im > 0.0))
}

impl Reduce {
    fn check(&self) -> Result<()> {
        let Reduce { compute, shape, input, output, .. } = self;
        let (first, second) = match input {
            Mapped::Identity(a) | Mapped::SquaredDeviation(a) | Mapped::Position(a) => (a, None),
            Mapped::Formula(it) => {
                it.check("reduce", shape)?;
                (&it.values, None)
            }
            Mapped::Product(a, b) => (a, Some(b)),
            Mapped::Indexed(it) => {
                it.check("reduce")?;
                (&it.base, Some(&it.indices))
            }
        };
        let operands = || [Some(output), Some(first), second].into_iter().flatten();
        if is_record(*compute) || operands().any(|operand| is_record(operand.dtype)) {
            return Err(Error::invalid_type("reduce", "records cannot be reduced"));
        }
        check_strides("reduce", shape.len(), operands())?;
        self.check_epilogue()?;
        match input.elements() {
            Some((ElementMap::SquaredDeviation, elements)) => self.check_deviations(elements),
            Some((ElementMap::Position, elements)) => self.check_positions(elements),
            Some((ElementMap::Identity, _)) | None => Ok(()),
        }
    }

    fn check_epilogue(&self) -> Result<()> {
        let Reduce { reduction, compute, input, epilogue, .. } = self;
        let is_root = matches!(epilogue, Epilogue::RootOfQuotient(_));
        if *epilogue == Epilogue::Identity
            || *reduction == Reduction::Sum
                && compute.is_inexact()
                && (!is_root || input.is_squares())
        {
            return Ok(());
        }
        Err(Error::invalid(
            "reduce",
            format!(
                "epilogue {epilogue:?} of reduction {reduction:?} in {compute}; allowed are \
                 quotients of sums in inexact dtypes, and roots of sums of squared deviations"
            ),
        ))
    }

    fn check_deviations(&self, elements: &Operand) -> Result<()> {
        let Reduce { reduction, compute, .. } = self;
        if *reduction != Reduction::Sum {
            return Err(Error::invalid(
                "reduce",
                format!("reduction {reduction:?} of squared deviations; allowed is the sum"),
            ));
        }
        if elements.dtype.is_complex() || !matches!(compute, DType::Float32 | DType::Float64) {
            return Err(Error::invalid_type(
                "reduce",
                format!(
                    "squared deviations of {} in {compute}; allowed are real numbers in float32 or float64",
                    elements.dtype
                ),
            ));
        }
        Ok(())
    }

    fn check_positions(&self, elements: &Operand) -> Result<()> {
        let Reduce { reduction, compute, shape, output, .. } = self;
        if elements.dtype != *compute || output.dtype != DType::Int64 {
            return Err(Error::invalid_type(
                "reduce",
                format!(
                    "elements of {} are compared as {compute}, and their positions are {}; allowed \
                     are comparisons in their own dtype, and int64",
                    elements.dtype, output.dtype
                ),
            ));
        }
        let is_reduced = |&axis: &usize| output.strides[axis] == 0 && shape[axis] != 1;
        let axes = (0..shape.len()).filter(is_reduced).count();
        if axes > 1 || !matches!(reduction, Reduction::Minimum | Reduction::Maximum) {
            return Err(Error::invalid(
                "reduce",
                format!(
                    "the number of axes is {axes} for positions by {reduction:?}; allowed are the \
                     minimum and the maximum along one"
                ),
            ));
        }
        Ok(())
    }
}

impl Scan {
    fn check(&mut self) -> Result<()> {
        let Scan { reduction, compute, shape, axis, initial, input, output, .. } = self;
        if [*compute, input.dtype, output.dtype].into_iter().any(is_record) {
            return Err(Error::invalid_type("scan", "records cannot be scanned"));
        }
        if matches!(reduction, Reduction::Any | Reduction::All) {
            return Err(Error::invalid(
                "scan",
                format!(
                    "reduction is {reduction:?}; allowed are Sum, Product, Minimum and Maximum"
                ),
            ));
        }
        if *axis >= shape.len() {
            return Err(Error::invalid(
                "scan",
                format!("axis is {axis}; shape {} has ndim {}", shape_text(shape), shape.len()),
            ));
        }
        check_strides("scan", shape.len(), [&*input, &*output])?;
        *initial = initial.cast(*compute)?;
        Ok(())
    }
}

impl Indexed {
    fn check(&self, call: &'static str) -> Result<()> {
        if self.indices.dtype.is_integer() {
            return Ok(());
        }
        let detail = format!("indices are integers, not {}", self.indices.dtype);
        Err(Error::invalid_type(call, detail))
    }

    /// Refuses indexed elements that do not convert to or from type `other`.
    fn check_with(&self, other: DType, call: &'static str) -> Result<()> {
        self.check(call)?;
        let own = self.base.dtype;
        if own != other && (is_record(own) || is_record(other)) {
            let detail = format!("{own} and {other} do not convert to each other");
            return Err(Error::invalid_type(call, detail));
        }
        Ok(())
    }
}

impl Gather {
    fn check(&self) -> Result<()> {
        let Gather { shape, source, output } = self;
        source.check_with(output.dtype, "gather")?;
        check_strides("gather", shape.len(), [&source.base, &source.indices, output])
    }
}

impl Scatter {
    fn check(&mut self) -> Result<()> {
        let Scatter { shape, input, target } = self;
        target.check_with(input.dtype(), "scatter")?;
        check_strides("scatter", shape.len(), [&target.base, &target.indices])?;
        match input {
            Input::Array(operand) => check_strides("scatter", shape.len(), [&*operand])?,
            Input::Scalar(value) => *value = value.cast(target.base.dtype)?,
        }
        Ok(())
    }
}

impl Sequence {
    fn check(&mut self) -> Result<()> {
        let Sequence { start, step, output, .. } = self;
        if is_record(output.dtype) {
            return Err(Error::invalid_type("sequence", "records have no sequence"));
        }
        check_strides("sequence", 1, [&*output])?;
        *start = start.cast(output.dtype)?;
        *step = step.cast(output.dtype)?;
        Ok(())
    }
}

impl Random {
    pub(super) fn check(&self) -> Result<()> {
        let Random { source, distribution, output, .. } = self;
        check_strides("random", 1, [output])?;
        let size = output.dtype.size() as isize;
        if output.strides[0] != size {
            let detail = format!("the output's stride is {}, not {size}", output.strides[0]);
            return Err(Error::invalid("random", detail));
        }
        let is_wide = match source {
            RandomSource::States { generator, .. } => generator.bits() == 64,
            RandomSource::Seed(_) => false,
        };
        let is_seed = matches!(source, RandomSource::Seed(_));
        let dtypes: &[DType] = match distribution {
            Distribution::Bits if is_wide => {
                &[DType::Int32, DType::UInt32, DType::Int64, DType::UInt64]
            }
            Distribution::Bits => &[DType::Int32, DType::UInt32],
            Distribution::HalfOpen if is_seed => &[DType::Float32, DType::Float64],
            Distribution::HalfOpen => &[],
            _ if is_seed => &[],
            Distribution::Poisson { .. } => &[DType::UInt32],
            Distribution::PoissonOfElement => &[DType::Float32, DType::Float64, DType::UInt32],
            _ => &[DType::Float32, DType::Float64],
        };
        if !dtypes.contains(&output.dtype) {
            let allowed: Vec<_> = dtypes.iter().map(DType::to_string).collect();
            return Err(Error::invalid_type(
                "random",
                format!(
                    "{distribution:?} of {source:?} makes no numbers of dtype {}; allowed: {}",
                    output.dtype,
                    if allowed.is_empty() { "none".into() } else { allowed.join(", ") },
                ),
            ));
        }
        match *distribution {
            Distribution::LogNormal { mean, deviation } => {
                finite("mean", mean)?;
                finite("deviation", deviation)
            }
            Distribution::Poisson { mean } if mean < 0.0 => {
                Err(Error::invalid("random", format!("the mean is {mean}; it cannot be negative")))
            }
            Distribution::Poisson { mean } => finite("mean", mean),
            _ => Ok(()),
        }
    }
}

fn finite(name: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::invalid("random", format!("the {name} is {value}; a finite number is needed")))
}

impl Nonzero {
    fn check(&self) -> Result<()> {
        let Nonzero { length, mask, values, output, .. } = self;
        let is_wide = *length > i32::MAX as usize;
        let fits = match values {
            Some(values) => values.dtype == output.dtype && !is_record(output.dtype),
            None => output.dtype == DType::Int64 || (output.dtype == DType::Int32 && !is_wide),
        };
        if mask.dtype != DType::Bool || !fits {
            let stored = match values {
                Some(values) => format!("values of dtype {} into {}", values.dtype, output.dtype),
                None => format!("indices of dtype {}", output.dtype),
            };
            return Err(Error::invalid_type(
                "nonzero",
                format!(
                    "a mask of dtype {} and length {length}, {stored}: the mask is of dtype bool, \
                     values keep their dtype, and indices are of int64, or of int32 if they fit",
                    mask.dtype
                ),
            ));
        }
        let operands = || [mask, output].into_iter().chain(values);
        check_strides("nonzero", 1, operands())?;
        for operand in operands() {
            if operand.strides[0] != operand.dtype.size() as isize {
                let detail = format!("stride {} of a run of {}", operand.strides[0], operand.dtype);
                return Err(Error::invalid("nonzero", detail));
            }
        }
        Ok(())
    }
}

impl Sort {
    fn check(&self) -> Result<()> {
        let Sort { length, indices, input, output, .. } = self;
        let wanted = if *indices { DType::Int64 } else { input.dtype };
        if is_record(input.dtype) || output.dtype != wanted {
            let detail = match is_record(input.dtype) {
                true => format!("elements of dtype {} are not sorted; numbers are", input.dtype),
                false => format!("elements of dtype {} into {}", input.dtype, output.dtype),
            };
            return Err(Error::invalid_type("sort", detail));
        }
        check_strides("sort", 2, [input, output])?;
        for operand in [input, output] {
            let size = operand.dtype.size() as isize;
            let row = isize::try_from(*length).ok().and_then(|length| length.checked_mul(size));
            if row.is_none_or(|row| operand.strides[..] != [row, size]) {
                let detail = format!("strides {:?} of rows of {length}", operand.strides);
                return Err(Error::invalid("sort", detail));
            }
        }
        Ok(())
    }
}

impl MatrixProduct {
    fn check(&self) -> Result<()> {
        let MatrixProduct { compute, batch, left, right, output, .. } = self;
        let operands = [left, right, output];
        if is_record(*compute) || operands.iter().any(|operand| is_record(operand.dtype)) {
            return Err(Error::invalid_type("matmul", "records cannot be multiplied"));
        }
        check_strides("matmul", batch.len() + 2, operands)
    }
}
