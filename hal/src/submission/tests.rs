use super::*;
use crate::stream::unique_id;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time, because a thread that queues on more streams than it has places for appears on every
/// stream.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a capture of the stream would have to wait.
fn is_queueing(stream: u64) -> bool {
    cells().any(|cell| cell.holds(|it| it == stream))
}

#[test]
fn a_thread_has_one_cell_and_leaves_it_to_the_next() {
    let _alone = alone();
    let (first, second) = (unique_id(), unique_id());
    let outer = SubmissionGuard::on(first).expect("a cell");
    assert!(is_queueing(first));
    drop(SubmissionGuard::on(second).expect("a cell"));
    assert!(is_queueing(first) && !is_queueing(second));
    drop(outer);
    assert!(!is_queueing(first));
    // Sequentially: after a join, the thread's destructors have run.
    let cell = || TAKEN.with(|taken| ptr::from_ref(taken.0).addr());
    let used: std::collections::HashSet<_> =
        (0..64).map(|_| std::thread::spawn(cell).join().expect("a cell")).collect();
    assert!(used.len() < 64, "cells are used again");
}

#[test]
fn work_on_one_stream_keeps_no_capture_from_another() {
    let _alone = alone();
    let (first, second) = (unique_id(), unique_id());
    let _queueing = SubmissionGuard::on(first).expect("a cell");
    assert!(keeps_captures_from(first) && beside_captures(first).is_none());
    let beside = beside_captures(second);
    assert!(beside.is_some() && is_queueing(second) && is_queueing(first));
    drop(beside);
    assert!(!is_queueing(second) && is_queueing(first));
}

#[test]
fn a_thread_that_ends_is_seen_too() {
    let _alone = alone();
    struct Late(std::sync::mpsc::Sender<bool>, u64);
    impl Drop for Late {
        fn drop(&mut self) {
            let has_cell = TAKEN.try_with(|_| ()).is_ok();
            let queueing = SubmissionGuard::on(self.1).expect("a cell");
            let seen = is_queueing(self.1);
            drop(queueing);
            let _ = self.0.send(!has_cell && seen && !is_queueing(self.1));
        }
    }
    thread_local! {
        static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
    }
    let (told, tells) = channel();
    let ends = std::thread::spawn(move || {
        // Created before the cell, so dropped after it.
        LATE.with_borrow_mut(|late| *late = Some(Late(told, unique_id())));
        drop(SubmissionGuard::on(unique_id()).expect("a cell"));
    });
    ends.join().expect("a thread");
    assert!(tells.recv().expect("a destructor"));
}

#[test]
fn guards_end_in_any_order() {
    let _alone = alone();
    // For every order of beginning and ending, the thread is queueing on exactly the streams that have a
    // guard. If there are more guards than places, it may appear on all streams.
    fn end_all(guards: &mut Vec<(u64, SubmissionGuard)>, streams: &[u64]) {
        let any = guards.iter().any(|guard| usize::from(guard.1.place) == PLACES);
        for &stream in streams {
            let has = guards.iter().any(|guard| guard.0 == stream);
            assert_eq!(is_queueing(stream), has || any);
        }
        for index in 0..guards.len() {
            let (stream, guard) = guards.remove(index);
            drop(guard);
            end_all(guards, streams);
            guards.insert(index, (stream, SubmissionGuard::on(stream).expect("a cell")));
        }
    }
    let streams: Vec<u64> = (0..3).map(|_| unique_id()).collect();
    let mut guards = Vec::new();
    for index in 0..PLACES + 1 {
        let stream = streams[index % streams.len()];
        guards.push((stream, SubmissionGuard::on(stream).expect("a cell")));
        end_all(&mut guards, &streams);
    }
    drop(guards);
    assert!(!is_inside() && streams.iter().all(|&stream| !is_queueing(stream)));
}

#[test]
fn a_capture_begins_when_nobody_queues_on_its_stream() {
    let _alone = alone();
    let (stream, other) = (unique_id(), unique_id());
    let beside = SubmissionGuard::on(other).expect("a cell");
    let queueing = SubmissionGuard::on(stream).expect("a cell");
    std::thread::scope(|scope| {
        let (announced, seen) = channel();
        let capture = scope.spawn(move || {
            let _announcement = Announcement::new();
            announced.send(()).expect("the test waits");
            let lock = begin_alone(|it| it == stream);
            let alone = !is_queueing(stream);
            drop(lock);
            alone
        });
        seen.recv().expect("an announcement");
        assert!(!capture.is_finished());
        drop(queueing);
        drop(beside);
        assert!(capture.join().expect("a capture"), "the work was queued before");
    });
    // A thread does not wait for itself.
    let _queueing = SubmissionGuard::on(stream).expect("a cell");
    drop(begin_alone(|it| it == stream));
}
