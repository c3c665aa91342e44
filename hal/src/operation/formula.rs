//! Formulas: several functions of corresponding elements in one operation.

use super::{Input, Operand, Shape, check_strides, is_record, shape_text};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::Function;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An argument of a step of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// The formula's input at this position.
    Input(u8),
    /// The value of the step at this position, before the step that uses it.
    Step(u8),
}

/// A step of a formula: one function of elements, as in [`Elementwise`](super::Elementwise).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The function to apply.
    pub function: Function,
    /// The type that it computes in.
    pub compute: DType,
    /// The type that the function's value is converted to.
    pub dtype: DType,
    /// The arguments, as many as the function takes.
    pub arguments: SmallVec<[Term; 4]>,
}

/// Functions of elements and of each other's values.
///
/// A step has the value that an [`Elementwise`](super::Elementwise) with the same function and types would
/// store. So a formula has the values that its steps would have one after the other, to the last bit. Formulas
/// are equal if they have the same steps and types: a formula contains no numbers and no addresses.
#[derive(Clone, Debug)]
pub struct Formula(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    inputs: SmallVec<[Input<DType, DType>; 4]>,
    steps: SmallVec<[Step; 4]>,
    outputs: SmallVec<[u8; 2]>,
    hash: u64,
}

impl Formula {
    /// The maximum number of inputs.
    pub const MOST_INPUTS: usize = 16;
    /// The maximum number of steps.
    pub const MOST_STEPS: usize = 32;
    /// The maximum number of outputs.
    pub const MOST_OUTPUTS: usize = 4;

    /// Returns a formula of inputs of these types. The outputs are the values of the steps `outputs`.
    ///
    /// # Errors
    /// `InvalidArgument` for more parts than a formula has, for a step that refers to a later one or to no input,
    /// and for the wrong number of arguments; `InvalidType` for records, and for functions that do not compute in
    /// the type of their step.
    pub fn new(inputs: &[Input<DType, DType>], steps: &[Step], outputs: &[u8]) -> Result<Formula> {
        let refuse = |detail: String| Err(Error::invalid("formula", detail));
        let sizes = [
            ("inputs", inputs.len(), Self::MOST_INPUTS),
            ("steps", steps.len(), Self::MOST_STEPS),
            ("outputs", outputs.len(), Self::MOST_OUTPUTS),
        ];
        for (name, size, most) in sizes {
            if !(1..=most).contains(&size) {
                return refuse(format!("there are {size} {name}; a formula has 1 to {most}"));
            }
        }
        for (position, step) in steps.iter().enumerate() {
            let Step { function, compute, dtype, arguments } = step;
            let is_known = |term: &Term| match *term {
                Term::Input(input) => usize::from(input) < inputs.len(),
                Term::Step(earlier) => usize::from(earlier) < position,
            };
            if arguments.len() != function.arity() || !arguments.iter().all(is_known) {
                return refuse(format!(
                    "step {position} applies {function:?} to {arguments:?}; it takes inputs and earlier steps, in all {}",
                    function.arity()
                ));
            }
            if !function.computes_in(*compute) || is_record(*dtype) {
                return Err(Error::invalid_type(
                    "formula",
                    format!("{function:?} does not compute in dtype {compute}, for dtype {dtype}"),
                ));
            }
        }
        if let Some(output) = outputs.iter().find(|&&output| usize::from(output) >= steps.len()) {
            return refuse(format!("output {output} is not one of the {} steps", steps.len()));
        }
        if inputs.iter().any(|(Input::Array(dtype) | Input::Scalar(dtype))| is_record(*dtype)) {
            return Err(Error::invalid_type("formula", "records cannot be calculated with"));
        }
        let mut hasher = rustc_hash::FxHasher::default();
        (inputs, steps, outputs).hash(&mut hasher);
        Ok(Formula(Arc::new(Parts {
            inputs: SmallVec::from_slice(inputs),
            steps: steps.iter().cloned().collect(),
            outputs: SmallVec::from_slice(outputs),
            hash: hasher.finish(),
        })))
    }

    /// Returns the types of the inputs.
    pub fn inputs(&self) -> &[Input<DType, DType>] {
        &self.0.inputs
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[Step] {
        &self.0.steps
    }

    /// Returns the steps whose values are the outputs.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = usize> + Clone + '_ {
        self.0.outputs.iter().map(|&step| usize::from(step))
    }

