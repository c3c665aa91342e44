//! The functions that a compiled unit calls.

pub(crate) mod checked;

use crate::abi::{self, Combine, Executor, Lanes};
use crate::block::{GRID_BARRIER, MOST_THREADS, TOGETHER, text_of};
use crate::context::{StackPointer, Target};
use crate::error::FailureKind;
use crate::worker::turns::{step, wait};
use crate::worker::{enter, exit, fail, is_cooperative, is_running, running, space};
use std::ffi::{CStr, c_char, c_void};

/// The table that each unit gets when it is loaded.
pub(crate) static EXECUTOR: Executor = Executor {
    barrier: entries::barrier,
    rendezvous: entries::rendezvous,
    grid_barrier,
    print,
    trap,
    is_cooperative: cooperative,
    space_of,
};

const _: () = assert!(TOGETHER == 17);

/// Barriers and warp operations with a fast path for threads in lockstep.
#[cfg(target_arch = "x86_64")]
mod entries {
    use super::{Combine, Lanes, barrier_step, c_char, c_void, rendezvous_step};
    use crate::context::stepping;

    stepping! {
        /// # Safety
        /// The same as for [`barrier`](super::barrier).
        fn barrier(
            thread: u32, id: u32, threads: u32, predicate: u32, file: *const c_char, line: u32
        ) -> u32;
        step: barrier_step, otherwise: super::barrier,
        condition: [
            "test edx, edx", "jnz 2f", "test esi, esi", "jz 4f",
            // `TOGETHER`.
            "cmp esi, 17", "jne 2f", "4:"
        ],
        arguments: ["mov esi, ecx", "mov rdx, r8", "mov ecx, r9d", "mov r8d, ebp"]
    }

    stepping! {
        /// # Safety
        /// The same as for [`barrier`](super::barrier).
        fn rendezvous(
            thread: u32, lanes: Lanes, record: *mut c_void, combine: Option<Combine>,
            file: *const c_char, line: u32
        ) -> Lanes;
        step: rendezvous_step, otherwise: super::rendezvous,
        condition: ["test rsi, rsi", "jz 2f"],
        arguments: []
    }
}

#[cfg(not(target_arch = "x86_64"))]
use self as entries;

/// # Safety
/// The same as for [`step`], whose caller this is.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the short way is assembler"))]
unsafe extern "C" fn barrier_step(
    stack: StackPointer,
    predicate: u32,
    file: *const c_char,
    line: u32,
    id: u32,
) -> Target {
    // SAFETY: the caller's promise.
    unsafe { step(stack, |block| block.pass(predicate != 0, (file, line), id)) }
}

/// # Safety
/// The same as for [`barrier_step`].
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the short way is assembler"))]
unsafe extern "C" fn rendezvous_step(
    stack: StackPointer,
    lanes: Lanes,
    record: *mut c_void,
    combine: Option<Combine>,
    file: *const c_char,
    line: u32,
) -> Target {
    // SAFETY: the caller's promise.
    unsafe { step(stack, |block| block.meet_in_lockstep(lanes, record, combine, (file, line))) }
}

/// # Safety
/// Like all functions here, this is called by a unit whose kernel runs on a fibre of the calling thread.
unsafe extern "C" fn barrier(
    thread: u32,
    id: u32,
    threads: u32,
    predicate: u32,
    file: *const c_char,
    line: u32,
) -> u32 {
    let worker = running();
    // SAFETY: the worker belongs to this thread.
    unsafe {
        enter(worker);
        let is_together = id as usize == TOGETHER;
        if id as usize >= GRID_BARRIER && !is_together {
            let message = format!("barrier {id} at {}; allowed are 0 to 15", text_of((file, line)));
            fail(worker, FailureKind::Unsupported, message);
        }
        let (predicate, place) = (predicate != 0, (file, line));
        let is_common = (id == 0 || is_together) && threads == 0;
        let result = wait(
            worker,
            thread,
            |block| if is_common { block.pass(predicate, place, id) } else { None },
            |block| Ok(block.arrive(thread, id as usize, threads, predicate, place)),
        );
        exit(worker);
        result as u32
    }
}

