//! Scans: a thread or a block for each row, or three launches where rows are long and few.

use super::ctype;
use super::fragment::Fragments;
use super::plan::Plan;
use super::space::{Space, THREADS, blocks, type_name};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::Reduction;
use crate::operation::{Scan, Shape, Strides};
use crate::scalar::Scalar;

/// How rows are shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// A thread for each row.
    Serial,
    /// A block for each row.
    Rows,
    /// Totals of chunks, their scan, then a block for each chunk.
    Chunks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    reduction: Reduction,
    compute: DType,
    input: DType,
    output: DType,
    exclusive: bool,
    method: Method,
    rank: u8,
    wide: bool,
}

#[derive(Debug)]
pub(super) struct Prepared {
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

/// Elements of a tile; a chunk is some of them.
const TILE: u64 = 1024;

/// The most chunks of a row, whose totals one tile scans.
const MOST_CHUNKS: u64 = TILE;

/// Rows of at most so many elements are one chunk.
const SHORT_ROW: u64 = 8 * TILE;

/// So many rows fill a device with a block each.
const ENOUGH_ROWS: u64 = 256;

impl Prepared {
    pub(super) fn new(operation: &Scan) -> Result<Self> {
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
        let method = if (across && count >= 4096) || (length <= 64 && count >= 64) {
            Method::Serial
        } else if length <= SHORT_ROW || count >= ENOUGH_ROWS {
            Method::Rows
        } else {
            Method::Chunks
        };
        let (chunk, chunks) = if method == Method::Chunks {
            let most = length.div_ceil(4 * TILE).min(MOST_CHUNKS);
            let chunk = length.div_ceil(most).next_multiple_of(TILE);
            (chunk, length.div_ceil(chunk))
        } else {
            (length.max(1), 1)
        };
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

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn launch(&self, plan: &mut Plan) {
        let rows = self.rows.count();
        if rows == 0 || self.length == 0 {
            return;
        }
        match self.key.method {
            Method::Serial => self.values(plan, 0, rows.div_ceil(u64::from(THREADS))),
            Method::Rows => self.values(plan, 0, rows),
            Method::Chunks => {
                self.values(plan, 0, rows * self.chunks);
                let mut launch = plan.launch(1, blocks(rows));
                launch.index(rows, self.key.wide).index(self.chunks, self.key.wide);
                launch.scalar(&self.initial).workspace();
                drop(launch);
                self.values(plan, 2, rows * self.chunks);
                let size = ctype::accumulator(self.key.reduction, self.key.compute).size();
                plan.need_workspace((rows * self.chunks) as usize * size);
            }
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
        if self.key.method == Method::Chunks {
            launch.workspace();
        }
    }
}

impl Key {
    pub(super) fn name(&self) -> String {
        format!(
            "scan_{}_{}_{}_to_{}_{}_{}{}_{}",
            ctype::reduction(self.reduction),
            ctype::value(self.compute),
            ctype::value(self.input),
            ctype::value(self.output),
            if self.exclusive { "exclusive" } else { "inclusive" },
            match self.method {
                Method::Serial => "serial",
                Method::Rows => "rows",
                Method::Chunks => "chunks",
            },
            self.rank,
            if self.wide { 64 } else { 32 },
        )
    }

    pub(super) fn suffixes(&self) -> &'static [&'static str] {
        match self.method {
            Method::Chunks => &["_totals", "_carries", "_values"],
            _ => &[""],
        }
    }

    pub(super) fn fragments(&self) -> Fragments {
        ctype::fragments(ctype::working(self.compute)).with(Fragments::REDUCE).with(Fragments::SCAN)
    }

    pub(super) fn kernels(&self, name: &str) -> String {
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
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &format!(
            "struct {name}_read {{
    const char* in;
    {offset} stride;
    METHOD {accumulator} operator()({index} i) const {{
        return convert<{accumulator}>(convert<{compute}>(load<{input}>(in + ({offset})i * stride)));
    }}
}};
struct {name}_write {{
    char* out;
    {offset} stride;
    METHOD void operator()({index} i, {accumulator} value) const {{
        store<{output}>(out + ({offset})i * stride, convert<{output}>(convert<{compute}>(value)));
    }}
}};
"
        );
        let head = |suffix: &str| {
            let carries = match self.method {
                Method::Chunks => format!(", {accumulator}* carries"),
                _ => String::new(),
            };
            format!(
                "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{suffix}({space} rows, \
                 {index} length, {index} chunk, {index} chunks, i64 out_stride, i64 in_stride, \
                 {initial} initial, char* out, const char* in{carries}) {{\n"
            )
        };
        let place = format!(
            "        {offset} offset[2];
        rows.locate(row, offset);
        {name}_read read;
        read.in = in + offset[1];
        read.stride = ({offset})in_stride;
        {name}_write write;
        write.out = out + offset[0];
        write.stride = ({offset})out_stride;
"
        );
        let parts = format!(
            "    for ({index} work = blockIdx.x; work < rows.count * chunks; work += gridDim.x) {{
        const {index} row = work / chunks;
        const {index} begin = (work - row * chunks) * chunk;
        const {index} end = length - begin < chunk ? length : begin + chunk;
{place}"
        );
        let range = format!("scan_range<{name}_operator, {exclusive}, {index}>");
        match self.method {
            Method::Serial => {
                text += &head("");
                text += &format!(
                    "    const {index} step = ({index})gridDim.x * blockDim.x;
    for ({index} row = ({index})blockIdx.x * blockDim.x + threadIdx.x; row < rows.count; row += step) {{
{place}        scan_serial<{name}_operator, {exclusive}, {index}>(read, write, length, {start});
    }}
}}
"
                );
            }
            Method::Rows => {
                text += &head("");
                text += &format!(
                    "{parts}        {range}(read, write, begin, end, {start});\n    }}\n}}\n"
                );
            }
            Method::Chunks => {
                text += &head("_totals");
                text += &format!(
                    "{parts}        const {accumulator} total = scan_total<{name}_operator, {index}>(read, begin, end);
        if (threadIdx.x == 0) {{
            carries[work] = total;
        }}
    }}
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_carries({index} rows, {index} chunks, {initial} initial, {accumulator}* carries) {{
    for ({index} row = blockIdx.x; row < rows; row += gridDim.x) {{
        Carries<{accumulator}, {index}> carry;
        carry.values = carries + row * chunks;
        scan_range<{name}_operator, true, {index}>(carry, carry, ({index})0, chunks, {start});
    }}
}}
"
                );
                text += &head("_values");
                text += &format!(
                    "{parts}        {range}(read, write, begin, end, carries[work]);\n    }}\n}}\n"
                );
            }
        }
        text
    }
}
