//! The functions that a compiled unit calls.

use crate::abi::{self, Combine, Executor, Lanes};
use crate::block::{GRID_BARRIER, MOST_THREADS, text_of};
use crate::error::FailureKind;
use crate::worker::{enter, exit, fail, is_cooperative, running, wait};
use std::ffi::{CStr, c_char, c_void};

/// The table that each unit gets when it is loaded.
pub(crate) static EXECUTOR: Executor =
    Executor { barrier, rendezvous, grid_barrier, print, trap, is_cooperative: cooperative };

/// # Safety
/// As all functions here, it is called by a unit whose kernel runs on a fibre of the calling thread.
unsafe extern "C" fn barrier(
    thread: u32,
    id: u32,
    threads: u32,
    predicate: u32,
    file: *const c_char,
    line: u32,
) -> u32 {
    let worker = running();
    // SAFETY: the worker is this thread's.
    unsafe {
        enter(worker);
        if id as usize >= GRID_BARRIER {
            let message = format!("barrier {id} at {}; allowed are 0 to 15", text_of((file, line)));
            fail(worker, FailureKind::Unsupported, message);
        }
        let result = wait(worker, thread, |block| {
            Ok(block.arrive(thread, id as usize, threads, predicate != 0, (file, line)))
        });
        exit(worker);
        result as u32
    }
}

/// # Safety
/// As for [`barrier`].
unsafe extern "C" fn rendezvous(
    thread: u32,
    lanes: Lanes,
    record: *mut c_void,
    combine: Option<Combine>,
    file: *const c_char,
    line: u32,
) -> Lanes {
    let worker = running();
    // SAFETY: the worker is this thread's.
    unsafe {
        enter(worker);
        let result =
            wait(worker, thread, |block| block.join(thread, lanes, record, combine, (file, line)));
        exit(worker);
        result
    }
}

/// # Safety
/// As for [`barrier`].
unsafe extern "C" fn grid_barrier(thread: u32, file: *const c_char, line: u32) {
    let worker = running();
    // SAFETY: the worker is this thread's.
    unsafe {
        enter(worker);
        if !is_cooperative(worker) {
            let message = format!(
                "it waits for the whole grid at {}, which only a cooperative launch can",
                text_of((file, line))
            );
            fail(worker, FailureKind::Unsupported, message);
        }
        wait(worker, thread, |block| Ok(block.arrive_at_grid(thread, (file, line))));
        exit(worker);
    }
}

/// # Safety
/// As for [`barrier`]; the text has so many bytes.
unsafe extern "C" fn print(text: *const c_char, bytes: u64) {
    let mut rest = text.cast::<c_void>();
    let mut left = bytes as usize;
    while left > 0 {
        // SAFETY: the caller's promise.
        let written = unsafe { libc::write(libc::STDOUT_FILENO, rest, left) };
        if written <= 0 {
            // A closed output takes nothing.
            return;
        }
        rest = rest.wrapping_byte_add(written as usize);
        left -= written as usize;
    }
}

/// # Safety
/// As for [`barrier`].
unsafe extern "C" fn trap(
    thread: u32,
    kind: u32,
    message: *const c_char,
    file: *const c_char,
    line: u32,
) -> ! {
    let worker = running();
    // SAFETY: the worker is this thread's; the texts are the unit's.
    unsafe {
        enter(worker);
        let what = match message.is_null() {
            true => String::new(),
            false => CStr::from_ptr(message).to_string_lossy().into_owned(),
        };
        let (kind, what) = match kind {
            abi::ASSERT => (FailureKind::Assert, format!("assertion {what:?} failed")),
            abi::TRAP if what.is_empty() => (FailureKind::Trap, "__trap() was called".to_owned()),
            abi::TRAP => (FailureKind::Trap, what),
            _ => (FailureKind::Unsupported, what),
        };
        let thread = thread as usize % MOST_THREADS;
        let message = format!("{what} in thread {thread} at {}", text_of((file, line)));
        fail(worker, kind, message)
    }
}

extern "C" fn cooperative() -> u32 {
    // SAFETY: the worker is this thread's.
    u32::from(unsafe { is_cooperative(running()) })
}
