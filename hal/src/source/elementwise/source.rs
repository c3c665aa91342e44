//! The source of element-wise kernels.

use super::plan::{Access, Key, Slot};
use super::tiled as tile;
use crate::dtype::DType;
use crate::function::{Function, UnaryFunction};
use crate::source::ctype;
use crate::source::iteration_space::{THREADS, type_name};
use crate::source::prelude::Fragments;

impl Key {
    /// The size of the widest array's elements.
    pub(in crate::source) fn widest(&self) -> usize {
        self.inputs.iter().fold(self.output.size(), |widest, slot| match slot {
            Slot::Array(dtype) => widest.max(dtype.size()),
            _ => widest,
        })
    }

    /// Elements of one access: the widest array moves 16 bytes.
    pub(in crate::source) fn pack(&self) -> u64 {
        (16 / self.widest().max(1)).max(1) as u64
    }

    /// Packs of a thread: two where little is read for still less to be stored.
    pub(in crate::source) fn packs(&self) -> u64 {
        let bytes =
            self.output.size() + self.arrays().map(|(_, dtype)| dtype.size()).sum::<usize>();
        let few = bytes as u64 * self.pack() <= 24 && self.output.size() < self.widest();
        if few && !self.is_long() { 2 } else { 1 }
    }

    /// Elements that a thread reads one by one before it uses them, so that the reads wait
    /// for memory together. Long code, whose speed does not depend on memory, is not repeated.
    pub(in crate::source) fn batch(&self) -> u64 {
        if self.is_long() { 1 } else { self.pack().clamp(2, 4) }
    }

    /// The inputs that are there, with their positions.
    pub(in crate::source) fn slots(&self) -> impl Iterator<Item = (usize, Slot)> + '_ {
        self.inputs.iter().copied().enumerate().filter(|(_, slot)| *slot != Slot::Unused)
    }

    pub(in crate::source) fn name(&self) -> String {
        let mut name = format!("{}_{}", ctype::function(self.function), ctype::value(self.compute));
        for (_, slot) in self.slots() {
            match slot {
                Slot::Scalar(dtype) => name += &format!("_s{}", ctype::value(dtype)),
                Slot::Array(dtype) => name += &format!("_{}", ctype::value(dtype)),
                Slot::Unused => {}
            }
        }
        let access = match self.access {
            Access::Contiguous => "contiguous".to_owned(),
            Access::Strided(rank) => format!("strided{rank}"),
            Access::Packed(rank) => format!("packed{rank}"),
            Access::Tiled(rank, tiles) => format!("tiled{rank}m{}s{}", tiles.mask, tiles.side()),
        };
        let width = if self.wide { 64 } else { 32 };
        format!("{name}_to_{}_{access}_{width}", ctype::value(self.output))
    }

    pub(in crate::source) fn fragments(&self) -> Fragments {
        let mut fragments = ctype::fragments(self.compute);
        // A condition is compared in its own type.
        if let (Function::SelectPositive, Slot::Array(dtype) | Slot::Scalar(dtype)) =
            (self.function, self.inputs[0])
        {
            fragments = fragments.with(ctype::fragments(dtype));
        }
        fragments
    }

    pub(in crate::source) fn kernels(&self, name: &str) -> String {
        let body = match self.access {
            Access::Contiguous => self.contiguous(name),
            Access::Strided(_) => self.strided(name),
            Access::Packed(rank) => self.packed(name, rank),
            Access::Tiled(_, tiles) => tile::body(self, name, tiles),
        };
        let first = match self.access {
            Access::Contiguous => format!("{} count", ctype::index(self.wide).0),
            Access::Strided(rank) | Access::Packed(rank) | Access::Tiled(rank, _) => {
                format!("{} space", type_name(rank, self.operands(), self.wide))
            }
        };
        let mut parameters = format!("{first}, char* out");
        for (position, slot) in self.slots() {
            match slot {
                Slot::Scalar(dtype) => {
                    parameters += &format!(", {} in{position}", ctype::stored(dtype));
                }
                _ => parameters += &format!(", const char* in{position}"),
            }
        }
        format!(
            "{}extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({parameters}) {{\n\
             {body}}}\n",
            self.value(name)
        )
    }

    pub(in crate::source) fn operands(&self) -> usize {
        1 + self.slots().filter(|(_, slot)| matches!(slot, Slot::Array(_))).count()
    }

    /// The function from the inputs' elements to the output's.
    fn value(&self, name: &str) -> String {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for (position, slot) in self.slots() {
            let (Slot::Scalar(dtype) | Slot::Array(dtype)) = slot else { continue };
            parameters.push(format!("{} x{position}", ctype::value(dtype)));
            arguments.push(match self.function.argument(position, self.compute) {
                None => {
                    let (from, functions) = (ctype::value(dtype), ctype::functions(dtype));
                    match self.function {
                        Function::Select => format!("convert<bool>(x{position})"),
                        _ => format!("{functions}::greater(x{position}, convert<{from}>((i32)0))"),
                    }
                }
                Some(wanted) if dtype == wanted => format!("x{position}"),
                Some(wanted) => format!("convert<{}>(x{position})", ctype::value(wanted)),
            });
        }
        let functions = ctype::functions(self.compute);
        let expression = match (self.function, &arguments[..]) {
            (Function::Unary(UnaryFunction::Copy), [x]) => x.clone(),
            (Function::Select | Function::SelectPositive, [condition, yes, no]) => {
                format!("{condition} ? {yes} : {no}")
            }
            (Function::LinearCombination, [a, x, b, y]) => format!(
                "{functions}::add({functions}::multiply({a}, {x}), {functions}::multiply({b}, {y}))"
            ),
            _ => {
                format!("{functions}::{}({})", ctype::function(self.function), arguments.join(", "))
            }
        };
        let result = self.function.result(self.compute);
        let expression = if result == self.output {
            expression
        } else {
            format!("convert<{}>({expression})", ctype::value(self.output))
        };
        format!(
            "DEVICE {} {name}_value({}) {{\n    return {expression};\n}}\n",
            ctype::value(self.output),
            parameters.join(", ")
        )
    }

    /// A call of [`Key::value`]; `read` gives the element of an array.
    pub(in crate::source) fn call(
        &self,
        name: &str,
        read: impl Fn(usize, DType) -> String,
    ) -> String {
        let arguments: Vec<String> = self
            .slots()
            .map(|(position, slot)| match slot {
                Slot::Array(dtype) => read(position, dtype),
                Slot::Scalar(dtype) => {
                    format!("Stored<{}>::get(in{position})", ctype::value(dtype))
                }
                Slot::Unused => String::new(),
            })
            .collect();
        format!("{name}_value({})", arguments.join(", "))
    }

    /// The position among the space's operands of each input that is an array.
    pub(in crate::source) fn operand(&self, position: usize) -> usize {
        let arrays = self.inputs[..position].iter();
        1 + arrays.filter(|slot| matches!(slot, Slot::Array(_))).count()
    }
}

