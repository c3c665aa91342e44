//! How streams begin, join and end captures, as a model: a few threads with a call each on the same streams, in
//! every order of their steps. The steps are those of `DriverStream::{begin, join, end}`, `record` and `wait_event`,
//! and of an operation as `AccessGuard` and `SubmissionGuard` have them; the driver is a few rules.

use std::collections::{BTreeMap, BTreeSet, HashSet};

const STREAMS: usize = 2;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Stores the stream that the thread is queueing on.
    StoreCell(usize),
    ClearCell,
    /// Goes to the step given if no capture is announced.
    IfNotAnnounced(usize),
    /// The lock under which no capture changes, with others.
    LockShared,
    UnlockShared,
    /// The same lock, alone.
    LockAlone,
    Unlock,
    /// Gives up the lock, and goes to the step given, if another thread is queueing on the stream.
    RetryWhileQueueing(usize, usize),
    /// Gives up the lock, and goes to the step given, if another thread is queueing on a stream of its capture.
    RetryWhileAdding(usize, usize),
    /// Gives up the lock, waits for the stream, and goes to the step given, if it has work and does not capture.
    RetryWhileBusy(usize, usize),
    /// Notes the capture that the stream is part of; without an announcement none is looked for.
    Look(usize),
    /// The capture that was looked up keeps what the work uses.
    Keep,
    /// Queues work.
    Queue(usize),
    Announce,
    /// The thread's own announcement goes, if it has not become that of a capture.
    Withdraw,
    /// Begins a capture, and notes it under its number; goes to the step given if the stream captures already.
    Begin(usize, usize),
    /// Ends the capture of the stream, with what is noted under the number that was looked up.
    End(usize),
    /// Goes to the step given if no capture was found.
    IfNone(usize),
    LockEvent,
    UnlockEvent,
    /// The driver records the event; what was looked up is noted of it.
    Record(usize),
    /// Goes to the step given if the event is noted as captured.
    IfMarked(usize),
    /// The driver makes the stream wait for the event.
    Wait(usize),
    Go(usize),
}
use Step::*;

/// Past the end of every program.
const END: usize = usize::MAX;

/// What a thread calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Work(usize),
    Begin(usize),
    End(usize),
    Record(usize),
    Wait(usize),
}

/// Starts to queue on a stream.
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
    /// The stream that it is queueing on.
    cell: Option<usize>,
    /// What it has looked up.
    found: Option<u8>,
    has_announced: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    shared: BTreeSet<usize>,
    alone: Option<usize>,
    event_lock: Option<usize>,
    /// What is noted: the streams whose captures are announced, and of each capture the threads whose work's
    /// memory it keeps.
    begun: BTreeSet<usize>,
    open: BTreeMap<u8, BTreeSet<usize>>,
    is_marked: bool,
    /// The driver: the capture of each stream, where it began, the threads whose work is in it, and whether the
    /// stream has other work; the capture that the event was recorded in.
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

    /// A stream becomes part of a capture.
    fn enter_capture(&mut self, thread: usize, stream: usize, capture: u8) {
        assert_eq!(
            self.alone,
            Some(thread),
            "others order streams, or queue, beside a capture that begins"
        );
        assert!(!self.is_busy[stream], "work is still running as its stream captures");
        self.captures[stream] = Some(capture);
    }

    /// The state after a thread's next step; `None` if the thread has to wait.
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
            // A driver ends a capture where it began only.
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
            // An event of a capture that has ended is an error, as are two captures that would be one.
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
pub(super) fn explore(programs: &[Vec<Step>]) -> usize {
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

/// Calls of one thread, one after the other.
pub(super) fn program(calls: &[Call]) -> Vec<Step> {
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
