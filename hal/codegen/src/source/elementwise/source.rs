//! The source of element-wise kernels.

use super::{AccessPattern, Key};
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_spec::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;
use hal::dtype::DType;
use hal::function::Function;
use hal::operation::Input;

impl KernelKey for Key {
    fn name(&self) -> String {
        let mut name = format!("{}_{}", ctype::function(self.function), ctype::value(self.compute));
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
        format!("{name}_to_{}_{access}_{width}", ctype::value(self.output))
    }

    fn prelude(&self) -> Prelude {
        let mut prelude = ctype::prelude(self.compute);
        // A condition is compared in its own type.
        if let (Function::SelectPositive, Some(Input::Array(dtype) | Input::Scalar(dtype))) =
            (self.function, self.inputs[0])
        {
            prelude = prelude.with(ctype::prelude(dtype));
        }
        prelude
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
        let mut parameters = format!("{first}, char* out");
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
            self.value(name)
        )
    }
}

impl Key {
    /// Returns a kernel body that processes whole tiles of aligned arrays in packs, and everything
    /// else element by element.
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
        let stored = ctype::stored(self.output);
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
{packs}{}        *(Pack<{stored}, {pack}>*)(out + offset[0]) = result;
    }}
",
            self.operands(),
            self.pack_result(name, "")
        )
    }

    /// Returns the computation of `result` from the arrays' packs; `which` may select one.
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
            to = byte_offset(0, self.output),
            output = ctype::value(self.output),
        )
    }
}
