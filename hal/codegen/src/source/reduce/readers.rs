//! The parts of a reduction's source that read an output's elements and compute the combined values.

use super::{AccessPattern, Key, MappedTypes};
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use hal::dtype::DType;
use smallvec::SmallVec;

/// The code that kernels need in addition to the first input.
#[derive(Default)]
pub(super) struct Extra {
    /// The fields of both a source and a row, and the fields of a row only.
    fields: String,
    row: String,
    /// The parameters of a kernel, and the expressions that pass them to a source.
    pub(super) parameters: String,
    pub(super) arguments: String,
    /// Statements that fill a row's fields from a source.
    copies: String,
}

/// The number of elements whose positions or deviations are computed together.
const LEAVES: u64 = 32;

impl Key {
    pub(super) fn types(&self) -> SmallVec<[DType; 2]> {
        match self.input {
            MappedTypes::Identity(a)
            | MappedTypes::SquaredDeviation(a)
            | MappedTypes::Position(a) => SmallVec::from_slice(&[a]),
            MappedTypes::Product(a, b) | MappedTypes::Indexed(a, b) => {
                SmallVec::from_slice(&[a, b])
            }
        }
    }

    /// Returns the code for the inputs of the kernels called `name` other than the first one, and for deviations.
    pub(super) fn extra(&self, name: &str) -> Extra {
        let mut extra = self.extra_of_input();
        if let Some(formula) = &self.formula {
            extra.fields = format!("    {name}_inputs in;\n");
            extra.parameters = formula.parameters(self.wide);
            extra.arguments = formula.arguments();
            extra.copies = format!("row.in = in;\n        {}", extra.copies);
        }
        extra
    }

    fn extra_of_input(&self) -> Extra {
        match self.input {
            MappedTypes::Identity(_) | MappedTypes::Position(_) => Extra::default(),
            // Deviations are taken from one of the output's elements, which is about as close to the
            // elements as they are to each other.
            MappedTypes::SquaredDeviation(a) => {
                let outputs = match self.access {
                    AccessPattern::Columns(_) => self.input.columns().unwrap_or(1),
                    AccessPattern::Packs(_) | AccessPattern::Elements => 1,
                };
                let value = self.value_type();
                let at = |address: &str| match &self.formula {
                    Some(_) => self.computed(&format!("in.at({})", self.number(address))),
                    None => self.computed(&format!("load<{}>({address})", ctype::value(a))),
                };
                let (first, other) = (at("row.a"), at("a + offset[1]"));
                Extra {
                    row: format!("    {value} pivot[{outputs}];\n"),
                    copies: format!(
                        "row.pivot[0] = reduced->count == 0 ? ({value})0 : {first};
#pragma unroll
        for (int k = 1; k < {outputs}; ++k) {{
            kept->locate(output + k, offset);
            row.pivot[k] = reduced->count == 0 ? ({value})0 : {other};
        }}"
                    ),
                    ..Extra::default()
                }
            }
            MappedTypes::Product(..) => Extra {
                fields: "    const char* b;\n".to_owned(),
                parameters: ", const char* b".to_owned(),
                arguments: "source.b = b;".to_owned(),
                copies: "row.b = b + offset[2];".to_owned(),
                ..Extra::default()
            },
            MappedTypes::Indexed(..) => Extra {
                fields: "    const char* b;\n    i64 length;\n    i64 stride;\n".to_owned(),
                parameters: ", const char* b, i64 length, i64 stride".to_owned(),
                arguments: "source.b = b; source.length = length; source.stride = stride;"
                    .to_owned(),
                copies: "row.b = b + offset[2]; row.length = length; row.stride = stride;"
                    .to_owned(),
                ..Extra::default()
            },
        }
    }

