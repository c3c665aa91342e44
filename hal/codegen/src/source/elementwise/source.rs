//! The source of element-wise kernels.

use super::{AccessPattern, Computation, Key};
use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use hal::dtype::DType;
use hal::operation::Input;

impl<C: Computation> KernelKey for Key<C> {
    fn name(&self) -> String {
        let mut name = self.computation.title();
        for (_, input) in self.inputs() {
            match input {
                Input::Scalar(dtype) => name += &format!("_s{}", ctype::value(dtype)),
                Input::Array(dtype) => name += &format!("_{}", ctype::value(dtype)),
            }
        }
        let access = match self.access {
            AccessPattern::Contiguous => "contiguous".to_owned(),
            AccessPattern::Strided(rank) => format!("strided{rank}"),
            AccessPattern::Packed(rank) => format!("packed{rank}"),
            AccessPattern::Tiled(rank, tiles) => {
                format!("tiled{rank}m{}s{}", tiles.mask, tiles.side())
            }
        };
        let width = if self.wide { 64 } else { 32 };
        let outputs: Vec<_> = self.computation.outputs().map(ctype::value).collect();
        format!("{name}_to_{}_{access}_{width}", outputs.join("_"))
    }

    fn prelude(&self) -> Prelude {
        self.computation.prelude()
    }

    fn kernels(&self, name: &str) -> String {
        let body = match self.access {
            AccessPattern::Contiguous => self.contiguous(name),
            AccessPattern::Strided(_) => self.strided(name),
            AccessPattern::Packed(rank) => self.packed(name, rank),
            AccessPattern::Tiled(_, tiles) => self.tiled(name, tiles),
        };
        let first = match self.access {
            AccessPattern::Contiguous => format!("{} count", ctype::index(self.wide).0),
            AccessPattern::Strided(rank)
            | AccessPattern::Packed(rank)
            | AccessPattern::Tiled(rank, _) => {
                format!("{} space", type_name(rank, self.operands(), self.wide))
            }
        };
        let mut parameters = first;
        for (output, _) in self.outputs() {
            parameters += &format!(", char* {}", out(output));
        }
        for (position, input) in self.inputs() {
            match input {
                Input::Scalar(dtype) => {
                    parameters += &format!(", {} in{position}", ctype::stored(dtype));
                }
                Input::Array(_) => parameters += &format!(", const char* in{position}"),
            }
        }
        format!(
            "{}extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({parameters}) {{\n\
             {body}}}\n",
            self.computation.definition(name)
        )
    }
}

/// Returns the name of an output.
pub(super) fn out(output: usize) -> String {
    if output == 0 { "out".to_owned() } else { format!("out{output}") }
}

impl<C: Computation> Key<C> {
    /// Returns a call of the function that computes the outputs' elements; `read` returns the element of an array.
    pub(super) fn call(&self, name: &str, read: impl Fn(usize, DType) -> String) -> String {
        let arguments: Vec<String> = self
            .inputs()
            .map(|(position, input)| match input {
                Input::Array(dtype) => read(position, dtype),
                Input::Scalar(dtype) => {
                    format!("Stored<{}>::get(in{position})", ctype::value(dtype))
                }
            })
            .collect();
        format!("{name}_value({})", arguments.join(", "))
    }

    /// Returns statements that use the outputs' elements, which `call` computes.
    pub(super) fn results(
        &self,
        name: &str,
        call: &str,
        put: impl Fn(usize, DType, &str) -> String,
    ) -> String {
        let mut outputs = self.outputs();
        if let (Some((_, dtype)), None) = (outputs.next(), outputs.next()) {
            return put(0, dtype, call);
        }
        let stores =
            self.outputs().map(|(output, dtype)| put(output, dtype, &format!("values.y{output}")));
        format!(
            "                const {name}_values values = {call};\n{}",
            stores.collect::<String>()
        )
    }

    /// Returns a kernel body that processes whole tiles of aligned arrays in packs, and everything
    /// else element by element.
    fn contiguous(&self, name: &str) -> String {
        let (index, pack, packs) = (ctype::index(self.wide).0, self.pack(), self.packs());
        let (tile, batch) = (u64::from(THREADS) * pack * packs, self.batch().min(pack * packs));
        let mut aligned: Vec<String> = Vec::new();
        let mut stores = String::new();
        for (output, dtype) in self.outputs() {
            let (kind, out) = (format!("{}, {pack}", ctype::stored(dtype)), out(output));
            aligned.push(format!("packable<{kind}>({out})"));
            stores += &format!(
                "                ((Pack<{kind}>*){out})[i + j * {THREADS}] = result{output};\n"
            );
        }
        let (mut items, mut reads) = (String::new(), String::new());
        for (position, dtype) in self.arrays() {
            let kind = format!("{}, {pack}", ctype::stored(dtype));
            aligned.push(format!("packable<{kind}>(in{position})"));
            items += &format!("            Pack<{kind}> packs{position}[{packs}];\n");
            reads += &format!(
                "                packs{position}[j] = ((const Pack<{kind}>*)in{position})[i + j * {THREADS}];\n"
            );
        }
        let byte_offset = |_, dtype| format!("i * sizeof({})", ctype::stored(dtype));
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
{result}{stores}            }}
            continue;
        }}
        for ({index} first = base + threadIdx.x; first < end; first += {step}) {{
{batched}        }}
    }}
