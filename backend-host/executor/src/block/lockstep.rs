//! Lockstep: threads that arrive at the same barriers in thread order.
//!
//! Most kernels behave like this. A barrier then does not have to search for the next thread: all threads before
//! the running one have arrived, all threads after it are ready, and its successor runs next. The state is a
//! position in the list of threads:
//!
//! ```text
//! wait at the barrier | wait for their warp | runs     | ready, or unreached
//! first ..            | position - met ..   | position | position + 1 ..
//! ```
//!
//! When the lanes of a warp meet, the warp runs through its part of the list again. Anything else that a
//! thread does ends lockstep: [`Block::dissolve`] then records the wait of each thread. A barrier
//! that releases all remaining threads starts lockstep again.

use super::{BARRIERS, Barrier, Block, Lockstep, Member, Next, Place};
use crate::abi::{Combine, Lanes};
use std::ffi::c_void;
use std::ptr;

impl Block {
    /// Adds a thread: the loop on this fibre has been suspended in its first thread.
    pub(super) fn join_lockstep(&mut self, thread: u32, fiber: u32) {
        let state = &mut self.lockstep;
        if state.is_formed {
            let place = (ptr::null(), 0);
            state.members.push(Member { fiber, thread, place, is_meeting: false });
        }
    }

    /// Starts lockstep after a barrier that releases all remaining threads. They continue in thread order.
    pub(super) fn form(&mut self, result: u32) {
        self.lockstep.restart();
        self.lockstep.result = result;
        for warp in 0..self.warp_count() {
            let state = &mut self.warps[warp];
            (state.ready, state.at_barrier) = (0, 0);
            for lane in lanes_of(state.live) {
                let thread = (warp << self.shift) as u32 | lane;
                let wait = &mut self.waits[thread as usize];
                wait.result = u64::from(result);
                let (fiber, place) = (wait.fiber, wait.place);
                self.lockstep.members.push(Member { fiber, thread, place, is_meeting: false });
            }
        }
        self.ready_warps = 0;
    }

    /// Returns the next step while the threads are in lockstep.
    pub(super) fn next_in_lockstep(&self) -> Option<Next> {
        let state = &self.lockstep;
        state.is_formed.then(|| match state.members.get(state.position) {
            Some(member) => Next::Resume(member.fiber),
            None => Next::Begin(self.unreached),
        })
    }

    /// Lets the running thread arrive at a barrier of all threads, and returns the next step. Returns `None`
    /// if the threads are not in lockstep, or the earlier threads wait at another barrier.
    #[inline]
    pub(crate) fn pass(&mut self, predicate: bool, place: Place, barrier: u32) -> Option<Next> {
        let state = &mut self.lockstep;
        let is_first = state.position == state.first;
        if !state.is_formed || state.met > 0 || (!is_first && state.barrier != barrier) {
            return None;
        }
        state.barrier = barrier;
        let member = state.members.get_mut(state.position)?;
        (member.place, member.is_meeting) = (place, false);
        state.predicates += u32::from(predicate);
        state.position += 1;
        if let Some(next) = state.members.get(state.position) {
            return Some(Next::Resume(next.fiber));
        }
        if self.unreached < self.threads {
            return Some(Next::Begin(self.unreached));
        }
        (state.result, state.predicates, state.position) = (state.predicates, 0, state.first);
        Some(Next::Resume(state.members[state.first].fiber))
    }

