//! The protocol of locks as a model: a few threads, each with an operation on some memories, in every
//! order of their steps. The steps are those of `AccessGuard::acquire_for`, `Usage::retire` and of
//! a capture's beginning, the order of the locks is that of [`lock_order`].

use super::lock_order;
use std::collections::HashSet;

const MEMORIES: usize = 3;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Enters the fast path of a memory; goes on at the step given if the memory is shared.
    Enter(usize, usize),
    /// Leaves the fast path of all memories that it has entered.
    LeaveAll,
    /// Marks a memory as shared.
    Share(usize),
    /// Goes on when nobody is inside the fast path of a memory.
    WaitForInside(usize),
    /// Goes on when it has the memory's lock.
    Lock(usize),
    /// Goes on unless a capture begins or ends.
    BeginOrdering,
    /// Is ordered behind the earlier uses of a memory.
    Order(usize),
    /// Lets captures begin.
    EndOrdering,
    /// Queues the work.
    Queue,
    /// Gives up the locks.
    Unlock,
    /// Goes on when nobody is ordering.
    BeginCapture,
    /// Lets others go on.
    CaptureHasBegun,
    /// Goes to the step given, as a fast path that ends.
    Go(usize),
}
use Step::*;

/// How an operation uses memories.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// On the stream that all memories are at home on.
    AtHome,
    /// On another stream.
    Elsewhere,
    /// A copy on another stream, which the host waits for: it waits for its stream without locks
    /// first.
    Copy,
    /// Frees each memory, one after the other.
    Free,
    /// A capture begins.
    Capture,
}

/// The steps of one operation.
fn steps(kind: Kind, uses: &[usize]) -> Vec<Step> {
    let mut steps = Vec::new();
    let order = lock_order(uses.iter().copied(), |memory| 100 - memory);
    match kind {
        Kind::Capture => steps.extend([BeginCapture, CaptureHasBegun]),
        Kind::Free => {
            for &memory in uses {
                steps.extend([Share(memory), WaitForInside(memory), Lock(memory), Unlock]);
                steps.extend([BeginOrdering, EndOrdering]);
            }
        }
        Kind::AtHome | Kind::Elsewhere | Kind::Copy => {
            if matches!(kind, Kind::AtHome) {
                // To be filled in: where the slow path begins.
                let slow = uses.len() + 3;
                steps.extend(uses.iter().map(|&memory| Enter(memory, slow)));
                steps.extend([Queue, LeaveAll]);
                steps.push(Go(usize::MAX));
                assert_eq!(steps.len(), slow);
                steps.push(LeaveAll);
            }
            for &memory in uses {
                steps.extend([Share(memory), WaitForInside(memory)]);
            }
            let rounds = if matches!(kind, Kind::Copy) { 2 } else { 1 };
            for round in 0..rounds {
                steps.extend(order.iter().map(|&memory| Lock(memory)));
                steps.push(BeginOrdering);
                steps.extend(uses.iter().map(|&memory| Order(memory)));
                if round + 1 < rounds {
                    // Waits for its stream.
                    steps.extend([EndOrdering, Unlock]);
                }
            }
            match kind {
                Kind::Copy => steps.extend([EndOrdering, Queue, Unlock]),
                _ => steps.extend([Queue, EndOrdering, Unlock]),
            }
        }
    }
    steps
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// The next step of each thread.
    at: Vec<usize>,
    /// The memories whose fast path each thread is inside.
    inside: Vec<Vec<usize>>,
    shared: [bool; MEMORIES],
    /// The thread that has each memory's lock.
    locked: [Option<usize>; MEMORIES],
    /// The thread that was ordered last on each memory, and has not queued its work.
    ordered: [Option<usize>; MEMORIES],
    /// The threads that order, and the one that begins a capture.
    ordering: Vec<usize>,
    capturing: Option<usize>,
}

