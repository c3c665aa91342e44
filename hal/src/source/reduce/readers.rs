//! The parts of a reduction's source that read an output's elements, and what is made of each.

use super::key::{Access, Key, MappedTypes};
use crate::dtype::DType;
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use smallvec::SmallVec;

/// What kernels have beside one input.
#[derive(Default)]
pub(super) struct Extra {
    /// Fields of a source and of a row.
    fields: &'static str,
    /// Parameters of a kernel, and what puts them into a source.
    pub(super) parameters: &'static str,
    pub(super) arguments: &'static str,
    /// What fills a row's fields from a source.
    copies: &'static str,
}

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

    /// What a second input and an indexed axis add.
    pub(super) fn extra(&self) -> Extra {
        match self.input {
            MappedTypes::Identity(_)
            | MappedTypes::SquaredDeviation(_)
            | MappedTypes::Position(_) => Extra::default(),
            MappedTypes::Product(..) => Extra {
                fields: "    const char* b;\n",
                parameters: ", const char* b",
                arguments: "source.b = b;",
                copies: "row.b = b + offset[2];",
            },
            MappedTypes::Indexed(..) => Extra {
                fields: "    const char* b;\n    i64 length;\n    i64 stride;\n",
                parameters: ", const char* b, i64 length, i64 stride",
                arguments: "source.b = b; source.length = length; source.stride = stride;",
                copies: "row.b = b + offset[2]; row.length = length; row.stride = stride;",
            },
        }
    }

    /// The structs that read an output's elements one by one, anywhere.
    pub(super) fn elements(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (partial, inputs) = (self.partial(), self.input.strided());
        let element = self.element("offset[0]", "offset[1]", "i");
        let methods = format!(
            "    METHOD {partial} operator()({index} i) const {{
        {offset} offset[{inputs}];
        reduced->locate(i, offset);
{element}    }}
"
        );
        self.row_and_source(name, &methods)
    }

    /// The structs that read packs, of one output's elements or of one of each output.
    pub(super) fn packs(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (partial, inputs) = (self.partial(), self.input.strided());
        let varying = self.input.varying();
        let columns = matches!(self.access, Access::Columns(_));
        let pack = if columns { self.input.columns() } else { self.input.pack() }.unwrap_or(1);
        // Packs of one axis are neighbours, and need not be aligned.
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
        let place = match columns {
            true => "i + j * STEP".to_owned(),
            false => format!("(i + j * STEP) * {pack} + k"),
        };
        let value = self.value(&place, |input, dtype| {
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
                partial.clone(),
                format!(
                    "            {partial} leaf[{pack}];
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
        let element = self.element(&sizes[0], sizes.last().unwrap_or(&sizes[0]), "i");
        let methods = format!(
            "    METHOD bool aligned() const {{ return {aligned}; }}
    METHOD {partial} element({index} i) const {{
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
        let inputs = self.input.strided();
        let kept = type_name(self.ranks.0, 1 + inputs, self.wide);
        let reduced = type_name(self.ranks.1, inputs, self.wide);
        let Extra { fields, copies, .. } = self.extra();
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

    /// What is combined, of the inputs' elements as `read` returns them: those at index `place` of an
    /// output's.
    fn value(&self, place: &str, read: impl Fn(&str, DType) -> String) -> String {
        let (compute, accumulator) = (ctype::value(self.compute), self.value_type());
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
            MappedTypes::SquaredDeviation(a) => {
                format!("moments_of_one(convert<{accumulator}>({}))", load("a", a))
            }
            MappedTypes::Position(a) => format!(
                "placed(convert<{accumulator}>({}), ({})({place}))",
                load("a", a),
                ctype::index(self.wide).0
            ),
        }
    }

    /// Statements that return the element at these offsets, and this index.
    fn element(&self, a: &str, b: &str, place: &str) -> String {
        let MappedTypes::Indexed(_, at) = self.input else {
            let value = self.value(place, |input, dtype| {
                let offset = if input == "a" { a } else { b };
                format!("load<{}>({input} + {offset})", ctype::value(dtype))
            });
            return format!("        return {value};\n");
        };
        let value = self.value(place, |_, dtype| {
            format!("load<{}>(a + {a} + place * stride)", ctype::value(dtype))
        });
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
