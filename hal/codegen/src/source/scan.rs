//! Scans.

mod source;

/// Returns the functions for scans, in the namespace `gpuarray`, for kernels with a program's own
/// operator: `scan_range` for one block, and `clear_state` and `scan_tiles` for an array of many
/// tiles. Blocks have 256 threads.
///
/// An operator is a struct with the type `value` and the static function `combine(value, value)`,
/// whose first argument is the earlier operand. It must be associative, but does not have to be
/// commutative.
pub fn scan_functions() -> String {
    Prelude::SCAN.enclose("")
}

use super::prelude::Prelude;
use crate::source::ctype;
use crate::source::iteration_space::IterationSpace;
use crate::source::launches::{Launches, TEAM, THREADS, TILE_BLOCKS, blocks};
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::operation::{Scan, Shape, Strides};
use hal::scalar::Scalar;

/// The way in which rows are divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// One thread per row.
    Threads,
    /// One block per row.
    Blocks,
    /// Totals of chunks, a scan of the totals, then one thread per chunk.
    ThreadChunks,
    /// One block per tile, which gets the preceding total from earlier blocks.
    Tiles,
}

/// Everything that changes the code of the kernels of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    reduction: Reduction,
    compute: DType,
    input: DType,
    output: DType,
    exclusive: bool,
    method: Method,
    /// True if elements are contiguous along the axis, in both arrays.
    dense: bool,
    rank: u8,
    wide: bool,
}

#[derive(Debug)]
struct Prepared {
    key: Key,
    rows: IterationSpace,
    addresses: [u64; 2],
    /// The strides of the output and the input along the axis.
    strides: [isize; 2],
    length: u64,
    chunk: u64,
    chunks: u64,
    initial: Scalar,
}

/// Returns the plan for an array of `length` values of `size` bytes: the number of tiles, the number of 64-bit words of
/// `clear_state`, and the number of blocks of `clear_state` and of `scan_tiles`. `scan_range` scans it if there are no
/// words.
pub fn scan_plan(size: u64, length: u64) -> (u64, u64, u32, u64) {
    // Larger values do not fit shared memory.
    let size = size.min(64);
    let tiles = length.div_ceil(tile(size));
    let words = if tiles > ROW_TILES { state_words(1, tiles, size) } else { 0 };
    (tiles, words, blocks(words.div_ceil(THREADS.into())), tiles.min(TILE_BLOCKS))
}

/// The number of elements per tile, for accumulators of `size` bytes: `Tile` in scan_tile.cuh.
const fn tile(size: u64) -> u64 {
    let bytes = match size {
        4 | 8 => 112,
        0..=8 => 96,
        _ => 64,
    };
    THREADS as u64 * (bytes / if size > 4 { size } else { 4 })
}

/// The maximum number of tiles of a row that is scanned by one block.
const ROW_TILES: u64 = 4;

/// The maximum number of chunks per row; one thread scans their totals.
const MOST_CHUNKS: u64 = 4096;

/// The number of threads that fills a device, and the minimum number of elements per thread.
const ENOUGH_THREADS: u64 = 1 << 18;
const THREAD_ELEMENTS: u64 = 64;

/// Adds the launches of a scan and returns the key of their kernels.
pub(super) fn plan(operation: &Scan, launches: &mut Launches) -> Result<Key> {
    let prepared = Prepared::new(operation)?;
    prepared.launch(launches);
    Ok(prepared.key)
}

