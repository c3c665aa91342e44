//! Transposed reads through tiles of 32 x 32 elements in shared memory.

use super::ctype;
use super::elementwise::{Key, Slot};
use super::space::Space;
use crate::operation::Strides;

/// Elements along each side of a tile.
const SIDE: usize = 32;

/// Shared memory that every device gives a block.
const SHARED_BYTES: usize = 48 << 10;

/// Shorter axes are read in place.
const SHORTEST: usize = 16;

/// Which inputs (bit 0 is the first that is an array) are read fastest along another axis
/// than the output, so that tiles pay; 0 if none. The output's fastest axis becomes the last,
/// the other one the last but one.
pub(super) fn transposed(space: &mut Space, sizes: &[usize]) -> u8 {
    let Some(last) = space.shape.len().checked_sub(1).filter(|last| *last > 0) else {
        return 0;
    };
    // Where operands disagree on the order of the axes, stores decide.
    let fastest = |strides: &Strides| {
        let reach = |axis: &usize| strides[*axis].unsigned_abs();
        (0..=last).rev().filter(|axis| reach(axis) != 0).min_by_key(reach)
    };
    if let Some(axis) = space.strides.first().and_then(fastest) {
        space.move_axis(axis, last);
    }
    if space.shape[last] < SHORTEST {
        return 0;
    }
    let mut mask = 0;
    let mut axis = None;
    let mut room = SHARED_BYTES;
    for (input, (strides, size)) in space.strides.iter().zip(sizes).enumerate().skip(1) {
        let reach = |axis: &usize| strides[*axis].unsigned_abs();
        let nearest = (0..last).filter(|axis| reach(axis) != 0).min_by_key(reach);
        let Some(nearest) = nearest else { continue };
        // Neighbours within a memory transaction are served by the cache.
        let gain = reach(&last) >= 32.max(2 * size) && reach(&nearest) * 2 <= reach(&last);
        let bytes = SIDE * (SIDE + 1) * size;
        let fits = axis.is_none_or(|chosen| chosen == nearest) && bytes <= room;
        if gain && fits && space.shape[nearest] >= SHORTEST {
            axis = Some(nearest);
            room -= bytes;
            mask |= 1 << (input - 1);
        }
    }
    if let Some(axis) = axis {
        space.move_axis(axis, last - 1);
    }
    mask
}

/// The number of tiles of a space of at least two axes.
pub(super) fn tiles(space: &Space) -> u64 {
    match &space.shape[..] {
        [outer @ .., height, width] => {
            let outer = outer.iter().product::<usize>();
            (outer * height.div_ceil(SIDE) * width.div_ceil(SIDE)) as u64
        }
        _ => 0,
    }
}

/// The body of the kernel. Threads form 8 rows of 32; a transposed array is read with
/// neighbours along its own fast axis, the others and the output along the last axis.
pub(super) fn body(key: &Key, name: &str, mask: u8) -> String {
    let (index, offset) = ctype::index(key.wide);
    let is_tiled = |position: usize| mask & (1 << (key.operand(position) - 1)) != 0;
    let rank = match key.access {
        super::elementwise::Access::Tiled(rank, _) => usize::from(rank),
        _ => 2,
    };
    let mut shared = String::new();
    let mut fill = String::new();
    for (position, slot) in key.slots() {
        let Slot::Array(dtype) = slot else { continue };
        if is_tiled(position) {
            let (stored, operand) = (ctype::stored(dtype), key.operand(position));
            shared += &format!("    __shared__ {stored} tile{position}[32][33];\n");
            fill += &format!(
                "                tile{position}[k][lane] = *(const {stored}*)(in{position} + \
                 base[{operand}] + ({offset})y * space.stride[{operand}][{}] + \
                 ({offset})x * space.stride[{operand}][{}]);\n",
                rank - 2,
                rank - 1
            );
        }
    }
    let direct = |operand: usize| {
        format!(
            "base[{operand}] + ({offset})y * space.stride[{operand}][{}] + \
             ({offset})x * space.stride[{operand}][{}]",
            rank - 2,
            rank - 1
        )
    };
    let call = key.call(name, |position, dtype| {
        let value = ctype::value(dtype);
        if is_tiled(position) {
            format!("Stored<{value}>::get(tile{position}[lane][k])")
        } else {
            format!("load<{value}>(in{position} + {})", direct(key.operand(position)))
        }
    });
    let operands = 1 + key.slots().filter(|(_, slot)| matches!(slot, Slot::Array(_))).count();
    format!(
        "{shared}    const u32 lane = threadIdx.x % 32;
    const u32 row = threadIdx.x / 32;
    const {index} width = space.extent[{last}];
    const {index} height = space.extent[{before}];
    const {index} across = (width + 31) / 32;
    const {index} down = (height + 31) / 32;
    const {index} tiles = space.count / (width * height) * across * down;
    for ({index} tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
        const {index} strip = tile / across;
        const {index} outer = strip / down;
        const {index} left = (tile - strip * across) * 32;
        const {index} top = (strip - outer * down) * 32;
        {offset} base[{operands}];
        space.outside(outer, base);
        for (u32 k = row; k < 32; k += 8) {{
            const {index} x = left + k;
            const {index} y = top + lane;
            if (x < width && y < height) {{
{fill}            }}
        }}
        __syncthreads();
        for (u32 k = row; k < 32; k += 8) {{
            const {index} x = left + lane;
            const {index} y = top + k;
            if (x < width && y < height) {{
                store<{output}>(out + {target}, {call});
            }}
        }}
        __syncthreads();
    }}
",
        last = rank - 1,
        before = rank - 2,
        output = ctype::value(key.output),
        target = direct(0),
    )
}
