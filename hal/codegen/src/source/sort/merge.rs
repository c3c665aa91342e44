//! Launches of sorts by merges: tiles, of which short rows share one, then merges of runs that double in length.

use super::{Key, Method};
use crate::source::launches::{Launches, THREADS, blocks};
use hal::operation::Sort;

/// Elements of a thread: `Sorted` in sort.cuh.
const fn count(size: usize) -> u64 {
    if size > 8 { 4 } else { 8 }
}

/// Adds the launches of a sort and returns the key of their kernels.
pub(super) fn plan(operation: &Sort, launches: &mut Launches) -> Key {
    let Sort { rows, length, indices, input, output } = operation;
    let key = Key { dtype: input.dtype, indices: *indices, method: Method::Merge };
    let (rows, length) = (*rows as u64, *length as u64);
    if rows == 0 || length == 0 {
        return key;
    }
    let size = input.dtype.size();
    let tile = u64::from(THREADS) * count(size);
    let tiles = length.div_ceil(tile);
    let turns = tiles.next_power_of_two().trailing_zeros();
    let bytes = (rows * length * size as u64).next_multiple_of(16);
    let workspace = match (turns, indices) {
        (0, _) => 0,
        (_, false) => bytes,
        (_, true) => 2 * bytes + rows * length * size_of::<i64>() as u64,
    };
    launches.need_workspace(workspace as usize);
    // Rows that share a tile: a power of two of elements each.
    let together = (tile / length.next_power_of_two().max(count(size))).max(1);
    let works = if tiles > 1 { rows * tiles } else { rows.div_ceil(together) };
    for turn in 0..=turns {
        let mut launch = launches.launch((turn > 0).into(), blocks(works));
        launch.address(output.address);
        match workspace {
            0 => launch.address(0),
            _ => launch.workspace(),
        };
        launch.long(bytes as i64);
        if turn == 0 {
            launch.address(input.address);
        } else {
            launch.long((tile << (turn - 1)) as i64);
        }
        // The last turn writes to buffer 0.
        let (buffer, is_last) = ((turns - turn) % 2, turn == turns);
        launch.long(rows as i64).long(length as i64).long(tiles as i64);
        launch.word(buffer).word(is_last.into());
    }
    key
}
