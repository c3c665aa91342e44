//! Scans.

use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::iteration_space::{IterationSpace, type_name};
use crate::source::kernel_key::KernelKey;
use crate::source::launches::{Launches, TEAM, THREADS, TILE_BLOCKS, blocks};
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::operation::{Scan, Shape, Strides};
use hal::scalar::Scalar;

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

// The source of scans.

impl KernelKey for Key {
    fn name(&self) -> String {
        format!(
            "{}_{}_{}_to_{}_{}_{}{}{}_{}",
            format_args!("scan_{}", self.reduction.name()),
            ctype::value(self.compute),
            ctype::value(self.input),
            ctype::value(self.output),
            if self.exclusive { "exclusive" } else { "inclusive" },
            match self.method {
                Method::Threads => "threads",
                Method::Blocks => "blocks",
                Method::ThreadChunks => "thread_chunks",
                Method::Tiles => "tiles",
            },
            if self.dense { "_dense" } else { "" },
            self.rank,
            if self.wide { 64 } else { 32 },
        )
    }

    fn suffixes(&self) -> &'static [&'static str] {
        match self.method {
            Method::Threads | Method::Blocks => &[""],
            Method::ThreadChunks => &["_totals", "_carries", "_values"],
            Method::Tiles => &["_clear", "_values"],
        }
    }

    fn prelude(&self) -> Prelude {
        ctype::prelude(self.compute.working()).with(Prelude::REDUCE).with(Prelude::SCAN)
    }

    fn kernels(&self, name: &str) -> String {
        let accumulator = self.accumulator();
        let start = if self.exclusive {
            format!("convert<{accumulator}>(Stored<{}>::get(initial))", ctype::value(self.compute))
        } else {
            format!("{name}_operator::identity()")
        };
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &self.read(name);
        text += &self.write(name);
        text += &match self.method {
            Method::Threads => self.threads(name, &start),
            Method::Blocks => self.blocks(name, &start),
            Method::ThreadChunks => self.thread_chunks(name, &start),
            Method::Tiles => self.tiles(name, &start),
        };
        text
    }
}

