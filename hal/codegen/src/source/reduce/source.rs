//! The source of reductions.

use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::reduce::formula::FormulaKey;
use crate::source::reduce::readers::Extra;
use crate::source::reduce::{AccessPattern, Key, MappedTypes};
use hal::function::Reduction;

impl KernelKey for Key {
    fn name(&self) -> String {
        let mapped = match self.input {
            MappedTypes::Identity(_) if self.formula.is_some() => "values",
            MappedTypes::Identity(_) => "elements",
            MappedTypes::Product(..) => "products",
            MappedTypes::Indexed(..) => "indexed",
            MappedTypes::SquaredDeviation(_) => "squared_deviations",
            MappedTypes::Position(_) => "positions",
        };
        let types: Vec<&str> = self.types().iter().map(|&dtype| ctype::value(dtype)).collect();
        let formula =
            self.formula.as_ref().map_or_else(String::new, |it| format!("_{}", it.title()));
        format!(
            "reduce_{}_{}_{mapped}_{}_to_{}_{}by{}_{}{}{}{formula}",
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
        let formula = self.formula.as_ref().map_or(Prelude::NONE, FormulaKey::prelude);
        let own = ctype::prelude(working).with(ctype::prelude(accumulator));
        own.with(Prelude::REDUCE).with(input).with(formula)
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
        let Extra { parameters, arguments, .. } = self.extra(name);
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

// Partial results of an output, and their combination.

impl Key {
    /// Returns the type of a partial result.
    pub(super) fn partial(&self) -> String {
        let value = self.value_type();
        match self.input {
            MappedTypes::SquaredDeviation(_) => format!("Moments<{value}, 1>"),
            MappedTypes::Position(_) => format!("Placed<{value}, {}>", ctype::index(self.wide).0),
            _ => value.to_owned(),
        }
    }

    /// Returns an upper bound of the bytes of a partial result.
    pub(super) fn partial_bytes(&self) -> usize {
        let size = ctype::accumulator(self.reduction, self.compute).size();
        match self.input {
            MappedTypes::SquaredDeviation(_) => 3 * size,
            MappedTypes::Position(_) => {
                let index: usize = if self.wide { 8 } else { 4 };
                (size + index).next_multiple_of(size.max(index))
            }
            _ => size,
        }
    }

    /// Returns the type in which elements are combined or compared.
    pub(super) fn value_type(&self) -> &'static str {
        ctype::value(ctype::accumulator(self.reduction, self.compute))
    }

    /// Returns the struct that combines partial results.
    pub(super) fn operator(&self, name: &str) -> String {
        let operator = |name: &str| ctype::operator(name, self.reduction, self.compute);
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        match self.input {
            MappedTypes::SquaredDeviation(_) => {
                format!("typedef CombineMoments<{}> {name}_operator;\n", self.value_type())
            }
            MappedTypes::Position(_) => format!(
                "{}typedef FirstPlace<{name}_extreme_operator, {}, {}, {}> {name}_operator;\n",
                operator(&format!("{name}_extreme")),
                ctype::functions(accumulator),
                accumulator.is_inexact(),
                ctype::index(self.wide).0
            ),
            _ => operator(name),
        }
    }

    /// Returns true if a complete value is divided by a number that is a kernel argument.
    pub(super) fn has_quotient(&self) -> bool {
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        self.reduction == Reduction::Sum && accumulator.is_inexact()
    }

    /// Returns true if a kernel argument says whether to take the root of a complete value.
    pub(super) fn has_root(&self) -> bool {
        matches!(self.input, MappedTypes::SquaredDeviation(_))
    }

    /// Returns the epilogue as parameters of a kernel, as fields of a struct, and as statements that
    /// copy them into the struct `sink`.
    pub(super) fn epilogue(&self) -> (&'static str, &'static str, &'static str) {
        match (self.has_quotient(), self.has_root()) {
            (false, _) => ("", "", ""),
            (true, false) => {
                (", double divisor", "    double divisor;\n", "\n    sink.divisor = divisor;")
            }
            (true, true) => (
                ", double divisor, u32 root",
                "    double divisor;\n    u32 root;\n",
                "\n    sink.divisor = divisor;\n    sink.root = root;",
            ),
        }
    }

    /// Returns the expression that is stored for an output's complete value.
    pub(super) fn result(&self) -> String {
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        let value = match self.input {
            MappedTypes::Position(_) => return "(i64)value.place".to_owned(),
            MappedTypes::SquaredDeviation(_) => "squares(value)",
            _ => "value",
        };
        let functions = ctype::functions(accumulator);
        let value = match (self.has_quotient(), self.has_root()) {
            (false, _) => value.to_owned(),
            (true, false) => format!("quotient<{functions}>({value}, divisor)"),
            (true, true) => format!("root_of_quotient<{functions}>({value}, divisor, root)"),
        };
        format!("convert<{}>({value})", ctype::value(self.reduction.result(self.compute)))
    }
}
