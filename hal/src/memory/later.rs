//! Values that a host function drops, although their destruction may have to wait for the function's own stream. A
//! separate thread for each device drops them instead.

use crate::interruption::is_in_function;
use crate::poison::caught;
use crate::process::{ProcessCondition, ProcessMutex};
use crate::properties::DeviceId;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The values that wait to be dropped for one device.
#[derive(Default)]
struct Left {
    values: Vec<Box<dyn Send>>,
    /// The number of values that were ever added; `dropped` counts those already dropped.
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

/// If the calling thread is inside [`call_in_stream`](crate::interruption::call_in_stream), passes a value to the
/// thread that drops values of the device. Elsewhere returns false, without calling `value`.
#[inline]
pub fn is_left<T: Send + 'static>(device: DeviceId, value: impl FnOnce() -> T) -> bool {
    let is_left = is_in_function();
    if is_left {
        leave(device, value());
    }
    is_left
}

/// Passes a value to the thread that drops values of the device.
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

/// Waits until all values dropped so far in host functions have been freed. Backends call it after they have waited
/// for the device's work. Returns true if there may have been any: freeing them may have queued more work, on any
/// stream.
pub fn drain_dropped(device: DeviceId) -> bool {
    if !EXISTS.load(Ordering::Acquire) || DROPS.get() || is_in_function() {
        return false;
    }
    let most = LEFT.lock().get(&device).filter(|left| left.has_thread).map_or(0, |left| left.added);
    CHANGED.wait_while(|| LEFT.lock().get(&device).is_some_and(|left| left.dropped < most));
    true
}
