//! How the arrays of a call lie in memory: as runs of elements, or along axes with strides.

use super::signature::{Arrays, Signature, Vector};
use gpuarray::Array;
use gpuarray::memory::Access;
use hal::operation::{Shape, Strides};
use smallvec::SmallVec;

/// Where an array's elements lie in the order in which a kernel counts them.
pub(super) struct Axes {
    pub(super) shape: Shape,
    pub(super) strides: Strides,
}

impl Axes {
    /// Merges axes that are one run in C order, and leaves out those of one element.
    fn in_c_order(array: &Array) -> Axes {
        let mut axes = Axes { shape: Shape::new(), strides: Strides::new() };
        for (&extent, &stride) in array.shape().iter().zip(array.strides()) {
            if extent == 1 {
                continue;
            }
            match (axes.shape.last_mut(), axes.strides.last_mut()) {
                (Some(outer), Some(step)) if stride.checked_mul(extent as isize) == Some(*step) => {
                    (*outer, *step) = (*outer * extent, stride);
                }
                _ => {
                    axes.shape.push(extent);
                    axes.strides.push(stride);
                }
            }
        }
        axes
    }

    /// The number of axes, 0 for elements beside one another.
    pub(super) fn rank(&self, itemsize: usize) -> u8 {
        match self.strides[..] {
            [] => 0,
            [stride] if stride == itemsize as isize => 0,
            // At most 64 axes.
            _ => self.strides.len() as u8,
        }
    }

    /// True if an offset in bytes or a number of elements needs more than 31 bits.
    fn is_wide(&self) -> bool {
        let axes = self.strides.iter().zip(&self.shape);
        let reach = axes.fold(0_u64, |reach, (stride, &extent)| {
            let last = extent.saturating_sub(1) as u64;
            reach.saturating_add((stride.unsigned_abs() as u64).saturating_mul(last))
        });
        let count = self.shape.iter().fold(1_u64, |all, &it| all.saturating_mul(it as u64));
        reach.max(count) >= 1 << 31
    }

    /// The members of `Strided<T, RANK, wide>::Geometry` in pygpu-strided.hpp.
    pub(super) fn geometry(&self, wide: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut word = |value: u64| match wide {
            true => bytes.extend(value.to_ne_bytes()),
            false => bytes.extend((value as u32).to_ne_bytes()),
        };
        self.shape.iter().for_each(|&extent| word(extent as u64));
        self.strides.iter().for_each(|&stride| word(stride as u64));
        bytes
    }
}

/// How the arrays of a call lie in memory.
#[derive(Default)]
pub(super) struct Arrangement {
    pub(super) addresses: SmallVec<[u64; 6]>,
    /// For each array its axes; none at all if every array is one run of elements.
    pub(super) axes: SmallVec<[Axes; 6]>,
    /// The arrays' numbers of axes, 0 for a run; empty if every array is one.
    pub(super) ranks: SmallVec<[u8; 8]>,
    pub(super) wide: bool,
}

impl Arrangement {
    /// Elements are counted in memory order if all arrays are in C order or all in Fortran order, else
    /// in C order; where the order is of no consequence, in that of the first array that is written.
    pub(super) fn of(signature: &Signature, arrays: &Arrays<'_>) -> Arrangement {
        let mut arrangement = Arrangement {
            addresses: arrays.iter().map(|(_, array)| array.address()).collect(),
            ..Arrangement::default()
        };
        let in_c = |(_, array): &(Vector, &Array)| array.layout().is_c_contiguous();
        let in_fortran = |(vector, array): &(Vector, &Array)| {
            let layout = array.layout();
            layout.is_f_contiguous() || (!vector.indexed && layout.is_c_contiguous())
        };
        if arrays.iter().all(in_c) || arrays.iter().all(in_fortran) {
            return arrangement;
        }
        arrangement.axes = arrays.iter().map(|(_, array)| Axes::in_c_order(array)).collect();
        if signature.order_free {
            arrangement.sort_axes(arrays);
        }
        let axes = arrangement.axes.iter().zip(arrays);
        arrangement.ranks = axes.map(|(axes, (_, it))| axes.rank(it.layout().itemsize())).collect();
        if arrangement.ranks.iter().all(|rank| *rank == 0) {
            arrangement.ranks.clear();
        }
        let strided = |(axes, rank): (&Axes, &u8)| *rank > 0 && axes.is_wide();
        arrangement.wide = arrangement.axes.iter().zip(&arrangement.ranks).any(strided);
        arrangement
    }

    /// Visits the arrays that the running index accesses in the memory order of the first that is
    /// written, if they have one shape.
    fn sort_axes(&mut self, arrays: &Arrays<'_>) {
        let mut order: SmallVec<[usize; 6]> =
            (0..arrays.len()).filter(|&position| arrays[position].0.indexed).collect();
        let written = |&position: &usize| matches!(arrays[position].0.access, Access::Write);
        if let Some(first) = order.iter().position(written) {
            order[..=first].rotate_right(1);
        }
        let Some(&first) = order.first() else { return };
        let shape = arrays[first].1.shape();
        if order.iter().any(|&position| arrays[position].1.shape() != shape) {
            return;
        }
        let mut strides: SmallVec<[Strides; 6]> =
            order.iter().map(|&it| Strides::from_slice(arrays[it].1.strides())).collect();
        let (shape, moves) = hal::iteration::simplify(shape, &mut strides);
        for ((&position, strides), moved) in order.iter().zip(strides).zip(moves) {
            let address = &mut self.addresses[position];
            *address = address.wrapping_add_signed(moved as i64);
            self.axes[position] = Axes { shape: shape.clone(), strides };
        }
    }
}
