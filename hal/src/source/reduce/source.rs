//! The source of reductions.

use super::key::{Access, Key, MappedTypes};
use crate::dtype::DType;
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;
use smallvec::SmallVec;

impl KernelKey for Key {
    fn name(&self) -> String {
        let mapped = match self.input {
            MappedTypes::Identity(_) => "elements",
            MappedTypes::Product(..) => "products",
            MappedTypes::Indexed(..) => "indexed",
        };
        let types: Vec<&str> = self.types().iter().map(|&dtype| ctype::value(dtype)).collect();
        format!(
            "reduce_{}_{}_{mapped}_{}_to_{}_{}by{}_{}{}{}",
            self.reduction.name(),
            ctype::value(self.compute),
            types.join("_"),
            ctype::value(self.output),
            self.ranks.0,
            self.ranks.1,
            if self.wide { 64 } else { 32 },
            match self.access {
                Access::Packs(deep) => format!("_packed{deep}"),
                Access::Columns(wide) => format!("_columns{wide}"),
                Access::Elements => String::new(),
            },
            if self.staged { "_staged" } else { "" },
        )
    }

    fn suffixes(&self) -> &'static [&'static str] {
        if self.staged { &["_partial", "_final"] } else { &[""] }
    }

    fn prelude(&self) -> Prelude {
        let working = self.compute.working();
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        let indexed = match self.input {
            MappedTypes::Indexed(..) => Prelude::INDEXED,
            _ => Prelude::NONE,
        };
        ctype::prelude(working)
            .with(ctype::prelude(accumulator))
            .with(Prelude::REDUCE)
            .with(indexed)
    }

    fn kernels(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let accumulator = self.accumulator();
        let result = ctype::value(self.reduction.result(self.compute));
        let output = ctype::value(self.output);
        let kept = type_name(self.ranks.0, 1 + self.types().len(), self.wide);
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &match self.access {
            Access::Packs(_) | Access::Columns(_) => self.packs(name),
            Access::Elements => self.elements(name),
        };
        text += &format!(
            "struct {name}_sink {{
    const {kept}* kept;
    char* out;
    METHOD void operator()({index} output, {index}, {accumulator} value) const {{
        {offset} offset[{}];
        kept->locate(output, offset);
        store<{output}>(out + offset[0], convert<{output}>(convert<{result}>(value)));
    }}
}};
",
            1 + self.types().len(),
        );
        let (target, sink) = match self.staged {
            true => (
                format!("{accumulator}* partials"),
                format!(
                    "Partials<{accumulator}, {index}> sink;\n    sink.values = partials;\n    \
                     sink.outputs = kept.count;"
                ),
            ),
            false => (
                "char* out".to_owned(),
                format!("{name}_sink sink;\n    sink.kept = &kept;\n    sink.out = out;"),
            ),
        };
        let reduced = type_name(self.ranks.1, self.types().len(), self.wide);
        let (_, parameters, arguments, _) = self.extra();
        let (shape, call) = match self.access {
            Access::Packs(deep) => (
                ", u32 tail",
                format!(
                    "reduce_packs<{name}_operator, {}, {deep}>(source, sink, kept.count, reduced.count, tail, chunk, chunks)",
                    self.input.pack().unwrap_or(1)
                ),
            ),
            Access::Columns(wide) => {
                let pack = self.input.columns().unwrap_or(1);
                (
                    "",
                    format!(
                        "reduce_columns<{name}_operator, {pack}, {wide}>(source, sink, kept.count / {pack}, reduced.count, chunk, chunks)"
                    ),
                )
            }
            Access::Elements => (
                ", u32 split, u32 across",
                format!(
                    "reduce_elements<{name}_operator>(source, sink, kept.count, reduced.count, chunk, chunks, split, across)"
                ),
            ),
        };
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
             {reduced} reduced, {index} chunk, {index} chunks{shape}, {target}, \
             const char* a{parameters}) {{
    {name}_source source;
    source.kept = &kept;
    source.reduced = &reduced;
    source.a = a;
    {arguments}
    {sink}
    {call};
}}
",
            self.suffixes()[0]
        );
        if self.staged {
            text += &format!(
                "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
                 {index} chunks, u32 by_block, char* out, const {accumulator}* partials) {{
    {name}_sink sink;
    sink.kept = &kept;
    sink.out = out;
    reduce_partials<{name}_operator>(sink, partials, kept.count, chunks, by_block);
}}
",
                self.suffixes()[1]
            );
        }
        text
    }
}

