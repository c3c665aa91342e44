//! The source of reductions.

use super::ctype;
use super::fragment::Fragments;
use super::reduce::{Key, Source, Walk};
use super::space::{THREADS, type_name};
use crate::dtype::DType;
use smallvec::SmallVec;

impl Key {
    fn types(&self) -> SmallVec<[DType; 2]> {
        match self.source {
            Source::Identity(a) => SmallVec::from_slice(&[a]),
            Source::Product(a, b) | Source::Indexed(a, b) => SmallVec::from_slice(&[a, b]),
        }
    }

    pub(super) fn name(&self) -> String {
        let source = match self.source {
            Source::Identity(_) => "elements",
            Source::Product(..) => "products",
            Source::Indexed(..) => "indexed",
        };
        let types: Vec<&str> = self.types().iter().map(|&dtype| ctype::value(dtype)).collect();
        format!(
            "reduce_{}_{}_{source}_{}_to_{}_{}by{}_{}{}{}",
            ctype::reduction(self.reduction),
            ctype::value(self.compute),
            types.join("_"),
            ctype::value(self.output),
            self.ranks.0,
            self.ranks.1,
            if self.wide { 64 } else { 32 },
            match self.walk {
                Walk::Packs(deep) => format!("_packed{deep}"),
                Walk::Elements => String::new(),
            },
            if self.staged { "_staged" } else { "" },
        )
    }

