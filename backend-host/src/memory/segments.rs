//! Plain memory: blocks of shared segments, which other processes can open.
//!
//! Small blocks are carved from common segments, so that a process needs few file descriptors; a
//! large block is a segment of its own. Each block starts at a page, behind a page of its own for
//! its handle, which is used only if the block is exported. So a process that opens a block maps no
//! byte of another one.
//!
//! A freed block serves later requests; a few small ones wait for one of the same size as they are.
//! A block that was exported does not: its pages are freed, and its range is used no more, so a
//! process that still maps it sees zeros and never another block.

mod state;

use crate::sharing::handle::{Handle, Kind};
use crate::sharing::segment::{Mapping, open};
use hal::process::ProcessMutex;
use hal::{IpcHandle, Result};
use state::State;
use std::collections::BTreeMap;

/// The plain memory of a process, and what it has opened of other processes. A forked child starts
/// without any.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    state: ProcessMutex<State>,
    opened: ProcessMutex<BTreeMap<usize, (Mapping, usize)>>,
}

impl Segments {
    /// Allocates at least `bytes` bytes at a page; `None` if the system has no more.
    pub(crate) fn allocate(&self, bytes: usize) -> Option<usize> {
        self.state.lock().allocate(bytes)
    }

    /// A small block of at least so many bytes that was freed and kept as it is, if there is one.
    pub(crate) fn take_waiting(&self, bytes: usize) -> Option<usize> {
        self.state.lock().take_waiting(bytes)
    }

    /// Frees a block of [`Segments::allocate`]; at most `limit` bytes of free pages are kept.
    /// Returns false if there is none at the address.
    ///
    /// # Safety
    /// Nothing of this process uses the block any longer.
    pub(crate) unsafe fn free(&self, address: usize, limit: usize) -> bool {
        self.state.lock().free(address, limit)
    }

    /// Bytes of free pages that are kept, at most.
    pub(crate) fn kept(&self) -> usize {
        self.state.lock().kept
    }

    /// Frees at least so many bytes of kept pages, or all; returns how many.
    pub(crate) fn release(&self, bytes: usize) -> usize {
        self.state.lock().release(bytes)
    }

    /// Start and bytes of the block in use, here or opened, that an address lies in.
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

    /// Returns the handle of the block that an address lies in.
    ///
    /// # Errors
    /// `InvalidArgument` for an address outside all blocks; the system's refusal.
    pub(crate) fn export(
        &self,
        call: &'static str,
        address: usize,
        kind: Kind,
    ) -> Result<IpcHandle> {
        self.state.lock().export(call, address, kind)
    }

    /// Maps what another process exported, and returns its address.
    ///
    /// # Errors
    /// As for [`open`].
    pub(crate) fn open(&self, call: &'static str, octets: &IpcHandle, kind: Kind) -> Result<usize> {
        let handle = Handle::parse(call, octets, kind)?;
        let mapping = open(call, octets, &handle)?;
        let address = mapping.address();
        self.opened.lock().insert(address, (mapping, handle.length as usize));
        Ok(address)
    }

    /// Unmaps what [`Segments::open`] mapped; returns false if that was something else.
    ///
    /// # Safety
    /// Nothing uses the range any longer.
    pub(crate) unsafe fn close(&self, address: usize) -> bool {
        self.opened.lock().remove(&address).is_some()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
