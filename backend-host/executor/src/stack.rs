//! Stacks of fibres.

use crate::context::StackPointer;
use crate::error::{Error, Result};
use std::io;
use std::ops::Range;
use std::ptr;

/// Bytes of a stack, of which the last have no access. Only pages that a kernel touches take memory.
/// No power of two: the tops of the stacks, which barriers go through, share no set of a cache of
/// address translations.
const STACK: usize = 292 << 10;
const GUARD: usize = 64 << 10;
/// Bytes of a stack that a thread of a kernel may use.
pub(crate) const USABLE: usize = STACK - GUARD;
/// What the executor's functions, which run on the stack of the fibre that calls them, may take of it.
const RESERVE: usize = 32 << 10;
/// Stacks of one mapping.
const BATCH: usize = 32;
/// Stacks begin at different places in their first page, so that they share no lines of a cache.
const COLOURS: usize = 32;
const COLOUR: usize = 192;

/// Faults if less is left of a stack, which the caller uses, than the executor's functions need. It is for
/// where such a fault still counts as the kernel's.
///
/// # Safety
/// The stack's memory is the calling thread's.
#[inline]
pub(crate) unsafe fn require_room(top: StackPointer) {
    const SURE: usize = STACK - GUARD - RESERVE - COLOURS * COLOUR;
    let here = 0_u8;
    let here = &raw const here;
    // Elsewhere than on that stack, the difference is out of its range.
    if (SURE..STACK).contains(&(top as usize).wrapping_sub(here as usize)) {
        // SAFETY: the place is in the stack, or in the guard behind it, where the read faults.
        unsafe { here.wrapping_sub(RESERVE).read_volatile() };
    }
}

/// The stacks of one thread, which are unmapped with it.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    mappings: Vec<*mut u8>,
    used: usize,
}

impl Stacks {
    /// Returns the top of a new stack.
    ///
    /// # Errors
    /// `System` if there is no more memory.
    pub(crate) fn take(&mut self) -> Result<StackPointer> {
        if self.used == self.mappings.len() * BATCH {
            self.mappings.push(map()?);
        }
        let (batch, index) = (self.used / BATCH, self.used % BATCH);
        self.used += 1;
        let colour = self.used % COLOURS * COLOUR;
        Ok(self.mappings[batch].wrapping_add((index + 1) * STACK - colour))
    }

    /// The addresses of the stacks that an address is among.
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

/// Takes the access to the end of a stack away. Where the system has no more mappings, a stack that
/// overflows runs into the unused part of its neighbour.
fn guard(start: *mut u8) {
    /// `MADV_GUARD_INSTALL` of Linux 6.13, which needs no mapping of its own.
    const GUARD_INSTALL: i32 = 102;
    // SAFETY: the range is part of a mapping of this module that nobody uses yet.
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
            // SAFETY: the mapping is this object's, and its fibres are gone.
            unsafe { libc::munmap(base.cast(), STACK * BATCH) };
        }
    }
}
