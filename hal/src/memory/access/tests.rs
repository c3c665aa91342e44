//! A model of the lock protocol: a few threads, each with an operation on some memory objects, in
//! every order of their steps. The steps follow `AccessGuard::acquire_for`, `SubmissionGuard`,
//! `Usage::retire` and the beginning of a capture; locks are taken in the order of [`lock_order`].

use super::lock_order;
use std::collections::HashSet;

const MEMORIES: usize = 3;

/// The next step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Enters the fast path of a memory; jumps to the given step if the memory is shared.
    Enter(usize, usize),
    /// Leaves the fast path of all memories that it has entered.
    LeaveAll,
    /// Marks a memory as shared.
    Share(usize),
    /// Waits until no thread is inside the fast path of a memory.
    WaitForInside(usize),
    /// Waits for the memory's lock.
    Lock(usize),
    /// Waits while a capture begins or ends.
    BeginOrdering,
    /// Orders the operation after the earlier uses of a memory.
    Order(usize),
    /// Allows captures to begin.
    EndOrdering,
    /// Stores the stream that the thread is queueing on.
    StoreCell(usize),
    ClearCell,
    /// Jumps to the given step if no capture is announced.
    IfNotAnnounced(usize),
    /// Checks whether the stream captures; if so, the graph keeps the memory.
    Keep(usize),
    /// Queues the work.
    Queue,
    /// Releases the locks.
    Unlock,
    Announce,
    /// Waits until no thread is ordering.
    LockCaptures,
    /// If a thread is queueing on the stream, lets other threads run and jumps to the given step.
    RetryWhileQueueing(usize, usize),
    /// The stream captures from now on.
    BeginCapture(usize),
    /// Lets other threads run.
    CaptureHasBegun,
    /// Jumps to the given step, like the end of a fast path.
    Go(usize),
}
use Step::*;

/// The kind of an operation.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// On stream 0, on which all memory objects were allocated.
    AtHome,
    /// On stream 1.
    Elsewhere,
    /// A copy on stream 1 that the host waits for. It first waits for its stream without locks.
    Copy,
    /// Frees the memory objects one after the other.
    Free,
    /// A capture of a stream begins.
    Capture(usize),
}

/// The steps of one operation.
fn steps(kind: Kind, uses: &[usize]) -> Vec<Step> {
    let mut steps = Vec::new();
    let order = lock_order(uses.iter().copied(), |memory| 100 - memory);
    match kind {
        Kind::Capture(stream) => steps.extend([
            Announce,
            LockCaptures,
            RetryWhileQueueing(stream, 1),
            BeginCapture(stream),
            CaptureHasBegun,
        ]),
        Kind::Free => {
            for &memory in uses {
                steps.extend([Share(memory), WaitForInside(memory), Lock(memory), Unlock]);
                steps.extend([BeginOrdering, EndOrdering]);
            }
        }
        Kind::AtHome | Kind::Elsewhere | Kind::Copy => {
            if matches!(kind, Kind::AtHome) {
                let (keep, slow) = (uses.len() + 6, uses.len() + 11);
                steps.extend(uses.iter().map(|&memory| Enter(memory, slow)));
                steps.extend([StoreCell(0), IfNotAnnounced(keep)]);
                steps.extend([ClearCell, BeginOrdering, StoreCell(0), EndOrdering]);
                assert_eq!(steps.len(), keep);
                steps.extend([Keep(0), Queue, ClearCell, LeaveAll, Go(usize::MAX)]);
                assert_eq!(steps.len(), slow);
                steps.push(LeaveAll);
            }
            for &memory in uses {
                steps.extend([Share(memory), WaitForInside(memory)]);
            }
            let rounds = if matches!(kind, Kind::Copy) { 2 } else { 1 };
            let stream = usize::from(!matches!(kind, Kind::AtHome));
            for round in 0..rounds {
                steps.extend(order.iter().map(|&memory| Lock(memory)));
                steps.extend([BeginOrdering, StoreCell(stream)]);
                steps.extend(uses.iter().map(|&memory| Order(memory)));
                if round + 1 < rounds {
                    // Waits for the stream.
                    steps.extend([ClearCell, EndOrdering, Unlock]);
                }
            }
            match kind {
                Kind::Copy => steps.extend([EndOrdering, Keep(stream), Queue, ClearCell, Unlock]),
                _ => steps.extend([Keep(stream), Queue, ClearCell, EndOrdering, Unlock]),
            }
        }
    }
    steps
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// The next step of each thread.
    at: Vec<usize>,
    /// The memory objects whose fast path each thread is inside.
    inside: Vec<Vec<usize>>,
    shared: [bool; MEMORIES],
    /// The thread that holds each memory's lock.
    locked: [Option<usize>; MEMORIES],
    /// The last thread that was ordered on each memory and has not queued its work yet.
    ordered: [Option<usize>; MEMORIES],
    /// The threads that order, and the thread that begins a capture.
    ordering: Vec<usize>,
    capturing: Option<usize>,
    is_announced: bool,
    /// The streams that capture.
    captured: [bool; 2],
    /// The stream that each thread is queueing on.
    cells: Vec<Option<usize>>,
    /// The stream whose capture state each thread has checked, and the result.
    kept: Vec<Option<(usize, bool)>>,
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
            StoreCell(stream) => next.cells[thread] = Some(stream),
            ClearCell => next.cells[thread] = None,
            IfNotAnnounced(step) if !self.is_announced => next.at[thread] = step,
            Keep(stream) => next.kept[thread] = Some((stream, self.captured[stream])),
            EndOrdering => next.ordering.retain(|&other| other != thread),
            Queue => {
                for &memory in &self.inside[thread] {
                    assert_eq!(self.locked[memory], None, "both ways at once");
                }
                if let Some((stream, kept)) = self.kept[thread] {
                    assert_eq!(self.captured[stream], kept, "a capture slips between");
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
            Announce => next.is_announced = true,
            LockCaptures if self.capturing.is_some() || !self.ordering.is_empty() => return None,
            LockCaptures => next.capturing = Some(thread),
            RetryWhileQueueing(stream, step) if self.cells.contains(&Some(stream)) => {
                next.capturing = None;
                next.at[thread] = step;
            }
            BeginCapture(stream) => next.captured[stream] = true,
            CaptureHasBegun => next.capturing = None,
            Go(step) => next.at[thread] = step.min(programs[thread].len()),
            WaitForInside(_) | IfNotAnnounced(_) | RetryWhileQueueing(..) => {}
        }
        Some(next)
    }
}