    fn check_operands(
        &self,
        call: &'static str,
        inputs: &[Input],
        outputs: &[Operand],
    ) -> Result<()> {
        let kinds = inputs.iter().map(|input| match input {
            Input::Array(operand) => Input::Array(operand.dtype),
            Input::Scalar(scalar) => Input::Scalar(scalar.dtype()),
        });
        let results = self.outputs().map(|step| self.steps()[step].dtype);
        if !kinds.eq(self.inputs().iter().copied())
            || !results.eq(outputs.iter().map(|output| output.dtype))
        {
            let detail = format!("the formula takes operands of other types: {:?}", self.inputs());
            return Err(Error::invalid(call, detail));
        }
        Ok(())
    }

    /// Returns true if a function takes many instructions.
    pub fn is_long(&self) -> bool {
        self.steps().iter().any(|step| step.function.is_long(step.compute))
    }

    /// Returns the type of a term's value.
    pub fn dtype(&self, term: Term) -> DType {
        match term {
            Term::Step(step) => self.0.steps[usize::from(step)].dtype,
            Term::Input(input) => match self.0.inputs[usize::from(input)] {
                Input::Array(dtype) | Input::Scalar(dtype) => dtype,
            },
        }
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (&*self.0, &*other.0);
        Arc::ptr_eq(&self.0, &other.0)
            || (own.hash == others.hash
                && own.inputs == others.inputs
                && own.steps == others.steps
                && own.outputs == others.outputs)
    }
}

impl Eq for Formula {}

impl Hash for Formula {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

/// `outputs[k][i] = formula(inputs[0][i], inputs[1][i], ...)[k]` for every index of `shape`.
///
/// An output may consist of exactly the same elements as an input only if it is the single output; otherwise all
/// are disjoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// The functions.
    pub formula: Formula,
    /// The extents of the iteration.
    pub shape: Shape,
    /// The inputs, of the formula's types.
    pub inputs: Vec<Input>,
    /// The destinations of the values, of the types of the formula's outputs.
    pub outputs: Vec<Operand>,
}

impl Fused {
    pub(super) fn check(&self) -> Result<()> {
        let Fused { formula, shape, inputs, outputs } = self;
        check_strides("fused", shape.len(), outputs.iter().chain(arrays(inputs)))?;
        formula.check_operands("fused", inputs, outputs)
    }
}

/// What a reduction combines for each element of an array or value of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementMap {
    /// The element itself.
    Identity,
    /// As in [`Mapped::SquaredDeviation`](super::Mapped).
    SquaredDeviation,
    /// As in [`Mapped::Position`](super::Mapped).
    Position,
}

/// The values of a formula. A reduction reads them like the elements of an array, but they are not stored.
///
/// The values are in the order of that array's memory: the value of the inputs' elements at an index is the `n`-th
/// element in memory if the index is the `n`-th of `shape` in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaValues {
    /// The functions, with one output.
    pub formula: Formula,
    /// What is combined for each value.
    pub map: ElementMap,
    /// The array. Its elements follow each other in memory, from the address 0.
    pub values: Operand,
    /// The extents of the inputs. Their product is the number of values.
    pub shape: Shape,
    /// The inputs, of the formula's types.
    pub inputs: Vec<Input>,
}

impl FormulaValues {
    /// Checks a formula whose values are the elements of an operation on `elements`.
    pub(super) fn check(&self, call: &'static str, elements: &[usize]) -> Result<()> {
        let FormulaValues { formula, values, shape, inputs, .. } = self;
        check_strides(call, shape.len(), arrays(inputs))?;
        let number = |shape: &[usize]| {
            shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent))
        };
        if number(shape).is_none() || number(shape) != number(elements) || values.address != 0 {
            let (shape, elements) = (shape_text(shape), shape_text(elements));
            let detail =
                format!("a formula of shape {shape} has not the values of shape {elements}");
            return Err(Error::invalid(call, detail));
        }
        formula.check_operands(call, inputs, std::slice::from_ref(values))
    }

    /// Returns the inputs that are arrays.
    pub fn arrays(&self) -> impl Iterator<Item = &Operand> + Clone {
        arrays(&self.inputs)
    }
}

fn arrays(inputs: &[Input]) -> impl Iterator<Item = &Operand> + Clone {
    inputs.iter().filter_map(|input| match input {
        Input::Array(operand) => Some(operand),
        Input::Scalar(_) => None,
    })
}