    pub(super) fn suffixes(&self) -> &'static [&'static str] {
        if self.staged { &["_partial", "_final"] } else { &[""] }
    }

    pub(super) fn fragments(&self) -> Fragments {
        let working = ctype::working(self.compute);
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        let indexed = match self.source {
            Source::Indexed(..) => Fragments::INDEXED,
            _ => Fragments::NONE,
        };
        ctype::fragments(working)
            .with(ctype::fragments(accumulator))
            .with(Fragments::REDUCE)
            .with(indexed)
    }

    pub(super) fn kernels(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let accumulator = self.accumulator();
        let result = ctype::value(self.reduction.result(self.compute));
        let output = ctype::value(self.output);
        let kept = type_name(self.ranks.0, 1 + self.types().len(), self.wide);
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &match self.walk {
            Walk::Packs(_) => self.packs(name),
            Walk::Elements => self.elements(name),
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
        let (shape, fill, call) = match self.walk {
            Walk::Packs(deep) => (
                format!("{index} packs, u32 tail, {index} chunk, {index} chunks"),
                "",
                format!(
                    "reduce_packs<{name}_operator, {}, {deep}>(source, sink, kept.count, packs, tail, chunk, chunks)",
                    self.source.pack().unwrap_or(1)
                ),
            ),
            Walk::Elements => (
                format!("{reduced} reduced, {index} chunk, {index} chunks, u32 split, u32 across"),
                "source.reduced = &reduced;",
                format!(
                    "reduce_elements<{name}_operator>(source, sink, kept.count, reduced.count, chunk, chunks, split, across)"
                ),
            ),
        };
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
             {shape}, {target}, const char* a{parameters}) {{
    {name}_source source;
    source.kept = &kept;
    {fill}
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

    fn accumulator(&self) -> &'static str {
        ctype::value(ctype::accumulator(self.reduction, self.compute))
    }

    /// What a second input and an indexed axis add: fields, parameters, their assignment to a
    /// source, and from there to a row.
    fn extra(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self.source {
            Source::Identity(_) => ("", "", "", ""),
            Source::Product(..) => (
                "    const char* b;\n",
                ", const char* b",
                "source.b = b;",
                "row.b = b + offset[2];",
            ),
            Source::Indexed(..) => (
                "    const char* b;\n    i64 length;\n    i64 stride;\n",
                ", const char* b, i64 length, i64 stride",
                "source.b = b; source.length = length; source.stride = stride;",
                "row.b = b + offset[2]; row.length = length; row.stride = stride;",
            ),
        }
    }

    /// The structs that read an output's elements one by one, at any places.
    fn elements(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (accumulator, inputs) = (self.accumulator(), self.types().len());
        let reduced = type_name(self.ranks.1, inputs, self.wide);
        let element = self.element("offset[0]", "offset[1]");
        let row = format!(
            "struct {name}_row {{
    const {reduced}* reduced;
    const char* a;
{fields}    METHOD {accumulator} operator()({index} i) const {{
        {offset} offset[{inputs}];
        reduced->locate(i, offset);
{element}    }}
}};
",
            fields = self.extra().0,
        );
        let field = format!("    const {reduced}* reduced;\n");
        row + &self.source_struct(name, &field, "row.reduced = reduced;")
    }

    /// The structs that read an output's elements in packs.
    fn packs(&self, name: &str) -> String {
        let (index, accumulator) = (ctype::index(self.wide).0, self.accumulator());
        let (mut aligned, mut fetches) = (Vec::new(), String::new());
        let pack = self.source.pack().unwrap_or(1);
        for (input, dtype) in ["a", "b"].into_iter().zip(self.types()) {
            let kind = format!("{}, {pack}", ctype::stored(dtype));
            aligned.push(format!("packable<{kind}>({input})"));
            fetches += &format!(
                "        const char* from_{input} = {input} + (u64)i * sizeof(Pack<{kind}>);
        Pack<{kind}> pack_{input}[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
            pack_{input}[j] = fetch<ALIGNED, {kind}>(from_{input} + j * STEP * sizeof(Pack<{kind}>));
        }}
"
            );
        }
        let size = |dtype: DType| format!("i * sizeof({})", ctype::stored(dtype));
        let places: Vec<String> = self.types().into_iter().map(size).collect();
        let (a, b) = (&places[0], places.last().unwrap_or(&places[0]));
        let item = |input: &str, dtype: DType| {
            format!("Stored<{}>::get(pack_{input}[j].item[k])", ctype::value(dtype))
        };
        let row = format!(
            "struct {name}_row {{
    const char* a;
{fields}    METHOD bool aligned() const {{ return {aligned}; }}
    METHOD {accumulator} element({index} i) const {{
{element}    }}
    template <bool ALIGNED, int COUNT, u32 STEP>
    METHOD {accumulator} gather({index} i) const {{
{fetches}        {accumulator} folded[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
            {accumulator} leaf[{pack}];
#pragma unroll
            for (int k = 0; k < {pack}; ++k) {{
                leaf[k] = {value};
            }}
            folded[j] = fold<{name}_operator, {pack}>(leaf);
        }}
        return fold<{name}_operator, COUNT>(folded);
    }}
}};
",
            fields = self.extra().0,
            aligned = aligned.join(" && "),
            element = self.element(a, b),
            value = self.value(item),
        );
        row + &self.source_struct(name, "", "")
    }

    /// The struct that finds an output's row.
    fn source_struct(&self, name: &str, field: &str, copy: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let operands = 1 + self.types().len();
        let kept = type_name(self.ranks.0, operands, self.wide);
        let (fields, _, _, copies) = self.extra();
        format!(
            "struct {name}_source {{
    typedef {name}_row Row;
    const {kept}* kept;
{field}    const char* a;
{fields}    METHOD Row at({index} output) const {{
        {offset} offset[{operands}];
        kept->locate(output, offset);
        Row row;
        row.a = a + offset[1];
        {copy}
        {copies}
        return row;
    }}
}};
"
        )
    }

    /// What is combined, of the inputs' elements as `read` gives them.
    fn value(&self, read: impl Fn(&str, DType) -> String) -> String {
        let (compute, accumulator) = (ctype::value(self.compute), self.accumulator());
        let working = ctype::working(self.compute);
        let load = |input: &str, dtype: DType| {
            format!(
                "convert<{}>(convert<{compute}>({}))",
                ctype::value(working),
                read(input, dtype)
            )
        };
        match self.source {
            Source::Identity(a) | Source::Indexed(a, _) => {
                format!("convert<{accumulator}>({})", load("a", a))
            }
            Source::Product(a, b) => format!(
                "convert<{accumulator}>({}::multiply({}, {}))",
                ctype::functions(working),
                load("a", a),
                load("b", b)
            ),
        }
    }

    /// Statements that return the element at these offsets.
    fn element(&self, a: &str, b: &str) -> String {
        let Source::Indexed(_, at) = self.source else {
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
