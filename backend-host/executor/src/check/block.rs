//! Checks for the block that is running.

use super::barriers::Barriers;
use super::launch::{History, Launch};
use super::lookup::{Memory, MemoryKind, range_of};
use super::memory::is_uninitialised;
use super::order::Order;
use super::report::{describe_access, describe_address, describe_earlier, describe_misaligned};
use super::shadow::{Kind, New, Shadow};
use crate::abi::Index;
use crate::error::FailureKind;
use crate::grid::Grid;
use crate::worker::Worker;
use std::ops::Range;
use std::ptr;

/// The kind of an access, as in `check.h`.
pub(super) const READ: u32 = 1;
const WRITE: u32 = 2;
const ATOMIC: u32 = 4;
const RELEASE: u32 = 8;
const COMPARE: u32 = 16;
const OPERATION: u32 = 32;

/// The number of atomic accesses after which a cooperative launch lets the other blocks run, because one
/// block may spin until another one acts.
const PATIENCE: u32 = 64;

/// A fault, and the kind of failure with which it ends the launch.
pub(super) struct Fault {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

/// An access of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) how: u32,
    pub(super) thread: u32,
    /// The code offset, from [`Lines::offset`](super::lines::Lines::offset).
    pub(super) place: u32,
}

impl Access {
    pub(super) fn range(&self) -> Range<usize> {
        self.address..self.address.saturating_add(self.bytes)
    }

    pub(super) fn is(&self, how: u32) -> bool {
        self.how & how != 0
    }

    fn kind(&self) -> Kind {
        match (self.is(ATOMIC), self.is(WRITE)) {
            (true, true) => Kind::AtomicWrite,
            (true, false) => Kind::AtomicRead,
            (false, true) => Kind::Write,
            (false, false) => Kind::Read,
        }
    }
}

/// A plain read that races with atomic writes, unless the thread compares the variable with the value it has
/// read before it writes: `old = *p; do { seen = old; old = atomicCAS(p, seen, ...); } while (old != seen)`.
pub(super) struct Doubtful {
    address: usize,
    thread: u32,
    pub(super) fault: Fault,
}

/// The checks of the block that the calling thread runs.
pub(super) struct Block {
    launch: *const Launch<'static>,
    /// The addresses of the launch's parameters; the loop over threads reads them.
    pub(super) grid: Range<usize>,
    blocks: Index,
    threads: Index,
    pub(super) shared: Vec<Memory>,
    /// The unit's thread-local memory of this thread.
    pub(super) local: Range<usize>,
    /// The memory of the last accesses.
    pub(super) recent: [Memory; 8],
    pub(super) next_recent: usize,
    shared_history: Shadow,
    pub(super) order: Order,
    pub(super) barriers: Barriers,
    pub(super) doubtful: Option<Doubtful>,
    atomic_accesses: u32,
    /// The number of grid barriers that the block has passed.
    grid_rounds: u64,
    is_cooperative: bool,
}

impl Block {
    /// Creates the checks for the blocks that the calling thread runs.
    pub(super) fn new(launch: &Launch<'_>, grid: &Grid<'_>) -> Block {
        let local = launch.library.local_base() as usize;
        Block {
            launch: ptr::from_ref(launch).cast(),
            grid: range_of(&grid.launch),
            blocks: grid.launch.grid,
            threads: grid.launch.block,
            shared: launch.shared(local),
            local: local..local + launch.unit.local_bytes,
            recent: Default::default(),
            next_recent: 0,
            shared_history: Shadow::default(),
            order: Order::new(grid.threads(), grid.warp_size),
            barriers: Barriers::new(grid.threads()),
            doubtful: None,
            atomic_accesses: 0,
            grid_rounds: 0,
            is_cooperative: grid.barrier.is_some(),
        }
    }

