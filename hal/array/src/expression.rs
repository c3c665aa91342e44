//! Element-wise operations that are computed later, several in one pass over memory.

mod block;
mod evaluate;
mod reduce;

pub use block::FusedBlock;

use super::elementwise::{check_same_device, result_layout};
use super::promote::{Argument, Constant, Number, Typed};
use super::resolve::{resolve, selection};
use crate::Array;
use crate::layout::Layout;
use hal::device::Device;
use hal::dtype::{DType, Kind};
use hal::error::{Error, Result};
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Formula, Input};
use hal::poison::Unpoisoned as _;
use hal::scalar::Scalar;
use hal::stream::Stream;
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// An array whose elements are computed when they are needed.
///
/// An expression is made of element-wise functions of arrays, numbers and other expressions. Shapes and types are
/// checked when the expression is made. [`Expression::evaluate`] computes the elements in one pass over the arrays'
/// memory, without memory for intermediate values, and keeps the result. The elements are the same, to the last bit, as
/// if the functions ran one after the other. The arrays are read when the expression is evaluated, so writes to them
/// before then change the result.
///
/// ```
/// use gpuarray::{DeviceArray, Expression, Number, function::{BinaryFunction, UnaryFunction}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::from_slice(&device, &[1.0f32, 4.0])?.into_untyped();
/// let twice = Expression::binary(BinaryFunction::Multiply, (&x).into(), Number::Integer(2).into())?;
/// let root = Expression::unary(UnaryFunction::Sqrt, (&twice).into())?;
/// let sum = Expression::binary(BinaryFunction::Add, (&root).into(), (&x).into())?;
/// let values = DeviceArray::<f32>::from_untyped(sum.evaluate()?)?;
/// assert_eq!(values.to_vec()?, [2.0f32.sqrt() + 1.0, 8.0f32.sqrt() + 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Expression(Arc<Node>);

/// One function of an expression.
struct Node {
    layout: Layout,
    dtype: DType,
    device: Arc<dyn Device>,
    stream: Arc<dyn Stream>,
    size: Size,
    /// True while the program refers to the value itself, and not only to functions of it.
    is_kept: AtomicBool,
    /// True once the value is an argument of another node; that node may read it later.
    is_argument: AtomicBool,
    /// True once the value has been computed as a part of another one, without being stored.
    was_used: AtomicBool,
    /// The line of the program that asked for the value; 0 if it is unknown.
    line: AtomicU32,
    state: Mutex<State>,
}

type Place<'a> = (&'a Arc<dyn Device>, &'a Arc<dyn Stream>);

/// An upper bound of the number of parts that a node's formula has.
#[derive(Clone, Copy, Default)]
struct Size {
    steps: usize,
    inputs: usize,
    /// True if a function takes many instructions.
    is_long: bool,
}

#[derive(Clone)]
enum State {
    Pending(Pending),
    Done(Array),
}

/// A function that has not been computed.
#[derive(Clone)]
struct Pending {
    function: Function,
    compute: DType,
    parts: SmallVec<[Part; 2]>,
    /// The block, which queues the function before arrays that it reads are written, and lives as long as the node.
    block: Option<Arc<block::Content>>,
}

/// An argument of a function that has not been computed.
#[derive(Clone)]
enum Part {
    Node(Arc<Node>),
    Leaf(Leaf),
}

/// An array, or a number of the type that a function takes.
type Leaf = Input<Array, Scalar>;

/// An argument of an [`Expression`]: another expression, an array or a number.
///
/// ```
/// use gpuarray::{DeviceArray, Expression, ExpressionArgument, function::BinaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::from_slice(&device, &[1i32, 2])?.into_untyped();
/// let argument = ExpressionArgument::from(&x);
/// let double = Expression::binary(BinaryFunction::Add, argument, argument)?;
/// assert_eq!(DeviceArray::<i32>::from_untyped(double.evaluate()?)?.to_vec()?, [2, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum ExpressionArgument<'a> {
    /// The value of another expression.
    Expression(&'a Expression),
    /// An array, a typed scalar or an untyped number.
    Value(Argument<'a>),
}

impl<'a> From<&'a Expression> for ExpressionArgument<'a> {
    fn from(expression: &'a Expression) -> Self {
        ExpressionArgument::Expression(expression)
    }
}

impl<'a> From<&'a Array> for ExpressionArgument<'a> {
    fn from(array: &'a Array) -> Self {
        ExpressionArgument::Value(array.into())
    }
}

impl From<Scalar> for ExpressionArgument<'_> {
    fn from(scalar: Scalar) -> Self {
        ExpressionArgument::Value(scalar.into())
    }
}

impl From<Number> for ExpressionArgument<'_> {
    fn from(number: Number) -> Self {
        ExpressionArgument::Value(number.into())
    }
}