    /// Returns the structs that read an output's elements one by one, at any positions.
    pub(super) fn elements(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (partial, inputs) = (self.partial(), self.input.strided());
        let element = self.element("offset[0]", "offset[1]");
        let methods = format!(
            "    METHOD {partial} operator()({index} i) const {{
        {offset} offset[{inputs}];
        reduced->locate(i, offset);
{element}    }}
"
        );
        self.row_and_source(name, &methods)
    }

    /// Returns the number of elements per pack.
    pub(super) fn pack(&self) -> u64 {
        let pack = match self.access {
            AccessPattern::Columns(_) => self.input.columns(),
            AccessPattern::Packs(_) | AccessPattern::Elements => self.input.pack(),
        };
        pack.unwrap_or(1)
    }

    /// Returns the structs that read packs, either of one output's elements or of one element per output.
    pub(super) fn packs(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (partial, inputs) = (self.partial(), self.input.strided());
        let varying = if self.formula.is_some() { 0 } else { self.input.varying() };
        let columns = matches!(self.access, AccessPattern::Columns(_));
        let pack = self.pack();
        // Packs along a single axis are neighbours, and need not be aligned.
        let run = !columns && self.ranks.1 == 1;
        let (mut arrays, mut fetches, mut aligned) = (String::new(), String::new(), Vec::new());
        for (position, (input, dtype)) in
            ["a", "b"].into_iter().zip(self.types()).take(varying).enumerate()
        {
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
        let item_of = |input: &str, pack: &str, dtype: DType| {
            format!("Stored<{}>::get(pack_{input}[{pack}].item[k])", ctype::value(dtype))
        };
        let item = |input: &str, dtype: DType| item_of(input, "j", dtype);
        let reads = match &self.formula {
            Some(_) => String::new(),
            None => format!(
                "{arrays}#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
{locate}{fetches}        }}
"
            ),
        };
        let body = match (self.input, columns) {
            (MappedTypes::SquaredDeviation(a) | MappedTypes::Position(a), _) => {
                let at = "group * GROUP + j";
                let (read, item) = match &self.formula {
                    None => (String::new(), item_of("a", at, a)),
                    Some(_) => {
                        let (locate, number) = self.pack_number(at, run, a);
                        let read = format!(
                            "{locate}                const {name}_packs packs = in.template read<ALIGNED>({number});\n"
                        );
                        (read, "in.item(packs, k)".to_owned())
                    }
                };
                self.whole_gather(name, pack, &read, &self.leaf(&item, columns))
            }
            (MappedTypes::Identity(value), _) if self.formula.is_some() => {
                self.gather_values(name, run, value)
            }
            (_, true) => format!(
                "        Beside<{name}_operator, {pack}>::value folded[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
            for (int k = 0; k < {pack}; ++k) {{
                folded[j].item[k] = {value};
            }}
        }}
        return fold<Beside<{name}_operator, {pack}>, COUNT>(folded);
",
                value = self.value(item),
            ),
            (_, false) => format!(
                "        {partial} folded[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {{
            {partial} leaf[{pack}];
#pragma unroll
            for (int k = 0; k < {pack}; ++k) {{
                leaf[k] = {value};
            }}
            folded[j] = fold<{name}_operator, {pack}>(leaf);
        }}
        return fold<{name}_operator, COUNT>(folded);
