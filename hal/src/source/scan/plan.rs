//! Scans: a thread or a block for each row, or three launches where rows are long and few.

use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::Reduction;
use crate::operation::{Scan, Shape, Strides};
use crate::scalar::Scalar;
use crate::source::ctype;
use crate::source::iteration_space::{Space, THREADS, blocks, type_name};
use crate::source::kernel_spec::Spec;
use crate::source::plan::Plan;
use crate::source::prelude::Fragments;

/// How rows are shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// A thread for each row.
    Threads,
    /// A block for each row.
    Blocks,
    /// Totals of chunks, their scan, then a thread for each chunk.
    ThreadChunks,
    /// Totals of chunks, their scan, then a block for each chunk.
    BlockChunks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    reduction: Reduction,
    compute: DType,
    input: DType,
    output: DType,
    exclusive: bool,
    method: Method,
    /// Elements are neighbours along the axis, in both arrays.
    dense: bool,
    rank: u8,
    wide: bool,
}

#[derive(Debug)]
struct Prepared {
    key: Key,
    rows: Space,
    addresses: [u64; 2],
    /// Of the output and the input along the axis.
    strides: [isize; 2],
    length: u64,
    chunk: u64,
    chunks: u64,
    initial: Scalar,
}

/// Elements of a tile that a block scans at once: the same 64 bytes for each thread as
/// `Neighbours` in scan.cuh.
const fn tile(accumulator: DType) -> u64 {
    let size = accumulator.size() as u64;
    THREADS as u64 * if size > 4 { 64 / size } else { 16 }
}

/// Rows of at most so many tiles are one chunk, and chunks are at least as long.
const CHUNK_TILES: u64 = 4;

/// The most chunks of a row, whose totals a block or a thread scans.
const MOST_CHUNKS: u64 = 4096;

/// So many rows fill a device with a block each.
const ENOUGH_ROWS: u64 = 256;

/// So many threads fill a device, and the fewest elements worth one.
const ENOUGH_THREADS: u64 = 1 << 18;
const THREAD_ELEMENTS: u64 = 64;

/// The plan of a scan.
pub(in crate::source) fn plan(operation: &Scan) -> Result<Plan> {
    let prepared = Prepared::new(operation)?;
    let mut plan = Plan::begin(Spec::from(prepared.key));
    prepared.launch(&mut plan);
    Ok(plan)
}

impl Prepared {
    fn new(operation: &Scan) -> Result<Self> {
        let Scan { reduction, compute, shape, axis, exclusive, initial, input, output } = operation;
        if [*compute, input.dtype, output.dtype].iter().any(|dtype| dtype.kind() == Kind::Opaque) {
            return Err(Error::invalid_type("scan", "records cannot be scanned"));
        }
        if matches!(reduction, Reduction::Any | Reduction::All) {
            return Err(Error::invalid("scan", format!("{reduction:?} has no running form")));
        }
        let matching = [input, output].iter().all(|operand| operand.strides.len() == shape.len());
        if *axis >= shape.len() || !matching {
            return Err(Error::invalid(
                "scan",
                format!("axis {axis} of {} axes, or strides of another number", shape.len()),
            ));
        }
        let mut rest: Shape = shape.clone();
        let length = rest.remove(*axis) as u64;
        let mut strides = [output.strides.clone(), input.strides.clone()];
        let along: [isize; 2] = [strides[0].remove(*axis), strides[1].remove(*axis)];
        let rows = Space::new(&rest, &[&strides[0], &strides[1]])?;
        let count = rows.count();
        let nearest = |list: &Strides| list.iter().map(|stride| stride.unsigned_abs()).min();
        let across = nearest(&rows.strides[0]).is_some_and(|row| row < along[0].unsigned_abs());
        let (method, chunk) = method(across, count, length, tile(compute.working()));
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
            initial: initial.cast(*compute)?,
        })
    }

    fn launch(&self, plan: &mut Plan) {
        let rows = self.rows.count();
        if rows == 0 || self.length == 0 {
            return;
        }
        let threads = u64::from(THREADS);
        let (work, carries) = match self.key.method {
            Method::Threads | Method::ThreadChunks => {
                ((rows * self.chunks).div_ceil(threads), rows.div_ceil(threads))
            }
            Method::Blocks | Method::BlockChunks => (rows * self.chunks, rows),
        };
        self.values(plan, 0, work);
        if self.key.staged() {
            let mut launch = plan.launch(1, blocks(carries));
            launch.index(rows, self.key.wide).index(self.chunks, self.key.wide);
            launch.scalar(&self.initial).workspace();
            drop(launch);
            self.values(plan, 2, work);
            let size = ctype::accumulator(self.key.reduction, self.key.compute).size();
            plan.need_workspace((rows * self.chunks) as usize * size);
        }
    }

    /// A launch that walks the rows.
    fn values(&self, plan: &mut Plan, kernel: usize, work: u64) {
        let wide = self.key.wide;
        let mut launch = plan.launch(kernel, blocks(work));
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
        if self.key.staged() {
            launch.workspace();
        }
    }
}

