//! Checks for the block that the calling thread runs.

use super::barriers::Barriers;
use super::knowledge::Event;
use super::launch::{History, Launch};
use super::lookup::{Lookup, MemoryKind};
use super::memory::{fill_uninitialised, is_uninitialised};
use super::order::Order;
use super::shadow::{Earlier, Kind, New, Shadow};
use crate::abi::{self, Index};
use crate::error::FailureKind;
use std::cell::Cell;
use std::ops::Range;
use std::ptr;

/// The kind of an access, as in `check.h`.
const READ: u32 = 1;
const WRITE: u32 = 2;
const ATOMIC: u32 = 4;
const RELEASE: u32 = 8;
const COMPARE: u32 = 16;
const OPERATION: u32 = 32;

/// The number of atomic accesses after which a cooperative launch lets the other blocks run, because one
/// block may spin until another one acts.
const PATIENCE: u32 = 64;

/// A fault, and the kind of failure with which it ends the launch.
pub(crate) struct Fault {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

/// An access of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) how: u32,
    pub(crate) thread: u32,
    /// The code offset, from [`Lines::offset`](super::lines::Lines::offset).
    pub(crate) place: u32,
}

impl Access {
    pub(crate) fn range(&self) -> Range<usize> {
        self.address..self.address.saturating_add(self.bytes)
    }

