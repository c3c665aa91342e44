//! Element-wise operations.

use super::Array;
use super::promote::{Argument, check_same_kind, common_dtype};
use super::resolve::{resolve, selection};
use crate::layout::{Layout, broadcast_shapes, dense_layout, shape_text};
use hal::device::Device;
use hal::dtype::DType;
use hal::error::{Error, Result, StatusExt as _};
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::iteration::simplify;
use hal::memory::{Access, AccessGuard, Use};
use hal::operation::{Description, Elementwise, Input, Operand, Operation, Shape, Strides};
use hal::recording::{self, Work};
use smallvec::SmallVec;
use std::sync::Arc;

impl Array {
    /// Applies a function to each element, and returns the values in a new array.
    ///
    /// # Errors
    /// `InvalidType` if the function is not defined for the dtype; `OutOfMemory`.
    pub fn unary(&self, function: UnaryFunction) -> Result<Array> {
        self.during(|| {
            let compute = function.signature(self.dtype)?.compute;
            self.apply_new(Function::Unary(function), compute, &[self.into()])
        })
    }

    /// Applies a function to each element of `input`, broadcast, and stores the values in this array.
    ///
    /// # Errors
    /// As for [`Array::unary`]; `InvalidArgument` if the shapes do not fit; `InvalidType` if the result's type
    /// cannot be cast to this array's type (numpy's rule `same_kind`).
    pub fn set_unary(&self, function: UnaryFunction, input: &Array) -> Result<()> {
        self.during(|| {
            let compute = function.signature(input.dtype)?.compute;
            let function = Function::Unary(function);
            check_same_kind(function.result(compute), self.dtype)?;
            self.apply_into(function, compute, &[input.into()])
        })
    }

    /// Applies a function to corresponding elements of `left` and `right`, broadcast, and returns the values in a
    /// new array on the first array's stream.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit or arrays of different devices; `InvalidType` if the function
    /// is not defined; `Overflow` for a number outside the type that it is converted to; `OutOfMemory`.
    pub fn binary(
        function: BinaryFunction,
        left: Argument<'_>,
        right: Argument<'_>,
    ) -> Result<Array> {
        let given = [left, right];
        let owner = first_array(&given)?;
        during(&given, || {
            let (function, arguments, compute) = resolve(function, left, right)?;
            owner.apply_new(function, compute, &arguments)
        })
    }

    /// Applies a function to corresponding elements of `left` and `right`, broadcast, and stores the values in
    /// this array.
    ///
    /// # Errors
    /// As for [`Array::binary`], and `InvalidType` if the result's type cannot be cast to this array's type
    /// (numpy's rule `same_kind`).
    pub fn set_binary(
        &self,
        function: BinaryFunction,
        left: Argument<'_>,
        right: Argument<'_>,
    ) -> Result<()> {
        self.during(|| {
            let (function, arguments, compute) = resolve(function, left, right)?;
            check_same_kind(function.result(compute), self.dtype)?;
            self.apply_into(function, compute, &arguments)
        })
    }

    /// Returns `criterion ? then : otherwise`, element by element, in a new array. The criterion is true where it
    /// is not zero, or greater than zero if `positive`. The shapes are broadcast.
    ///
    /// # Errors
    /// As for [`Array::binary`].
    pub fn select(
        criterion: &Array,
        then: Argument<'_>,
        otherwise: Argument<'_>,
        positive: bool,
    ) -> Result<Array> {
        let arguments = [criterion.into(), then, otherwise];
        during(&arguments, || {
            let (function, compute) = selection(then, otherwise, positive)?;
            if let DType::Opaque(_) = compute {
                let output = criterion
                    .new_array(result_layout(layouts(&arguments), compute.size())?, compute)?;
                output.set_select(criterion, then, otherwise, positive)?;
                return Ok(output);
            }
            criterion.apply_new(function, compute, &arguments)
        })
    }

    /// Like [`Array::select`], but stores the values in this array.
    ///
    /// # Errors
    /// As for [`Array::set_binary`].
    pub fn set_select(
        &self,
        criterion: &Array,
        then: Argument<'_>,
        otherwise: Argument<'_>,
        positive: bool,
    ) -> Result<()> {
        self.during(|| {
            let (function, compute) = selection(then, otherwise, positive)?;
            check_same_kind(compute, self.dtype)?;
            if let (Argument::Array(then), Argument::Array(otherwise), DType::Opaque(_)) =
                (then, otherwise, compute)
            {
                // A record is selected byte by byte, with the same truth value for each byte.
                let (then, otherwise) = (then.bytes()?, otherwise.bytes()?);
                let criterion = criterion.with_axis_behind(1, 0, criterion.dtype)?;
                let bytes = [(&criterion).into(), (&then).into(), (&otherwise).into()];
                return self.bytes()?.apply_into(function, DType::UInt8, &bytes);
            }
            self.apply_into(function, compute, &[criterion.into(), then, otherwise])
        })
    }

