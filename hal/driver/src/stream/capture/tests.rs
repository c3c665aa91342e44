//! A model of how streams begin, join and end captures: a few threads, each with a call on the same streams, in
//! every order of their steps. The steps follow `DriverStream::{begin, join, end}`, `record` and `wait_event`, and
//! operations with `AccessGuard` and `SubmissionGuard`. The driver is modelled by a few rules. The tests check that the
//! model finds missing steps.

use std::collections::{BTreeMap, BTreeSet, HashSet};

const STREAMS: usize = 2;

/// The next step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Stores the stream that the thread is queueing on.
    StoreCell(usize),
    ClearCell,
    /// Jumps to the given step if no capture is announced.
    IfNotAnnounced(usize),
    /// Takes the shared lock under which no capture changes.
    LockShared,
    UnlockShared,
    /// Takes the same lock exclusively.
    LockAlone,
    Unlock,
    /// Releases the lock and jumps to the given step if another thread is queueing on the stream.
    RetryWhileQueueing(usize, usize),
    /// Releases the lock and jumps to the given step if another thread is queueing on a stream of its capture.
    RetryWhileAdding(usize, usize),
    /// Releases the lock, waits for the stream and jumps to the given step if the stream has work and does not
    /// capture.
    RetryWhileBusy(usize, usize),
    /// Looks up the capture that the stream is part of; skipped if no capture is announced.
    Look(usize),
    /// Makes the capture that was found keep the memory of the work.
    Keep,
    /// Queues work.
    Queue(usize),
    Announce,
    /// Withdraws the thread's announcement, unless it became the announcement of a capture.
    Withdraw,
    /// Begins a capture and records its number; jumps to the given step if the stream already captures.
    Begin(usize, usize),
    /// Ends the capture of the stream, with the records under the number that was found.
    End(usize),
    /// Jumps to the given step if no capture was found.
    IfNone(usize),
    LockEvent,
    UnlockEvent,
    /// Records the event in the driver, and stores the capture that was found with it.
    Record(usize),
    /// Jumps to the given step if the event is marked as captured.
    IfMarked(usize),
    /// Makes the stream wait for the event in the driver.
    Wait(usize),
    Go(usize),
}
use Step::*;

/// A position past the end of every program.
const END: usize = usize::MAX;

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
enum Call {
    Work(usize),
    Begin(usize),
    End(usize),
    Record(usize),
    Wait(usize),
}

/// Returns the steps that begin to queue on a stream.
fn enter(stream: usize) -> Vec<Step> {
    vec![
        StoreCell(stream),
        IfNotAnnounced(6),
        ClearCell,
        LockShared,
        StoreCell(stream),
        UnlockShared,
    ]
}