    pub(crate) fn is(&self, how: u32) -> bool {
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
pub(crate) struct Doubtful {
    address: usize,
    thread: u32,
    pub(crate) fault: Fault,
}

/// The checks of the block that the calling thread runs.
pub(crate) struct Block {
    launch: *const Launch<'static>,
    blocks: Index,
    threads: Index,
    pub(crate) lookup: Lookup,
    shared_history: Shadow,
    pub(crate) order: Order,
    pub(crate) barriers: Barriers,
    pub(crate) doubtful: Option<Doubtful>,
    atomic_accesses: u32,
    /// The number of grid barriers that the block has passed.
    grid_rounds: u64,
    is_cooperative: bool,
}

impl Block {
    /// Creates the checks for the blocks that the calling thread runs. Its thread-local memory is at `local`.
    fn new(
        launch: &Launch<'_>,
        shape: &abi::Launch,
        warp_size: u32,
        local: usize,
        is_cooperative: bool,
    ) -> Block {
        let threads = shape.block.count();
        Block {
            launch: ptr::from_ref(launch).cast(),
            blocks: shape.grid,
            threads: shape.block,
            lookup: Lookup::new(launch, shape, local),
            shared_history: Shadow::default(),
            order: Order::new(threads, warp_size),
            barriers: Barriers::new(threads),
            doubtful: None,
            atomic_accesses: 0,
            grid_rounds: 0,
            is_cooperative,
        }
    }

    pub(crate) fn launch(&self) -> &Launch<'_> {
        // SAFETY: the launch outlives the blocks that run in it.
        unsafe { &*self.launch }
    }

    pub(crate) fn begin(&mut self, linear: u64) {
        // Blocks that are far enough apart to have the same number are not distinguished.
        self.order.begin((linear as u32).wrapping_add(1));
        self.barriers.begin();
        if self.launch().checking.checks.uninitialised {
            for memory in &self.lookup.shared {
                let Range { start, end } = memory.range;
                // SAFETY: the memory belongs to the calling thread, and no kernel uses it now.
                unsafe { fill_uninitialised(start as *mut u8, end - start) };
            }
        }
    }

    fn line(&self, place: u32) -> String {
        self.launch().unit.lines.describe(place)
    }

    /// Formats a thread as `thread (3, 0, 0)`.
    pub(crate) fn name_of(&self, thread: u32) -> String {
        let Index { x, y, .. } = self.threads;
        format!("thread ({}, {}, {})", thread % x, thread / x % y, thread / x / y)
    }

    /// Formats another block of [`Order`] as ` of block (1, 0, 0)`. Returns an empty string for this block.
    pub(crate) fn name_of_block(&self, block: u32) -> String {
        if block == self.order.block {
            return String::new();
        }
        let Index { x, y, .. } = self.blocks;
        let linear = block.wrapping_sub(1);
        format!(" of block ({}, {}, {})", linear % x, linear / x % y, linear / x / y)
    }

    /// Checks an access before it is made. `of_worker` finds the memory of the thread's worker.
    ///
    /// # Errors
    /// The fault.
    pub(crate) fn check(
        &mut self,
        access: Access,
        of_worker: impl Fn(usize) -> Option<Range<usize>>,
    ) -> Result<(), Fault> {
        self.resolve(access)?;
        let is_placed = access.address.is_multiple_of(access.bytes) || !access.is(OPERATION);
        if !is_placed && self.launch().checking.checks.arithmetic {
            let message = self.describe_misaligned(&access);
            return Err(Fault { kind: FailureKind::Address, message });
        }
        // SAFETY: the launch outlives the blocks that run in it.
        let launch = unsafe { &*self.launch };
        let Some(memory) = self.lookup.memory(launch, access.address, of_worker) else {
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
    pub(crate) fn waits(&mut self) -> Result<(), Fault> {
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
            let is_before = |event: Event| {
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
                let what = format!(", in a race with {}", self.describe_earlier(&earlier));
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
    pub(crate) fn leave_part(&mut self, thread: u32, barrier: u32) {
        // An address that no variable has.
        let key = usize::MAX - (self.order.block as usize * 32 + barrier as usize);
        // SAFETY: the launch outlives the blocks that run in it.
        let mut history = unsafe { &*self.launch }.history.borrow_mut();
        self.order.leave_part(thread, barrier, key, &mut history.publications);
    }

    /// Records that a thread continues after the barrier of the grid. No earlier access matters any longer.
    pub(crate) fn leave_grid(&mut self, thread: u32) {
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
    pub(crate) fn is_to_wait(&mut self, access: &Access) -> bool {
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
        let what = match self.lookup.describe(self.launch(), access.address) {
            Some(nearest) if nearest.is_freed => " of freed memory",
            _ => " outside any live allocation",
        };
        Err(self.fault(FailureKind::Address, access, what, ""))
    }

    /// Creates the fault for an access. `bytes` and `what` describe the accessed bytes and the problem.
    fn fault(&self, kind: FailureKind, access: Access, bytes: &str, what: &str) -> Fault {
        let Access { address, .. } = access;
        let bytes = self.describe_access(&access, bytes);
        let place = self.lookup.describe(self.launch(), address);
        let place = place.map_or_else(String::new, |nearest| format!(", {}", nearest.text));
        Fault { kind, message: format!("{bytes}{what}: address {address:#x}{place}") }
    }

    /// Describes an access, as in `thread (3, 0, 0) reads 4 bytes of freed memory in kernel.cu:7`. `what` is ` of
    /// freed memory` or empty.
    fn describe_access(&self, access: &Access, what: &str) -> String {
        let verb = if access.is(READ) { "reads" } else { "writes" };
        let Access { bytes, thread, place, .. } = *access;
        let line = self.line(place);
        let unit = if bytes == 1 { "byte" } else { "bytes" };
        format!("{} {verb} {bytes} {unit}{what} in {line}", self.name_of(thread))
    }

    /// Describes an atomic operation at a misaligned address.
    fn describe_misaligned(&self, access: &Access) -> String {
        let Access { address, bytes, thread, place, .. } = *access;
        let line = self.line(place);
        format!(
            "{} accesses {bytes} bytes at {address:#x} by an atomic operation, in {line}: the address \
             is not a multiple of {bytes}",
            self.name_of(thread)
        )
    }

    /// Describes an earlier access, as in `a write by thread (3, 0, 0) of block (1, 0, 0) in kernel.cu:7`.
    fn describe_earlier(&self, earlier: &Earlier) -> String {
        let what = match earlier.kind {
            Kind::Read => "a read",
            Kind::Write => "a write",
            Kind::AtomicRead | Kind::AtomicWrite => "an atomic access",
        };
        let thread = self.name_of(earlier.event.thread);
        let of_block = self.name_of_block(earlier.event.block);
        let line = self.line(earlier.place);
        format!("{what} by {thread}{of_block} in {line}")
    }
}

thread_local! {
    static CURRENT: Cell<*mut Block> = const { Cell::new(ptr::null_mut()) };
}

impl Launch<'_> {
    /// Lets the calling thread run blocks of a launch with this shape, with checks, while the result lives. The
    /// unit's thread-local memory is at `local`.
    pub(crate) fn begin(
        &self,
        shape: &abi::Launch,
        warp_size: u32,
        local: usize,
        is_cooperative: bool,
    ) -> Running {
        self.turn.take();
        let block = Block::new(self, shape, warp_size, local, is_cooperative);
        let block = Box::into_raw(Box::new(block));
        CURRENT.set(block);
        Running(block)
    }
}

/// Ends the checks of the calling thread when it is dropped.
pub(crate) struct Running(*mut Block);

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.set(ptr::null_mut());
        // SAFETY: `begin` created it from a box, and the launch outlives this object.
        let block = unsafe { Box::from_raw(self.0) };
        block.launch().turn.leave();
    }
}

/// Returns the checks of the calling thread, or null if it runs without checks.
pub(crate) fn current() -> *mut Block {
    CURRENT.get()
}

/// Ends the block of the calling thread. Returns a fault that is only certain now.
pub(crate) fn end_block() -> Option<(FailureKind, String)> {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    let Fault { kind, message } = unsafe { current().as_mut() }?.doubtful.take()?.fault;
    Some((kind, message))
}

/// Describes an access that faulted without a call of the compiler's hooks: a write to read-only memory.
/// Returns `None` for any other access, or if the calling thread runs without checks.
pub(crate) fn describe_fault(address: usize, instruction: usize) -> Option<String> {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    let unit = unsafe { current().as_ref() }?.launch().unit;
    let line = || unit.lines.describe(unit.lines.offset(instruction + 1));
    unit.is_read_only(address)
        .then(|| format!("a write to address {address:#x}, which can only be read, in {}", line()))
}

/// Begins a block on the calling thread, if it runs with checks.
pub(crate) fn begin_block(linear: u64) {
    // SAFETY: the object belongs to this thread, and the only reference to it ends here.
    if let Some(block) = unsafe { current().as_mut() } {
        block.begin(linear);
    }
}
