//! The protocol of locks as a model: a few threads, each with an operation on some memories, in every
//! order of their steps. The steps are those of `AccessGuard::acquire_for`, `SubmissionGuard`,
//! `Usage::retire` and of a capture's beginning, the order of the locks is that of [`lock_order`].

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
    /// Stores the stream that the thread is queueing on.
    StoreCell(usize),
    ClearCell,
    /// Goes to the step given if no capture is announced.
    IfNotAnnounced(usize),
    /// Looks up whether the stream captures: then the graph keeps what the work uses.
    Keep(usize),
    /// Queues the work.
    Queue,
    /// Gives up the locks.
    Unlock,
    Announce,
    /// Goes on when nobody is ordering.
    LockCaptures,
    /// Lets others go on, and goes to the step given, if a thread is queueing on the stream.
    RetryWhileQueueing(usize, usize),
    /// The stream captures from now on.
    BeginCapture(usize),
    /// Lets others go on.
    CaptureHasBegun,
    /// Goes to the step given, as a fast path that ends.
    Go(usize),
}
use Step::*;

/// How an operation uses memories.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// On stream 0, which all memories are at home on.
    AtHome,
    /// On stream 1.
    Elsewhere,
    /// A copy on stream 1, which the host waits for: it waits for its stream without locks
    /// first.
    Copy,
    /// Frees each memory, one after the other.
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
                    // Waits for its stream.
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
    is_announced: bool,
    /// The streams that capture.
    captured: [bool; 2],
    /// The stream that each thread is queueing on.
    cells: Vec<Option<usize>>,
    /// The stream that each thread looked up, and whether it captured.
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
    // Three at once, where circles of three could be.
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
    // Waits for the fast path with a lock that whoever is inside does not need: nobody is stuck.
    let inside = vec![Enter(0, 3), Queue, LeaveAll];
    assert!(explored(&[vec![Lock(1), Share(0), WaitForInside(0), Unlock], inside.clone()]));
    // Without waiting for it.
    assert!(!explored(&[vec![Share(0), Lock(0), Order(0), Queue, Unlock], inside]));
    assert!(!explored(&[vec![Order(0), Queue], vec![Lock(0), Unlock]]), "without the lock");
    // A capture begins between the look and the queueing: of work that no cell shows; of work whose
    // thread does not look for announcements; and of work whose thread sees one, and stores the
    // stream without the lock.
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
