//! The functions that a unit with checks calls.

use super::EXECUTOR;
use crate::abi::{Combine, Executor, Lanes};
use crate::block::text_of;
use crate::check::{self, Access, Fault, current, is_of_language};
use crate::error::FailureKind;
use crate::symbols::Symbols;
use crate::worker::{fail, is_running, memory_of, running, set_in_kernel};
use std::ffi::{CStr, c_char, c_void};

/// The `Checker` of `check.h`.
#[repr(C)]
#[derive(Debug)]
struct Checker {
    access: unsafe extern "C" fn(*const c_void, u64, u32, u32, *const c_void),
    fence: unsafe extern "C" fn(u32),
    fail: unsafe extern "C" fn(*const c_char, u64, u64, *const c_char, u32, u32, *const c_void),
    allocate: extern "C" fn(u64, u64) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void, u32, *const c_void),
    copy: unsafe extern "C" fn(*mut c_void, *const c_void, u64),
    fill: unsafe extern "C" fn(*mut c_void, i32, u64),
}

/// The table that each unit with checks gets in addition to the executor's.
static CHECKER: Checker =
    Checker { access, fence, fail: fail_by_sanitizer, allocate, release, copy, fill };

/// Connects a unit that is loaded at `base` to the checking functions. Returns false for a unit without checks.
///
/// # Safety
/// The unit is loaded there, and none of its code is running.
pub(crate) unsafe fn connect(symbols: &Symbols, base: usize) -> bool {
    let Some(checker) = symbols.find("gpuarray_checker") else { return false };
    let checker = base.wrapping_add(checker.value as usize) as *mut *const Checker;
    // SAFETY: the symbol is this variable of `check.h`.
    unsafe { *checker = &CHECKER };
    true
}

/// The executor's table for units with checks.
pub(crate) static CHECKED_EXECUTOR: Executor = Executor {
    barrier,
    rendezvous,
    grid_barrier,
    print: EXECUTOR.print,
    trap: EXECUTOR.trap,
    is_cooperative: EXECUTOR.is_cooperative,
    space_of: EXECUTOR.space_of,
};

/// # Safety
/// Like all functions here, this is called by a unit whose kernel runs on a fibre of the calling thread.
unsafe extern "C" fn access(
    address: *const c_void,
    bytes: u64,
    how: u32,
    thread: u32,
    place: *const c_void,
) {
    let block = current();
    if block.is_null() || bytes == 0 {
        return;
    }
    let worker = running();
    // SAFETY: block and worker belong to this thread, and no caller keeps a reference to them.
    unsafe {
        if !set_in_kernel(worker, false) {
            // The executor itself calls a function of the unit, for the lanes of a warp.
            return;
        }
        let place = (*block).launch().unit.lines.offset(place as usize);
        let access =
            Access { address: address as usize, bytes: bytes as usize, how, thread, place };
        if (*block).is_to_wait(&access) {
            let turn = &raw const (*block).launch().turn;
            (*turn).leave();
            (*turn).take();
        }
        match (*block).check(access, |address| memory_of(worker, address)) {
            Ok(()) => drop(set_in_kernel(worker, true)),
            Err(Fault { kind, message }) => fail(worker, kind, message),
        }
    }
}

/// # Safety
/// The same as for [`access`].
unsafe extern "C" fn fence(thread: u32) {
    let block = current();
    if block.is_null() {
        return;
    }
    let worker = running();
    // SAFETY: as above.
    unsafe {
        let was = set_in_kernel(worker, false);
        (*block).order.fence(thread);
        set_in_kernel(worker, was);
    }
}

/// The largest alignment in bytes that an access of a GPU needs.
const MOST_ALIGNMENT: u64 = 16;

/// # Safety
/// The same as for [`access`]; the texts are literals of the unit.
unsafe extern "C" fn fail_by_sanitizer(
    what: *const c_char,
    address: u64,
    alignment: u64,
    file: *const c_char,
    line: u32,
    thread: u32,
    place: *const c_void,
) {
    // A GPU accesses at most 16 bytes at a time, so libraries keep types of a larger alignment at such addresses.
    if !what.is_null() && address.is_multiple_of(alignment.min(MOST_ALIGNMENT)) {
        return;
    }
    let block = current();
    // SAFETY: as above.
    if block.is_null() || unsafe { !(*block).launch().checking.checks.arithmetic } {
        return;
    }
    let worker = running();
    // SAFETY: as above.
    unsafe {
        set_in_kernel(worker, false);
        let (kind, message) = {
            let thread = (*block).name_of(thread);
            let lines = &(*block).launch().unit.lines;
            // Accesses in the language's headers are reported at the calling line.
            let is_own = !file.is_null() && is_of_language(&CStr::from_ptr(file).to_string_lossy());
            let line = match is_own {
                true => lines.describe(lines.offset(place as usize)),
                false => text_of((file, line)),
            };
            match what.is_null() {
                true => (FailureKind::Trap, format!("{thread} divides by zero, in {line}")),
                false => {
                    let of = CStr::from_ptr(what).to_string_lossy();
                    let message = format!(
                        "{thread} accesses {of} at {address:#x}, in {line}: the address is not a \
                         multiple of {alignment}"
                    );
                    (FailureKind::Address, message)
                }
            }
        };
        fail(worker, kind, message)
    }
}