impl Key {
    fn accumulator(&self) -> &'static str {
        ctype::value(ctype::accumulator(self.reduction, self.compute))
    }

    /// Returns the distance between elements of an operand, as an expression in the functors.
    fn step(&self, dtype: DType) -> String {
        let (_, offset) = ctype::index(self.wide);
        match self.dense {
            true => format!("({offset})sizeof({})", ctype::stored(dtype)),
            false => "stride".to_owned(),
        }
    }

    /// Returns the condition under which a functor accesses packs from an address.
    fn packs(&self, dtype: DType, address: &str) -> String {
        let (stored, accumulator) = (ctype::stored(dtype), self.accumulator());
        match self.dense {
            true => format!("packable<{stored}, Tile<{accumulator}>::width>({address})"),
            false => "false".to_owned(),
        }
    }

    /// Returns the functor that reads the elements of a row.
    fn read(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (accumulator, compute) = (self.accumulator(), ctype::value(self.compute));
        let (input, stored) = (ctype::value(self.input), ctype::stored(self.input));
        format!(
            "struct {name}_read {{
    const char* in;
    {offset} stride;
    static METHOD {accumulator} value({stored} x) {{
        return convert<{accumulator}>(convert<{compute}>(Stored<{input}>::get(x)));
    }}
    METHOD {accumulator} operator()({index} i) const {{
        return value(*(const {stored}*)(in + ({offset})i * {step}));
    }}
    METHOD bool packs() const {{ return {packs}; }}
    template <u32 COUNT>
    METHOD void pack({index} i, {accumulator}* own) const {{
        const Pack<{stored}, (int)COUNT> pack = *(const Pack<{stored}, (int)COUNT>*)(in + ({offset})i * {step});
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {{
            own[k] = value(pack.item[k]);
        }}
    }}
    METHOD void advance(i64 by) {{ in += by * {step}; }}
    METHOD void prefetch(i64 first, u32 count) const {{ {prefetch} }}
}};
",
            step = self.step(self.input),
            prefetch = match self.dense {
                true => format!(
                    "gpuarray::prefetch(in + first * sizeof({stored}), count * (u32)sizeof({stored}));"
                ),
                false => String::new(),
            },
            packs = self.packs(self.input, "in"),
        )
    }

    /// Returns the functor that writes the elements of a row.
    fn write(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (accumulator, compute) = (self.accumulator(), ctype::value(self.compute));
        let (output, stored) = (ctype::value(self.output), ctype::stored(self.output));
        format!(
            "struct {name}_write {{
    char* out;
    {offset} stride;
    static METHOD {stored} value({accumulator} x) {{
        return Stored<{output}>::put(convert<{output}>(convert<{compute}>(x)));
    }}
    METHOD void operator()({index} i, {accumulator} x) const {{
        *({stored}*)(out + ({offset})i * {step}) = value(x);
    }}
    METHOD bool packs() const {{ return {packs}; }}
    template <u32 COUNT>
    METHOD void pack({index} i, const {accumulator}* own) const {{
        Pack<{stored}, (int)COUNT> pack;
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {{
            pack.item[k] = value(own[k]);
        }}
        *(Pack<{stored}, (int)COUNT>*)(out + ({offset})i * {step}) = pack;
    }}
    METHOD void advance(i64 by) {{ out += by * {step}; }}
}};
",
            step = self.step(self.output),
            packs = self.packs(self.output, "out"),
        )
    }

    /// Returns the beginning of a kernel over the rows, up to its body.
    fn head(&self, name: &str, suffix: &str, workspace: &str) -> String {
        let (index, _) = ctype::index(self.wide);
        let (space, initial) = (type_name(self.rank, 2, self.wide), ctype::stored(self.compute));
        let bounds = match self.method {
            Method::Tiles => format!("GPUARRAY_BOUNDS(Tile<{}>::blocks)", self.accumulator()),
            _ => format!("__launch_bounds__({THREADS})"),
        };
        format!(
            "extern \"C\" __global__ void {bounds} {name}{suffix}({space} rows, \
             {index} length, {index} chunk, {index} chunks, i64 out_stride, i64 in_stride, \
             {initial} initial, char* out, const char* in{workspace}) {{\n"
        )
    }

    /// Returns the declarations of the functors that read and write `row`.
    fn at_row(&self, name: &str) -> String {
        let (_, offset) = ctype::index(self.wide);
        format!(
            "        {offset} offset[2];
        rows.locate(row, offset);
        {name}_read read;
        read.in = in + offset[1];
        read.stride = ({offset})in_stride;
        {name}_write write;
        write.out = out + offset[0];
        write.stride = ({offset})out_stride;
"
        )
    }

    /// Returns a loop of threads over chunks, up to its body. Neighbouring threads have
    /// neighbouring rows.
    fn chunk_loop(&self, name: &str, order: &str) -> String {
        let (index, _) = ctype::index(self.wide);
        format!(
            "    const {index} works = rows.count * chunks;
    for ({index} turn = ({index})blockIdx.x * {THREADS} + threadIdx.x; turn < works; \
             turn += ({index})gridDim.x * {THREADS}) {{
        const {index} work = {order};
        const {index} part = work / rows.count, row = work - part * rows.count;
        const {index} begin = part * chunk;
        const {index} end = length - begin < chunk ? length : begin + chunk;
{}",
            self.at_row(name)
        )
    }

    fn serial(&self, name: &str) -> String {
        let (index, _) = ctype::index(self.wide);
        format!("scan_serial<{name}_operator, {}, {index}>", self.exclusive)
    }

    fn threads(&self, name: &str, start: &str) -> String {
        format!(
            "{}{}        {}(read, write, begin, end, {start});\n    }}\n}}\n",
            self.head(name, "", ""),
            self.chunk_loop(name, "turn"),
            self.serial(name),
        )
    }

    fn blocks(&self, name: &str, start: &str) -> String {
        let (index, _) = ctype::index(self.wide);
        format!(
            "{}    for ({index} row = blockIdx.x; row < rows.count; row += gridDim.x) {{
{}        scan_range<{name}_operator, {}, {index}>(read, write, length, {start});\n    }}\n}}\n",
            self.head(name, "", ""),
            self.at_row(name),
            self.exclusive,
        )
    }

    fn tiles(&self, name: &str, start: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let space = type_name(self.rank, 2, self.wide);
        format!(
            "struct {name}_rows {{
    typedef {name}_read Read;
    typedef {name}_write Write;
    const {space}& rows;
    {offset} out_stride, in_stride;
    char* out;
    const char* in;
    METHOD void at(u64 number, Read* to_read, Write* to_write) const {{
        const {index} row = ({index})number;
{}        *to_read = read;
        *to_write = write;
    }}
}};
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_clear(u64* state, u64 words) {{
    clear_state(state, words);
}}
{}    const {name}_rows all = {{rows, ({offset})out_stride, ({offset})in_stride, out, in}};
    scan_tiles<{name}_operator, {}>(all, length, rows.count, chunks, state, {start});
}}
",
            self.at_row(name),
            self.head(name, "_values", ", u64* state"),
            self.exclusive,
        )
    }

    fn thread_chunks(&self, name: &str, start: &str) -> String {
        let (index, _) = ctype::index(self.wide);
        let (accumulator, initial) = (self.accumulator(), ctype::stored(self.compute));
        let workspace = format!(", {accumulator}* carries");
        format!(
            "{}{}        carries[work] = accumulate_elements<{name}_operator>(read, begin, end, ({index})1);
    }}
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_carries({index} rows, {index} chunks, {initial} initial, {accumulator}* carries) {{
    for ({index} row = ({index})blockIdx.x * {THREADS} + threadIdx.x; row < rows; \
             row += ({index})gridDim.x * {THREADS}) {{
        Carries<{accumulator}, {index}> carry;
        carry.values = carries + row;
        carry.step = rows;
        scan_serial<{name}_operator, true, {index}>(carry, carry, ({index})0, chunks, {start});
    }}
}}
{}{}        {}(read, write, begin, end, carries[work]);\n    }}\n}}\n",
            self.head(name, "_totals", &workspace),
            self.chunk_loop(name, "turn"),
            self.head(name, "_values", &workspace),
            // The last elements that were read may still be in a cache.
            self.chunk_loop(name, "works - 1 - turn"),
            self.serial(name),
        )
    }
}
