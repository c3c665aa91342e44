//! Iteration spaces in the form that kernels take: axes simplified, packed by value.

use super::launches::LaunchBuilder;
use hal::error::{Error, Result};
use hal::iteration::simplify;
use hal::operation::{Formula, Operand, Shape, Strides};
use smallvec::SmallVec;

/// The maximum number of axes of a kernel: with three strides each, they fill the 4 KiB of kernel
/// arguments that every device accepts.
pub(super) const MAX_RANK: usize = 64;

/// The bytes of kernel arguments that every device accepts.
const ARGUMENT_BYTES: usize = 4096;

/// The axes of an operation. For each operand, the strides, and the offset of its address after
/// simplification.
#[derive(Debug, Default)]
pub(super) struct IterationSpace {
    pub(super) shape: Shape,
    pub(super) strides: SmallVec<[Strides; 5]>,
    moves: SmallVec<[isize; 5]>,
}

impl IterationSpace {
    /// Returns the space of `shape` with the given strides, simplified.
    ///
    /// # Errors
    /// `InvalidArgument` if strides and shape differ in length, `Overflow` if the extents'
    /// product does not fit, `Unsupported` if more than 64 axes are left.
    pub(super) fn new(shape: &[usize], strides: &[&[isize]]) -> Result<IterationSpace> {
        let mut space = IterationSpace::default();
        space.fill(shape, strides, |_| true)?;
        Ok(space)
    }

    /// Fills an empty space with the axes of `shape` that `takes` selects, simplified. (Returning a
    /// space would take longer than building one.)
    ///
    /// # Errors
    /// As for [`IterationSpace::new`].
    pub(super) fn fill(
        &mut self,
        shape: &[usize],
        strides: &[&[isize]],
        takes: impl Fn(usize) -> bool,
    ) -> Result<()> {
        if shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent)).is_none() {
            return Err(Error::overflow(
                "operation",
                format!("shape {shape:?} has more elements than {}", usize::MAX),
            ));
        }
        let taken = |&axis: &usize| shape[axis] != 1 && takes(axis);
        self.shape.extend((0..shape.len()).filter(taken).map(|axis| shape[axis]));
        for list in strides {
            let list = (0..shape.len()).filter(taken).map(|axis| list[axis]);
            self.strides.push(list.collect());
        }
        if self.is_simple() {
            self.moves.resize(strides.len(), 0);
        } else {
            (self.shape, self.moves) = simplify(&self.shape, &mut self.strides);
        }
        if self.shape.len() > MAX_RANK {
            return Err(Error::unsupported(
                "operation",
                format!(
                    "the operation has ndim {} after axes are merged; a kernel can have at most \
                     {MAX_RANK}: copy an operand first",
                    self.shape.len()
                ),
            ));
        }
        Ok(())
    }

    /// Returns true if there is certainly nothing to simplify, as in most operations of the array
    /// layer.
    fn is_simple(&self) -> bool {
        let backwards = |axis: usize| {
            self.strides.iter().all(|list| list[axis] <= 0)
                && self.strides.iter().any(|list| list[axis] < 0)
        };
        let ordered = |axis: usize| {
            let first = &self.strides[0];
            let joins = |list: &Strides| {
                list[axis + 1].checked_mul(self.shape[axis + 1] as isize) == Some(list[axis])
            };
            first[axis].unsigned_abs() > first[axis + 1].unsigned_abs()
                && !self.strides.iter().all(joins)
        };
        let rank = self.shape.len();
        !(0..rank).any(backwards) && (1..rank).all(|axis| ordered(axis - 1))
    }

    /// Returns the number of elements. It only saturates if an axis that this space does not have is empty.
    pub(super) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count, &extent| count.saturating_mul(extent as u64))
    }

    /// Returns the start address for an operand's strides.
    pub(super) fn address(&self, position: usize, operand: &Operand) -> u64 {
        self.moved(position, operand.address)
    }

    /// Returns `address` plus this space's offset for the operand at `position`.
    pub(super) fn moved(&self, position: usize, address: u64) -> u64 {
        address.wrapping_add_signed(self.moves[position] as i64)
    }

    /// Returns the class of the number of axes; each class has separate code.
    pub(super) fn rank(&self) -> u8 {
        match self.shape.len() {
            0 | 1 => 1,
            rank @ 2..=4 => rank as u8,
            5..=8 => 8,
            _ => MAX_RANK as u8,
        }
    }

    /// Returns true if indices or offsets need 64 bits.
    pub(super) fn wide(&self) -> bool {
        const LIMIT: u64 = 1 << 31;
        let reach = |strides: &Strides| {
            let axes = strides.iter().zip(&self.shape);
            axes.fold(0_u64, |reach, (stride, &extent)| {
                let last = extent.saturating_sub(1) as u64;
                reach.saturating_add((stride.unsigned_abs() as u64).saturating_mul(last))
            })
        };
        self.count() >= LIMIT || self.strides.iter().any(|strides| reach(strides) >= LIMIT)
    }

    /// Checks that a space of this many operands fits into the arguments of a kernel.
    ///
    /// # Errors
    /// `Unsupported` if it does not.
    #[inline]
    pub(super) fn check_size(&self, wide: bool, operands: usize) -> Result<()> {
        let rank = usize::from(self.rank());
        if rank <= 8 || operands <= 3 {
            return Ok(());
        }
        let word = if wide { 8 } else { 4 };
        // The arguments after the space are an address for each array, and numbers of up to 16 bytes.
        let bytes = (2 + rank * (1 + operands)) * word + 8 * operands + 16 * Formula::MOST_INPUTS;
        if bytes <= ARGUMENT_BYTES {
            return Ok(());
        }
        let detail = format!(
            "the number of operands is {operands} and of axes {}; the arguments of a kernel cannot hold them",
            self.shape.len()
        );
        Err(Error::unsupported("operation", detail))
    }

    /// Moves an axis inwards to `position`.
    pub(super) fn move_axis(&mut self, axis: usize, position: usize) {
        if axis < position {
            self.shape[axis..=position].rotate_left(1);
            for list in &mut self.strides {
                list[axis..=position].rotate_left(1);
            }
        }
    }

    /// Packs the `struct Space` of the generated source.
    pub(super) fn pack(&self, launch: &mut LaunchBuilder<'_>, rank: u8, wide: bool) {
        let padding = usize::from(rank).saturating_sub(self.shape.len());
        let ones = std::iter::repeat_n(1, padding);
        let zeros = std::iter::repeat_n(0, padding);
        let head = [self.count(), self.shape.len().max(1) as u64];
        let extents = ones.chain(self.shape.iter().map(|&extent| extent as u64));
        let divisors = extents.clone().skip(if has_factors(rank) { 1 } else { usize::MAX });
        let strides = self
            .strides
            .iter()
            .flat_map(|list| zeros.clone().chain(list.iter().map(|&stride| stride as i64 as u64)));
        let values = head.into_iter().chain(extents);
        let values = values.chain(divisors.clone().map(|divisor| factor(divisor, wide)));
        launch.indices(values.chain(divisors.map(shift)).chain(strides), wide);
    }
}