    pub(super) fn launch(&self) -> &Launch<'_> {
        // SAFETY: the launch outlives the blocks that run in it.
        unsafe { &*self.launch }
    }

    pub(super) fn begin(&mut self, linear: u64) {
        // Blocks that are far enough apart to have the same number are not distinguished.
        self.order.begin((linear as u32).wrapping_add(1));
        self.barriers.begin();
        if self.launch().checking.checks.uninitialised {
            for memory in &self.shared {
                // SAFETY: the memory belongs to the calling thread, and no kernel uses it now.
                unsafe {
                    super::fill_uninitialised(memory.range.start as *mut u8, memory.range.len())
                };
            }
        }
    }

    /// Formats a thread as `thread (3, 0, 0)`.
    pub(super) fn name_of(&self, thread: u32) -> String {
        let Index { x, y, .. } = self.threads;
        format!("thread ({}, {}, {})", thread % x, thread / x % y, thread / x / y)
    }

    /// Formats another block of [`Order`] as ` of block (1, 0, 0)`. Returns an empty string for this block.
    pub(super) fn name_of_block(&self, block: u32) -> String {
        if block == self.order.block {
            return String::new();
        }
        let Index { x, y, .. } = self.blocks;
        let linear = block.wrapping_sub(1);
        format!(" of block ({}, {}, {})", linear % x, linear / x % y, linear / x / y)
    }

    /// Checks an access before it is made.
    ///
    /// # Errors
    /// The fault.
    pub(super) fn check(&mut self, worker: *mut Worker, access: Access) -> Result<(), Fault> {
        self.resolve(access)?;
        let is_placed = access.address.is_multiple_of(access.bytes) || !access.is(OPERATION);
        if !is_placed && self.launch().checking.checks.arithmetic {
            let message = describe_misaligned(self, &access);
            return Err(Fault { kind: FailureKind::Address, message });
        }
        let Some(memory) = self.memory(worker, access.address) else {
            return self.outside(access);
        };
        let is_read_only = matches!(memory.kind, MemoryKind::ReadOnly | MemoryKind::Literal);
        if is_read_only && access.is(WRITE) && self.launch().checking.checks.bounds {
            let access = Access { how: WRITE, ..access };
            return Err(self.fault(FailureKind::Address, access, " of constant memory", ""));
        }
        if matches!(memory.kind, MemoryKind::Own | MemoryKind::Literal) {
            return Ok(());
        }
        if access.range().end > memory.range.end {
            return self.outside(access);
        }
        if is_read_only {
            return Ok(());
        }
        if self.launch().checking.checks.uninitialised && access.is(READ) {
            // SAFETY: the memory is live memory of the kernel.
            if unsafe { is_uninitialised(access.range(), &memory.range) } {
                let what = " that nothing has written";
                return Err(self.fault(FailureKind::Uninitialised, access, what, ""));
            }
        }
        if self.launch().checking.checks.races {
            self.check_order(access, memory.kind)?;
        }
        Ok(())
    }

    /// Decides on an earlier doubtful read by the next access. An access of another thread means that the
    /// reading thread waits or has ended.
    fn resolve(&mut self, access: Access) -> Result<(), Fault> {
        let Some(Doubtful { address, thread, .. }) = self.doubtful else { return Ok(()) };
        if thread == access.thread && !(address == access.address && access.is(ATOMIC)) {
            return Ok(());
        }
        let fault = self.doubtful.take().map(|it| it.fault);
        match fault {
            Some(fault) if thread != access.thread || !access.is(COMPARE) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Returns the fault of a doubtful read whose thread now waits.
    pub(super) fn waits(&mut self) -> Result<(), Fault> {
        self.doubtful.take().map_or(Ok(()), |it| Err(it.fault))
    }

    /// Checks that conflicting accesses of other threads to the same memory are ordered before this access.
    fn check_order(&mut self, access: Access, memory: MemoryKind) -> Result<(), Fault> {
        let launch = self.launch;
        // SAFETY: the launch outlives the blocks that run in it.
        let mut history = unsafe { &*launch }.history.borrow_mut();
        let History { global, publications, .. } = &mut *history;
        let shared = memory == MemoryKind::Shared;
        let shadow = if shared { &mut self.shared_history } else { global };
        let order = &self.order;
        if !order.is_exhausted() {
            let is_before = |event: super::order::Event| {
                // The shared memory of another block is different memory.
                shared && event.block != order.block
                    || order.is_before(event, access.thread, publications)
            };
            let new = New {
                event: order.event(access.thread),
                kind: access.kind(),
                place: access.place,
                compares: access.is(COMPARE),
            };
            if let Some(earlier) = shadow.access(access.address, access.bytes, &new, is_before) {
                let is_doubtful = (new.kind, earlier.kind) == (Kind::Read, Kind::AtomicWrite);
                let earlier = describe_earlier(self, &earlier);
                let what = format!(", in a race with {earlier}");
                let how = if access.is(ATOMIC) { " by an atomic access" } else { "" };
                let fault = self.fault(FailureKind::Race, access, how, &what);
                if !is_doubtful || self.doubtful.is_some() {
                    return Err(fault);
                }
                let Access { address, thread, .. } = access;
                self.doubtful = Some(Doubtful { address, thread, fault });
                return Ok(());
            }
        }
        if access.is(ATOMIC) {
            // An atomic access sees everything published before. If it writes, it also publishes.
            self.order.acquire(access.thread, access.address, publications);
            if access.is(WRITE) {
                let releases = access.is(RELEASE);
                self.order.publish(access.thread, access.address, releases, publications);
            }
        }
        Ok(())
    }

    /// Records that a thread continues after a barrier of a part of the block.
    pub(super) fn leave_part(&mut self, thread: u32, barrier: u32) {
        // An address that no variable has.
        let key = usize::MAX - (self.order.block as usize * 32 + barrier as usize);
        // SAFETY: the launch outlives the blocks that run in it.
        let mut history = unsafe { &*self.launch }.history.borrow_mut();
        self.order.leave_part(thread, barrier, key, &mut history.publications);
    }

    /// Records that a thread continues after the barrier of the grid. No earlier access matters any longer.
    pub(super) fn leave_grid(&mut self, thread: u32) {
        if !self.order.leave(thread) {
            return;
        }
        self.grid_rounds += 1;
        // SAFETY: the launch outlives the blocks that run in it.
        let mut history = unsafe { &*self.launch }.history.borrow_mut();
        if history.grid_rounds < self.grid_rounds {
            history.grid_rounds = self.grid_rounds;
            history.global.clear();
        }
    }

    /// Returns true if, before this access, other blocks of a cooperative launch should get their turn.
    pub(super) fn is_to_wait(&mut self, access: &Access) -> bool {
        if !self.is_cooperative || !access.is(ATOMIC) {
            return false;
        }
        self.atomic_accesses += 1;
        self.atomic_accesses.is_multiple_of(PATIENCE)
    }

    fn outside(&self, access: Access) -> Result<(), Fault> {
        if !self.launch().checking.checks.bounds {
            return Ok(());
        }
        let what = match describe_address(self, access.address) {
            Some(nearest) if nearest.is_freed => " of freed memory",
            _ => " outside any live allocation",
        };
        Err(self.fault(FailureKind::Address, access, what, ""))
    }

    /// Creates the fault for an access. `bytes` and `what` describe the accessed bytes and the problem.
    fn fault(&self, kind: FailureKind, access: Access, bytes: &str, what: &str) -> Fault {
        let bytes = describe_access(self, &access, bytes);
        let place = describe_address(self, access.address)
            .map_or_else(String::new, |nearest| format!(", {}", nearest.text));
        Fault { kind, message: format!("{bytes}{what}: address {:#x}{place}", access.address) }
    }
}