fn steps(call: Call) -> Vec<Step> {
    match call {
        Call::Work(stream) => {
            [enter(stream), vec![Look(stream), Keep, Queue(stream), ClearCell]].concat()
        }
        Call::Begin(stream) => vec![
            Announce,
            LockAlone,
            RetryWhileQueueing(stream, 1),
            RetryWhileBusy(stream, 1),
            Begin(stream, 5),
            Unlock,
            Withdraw,
        ],
        Call::End(stream) => vec![
            Look(stream),
            IfNone(END),
            LockAlone,
            RetryWhileAdding(stream, 2),
            Look(stream),
            IfNone(7),
            End(stream),
            Unlock,
        ],
        Call::Record(stream) => {
            let record = [Look(stream), LockEvent, Record(stream), UnlockEvent, ClearCell];
            [enter(stream), record.to_vec()].concat()
        }
        Call::Wait(stream) => {
            let mark = [LockEvent, IfMarked(12), Wait(stream), UnlockEvent, ClearCell, Go(END)];
            let join = [UnlockEvent, ClearCell, Announce, LockAlone];
            let drain = [RetryWhileQueueing(stream, 15), RetryWhileBusy(stream, 15)];
            let wait = [LockEvent, Wait(stream), UnlockEvent, Unlock, Withdraw];
            [&enter(stream)[..], &mark, &join, &drain, &wait].concat()
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    at: usize,
    /// The stream that the thread is queueing on.
    cell: Option<usize>,
    /// The capture that the thread has found.
    found: Option<u8>,
    has_announced: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    shared: BTreeSet<usize>,
    alone: Option<usize>,
    event_lock: Option<usize>,
    /// The library's records: the streams whose captures are announced and, for each capture, the threads whose
    /// memory it keeps.
    begun: BTreeSet<usize>,
    open: BTreeMap<u8, BTreeSet<usize>>,
    is_marked: bool,
    /// The driver's state: the capture of each stream, the stream where each capture began, the threads whose work
    /// it contains, and whether a stream has other work. Also the capture that the event was recorded in.
    captures: [Option<u8>; STREAMS],
    origins: BTreeMap<u8, usize>,
    contents: BTreeMap<u8, BTreeSet<usize>>,
    is_busy: [bool; STREAMS],
    event: Option<u8>,
    numbers: u8,
}

impl State {
    fn announced(&self) -> usize {
        self.begun.len() + self.threads.iter().filter(|it| it.has_announced).count()
    }

    /// Makes a stream part of a capture.
    fn enter_capture(&mut self, thread: usize, stream: usize, capture: u8) {
        assert_eq!(
            self.alone,
            Some(thread),
            "others order streams, or queue, beside a capture that begins"
        );
        assert!(!self.is_busy[stream], "work is still running as its stream captures");
        self.captures[stream] = Some(capture);
    }

    /// Returns the state after a thread's next step; `None` if the thread has to wait.
    fn after(&self, programs: &[Vec<Step>], thread: usize) -> Option<State> {
        let mut next = self.clone();
        let own = self.threads[thread].clone();
        let step = programs[thread][own.at];
        let mut go = own.at + 1;
        let me = &mut next.threads[thread];
        match step {
            StoreCell(stream) => me.cell = Some(stream),
            ClearCell => me.cell = None,
            IfNotAnnounced(step) if self.announced() == 0 => go = step,
            LockShared | LockAlone if self.alone.is_some() => return None,
            LockAlone if !self.shared.is_empty() => return None,
            LockShared => drop(next.shared.insert(thread)),
            LockAlone => next.alone = Some(thread),
            UnlockShared => drop(next.shared.remove(&thread)),
            Unlock => next.alone = None,
            RetryWhileQueueing(stream, step) => {
                let mut others = self.threads.iter().enumerate().filter(|(it, _)| *it != thread);
                if others.any(|(_, it)| it.cell == Some(stream)) {
                    (next.alone, go) = (None, step);
                }
            }
            RetryWhileAdding(stream, step) => {
                let mut others = self.threads.iter().enumerate().filter(|(it, _)| *it != thread);
                let ends = |it: usize| it == stream || self.is_part(it, self.captures[stream]);
                if others.any(|(_, it)| it.cell.is_some_and(ends)) {
                    (next.alone, go) = (None, step);
                }
            }
            RetryWhileBusy(stream, step) if self.captures[stream].is_none() => {
                if std::mem::take(&mut next.is_busy[stream]) {
                    (next.alone, go) = (None, step);
                }
            }
            Look(stream) => me.found = self.captures[stream].filter(|_| self.announced() > 0),
            Keep => {
                if let Some(kept) = own.found.and_then(|found| next.open.get_mut(&found)) {
                    kept.insert(thread);
                }
            }
            Queue(stream) => match self.captures[stream] {
                Some(capture) => drop(next.contents.entry(capture).or_default().insert(thread)),
                None => next.is_busy[stream] = true,
            },
            Announce => me.has_announced = true,
            Withdraw => me.has_announced = false,
            Begin(stream, step) if self.captures[stream].is_some() => {
                go = step;
                assert!(
                    self.begun.contains(&stream) || self.origins.values().all(|it| *it != stream)
                );
            }
            Begin(stream, _) => {
                me.has_announced = false;
                next.numbers += 1;
                let capture = next.numbers;
                next.enter_capture(thread, stream, capture);
                next.origins.insert(capture, stream);
                next.begun.insert(stream);
                next.open.insert(capture, BTreeSet::new());
            }
            // A driver ends a capture only on the stream where it began.
            End(stream) => {
                let capture = self.captures[stream];
                if let Some(capture) = capture.filter(|it| self.origins[it] == stream) {
                    let others = (0..programs.len()).filter(|it| *it != thread);
                    for step in others.filter_map(|it| programs[it].get(self.threads[it].at)) {
                        let (Queue(called) | Record(called) | Wait(called)) = *step else {
                            continue;
                        };
                        let elsewhere = !self.is_part(called, Some(capture));
                        assert!(elsewhere, "a capture ends while the driver is adding to it");
                    }
                    next.begun.remove(&stream);
                    let kept =
                        own.found.and_then(|found| next.open.remove(&found)).unwrap_or_default();
                    let used = next.contents.remove(&capture).unwrap_or_default();
                    assert!(used.is_subset(&kept), "a graph keeps less than it uses");
                    for it in &mut next.captures {
                        *it = it.filter(|it| *it != capture);
                    }
                    next.origins.remove(&capture);
                }
            }
            IfNone(step) if own.found.is_none() => go = step,
            LockEvent if self.event_lock.is_some() => return None,
            LockEvent => next.event_lock = Some(thread),
            UnlockEvent => next.event_lock = None,
            Record(stream) => {
                next.event = self.captures[stream];
                next.is_marked = own.found.is_some();
            }
            IfMarked(step) if self.is_marked => go = step,
            // Waiting for an event of an ended capture is an error, as is joining two captures.
            Wait(stream) => {
                let live = self.event.filter(|it| self.origins.contains_key(it));
                if let (Some(capture), None) = (live, self.captures[stream]) {
                    next.enter_capture(thread, stream, capture);
                }
            }
            Go(step) => go = step,
            RetryWhileBusy(..) | IfNotAnnounced(_) | IfNone(_) | IfMarked(_) => {}
        }
        next.threads[thread].at = go.min(programs[thread].len());
        next.check();
        Some(next)
    }

    fn is_part(&self, stream: usize, capture: Option<u8>) -> bool {
        capture.is_some() && self.captures[stream] == capture
    }

    fn check(&self) {
        for (capture, stream) in &self.origins {
            assert!(self.begun.contains(stream), "nobody is told of capture {capture}");
        }
    }
}

/// Runs programs in every order of their steps, and returns the number of states.
fn explore(programs: &[Vec<Step>]) -> usize {
    let threads = vec![Thread::default(); programs.len()];
    let start = State { threads, ..State::default() };
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let left = |it: &usize| state.threads[*it].at < programs[*it].len();
        let waiting: Vec<_> = (0..programs.len()).filter(left).collect();
        let nexts: Vec<_> = waiting.iter().filter_map(|&it| state.after(programs, it)).collect();
        assert!(
            waiting.is_empty() || !nexts.is_empty(),
            "nobody goes on in {state:?} of {programs:?}"
        );
        if waiting.is_empty() {
            assert_eq!(state.announced(), state.origins.len(), "an announcement is left over");
        }
        for next in nexts {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen.len()
}

/// Returns the steps of one thread's calls, one after the other.
fn program(calls: &[Call]) -> Vec<Step> {
    let mut all = Vec::new();
    for &call in calls {
        let (own, start) = (steps(call), all.len());
        let end = start + own.len();
        let place = |step: usize| step.saturating_add(start).min(end);
        all.extend(own.into_iter().map(|step| match step {
            IfNotAnnounced(to) => IfNotAnnounced(place(to)),
            RetryWhileQueueing(stream, to) => RetryWhileQueueing(stream, place(to)),
            RetryWhileAdding(stream, to) => RetryWhileAdding(stream, place(to)),
            RetryWhileBusy(stream, to) => RetryWhileBusy(stream, place(to)),
            Begin(stream, to) => Begin(stream, place(to)),
            IfNone(to) => IfNone(place(to)),
            IfMarked(to) => IfMarked(place(to)),
            Go(to) => Go(place(to)),
            step => step,
        }));
    }
    all
}

/// Returns every sequence of this many calls. Each is on the first stream, or also on the second one if it waits.
fn sequences(length: usize) -> Vec<Vec<Call>> {
    let calls = [
        Call::Work(0),
        Call::Begin(0),
        Call::End(0),
        Call::Record(0),
        Call::Wait(1),
        Call::Work(1),
    ];
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let longer = |sequence: &Vec<Call>| calls.map(|call| [&sequence[..], &[call]].concat());
        all = all.iter().flat_map(longer).collect();
    }
    all
}

#[test]
#[cfg_attr(miri, ignore = "a model, without unsafe code, that runs too long there")]
fn threads_share_streams_that_capture() {
    let mut states = 0;
    // The long search has three calls for each of two threads.
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let all = sequences(if is_long { 3 } else { 2 });
    for (number, first) in all.iter().enumerate() {
        // Swapping the two programs gives the same states.
        for second in &all[number..] {
            states += explore(&[program(first), program(second)]);
        }
    }
    let begun = [Call::Begin(0), Call::Record(0), Call::End(0)];
    for second in [Call::Begin(0), Call::End(0), Call::Wait(1)] {
        for third in [Call::Work(0), Call::Work(1), Call::End(0)] {
            states += explore(&[program(&begun), program(&[second]), program(&[third])]);
        }
    }
    assert!(states > 100_000, "{states}");
}

#[test]
fn the_model_finds_what_threads_may_slip_between() {
    use Call::{Begin as B, End as E, Record as R, Wait as W, Work};
    let explored =
        |programs: [Vec<Step>; 3]| std::panic::catch_unwind(move || explore(&programs)).is_ok();
    let right = |calls: &[Call]| program(calls);
    // Replaces a step by a jump to the next one.
    let without = |call: Call, left_out: fn(Step) -> bool| {
        let all = program(&[call]);
        let next = |(at, step)| if left_out(step) { Go(at + 1) } else { step };
        all.into_iter().enumerate().map(next).collect::<Vec<_>>()
    };
    assert!(explored([right(&[B(0), E(0)]), right(&[B(0), E(0)]), right(&[Work(0)])]));
    // The beginning, or a join, does not check whether work was queued since its wait.
    let hasty = without(B(0), |it| matches!(it, RetryWhileBusy(..)));
    assert!(!explored([hasty, right(&[Work(0)]), vec![]]));
    let marked = right(&[B(0), R(0)]);
    assert!(explored([marked.clone(), right(&[W(1)]), right(&[Work(1)])]));
    let hasty = without(W(1), |it| matches!(it, RetryWhileBusy(..)));
    assert!(!explored([marked.clone(), hasty, right(&[Work(1)])]));
    // A stream joins without checking which threads queue on it.
    let blind = without(W(1), |it| matches!(it, RetryWhileQueueing(..)));
    let work_then_end = right(&[B(0), R(0), E(0)]);
    assert!(!explored([work_then_end, blind, right(&[Work(1)])]));
    // A stream joins without the event's lock: the event is recorded by a thread that does not announce its stream,
    // or while the other thread waits for it.
    let hidden = without(R(0), |it| matches!(it, StoreCell(_)));
    assert!(!explored([right(&[B(0)]), hidden, right(&[W(1)])]));
    let unlocked = without(W(1), |it| matches!(it, LockEvent | UnlockEvent));
    assert!(!explored([marked, unlocked, vec![]]));
    // The end only checks for threads that are queueing on its own stream.
    let alone = |end: Call| {
        let own = |step| match step {
            RetryWhileAdding(stream, to) => RetryWhileQueueing(stream, to),
            step => step,
        };
        program(&[end]).into_iter().map(own).collect::<Vec<_>>()
    };
    let joined = || right(&[B(0), R(0), W(1)]);
    assert!(explored([joined(), right(&[E(0)]), right(&[Work(1)])]));
    assert!(!explored([joined(), alone(E(0)), right(&[Work(1)])]));
    assert!(!explored([joined(), alone(E(0)), right(&[R(1)])]));
    // The end uses the number that it found before it took the lock.
    let early: Vec<_> = {
        let mut all = program(&[E(0)]);
        (all[4], all[5]) = (Go(5), Go(6));
        all
    };
    assert!(!explored([right(&[B(0), E(0), B(0), Work(0)]), early, right(&[E(0)])]));
}