/// Runs programs in every order of their steps, and returns the number of states.
fn explore(programs: &[Vec<Step>]) -> usize {
    let start = State {
        at: vec![0; programs.len()],
        inside: vec![Vec::new(); programs.len()],
        cells: vec![None; programs.len()],
        kept: vec![None; programs.len()],
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
    let kinds =
        [Kind::AtHome, Kind::Elsewhere, Kind::Copy, Kind::Free, Kind::Capture(0), Kind::Capture(1)];
    let uses: [&[usize]; 5] = [&[0, 1], &[1, 0], &[1, 2, 0], &[2, 2, 1], &[0]];
    let all: Vec<Vec<Step>> =
        kinds.iter().flat_map(|&kind| uses.map(|uses| steps(kind, uses))).collect();
    let mut states = 0;
    for first in &all {
        for second in &all {
            states += explore(&[first.clone(), second.clone()]);
        }
    }
    // Three threads, for which cyclic waits are possible.
    for kinds in [
        [Kind::AtHome, Kind::Elsewhere, Kind::Copy],
        [Kind::AtHome, Kind::AtHome, Kind::Elsewhere],
        [Kind::Copy, Kind::Elsewhere, Kind::Capture(1)],
        [Kind::AtHome, Kind::Free, Kind::Capture(0)],
        [Kind::AtHome, Kind::Capture(1), Kind::Capture(0)],
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
    // Waiting for the fast path while holding a lock that the thread inside does not need cannot
    // deadlock.
    let inside = vec![Enter(0, 3), Queue, LeaveAll];
    assert!(explored(&[vec![Lock(1), Share(0), WaitForInside(0), Unlock], inside.clone()]));
    // Without the wait.
    assert!(!explored(&[vec![Share(0), Lock(0), Order(0), Queue, Unlock], inside]));
    assert!(!explored(&[vec![Order(0), Queue], vec![Lock(0), Unlock]]), "without the lock");
    // A capture begins between the check and the queueing. In turn: the work is not announced in a
    // cell; its thread does not look for announcements; its thread sees an announcement, but stores
    // the stream without the lock.
    let capture = steps(Kind::Capture(0), &[]);
    let hidden = vec![IfNotAnnounced(1), Keep(0), Queue];
    assert!(!explored(&[hidden, capture.clone()]));
    let careless = vec![StoreCell(0), Keep(0), Queue, ClearCell];
    assert!(!explored(&[careless, capture.clone()]));
    let unlocked = [StoreCell(0), IfNotAnnounced(4), ClearCell, StoreCell(0)];
    let queue = [Keep(0), Queue, ClearCell];
    assert!(!explored(&[[&unlocked[..], &queue].concat(), capture.clone()]));
    let locked = [ClearCell, BeginOrdering, StoreCell(0), EndOrdering];
    let whole = [&[StoreCell(0), IfNotAnnounced(6)], &locked[..], &queue].concat();
    assert!(explored(&[whole, capture]));
}

#[test]
fn locks_are_taken_once_each_by_address() {
    let order = lock_order([7, 3, 7, 5, 3].into_iter(), |address| *address);
    assert_eq!(order[..], [3, 5, 7]);
}