impl Typed for ExpressionArgument<'_> {
    fn dtype(&self) -> Option<DType> {
        match self {
            ExpressionArgument::Expression(expression) => Some(expression.dtype()),
            ExpressionArgument::Value(value) => value.dtype(),
        }
    }

    fn constant(&self) -> Option<Constant> {
        match self {
            ExpressionArgument::Expression(_) => None,
            ExpressionArgument::Value(value) => value.constant(),
        }
    }
}

impl<'a> ExpressionArgument<'a> {
    /// Returns the layout of an array or an expression.
    fn layout(&self) -> Option<&'a Layout> {
        match self {
            ExpressionArgument::Expression(expression) => Some(&expression.0.layout),
            ExpressionArgument::Value(Argument::Array(array)) => Some(array.layout()),
            ExpressionArgument::Value(_) => None,
        }
    }

    /// Returns the device and the stream of an array or an expression.
    fn place(&self) -> Option<Place<'a>> {
        match self {
            ExpressionArgument::Expression(Expression(node)) => Some((&node.device, &node.stream)),
            ExpressionArgument::Value(Argument::Array(array)) => {
                Some((array.device(), array.stream()))
            }
            ExpressionArgument::Value(_) => None,
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({}, {:?})", self.0.dtype, self.0.layout.shape())
    }
}

impl Node {
    /// Adds the node to a block, which computes the node before arrays that it reads are written. Returns false if an
    /// argument is in no block or in another one.
    fn enter_block(&self, block: &Arc<block::Content>) -> bool {
        let is_here = |part: &Part| match part {
            Part::Node(node) => match &*node.state.lock().unpoisoned() {
                State::Pending(pending) => {
                    pending.block.as_ref().is_some_and(|other| Arc::ptr_eq(other, block))
                }
                State::Done(_) => true,
            },
            Part::Leaf(_) => true,
        };
        match &mut *self.state.lock().unpoisoned() {
            State::Pending(pending) if pending.parts.iter().all(is_here) => {
                pending.block = Some(block.clone());
                true
            }
            _ => false,
        }
    }

    /// Calls a function with each array that the node's function itself reads.
    fn for_each_array(&self, mut call: impl FnMut(&Array)) {
        let State::Pending(pending) = &*self.state.lock().unpoisoned() else { return };
        for part in &pending.parts {
            match part {
                Part::Leaf(Input::Array(array)) => call(array),
                Part::Node(node) => node.done().iter().for_each(&mut call),
                Part::Leaf(Input::Scalar(_)) => {}
            }
        }
    }
}

impl Drop for Node {
    /// Drops a chain of nodes in a loop: evaluated nodes may form a chain too long for recursion.
    fn drop(&mut self) {
        let mut rest: Vec<Arc<Node>> = Vec::new();
        let take = |state: &mut Mutex<State>, rest: &mut Vec<Arc<Node>>| {
            if let State::Pending(pending) = state.get_mut().unpoisoned() {
                let nodes = pending.parts.drain(..).filter_map(|part| match part {
                    Part::Node(node) => Some(node),
                    _ => None,
                });
                rest.extend(nodes);
            }
        };
        take(&mut self.state, &mut rest);
        while let Some(node) = rest.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                take(&mut node.state, &mut rest);
            }
        }
    }
}

/// The elements of an array; they have been computed.
impl From<&Array> for Expression {
    fn from(array: &Array) -> Self {
        Expression(Arc::new(Node {
            layout: array.layout().clone(),
            dtype: array.dtype(),
            device: array.device().clone(),
            stream: array.stream().clone(),
            size: Size::default(),
            is_kept: AtomicBool::new(false),
            is_argument: AtomicBool::new(false),
            was_used: AtomicBool::new(false),
            line: AtomicU32::new(0),
            state: Mutex::new(State::Done(array.clone())),
        }))
    }
}

impl Expression {
    /// Returns a function of each element.
    ///
    /// # Errors
    /// As for [`Array::unary`](crate::Array::unary), except that nothing is allocated.
    pub fn unary(function: UnaryFunction, argument: ExpressionArgument<'_>) -> Result<Expression> {
        let input = argument.dtype().ok_or_else(no_array)?;
        let compute = function.signature(input)?.compute;
        Self::new(Function::Unary(function), compute, None, &[argument])
    }

    /// Returns a function of corresponding elements; the shapes are broadcast.
    ///
    /// # Errors
    /// As for [`Array::binary`](crate::Array::binary), except that nothing is allocated.
    pub fn binary(
        function: BinaryFunction,
        left: ExpressionArgument<'_>,
        right: ExpressionArgument<'_>,
    ) -> Result<Expression> {
        let (function, arguments, compute) = resolve(function, left, right)?;
        Self::new(function, compute, None, &arguments)
    }

    /// Returns `criterion ? then : otherwise`, element by element, as [`Array::select`](crate::Array::select) does.
    ///
    /// # Errors
    /// As for [`Expression::binary`].
    pub fn select(
        criterion: ExpressionArgument<'_>,
        then: ExpressionArgument<'_>,
        otherwise: ExpressionArgument<'_>,
        positive: bool,
    ) -> Result<Expression> {
        let (function, compute) = selection(then, otherwise, positive)?;
        Self::new(function, compute, None, &[criterion, then, otherwise])
    }