impl State {
    /// The state after a thread's next step; `None` if the thread has to wait.
    fn after(&self, programs: &[Vec<Step>], thread: usize) -> Option<State> {
        let mut next = self.clone();
        let step = programs[thread][self.at[thread]];
        next.at[thread] += 1;
        match step {
            Enter(memory, slow) => match self.shared[memory] {
                true => next.at[thread] = slow,
                false => next.inside[thread].push(memory),
            },
            LeaveAll => next.inside[thread].clear(),
            Share(memory) => next.shared[memory] = true,
            WaitForInside(memory) if self.inside.iter().flatten().any(|&m| m == memory) => {
                return None;
            }
            Lock(memory) if self.locked[memory].is_some() => return None,
            Lock(memory) => next.locked[memory] = Some(thread),
            BeginOrdering if self.capturing.is_some() => return None,
            BeginOrdering => next.ordering.push(thread),
            Order(memory) => {
                assert_eq!(self.locked[memory], Some(thread), "orders without the lock");
                assert!(self.ordered[memory].is_none_or(|other| other == thread), "slips between");
                assert!(self.capturing.is_none(), "a capture begins meanwhile");
                let inside = self.inside.iter().flatten().any(|&m| m == memory);
                assert!(!inside, "somebody queues on the fast path meanwhile");
                next.ordered[memory] = Some(thread);
            }
            EndOrdering => next.ordering.retain(|&other| other != thread),
            Queue => {
                for &memory in &self.inside[thread] {
                    assert_eq!(self.locked[memory], None, "both ways at once");
                }
            }
            Unlock => {
                for memory in 0..MEMORIES {
                    if self.locked[memory] == Some(thread) {
                        next.locked[memory] = None;
                        next.ordered[memory] = None;
                    }
                }
            }
            BeginCapture if self.capturing.is_some() || !self.ordering.is_empty() => return None,
            BeginCapture => next.capturing = Some(thread),
            CaptureHasBegun => next.capturing = None,
            Go(step) => next.at[thread] = step.min(programs[thread].len()),
            WaitForInside(_) => {}
        }
        Some(next)
    }
}

/// Runs programs in every order of their steps, and returns the number of states.
fn explore(programs: &[Vec<Step>]) -> usize {
    let start = State {
        at: vec![0; programs.len()],
        inside: vec![Vec::new(); programs.len()],
        ..State::default()
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let mut runs = (0..programs.len()).filter(|&it| state.at[it] < programs[it].len());
        let waiting: Vec<_> = runs.clone().collect();
        let nexts: Vec<_> = runs.by_ref().filter_map(|it| state.after(programs, it)).collect();
        assert!(
            waiting.is_empty() || !nexts.is_empty(),
            "nobody goes on in {state:?} of {programs:?}"
        );
        for next in nexts {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen.len()
}

#[test]
#[cfg_attr(miri, ignore = "a model, without unsafe code, that runs too long there")]
fn no_two_operations_wait_for_each_other() {
    let kinds = [Kind::AtHome, Kind::Elsewhere, Kind::Copy, Kind::Free, Kind::Capture];
    let uses: [&[usize]; 5] = [&[0, 1], &[1, 0], &[1, 2, 0], &[2, 2, 1], &[0]];
    let all: Vec<Vec<Step>> =
        kinds.iter().flat_map(|&kind| uses.map(|uses| steps(kind, uses))).collect();
    let mut states = 0;
    for first in &all {
        for second in &all {
            states += explore(&[first.clone(), second.clone()]);
        }
    }
    // Three at once, where circles of three could be.
    for kinds in [
        [Kind::AtHome, Kind::Elsewhere, Kind::Copy],
        [Kind::AtHome, Kind::AtHome, Kind::Elsewhere],
        [Kind::Copy, Kind::Elsewhere, Kind::Capture],
        [Kind::AtHome, Kind::Free, Kind::Capture],
    ] {
        let uses: [&[usize]; 3] = [&[0, 1], &[1, 2], &[2, 0]];
        states += explore(&[0, 1, 2].map(|it| steps(kinds[it], uses[it])));
    }
    assert!(states > 10_000, "{states}");
}

#[test]
fn the_model_finds_a_circle_and_a_slip() {
    let explored = |programs: &[Vec<Step>]| {
        let programs = programs.to_vec();
        std::panic::catch_unwind(move || explore(&programs)).is_ok()
    };
    let circle = [vec![Lock(0), Lock(1), Unlock], vec![Lock(1), Lock(0), Unlock]];
    assert!(!explored(&circle));
    // Waits for the fast path with a lock that whoever is inside does not need: nobody is stuck.
    let inside = vec![Enter(0, 3), Queue, LeaveAll];
    assert!(explored(&[vec![Lock(1), Share(0), WaitForInside(0), Unlock], inside.clone()]));
    // Without waiting for it.
    assert!(!explored(&[vec![Share(0), Lock(0), Order(0), Queue, Unlock], inside]));
    assert!(!explored(&[vec![Order(0), Queue], vec![Lock(0), Unlock]]), "without the lock");
}

#[test]
fn locks_are_taken_once_each_by_address() {
    let order = lock_order([7, 3, 7, 5, 3].into_iter(), |address| *address);
    assert_eq!(order[..], [3, 5, 7]);
}