impl Prepared {
    fn new(operation: &Scan) -> Result<Self> {
        let Scan { reduction, compute, shape, axis, exclusive, initial, input, output } = operation;
        let mut rest: Shape = shape.clone();
        let length = rest.remove(*axis) as u64;
        let mut strides = [output.strides.clone(), input.strides.clone()];
        let along: [isize; 2] = [strides[0].remove(*axis), strides[1].remove(*axis)];
        let rows = IterationSpace::new(&rest, &[&strides[0], &strides[1]])?;
        let count = rows.count();
        let nearest = |list: &Strides| list.iter().map(|stride| stride.unsigned_abs()).min();
        let across = nearest(&rows.strides[0]).is_some_and(|row| row < along[0].unsigned_abs());
        let (method, chunk) = method(
            across,
            count,
            length,
            tile(ctype::accumulator(*reduction, *compute).size() as u64),
        );
        let chunks = length.div_ceil(chunk);
        let reach = |stride: &isize| stride.unsigned_abs() as u128 * u128::from(length);
        let wide = rows.wide()
            || u128::from(length) * u128::from(count) >= 1 << 31
            || along.iter().any(|stride| reach(stride) >= 1 << 31);
        let key = Key {
            reduction: *reduction,
            compute: *compute,
            input: input.dtype,
            output: output.dtype,
            exclusive: *exclusive,
            method,
            dense: along == [output, input].map(|operand| operand.dtype.size() as isize),
            rank: rows.rank(),
            wide,
        };
        Ok(Prepared {
            key,
            addresses: [rows.address(0, output), rows.address(1, input)],
            rows,
            strides: along,
            length,
            chunk,
            chunks,
            initial: *initial,
        })
    }

    fn launch(&self, launches: &mut Launches) {
        let rows = self.rows.count();
        if rows == 0 || self.length == 0 {
            return;
        }
        let (wide, threads) = (self.key.wide, u64::from(THREADS));
        let accumulator = ctype::accumulator(self.key.reduction, self.key.compute);
        let parts = rows * self.chunks;
        match self.key.method {
            Method::Threads => self.values(launches, 0, rows.div_ceil(threads)),
            Method::Blocks => self.values(launches, 0, rows),
            Method::Tiles => {
                let words = state_words(rows, self.chunks, accumulator.size() as u64);
                launches.launch(0, blocks(words.div_ceil(threads))).workspace().long(words as i64);
                self.values(launches, 1, parts.min(TILE_BLOCKS));
                launches.need_workspace(words as usize * size_of::<u64>());
            }
            Method::ThreadChunks => {
                self.values(launches, 0, parts.div_ceil(threads));
                let mut launch = launches.launch(1, blocks(rows.div_ceil(threads)));
                launch.index(rows, wide).index(self.chunks, wide);
                launch.scalar(&self.initial).workspace();
                drop(launch);
                self.values(launches, 2, parts.div_ceil(threads));
                launches.need_workspace(parts as usize * accumulator.size());
            }
        }
    }

    /// Adds a launch that loops over the rows.
    fn values(&self, launches: &mut Launches, kernel: usize, work: u64) {
        let wide = self.key.wide;
        let mut launch = launches.launch(kernel, blocks(work));
        self.rows.pack(&mut launch, self.key.rank, wide);
        for value in [self.length, self.chunk, self.chunks] {
            launch.index(value, wide);
        }
        for stride in self.strides {
            launch.long(stride as i64);
        }
        launch.scalar(&self.initial);
        for address in self.addresses {
            launch.address(address);
        }
        if matches!(self.key.method, Method::ThreadChunks | Method::Tiles) {
            launch.workspace();
        }
    }
}

/// Returns the number of 64-bit words of the state: a counter, and for each tile and each team `Published` in scan.cuh.
const fn state_words(rows: u64, tiles: u64, size: u64) -> u64 {
    1 + rows * (tiles.div_ceil(TEAM) + tiles) * size.div_ceil(4)
}

/// Returns the method, and the number of elements per chunk. If `across`, rows are neighbours in
/// memory.
fn method(across: bool, rows: u64, length: u64, tile: u64) -> (Method, u64) {
    if (across && rows >= 32) || (length <= 64 && rows >= 64) {
        let wanted = (ENOUGH_THREADS / rows).clamp(1, MOST_CHUNKS);
        let chunk = length.div_ceil(wanted).max(THREAD_ELEMENTS);
        return match chunk < length {
            true => (Method::ThreadChunks, chunk),
            false => (Method::Threads, length.max(1)),
        };
    }
    if length <= ROW_TILES * tile {
        return (Method::Blocks, length.max(1));
    }
    (Method::Tiles, tile)
}