/// Returns true for the classes that divide by multiplication. With more axes, the factors would
/// exceed the 4 KiB; a single axis needs no division.
const fn has_factors(rank: u8) -> bool {
    rank > 1 && rank <= 8
}

/// Returns the number of bits by which a product with [`factor`] is shifted, after dropping its low
/// half.
const fn shift(divisor: u64) -> u64 {
    match divisor {
        0 | 1 => 0,
        _ => 64 - (divisor - 1).leading_zeros() as u64,
    }
}

/// Returns `2^(bits - 1 + shift) / divisor` rounded up, for 32-bit or 64-bit indices. The high half
/// of its product with `2 n`, shifted, is `n / divisor` for every `n` below `2^(bits - 1)`, because
/// the rounding adds less than `n / 2^(bits - 1)` of `1 / divisor`.
const fn factor(divisor: u64, wide: bool) -> u64 {
    let bits = if wide { 63 } else { 31 };
    match divisor {
        0 => 0,
        _ if divisor.is_power_of_two() => 1 << bits,
        // A longer axis without wide indices is one of an empty space.
        _ if wide || divisor >= 1 << 32 => {
            ((1_u128 << (bits + shift(divisor))).div_ceil(divisor as u128)) as u64
        }
        _ => (1_u64 << (bits + shift(divisor))).div_ceil(divisor),
    }
}

/// Returns the generated source's type of a space.
pub(super) fn type_name(rank: u8, operands: usize, wide: bool) -> String {
    let (index, offset) = super::ctype::index(wide);
    format!("Space<{index}, {offset}, {rank}, {operands}>")
}

#[cfg(test)]
mod tests {
    use super::{factor, shift};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn quotients_by_factors_are_exact(
            small in 1_u64..1 << 31, exponent in 0_u32..31, offset in -1_i64..2, n in 0_u64..1 << 31,
            large in 1_u64..1 << 63, m in 0_u64..1 << 63, times in 0_u64..1 << 31,
        ) {
            let near = ((1_i64 << exponent) + offset).clamp(1, (1 << 31) - 1) as u64;
            for divisor in [small, near] {
                // At and just before a change of the quotient, and at the ends.
                let last = (1 << 31) - 1;
                let edge = (divisor * (times % (last / divisor + 1))).min(last);
                for n in [n, edge, edge.saturating_sub(1), last] {
                    let high = (u128::from(2 * n) * u128::from(factor(divisor, false))) >> 32;
                    prop_assert!(factor(divisor, false) < 1 << 32);
                    prop_assert_eq!((high >> shift(divisor)) as u64, n / divisor);
                }
            }
            for divisor in [small, near, large] {
                let last = (1_u64 << 63) - 1;
                let edge = divisor * (m % (last / divisor + 1));
                for n in [m, edge, edge.saturating_sub(1), last] {
                    let high = (u128::from(2 * n) * u128::from(factor(divisor, true))) >> 64;
                    prop_assert_eq!((high >> shift(divisor)) as u64, n / divisor);
                }
            }
        }
    }
}