    /// Returns a view of each element's bytes, along a new last axis.
    fn bytes(&self) -> Result<Array> {
        self.with_axis_behind(self.dtype.size(), 1, DType::UInt8)
    }

    /// Returns a view with one more axis, after the others.
    fn with_axis_behind(&self, extent: usize, stride: isize, dtype: DType) -> Result<Array> {
        let shape: Shape = self.shape().iter().copied().chain([extent]).collect();
        let strides: Strides = self.strides().iter().copied().chain([stride]).collect();
        let layout = Layout::with_strides(&shape, &strides, self.layout.offset(), dtype.size())?;
        Array::from_memory(self.memory.clone(), layout, dtype, self.stream().clone())
    }

    /// Returns `a * x + b * y`, element by element, in `output` or in a new array. The shapes are broadcast.
    ///
    /// # Errors
    /// As for [`Array::binary`].
    pub fn linear_combination(
        a: Argument<'_>,
        x: &Array,
        b: Argument<'_>,
        y: &Array,
        output: Option<&Array>,
    ) -> Result<Array> {
        let arguments = [a, x.into(), b, y.into()];
        during(&arguments, || {
            let compute = common_dtype(&arguments)?;
            BinaryFunction::Multiply.signature(compute)?;
            match output {
                None => x.apply_new(Function::LinearCombination, compute, &arguments),
                Some(output) => output.during(|| {
                    check_same_kind(compute, output.dtype)?;
                    output.apply_into(Function::LinearCombination, compute, &arguments)?;
                    Ok(output.clone())
                }),
            }
        })
    }