impl Key {
    /// Whole tiles of aligned arrays in packs, anything else element by element.
    fn contiguous(&self, name: &str) -> String {
        let (index, pack, packs) = (ctype::index(self.wide).0, self.pack(), self.packs());
        let (tile, batch) = (u64::from(THREADS) * pack * packs, self.batch().min(pack * packs));
        let stored = ctype::stored(self.output);
        let mut aligned = format!("packable<{stored}, {pack}>(out)");
        let (mut items, mut reads) = (String::new(), String::new());
        for (position, dtype) in self.arrays() {
            let kind = format!("{}, {pack}", ctype::stored(dtype));
            aligned += &format!(" && packable<{kind}>(in{position})");
            items += &format!("            Pack<{kind}> packs{position}[{packs}];\n");
            reads += &format!(
                "                packs{position}[j] = ((const Pack<{kind}>*)in{position})[i + j * {THREADS}];\n"
            );
        }
        let place = |_, dtype| format!("i * sizeof({})", ctype::stored(dtype));
        format!(
            "    const bool aligned = {aligned};
    for ({index} base = ({index})blockIdx.x * {tile}; base < count; base += ({index})gridDim.x * {tile}) {{
        const {index} end = count - base < {tile} ? count : base + {tile};
        if (aligned && end - base == {tile}) {{
            const {index} i = base / {pack} + threadIdx.x;
{items}#pragma unroll
            for (u32 j = 0; j < {packs}; ++j) {{
{reads}            }}
#pragma unroll
            for (u32 j = 0; j < {packs}; ++j) {{
{result}                ((Pack<{stored}, {pack}>*)out)[i + j * {THREADS}] = result;
            }}
            continue;
        }}
        for ({index} first = base + threadIdx.x; first < end; first += {step}) {{
{batched}        }}
    }}
",
            result = self.pack_result(name, "[j]"),
            step = u64::from(THREADS) * batch,
            batched = self.batched(name, batch, "end", "", place),
        )
    }