/// The method, and the elements of a chunk. Rows are neighbours in memory if `across`.
fn method(across: bool, rows: u64, length: u64, tile: u64) -> (Method, u64) {
    if (across && rows >= 32) || (length <= 64 && rows >= 64) {
        let wanted = (ENOUGH_THREADS / rows).clamp(1, MOST_CHUNKS);
        let chunk = length.div_ceil(wanted).max(THREAD_ELEMENTS);
        return match chunk < length {
            true => (Method::ThreadChunks, chunk),
            false => (Method::Threads, length.max(1)),
        };
    }
    if length <= CHUNK_TILES * tile || rows >= ENOUGH_ROWS {
        return (Method::Blocks, length.max(1));
    }
    let chunk = length.div_ceil(MOST_CHUNKS).max(CHUNK_TILES * tile).next_multiple_of(tile);
    (Method::BlockChunks, chunk)
}

impl Key {
    const fn staged(&self) -> bool {
        matches!(self.method, Method::ThreadChunks | Method::BlockChunks)
    }

    pub(in crate::source) fn name(&self) -> String {
        format!(
            "scan_{}_{}_{}_to_{}_{}_{}{}{}_{}",
            self.reduction.name(),
            ctype::value(self.compute),
            ctype::value(self.input),
            ctype::value(self.output),
            if self.exclusive { "exclusive" } else { "inclusive" },
            match self.method {
                Method::Threads => "threads",
                Method::Blocks => "blocks",
                Method::ThreadChunks => "thread_chunks",
                Method::BlockChunks => "block_chunks",
            },
            if self.dense { "_dense" } else { "" },
            self.rank,
            if self.wide { 64 } else { 32 },
        )
    }

