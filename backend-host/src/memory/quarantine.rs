//! Quarantine for memory that is freed while kernels are checked. Freed memory is not reused for a while,
//! so that a kernel which still uses it is detected.

use super::Memory;
use hal::checking;
use hal::process::ProcessMutex;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of bytes in quarantine.
const MOST: usize = 256 << 20;

/// The minimum size with which a block is counted, because its bookkeeping also takes memory.
const LEAST: usize = 128;

/// A freed block, and the function that finally releases it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) put_back: unsafe fn(&Memory, u64, usize),
}

impl Freed {
    fn cost(&self) -> usize {
        self.bytes.max(LEAST)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    freed: VecDeque<Freed>,
    addresses: HashSet<u64>,
}

#[derive(Debug)]
pub(super) struct Quarantine {
    most: usize,
    /// The total number of bytes. It is zero in programs without checks; they therefore take no lock.
    bytes: AtomicUsize,
    state: ProcessMutex<State>,
}

impl Quarantine {
    /// Creates a quarantine of at most `most` bytes.
    pub(super) fn new(most: usize) -> Quarantine {
        Quarantine {
            most: most.min(MOST),
            bytes: AtomicUsize::new(0),
            state: ProcessMutex::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the block at an address was freed and is in quarantine.
    pub(super) fn has(&self, address: u64) -> bool {
        self.bytes() > 0 && self.state.lock().addresses.contains(&address)
    }

    /// Adds a block, and returns the blocks that leave the quarantine for it.
    pub(super) fn add(&self, block: Freed) -> Vec<Freed> {
        let mut state = self.state.lock();
        self.bytes.fetch_add(block.cost(), Ordering::Relaxed);
        state.addresses.insert(block.address);
        state.freed.push_back(block);
        let mut over = Vec::new();
        while self.bytes() > self.most {
            let Some(oldest) = state.freed.pop_front() else { break };
            state.addresses.remove(&oldest.address);
            self.bytes.fetch_sub(oldest.cost(), Ordering::Relaxed);
            over.push(oldest);
        }
        over
    }

    /// Removes and returns all blocks.
    pub(super) fn take_all(&self) -> Vec<Freed> {
        if self.bytes() == 0 {
            return Vec::new();
        }
        let mut state = self.state.lock();
        state.addresses.clear();
        let all: Vec<_> = state.freed.drain(..).collect();
        self.bytes.fetch_sub(all.iter().map(Freed::cost).sum(), Ordering::Relaxed);
        all
    }
}

impl Memory {
    /// Counts memory as free. While kernels are checked, the memory stays in quarantine first.
    ///
    /// # Safety
    /// The same as for [`Memory::free`].
    pub(super) unsafe fn end(&self, freed: Freed) {
        self.used.fetch_sub(freed.bytes, Ordering::Relaxed);
        let Freed { address, bytes, put_back } = freed;
        if checking::current().is_none() {
            // SAFETY: the caller's promise.
            return unsafe { put_back(self, address, bytes) };
        }
        checking::freed(address, bytes);
        for Freed { address, bytes, put_back } in self.quarantine.add(freed) {
            // SAFETY: the promise of the caller that freed the block.
            unsafe { put_back(self, address, bytes) };
        }
    }

    pub(super) fn end_quarantine(&self) {
        for Freed { address, bytes, put_back } in self.quarantine.take_all() {
            // SAFETY: the promise of the caller that freed the block.
            unsafe { put_back(self, address, bytes) };
        }
    }
}
