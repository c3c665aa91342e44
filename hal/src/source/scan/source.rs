//! The source of scans.

use super::key::{Key, Method};
use crate::dtype::DType;
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;

impl KernelKey for Key {
    fn name(&self) -> String {
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

    fn suffixes(&self) -> &'static [&'static str] {
        if self.staged() { &["_totals", "_carries", "_values"] } else { &[""] }
    }

    fn prelude(&self) -> Prelude {
        ctype::prelude(self.compute.working()).with(Prelude::REDUCE).with(Prelude::SCAN)
    }

    fn kernels(&self, name: &str) -> String {
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
        let row_loop = |order: &str| {
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
            text += &row_loop("turn");
            text += &format!("        {range}(read, write, begin, end, {start});\n    }}\n}}\n");
            return text;
        }
        text += &head("_totals");
        text += &row_loop("turn");
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
        text += &row_loop("works - 1 - turn");
        text += &format!("        {range}(read, write, begin, end, carries[work]);\n    }}\n}}\n");
        text
    }
}
