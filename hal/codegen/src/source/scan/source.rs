//! The source of scans.

use super::{Key, Method};
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;
use hal::dtype::DType;

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
