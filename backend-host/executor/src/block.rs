//! The scheduler of a block: which threads can continue, and which wait.
//!
//! A thread is *unreached* until a loop over threads reaches it. It is *suspended* at its first barrier or
//! warp operation. From then on it is *ready* or waiting, until it has *returned*. A block whose threads are
//! never suspended does not need the scheduler.

mod lockstep;
mod meeting;

use crate::abi::{Combine, Lanes};
use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write as _;
use std::ptr;

/// The maximum number of threads in a block.
pub(crate) const MOST_THREADS: usize = 1024;
/// The maximum number of 32-lane warps in a block.
const MOST_WARPS: usize = MOST_THREADS / 32;
/// The number of barriers: the numbered ones, the barrier of the grid, and the one at which no thread has to
/// arrive.
pub(crate) const BARRIERS: usize = 18;
pub(crate) const GRID_BARRIER: usize = 16;
pub(crate) const TOGETHER: usize = 17;

/// A place in a program: file and line.
pub(crate) type Place = (*const c_char, u32);

/// The state of a suspended thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The index of the thread's fibre.
    fiber: u32,
    place: Place,
    /// The barrier at which the thread waits, if any.
    barrier: u32,
    /// If the thread waits for lanes: the lanes to meet, and the address for [`Combine`].
    lanes: Lanes,
    record: *mut c_void,
    combine: Option<Combine>,
    /// The result of the operation.
    result: u64,
}

