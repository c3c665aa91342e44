//! Launches of products of matrices: a block for each tile, or several that share its terms.

use super::key::Key;
use crate::source::iteration_space::IterationSpace;
use crate::source::launches::{Launches, THREADS, blocks};
use hal::error::{Error, Result};
use hal::operation::{MatrixProduct, Operand};

/// So many blocks keep a device busy.
const ENOUGH_BLOCKS: u64 = 256;

/// The fewest terms worth a block of their own; a multiple of `TERMS` in product.cuh.
const FEWEST_TERMS: u64 = 256;

/// Adds the launches of products of matrices and returns the key of their kernels.
pub(in crate::source) fn plan(operation: &MatrixProduct, launches: &mut Launches) -> Result<Key> {
    let MatrixProduct { compute, batch, rows, terms, columns, left, right, output } = operation;
    let outer = |operand: &'_ Operand| operand.strides.len() - 2;
    let lists = [output, left, right].map(|operand| &operand.strides[..outer(operand)]);
    let space = IterationSpace::new(batch, &lists)?;
    let matrix = |operand: &Operand| {
        let axes = outer(operand);
        [operand.strides[axes], operand.strides[axes + 1]]
    };
    let ([row, column], [left_row, left_term], [right_term, right_column]) =
        (matrix(output), matrix(left), matrix(right));
    let nearer = |term: isize, line: isize| term.unsigned_abs() < line.unsigned_abs();
    let (rows, terms, columns) = (*rows as u64, *terms as u64, *columns as u64);
    let size = compute.working().size();
    let thread = thread_tile(size, rows, columns, space.count());
    let tiles = [rows, columns].into_iter().zip(thread);
    let tiles: [u64; 2] = {
        let mut counts = tiles.map(|(lines, own)| lines.div_ceil(16 * u64::from(own)));
        [counts.next().unwrap_or(0), counts.next().unwrap_or(0)]
    };
    let overflow = || Error::overflow("matmul", format!("{rows} by {columns} elements"));
    let elements = [rows, columns, space.count()].into_iter().try_fold(1, u64::checked_mul);
    let elements = elements.filter(|&it| it <= i64::MAX as u64).ok_or_else(overflow)?;
    let works = tiles[0] * tiles[1] * space.count();
    let splits = (ENOUGH_BLOCKS / works.max(1)).min(terms / FEWEST_TERMS).max(1);
    let part = terms.div_ceil(splits).next_multiple_of(FEWEST_TERMS).max(1);
    let splits = terms.div_ceil(part).max(1);
    let key = Key {
        compute: *compute,
        left: left.dtype,
        right: right.dtype,
        output: output.dtype,
        along_terms: [nearer(left_term, left_row), nearer(right_term, right_column)],
        thread,
        split: splits > 1,
        rank: space.rank(),
        wide: space.wide(),
    };
    if elements == 0 {
        return Ok(key);
    }
    let mut launch = launches.launch(0, blocks(works * splits));
    space.pack(&mut launch, key.rank, key.wide);
    for count in [rows, terms, columns, tiles[0], tiles[1], part, splits] {
        launch.long(count as i64);
    }
    for stride in [row, column, left_row, left_term, right_term, right_column] {
        launch.long(stride as i64);
    }
    for (position, operand) in [output, left, right].into_iter().enumerate() {
        launch.address(space.address(position, operand));
    }
    if !key.split {
        return Ok(key);
    }
    launch.workspace();
    drop(launch);
    let mut launch = launches.launch(1, blocks(elements.div_ceil(u64::from(THREADS))));
    space.pack(&mut launch, key.rank, key.wide);
    launch.long(rows as i64).long(columns as i64).long(splits as i64);
    launch.long(row as i64).long(column as i64);
    launch.address(space.address(0, output)).workspace();
    drop(launch);
    let bytes = (splits * elements).checked_mul(size as u64);
    launches.need_workspace(bytes.and_then(|it| it.try_into().ok()).ok_or_else(overflow)?);
    Ok(key)
}

/// The rows and columns of a thread, for elements of so many bytes in registers: fewer where there are
/// too few tiles to keep a device busy.
fn thread_tile(size: usize, rows: u64, columns: u64, count: u64) -> [u8; 2] {
    if rows <= 32 && columns <= 32 {
        return [2, 2];
    }
    let large: [u8; 2] = match size {
        ..=4 => [8, 8],
        8 => [8, 4],
        _ => [4, 4],
    };
    let tiles = |lines: u64, own: u8| lines.div_ceil(16 * u64::from(own));
    let works = tiles(rows, large[0]).saturating_mul(tiles(columns, large[1]));
    if works.saturating_mul(count) >= ENOUGH_BLOCKS / 2 {
        return large;
    }
    if size > 8 { [2, 2] } else { [4, 4] }
}
