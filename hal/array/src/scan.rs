//! Running values along an axis.

use super::Array;
use super::promote::check_same_kind;
use super::reduce::check_numeric;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{Reduction, Start};
use hal::operation::{Operation, Scan, Shape, Strides};
use hal::scalar::Scalar;

impl Array {
    /// Returns the running values of a reduction, such as cumulative sums, along an axis, in a new
    /// array of type `compute`.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidType` if the reduction does not
    /// have a running form or is not defined for the type; `InvalidArgument` for an exclusive
    /// minimum or maximum without `initial`; `OutOfMemory`.
    pub fn scan(
        &self,
        reduction: Reduction,
        compute: DType,
        axis: isize,
        exclusive: bool,
        initial: Option<Scalar>,
    ) -> Result<Array> {
        self.during(|| {
            let axis = self.check_scan(reduction, compute, axis)?;
            let initial = initial_value(reduction, compute, exclusive, initial)?;
            let output = self.empty_like(compute)?;
            self.queue_scan((reduction, compute), axis, exclusive, initial, &output)?;
            Ok(output)
        })
    }

    /// Like [`Array::scan`], but stores the values in `output`, on the stream of `output`. This
    /// array may be the output.
    ///
    /// # Errors
    /// As for [`Array::scan`] and [`Array::copy_into`].
    pub fn scan_into(
        &self,
        reduction: Reduction,
        compute: DType,
        axis: isize,
        exclusive: bool,
        initial: Option<Scalar>,
        output: &Array,
    ) -> Result<()> {
        self.during(|| {
            let place = self.check_scan(reduction, compute, axis)?;
            let first = initial_value(reduction, compute, exclusive, initial)?;
            check_same_kind(compute, output.dtype)?;
            output.check_receives(self.shape(), self)?;
            if output.overlaps(self) {
                let input = self.on(output.stream())?.with_allocator(None);
                return output.assign(&input.scan(reduction, compute, axis, exclusive, initial)?);
            }
            self.queue_scan((reduction, compute), place, exclusive, first, output)
        })
    }

    fn check_scan(&self, reduction: Reduction, compute: DType, axis: isize) -> Result<usize> {
        check_numeric(self.dtype, compute)?;
        if matches!(reduction, Reduction::Any | Reduction::All) {
            return Err(Error::invalid_type(
                "scan",
                format!(
                    "reduction is {reduction:?}; allowed are Sum, Product, Minimum and Maximum"
                ),
            ));
        }
        self.layout.normalize_axis(axis)
    }

    /// Queues a scan after all checks.
    fn queue_scan(
        &self,
        (reduction, compute): (Reduction, DType),
        axis: usize,
        exclusive: bool,
        initial: Scalar,
        output: &Array,
    ) -> Result<()> {
        if output.size() == 0 {
            return Ok(());
        }
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
        output.queue(&operation, &[self])
    }
}

/// Returns the start value of a scan.
fn initial_value(
    reduction: Reduction,
    compute: DType,
    exclusive: bool,
    initial: Option<Scalar>,
) -> Result<Scalar> {
    match initial {
        Some(value) => value.cast(compute),
        None if exclusive && !reduction.has_identity() => Err(Error::invalid(
            "scan",
            format!("initial is None; an exclusive scan by {reduction:?} needs a value"),
        )),
        None => Scalar::new(reduction.start() == Start::One).cast(compute),
    }
}