impl Wait {
    /// Returns a value that identifies the operation. Lanes meet in the same operation, whose records have
    /// the same type. An operation that combines nothing is identified by the path on which a lane arrived.
    fn operation(&self) -> usize {
        self.combine.map_or(self.record as usize, |combine| combine as usize)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Warp {
    /// Lanes that have not returned.
    live: Lanes,
    ready: Lanes,
    at_barrier: Lanes,
    /// Lanes that wait for the other lanes of a mask.
    meeting: Lanes,
    /// Lanes that wait for any lanes that arrive at the same place.
    gathering: Lanes,
}

#[derive(Clone, Copy, Debug, Default)]
struct Barrier {
    arrived: u32,
    predicates: u32,
    /// The number of threads that the barrier waits for; 0 means all that have not returned.
    wanted: u32,
}

/// A thread in lockstep.
#[derive(Clone, Copy, Debug)]
struct Member {
    fiber: u32,
    thread: u32,
    place: Place,
    /// True if the thread's last operation was a warp operation.
    is_meeting: bool,
}

/// The state of the threads in lockstep.
#[derive(Debug)]
struct Lockstep {
    /// False if the threads are not in lockstep. The other fields are then meaningless.
    is_formed: bool,
    /// In thread order. In a new block, threads are added when they are reached.
    members: Vec<Member>,
    /// The index of the first member that has not returned.
    first: usize,
    position: usize,
    /// The barrier at which the first thread has arrived: the barrier of all threads, or
    /// [`TOGETHER`].
    barrier: u32,
    /// The number of threads that passed a nonzero predicate to the current barrier. `result` is the number
    /// at the last barrier.
    predicates: u32,
    result: u32,
    /// The number of lanes that wait for the rest of their warp, their operation and records, and the lanes
    /// that met last.
    met: usize,
    operation: (Lanes, Option<Combine>),
    records: [*mut c_void; 64],
    group: Lanes,
}

impl Lockstep {
    fn new() -> Lockstep {
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

/// The next step of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Resume the suspended thread of this fibre.
    Resume(u32),
    /// Begin a loop at the first unreached thread.
    Begin(u32),
    /// All threads wait.
    Nobody,
}

/// The threads of the block that a worker runs.
#[derive(Debug)]
pub(crate) struct Block {
    threads: u32,
    /// The binary logarithm of the warp size.
    shift: u32,
    /// True once a thread of this block has been suspended.
    is_split: bool,
    /// The first thread that no loop has reached.
    unreached: u32,
    returned: u32,
    /// A bit for each warp with ready lanes.
    ready_warps: u64,
    current_warp: u32,
    warps: [Warp; MOST_WARPS],
    barriers: [Barrier; BARRIERS],
    lockstep: Lockstep,
    waits: Box<[Wait]>,
}

impl Block {
    pub(crate) fn new() -> Block {
        let nothing = Wait {
            fiber: 0,
            place: (ptr::null(), 0),
            barrier: 0,
            lanes: 0,
            record: ptr::null_mut(),
            combine: None,
            result: 0,
        };
        Block {
            threads: 1,
            shift: 5,
            is_split: false,
            unreached: 0,
            returned: 0,
            ready_warps: 0,
            current_warp: 0,
            warps: [Warp::default(); MOST_WARPS],
            barriers: [Barrier::default(); BARRIERS],
            lockstep: Lockstep::new(),
            waits: vec![nothing; MOST_THREADS].into(),
        }
    }

    /// Sets the number of threads and the warp size (32 or 64) of the following blocks.
    pub(crate) fn set_shape(&mut self, threads: u32, warp_size: u32) {
        self.threads = threads;
        self.shift = warp_size.trailing_zeros();
        self.is_split = false;
        // A failed launch may have left its threads in any state.
        self.lockstep.is_formed = false;
    }

    pub(crate) fn is_split(&self) -> bool {
        self.is_split
    }

    /// Returns true if the number belongs to a thread of the block.
    pub(crate) fn has(&self, thread: u32) -> bool {
        thread < self.threads
    }

    fn warp_count(&self) -> usize {
        (self.threads as usize).div_ceil(1 << self.shift)
    }

    fn warp_of(&self, thread: u32) -> usize {
        (thread >> self.shift) as usize % MOST_WARPS
    }

    fn bit(&self, thread: u32) -> Lanes {
        1 << (thread & ((1 << self.shift) - 1))
    }

    /// Records that the loop which began at thread `begin` is suspended in `thread`, on a fibre. The threads
    /// before it have returned.
    pub(crate) fn split(&mut self, begin: u32, thread: u32, fiber: u32) {
        if !self.is_split {
            self.is_split = true;
            self.returned = 0;
            self.ready_warps = 0;
            self.barriers = [Barrier::default(); BARRIERS];
            for first in (0..self.threads).step_by(1 << self.shift) {
                let lanes = (self.threads - first).min(1 << self.shift);
                let live = Lanes::MAX >> (Lanes::BITS - lanes);
                self.warps[self.warp_of(first)] = Warp { live, ..Warp::default() };
            }
            self.lockstep.restart();
        }
        self.waits[thread as usize].fiber = fiber;
        self.unreached = thread + 1;
        self.current_warp = thread >> self.shift;
        self.finish(begin, thread);
        self.join_lockstep(thread, fiber);
    }

    /// Records that the loop which began at thread `begin` has run to its end. All threads have then been
    /// reached.
    pub(crate) fn finish_rest(&mut self, begin: u32) {
        self.unreached = self.threads;
        self.finish(begin, self.threads);
    }

    /// Records that a suspended thread has returned.
    pub(crate) fn finish_one(&mut self, thread: u32) {
        if !self.leave_lockstep(thread) {
            self.finish(thread, thread + 1);
        }
    }

    /// Records that the threads in `begin..end` have returned. They count as arrived at every barrier.
    fn finish(&mut self, begin: u32, end: u32) {
        if begin == end {
            return;
        }
        self.dissolve();
        let mut first = begin;
        while first < end {
            let warp = self.warp_of(first);
            let last = end.min(((first >> self.shift) + 1) << self.shift);
            let lanes =
                (Lanes::MAX >> (Lanes::BITS - (last - first))) << (first & ((1 << self.shift) - 1));
            self.warps[warp].live &= !lanes;
            self.returned += last - first;
            if self.warps[warp].meeting != 0 {
                self.meet(warp);
            }
            first = last;
        }
        for barrier in 0..BARRIERS {
            if self.barriers[barrier].arrived > 0 && barrier != GRID_BARRIER {
                self.release_if_complete(barrier);
            }
        }
    }

    /// Returns true once all threads have returned.
    pub(crate) fn is_finished(&self) -> bool {
        self.returned == self.threads
    }

    /// Records that a thread arrives at a barrier. Returns true if it can continue.
    pub(crate) fn arrive(
        &mut self,
        thread: u32,
        barrier: usize,
        wanted: u32,
        predicate: bool,
        place: Place,
    ) -> bool {
        self.dissolve();
        let wait = &mut self.waits[thread as usize];
        wait.place = place;
        wait.barrier = barrier as u32;
        let (warp, bit) = (self.warp_of(thread), self.bit(thread));
        self.warps[warp].at_barrier |= bit;
        let state = &mut self.barriers[barrier];
        state.arrived += 1;
        state.predicates += u32::from(predicate);
        state.wanted = wanted;
        if !self.release_if_complete(barrier) || self.lockstep.is_formed {
            return false;
        }
        self.take(warp, bit);
        true
    }

    /// Records that a thread arrives at the barrier of the grid. The block is released once all blocks have
    /// arrived.
    pub(crate) fn arrive_at_grid(&mut self, thread: u32, place: Place) -> bool {
        self.dissolve();
        let wait = &mut self.waits[thread as usize];
        (wait.place, wait.barrier) = (place, GRID_BARRIER as u32);
        let (warp, bit) = (self.warp_of(thread), self.bit(thread));
        self.warps[warp].at_barrier |= bit;
        self.barriers[GRID_BARRIER].arrived += 1;
        false
    }

    /// Removes a lane from the ready ones, because it continues to run.
    fn take(&mut self, warp: usize, bit: Lanes) {
        let state = &mut self.warps[warp];
        state.ready &= !bit;
        if state.ready == 0 {
            self.ready_warps &= !(1 << warp);
        }
    }

    /// Returns true if all threads that the barrier waits for have arrived.
    pub(crate) fn is_complete(&self, barrier: usize) -> bool {
        let Barrier { arrived, wanted, .. } = self.barriers[barrier];
        arrived > 0
            && match wanted {
                0 => arrived == self.threads - self.returned,
                wanted => arrived >= wanted,
            }
    }

    pub(crate) fn release_if_complete(&mut self, barrier: usize) -> bool {
        let complete = self.is_complete(barrier);
        if complete {
            self.release(barrier);
        }
        complete
    }

    fn release(&mut self, barrier: usize) {
        let Barrier { predicates, wanted, .. } = self.barriers[barrier];
        let is_of_all = wanted == 0 && self.is_complete(barrier);
        self.barriers[barrier] = Barrier::default();
        if is_of_all {
            return self.form(predicates);
        }
        for warp in 0..self.warp_count() {
            let mut lanes = self.warps[warp].at_barrier;
            let mut released = 0;
            while lanes != 0 {
                let lane = lanes.trailing_zeros();
                lanes &= lanes - 1;
                let wait = &mut self.waits[(warp << self.shift) | lane as usize];
                if wait.barrier == barrier as u32 {
                    wait.result = u64::from(predicates);
                    released |= 1 << lane;
                }
            }
            if released != 0 {
                let state = &mut self.warps[warp];
                state.at_barrier &= !released;
                state.ready |= released;
                self.ready_warps |= 1 << warp;
            }
        }
    }

    /// Picks the next thread to run. Lanes of the same warp come first, so that warps meet soon.
    pub(crate) fn next(&mut self) -> Next {
        if let Some(next) = self.next_in_lockstep() {
            return next;
        }
        let current = self.current_warp as usize % MOST_WARPS;
        if self.ready_warps & 1 << current != 0 {
            return self.resume(current);
        }
        let has_unreached = self.unreached < self.threads;
        if has_unreached && self.warp_of(self.unreached) == current {
            return Next::Begin(self.unreached);
        }
        if self.ready_warps != 0 {
            return self.resume(self.ready_warps.trailing_zeros() as usize);
        }
        if has_unreached {
            return Next::Begin(self.unreached);
        }
        // Lanes that meet at a place are mostly on their way to the other threads.
        if let Some(warp) = self.gather() {
            return self.resume(warp);
        }
        if self.barriers[TOGETHER].arrived > 0 {
            self.release(TOGETHER);
            return self.next();
        }
        Next::Nobody
    }

    fn resume(&mut self, warp: usize) -> Next {
        self.current_warp = warp as u32;
        let lane = self.warps[warp].ready.trailing_zeros();
        self.take(warp, 1 << lane);
        Next::Resume(self.waits[(warp << self.shift) | lane as usize].fiber)
    }

    /// Describes which threads wait at which place, in a block in which no thread can continue.
    pub(crate) fn describe_waits(&self) -> String {
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for thread in 0..self.threads {
            let (warp, bit) = (&self.warps[self.warp_of(thread)], self.bit(thread));
            let wait = &self.waits[thread as usize];
            let what = if warp.at_barrier & bit != 0 {
                format!("a barrier at {}", text_of(wait.place))
            } else if warp.meeting & bit != 0 {
                format!("lanes {:#x} of their warp at {}", wait.lanes, text_of(wait.place))
            } else {
                continue;
            };
            match groups.iter_mut().find(|(known, _)| *known == what) {
                Some((_, threads)) => threads.push(thread),
                None => groups.push((what, vec![thread])),
            }
        }
        let mut text = format!("{} of {} threads have returned", self.returned, self.threads);
        for (what, threads) in groups.iter().take(8) {
            let _ = write!(text, "; {} wait for {what}", ranges(threads));
        }
        if groups.len() > 8 {
            let _ = write!(text, "; and {} more groups wait", groups.len() - 8);
        }
        text
    }
}

/// Formats a place as `file:line`.
pub(crate) fn text_of((file, line): Place) -> String {
    if file.is_null() {
        return format!("line {line}");
    }
    // SAFETY: the file is a literal of a loaded unit.
    format!("{}:{line}", unsafe { CStr::from_ptr(file) }.to_string_lossy())
}

/// Formats increasing thread numbers, as in `threads 0 to 31, 40`.
fn ranges(threads: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &thread in threads {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == thread => *last = thread,
            _ => parts.push((thread, thread)),
        }
    }
    let shown = parts.iter().take(6).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    let more = if parts.len() > 6 { ", ..." } else { "" };
    format!("{} {text}{more}", if threads.len() == 1 { "thread" } else { "threads" })
}
