//! Transposed reads through square tiles in shared memory.

use crate::source::iteration_space::IterationSpace;
use hal::operation::Strides;

/// Bytes of shared memory that a block has on every device.
const SHARED_BYTES: usize = 48 << 10;

/// Shorter axes are read in place.
const SHORTEST: usize = 16;

/// Which arrays are read through tiles of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tiles {
    /// Bit 0 is the first input that is an array.
    pub(super) mask: u8,
    /// 64 elements along each side, not 32: longer runs of memory, and more of them in
    /// flight, for small elements.
    pub(super) large: bool,
}

impl Tiles {
    pub(super) const fn side(self) -> usize {
        if self.large { 64 } else { 32 }
    }

    /// The number of tiles of a space of at least two axes.
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

/// The inputs that are read fastest along another axis than the output, so that tiles pay, if
/// there are any. The output's fastest axis becomes the last, the other one the last but one.
pub(super) fn transposed(space: &mut IterationSpace, sizes: &[usize]) -> Option<Tiles> {
    let last = space.shape.len().checked_sub(1).filter(|last| *last > 0)?;
    // Where operands disagree on the order of the axes, stores decide.
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
    // Two such tiles of four bytes fit in shared memory.
    tiles.large = sides.iter().all(|&side| side >= 64)
        && sizes.iter().all(|&size| size <= 4)
        && tiles.mask.count_ones() <= 2;
    space.move_axis(axis, last - 1);
    Some(tiles)
}
