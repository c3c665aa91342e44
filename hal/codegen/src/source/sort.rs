//! Sorting of rows, and of the indices that sort them: by merging, or digit by digit for long rows.

use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::{Launches, THREADS, blocks};
use hal::dtype::DType;
use hal::operation::Sort;

/// Adds the launches of a sort and returns the key of their kernels.
pub(super) fn plan(operation: &Sort, launches: &mut Launches) -> Key {
    if takes_passes(operation) {
        plan_passes(operation, launches)
    } else {
        plan_merges(operation, launches)
    }
}

/// The way in which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// Tiles are sorted in shared memory, and runs are merged.
    Merge,
    /// One pass per 8-bit digit; counts and indices have 64 bits if `wide`, else 32.
    Radix { wide: bool },
}

/// Everything that changes the code of the kernels of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    dtype: DType,
    /// True if the result is the indices of the elements.
    indices: bool,
    method: Method,
}

// Launches of merge sorts: one for the tiles (short rows share one), then merges of runs whose length doubles each
// time.

/// The number of elements per thread: `Sorted` in sort.cuh.
const fn elements_of_thread(size: usize) -> u64 {
    if size > 8 { 4 } else { 8 }
}

/// Adds the launches of a sort and returns the key of their kernels.
fn plan_merges(operation: &Sort, launches: &mut Launches) -> Key {
    let Sort { rows, length, indices, input, output } = operation;
    let key = Key { dtype: input.dtype, indices: *indices, method: Method::Merge };
    let (rows, length) = (*rows as u64, *length as u64);
    if rows == 0 || length == 0 {
        return key;
    }
    let size = input.dtype.size();
    let tile = u64::from(THREADS) * elements_of_thread(size);
    let tiles = length.div_ceil(tile);
    let turns = tiles.next_power_of_two().trailing_zeros();
    let bytes = (rows * length * size as u64).next_multiple_of(16);
    let workspace = match (turns, indices) {
        (0, _) => 0,
        (_, false) => bytes,
        (_, true) => 2 * bytes + rows * length * size_of::<i64>() as u64,
    };
    launches.need_workspace(workspace as usize);
    // The rows that share a tile, each padded to a power of two.
    let together = (tile / length.next_power_of_two().max(elements_of_thread(size))).max(1);
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
        // The last merge writes to buffer 0.
        let (buffer, is_last) = ((turns - turn) % 2, turn == turns);
        launch.long(rows as i64).long(length as i64).long(tiles as i64);
        launch.word(buffer).word(is_last.into());
    }
    key
}

// Launches of radix sorts: counts of all digits, then one pass per digit.

/// Rows with more elements than this are sorted by digits. Shorter rows have few runs to merge.
const LONG: usize = 1 << 16;

/// From this many elements, rows are counted in 64 bits: `mark` in radix.cuh leaves 30 of 32 bits.
const WIDE: usize = 1 << 30;

/// The number of elements that a block counts at a time: `COUNTED` in radix.cuh.
const COUNTED: u64 = 1 << 16;

/// The number of values of a digit.
const DIGITS: u64 = 256;

/// A marker for the output instead of a part of the workspace.
const OUTPUT: u64 = u64::MAX;

/// Returns true if a sort is done by digits.
fn takes_passes(operation: &Sort) -> bool {
    let Sort { rows, length, indices, input, output } = operation;
    let size = input.dtype.size();
    // A single pass, or an odd number of passes, would overwrite the output while reading it as the input.
    let in_place = !indices && input.address == output.address && size % 2 == 1;
    // Complex numbers are compared by two keys.
    let has_digits = size <= 8 && !input.dtype.is_complex();
    *rows > 0 && *length > LONG && has_digits && !in_place
}

/// The number of elements per tile: `RadixTile` in radix_tile.cuh and radix_halves.cuh. Which of the two kinds a device
/// uses is unknown here. So the state has room for small tiles, and there is one block per large tile, which takes
/// several tiles if they are small.
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

