//! Runs the model in every order of the steps of threads that share capturing streams, and checks that it finds
//! missing steps.

mod model;

use model::Step::*;
use model::{Call, Step, explore, program};

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
