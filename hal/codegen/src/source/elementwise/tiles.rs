//! Transposed reads through square tiles in shared memory.

use crate::source::ctype;
use crate::source::elementwise::{AccessPattern, Computation, Key};
use crate::source::iteration_space::IterationSpace;
use hal::operation::Strides;

/// The bytes of shared memory that every device provides per block.
const SHARED_BYTES: usize = 48 << 10;

/// Axes shorter than this are read in place.
const SHORTEST: usize = 16;

/// The arrays that are read through tiles, and the size of the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tiles {
    /// The arrays as a mask; bit 0 is the first input that is an array.
    pub(super) mask: u8,
    /// True for 64 elements along each side instead of 32: with small elements, this gives longer
    /// contiguous accesses and more of them in flight.
    pub(super) large: bool,
}

impl Tiles {
    pub(super) const fn side(self) -> usize {
        if self.large { 64 } else { 32 }
    }

    /// Returns the number of tiles of a space with at least two axes.
    pub(super) fn number(self, space: &IterationSpace) -> u64 {
        match &space.shape[..] {
            [outer @ .., height, width] => {
                let outer = outer.iter().product::<usize>();
                (outer * height.div_ceil(self.side()) * width.div_ceil(self.side())) as u64
            }
            _ => 0,
        }
    }
}

/// Returns the inputs whose fastest axis differs from the output's, so that tiles are worthwhile,
/// if any. Makes the output's fastest axis the last one, and the inputs' fastest axis the last but
/// one.
pub(super) fn transposed(space: &mut IterationSpace, sizes: &[usize]) -> Option<Tiles> {
    let last = space.shape.len().checked_sub(1).filter(|last| *last > 0)?;
    // If operands disagree on the order of the axes, stores decide.
    let fastest = |strides: &Strides| {
        let reach = |axis: &usize| strides[*axis].unsigned_abs();
        (0..=last).rev().filter(|axis| reach(axis) != 0).min_by_key(reach)
    };
    if let Some(axis) = space.strides.first().and_then(fastest) {
        space.move_axis(axis, last);
    }
    if space.shape[last] < SHORTEST {
        return None;
    }
    let mut tiles = Tiles { mask: 0, large: false };
    let mut axis = None;
    let mut room = SHARED_BYTES;
    for (input, (strides, size)) in space.strides.iter().zip(sizes).enumerate().skip(1) {
        let reach = |axis: &usize| strides[*axis].unsigned_abs();
        let nearest = (0..last).filter(|axis| reach(axis) != 0).min_by_key(reach);
        let Some(nearest) = nearest else { continue };
        // Neighbours within a memory transaction are served by the cache.
        let gain = reach(&last) >= 32.max(2 * size) && reach(&nearest) * 2 <= reach(&last);
        let bytes = 32 * 33 * size;
        let fits = axis.is_none_or(|chosen| chosen == nearest) && bytes <= room;
        if gain && fits && space.shape[nearest] >= SHORTEST {
            axis = Some(nearest);
            room -= bytes;
            tiles.mask |= 1 << (input - 1);
        }
    }
    let axis = axis?;
    let sides = [space.shape[axis], space.shape[last]];
    // Two such tiles of 4-byte elements fit in shared memory.
    tiles.large = sides.iter().all(|&side| side >= 64)
        && sizes.iter().all(|&size| size <= 4)
        && tiles.mask.count_ones() <= 2;
    space.move_axis(axis, last - 1);
    Some(tiles)
}

// The source of element-wise kernels that read through tiles in shared memory.

impl<C: Computation> Key<C> {
    /// Returns the body of the kernel. Threads form 8 rows of 32. A transposed array is read
    /// contiguously along its own fast axis, and all other arrays along the last axis. All reads
    /// are in flight before the block waits.
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
        // The start of an operand for a thread, and its offsets for each j and k. An operand that
        // is read along the other axis has swapped lanes and rows.
        let start = |operand: usize, turned: bool| {
            let (down, right) = if turned { ("lane", "row") } else { ("row", "lane") };
            // Beyond the margins this may wrap, but is not used.
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
{start}{loops}{inside}{store}{end}        __syncthreads();
    }}
",
            last = rank - 1,
            before = rank - 2,
            margin = side - 1,
            operands = self.operands(),
            start = start(0, false),
            inside = inside(false),
            store = self.results(name, &call, |_, dtype, value| {
                let (kind, target) = (ctype::value(dtype), byte_offset(0));
                format!("                    store<{kind}>(out + {target}, {value});\n")
            }),
        )
    }
}
