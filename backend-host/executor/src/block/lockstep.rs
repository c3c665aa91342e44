//! Threads that come to the same barriers in the order of their numbers.
//!
//! Most kernels do: then a barrier needs no search for who goes on. Before the running thread all
//! have arrived, behind it all are ready, and its successor runs next. The state is
//! a position in the list of threads:
//!
//! ```text
//! wait at the barrier | wait for their warp | runs     | ready, or unreached
//! first ..            | position - met ..   | position | position + 1 ..
//! ```
//!
//! A warp whose lanes meet goes over its part of the list again. Whatever else a thread does ends
//! this state: [`Block::dissolve`] writes down of each thread what it waits for. A barrier that
//! releases all threads that are left begins it anew.

use super::{BARRIERS, Barrier, Block, Next, Place};
use crate::abi::{Combine, Lanes};
use std::ffi::c_void;
use std::ptr;

/// A thread that takes part.
#[derive(Clone, Copy, Debug)]
struct Member {
    fiber: u32,
    thread: u32,
    place: Place,
    /// True for the last operation that it came to if that was one of its warp.
    is_meeting: bool,
}

/// Where the threads are.
#[derive(Debug)]
pub(crate) struct Lockstep {
    /// False while threads are anywhere: then nothing else here counts.
    is_formed: bool,
    /// In the order of their numbers. In a block that has begun, threads are added when they are reached.
    members: Vec<Member>,
    /// Members that have returned precede it.
    first: usize,
    position: usize,
    /// The barrier that the first thread has come to: that of all, or [`TOGETHER`](super::TOGETHER).
    barrier: u32,
    /// Threads that passed a predicate other than 0 to the barrier, so far and at the last one.
    predicates: u32,
    result: u32,
    /// Lanes that wait for the others of their warp: how many, what they brought, and the lanes that met last.
    met: usize,
    operation: (Lanes, Option<Combine>),
    records: [*mut c_void; 64],
    group: Lanes,
}

impl Lockstep {
    pub(super) fn new() -> Lockstep {
        Lockstep {
            is_formed: false,
            members: Vec::new(),
            first: 0,
            position: 0,
            barrier: 0,
            predicates: 0,
            result: 0,
            met: 0,
            operation: (0, None),
            records: [ptr::null_mut(); 64],
            group: 0,
        }
    }

    fn restart(&mut self) {
        self.is_formed = true;
        self.members.clear();
        (self.first, self.position, self.met, self.predicates) = (0, 0, 0, 0);
    }
}

impl Block {
    /// A block begins, all of whose threads are unreached.
    pub(super) fn begin_lockstep(&mut self) {
        self.lockstep.restart();
    }

    /// No thread takes part: none of the block has begun.
    pub(super) fn forget_lockstep(&mut self) {
        self.lockstep.is_formed = false;
    }

    /// The loop that runs on a fibre has been suspended in its first thread.
    pub(super) fn join_lockstep(&mut self, thread: u32, fiber: u32) {
        let state = &mut self.lockstep;
        if state.is_formed {
            let place = (ptr::null(), 0);
            state.members.push(Member { fiber, thread, place, is_meeting: false });
        }
    }

    /// All threads that have not returned are released by a barrier: they go on in their order.
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

    pub(super) fn is_in_lockstep(&self) -> bool {
        self.lockstep.is_formed
    }

    /// Who runs next while the threads are in lockstep.
    pub(super) fn next_in_lockstep(&self) -> Option<Next> {
        let state = &self.lockstep;
        state.is_formed.then(|| match state.members.get(state.position) {
            Some(member) => Next::Resume(member.fiber),
            None => Next::Begin(self.unreached),
        })
    }

    /// The running thread comes to a barrier of all threads. Returns who runs next; `None` where the threads
    /// are not in lockstep, or those before it wait at another one.
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

    /// The running thread meets the lanes of its warp that are in `lanes`. Returns who runs next; `None`
    /// where the threads are not in lockstep, or these lanes are not all of the warp that are left.
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
        // Lanes before it in the warp are where it is.
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
            // SAFETY: the records are those that the lanes wait with; the function is the unit's, and
            // calls nothing of the executor.
            unsafe { combine(state.records.as_ptr(), live) };
        }
        Some(Next::Resume(state.members[state.position].fiber))
    }

    /// What the operation returns that `thread` was suspended in, which goes on now.
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

    /// True if [`Block::pass`] and [`Block::meet_in_lockstep`] would go to a thread that is suspended already.
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

    /// The running thread returns. True if the others stay in lockstep.
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

    /// Writes down what each thread waits for: from now on they may be anywhere.
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

/// The numbers of the lanes.
fn lanes_of(mut lanes: Lanes) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
        lanes &= lanes - 1;
        Some(lane)
    })
}
