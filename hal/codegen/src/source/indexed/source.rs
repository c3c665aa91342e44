//! The source of gathers and scatters.

use super::{BATCH, GatherKey, ScatterKey};
use crate::source::ctype;
use crate::source::iteration_space::type_name;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;
use hal::dtype::DType;
use hal::operation::Input;

/// The loop over the elements: `body` sees `offset`, `inside`, `place` and which of the batch
/// it is, `k`, and `finish` stores what `items` hold.
fn kernel(
    name: &str,
    types: (u8, usize, bool),
    indices: usize,
    index: DType,
    parameters: &str,
    [items, body, finish]: [&str; 3],
) -> String {
    let (rank, operands, wide) = types;
    let (unsigned, offset) = ctype::index(wide);
    let space = type_name(rank, operands, wide);
    let value = ctype::value(index);
    let tile = u64::from(THREADS) * BATCH;
    format!(
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({space} space, {parameters}, i64 length, i64 stride) {{
    const {unsigned} step = ({unsigned})gridDim.x * {tile};
    for ({unsigned} first = ({unsigned})blockIdx.x * {tile} + threadIdx.x; first < space.count; first += step) {{
        {offset} offset[{BATCH}][{operands}];
        {value} index[{BATCH}];
        {items}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            const {unsigned} i = first + k * {THREADS};
            if (i < space.count) {{
                space.locate(i, offset[k]);
                index[k] = load<{value}>(indices + offset[k][{indices}]);
            }}
        }}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            if (first + k * {THREADS} < space.count) {{
                i64 place;
                const bool inside = resolve(index[k], length, &place);
{body}            }}
        }}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            if (first + k * {THREADS} < space.count) {{
{finish}            }}
        }}
    }}
}}
"
    )
}

impl KernelKey for GatherKey {
    fn name(&self) -> String {
        format!(
            "gather_{}_at_{}_to_{}_{}_{}",
            ctype::value(self.element),
            ctype::value(self.index),
            ctype::value(self.output),
            self.rank,
            if self.wide { 64 } else { 32 }
        )
    }

    fn prelude(&self) -> Prelude {
        Prelude::INDEXED
    }

    fn kernels(&self, name: &str) -> String {
        let (element, output) = (ctype::value(self.element), ctype::value(self.output));
        let items = format!("{element} item[{BATCH}];");
        let body = format!(
            "                item[k] = convert<{element}>((i32)0);
                if (inside) {{
                    item[k] = load<{element}>(base + offset[k][1] + place * stride);
                }}
"
        );
        let finish = format!(
            "                store<{output}>(out + offset[k][0], convert<{output}>(item[k]));\n"
        );
        let parameters = "char* out, const char* base, const char* indices";
        let types = (self.rank, 3, self.wide);
        kernel(name, types, 2, self.index, parameters, [&items, &body, &finish])
    }
}

impl KernelKey for ScatterKey {
    fn name(&self) -> String {
        let input = match self.input {
            Input::Scalar(dtype) => format!("s{}", ctype::value(dtype)),
            Input::Array(dtype) => ctype::value(dtype).to_owned(),
        };
        format!(
            "scatter_{input}_at_{}_to_{}_{}_{}",
            ctype::value(self.index),
            ctype::value(self.target),
            self.rank,
            if self.wide { 64 } else { 32 }
        )
    }

    fn prelude(&self) -> Prelude {
        Prelude::INDEXED
    }

    fn kernels(&self, name: &str) -> String {
        let target = ctype::value(self.target);
        let (operands, parameter, value) = match self.input {
            Input::Scalar(dtype) => (
                2,
                format!("{} in", ctype::stored(dtype)),
                format!("Stored<{}>::get(in)", ctype::value(dtype)),
            ),
            Input::Array(dtype) => (
                3,
                "const char* in".to_owned(),
                format!("load<{}>(in + offset[k][2])", ctype::value(dtype)),
            ),
        };
        // Offsets, not addresses: a null pointer among those would hide from AMD's compilers
        // which memory is written.
        let items = format!("{target} item[{BATCH}]; i64 to[{BATCH}]; bool is_in[{BATCH}];");
        let body = format!(
            "                is_in[k] = inside;
                to[k] = offset[k][0] + place * stride;
                item[k] = convert<{target}>({value});
"
        );
        let finish = format!(
            "                if (is_in[k]) {{
                    store<{target}>(out + to[k], item[k]);
                }}
"
        );
        let parameters = format!("char* out, const char* indices, {parameter}");
        let types = (self.rank, operands, self.wide);
        kernel(name, types, 1, self.index, &parameters, [&items, &body, &finish])
    }
}