    /// Lets the running thread meet the lanes of its warp in `lanes`, and returns the next step. Returns
    /// `None` if the threads are not in lockstep, or `lanes` does not contain all remaining lanes of the
    /// warp.
    #[inline]
    pub(crate) fn meet_in_lockstep(
        &mut self,
        lanes: Lanes,
        record: *mut c_void,
        combine: Option<Combine>,
        place: Place,
    ) -> Option<Next> {
        let state = &mut self.lockstep;
        if !state.is_formed {
            return None;
        }
        let member = state.members.get_mut(state.position)?;
        let warp = (member.thread >> self.shift) as usize;
        let lane = member.thread & ((1 << self.shift) - 1);
        let live = self.warps.get(warp)?.live;
        // The lanes before it in the warp have arrived at the same operation.
        let before = (live & ((1 << lane) - 1)).count_ones() as usize;
        let operation = (lanes, combine.map(|it| it as usize));
        let common = (state.operation.0, state.operation.1.map(|it| it as usize));
        if live & !lanes != 0 || before != state.met || (before > 0 && operation != common) {
            return None;
        }
        (member.place, member.is_meeting) = (place, true);
        state.operation = (lanes, combine);
        state.records[lane as usize] = record;
        state.position += 1;
        if live >> lane != 1 {
            state.met += 1;
            return Some(match state.members.get(state.position) {
                Some(next) => Next::Resume(next.fiber),
                None => Next::Begin(self.unreached),
            });
        }
        state.met = 0;
        state.group = live;
        state.position -= before + 1;
        if let Some(combine) = combine {
            // SAFETY: the waiting lanes passed the records; the function belongs to the unit and does not
            // call the executor.
            unsafe { combine(state.records.as_ptr(), live) };
        }
        Some(Next::Resume(state.members[state.position].fiber))
    }

    /// Returns the result of the operation in which `thread`, which now continues, was suspended.
    #[inline]
    pub(crate) fn result(&self, thread: u32) -> u64 {
        let state = &self.lockstep;
        match state.members.get(state.position) {
            Some(member) if state.is_formed => match member.is_meeting {
                true => state.group,
                false => state.result.into(),
            },
            _ => self.waits[thread as usize].result,
        }
    }

    /// Returns true if [`Block::pass`] and [`Block::meet_in_lockstep`] would continue with a thread that is
    /// already suspended.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "the short way is assembler")
    )]
    #[inline]
    pub(crate) fn can_step(&self) -> bool {
        let Lockstep { is_formed, position, members, .. } = &self.lockstep;
        let is_last = position + 1 >= members.len();
        *is_formed && *position < members.len() && !(is_last && self.unreached < self.threads)
    }

    /// Records that the running thread returns. Returns true if the others stay in lockstep.
    pub(super) fn leave_lockstep(&mut self, thread: u32) -> bool {
        let (warp, bit) = (self.warp_of(thread), self.bit(thread));
        let state = &mut self.lockstep;
        let is_first = state.is_formed && state.met == 0 && state.position == state.first;
        if is_first && state.position < state.members.len() {
            state.first += 1;
            state.position += 1;
            self.returned += 1;
            self.warps[warp].live &= !bit;
            return true;
        }
        false
    }

    /// Ends lockstep, and records what each thread waits for.
    pub(super) fn dissolve(&mut self) {
        if !self.lockstep.is_formed {
            return;
        }
        self.lockstep.is_formed = false;
        let Lockstep { first, position, met, .. } = self.lockstep;
        self.barriers = [Barrier::default(); BARRIERS];
        let number = self.lockstep.barrier;
        let barrier = &mut self.barriers[number as usize];
        barrier.arrived = (position - met - first) as u32;
        barrier.predicates = self.lockstep.predicates;
        for index in first..self.lockstep.members.len() {
            let member = self.lockstep.members[index];
            let (warp, bit) = (self.warp_of(member.thread), self.bit(member.thread));
            let state = &mut self.warps[warp];
            let wait = &mut self.waits[member.thread as usize];
            wait.place = member.place;
            if index + met < position {
                wait.barrier = number;
                state.at_barrier |= bit;
            } else if index < position {
                (wait.lanes, wait.combine) = self.lockstep.operation;
                wait.record = self.lockstep.records[bit.trailing_zeros() as usize];
                state.meeting |= bit;
            } else {
                wait.result = match member.is_meeting {
                    true => self.lockstep.group,
                    false => self.lockstep.result.into(),
                };
                if index > position {
                    state.ready |= bit;
                    self.ready_warps |= 1 << warp;
                }
            }
        }
    }
}

/// Returns the lane numbers in a mask.
fn lanes_of(mut lanes: Lanes) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
        lanes &= lanes - 1;
        Some(lane)
    })
}