",
            aligned = aligned.join(" && "),
            result = self.pack_result(name, "[j]"),
            step = u64::from(THREADS) * batch,
            batched = self.batched(name, batch, "end", "", byte_offset),
        )
    }

    /// Returns a kernel body that works element by element, at offsets computed from indices.
    fn strided(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (operands, batch) = (self.operands(), self.batch());
        let tile = u64::from(THREADS) * batch;
        let locate = format!(
            "                    {offset} offset[{operands}];
                    space.locate(i, offset);
"
        );
        let byte_offset = |operand, _| format!("offset[{operand}]");
        format!(
            "    const {index} step = ({index})gridDim.x * {tile};
    for ({index} first = ({index})blockIdx.x * {tile} + threadIdx.x; first < space.count; first += step) {{
{}    }}
",
            self.batched(name, batch, "space.count", &locate, byte_offset)
        )
    }

    /// Returns a kernel body that works in packs along the last axis; `space` counts packs.
    fn packed(&self, name: &str, rank: u8) -> String {
        let ((index, offset), pack) = (ctype::index(self.wide), self.pack());
        let mut stores = String::new();
        for (output, dtype) in self.outputs() {
            stores += &format!(
                "        *(Pack<{}, {pack}>*)({} + offset[{output}]) = result{output};\n",
                ctype::stored(dtype),
                out(output)
            );
        }
        let mut packs = String::new();
        for (position, dtype) in self.arrays() {
            let (pack, operand) =
                (format!("{}, {pack}", ctype::stored(dtype)), self.operand(position));
            let address = format!("in{position} + offset[{operand}]");
            packs += &format!(
                "        const Pack<{pack}> packs{position} = space.stride[{operand}][{}] == 0
                ? repeat<{pack}>({address}) : fetch<true, {pack}>({address});
",
                rank - 1
            );
        }
        format!(
            "    const {index} step = ({index})gridDim.x * {THREADS};
    for ({index} i = ({index})blockIdx.x * {THREADS} + threadIdx.x; i < space.count; i += step) {{
        {offset} offset[{}];
        space.locate(i, offset);
{packs}{}{stores}    }}
",
            self.operands(),
            self.pack_result(name, "")
        )
    }

    /// Returns the computation of `result0` and so on from the arrays' packs; `which` may select one.
    fn pack_result(&self, name: &str, which: &str) -> String {
        let pack = self.pack();
        let declare = |(output, dtype)| {
            format!("            Pack<{}, {pack}> result{output};\n", ctype::stored(dtype))
        };
        let declarations: String = self.outputs().map(declare).collect();
        let call = self.call(name, |position, dtype| {
            format!("Stored<{}>::get(packs{position}{which}.item[k])", ctype::value(dtype))
        });
        let results = self.results(name, &call, |output, dtype, item| {
            let output_type = ctype::value(dtype);
            format!(
                "                result{output}.item[k] = Stored<{output_type}>::put({item});\n"
            )
        });
        format!(
            "{declarations}#pragma unroll
            for (int k = 0; k < {pack}; ++k) {{
{results}            }}
"
        )
    }

    /// Returns code for `batch` elements, `first`, `first + 256` and so on below `end`. All are
    /// read before the first is stored. `locate` is inserted before offsets are used. `byte_offset`
    /// returns the offset in bytes of the index `i` in an operand of a dtype.
    fn batched(
        &self,
        name: &str,
        batch: u64,
        end: &str,
        locate: &str,
        byte_offset: impl Fn(usize, DType) -> String,
    ) -> String {
        let (index, offset) = ctype::index(self.wide);
        let (mut items, mut reads) = (String::new(), String::new());
        for (position, dtype) in self.arrays() {
            let (stored, from) = (ctype::stored(dtype), byte_offset(self.operand(position), dtype));
            items += &format!("            {stored} item{position}[{batch}];\n");
            reads += &format!(
                "                    item{position}[k] = *(const {stored}*)(in{position} + {from});\n"
            );
        }
        let (mut targets, mut places) = (String::new(), String::new());
        for (output, dtype) in self.outputs() {
            let to = byte_offset(output, dtype);
            targets += &format!("            {offset} target{output}[{batch}];\n");
            places += &format!("                    target{output}[k] = ({offset})({to});\n");
        }
        let call = self.call(name, |position, dtype| {
            format!("Stored<{}>::get(item{position}[k])", ctype::value(dtype))
        });
        let results = self.results(name, &call, |output, dtype, value| {
            let (kind, out) = (ctype::value(dtype), out(output));
            format!("                    store<{kind}>({out} + target{output}[k], {value});\n")
        });
        format!(
            "{items}{targets}#pragma unroll
            for (u32 k = 0; k < {batch}; ++k) {{
                const {index} i = first + k * {THREADS};
                if (i < {end}) {{
{locate}{reads}{places}                }}
            }}
#pragma unroll
            for (u32 k = 0; k < {batch}; ++k) {{
                if (first + k * {THREADS} < {end}) {{
{results}                }}
            }}
"
        )
    }
}
