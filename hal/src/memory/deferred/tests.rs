//! A model of the agreement between deferred work and writes, in every order of the threads' steps. The steps follow
//! [`DeviceMemory::read_later`](super::DeviceMemory::read_later) and `AccessGuard::acquire_for`.

use std::collections::HashSet;

/// What is left out of the protocol, to show that the model notices.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Announcements,
    IdleCheck,
    CheckAfterEntering,
    CheckUnderLock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thread {
    /// Defers work that reads the memory.
    Reader,
    /// Writes on the memory's own stream.
    Writer,
    /// Writes on another stream.
    OtherWriter,
}
use Thread::*;

#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct State {
    places: Vec<usize>,
    announces: Vec<bool>,
    exist: bool,
    is_in_list: bool,
    is_deferred: bool,
    is_queued: bool,
    inside: usize,
    is_shared: bool,
    locked_by: Option<usize>,
    /// A write was queued before deferred work that had to read the memory.
    is_wrong: bool,
}

const END: usize = 99;

impl State {
    fn lacks(&self, thread: usize) -> bool {
        self.exist && !self.announces[thread]
    }

    /// Returns the state after the thread's next step; `None` while it waits, or if it has ended.
    fn after(&self, threads: &[Thread], thread: usize, without: Without) -> Option<State> {
        let mut next = self.clone();
        let place = self.places[thread];
        let other_announces = self.announces.contains(&true);
        next.places[thread] = match (threads[thread], place) {
            (_, END) => return None,
            (Reader, 0) => {
                next.exist = true;
                1
            }
            (Reader, 1) => {
                next.is_in_list = true;
                2
            }
            (Reader, 2) if other_announces && without != Without::Announcements => END,
            (Reader, 2) => 3,
            (Reader, 3) if self.inside > 0 && without != Without::IdleCheck => END,
            (Reader, 3) if self.is_shared => 4,
            (Reader, 4) if self.locked_by.is_some() && without != Without::IdleCheck => END,
            (Reader, _) => {
                next.is_deferred = true;
                END
            }
            // The fast path.
            (Writer, 0) => {
                next.inside += 1;
                if self.is_shared { 2 } else { 1 }
            }
            (_, 1) if self.lacks(thread) && without != Without::CheckAfterEntering => 2,
            (_, 1) => 3,
            (_, 2) => {
                next.inside -= 1;
                10
            }
            (_, 3) => {
                next.announces[thread] = false;
                4
            }
            (_, 4) => {
                next.is_wrong |= self.is_deferred && !self.is_queued;
                5
            }
            (_, 5) => {
                next.inside -= 1;
                END
            }
            // Announces the write, and queues deferred work.
            (OtherWriter, 0) | (_, 10) if self.lacks(thread) => {
                next.announces[thread] = true;
                11
            }
            (OtherWriter, 0) | (_, 10) => 20,
            (_, 11) => {
                next.is_queued |= self.is_in_list;
                if threads[thread] == Writer && !self.is_shared { 12 } else { 20 }
            }
            (_, 12) => {
                next.inside += 1;
                if self.is_shared { 13 } else { 1 }
            }
            (_, 13) => {
                next.inside -= 1;
                20
            }
            // The locks of shared memory.
            (_, 20) => {
                next.is_shared = true;
                21
            }
            (_, 21) if self.inside > 0 => return None,
            (_, 21) => 22,
            (_, 22) if self.locked_by.is_some() => return None,
            (_, 22) => {
                next.locked_by = Some(thread);
                23
            }
            (_, 23) if self.lacks(thread) && without != Without::CheckUnderLock => {
                next.locked_by = None;
                24
            }
            (_, 24) => {
                next.announces[thread] = true;
                25
            }
            (_, 25) => {
                next.is_queued |= self.is_in_list;
                22
            }
            (_, 23) => 26,
            (_, 26) => {
                next.announces[thread] = false;
                27
            }
            (_, 27) => {
                next.is_wrong |= self.is_deferred && !self.is_queued;
                28
            }
            (_, _) => {
                next.locked_by = None;
                END
            }
        };
        Some(next)
    }
}

/// Returns true if no order of the steps is wrong, and none waits for ever.
fn holds(threads: &[Thread], exist: bool, without: Without) -> bool {
    let count = threads.len();
    let first =
        State { places: vec![0; count], announces: vec![false; count], exist, ..State::default() };
    let (mut known, mut rest) = (HashSet::new(), vec![first]);
    while let Some(state) = rest.pop() {
        if state.is_wrong {
            return false;
        }
        if !known.insert(state.clone()) {
            continue;
        }
        let next: Vec<State> =
            (0..count).filter_map(|thread| state.after(threads, thread, without)).collect();
        if next.is_empty() && state.places.iter().any(|&place| place != END) {
            return false;
        }
        rest.extend(next);
    }
    true
}

const MIXTURES: [&[Thread]; 4] = [
    &[Reader, Writer],
    &[Reader, OtherWriter],
    &[Reader, Writer, OtherWriter],
    &[Reader, OtherWriter, OtherWriter],
];

#[test]
fn deferred_work_is_queued_before_later_writes() {
    for threads in MIXTURES {
        for exist in [false, true] {
            assert!(holds(threads, exist, Without::Nothing));
        }
    }
}

#[test]
fn the_model_needs_each_part_of_the_protocol() {
    use Without::*;
    for without in [Announcements, IdleCheck, CheckAfterEntering, CheckUnderLock] {
        let is_noticed =
            |threads: &&[Thread]| !holds(threads, false, without) || !holds(threads, true, without);
        assert!(MIXTURES.iter().any(is_noticed));
    }
}
