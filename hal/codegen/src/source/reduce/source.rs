//! The source of reductions.

use super::readers::Extra;
use super::{AccessPattern, Key, MappedTypes};
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;

impl KernelKey for Key {
    fn name(&self) -> String {
        let mapped = match self.input {
            MappedTypes::Identity(_) => "elements",
            MappedTypes::Product(..) => "products",
            MappedTypes::Indexed(..) => "indexed",
            MappedTypes::SquaredDeviation(_) => "squared_deviations",
            MappedTypes::Position(_) => "positions",
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
                AccessPattern::Packs(deep) => format!("_packed{deep}"),
                AccessPattern::Columns(wide) => format!("_columns{wide}"),
                AccessPattern::Elements => String::new(),
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
        let input = match self.input {
            MappedTypes::Indexed(..) => Prelude::INDEXED,
            _ => Prelude::NONE,
        };
        ctype::prelude(working).with(ctype::prelude(accumulator)).with(Prelude::REDUCE).with(input)
    }

    fn kernels(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let partial = self.partial();
        let output = ctype::value(self.output);
        let kept = type_name(self.ranks.0, 1 + self.input.strided(), self.wide);
        let mut text = self.operator(name);
        text += &match self.access {
            AccessPattern::Packs(_) | AccessPattern::Columns(_) => self.packs(name),
            AccessPattern::Elements => self.elements(name),
        };
        let (quotient, fields, copies) = self.epilogue();
        text += &format!(
            "struct {name}_sink {{
    const {kept}* kept;
    char* out;
{fields}    METHOD void operator()({index} output, {index}, {partial} value) const {{
        {offset} offset[{}];
        kept->locate(output, offset);
        store<{output}>(out + offset[0], convert<{output}>({}));
    }}
}};
",
            1 + self.input.strided(),
            self.result(),
        );
        let (target, sink) = match self.staged {
            true => (
                format!("{partial}* partials"),
                format!(
                    "Partials<{partial}, {index}> sink;\n    sink.values = partials;\n    \
                     sink.outputs = kept.count;"
                ),
            ),
            false => (
                "char* out".to_owned(),
                format!("{name}_sink sink;\n    sink.kept = &kept;\n    sink.out = out;{copies}"),
            ),
        };
        let single = if self.staged { "" } else { quotient };
        let reduced = type_name(self.ranks.1, self.input.strided(), self.wide);
        let Extra { parameters, arguments, .. } = self.extra();
        let (shape, call) = match self.access {
            AccessPattern::Packs(deep) => (
                ", u32 tail",
                format!(
                    "reduce_packs<{name}_operator, {}, {deep}>(source, sink, kept.count, reduced.count, tail, chunk, chunks)",
                    self.input.pack().unwrap_or(1)
                ),
            ),
            AccessPattern::Columns(wide) => {
                let pack = self.input.columns().unwrap_or(1);
                (
                    "",
                    format!(
                        "reduce_columns<{name}_operator, {pack}, {wide}>(source, sink, kept.count / {pack}, reduced.count, chunk, chunks)"
                    ),
                )
            }
            AccessPattern::Elements => (
                ", u32 split, u32 across",
                format!(
                    "reduce_elements<{name}_operator>(source, sink, kept.count, reduced.count, chunk, chunks, split, across)"
                ),
            ),
        };
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
             {reduced} reduced, {index} chunk, {index} chunks{shape}, {target}, \
             const char* a{parameters}{single}) {{
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
                 {index} chunks, u32 by_block, char* out, const {partial}* partials{quotient}) {{
    {name}_sink sink;
    sink.kept = &kept;
    sink.out = out;{copies}
    reduce_partials<{name}_operator>(sink, partials, kept.count, chunks, by_block);
}}
",
                self.suffixes()[1]
            );
        }
        text
    }
}