    /// Element by element, at places that indices are turned into.
    fn strided(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (operands, batch) = (self.operands(), self.batch());
        let tile = u64::from(THREADS) * batch;
        let locate = format!(
            "                    {offset} offset[{operands}];
                    space.locate(i, offset);
"
        );
        let place = |operand, _| format!("offset[{operand}]");
        format!(
            "    const {index} step = ({index})gridDim.x * {tile};
    for ({index} first = ({index})blockIdx.x * {tile} + threadIdx.x; first < space.count; first += step) {{
{}    }}
",
            self.batched(name, batch, "space.count", &locate, place)
        )
    }

    /// Packs along the last axis; `space` counts them.
    fn packed(&self, name: &str, rank: u8) -> String {
        let ((index, offset), pack) = (ctype::index(self.wide), self.pack());
        let stored = ctype::stored(self.output);
        let mut packs = String::new();
        for (position, dtype) in self.arrays() {
            let (pack, operand) =
                (format!("{}, {pack}", ctype::stored(dtype)), self.operand(position));
            let place = format!("in{position} + offset[{operand}]");
            packs += &format!(
                "        const Pack<{pack}> packs{position} = space.stride[{operand}][{}] == 0
                ? repeat<{pack}>({place}) : fetch<true, {pack}>({place});
",
                rank - 1
            );
        }
        format!(
            "    const {index} step = ({index})gridDim.x * {THREADS};
    for ({index} i = ({index})blockIdx.x * {THREADS} + threadIdx.x; i < space.count; i += step) {{
        {offset} offset[{}];
        space.locate(i, offset);
{packs}{}        *(Pack<{stored}, {pack}>*)(out + offset[0]) = result;
    }}
",
            self.operands(),
            self.pack_result(name, "")
        )
    }

    /// `result` from the arrays' packs, of which `which` may name one.
    fn pack_result(&self, name: &str, which: &str) -> String {
        let (output, stored, pack) =
            (ctype::value(self.output), ctype::stored(self.output), self.pack());
        let item = self.call(name, |position, dtype| {
            format!("Stored<{}>::get(packs{position}{which}.item[k])", ctype::value(dtype))
        });
        format!(
            "            Pack<{stored}, {pack}> result;
#pragma unroll
            for (int k = 0; k < {pack}; ++k) {{
                result.item[k] = Stored<{output}>::put({item});
            }}
"
        )
    }

    /// The elements `first`, `first + 256` and so on below `end`, `batch` in number: all are
    /// read before the first is stored. `locate` precedes the use of places, which `place`
    /// gives for an operand of a dtype, in bytes and for the index `i`.
    fn batched(
        &self,
        name: &str,
        batch: u64,
        end: &str,
        locate: &str,
        place: impl Fn(usize, DType) -> String,
    ) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (mut items, mut reads) = (String::new(), String::new());
        for (position, dtype) in self.arrays() {
            let (stored, from) = (ctype::stored(dtype), place(self.operand(position), dtype));
            items += &format!("            {stored} item{position}[{batch}];\n");
            reads += &format!(
                "                    item{position}[k] = *(const {stored}*)(in{position} + {from});\n"
            );
        }
        let call = self.call(name, |position, dtype| {
            format!("Stored<{}>::get(item{position}[k])", ctype::value(dtype))
        });
        format!(
            "{items}            {offset} target[{batch}];
#pragma unroll
            for (u32 k = 0; k < {batch}; ++k) {{
                const {index} i = first + k * {THREADS};
                if (i < {end}) {{
{locate}{reads}                    target[k] = ({offset})({to});
                }}
            }}
#pragma unroll
            for (u32 k = 0; k < {batch}; ++k) {{
                if (first + k * {THREADS} < {end}) {{
                    store<{output}>(out + target[k], {call});
                }}
            }}
",
            to = place(0, self.output),
            output = ctype::value(self.output),
        )
    }

    /// The inputs that are arrays, with their positions.
    fn arrays(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
        self.slots().filter_map(|(position, slot)| match slot {
            Slot::Array(dtype) => Some((position, dtype)),
            _ => None,
        })
    }

    /// True for functions that take many instructions.
    fn is_long(&self) -> bool {
        match self.function {
            Function::Unary(unary) => unary.properties().cost.is_long(self.compute),
            Function::Binary(binary) => binary.properties().cost.is_long(self.compute),
            _ => false,
        }
    }
}
