//! Products of matrices.

use super::Array;
use super::promote::check_same_kind;
use super::reduce::check_numeric;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::Reduction;
use crate::layout::{IndexItem, SliceBounds, broadcast_shapes, shape_text};
use smallvec::SmallVec;

impl Array {
    /// Returns the product of matrices, computed in `compute`: the sums of the products of rows of
    /// this array and columns of the other, by numpy's rules. The last two axes are those of the
    /// matrices; the axes before them are broadcast. An array of one axis is a row on the left, a
    /// column on the right, and the result lacks that axis.
    ///
    /// The product is a reduction of strided operands, with the precision of reductions. Each element
    /// is computed on its own, so that large matrices are read from the caches many times.
    ///
    /// # Errors
    /// `InvalidArgument` for an array without axes, rows and columns of different lengths, axes that
    /// do not broadcast, and another device; `InvalidType` for records; `OutOfMemory`.
    pub fn matmul(&self, other: &Array, compute: DType) -> Result<Array> {
        self.note((|| {
            let [left, right] = self.factors(other, compute)?;
            left.sum_products(&right, compute, Some(&[-1]), false)
        })())
    }

    /// Stores in `output`, on its stream, what [`Array::matmul`] returns.
    ///
    /// # Errors
    /// Those of [`Array::matmul`]; `InvalidArgument` unless `output` has the shape of the result, is
    /// on this array's device and names each of its elements once; `InvalidType` if `compute` does
    /// not fit its type within their kind.
    pub fn matmul_into(&self, other: &Array, compute: DType, output: &Array) -> Result<()> {
        self.note((|| {
            let [left, right] = self.factors(other, compute)?;
            check_same_kind(compute, output.dtype)?;
            let reduced = left.reduced_axes(Some(&[-1]))?;
            output.check_receives(&left.shape_without(&reduced, false), self)?;
            if output.overlaps(self) || output.overlaps(other) {
                let result = self.on(output.stream())?.with_allocator(None);
                return output.assign(&result.matmul(other, compute)?);
            }
            left.queue_reduction((Reduction::Sum, compute), &reduced, Some(&right), output)
        })())
    }

    /// Returns views of both arrays over the axes of their product, and the axis of its terms.
    fn factors(&self, other: &Array, compute: DType) -> Result<[Array; 2]> {
        check_numeric(self.dtype, compute)?;
        check_numeric(other.dtype, compute)?;
        self.check_same_device(other)?;
        let refused = || {
            let (left, right) = (shape_text(self.shape()), shape_text(other.shape()));
            Error::invalid("matmul", format!("shapes {left} and {right} have no matrix product"))
        };
        let columns = match other.ndim() {
            0 => return Err(refused()),
            1 => other.clone(),
            axes => {
                let mut order: SmallVec<[usize; 8]> = (0..axes).collect();
                order.swap(axes - 2, axes - 1);
                other.transpose(Some(&order))?
            }
        };
        if self.ndim() == 0 || self.shape().last() != columns.shape().last() {
            return Err(refused());
        }
        let all = || IndexItem::Slice(SliceBounds::default());
        let [mut left, mut right] = [self.clone(), columns];
        if self.ndim() > 1 && other.ndim() > 1 {
            left = left.index(&[IndexItem::Ellipsis, IndexItem::NewAxis, all()])?;
            right = right.index(&[IndexItem::Ellipsis, IndexItem::NewAxis, all(), all()])?;
        }
        let shape = broadcast_shapes(left.shape(), right.shape()).map_err(|_| refused())?;
        Ok([left.broadcast_to(&shape)?, right.broadcast_to(&shape)?])
    }
}