/// The layout of the workspace. `bytes` is the end of the last part, and so the total size.
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
fn plan_passes(operation: &Sort, launches: &mut Launches) -> Key {
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
    // The memory that must be zero at first: everything before the second state.
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
        // The passes alternate between two buffers. Without indices, one of them is the output, which comes last.
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

// The source of sorts.

impl KernelKey for Key {
    fn name(&self) -> String {
        format!(
            "{}_{}{}",
            if self.indices { "argsort" } else { "sort" },
            ctype::value(self.dtype),
            match self.method {
                Method::Merge => "",
                Method::Radix { wide: false } => "_radix",
                Method::Radix { wide: true } => "_radix_64",
            }
        )
    }

    fn suffixes(&self) -> &'static [&'static str] {
        match self.method {
            Method::Merge => &["_tiles", "_merge"],
            Method::Radix { .. } => &["_clear", "_count", "_pass"],
        }
    }

    fn prelude(&self) -> Prelude {
        match self.method {
            Method::Merge => Prelude::SORT,
            Method::Radix { .. } => Prelude::RADIX,
        }
    }

    fn kernels(&self, name: &str) -> String {
        match self.method {
            Method::Merge => self.merges(name),
            Method::Radix { wide } => self.passes(name, wide),
        }
    }
}

impl Key {
    fn merges(&self, name: &str) -> String {
        let buffers = format!("SortBuffers<{}, {}>", ctype::value(self.dtype), self.indices);
        let fill = format!(
            "    {buffers} buffers;
    buffers.out = out;
    buffers.workspace = workspace;
    buffers.bytes = bytes;
"
        );
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_tiles(char* out, char* workspace, \
             u64 bytes, const char* in, u64 rows, u64 length, u64 tiles, u32 buffer, u32 last) {{
{fill}    sort_tiles(buffers, in, rows, length, tiles, buffer, last != 0);
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_merge(char* out, char* workspace, \
             u64 bytes, u64 width, u64 rows, u64 length, u64 tiles, u32 buffer, u32 last) {{
{fill}    merge_tiles(buffers, rows, length, tiles, width, buffer, last != 0);
}}
"
        )
    }

    fn passes(&self, name: &str, wide: bool) -> String {
        let (value, stored) = (ctype::value(self.dtype), ctype::stored(self.dtype));
        let parameters = format!("{value}, {}, {wide}", self.indices);
        let word = format!("RadixWords<{wide}>::Word");
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_clear(u64* workspace, u64 words) {{
    clear_state(workspace, words);
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_count(char* workspace, u64 histogram, \
             const char* in, u64 rows, u64 length) {{
    count_digits<{parameters}>(in, rows, length, ({word}*)(workspace + histogram));
}}
extern \"C\" __global__ void GPUARRAY_BOUNDS((RadixTile<{parameters}>::blocks)) {name}_pass(char* workspace, \
             char* out, const char* in, u64 rows, u64 length, u32 place, u32 last, u64 counter, u64 histogram, u64 state, \
             u64 next_state, u64 keys, u64 indices, u64 sorted_keys, u64 sorted_indices) {{
    const u64 output = ~(u64)0;
    RadixArrays<{stored}, {word}> arrays;
    arrays.keys = (const {stored}*)(place == 0 ? in : keys == output ? out : workspace + keys);
    arrays.indices = (const {word}*)(indices == output ? 0 : workspace + indices);
    arrays.sorted_keys = ({stored}*)(sorted_keys == output ? out : workspace + sorted_keys);
    arrays.sorted_indices = ({word}*)(sorted_indices == output ? 0 : workspace + sorted_indices);
    arrays.result = last != 0 ? (i64*)out : 0;
    radix_pass<{parameters}>(arrays, rows, length, place, (u64*)(workspace + counter),
                             (const {word}*)(workspace + histogram), ({word}*)(workspace + state),
                             last != 0 ? 0 : ({word}*)(workspace + next_state));
}}
"
        )
    }
}