impl Key {
    fn types(&self) -> SmallVec<[DType; 2]> {
        match self.input {
            MappedTypes::Identity(a) => SmallVec::from_slice(&[a]),
            MappedTypes::Product(a, b) | MappedTypes::Indexed(a, b) => {
                SmallVec::from_slice(&[a, b])
            }
        }
    }

    fn accumulator(&self) -> &'static str {
        ctype::value(ctype::accumulator(self.reduction, self.compute))
    }

    /// What a second input and an indexed axis add: fields, parameters, their assignment to a
    /// source, and from there to a row.
    fn extra(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self.input {
            MappedTypes::Identity(_) => ("", "", "", ""),
            MappedTypes::Product(..) => (
                "    const char* b;\n",
                ", const char* b",
                "source.b = b;",
                "row.b = b + offset[2];",
            ),
            MappedTypes::Indexed(..) => (
                "    const char* b;\n    i64 length;\n    i64 stride;\n",
                ", const char* b, i64 length, i64 stride",
                "source.b = b; source.length = length; source.stride = stride;",
                "row.b = b + offset[2]; row.length = length; row.stride = stride;",
            ),
        }
    }

    /// The structs that read an output's elements one by one, anywhere.
    fn elements(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (accumulator, inputs) = (self.accumulator(), self.types().len());
        let element = self.element("offset[0]", "offset[1]");
        let methods = format!(
            "    METHOD {accumulator} operator()({index} i) const {{
        {offset} offset[{inputs}];
        reduced->locate(i, offset);
{element}    }}
"
        );
        self.row_and_source(name, &methods)
    }

    /// The structs that read packs, of one output's elements or of one of each output.
    fn packs(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (accumulator, inputs) = (self.accumulator(), self.types().len());
        let columns = matches!(self.access, Access::Columns(_));
        let pack = if columns { self.input.columns() } else { self.input.pack() }.unwrap_or(1);
        // Packs of one axis are neighbours, and need not be aligned.
        let run = !columns && self.ranks.1 == 1;
        let (mut arrays, mut fetches, mut aligned) = (String::new(), String::new(), Vec::new());
        for (position, (input, dtype)) in ["a", "b"].into_iter().zip(self.types()).enumerate() {
            let kind = format!("{}, {pack}", ctype::stored(dtype));
            arrays += &format!("        Pack<{kind}> pack_{input}[COUNT];\n");
            if run {
                arrays += &format!(
                    "        const char* from_{input} = {input} + (u64)i * sizeof(Pack<{kind}>);\n"
                );
                fetches += &format!(
                    "            pack_{input}[j] = fetch<ALIGNED, {kind}>(from_{input} + j * STEP * sizeof(Pack<{kind}>));\n"
                );
                aligned.push(format!("packable<{kind}>({input})"));
            } else {
                fetches += &format!(
                    "            pack_{input}[j] = fetch<true, {kind}>({input} + offset[{position}]);\n"
                );
            }
        }
        let locate = match run {
            true => String::new(),
            false => format!(
                "            {offset} offset[{inputs}];
            reduced->locate(i + ({index})j * STEP, offset);
"
            ),
        };
        let value = self.value(|input, dtype| {
            format!("Stored<{}>::get(pack_{input}[j].item[k])", ctype::value(dtype))
        });
        let (result, combine) = match columns {
            true => (
                format!("Beside<{name}_operator, {pack}>::value"),
                format!(
                    "            for (int k = 0; k < {pack}; ++k) {{
                folded[j].item[k] = {value};
            }}
        }}
        return fold<Beside<{name}_operator, {pack}>, COUNT>(folded);
