//! The source of element-wise kernels that read through tiles in shared memory.

use super::tiles::Tiles;
use super::{AccessPattern, Key};
use crate::source::ctype;

impl Key {
    /// Returns the body of the kernel. Threads form 8 rows of 32; a transposed array is read with
    /// neighbours along its own fast axis, the others and the output along the last axis. All
    /// reads are under way before the block waits.
    pub(super) fn tiled(&self, name: &str, tiles: Tiles) -> String {
        let (index, offset) = ctype::index(self.wide);
        let side = tiles.side();
        let is_tiled = |position: usize| tiles.mask & (1 << (self.operand(position) - 1)) != 0;
        let rank = match self.access {
            AccessPattern::Tiled(rank, _) => usize::from(rank),
            _ => 2,
        };
        let loops = format!(
            "#pragma unroll
        for (u32 j = 0; j < {}; ++j) {{
#pragma unroll
            for (u32 k = 0; k < {}; ++k) {{
",
            side / 8,
            side / 32
        );
        // Where an operand begins for a thread, and what it adds for each j and k. One that is
        // read along the other axis has lanes down and rows to the right.
        let start = |operand: usize, turned: bool| {
            let (down, right) = if turned { ("lane", "row") } else { ("row", "lane") };
            // Beyond the margins this may wrap, and is not used.
            let stride = |axis: usize| format!("({index})space.stride[{operand}][{axis}]");
            let (slow, fast) = (stride(rank - 2), stride(rank - 1));
            let (by_j, by_k) = if turned { (&fast, &slow) } else { (&slow, &fast) };
            format!(
            "        const {index} start{operand} = ({index})base[{operand}] + (top + {down}) * {slow} + (left + {right}) * {fast};
        const {index} j{operand} = 8 * {by_j}, k{operand} = 32 * {by_k};
"
        )
        };
        let byte_offset = |operand: usize| {
            format!("({offset})(start{operand} + j * j{operand} + k * k{operand})")
        };
        let inside = |turned: bool| {
            let (down, right) = match turned {
                true => ("lane + 32 * k", "row + 8 * j"),
                false => ("row + 8 * j", "lane + 32 * k"),
            };
            format!("                if ({down} < below && {right} < beside) {{\n")
        };
        let end = "                }\n            }\n        }\n";
        let (mut shared, mut read, mut pass) = (String::new(), String::new(), String::new());
        for (position, dtype) in self.arrays() {
            let (stored, operand) = (ctype::stored(dtype), self.operand(position));
            read += &start(operand, is_tiled(position));
            read += &format!(
                "        {stored} ahead{position}[{}][{}];\n{loops}{}\
             \x20                   ahead{position}[j][k] = Element<{stored}>::read(in{position} + {});\n{end}",
                side / 8,
                side / 32,
                inside(is_tiled(position)),
                byte_offset(operand)
            );
            if is_tiled(position) {
                shared +=
                    &format!("    __shared__ {stored} tile{position}[{side}][{}];\n", side + 1);
                pass += &format!(
                "{loops}                tile{position}[row + 8 * j][lane + 32 * k] = ahead{position}[j][k];
            }}
        }}
"
            );
            }
        }
        let call = self.call(name, |position, dtype| {
            let value = ctype::value(dtype);
            if is_tiled(position) {
                format!("Stored<{value}>::get(tile{position}[lane + 32 * k][row + 8 * j])")
            } else {
                format!("Stored<{value}>::get(ahead{position}[j][k])")
            }
        });
        format!(
            "{shared}    const u32 lane = threadIdx.x % 32;
    const u32 row = threadIdx.x / 32;
    const {index} width = space.extent[{last}];
    const {index} height = space.extent[{before}];
    const {index} across = (width + {margin}) / {side};
    const {index} strips = (height + {margin}) / {side};
    const {index} tiles = space.count / (width * height) * across * strips;
    for ({index} tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
        const {index} strip = tile / across;
        const {index} outer = strip / strips;
        const {index} left = (tile - strip * across) * {side};
        const {index} top = (strip - outer * strips) * {side};
        const {index} below = height - top;
        const {index} beside = width - left;
        {offset} base[{operands}];
        space.outside(outer, base);
{read}{pass}        __syncthreads();
{start}{loops}{inside}                    store<{output}>(out + {target}, {call});
{end}        __syncthreads();
    }}
",
            last = rank - 1,
            before = rank - 2,
            margin = side - 1,
            operands = self.operands(),
            start = start(0, false),
            inside = inside(false),
            output = ctype::value(self.output),
            target = byte_offset(0),
        )
    }
}
