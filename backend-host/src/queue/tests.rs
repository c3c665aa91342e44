//! Tests of full queues: which threads wait, and which must not.

use super::{LIMIT, Queue, Room, Task};
use crate::config::HostConfig;
use crate::handle::HostHandle;
use hal::{Device, StreamOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Longer than any test takes, so that a test which would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task of this backend that runs until its gate opens.
fn gate() -> (Sender<()>, Task) {
    let (open, opened) = channel::<()>();
    (open, Box::new(move || opened.recv_timeout(PATIENCE).map_err(|_| unreachable!())))
}

fn nothing() -> Task {
    Box::new(|| Ok(()))
}

/// Adds tasks like the array layer, on a separate thread. Returns the number of tasks at the end.
fn produce(queue: &Arc<Queue>, room: &Arc<Room>, count: u64) -> Receiver<u64> {
    let (done, finished) = channel();
    let (queue, room) = (queue.clone(), room.clone());
    thread::spawn(move || {
        for _ in 0..count {
            queue.wait_for_room(&room);
            queue.submit(nothing()).expect("submit");
        }
        let _ = done.send(queue.submitted());
    });
    finished
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn producers_wait_while_a_queue_is_full() {
    let room = Arc::new(Room::default());
    let queue = Queue::new(Arc::default(), Arc::default());
    let (open, closed) = gate();
    queue.submit(closed).expect("submit");
    let producers = [produce(&queue, &room, 3 * LIMIT), produce(&queue, &room, 3 * LIMIT)];
    until(|| room.waiting() == 2);
    // Both producers checked before either added its task.
    assert!((LIMIT..=LIMIT + 1).contains(&queue.submitted()), "{queue:?}");
    assert!(hal::backlog::exists());
    open.send(()).expect("the gate is there");
    for producer in producers {
        producer.recv_timeout(PATIENCE).expect("a producer waits for ever");
    }
    queue.mark().wait().expect("wait");
    assert_eq!(queue.completed(), 6 * LIMIT + 1);
    queue.retire();
}

#[test]
fn a_queue_that_waits_for_another_that_is_full_drains() {
    let room = Arc::new(Room::default());
    let (first, second) =
        (Queue::new(Arc::default(), Arc::default()), Queue::new(Arc::default(), Arc::default()));
    let (queues, room_there) = ([first.clone(), second.clone()], room.clone());
    let (done, finished) = channel();
    thread::spawn(move || {
        // The queues repeatedly wait for each other, as with events.
        for round in 0..3 * LIMIT as usize {
            let (here, there) = (&queues[round % 2], &queues[(round + 1) % 2]);
            here.wait_for_room(&room_there);
            let mark = there.mark();
            here.submit(Box::new(move || mark.wait())).expect("submit");
        }
        let _ = done.send(());
    });
    finished.recv_timeout(PATIENCE).expect("two queues wait for each other");
    for queue in [first, second] {
        queue.mark().wait().expect("wait");
        queue.retire();
    }
}

#[test]
fn nobody_waits_for_room_while_a_function_of_the_program_may_wait_for_him() {
    let device = HostHandle::new(HostConfig { memory: 1 << 24, cache: 1 << 20, threads: 1 });
    let options = StreamOptions::default().non_blocking(true);
    let (full, other) = (
        device.create_stream(options).expect("the host does it"),
        device.create_stream(options).expect("the host does it"),
    );
    let made = Arc::new(AtomicUsize::new(0));
    let total = 2 * LIMIT as usize;
    // The queue waits for a function that waits for the producer.
    let (told, tell) = (made.clone(), full.clone());
    other
        .host_function(Box::new(move || until(|| told.load(Ordering::SeqCst) == total)))
        .expect("a function");
    let event = device.create_event(hal::EventOptions::default()).expect("the host does it");
    other.record(event.as_ref()).expect("the host does it");
    full.wait_event(event.as_ref()).expect("the host does it");
    let (done, finished) = channel();
    thread::spawn(move || {
        for _ in 0..total {
            tell.wait_for_room();
            tell.record(event.as_ref()).expect("the host does it");
            made.fetch_add(1, Ordering::SeqCst);
        }
        let _ = done.send(());
    });
    finished.recv_timeout(PATIENCE).expect("the producer waits for itself");
    full.synchronize().expect("the host does it");
}

#[test]
fn a_function_that_comes_later_lets_go_of_who_waits_for_room() {
    let room = Arc::new(Room::default());
    let queue = Queue::new(Arc::default(), Arc::default());
    let (open, closed) = gate();
    queue.submit(closed).expect("submit");
    let producer = produce(&queue, &room, 2 * LIMIT);
    until(|| room.waiting() == 1);
    assert!(room.begin_function(), "somebody has to be told");
    queue.look_again();
    producer.recv_timeout(PATIENCE).expect("the producer waits beside a function");
    room.end_function();
    open.send(()).expect("the gate is there");
    queue.mark().wait().expect("wait");
    queue.retire();
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

#[test]
fn a_function_whose_panic_panics_again_ends_no_thread() {
    let queue = Queue::new(Arc::default(), Arc::default());
    queue.submit(Box::new(|| std::panic::panic_any(Bomb))).expect("submit");
    queue.submit(nothing()).expect("submit");
    let (mark, (done, finished)) = (queue.mark(), channel());
    thread::spawn(move || done.send(mark.wait()));
    finished.recv_timeout(PATIENCE).expect("the queue goes on").expect("wait");
    assert!(queue.take_failure().is_err(), "the panic is reported");
    queue.retire();
}