/// # Safety
/// The same as for [`barrier`].
unsafe extern "C" fn rendezvous(
    thread: u32,
    lanes: Lanes,
    record: *mut c_void,
    combine: Option<Combine>,
    file: *const c_char,
    line: u32,
) -> Lanes {
    let worker = running();
    // SAFETY: the worker belongs to this thread.
    unsafe {
        enter(worker);
        let place = (file, line);
        let result = wait(
            worker,
            thread,
            |block| block.meet_in_lockstep(lanes, record, combine, place),
            |block| block.join(thread, lanes, record, combine, place),
        );
        exit(worker);
        result
    }
}

/// # Safety
/// The same as for [`barrier`].
unsafe extern "C" fn grid_barrier(thread: u32, file: *const c_char, line: u32) {
    let worker = running();
    // SAFETY: the worker belongs to this thread.
    unsafe {
        enter(worker);
        if !is_cooperative(worker) {
            let message = format!(
                "it waits for the whole grid at {}, which only a cooperative launch can",
                text_of((file, line))
            );
            fail(worker, FailureKind::Unsupported, message);
        }
        wait(worker, thread, |_| None, |block| Ok(block.arrive_at_grid(thread, (file, line))));
        exit(worker);
    }
}

/// # Safety
/// The same as for [`barrier`]; the text has this many bytes.
unsafe extern "C" fn print(text: *const c_char, bytes: u64) {
    let mut rest = text.cast::<c_void>();
    let mut left = bytes as usize;
    while left > 0 {
        // SAFETY: the caller's promise.
        let written = unsafe { libc::write(libc::STDOUT_FILENO, rest, left) };
        if written <= 0 {
            // A closed output accepts nothing.
            return;
        }
        rest = rest.wrapping_byte_add(written as usize);
        left -= written as usize;
    }
}

/// Describes the failure of a thread that ends its launch. This is a separate function because [`fail`] never
/// returns, so values in its callers are not dropped.
///
/// # Safety
/// The pointers are null, or texts that end with a zero.
unsafe fn trapped(
    thread: u32,
    kind: u32,
    message: *const c_char,
    (file, line): (*const c_char, u32),
) -> (FailureKind, String) {
    let what = match message.is_null() {
        true => String::new(),
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned(),
    };
    let (kind, what) = match kind {
        abi::ASSERT => (FailureKind::Assert, format!("assertion {what:?} failed")),
        abi::TRAP if what.is_empty() => (FailureKind::Trap, "__trap() was called".to_owned()),
        abi::TRAP => (FailureKind::Trap, what),
        abi::ENDING => {
            (FailureKind::Trap, format!("{what} was called, which would end the process,"))
        }
        _ => (FailureKind::Unsupported, what),
    };
    let thread = thread as usize % MOST_THREADS;
    if file.is_null() {
        return (kind, format!("{what} in thread {thread}"));
    }
    // SAFETY: the caller's promise.
    (kind, format!("{what} in thread {thread} at {}", text_of((file, line))))
}

/// # Safety
/// The same as for [`barrier`].
unsafe extern "C" fn trap(
    thread: u32,
    kind: u32,
    message: *const c_char,
    file: *const c_char,
    line: u32,
) -> ! {
    let worker = running();
    if !is_running(worker) {
        // A destructor of a variable at the end of the process: no launch could end.
        std::process::abort();
    }
    // SAFETY: the worker belongs to this thread; the texts belong to the unit.
    unsafe {
        enter(worker);
        let (kind, message) = trapped(thread, kind, message, (file, line));
        fail(worker, kind, message)
    }
}

extern "C" fn cooperative() -> u32 {
    // SAFETY: the worker belongs to this thread.
    u32::from(unsafe { is_cooperative(running()) })
}

extern "C" fn space_of(address: *const c_void) -> u32 {
    let worker = running();
    if !is_running(worker) {
        return abi::GLOBAL;
    }
    // SAFETY: the worker belongs to this thread, and runs a kernel.
    unsafe { space(worker, address as usize) }
}
