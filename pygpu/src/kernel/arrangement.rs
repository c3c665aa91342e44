//! The memory arrangement of a call's arrays: contiguous, or with strides along axes.

use super::signature::{Arrays, Signature, Vector};
use gpuarray::Array;
use gpuarray::memory::Access;
use hal::operation::{Shape, Strides};
use smallvec::SmallVec;

/// The positions of an array's elements, in the order in which a kernel counts them.
pub(super) struct Axes {
    pub(super) shape: Shape,
    pub(super) strides: Strides,
}

impl Axes {
    /// Merges axes that are contiguous in C order, and drops axes with one element.
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

    /// Returns the number of axes; 0 for contiguous elements.
    pub(super) fn rank(&self, itemsize: usize) -> u8 {
        match self.strides[..] {
            [] => 0,
            [stride] if stride == itemsize as isize => 0,
            // At most 64 axes.
            _ => self.strides.len() as u8,
        }
    }

    /// Returns true if an offset in bytes or a number of elements needs more than 31 bits.
    fn is_wide(&self) -> bool {
        let axes = self.strides.iter().zip(&self.shape);
        let reach = axes.fold(0_u64, |reach, (stride, &extent)| {
            let last = extent.saturating_sub(1) as u64;
            reach.saturating_add((stride.unsigned_abs() as u64).saturating_mul(last))
        });
        let count = self.shape.iter().fold(1_u64, |all, &it| all.saturating_mul(it as u64));
        reach.max(count) >= 1 << 31
    }

    /// Returns the members of `Strided<T, RANK, wide>::Geometry` in pygpu-strided.hpp.
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

/// The memory arrangement of a call's arrays.
#[derive(Default)]
pub(super) struct Arrangement {
    pub(super) addresses: SmallVec<[u64; 6]>,
    /// The axes of each array; empty if every array is contiguous.
    pub(super) axes: SmallVec<[Axes; 6]>,
    /// The number of axes of each array, 0 for a contiguous one; empty if every array is contiguous.
    pub(super) ranks: SmallVec<[u8; 8]>,
    pub(super) wide: bool,
}

impl Arrangement {
    /// Returns the arrangement. If all arrays are in C order, or all in Fortran order, elements are
    /// counted in memory order. Otherwise they are counted in C order or, if the order does not
    /// matter, in the memory order of the first array that is written.
    pub(super) fn of(signature: &Signature, arrays: &Arrays<'_>) -> Arrangement {
        let mut arrangement = Arrangement {
            addresses: arrays.iter().map(|(_, array)| array.address()).collect(),
            ..Arrangement::default()
        };
        let in_c = |(_, array): &(Vector, &Array)| array.layout().is_c_contiguous();
        // An array that is only accessed at other indices may be a table. With the size of an array in Fortran
        // order, it may as well have an element for each of that array's, as in `z[j] = x[i]`.
        let is_table = |(vector, array): &(Vector, &Array)| {
            let same = |it: &(Vector, &Array)| !in_c(it) && it.1.size() == array.size();
            !vector.indexed && array.layout().is_c_contiguous() && !arrays.iter().any(same)
        };
        let in_fortran = |it: &(Vector, &Array)| it.1.layout().is_f_contiguous() || is_table(it);
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

    /// Reorders the axes of the indexed arrays to the memory order of the first array that is written,
    /// if all have the same shape.
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
