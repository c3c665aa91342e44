//! Stacks of fibres.

use crate::context::StackPointer;
use crate::error::{Error, Result};
use std::io;
use std::ops::Range;
use std::ptr;

/// The size of a stack in bytes, including the inaccessible guard at its end. Only pages that a kernel
/// touches use memory. The size is not a power of two, so that the tops of the stacks, which are accessed at
/// each barrier, do not share a set of a TLB.
const STACK: usize = 292 << 10;
const GUARD: usize = 64 << 10;
/// The part of a stack that a thread of a kernel may use, in bytes.
pub(crate) const USABLE: usize = STACK - GUARD;
/// The stack space that the executor's functions may use, in bytes. They run on the stack of the calling
/// fibre.
const RESERVE: usize = 32 << 10;
/// The number of stacks in one mapping.
const BATCH: usize = 32;
/// Stacks start at different offsets in their first page, so that they do not share cache lines.
const COLOURS: usize = 32;
const COLOUR: usize = 192;

/// Faults if the caller's stack has less space left than the executor's functions need. It is called where
/// such a fault still counts as the kernel's.
///
/// # Safety
/// The stack belongs to the calling thread.
#[inline]
pub(crate) unsafe fn require_room(top: StackPointer) {
    const SURE: usize = STACK - GUARD - RESERVE - COLOURS * COLOUR;
    let here = 0_u8;
    let here = &raw const here;
    // On any other stack, the difference is out of this range.
    if (SURE..STACK).contains(&(top as usize).wrapping_sub(here as usize)) {
        // SAFETY: the address is in the stack, or in the guard next to it, where the read faults.
        unsafe { here.wrapping_sub(RESERVE).read_volatile() };
    }
}

/// The stacks of one thread. They are unmapped when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    mappings: Vec<*mut u8>,
    used: usize,
}

impl Stacks {
    /// Returns the top of a new stack.
    ///
    /// # Errors
    /// `System` if there is not enough memory.
    pub(crate) fn take(&mut self) -> Result<StackPointer> {
        if self.used == self.mappings.len() * BATCH {
            self.mappings.push(map()?);
        }
        let (batch, index) = (self.used / BATCH, self.used % BATCH);
        self.used += 1;
        let colour = self.used % COLOURS * COLOUR;
        Ok(self.mappings[batch].wrapping_add((index + 1) * STACK - colour))
    }

    /// Returns the address range of the stacks that contain an address.
    pub(crate) fn range_of(&self, address: usize) -> Option<Range<usize>> {
        let all = self.mappings.iter().map(|&base| base as usize..base as usize + STACK * BATCH);
        all.into_iter().find(|range| range.contains(&address))
    }
}

fn map() -> Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the system chooses the address of a new mapping.
    let base = unsafe {
        libc::mmap(ptr::null_mut(), STACK * BATCH, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if base == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        return Err(Error::System(format!("no memory for the stacks of a block: {error}")));
    }
    let base = base.cast::<u8>();
    for index in 0..BATCH {
        guard(base.wrapping_add(index * STACK));
    }
    Ok(base)
}

/// Makes the guard at the end of a stack inaccessible. If the system allows no more mappings, a stack that
/// overflows runs into the unused part of its neighbour.
fn guard(start: *mut u8) {
    /// `MADV_GUARD_INSTALL` of Linux 6.13, which does not need a separate mapping.
    const GUARD_INSTALL: i32 = 102;
    // SAFETY: the range is part of a mapping of this module that is not used yet.
    unsafe {
        if libc::madvise(start.cast(), GUARD, GUARD_INSTALL) != 0
            && libc::mprotect(start.cast(), GUARD, libc::PROT_NONE) != 0
        {
            log::debug!("a stack has no guard: {}", io::Error::last_os_error());
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for &base in &self.mappings {
            // SAFETY: the mapping belongs to this object, and its fibres no longer exist.
            unsafe { libc::munmap(base.cast(), STACK * BATCH) };
        }
    }
}