    /// Returns the elements converted to another type.
    ///
    /// # Errors
    /// `InvalidType` for records.
    pub fn cast(argument: ExpressionArgument<'_>, dtype: DType) -> Result<Expression> {
        let copy = Function::Unary(UnaryFunction::Copy);
        Self::new(copy, dtype, Some(dtype), &[argument])
    }

    fn new(
        function: Function,
        compute: DType,
        converted: Option<DType>,
        arguments: &[ExpressionArgument<'_>],
    ) -> Result<Expression> {
        let dtype = converted.unwrap_or_else(|| function.result(compute));
        let records = arguments.iter().filter_map(Typed::dtype).chain([compute]);
        if records.into_iter().any(|dtype| dtype.kind() == Kind::Opaque) {
            let detail = "records cannot be part of an expression; compute them one by one";
            return Err(Error::invalid_type("expression", detail));
        }
        let mut layouts = arguments.iter().filter_map(ExpressionArgument::layout);
        let layout = match converted.and_then(|_| layouts.next()) {
            Some(layout) => layout.dense_like(dtype.size())?,
            None => result_layout(layouts, dtype.size())?,
        };
        let mut places = arguments.iter().filter_map(ExpressionArgument::place);
        let (device, stream) = places.next().ok_or_else(no_array)?;
        for (other, _) in places {
            check_same_device(device, other)?;
        }
        let mut parts = SmallVec::new();
        let mut size = Size { steps: 1, inputs: 0, is_long: function.is_long(compute) };
        for (position, argument) in arguments.iter().enumerate() {
            parts.push(match argument {
                ExpressionArgument::Expression(expression) => expression.part(&mut size),
                ExpressionArgument::Value(Argument::Array(array)) => {
                    size.inputs += 1;
                    Part::Leaf(Input::Array((*array).clone()))
                }
                ExpressionArgument::Value(Argument::Scalar(scalar)) => {
                    size.inputs += 1;
                    Part::Leaf(Input::Scalar(function.take_scalar(position, compute, scalar)?))
                }
                ExpressionArgument::Value(Argument::Number(number)) => {
                    size.inputs += 1;
                    let wanted = function.argument(position, compute).unwrap_or(compute);
                    let scalar = number.to_scalar(wanted)?;
                    Part::Leaf(Input::Scalar(function.take_scalar(position, compute, &scalar)?))
                }
            });
        }
        if size.steps >= Formula::MOST_STEPS || size.inputs > Formula::MOST_INPUTS {
            size = Size { steps: 1, inputs: parts.len(), is_long: function.is_long(compute) };
            for part in &mut parts {
                if let Part::Node(node) = part {
                    let node = node.clone();
                    *part = Part::Leaf(Input::Array(Expression(node).evaluate()?));
                }
            }
        }
        Ok(Expression(Arc::new(Node {
            layout,
            dtype,
            device: device.clone(),
            stream: stream.clone(),
            size,
            is_kept: AtomicBool::new(false),
            is_argument: AtomicBool::new(false),
            was_used: AtomicBool::new(false),
            line: AtomicU32::new(0),
            state: Mutex::new(State::Pending(Pending { function, compute, parts, block: None })),
        })))
    }

    /// Returns the expression as a part of a larger one, and adds its size to `size`, the size of the larger one.
    fn part(&self, size: &mut Size) -> Part {
        match &*self.0.state.lock().unpoisoned() {
            State::Done(array) => {
                size.inputs += 1;
                Part::Leaf(Input::Array(array.clone()))
            }
            State::Pending(_) => {
                let own = self.0.size;
                size.steps += own.steps;
                size.inputs += own.inputs;
                size.is_long |= own.is_long;
                self.0.is_argument.store(true, Ordering::Relaxed);
                Part::Node(self.0.clone())
            }
        }
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns the shape, and the strides of the array that [`Expression::evaluate`] returns.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns true if the expression is so large that a few more functions would force a part of it to be computed.
    pub fn is_large(&self) -> bool {
        let Size { steps, inputs, .. } = self.0.size;
        steps > Formula::MOST_STEPS / 2 || inputs > Formula::MOST_INPUTS / 2
    }

    /// Sets whether the program still refers to this expression. If the program does, the end of a [`FusedBlock`]
    /// computes and stores the value.
    pub fn keep(&self, is_kept: bool) {
        self.0.is_kept.store(is_kept, Ordering::Release);
    }

    /// Stores the line of the program that asked for the value, by [`line_number`](hal::recording::line_number). Errors
    /// of the computation name this line.
    pub fn asked_at(&self, line: u32) {
        self.0.line.store(line, Ordering::Relaxed);
    }
}

#[cold]
fn no_array() -> Error {
    Error::invalid_type("expression", "no argument is an array")
}
