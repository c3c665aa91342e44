//! Reductions and scans.

use super::Array;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::{BinaryFunction, Reduction};
use crate::iteration::simplify;
use crate::layout::{Layout, Order, shape_text};
use crate::memory::{Access, AccessGuard, Use};
use crate::operation::{Indexed, Mapped, Operation, Reduce, Scan, Shape, Strides};
use crate::scalar::Scalar;
use smallvec::SmallVec;

impl Array {
    /// Combines the elements along `axes` (all axes without it) in the type `compute`, into
    /// a new array without those axes, or with extent 1 there if `keep_axes`.
    ///
    /// # Errors
    /// `IndexOutOfRange` or `InvalidArgument` for axes that do not exist or repeat;
    /// `InvalidArgument` for the minimum or maximum of no elements; `InvalidType` where the
    /// reduction is not defined for `compute`; `OutOfMemory`.
    pub fn reduce(
        &self,
        reduction: Reduction,
        compute: DType,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        self.note((|| {
            check_numeric(self.dtype, compute)?;
            let reduced = self.reduced_axes(axes)?;
            let kept: Shape =
                reduced.iter().zip(self.shape()).filter(|(r, _)| !**r).map(|p| *p.1).collect();
            let dtype = reduction.result(compute);
            self.check_not_empty(reduction, &kept)?;
            let output = self.new_result(&kept, dtype)?;
            // Strides of the output along the axes of the input.
            let mut along = output.strides().iter();
            let strides: Strides = reduced
                .iter()
                .map(|&r| if r { 0 } else { along.next().copied().unwrap_or(0) })
                .collect();
            if output.size() > 0 {
                let mut all = [strides, Strides::from_slice(self.strides())];
                let (shape, moved) = simplify(self.shape(), &mut all);
                let [to, from] = all;
                let input = Mapped::Identity(self.operand(from, moved[1]));
                let output_operand = output.operand(to, moved[0]);
                let operation = Operation::new(Reduce {
                    reduction,
                    compute,
                    shape,
                    input,
                    output: output_operand,
                })?;
                output.queue(&operation, &[self])?;
            }
            if !keep_axes {
                return Ok(output);
            }
            let with_ones: SmallVec<[isize; 4]> = reduced
                .iter()
                .zip(self.shape())
                .map(|(&r, &extent)| if r { 1 } else { extent as isize })
                .collect();
            output.reshape(&with_ones, Order::C)
        })())
    }

    /// Returns the sum of the products of corresponding elements, computed in `compute`, as an
    /// array without axes.
    ///
    /// # Errors
    /// `InvalidArgument` unless the shapes are the same and the device too; `OutOfMemory`.
    pub fn dot(&self, other: &Array, compute: DType) -> Result<Array> {
        self.note((|| {
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
            let output = self.new_result(&[], compute)?;
            let mut all =
                [Strides::from_slice(self.strides()), Strides::from_slice(other.strides())];
            let (shape, moved) = simplify(self.shape(), &mut all);
            let to = SmallVec::from_elem(0, shape.len());
            let [a, b] = all;
            let operation = Operation::new(Reduce {
                reduction: Reduction::Sum,
                compute,
                shape,
                input: Mapped::Product(self.operand(a, moved[0]), other.operand(b, moved[1])),
                output: output.operand(to, 0),
            })?;
            output.queue(&operation, &[self, other])?;
            Ok(output)
        })())
    }

    /// Combines the elements that `subset`, a one-dimensional array of integers, names in
    /// this array read as one-dimensional, into an array without axes. An index outside the
    /// array names zero.
    ///
    /// # Errors
    /// Those of [`Array::reduce`] and [`Array::take`].
    pub fn reduce_subset(
        &self,
        reduction: Reduction,
        compute: DType,
        subset: &Array,
    ) -> Result<Array> {
        self.note((|| {
            check_numeric(self.dtype, compute)?;
            let flat = self.reshape(&[-1], Order::C)?;
            let source = flat.indexed(subset, 0)?;
            subset.check_not_empty(reduction, &[])?;
            let output = self.new_result(&[], reduction.result(compute))?;
            let operation = Operation::new(Reduce {
                reduction,
                compute,
                shape: Shape::from_slice(subset.shape()),
                input: Mapped::Indexed(source),
                output: output.operand(SmallVec::from_elem(0, subset.ndim()), 0),
            })?;
            output.queue(&operation, &[&flat, subset])?;
            Ok(output)
        })())
    }