/// Runs a part of the executor on the calling thread, whether or not a kernel runs there. When the process
/// ends, the system calls the remaining destructors of units' variables outside of kernels.
fn in_executor<T>(part: impl FnOnce() -> T) -> T {
    let worker = running();
    if !is_running(worker) {
        return part();
    }
    // SAFETY: the worker belongs to this thread, and is running.
    let was = unsafe { set_in_kernel(worker, false) };
    let result = part();
    // SAFETY: as above.
    unsafe { set_in_kernel(worker, was) };
    result
}

extern "C" fn allocate(bytes: u64, alignment: u64) -> *mut c_void {
    in_executor(|| check::allocate(bytes as usize, alignment as usize))
}

/// # Safety
/// The same as for [`access`], or no kernel runs on the calling thread.
unsafe extern "C" fn release(memory: *mut c_void, thread: u32, place: *const c_void) {
    let released = in_executor(|| check::release(memory));
    let block = current();
    if block.is_null() {
        return;
    }
    // SAFETY: the block belongs to this thread, so a kernel runs on it, and no caller keeps a reference to
    // it.
    unsafe {
        let worker = running();
        let was = set_in_kernel(worker, false);
        (*block).lookup.forget();
        if let Err(message) = released.map_err(|what| {
            let lines = &(*block).launch().unit.lines;
            let line = lines.describe(lines.offset(place as usize));
            format!("{} {what}, in {line}", (*block).name_of(thread))
        }) {
            fail(worker, FailureKind::Address, message);
        }
        set_in_kernel(worker, was);
    }
}

/// # Safety
/// The ranges have been checked.
unsafe extern "C" fn copy(to: *mut c_void, from: *const c_void, bytes: u64) {
    // SAFETY: the caller's promise; `copy` allows overlapping ranges.
    unsafe { to.cast::<u8>().copy_from(from.cast(), bytes as usize) };
}

/// # Safety
/// The range has been checked.
unsafe extern "C" fn fill(to: *mut c_void, byte: i32, bytes: u64) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<u8>().write_bytes(byte as u8, bytes as usize) };
}

/// # Safety
/// The same as for [`access`].
unsafe extern "C" fn barrier(
    thread: u32,
    id: u32,
    threads: u32,
    predicate: u32,
    file: *const c_char,
    line: u32,
) -> u32 {
    let block = current();
    let is_of_all = threads == 0;
    // SAFETY: as above; the block outlives the wait.
    unsafe {
        if !block.is_null() {
            let worker = running();
            let was = set_in_kernel(worker, false);
            if let Err(Fault { kind, message }) = (*block).waits() {
                fail(worker, kind, message);
            }
            if is_of_all
                && id == 0
                && (*block).launch().checking.checks.barriers
                && let Err(message) =
                    (*block).barriers.arrive(thread, (file, line)).map_err(|(other, place)| {
                        format!(
                            "{} waits at the barrier in {}, {} at that in {place}: all threads of a block \
                             come to the same one",
                            (*block).name_of(thread),
                            text_of((file, line)),
                            (*block).name_of(other),
                        )
                    })
            {
                fail(worker, FailureKind::Divergence, message);
            }
            (*block).order.arrive(thread, id);
            set_in_kernel(worker, was);
        }
        let result = (EXECUTOR.barrier)(thread, id, threads, predicate, file, line);
        if !block.is_null() {
            let worker = running();
            let was = set_in_kernel(worker, false);
            match is_of_all {
                true => drop((*block).order.leave(thread)),
                false => (*block).leave_part(thread, id),
            }
            set_in_kernel(worker, was);
        }
        result
    }
}

/// # Safety
/// The same as for [`access`].
unsafe extern "C" fn rendezvous(
    thread: u32,
    lanes: Lanes,
    record: *mut c_void,
    combine: Option<Combine>,
    file: *const c_char,
    line: u32,
) -> Lanes {
    let block = current();
    // Warp operations that synchronise also order memory; shuffles and votes do not.
    let orders = !block.is_null() && combine.is_none() && lanes != 0;
    // SAFETY: as above; the block outlives the wait.
    unsafe {
        if orders {
            (*block).order.arrive_at_warp(thread);
        }
        let came = (EXECUTOR.rendezvous)(thread, lanes, record, combine, file, line);
        if orders {
            let worker = running();
            let was = set_in_kernel(worker, false);
            (*block).order.leave_warp(thread, came);
            set_in_kernel(worker, was);
        }
        came
    }
}

/// # Safety
/// The same as for [`access`].
unsafe extern "C" fn grid_barrier(thread: u32, file: *const c_char, line: u32) {
    let block = current();
    // SAFETY: as above; the block outlives the wait.
    unsafe {
        if !block.is_null() {
            (*block).order.arrive(thread, 0);
        }
        (EXECUTOR.grid_barrier)(thread, file, line);
        if !block.is_null() {
            let worker = running();
            let was = set_in_kernel(worker, false);
            (*block).leave_grid(thread);
            set_in_kernel(worker, was);
        }
    }
}