    /// Applies a function to broadcast arguments. The result is a new array on this array's device and stream, in
    /// the arguments' memory order.
    pub(super) fn apply_new(
        &self,
        function: Function,
        compute: DType,
        arguments: &[Argument<'_>],
    ) -> Result<Array> {
        let dtype = function.result(compute);
        let layout = result_layout(layouts(arguments), dtype.size())?;
        for array in arrays(arguments) {
            self.check_same_device(array)?;
        }
        let output = self.new_array(layout, dtype)?;
        output.apply_first(function, compute, arguments)?;
        Ok(output)
    }

    /// Applies a function to broadcast arguments and stores the values in this array.
    pub(super) fn apply_into(
        &self,
        function: Function,
        compute: DType,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        for array in arrays(arguments) {
            self.check_same_device(array)?;
            if array.shape() != self.shape() {
                array.layout.broadcast_to(self.shape()).map_err(|_| self.too_small_for(array))?;
            }
        }
        self.check_writable()?;
        // An argument that partly overlaps the output would be read after it has been overwritten.
        let conflicts =
            |array: &Array| array.overlaps(self) && !(array.is_same_view(self) || self.size() == 0);
        if arrays(arguments).any(conflicts) {
            let mut copies: SmallVec<[Array; 4]> = SmallVec::new();
            for array in arrays(arguments).filter(|array| conflicts(array)) {
                // Allocated from the stream: an array's own allocator may return the output's memory, and the
                // copy would then need a copy in turn, without end.
                copies.push(array.on(self.stream())?.with_allocator(None).copy()?);
            }
            let mut next = copies.iter();
            let replaced: SmallVec<[Argument<'_>; 4]> = arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Array(array) if conflicts(array) => {
                        next.next().map_or(*argument, Argument::Array)
                    }
                    other => *other,
                })
                .collect();
            return self.launch(function, compute, &replaced, false);
        }
        self.launch(function, compute, arguments, false)
    }

    /// Refuses an array in which two indices name the same element.
    pub(super) fn check_writable(&self) -> Result<()> {
        if !self.layout.may_repeat() {
            return Ok(());
        }
        Err(Error::invalid(
            "output",
            format!(
                "an array of shape {} and strides {:?} has some elements twice; it cannot be written",
                shape_text(self.shape()),
                self.strides()
            ),
        ))
    }

    #[cold]
    fn too_small_for(&self, argument: &Array) -> Error {
        Error::invalid(
            "output",
            format!(
                "an operand of shape {} could not be broadcast to shape {} of the output",
                shape_text(argument.shape()),
                shape_text(self.shape())
            ),
        )
    }

    /// Returns true if equal indices name the same element in both arrays.
    pub(super) fn is_same_view(&self, other: &Array) -> bool {
        let mut axes = self.shape().iter().zip(self.strides()).zip(other.strides());
        self.address() == other.address()
            && self.dtype.size() == other.dtype.size()
            && self.shape() == other.shape()
            && axes.all(|((&extent, own), others)| extent == 1 || own == others)
    }

    pub(super) fn check_same_device(&self, other: &Array) -> Result<()> {
        check_same_device(self.device(), other.device())
    }

    /// Applies a function to arguments that have this array's shape or broadcast to it, and stores the values in
    /// this array. The array is new: it does not overlap anything or repeat elements.
    pub(super) fn apply_first(
        &self,
        function: Function,
        compute: DType,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // Unless it came from an allocator, new memory is not referenced elsewhere. Its first use needs ordering
        // only if it is plain memory, because that was not allocated on this stream.
        let is_own = self.allocator.is_none();
        if !is_own {
            self.check_new(arrays(arguments).filter(|array| !array.is_same_view(self)))?;
        }
        self.apply_first_of(function, compute, arguments, is_own)
    }

    /// Applies a function and stores the values in this array. The array has the arguments' shape. An argument
    /// that overlaps the array is the same view. `is_new` is true if nothing else refers to the array.
    pub(super) fn apply_first_of(
        &self,
        function: Function,
        compute: DType,
        arguments: &[Argument<'_>],
        is_new: bool,
    ) -> Result<()> {
        let is_own = self.memory.stream().id() == self.stream().id();
        self.launch(function, compute, arguments, is_new && is_own)
    }

    /// Checks that memory from an allocator does not also belong to an operand.
    pub(super) fn check_new<'a>(&self, operands: impl Iterator<Item = &'a Array>) -> Result<()> {
        if self.allocator.is_none() || self.size() == 0 {
            return Ok(());
        }
        for operand in operands {
            if operand.overlaps(self) {
                return Err(Error::invalid(
                    "allocator",
                    format!(
                        "the allocator returned memory at {:#x}, which an operand of the operation uses",
                        self.memory.address()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Queues the operation after all checks. `is_new` is true if only this array refers to its memory, so that
    /// its use needs no ordering.
    fn launch(
        &self,
        function: Function,
        compute: DType,
        arguments: &[Argument<'_>],
        is_new: bool,
    ) -> Result<()> {
        if self.size() == 0 {
            // A number must fit even if there are no elements.
            for argument in arguments {
                if let Argument::Number(number) = argument {
                    number.to_scalar(compute)?;
                }
            }
            return Ok(());
        }
        let mut uses: SmallVec<[Use<'_>; 5]> = SmallVec::new();
        if !is_new {
            uses.push((&self.memory, Access::Write));
        }
        // The output's memory may also be read.
        let is_other = |array: &&Array| !Arc::ptr_eq(&array.memory, &self.memory);
        uses.extend(arrays(arguments).filter(is_other).map(|array| (&array.memory, Access::Read)));

        let same_shape = arrays(arguments).all(|array| array.shape() == self.shape());
        let is_line = same_shape && self.ndim() == 1 && self.strides()[0] > 0;
        let is_flat = is_line
            || (same_shape
                && self.layout.is_c_contiguous()
                && arrays(arguments).all(|array| array.layout.is_c_contiguous()));
        let operation = if is_flat {
            let along = |array: &Array| {
                let mut strides = Strides::new();
                let size = array.dtype.size() as isize;
                strides.push(if is_line { array.strides()[0] } else { size });
                array.operand(strides, 0)
            };
            let mut shape = Shape::new();
            shape.push(self.size());
            let inputs = inputs(function, compute, arguments, along)?;
            Elementwise { function, compute, shape, inputs, output: along(self) }
        } else {
            let mut strides: SmallVec<[Strides; 5]> = SmallVec::new();
            strides.push(Strides::from_slice(self.strides()));
            for array in arrays(arguments) {
                let layout = array.layout.broadcast_to(self.shape())?;
                strides.push(Strides::from_slice(layout.strides()));
            }
            let (shape, moved) = simplify(self.shape(), &mut strides);
            let mut ways = strides.into_iter().zip(moved);
            let mut along = |array: &Array| {
                let (strides, moved) = ways.next().unwrap_or_default();
                array.operand(strides, moved)
            };
            let output = along(self);
            let inputs = inputs(function, compute, arguments, along)?;
            Elementwise { function, compute, shape, inputs, output }
        };
        let mut description = Description::Elementwise(operation);
        let operation = Operation::seal(&mut description)?;
        self.stream().wait_for_room();
        let guard = AccessGuard::acquire(self.stream(), &uses)?;
        if is_new {
            guard.keep_new(self.stream(), &self.memory)?;
        }
        // SAFETY: layouts are inside their memory, shapes agree after broadcasting, the output does not repeat
        // elements and overlaps an input only as the same view, and the guard has ordered this work after all
        // conflicting work.
        let execute = || unsafe { self.stream().execute(operation) };
        recording::queued(self.stream().as_ref(), || Work::operation(operation), execute)
    }
}

/// Refuses operands of different devices.
#[inline]
pub(super) fn check_same_device(one: &Arc<dyn Device>, other: &Arc<dyn Device>) -> Result<()> {
    if Arc::ptr_eq(one, other) {
        return Ok(());
    }
    let (here, there) = (one.id(), other.id());
    if here == there {
        return Ok(());
    }
    Err(Error::invalid(
        "operands",
        format!(
            "operands are on different devices, {} and {}; copy one over first",
            here.beside(&there),
            there.beside(&here)
        ),
    ))
}

/// Returns the inputs of an operation. Calls `operand` for each array, in order; untyped numbers get the type
/// that the function takes.
#[inline]
fn inputs(
    function: Function,
    compute: DType,
    arguments: &[Argument<'_>],
    mut operand: impl FnMut(&Array) -> Operand,
) -> Result<SmallVec<[Input; 2]>> {
    let mut inputs = SmallVec::new();
    for (position, argument) in arguments.iter().enumerate() {
        inputs.push(match argument {
            Argument::Array(array) => Input::Array(operand(array)),
            Argument::Scalar(scalar) => Input::Scalar(*scalar),
            Argument::Number(number) => {
                let wanted = function.argument(position, compute).unwrap_or(compute);
                Input::Scalar(number.to_scalar(wanted)?)
            }
        });
    }
    Ok(inputs)
}

fn arrays<'a>(arguments: &'a [Argument<'a>]) -> impl Iterator<Item = &'a Array> + Clone {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Array(array) => Some(*array),
        _ => None,
    })
}

/// Calls `call`, and stores its status in each of the arrays.
#[inline]
fn during<T>(arguments: &[Argument<'_>], call: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = call();
    let status = result.status();
    arrays(arguments).for_each(|array| array.status.store(status));
    result
}

fn first_array<'a>(arguments: &[Argument<'a>]) -> Result<&'a Array> {
    arguments
        .iter()
        .find_map(|argument| match argument {
            Argument::Array(array) => Some(*array),
            _ => None,
        })
        .ok_or_else(|| Error::invalid_type("elementwise", "no argument is an array"))
}

fn layouts<'a>(arguments: &'a [Argument<'a>]) -> impl Iterator<Item = &'a Layout> + Clone {
    arrays(arguments).map(|array| &array.layout)
}

/// Returns the layout of a new array for a function of arrays with these layouts.
#[inline]
pub(super) fn result_layout<'a>(
    layouts: impl Iterator<Item = &'a Layout> + Clone,
    itemsize: usize,
) -> Result<Layout> {
    let mut others = layouts.clone();
    let Some(first) = others.next() else {
        return Ok(Layout::scalar(itemsize));
    };
    let is_ordered = |layout: &Layout| layout.ndim() == 1 || layout.is_c_contiguous();
    if others.clone().all(|layout| layout.shape() == first.shape())
        && layouts.clone().all(is_ordered)
    {
        return Layout::contiguous(first.shape(), itemsize, crate::Order::C);
    }
    let mut shape = Shape::from_slice(first.shape());
    for layout in others {
        shape = broadcast_shapes(&shape, layout.shape())?;
    }
    let mut strides: SmallVec<[Strides; 4]> = SmallVec::new();
    for layout in layouts {
        strides.push(Strides::from_slice(layout.broadcast_to(&shape)?.strides()));
    }
    let views: SmallVec<[&Strides; 4]> = strides.iter().collect();
    dense_layout(&shape, &views, itemsize)
}
