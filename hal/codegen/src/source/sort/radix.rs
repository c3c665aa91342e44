//! Launches of sorts by digits: counts of all digits, then a pass for each.

use super::{Key, Method};
use crate::source::launches::{Launches, THREADS, blocks};
use hal::operation::Sort;

/// Rows of more elements than this are sorted by digits. Shorter ones have few runs to merge.
const LONG: usize = 1 << 16;

/// Rows of so many elements are counted in 64 bits: `mark` in radix.cuh leaves 30 of 32.
const WIDE: usize = 1 << 30;

/// Elements that a block counts at a time: `COUNTED` in radix.cuh.
const COUNTED: u64 = 1 << 16;

/// Digits of a place.
const DIGITS: u64 = 256;

/// Stands for the output instead of a part of the workspace.
const OUTPUT: u64 = u64::MAX;

/// True if a sort is done by digits.
pub(super) fn takes(operation: &Sort) -> bool {
    let Sort { rows, length, indices, input, output } = operation;
    let size = input.dtype.size();
    // A single pass, or an odd number of them, writes to the output what it reads from the input.
    let in_place = !indices && input.address == output.address && size % 2 == 1;
    // Complex numbers are compared by two keys.
    let has_digits = size <= 8 && !input.dtype.is_complex();
    *rows > 0 && *length > LONG && has_digits && !in_place
}

/// The elements of a tile: `RadixTile` in radix_tile.cuh and radix_halves.cuh. Which of the two kinds of tiles a device
/// has is not known here: the state has room for the small ones, and there is a block for each of the
/// large ones, which takes several tiles where they are small.
#[derive(Clone, Copy)]
enum Tiles {
    Small,
    Large,
}

impl Tiles {
    const fn elements(self, size: usize, indices: bool, wide: bool) -> u64 {
        let count = match (self, size) {
            (Tiles::Small, _) if indices && wide => 7,
            (Tiles::Small, 8) => 9,
            (Tiles::Small, _) => 15,
            (Tiles::Large, 8) if wide => 12,
            (Tiles::Large, 8) => 18,
            (Tiles::Large, _) if indices && wide => 12,
            (Tiles::Large, _) => 23,
        };
        THREADS as u64 * count
    }
}

/// The parts of the workspace, whose size is the end of the last.
#[derive(Default)]
struct Workspace {
    bytes: u64,
}

impl Workspace {
    /// Returns the offset of a new part.
    fn part(&mut self, bytes: u64) -> u64 {
        let offset = self.bytes;
        self.bytes = (offset + bytes).next_multiple_of(16);
        offset
    }
}

/// Adds the launches of a sort and returns the key of their kernels.
pub(super) fn plan(operation: &Sort, launches: &mut Launches) -> Key {
    let Sort { rows, length, indices, input, output } = operation;
    let wide = *length >= WIDE;
    let key = Key { dtype: input.dtype, indices: *indices, method: Method::Radix { wide } };
    let size = input.dtype.size();
    let word = if wide { 8 } else { 4 };
    let (rows, length, places) = (*rows as u64, *length as u64, size as u64);
    let [tiles, blocks_of_row] = [Tiles::Small, Tiles::Large]
        .map(|tiles| length.div_ceil(tiles.elements(size, *indices, wide)));
    let elements = rows * length;
    let mut workspace = Workspace::default();
    let counters = workspace.part(places * 8);
    let histogram = workspace.part(rows * places * DIGITS * word);
    let mut buffers = |count: u64, bytes: u64| -> [u64; 2] {
        std::array::from_fn(|k| if (k as u64) < count { workspace.part(bytes) } else { OUTPUT })
    };
    let states = buffers(places.min(2), rows * tiles * DIGITS * word);
    // What is zero at first: all before the second state.
    let clear = if places > 1 { states[1] } else { states[0] + rows * tiles * DIGITS * word };
    let used = if *indices { (places - 1).min(2) } else { u64::from(places > 1) };
    let keys = buffers(used, elements * places);
    let sorted = buffers(if *indices { used } else { 0 }, elements * word);
    launches.need_workspace(workspace.bytes as usize);

    let words = clear.div_ceil(8);
    let mut launch = launches.launch(0, blocks(words.div_ceil(u64::from(THREADS))));
    launch.workspace().long(words as i64);
    drop(launch);
    let mut launch = launches.launch(1, blocks(rows * length.div_ceil(COUNTED)));
    launch.workspace().long(histogram as i64).address(input.address);
    launch.long(rows as i64).long(length as i64);
    drop(launch);
    for place in 0..places {
        let is_last = place + 1 == places;
        // Buffers take turns; without indices one of them is the output, which comes last.
        let turn = |place: u64| (place % 2) as usize;
        let keys_at = |place: u64| match indices {
            true => keys[turn(place)],
            false if (places - 1 - place).is_multiple_of(2) => OUTPUT,
            false => keys[0],
        };
        let mut launch = launches.launch(2, blocks(rows * blocks_of_row));
        launch.workspace().address(output.address).address(input.address);
        launch.long(rows as i64).long(length as i64);
        launch.word(place as u32).word(is_last.into());
        launch.long((counters + place * 8) as i64).long(histogram as i64);
        launch.long(states[turn(place)] as i64).long(states[turn(place + 1)] as i64);
        let before = place.wrapping_sub(1);
        for offset in [
            if place > 0 { keys_at(before) } else { OUTPUT },
            if place > 0 { sorted[turn(before)] } else { OUTPUT },
            keys_at(place),
            sorted[turn(place)],
        ] {
            launch.long(offset as i64);
        }
    }
    key
}
