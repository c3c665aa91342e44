//! What is dropped in a function that a stream runs, and whose end may wait for that stream: a thread of its
//! device drops it.

use crate::device::DeviceId;
use crate::interruption::is_in_function;
use crate::poison::caught;
use crate::process::{ProcessCondition, ProcessMutex};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is left of one device.
#[derive(Default)]
struct Left {
    values: Vec<Box<dyn Send>>,
    /// How many there have been, and how many of them have been dropped.
    added: u64,
    dropped: u64,
    has_thread: bool,
}

static LEFT: ProcessMutex<HashMap<DeviceId, Left>> = ProcessMutex::new(HashMap::new);
static CHANGED: ProcessCondition = ProcessCondition::new();
/// False in most programs.
static EXISTS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static DROPS: Cell<bool> = const { Cell::new(false) };
}

/// Leaves a value of a device to a thread that may wait, if this one may not: in
/// [`call_in_stream`](crate::interruption::call_in_stream). Elsewhere it returns false, and makes no value.
#[inline]
pub fn is_left<T: Send + 'static>(device: DeviceId, value: impl FnOnce() -> T) -> bool {
    let is_left = is_in_function();
    if is_left {
        leave(device, value());
    }
    is_left
}

/// Leaves a value of a device to a thread that may wait.
#[cold]
pub(crate) fn leave(device: DeviceId, value: impl Send + 'static) {
    let value = Box::new(value);
    EXISTS.store(true, Ordering::Release);
    let mut all = LEFT.lock();
    let left = all.entry(device).or_default();
    left.values.push(value);
    left.added += 1;
    if !left.has_thread {
        let started =
            thread::Builder::new().name("pygpu drop".into()).spawn(move || drop_all(device));
        match started {
            Ok(_) => left.has_thread = true,
            Err(error) => log::warn!("no thread frees what a function dropped: {error}"),
        }
    }
}

fn drop_all(device: DeviceId) {
    DROPS.set(true);
    loop {
        let values = {
            let mut all = LEFT.lock();
            let left = all.entry(device).or_default();
            left.has_thread = !left.values.is_empty();
            std::mem::take(&mut left.values)
        };
        if values.is_empty() {
            return;
        }
        for value in values {
            caught(|| drop(value));
            LEFT.lock().entry(device).or_default().dropped += 1;
        }
        CHANGED.notify();
    }
}

/// Waits until what functions of streams have dropped until now has been freed: for backends, when they wait for
/// the device's work, after that. Returns true if there may have been something: its end may be queued, after work of
/// any stream.
pub fn drain_dropped(device: DeviceId) -> bool {
    if !EXISTS.load(Ordering::Acquire) || DROPS.get() || is_in_function() {
        return false;
    }
    let most = LEFT.lock().get(&device).filter(|left| left.has_thread).map_or(0, |left| left.added);
    CHANGED.wait_while(|| LEFT.lock().get(&device).is_some_and(|left| left.dropped < most));
    true
}
