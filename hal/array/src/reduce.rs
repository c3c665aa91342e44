//! Reductions.

use super::Array;
use super::promote::check_same_kind;
use crate::layout::{Layout, Order, shape_text};
use hal::dtype::{DType, Kind};
use hal::error::{Error, Result};
use hal::function::{BinaryFunction, Reduction};
use hal::iteration::{Moves, simplify};
use hal::memory::{Access, AccessGuard, Use};
use hal::operation::{
    Description, ElementMap, Epilogue, FormulaValues, Indexed, Mapped, Operation, Reduce, Shape,
    Strides,
};
use hal::recording::{self, Work};
use smallvec::{SmallVec, smallvec};

/// The values that a reduction combines.
#[derive(Debug)]
pub(super) enum Combined<'a> {
    Elements(&'a Array),
    /// The products of the elements of two arrays of the same shape.
    Products(&'a Array, &'a Array),
    /// Squared distances from the mean.
    SquaredDeviations(&'a Array),
    /// Indices, along the one reduced axis, of the first elements equal to the reduction's result.
    Positions(&'a Array),
    /// The values of a formula of these arrays, as if stored in an array of this layout. Their strides are set later.
    Values(&'a Layout, FormulaValues, &'a [&'a Array]),
}

impl<'a> Combined<'a> {
    fn layout(&self) -> &'a Layout {
        match self {
            Combined::Elements(array)
            | Combined::Products(array, _)
            | Combined::SquaredDeviations(array)
            | Combined::Positions(array) => &array.layout,
            Combined::Values(layout, ..) => layout,
        }
    }

    fn is_positions(&self) -> bool {
        match self {
            Combined::Positions(_) => true,
            Combined::Values(_, values, _) => values.map == ElementMap::Position,
            _ => false,
        }
    }

    /// Returns the arrays that are read.
    fn arrays(&self) -> SmallVec<[&'a Array; 4]> {
        match *self {
            Combined::Elements(array)
            | Combined::SquaredDeviations(array)
            | Combined::Positions(array) => smallvec![array],
            Combined::Products(first, second) => smallvec![first, second],
            Combined::Values(_, _, arrays) => SmallVec::from_slice(arrays),
        }
    }
}

impl Array {
    /// Combines the elements along `axes` (all axes if `None`) in the type `compute`. Returns a new array
    /// without those axes, or with extent 1 there if `keep_axes`.
    ///
    /// # Errors
    /// `IndexOutOfRange` or `InvalidArgument` for axes that do not exist or repeat; `InvalidArgument` for the
    /// minimum or maximum of no elements; `InvalidType` if the reduction is not defined for `compute`;
    /// `OutOfMemory`.
    pub fn reduce(
        &self,
        reduction: Reduction,
        compute: DType,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        self.during(|| {
            check_numeric(self.dtype, compute)?;
            let reduced = reduced_axes(&self.layout, axes)?;
            check_not_empty(self.shape(), reduction, &reduced)?;
            let shape = shape_without(self.shape(), &reduced, keep_axes);
            let output = self.new_result(&shape, reduction.result(compute))?;
            let how = (reduction, compute, Epilogue::Identity);
            queue_reduction(how, &reduced, Combined::Elements(self), &output)?;
            Ok(output)
        })
    }

    /// Returns the indices along `axis` of the first minimum or maximum, or of the first NaN, if any. The
    /// result is a new array of `Int64` without the axis, or with extent 1 there if `keep_axes`.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidArgument` for another reduction, and for an
    /// axis without elements; `InvalidType` for records; `OutOfMemory`.
    pub fn position(&self, reduction: Reduction, axis: isize, keep_axes: bool) -> Result<Array> {
        self.during(|| {
            check_numeric(self.dtype, self.dtype)?;
            check_extreme(reduction)?;
            let axes = [axis];
            let reduced = reduced_axes(&self.layout, Some(&axes))?;
            check_not_empty(self.shape(), reduction, &reduced)?;
            let shape = shape_without(self.shape(), &reduced, keep_axes);
            let output = self.new_result(&shape, DType::Int64)?;
            let how = (reduction, self.dtype, Epilogue::Identity);
            queue_reduction(how, &reduced, Combined::Positions(self), &output)?;
            Ok(output)
        })
    }

    /// Like [`Array::reduce`], but stores the values in `output`, on the stream of `output`.
    ///
    /// # Errors
    /// As for [`Array::reduce`]; `InvalidArgument` unless `output` has the shape of the result, is on this
    /// array's device and does not repeat elements; `InvalidType` if the result's type cannot be cast to the type of
    /// `output` (numpy's rule `same_kind`).
    pub fn reduce_into(
        &self,
        reduction: Reduction,
        compute: DType,
        axes: Option<&[isize]>,
        keep_axes: bool,
        output: &Array,
    ) -> Result<()> {
        self.during(|| {
            check_numeric(self.dtype, compute)?;
            let reduced = reduced_axes(&self.layout, axes)?;
            check_not_empty(self.shape(), reduction, &reduced)?;
            check_same_kind(reduction.result(compute), output.dtype)?;
            let shape = shape_without(self.shape(), &reduced, keep_axes);
            output.check_receives(&shape, self)?;
            if output.overlaps(self) {
                let result = self.on(output.stream())?.with_allocator(None);
                return output.assign(&result.reduce(reduction, compute, axes, keep_axes)?);
            }
            let how = (reduction, compute, Epilogue::Identity);
            queue_reduction(how, &reduced, Combined::Elements(self), output)
        })
    }

    /// Copies the elements to `output`, on the stream of `output`.
    ///
    /// # Errors
    /// `InvalidArgument` unless `output` has the same shape, is on the same device and does not repeat
    /// elements; `InvalidType` if the elements cannot be cast to the type of `output` (numpy's rule `same_kind`).
    pub fn copy_into(&self, output: &Array) -> Result<()> {
        self.during(|| {
            check_same_kind(self.dtype, output.dtype)?;
            output.check_receives(self.shape(), self)?;
            output.assign(self)
        })
    }

    /// Checks that this array can receive a result of `shape` that is computed from `input`.
    pub(super) fn check_receives(&self, shape: &[usize], input: &Array) -> Result<()> {
        self.check_same_device(input)?;
        if self.shape() != shape {
            return Err(Error::invalid(
                "output",
                format!(
                    "the output has shape {}; the result has shape {}",
                    shape_text(self.shape()),
                    shape_text(shape)
                ),
            ));
        }
        self.check_writable()
    }

    /// Returns the sum of the products of corresponding elements, computed in the type `compute`, as an array without
    /// axes.
    ///
    /// # Errors
    /// `InvalidArgument` unless both arrays have the same shape and device; `OutOfMemory`.
    pub fn dot(&self, other: &Array, compute: DType) -> Result<Array> {
        self.during(|| {
            check_numeric(self.dtype, compute)?;
            check_numeric(other.dtype, compute)?;
            self.check_same_device(other)?;
            if self.shape() != other.shape() {
                return Err(Error::invalid(
                    "dot",
                    format!(
                        "shapes {} and {} are not the same",
                        shape_text(self.shape()),
                        shape_text(other.shape())
                    ),
                ));
            }
            let reduced = reduced_axes(&self.layout, None)?;
            let output = self.new_result(&[], compute)?;
            let how = (Reduction::Sum, compute, Epilogue::Identity);
            queue_reduction(how, &reduced, Combined::Products(self, other), &output)?;
            Ok(output)
        })
    }

    /// Combines the elements at `subset`, a one-dimensional array of flat indices, into an array without axes.
    /// An index outside the array reads zero.
    ///
    /// # Errors
    /// As for [`Array::reduce`] and [`Array::take`].
    pub fn reduce_subset(
        &self,
        reduction: Reduction,
        compute: DType,
        subset: &Array,
    ) -> Result<Array> {
        self.during(|| {
            check_numeric(self.dtype, compute)?;
            let flat = self.reshape(&[-1], Order::C)?;
            let source = flat.indexed(subset, 0)?;
            check_not_empty(subset.shape(), reduction, &reduced_axes(&subset.layout, None)?)?;
            let output = self.new_result(&[], reduction.result(compute))?;
            let operation = Operation::new(Reduce {
                reduction,
                compute,
                shape: Shape::from_slice(subset.shape()),
                input: Mapped::Indexed(source),
                output: output.operand(SmallVec::from_elem(0, subset.ndim()), 0),
                epilogue: Epilogue::Identity,
            })?;
            output.queue(&operation, &[&flat, subset])?;
            Ok(output)
        })
    }

    pub(super) fn new_result(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        let layout = Layout::contiguous(shape, dtype.size(), Order::C)?;
        self.new_array(layout, dtype)
    }

    /// Queues an operation that reads `inputs` and writes this array, after all checks.
    pub(super) fn queue(&self, operation: &Operation, inputs: &[&Array]) -> Result<()> {
        self.check_new(inputs.iter().copied())?;
        let mut uses: SmallVec<[Use<'_>; 5]> = SmallVec::new();
        uses.push((&self.memory, Access::Write));
        uses.extend(inputs.iter().map(|array| (&array.memory, Access::Read)));
        self.stream().wait_for_room();
        let _guard = AccessGuard::acquire(self.stream(), &uses)?;
        // SAFETY: the callers in this module build operations from layouts that are inside their memory, with
        // outputs that do not overlap the inputs; the guard orders the work.
        let execute = || unsafe { self.stream().execute(operation) };
        recording::queued(self.stream().as_ref(), || Work::operation(operation), execute)
    }
}

/// Refuses reductions whose value is not one of the elements.
pub(super) fn check_extreme(reduction: Reduction) -> Result<()> {
    if matches!(reduction, Reduction::Minimum | Reduction::Maximum) {
        return Ok(());
    }
    let detail = format!("reduction is {reduction:?}; allowed are Minimum and Maximum");
    Err(Error::invalid("position", detail))
}

/// Queues a reduction after all checks. The axes of `output` are either the kept axes or all axes.
pub(super) fn queue_reduction(
    (reduction, compute, epilogue): (Reduction, DType, Epilogue),
    reduced: &[bool],
    combined: Combined<'_>,
    output: &Array,
) -> Result<()> {
    if output.size() == 0 {
        return Ok(());
    }
    let (layout, arrays) = (combined.layout(), combined.arrays());
    let layouts: SmallVec<[&Layout; 2]> = match &combined {
        Combined::Values(layout, ..) => smallvec![*layout],
        _ => arrays.iter().map(|array| &array.layout).collect(),
    };
    let is_flat = reduced.iter().all(|&is_reduced| is_reduced)
        && layouts.iter().all(|layout| layout.is_c_contiguous());
    let (shape, strides, moved) = if is_flat {
        let along = |layout: &&Layout| smallvec![layout.itemsize() as isize];
        let strides = std::iter::once(smallvec![0]).chain(layouts.iter().map(along)).collect();
        (smallvec![layout.size()], strides, smallvec![0; layouts.len() + 1])
    } else {
        let has_positions = combined.is_positions();
        reduction_axes(reduced, &layouts, has_positions, output)
    };
    let mut ways = strides.into_iter().zip(moved);
    let mut operand = |array: &Array| {
        let (strides, moved) = ways.next().unwrap_or_default();
        array.operand(strides, moved)
    };
    let output_operand = operand(output);
    let input = match combined {
        Combined::Elements(array) => Mapped::Identity(operand(array)),
        Combined::Products(first, second) => Mapped::Product(operand(first), operand(second)),
        Combined::SquaredDeviations(array) => Mapped::SquaredDeviation(operand(array)),
        Combined::Positions(array) => Mapped::Position(operand(array)),
        Combined::Values(_, mut values, _) => {
            values.values.strides = ways.next().unwrap_or_default().0;
            Mapped::Formula(Box::new(values))
        }
    };
    let reduce = Reduce { reduction, compute, shape, input, output: output_operand, epilogue };
    output.queue(Operation::seal(&mut Description::Reduce(reduce))?, &arrays)
}

/// Returns the simplified extents of a reduction, and the strides and offsets of the output and of each input.
fn reduction_axes(
    reduced: &[bool],
    inputs: &[&Layout],
    has_positions: bool,
    output: &Array,
) -> (Shape, SmallVec<[Strides; 3]>, Moves) {
    // Strides of the output along the axes of the input.
    let keeps_axes = output.ndim() == reduced.len();
    let mut along = output.strides().iter();
    let mut stride = |is_reduced: bool| {
        let own = if is_reduced && !keeps_axes { None } else { along.next() };
        if is_reduced { 0 } else { own.copied().unwrap_or(0) }
    };
    let mut strides: SmallVec<[Strides; 3]> = SmallVec::new();
    strides.push(reduced.iter().map(|&is_reduced| stride(is_reduced)).collect());
    strides.extend(inputs.iter().map(|layout| Strides::from_slice(layout.strides())));
    if has_positions {
        // Positions count from the first element, so the axis must not be reversed.
        strides.push(reduced.iter().map(|&is_reduced| isize::from(is_reduced)).collect());
    }
    let shape = inputs.first().map_or(&[][..], |layout| layout.shape());
    let (shape, moved) = simplify(shape, &mut strides);
    (shape, strides, moved)
}

/// Returns, for each axis, whether a reduction along `axes` (all axes if `None`) combines it.
pub(super) fn reduced_axes(layout: &Layout, axes: Option<&[isize]>) -> Result<SmallVec<[bool; 8]>> {
    let ndim = layout.shape().len();
    let Some(axes) = axes else {
        return Ok(SmallVec::from_elem(true, ndim));
    };
    let mut reduced: SmallVec<[bool; 8]> = SmallVec::from_elem(false, ndim);
    for &axis in axes {
        let place = &mut reduced[layout.normalize_axis(axis)?];
        if std::mem::replace(place, true) {
            return Err(Error::invalid(
                "axis",
                format!("duplicate value in axis: {axis} is named twice"),
            ));
        }
    }
    Ok(reduced)
}

/// Returns a shape without the reduced axes, or with extent 1 there.
pub(super) fn shape_without(shape: &[usize], reduced: &[bool], keep_axes: bool) -> Shape {
    let axes = reduced.iter().zip(shape);
    axes.filter(|(is_reduced, _)| keep_axes || !**is_reduced)
        .map(|(&is_reduced, &extent)| if is_reduced { 1 } else { extent })
        .collect()
}

/// Returns the number of elements that are combined into one.
pub(super) fn combined_elements(layout: &Layout, axes: Option<&[isize]>) -> Result<usize> {
    let reduced = reduced_axes(layout, axes)?;
    let extents = reduced.iter().zip(layout.shape()).filter(|(is_reduced, _)| **is_reduced);
    Ok(extents.map(|(_, extent)| extent).product())
}

/// Refuses to reduce no elements by a reduction that has no identity.
pub(super) fn check_not_empty(
    shape: &[usize],
    reduction: Reduction,
    reduced: &[bool],
) -> Result<()> {
    if shape.contains(&0)
        && !shape_without(shape, reduced, false).contains(&0)
        && !reduction.has_identity()
    {
        return Err(Error::invalid(
            "reduce",
            format!(
                "zero-size array of shape {} to reduction operation {} which has no identity",
                shape_text(shape),
                reduction.name()
            ),
        ));
    }
    Ok(())
}

/// Refuses records, and a complex input for a real computation.
pub(super) fn check_numeric(dtype: DType, compute: DType) -> Result<()> {
    let allowed = dtype.kind() != Kind::Opaque && compute.kind() != Kind::Opaque;
    if allowed {
        return BinaryFunction::Multiply.signature(compute).map(|_| ());
    }
    Err(Error::invalid_type(
        "reduce",
        format!("elements of {dtype} cannot be combined as {compute}"),
    ))
}

impl Array {
    /// Describes this array indexed along `axis`. The iteration has this array's axes, with `axis` replaced
    /// by the axes of `indices`.
    pub(super) fn indexed(&self, indices: &Array, axis: usize) -> Result<Indexed> {
        self.check_same_device(indices)?;
        if !indices.dtype.is_integer() {
            return Err(Error::invalid_type(
                "indices",
                format!("indices have dtype {}; an integer dtype is needed", indices.dtype),
            ));
        }
        let (before, after) = (axis, self.ndim() - axis - 1);
        let zeros = |count: usize| std::iter::repeat_n(0isize, count);
        let strides = self.strides();
        let base: Strides = strides[..before]
            .iter()
            .copied()
            .chain(zeros(indices.ndim()))
            .chain(strides[axis + 1..].iter().copied())
            .collect();
        let along: Strides =
            zeros(before).chain(indices.strides().iter().copied()).chain(zeros(after)).collect();
        Ok(Indexed {
            base: self.operand(base, 0),
            indices: indices.operand(along, 0),
            axis_length: self.shape()[axis],
            axis_stride: strides[axis],
        })
    }
}