"
                ),
            ),
            false => (
                accumulator.to_owned(),
                format!(
                    "            {accumulator} leaf[{pack}];
#pragma unroll
            for (int k = 0; k < {pack}; ++k) {{
                leaf[k] = {value};
            }}
            folded[j] = fold<{name}_operator, {pack}>(leaf);
        }}
        return fold<{name}_operator, COUNT>(folded);
"
                ),
            ),
        };
        let size = |dtype: DType| format!("i * sizeof({})", ctype::stored(dtype));
        let sizes: SmallVec<[String; 2]> = self.types().into_iter().map(size).collect();
        let element = self.element(&sizes[0], sizes.last().unwrap_or(&sizes[0]));
        let methods = format!(
            "    METHOD bool aligned() const {{ return {aligned}; }}
    METHOD {accumulator} element({index} i) const {{
{element}    }}
    template <bool ALIGNED, int COUNT, u32 STEP>
    METHOD {result} gather({index} i) const {{
{arrays}#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
{locate}{fetches}        }}
        {result} folded[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
{combine}    }}
",
            aligned = if run { aligned.join(" && ") } else { "true".to_owned() },
        );
        self.row_and_source(name, &methods)
    }

    /// The struct of an output's elements, with these methods, and the one that finds it.
    fn row_and_source(&self, name: &str, methods: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let inputs = self.types().len();
        let kept = type_name(self.ranks.0, 1 + inputs, self.wide);
        let reduced = type_name(self.ranks.1, inputs, self.wide);
        let (fields, _, _, copies) = self.extra();
        format!(
            "struct {name}_row {{
    const {reduced}* reduced;
    const char* a;
{fields}{methods}}};
struct {name}_source {{
    typedef {name}_row Row;
    const {kept}* kept;
    const {reduced}* reduced;
    const char* a;
{fields}    METHOD Row at({index} output) const {{
        {offset} offset[{}];
        kept->locate(output, offset);
        Row row;
        row.reduced = reduced;
        row.a = a + offset[1];
        {copies}
        return row;
    }}
}};
",
            1 + inputs
        )
    }

    /// What is combined, of the inputs' elements as `read` returns them.
    fn value(&self, read: impl Fn(&str, DType) -> String) -> String {
        let (compute, accumulator) = (ctype::value(self.compute), self.accumulator());
        let working = self.compute.working();
        let load = |input: &str, dtype: DType| {
            format!(
                "convert<{}>(convert<{compute}>({}))",
                ctype::value(working),
                read(input, dtype)
            )
        };
        match self.input {
            MappedTypes::Identity(a) | MappedTypes::Indexed(a, _) => {
                format!("convert<{accumulator}>({})", load("a", a))
            }
            MappedTypes::Product(a, b) => format!(
                "convert<{accumulator}>({}::multiply({}, {}))",
                ctype::functions(working),
                load("a", a),
                load("b", b)
            ),
        }
    }

    /// Statements that return the element at these offsets.
    fn element(&self, a: &str, b: &str) -> String {
        let MappedTypes::Indexed(_, at) = self.input else {
            let value = self.value(|input, dtype| {
                let offset = if input == "a" { a } else { b };
                format!("load<{}>({input} + {offset})", ctype::value(dtype))
            });
            return format!("        return {value};\n");
        };
        let value = self
            .value(|_, dtype| format!("load<{}>(a + {a} + place * stride)", ctype::value(dtype)));
        format!(
            "        i64 place;
        if (!resolve(load<{}>(b + {b}), length, &place)) {{
            return convert<{}>((i32)0);
        }}
        return {value};
",
            ctype::value(at),
            self.accumulator()
        )
    }
}