    pub(in crate::source) fn suffixes(&self) -> &'static [&'static str] {
        if self.staged() { &["_totals", "_carries", "_values"] } else { &[""] }
    }

    pub(in crate::source) fn fragments(&self) -> Fragments {
        ctype::fragments(self.compute.working()).with(Fragments::REDUCE).with(Fragments::SCAN)
    }

    pub(in crate::source) fn kernels(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let accumulator = ctype::value(ctype::accumulator(self.reduction, self.compute));
        let compute = ctype::value(self.compute);
        let initial = ctype::stored(self.compute);
        let (input, output) = (ctype::value(self.input), ctype::value(self.output));
        let space = type_name(self.rank, 2, self.wide);
        let exclusive = self.exclusive;
        let start = if exclusive {
            format!("convert<{accumulator}>(Stored<{compute}>::get(initial))")
        } else {
            format!("{name}_operator::identity()")
        };
        let step = |dtype: DType| match self.dense {
            true => format!("({offset})sizeof({})", ctype::stored(dtype)),
            false => "stride".to_owned(),
        };
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &format!(
            "struct {name}_read {{
    const char* in;
    {offset} stride;
    METHOD {accumulator} operator()({index} i) const {{
        return convert<{accumulator}>(convert<{compute}>(load<{input}>(in + ({offset})i * {from})));
    }}
}};
struct {name}_write {{
    char* out;
    {offset} stride;
    METHOD void operator()({index} i, {accumulator} value) const {{
        store<{output}>(out + ({offset})i * {to}, convert<{output}>(convert<{compute}>(value)));
    }}
}};
",
            from = step(self.input),
            to = step(self.output),
        );
        let head = |suffix: &str| {
            let carries = match self.staged() {
                true => format!(", {accumulator}* carries"),
                false => String::new(),
            };
            format!(
                "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{suffix}({space} rows, \
                 {index} length, {index} chunk, {index} chunks, i64 out_stride, i64 in_stride, \
                 {initial} initial, char* out, const char* in{carries}) {{\n"
            )
        };
        let by_thread = matches!(self.method, Method::Threads | Method::ThreadChunks);
        let share = match by_thread {
            true => format!(
                "({index})blockIdx.x * {THREADS} + threadIdx.x; turn < works; \
                 turn += ({index})gridDim.x * {THREADS}"
            ),
            false => "blockIdx.x; turn < works; turn += gridDim.x".to_owned(),
        };
        // Threads beside one another have rows beside one another.
        let part = match by_thread {
            true => "work / rows.count, row = work - part * rows.count",
            false => "work - work / chunks * chunks, row = work / chunks",
        };
        let walk = |order: &str| {
            format!(
                "    const {index} works = rows.count * chunks;
    for ({index} turn = {share}) {{
        const {index} work = {order};
        const {index} part = {part};
        const {index} begin = part * chunk;
        const {index} end = length - begin < chunk ? length : begin + chunk;
        {offset} offset[2];
        rows.locate(row, offset);
        {name}_read read;
        read.in = in + offset[1];
        read.stride = ({offset})in_stride;
        {name}_write write;
        write.out = out + offset[0];
        write.stride = ({offset})out_stride;
"
            )
        };
        let function = if by_thread { "scan_serial" } else { "scan_range" };
        let range = format!("{function}<{name}_operator, {exclusive}, {index}>");
        if !self.staged() {
            text += &head("");
            text += &walk("turn");
            text += &format!("        {range}(read, write, begin, end, {start});\n    }}\n}}\n");
            return text;
        }
        text += &head("_totals");
        text += &walk("turn");
        text += &match by_thread {
            true => format!(
                "        carries[work] = accumulate_elements<{name}_operator>(read, begin, end, ({index})1);
    }}
}}
"
            ),
            false => format!(
                "        const {accumulator} total = scan_total<{name}_operator, {index}>(read, begin, end);
        if (threadIdx.x == 0) {{
            carries[work] = total;
        }}
    }}
}}
"
            ),
        };
        let (row, first, step) = match by_thread {
            true => (
                format!(
                    "({index})blockIdx.x * {THREADS} + threadIdx.x; row < rows; \
                     row += ({index})gridDim.x * {THREADS}"
                ),
                "row",
                "rows",
            ),
            false => ("blockIdx.x; row < rows; row += gridDim.x".to_owned(), "row * chunks", "1"),
        };
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_carries({index} rows, {index} chunks, {initial} initial, {accumulator}* carries) {{
    for ({index} row = {row}) {{
        Carries<{accumulator}, {index}> carry;
        carry.values = carries + {first};
        carry.step = {step};
        {function}<{name}_operator, true, {index}>(carry, carry, ({index})0, chunks, {start});
    }}
}}
"
        );
        // What was read last may still be in a cache.
        text += &head("_values");
        text += &walk("works - 1 - turn");
        text += &format!("        {range}(read, write, begin, end, carries[work]);\n    }}\n}}\n");
        text
    }
}
