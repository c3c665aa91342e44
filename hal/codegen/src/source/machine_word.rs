//! Elements that are only moved, as machine words: records of any size, and copies between
//! equal types.

use super::iteration_space::IterationSpace;
use hal::dtype::{DType, Kind};
use hal::error::Result;
use hal::operation::Operand;
use hal::scalar::Scalar;

/// Returns the word that moves an element of a type that supports arithmetic.
pub(super) const fn of(dtype: DType) -> DType {
    match (dtype.kind(), dtype.size()) {
        (Kind::Complex | Kind::Opaque, _) => dtype,
        (_, 1) => DType::UInt8,
        (_, 2) => DType::UInt16,
        (_, 4) => DType::UInt32,
        _ => DType::UInt64,
    }
}

/// Returns the widest word that divides the size of a record of `bytes` bytes and all of
/// `address_terms`, its addresses and strides. 16 bytes are moved as a `Complex128`, which needs an
/// alignment of 8.
pub(super) fn of_record(bytes: u32, address_terms: impl Iterator<Item = u64>) -> DType {
    let address_bits = address_terms.fold(0, |all, term| all | term);
    let size = u64::from(bytes);
    if size % 16 == 0 && address_bits % 8 == 0 {
        return DType::Complex128;
    }
    match (size | address_bits).trailing_zeros() {
        0 => DType::UInt8,
        1 => DType::UInt16,
        2 => DType::UInt32,
        _ => DType::UInt64,
    }
}

/// Returns the address and the strides of an operand, without the unused strides of axes with one
/// element.
pub(super) fn address_terms<'a>(
    operand: &'a Operand,
    shape: &'a [usize],
) -> impl Iterator<Item = u64> + 'a {
    let strides = operand.strides.iter().zip(shape).filter(|(_, extent)| **extent > 1);
    std::iter::once(operand.address).chain(strides.map(|(stride, _)| *stride as u64))
}

/// Returns the operand with an additional axis for the words of its records.
pub(super) fn unfold(operand: &Operand, word: DType) -> Operand {
    let mut strides = operand.strides.clone();
    strides.push(word.size() as isize);
    Operand { address: operand.address, dtype: word, strides }
}

/// Returns the operand that consists of one word of each record, `offset` bytes from the record's
/// start.
pub(super) fn slice(operand: &Operand, word: DType, offset: usize) -> Operand {
    let address = operand.address.wrapping_add(offset as u64);
    Operand { address, dtype: word, strides: operand.strides.clone() }
}

/// Returns the words of a record's value.
pub(super) fn split(value: &Scalar, word: DType) -> impl Iterator<Item = Result<Scalar>> + '_ {
    value.bytes().chunks(word.size()).map(move |bytes| Scalar::from_bytes(word, bytes))
}

/// Counts the last axis in wider words of at most `most` bytes, for elements of `unit` that are
/// only moved. Requires that the operands `moved` are contiguous along it, and that `address_terms`
/// (addresses, and strides outside the space) allow it. All other operands must have one element
/// along the axis.
pub(super) fn widen(
    unit: DType,
    most: usize,
    space: &mut IterationSpace,
    moved: &[usize],
    address_terms: impl Iterator<Item = u64>,
) -> DType {
    let (Some(last), size) = (space.shape.len().checked_sub(1), unit.size()) else {
        return unit;
    };
    let moves = |operand: usize| moved.contains(&operand);
    let runs =
        space.strides.iter().enumerate().all(|(operand, strides)| {
            strides[last] == if moves(operand) { size as isize } else { 0 }
        });
    let strides = moved.iter().flat_map(|&operand| &space.strides[operand][..last]);
    let bytes = space.shape[last] as u64 * size as u64;
    let all =
        strides.map(|&stride| stride as u64).chain(address_terms).fold(bytes, |all, it| all | it);
    let word = (1 << all.trailing_zeros().min(4)).min(most);
    if !runs || word <= size {
        return unit;
    }
    space.shape[last] = space.shape[last] * size / word;
    for &operand in moved {
        space.strides[operand][last] = word as isize;
    }
    match word {
        2 => DType::UInt16,
        4 => DType::UInt32,
        8 => DType::UInt64,
        _ => DType::Complex128,
    }
}