    /// Returns running values along an axis, in a new array of type `compute`.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidType` where the reduction
    /// has no running form or is not defined for the type; `InvalidArgument` for an exclusive
    /// minimum or maximum without `initial`; `OutOfMemory`.
    pub fn scan(
        &self,
        reduction: Reduction,
        compute: DType,
        axis: isize,
        exclusive: bool,
        initial: Option<Scalar>,
    ) -> Result<Array> {
        self.note((|| {
            check_numeric(self.dtype, compute)?;
            if matches!(reduction, Reduction::Any | Reduction::All) {
                return Err(Error::invalid_type(
                    "scan",
                    format!("{reduction:?} has no running form"),
                ));
            }
            let axis = self.layout.normalize_axis(axis)?;
            let initial = match (initial, reduction) {
                (Some(value), _) => value.cast(compute)?,
                (None, Reduction::Sum) => Scalar::new(false).cast(compute)?,
                (None, Reduction::Product) => Scalar::new(true).cast(compute)?,
                (None, _) if exclusive => {
                    return Err(Error::invalid(
                        "scan",
                        format!("an exclusive {reduction:?} needs an initial value"),
                    ));
                }
                (None, _) => Scalar::new(false).cast(compute)?,
            };
            let output = self.empty_like(compute)?;
            if output.size() > 0 {
                let operation = Operation::new(Scan {
                    reduction,
                    compute,
                    shape: Shape::from_slice(self.shape()),
                    axis,
                    exclusive,
                    initial,
                    input: self.operand(Strides::from_slice(self.strides()), 0),
                    output: output.operand(Strides::from_slice(output.strides()), 0),
                })?;
                output.queue(&operation, &[self])?;
            }
            Ok(output)
        })())
    }

    fn reduced_axes(&self, axes: Option<&[isize]>) -> Result<SmallVec<[bool; 8]>> {
        let Some(axes) = axes else {
            return Ok(SmallVec::from_elem(true, self.ndim()));
        };
        let mut reduced: SmallVec<[bool; 8]> = SmallVec::from_elem(false, self.ndim());
        for &axis in axes {
            let place = &mut reduced[self.layout.normalize_axis(axis)?];
            if std::mem::replace(place, true) {
                return Err(Error::invalid("axis", format!("axis {axis} is named twice")));
            }
        }
        Ok(reduced)
    }

    fn check_not_empty(&self, reduction: Reduction, kept: &[usize]) -> Result<()> {
        if self.size() == 0 && !kept.contains(&0) && !reduction.has_identity() {
            return Err(Error::invalid(
                "reduce",
                format!(
                    "zero-size array of shape {} to reduction operation {reduction:?} which has \
                     no identity",
                    shape_text(self.shape())
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn new_result(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        let layout = Layout::contiguous(shape, dtype.size(), Order::C)?;
        self.new_array(layout, dtype)
    }

    /// Queues an operation that reads `inputs` and writes this array; all has been checked.
    pub(super) fn queue(&self, operation: &Operation, inputs: &[&Array]) -> Result<()> {
        self.check_new(inputs.iter().copied())?;
        let mut uses: SmallVec<[Use<'_>; 5]> = SmallVec::new();
        uses.push((&self.memory, Access::Write));
        uses.extend(inputs.iter().map(|array| (&array.memory, Access::Read)));
        self.stream().wait_for_room();
        let _guard = AccessGuard::acquire(self.stream(), &uses)?;
        // SAFETY: the callers in this module build operations from layouts that lie inside
        // their memories, with outputs apart from the inputs; the guard orders the work.
        unsafe { self.stream().execute(operation) }
    }
}

/// Refuses records, and a complex input for a real computation.
fn check_numeric(dtype: DType, compute: DType) -> Result<()> {
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
    /// This array seen through an array of indices along `axis`: the iteration has this
    /// array's axes, with `axis` replaced by those of `indices`.
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
