//! Combines the elements of results, along lines or row by row.

use super::{DECISION, LINE, ROUNDS, Reducer};
use crate::copy::{Place, pointer};
use crate::pairwise::{Cell, Pairwise};
use crate::reduce_input::Scratch;
use crate::strided::{count, for_each, offset, stride, without};
use crate::tile::ROW;
use hal::operation::Shape;
use std::ptr;

impl Reducer<'_> {
    /// Combines the elements of each of `length` results over the axes of `folded`.
    ///
    /// # Safety
    /// The elements must be readable, and `length` results writable at the target.
    pub(super) unsafe fn fold(
        &self,
        folded: &Shape,
        addresses: [usize; 3],
        length: usize,
        target: usize,
        memory: &mut Vec<Cell>,
        scratch: &mut Scratch,
    ) {
        if self.many().is_some() {
            // SAFETY: passed on to the caller.
            unsafe { self.fold_rows(folded, addresses, length, target, memory, scratch) };
        } else {
            // SAFETY: passed on to the caller.
            unsafe { self.fold_line(folded, addresses, target, scratch) };
        }
    }

    fn place(&self, operand: usize, address: usize, row: usize, column: usize) -> Place {
        let strides = self.input.strides()[operand];
        let along = |axis: Option<usize>| axis.map_or(0, |axis| stride(strides, axis));
        let (row_stride, column_stride) = (along(self.rows), along(self.columns));
        let address = offset(offset(address, row, row_stride), column, column_stride);
        Place { address, row: row_stride, column: column_stride }
    }

    /// # Safety
    /// The same as for [`Reducer::fold`], for one result.
    unsafe fn fold_line(
        &self,
        folded: &Shape,
        addresses: [usize; 3],
        target: usize,
        scratch: &mut Scratch,
    ) {
        let columns = self.columns.map_or(1, |axis| folded[axis]);
        let direct = self.columns.is_some_and(|axis| self.input.is_direct(axis));
        // Short lines are packed together even if each could be used in place.
        let lines = direct && (columns >= ROW || self.rows.is_none());
        let capacity = self.input.capacity().min(LINE);
        let longest = if self.decisive.is_some() { DECISION } else { usize::MAX };
        let tile_columns = columns.min(if lines { longest } else { capacity });
        let rows = self.rows.map_or(1, |axis| folded[axis]);
        let tile_rows = if lines { 1 } else { (capacity / tile_columns).clamp(1, rows) };
        let outer = without(folded, &[self.rows, self.columns]);
        let mut levels = [std::mem::MaybeUninit::<Cell>::uninit(); 65];
        let base = levels.as_mut_ptr().expose_provenance();
        let mut cell = Cell([0; 16]);
        let part = (&raw mut cell).expose_provenance();
        // SAFETY: enough levels for any number of elements.
        let mut pairwise = unsafe { Pairwise::new(&self.combiner, base, 1, self.size) };
        let mut is_decided = false;
        // If positions are visited in order, the first match counts.
        let in_order = self.input.is_position() && count(folded) == columns;
        for_each(&outer, &self.input.strides(), addresses, |start| {
            for row in (0..rows).step_by(tile_rows) {
                for column in (0..columns).step_by(tile_columns) {
                    if is_decided {
                        return;
                    }
                    let extent = (tile_rows.min(rows - row), tile_columns.min(columns - column));
                    let places = std::array::from_fn(|operand| {
                        self.place(operand, start[operand], row, column)
                    });
                    // SAFETY: a tile of the elements, direct or fitting the buffers.
                    unsafe {
                        if in_order {
                            let found = self.input.first_match(places, extent.1, scratch);
                            pointer(part).cast::<Cell>().write(found.number);
                            pairwise.push(part);
                            is_decided = found.is_found;
                            continue;
                        }
                        if lines && self.input.values().is_some() {
                            self.fold_values(places, extent.1, part, scratch);
                        } else {
                            let ready = self.input.load(places, extent, false, scratch);
                            let length = extent.0 * extent.1;
                            (self.combiner.whole)(pointer(ready.address), length, pointer(part));
                        }
                        pairwise.push(part);
                        // Truth values computed by a loop are 0 or 1.
                        let first = pointer(part).read();
                        is_decided = self.decisive == Some(first);
                    }
                }
            }
        });
        // SAFETY: passed on to the caller.
        unsafe { pairwise.finish(target) };
    }

    /// Combines a line of a formula's values as [`Combiner::whole`](crate::combine::Combiner::whole) combines elements.
    ///
    /// # Safety
    /// The values exist, and one element is writable at the target.
    unsafe fn fold_values(
        &self,
        [mut first, second, position]: [Place; 3],
        columns: usize,
        target: usize,
        scratch: &mut Scratch,
    ) {
        let mut levels = [std::mem::MaybeUninit::<Cell>::uninit(); 65];
        let base = levels.as_mut_ptr().expose_provenance();
        let mut cell = Cell([0; 16]);
        let part = (&raw mut cell).expose_provenance();
        // SAFETY: enough levels for any number of elements, and parts of the line.
        unsafe {
            let mut pairwise = Pairwise::new(&self.combiner, base, 1, self.size);
            for start in (0..columns).step_by(self.combiner.block) {
                let length = self.combiner.block.min(columns - start);
                let ready = self.input.load([first, second, position], (1, length), false, scratch);
                (self.combiner.whole)(pointer(ready.address), length, pointer(part));
                pairwise.push(part);
                first.address = offset(first.address, length, first.column);
            }
            pairwise.finish(target);
        }
    }

    /// # Safety
    /// The same as for [`Reducer::fold`].
    unsafe fn fold_rows(
        &self,
        folded: &Shape,
        addresses: [usize; 3],
        length: usize,
        target: usize,
        memory: &mut Vec<Cell>,
        scratch: &mut Scratch,
    ) {
        let bytes = length * self.size;
        let pitch = bytes.next_multiple_of(size_of::<Cell>());
        let rows = self.rows.map_or(1, |axis| folded[axis]);
        let levels = Pairwise::levels(count(folded));
        let cells = (levels + 1) * pitch / size_of::<Cell>();
        if memory.len() < cells {
            memory.resize(cells, Cell([0; 16]));
        }
        let part = memory.as_mut_ptr().expose_provenance();
        let base = offset(part, 1, pitch as isize);
        // SAFETY: enough levels for as many rows as there are elements for a result.
        let mut pairwise = unsafe { Pairwise::new(&self.combiner, base, length, bytes) };
        let outer = without(folded, &[self.rows]);
        // Computed rows of the length of direct ones fit the buffers one by one.
        let is_direct = self.columns.is_some_and(|axis| self.input.is_direct(axis));
        let at_once = if is_direct && self.input.values().is_some() { 1 } else { ROUNDS };
        for_each(&outer, &self.input.strides(), addresses, |start| {
            for group in (0..rows).step_by(ROUNDS) {
                let end = rows.min(group + ROUNDS);
                for row in (group..end).step_by(at_once) {
                    let height = at_once.min(end - row);
                    let places =
                        std::array::from_fn(|operand| self.place(operand, start[operand], row, 0));
                    // SAFETY: a tile of the elements, direct or fitting the buffers, whose rows
                    // are as long as a partial result.
                    unsafe {
                        let ready = self.input.load(places, (height, length), true, scratch);
                        for below in 0..height {
                            let from = pointer(offset(ready.address, below, ready.row));
                            if row + below == group {
                                ptr::copy_nonoverlapping(from, pointer(part), bytes);
                            } else {
                                (self.combiner.rows)(pointer(part), from, length);
                            }
                        }
                    }
                }
                // SAFETY: a partial result of the promised length.
                unsafe { pairwise.push(part) };
            }
        });
        // SAFETY: passed on to the caller.
        unsafe { pairwise.finish(target) };
    }
}
