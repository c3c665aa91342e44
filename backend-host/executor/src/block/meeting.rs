//! Lanes of a warp that wait for each other: the lanes of a mask, or the lanes that arrive at one
//! source location.

use super::{Block, Place, Wait, text_of};
use crate::abi::{Combine, Lanes};
use std::ffi::c_void;
use std::ptr;

impl Block {
    /// Lets a thread meet the lanes of its warp in `lanes`, or with 0 the lanes that arrive at its place.
    /// Returns true if it can continue.
    ///
    /// # Errors
    /// A message for a mask without the thread's own lane.
    pub(crate) fn join(
        &mut self,
        thread: u32,
        lanes: Lanes,
        record: *mut c_void,
        combine: Option<Combine>,
        place: Place,
    ) -> Result<bool, String> {
        let (warp, bit) = (self.warp_of(thread), self.bit(thread));
        self.dissolve();
        if lanes != 0 && lanes & bit == 0 {
            return Err(format!(
                "the mask is {lanes:#x}, without the calling lane {}, at {}",
                bit.trailing_zeros(),
                text_of(place)
            ));
        }
        let wait = &mut self.waits[thread as usize];
        (wait.place, wait.lanes, wait.record, wait.combine) = (place, lanes, record, combine);
        let state = &mut self.warps[warp];
        if lanes == 0 {
            state.gathering |= bit;
            return Ok(false);
        }
        state.meeting |= bit;
        if lanes & state.live & !state.meeting != 0 {
            return Ok(false);
        }
        self.meet(warp);
        let is_ready = self.warps[warp].ready & bit != 0;
        if is_ready {
            self.take(warp, bit);
        }
        Ok(is_ready)
    }

    /// Releases all complete groups of waiting lanes in a warp.
    pub(super) fn meet(&mut self, warp: usize) {
        let mut rest = self.warps[warp].meeting;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let first = &self.waits[(warp << self.shift) | lane as usize];
            let (wanted, operation) = (first.lanes, first.operation());
            let is_alike = |wait: &Wait| wait.lanes == wanted && wait.operation() == operation;
            let group = self.group(warp, rest, is_alike);
            rest &= !group;
            if wanted & self.warps[warp].live & !group == 0 {
                self.warps[warp].meeting &= !group;
                self.complete(warp, group);
            }
        }
    }

    /// Returns the lanes among `lanes` for whose wait `is_alike` is true.
    fn group(&self, warp: usize, lanes: Lanes, is_alike: impl Fn(&Wait) -> bool) -> Lanes {
        let (mut group, mut rest) = (0, lanes);
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            if is_alike(&self.waits[(warp << self.shift) | lane as usize]) {
                group |= 1 << lane;
            }
        }
        group
    }

    fn complete(&mut self, warp: usize, group: Lanes) {
        let mut records = [ptr::null_mut(); 64];
        let mut combine = None;
        let mut rest = group;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let wait = &mut self.waits[(warp << self.shift) | lane as usize];
            wait.result = group;
            records[lane as usize] = wait.record;
            combine = combine.or(wait.combine);
        }
        if let Some(combine) = combine {
            // SAFETY: the waiting lanes passed the records; the function belongs to the unit and does not
            // call the executor.
            unsafe { combine(records.as_ptr(), group) };
        }
        self.warps[warp].ready |= group;
        self.ready_warps |= 1 << warp;
    }

    /// While no thread can continue, releases the first lanes that meet at a place. Returns their warp.
    pub(super) fn gather(&mut self) -> Option<usize> {
        // Warps take turns, because a lane may wait for an action of another warp.
        let warps = self.warp_count();
        let mut turns = (1..=warps).map(|turn| (self.current_warp as usize + turn) % warps);
        let waits = |warp: &usize| self.warps[*warp].live & self.warps[*warp].gathering != 0;
        let warp = turns.find(waits)?;
        let gathering = self.warps[warp].gathering;
        // Lanes at earlier lines go first, so that branches meet after their end. Places that are not lines
        // come last, whichever file they are in.
        let lanes = (0..Lanes::BITS as usize).filter(|lane| gathering >> lane & 1 != 0);
        let waits = lanes.map(|lane| &self.waits[(warp << self.shift) | lane]);
        let first =
            waits.min_by_key(|wait| (wait.place.1 >> 30, wait.place.0 as usize, wait.place.1))?;
        let (place, operation) = (first.place, first.operation());
        let is_alike = |wait: &Wait| wait.place == place && wait.operation() == operation;
        let group = self.group(warp, gathering, is_alike);
        self.warps[warp].gathering &= !group;
        self.complete(warp, group);
        Some(warp)
    }
}
