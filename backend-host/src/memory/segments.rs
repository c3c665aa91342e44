//! Plain memory: blocks of shared segments, which other processes can open.
//!
//! Small blocks are carved from common segments, so that a process needs few file descriptors. A large block
//! has a segment of its own. Each block starts at a page boundary, after a page for its handle; that page is
//! used only if the block is exported. A process that opens a block therefore never maps bytes of another
//! block.
//!
//! A freed block serves later requests. A few small blocks are kept unchanged for a request of the same size.
//! The range of a block that was exported is never reused: its pages are freed, so a process that still maps it
//! sees zeros and never another block.

mod state;

use crate::sharing::handle::{Handle, Kind};
use crate::sharing::segment::{Mapping, open};
use hal::process::ProcessMutex;
use hal::{IpcHandle, Result};
use state::State;
use std::collections::BTreeMap;

/// The plain memory of a process, and the memory of other processes that it has opened. A forked child starts
/// without any.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    state: ProcessMutex<State>,
    opened: ProcessMutex<BTreeMap<usize, (Mapping, usize)>>,
}

impl Segments {
    /// Allocates at least `bytes` bytes at a page boundary. Returns `None` if the system cannot provide more
    /// memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Option<usize> {
        self.state.lock().allocate(bytes)
    }

    /// Takes a small freed block of at least this many bytes that waits unchanged, if there is one.
    pub(crate) fn take_waiting(&self, bytes: usize) -> Option<usize> {
        self.state.lock().take_waiting(bytes)
    }

    /// Frees a block of [`Segments::allocate`]. At most `limit` bytes of free pages are kept. Returns false
    /// if no block is allocated at the address.
    ///
    /// # Safety
    /// Nothing in this process uses the block any longer.
    pub(crate) unsafe fn free(&self, address: usize, limit: usize) -> bool {
        self.state.lock().free(address, limit)
    }

    /// Returns an upper bound for the bytes of kept free pages.
    pub(crate) fn kept(&self) -> usize {
        self.state.lock().kept
    }

    /// Frees at least this many bytes of kept pages, or all of them. Returns the number of freed bytes.
    pub(crate) fn release(&self, bytes: usize) -> usize {
        self.state.lock().release(bytes)
    }

    /// Returns the start and size in bytes of the used or opened block that contains an address.
    pub(crate) fn allocation(&self, address: usize) -> Option<(u64, usize)> {
        let inside =
            |start: usize, bytes: usize| (address - start < bytes).then_some((start as u64, bytes));
        let state = self.state.lock();
        let own = state.blocks.range(..=address).next_back();
        let own = own.filter(|(_, block)| !block.is_waiting);
        let found = own.and_then(|(&start, block)| inside(start, block.bytes));
        drop(state);
        found.or_else(|| {
            let opened = self.opened.lock();
            let (&start, &(_, bytes)) = opened.range(..=address).next_back()?;
            inside(start, bytes)
        })
    }

    /// Returns the handle of the block that contains an address.
    ///
    /// # Errors
    /// `InvalidArgument` for an address outside of all blocks, or the system's error.
    pub(crate) fn export(
        &self,
        call: &'static str,
        address: usize,
        kind: Kind,
    ) -> Result<IpcHandle> {
        self.state.lock().export(call, address, kind)
    }

    /// Maps memory that another process exported, and returns its address.
    ///
    /// # Errors
    /// The same as [`open`].
    pub(crate) fn open(&self, call: &'static str, octets: &IpcHandle, kind: Kind) -> Result<usize> {
        let handle = Handle::parse(call, octets, kind)?;
        let mapping = open(call, octets, &handle)?;
        let address = mapping.address();
        self.opened.lock().insert(address, (mapping, handle.length as usize));
        Ok(address)
    }

    /// Unmaps memory of [`Segments::open`]. Returns false if the address is something else.
    ///
    /// # Safety
    /// Nothing uses the range any longer.
    pub(crate) unsafe fn close(&self, address: usize) -> bool {
        self.opened.lock().remove(&address).is_some()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