",
                value = self.value(item),
            ),
        };
        let result = match columns {
            true => format!("Beside<{name}_operator, {pack}>::value"),
            false => partial.clone(),
        };
        let size = |dtype: DType| format!("i * sizeof({})", ctype::stored(dtype));
        let sizes: SmallVec<[String; 2]> = self.types().into_iter().map(size).collect();
        let element = self.element(&sizes[0], sizes.last().unwrap_or(&sizes[0]));
        let methods = format!(
            "    METHOD bool aligned() const {{ return {aligned}; }}
    METHOD {partial} element({index} i) const {{
{element}    }}
    template <bool ALIGNED, int COUNT, u32 STEP>
    METHOD {result} gather({index} i) const {{
{reads}{body}    }}
",
            aligned = match (run, &self.formula) {
                (false, _) => "true".to_owned(),
                (true, Some(_)) => format!("in.aligned({})", self.number("a")),
                (true, None) => aligned.join(" && "),
            },
        );
        self.row_and_source(name, &methods)
    }

    /// Returns statements that combine packs of a formula's values. Several packs are read before the first is used.
    fn gather_values(&self, name: &str, run: bool, stored: DType) -> String {
        let (pack, partial) = (self.pack(), self.partial());
        let most = self.formula.as_ref().map_or(1, |it| it.packs_at_once(pack));
        let value = self.value(|_, _| "in.item(packs[j], k)".to_owned());
        let columns = matches!(self.access, AccessPattern::Columns(_));
        let operator = match columns {
            true => format!("Beside<{name}_operator, {pack}>"),
            false => format!("{name}_operator"),
        };
        let (leaf, combined) = match columns {
            true => (format!("{operator}::value leaf;"), "leaf".to_owned()),
            false => {
                (format!("{partial} leaf[{pack}];"), format!("fold<{operator}, {pack}>(leaf)"))
            }
        };
        let item = if columns { "leaf.item[k]" } else { "leaf[k]" };
        let (locate, number) = self.pack_number("group + j", run, stored);
        format!(
            "        constexpr int GROUP = COUNT < {most} ? COUNT : {most};
        {operator}::value folded[COUNT];
#pragma unroll
        for (int group = 0; group < COUNT; group += GROUP) {{
            {name}_packs packs[GROUP];
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {{
{locate}                packs[j] = in.template read<ALIGNED>({number});
            }}
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {{
                {leaf}
#pragma unroll
                for (int k = 0; k < {pack}; ++k) {{
                    {item} = {value};
                }}
                folded[group + j] = {combined};
            }}
        }}
        return fold<{operator}, COUNT>(folded);
"
        )
    }

    /// Returns statements that locate a pack of a formula's values, and the number of the first value.
    fn pack_number(&self, at: &str, run: bool, stored: DType) -> (String, String) {
        let (index, offset) = ctype::index(self.wide);
        let number = format!("(i + ({index})({at}) * STEP)");
        match run {
            true => {
                let kind = format!("{}, {}", ctype::stored(stored), self.pack());
                let from = format!("a + (u64){number} * sizeof(Pack<{kind}>)");
                (String::new(), self.number(&from))
            }
            false => {
                let strided = self.input.strided();
                let locate = format!(
                    "                {offset} offset[{strided}];
                reduced->locate({number}, offset);
"
                );
                (locate, self.number("a + offset[0]"))
            }
        }
    }

    /// Returns statements that combine long packs together: `leaf` is element `k` of pack `j`, after `read`.
    fn whole_gather(&self, name: &str, pack: u64, read: &str, leaf: &str) -> String {
        let value = self.value_type();
        let columns = matches!(self.access, AccessPattern::Columns(_));
        let (operator, of_one, at) = match columns {
            true => (format!("Beside<{name}_operator, {pack}>"), 1, "k * GROUP + j"),
            false => (format!("{name}_operator"), pack, "j * PACK + k"),
        };
        // More would need so many registers that too few threads could run.
        let most = (LEAVES / pack).max(1);
        format!(
            "        constexpr int PACK = {pack};
        constexpr int GROUP = COUNT < {most} ? COUNT : {most};
        {operator}::value part[COUNT / GROUP];
#pragma unroll
        for (int group = 0; group < COUNT / GROUP; ++group) {{
            {value} leaf[GROUP * PACK];
#pragma unroll
            for (int j = 0; j < GROUP; ++j) {{
{read}#pragma unroll
                for (int k = 0; k < PACK; ++k) {{
                    leaf[{at}] = {leaf};
                }}
            }}
            part[group] = {operator}::template gathered<GROUP, {of_one}, STEP>(leaf, (i + group * GROUP * STEP) * {of_one});
        }}
        return fold<{operator}, COUNT / GROUP>(part);
"
        )
    }

    /// Returns the struct of an output's elements, with these methods, and the struct that locates it.
    fn row_and_source(&self, name: &str, methods: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let inputs = self.input.strided();
        let kept = type_name(self.ranks.0, 1 + inputs, self.wide);
        let reduced = type_name(self.ranks.1, inputs, self.wide);
        let Extra { fields, row, copies, .. } = self.extra(name);
        let formula = self.formula.as_ref();
        let formula = formula.map(|it| it.definition(name, self.pack(), self.wide));
        format!(
            "{}struct {name}_row {{
    const {reduced}* reduced;
    const char* a;
{fields}{row}{methods}}};
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
            formula.unwrap_or_default(),
            1 + inputs
        )
    }

    /// Returns the number of a formula's value whose place would be at `address`.
    fn number(&self, address: &str) -> String {
        let (index, stored) = (ctype::index(self.wide).0, ctype::stored(self.types()[0]));
        format!("({index})((u64)({address}) / sizeof({stored}))")
    }

    /// Returns an element of the input, as read by `read`, in the computing type.
    fn computed(&self, read: &str) -> String {
        format!(
            "convert<{}>(convert<{}>({read}))",
            ctype::value(self.compute.working()),
            ctype::value(self.compute)
        )
    }

    /// Returns the value for positions and deviations from an element of the only input.
    fn leaf(&self, read: &str, columns: bool) -> String {
        let value = format!("convert<{}>({})", self.value_type(), self.computed(read));
        match self.input {
            MappedTypes::SquaredDeviation(_) if columns => format!("{value} - pivot[k]"),
            MappedTypes::SquaredDeviation(_) => format!("{value} - pivot[0]"),
            _ => value,
        }
    }

    /// Returns the combined value, from the inputs' elements as returned by `read`; `i` is the element's
    /// index in the output's row.
    fn value(&self, read: impl Fn(&str, DType) -> String) -> String {
        let value = self.value_type();
        let load = |input: &str, dtype: DType| self.computed(&read(input, dtype));
        match self.input {
            MappedTypes::Identity(a) | MappedTypes::Indexed(a, _) => {
                format!("convert<{value}>({})", load("a", a))
            }
            MappedTypes::Product(a, b) => {
                let product = format!(
                    "convert<{value}>({}::multiply({}, {}))",
                    ctype::functions(self.compute.working()),
                    load("a", a),
                    load("b", b)
                );
                let is_byte = self.compute.is_integer() && self.compute.size() == 1;
                if is_byte { format!("apart({product})") } else { product }
            }
            MappedTypes::SquaredDeviation(a) => {
                format!("moments_of_one({})", self.leaf(&read("a", a), false))
            }
            MappedTypes::Position(a) => {
                let index = ctype::index(self.wide).0;
                format!("placed({}, ({index})i)", self.leaf(&read("a", a), false))
            }
        }
    }

    /// Returns statements that return the element at these offsets, and index `i`.
    fn element(&self, a: &str, b: &str) -> String {
        let MappedTypes::Indexed(_, at) = self.input else {
            let value = self.value(|input, dtype| {
                let offset = if input == "a" { a } else { b };
                match &self.formula {
                    Some(_) => format!("in.at({})", self.number(&format!("a + {offset}"))),
                    None => format!("load<{}>({input} + {offset})", ctype::value(dtype)),
                }
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
            self.partial()
        )
    }
}
