//! Matrix products.

use super::Array;
use super::promote::check_same_kind;
use super::reduce::{Combined, check_numeric, queue_reduction, reduced_axes};
use crate::layout::{IndexItem, SliceBounds, broadcast_shapes, shape_text};
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::Reduction;
use hal::operation::{Epilogue, MatrixProduct, Operation, Shape, Strides};
use smallvec::SmallVec;

impl Array {
    /// Returns the matrix product of this array and `other` by numpy's rules, in the type `compute`.
    /// The last two axes are the axes of the matrices; the axes before them are broadcast. A
    /// one-dimensional array is a row on the left or a column on the right, and the result lacks that
    /// axis.
    ///
    /// A product with a row or a column is a reduction, and as precise as one. In all other products, the
    /// terms of a sum are added sequentially within blocks, as linear algebra libraries do.
    ///
    /// # Errors
    /// `InvalidArgument` for an array without axes, rows and columns of different lengths, axes that
    /// do not broadcast, and another device; `InvalidType` for records; `OutOfMemory`.
    pub fn matmul(&self, other: &Array, compute: DType) -> Result<Array> {
        self.during(|| {
            let factors = Factors::new(self, other, compute)?;
            let output = self.new_result(&factors.result, compute)?;
            factors.queue(compute, &output)?;
            Ok(output)
        })
    }

    /// Like [`Array::matmul`], but stores the product in `output`, on the stream of `output`.
    ///
    /// # Errors
    /// As for [`Array::matmul`]; `InvalidArgument` unless `output` has the shape of the result, is on
    /// this array's device and does not repeat elements; `InvalidType` if `compute` cannot be cast to
    /// the type of `output` (numpy's rule `same_kind`).
    pub fn matmul_into(&self, other: &Array, compute: DType, output: &Array) -> Result<()> {
        self.during(|| {
            let factors = Factors::new(self, other, compute)?;
            check_same_kind(compute, output.dtype)?;
            output.check_receives(&factors.result, self)?;
            if output.overlaps(self) || output.overlaps(other) {
                let result = self.on(output.stream())?.with_allocator(None);
                return output.assign(&result.matmul(other, compute)?);
            }
            factors.queue(compute, output)
        })
    }
}

/// The factors of a product, as views over the axes of the result followed by the axis of the terms.
struct Factors {
    left: Array,
    right: Array,
    /// The shape of the product.
    result: Shape,
    /// True if both are matrices.
    are_matrices: bool,
}

impl Factors {
    fn new(left: &Array, right: &Array, compute: DType) -> Result<Factors> {
        check_numeric(left.dtype, compute)?;
        check_numeric(right.dtype, compute)?;
        left.check_same_device(right)?;
        let refused = || {
            let (left, right) = (shape_text(left.shape()), shape_text(right.shape()));
            Error::invalid("matmul", format!("shapes {left} and {right} have no matrix product"))
        };
        let columns = match right.ndim() {
            0 => return Err(refused()),
            1 => right.clone(),
            axes => {
                let mut order: SmallVec<[usize; 8]> = (0..axes).collect();
                order.swap(axes - 2, axes - 1);
                right.transpose(Some(&order))?
            }
        };
        if left.ndim() == 0 || left.shape().last() != columns.shape().last() {
            return Err(refused());
        }
        let all = || IndexItem::Slice(SliceBounds::default());
        let are_matrices = left.ndim() > 1 && right.ndim() > 1;
        let [mut left, mut right] = [left.clone(), columns];
        if are_matrices {
            left = left.index(&[IndexItem::Ellipsis, IndexItem::NewAxis, all()])?;
            right = right.index(&[IndexItem::Ellipsis, IndexItem::NewAxis, all(), all()])?;
        }
        let shape = broadcast_shapes(left.shape(), right.shape()).map_err(|_| refused())?;
        let [left, right] = [left.broadcast_to(&shape)?, right.broadcast_to(&shape)?];
        let result = shape[..shape.len() - 1].into();
        Ok(Factors { left, right, result, are_matrices })
    }

    /// Queues the product after all checks.
    fn queue(&self, compute: DType, output: &Array) -> Result<()> {
        let Factors { left, right, .. } = self;
        match left.shape() {
            // Each element of a matrix is used as often as the other matrix has rows or columns.
            [batch @ .., rows @ (2..), columns @ (2..), terms @ (1..)] if self.are_matrices => {
                if output.size() == 0 {
                    return Ok(());
                }
                let operation = Operation::new(MatrixProduct {
                    compute,
                    batch: batch.into(),
                    rows: *rows,
                    terms: *terms,
                    columns: *columns,
                    left: left.operand(picked(left, [3, 1]), 0),
                    right: right.operand(picked(right, [1, 2]), 0),
                    output: output.operand(Strides::from_slice(output.strides()), 0),
                })?;
                output.queue(&operation, &[left, right])
            }
            _ => {
                let reduced = reduced_axes(left.layout(), Some(&[-1]))?;
                let how = (Reduction::Sum, compute, Epilogue::Identity);
                queue_reduction(how, &reduced, Combined::Products(left, right), output)
            }
        }
    }
}

/// Returns the strides of the axes before the last three, then the strides of two axes counted from
/// the end.
fn picked(array: &Array, axes: [usize; 2]) -> Strides {
    let strides = array.strides();
    let count = strides.len();
    let outer = strides[..count - 3].iter();
    outer.copied().chain(axes.map(|axis| strides[count - axis])).collect()
}
