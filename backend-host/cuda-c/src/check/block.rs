//! The block that runs with checks, and the launch that it is of.

use super::barriers::Barriers;
use super::memory::is_uninitialised;
use super::order::Order;
use super::publications::Publications;
use super::report::{describe_access, describe_address, describe_earlier, describe_misaligned};
use super::shadow::{Kind, New, Shadow};
use super::{Checking, Turn, Unit, heap};
use crate::abi::Index;
use crate::error::FailureKind;
use crate::grid::Grid;
use crate::library::Library;
use crate::worker::{self, Worker};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr;

/// What is done with memory, as in `check.h`.
pub(super) const READ: u32 = 1;
const WRITE: u32 = 2;
const ATOMIC: u32 = 4;
const RELEASE: u32 = 8;
const COMPARE: u32 = 16;
const OPERATION: u32 = 32;

/// After so many atomic accesses of a cooperative launch the other blocks have their turns: one may wait
/// for another one so.
const PATIENCE: u32 = 64;

/// A fault, and how it ends the launch.
pub(super) struct Fault {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

/// A launch with checks.
pub(crate) struct Launch<'a> {
    pub(super) checking: Checking<'a>,
    pub(super) unit: &'a Unit,
    library: &'a Library,
    /// What the loop over threads reads besides the kernel's own memory.
    arguments: Vec<Range<usize>>,
    pub(crate) turn: Turn,
    /// Used by the thread whose turn it is.
    history: RefCell<History>,
}

/// What is remembered of all blocks.
#[derive(Debug, Default)]
struct History {
    global: Shadow,
    publications: Publications,
    /// How often all blocks have met.
    grid_rounds: u64,
}

impl<'a> Launch<'a> {
    /// `arguments` are the ranges that hold the launch itself.
    pub(crate) fn new(
        checking: Checking<'a>,
        unit: &'a Unit,
        library: &'a Library,
        arguments: Vec<Range<usize>>,
    ) -> Launch<'a> {
        Launch {
            checking,
            unit,
            library,
            arguments,
            turn: Turn::default(),
            history: RefCell::default(),
        }
    }

    /// Lets the calling thread run blocks of the launch with checks, while the result lives.
    pub(crate) fn begin(&'a self, grid: &Grid<'_>) -> Running {
        self.turn.take();
        let local = self.library.local_base() as usize;
        let block = Box::into_raw(Box::new(Block {
            launch: ptr::from_ref(self).cast(),
            grid: range_of(&grid.launch),
            blocks: grid.launch.grid,
            threads: grid.launch.block,
            shared: self.shared(local),
            local: local..local + self.unit.local_bytes,
            recent: Default::default(),
            next_recent: 0,
            shared_history: Shadow::default(),
            order: Order::new(grid.threads(), grid.warp_size),
            barriers: Barriers::new(grid.threads()),
            doubtful: None,
            atomic_accesses: 0,
            grid_rounds: 0,
            is_cooperative: grid.barrier.is_some(),
        }));
        CURRENT.set(block);
        Running(block)
    }

    /// The shared memory of the thread whose thread-local memory is at `local`.
    fn shared(&self, local: usize) -> Vec<Region> {
        let shared = self.unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let regions = shared.map(|it| {
            let start = local + it.range.start;
            let bytes = match it.is_dynamic {
                true => it.range.len().min(self.checking.shared_bytes as usize),
                false => it.range.len(),
            };
            Region { range: start..start + bytes, kind: RegionKind::Shared }
        });
        regions.collect()
    }
}

fn range_of<T>(value: &T) -> Range<usize> {
    let start = ptr::from_ref(value) as usize;
    start..start + size_of::<T>()
}

thread_local! {
    static CURRENT: Cell<*mut Block> = const { Cell::new(ptr::null_mut()) };
}

/// Ends the checks of the calling thread when it is dropped.
pub(crate) struct Running(*mut Block);

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.set(ptr::null_mut());
        // SAFETY: `begin` has made it of a box, and the launch outlives this object.
        let block = unsafe { Box::from_raw(self.0) };
        block.launch().turn.leave();
    }
}

/// What runs with checks on the calling thread; null without.
pub(super) fn current() -> *mut Block {
    CURRENT.get()
}

/// The block of the calling thread has ended; returns what is wrong with it after all.
pub(crate) fn end_block() -> Option<(FailureKind, String)> {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    let Fault { kind, message } = unsafe { current().as_mut() }?.doubtful.take()?.fault;
    Some((kind, message))
}

/// What a launch with checks on the calling thread says of an access that faulted, for which the compiler calls no
/// function, at an instruction: a write of what can only be read; `None` for another one.
pub(crate) fn describe_fault(address: usize, instruction: usize) -> Option<String> {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    let unit = unsafe { current().as_ref() }?.launch().unit;
    let line = || unit.lines.describe(unit.lines.offset(instruction + 1));
    unit.is_read_only(address)
        .then(|| format!("a write to address {address:#x}, which can only be read, in {}", line()))
}

/// A block begins on the calling thread, which runs with checks.
pub(crate) fn begin_block(linear: u64) {
    // SAFETY: the object is this thread's, and the only reference to it ends here.
    if let Some(block) = unsafe { current().as_mut() } {
        block.begin(linear);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RegionKind {
    /// Memory that is not looked at: stacks, the launch itself.
    #[default]
    Own,
    Shared,
    Global,
    /// Constant memory, and constants of the code.
    ReadOnly,
    /// Literals and tables, which no name is known of.
    Literal,
}

/// Memory that may be accessed.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) range: Range<usize>,
    pub(super) kind: RegionKind,
}

/// An access of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) how: u32,
    pub(super) thread: u32,
    /// Of [`Lines::offset`](super::lines::Lines::offset).
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

/// A plain read in a race with atomic writes, which is none if the thread compares the variable with what it has
/// read before it writes: `old = *p; do { seen = old; old = atomicCAS(p, seen, ...); } while (old != seen)`.
struct Doubtful {
    address: usize,
    thread: u32,
    fault: Fault,
}

/// The checks of the block that the calling thread runs.
pub(super) struct Block {
    launch: *const Launch<'static>,
    /// Addresses of the launch, which the loop over threads reads.
    grid: Range<usize>,
    blocks: Index,
    threads: Index,
    shared: Vec<Region>,
    /// The thread's own memory of the unit.
    local: Range<usize>,
    /// Where the last accesses were.
    recent: [Region; 8],
    next_recent: usize,
    shared_history: Shadow,
    pub(super) order: Order,
    pub(super) barriers: Barriers,
    doubtful: Option<Doubtful>,
    atomic_accesses: u32,
    /// How often the block has met all others.
    grid_rounds: u64,
    is_cooperative: bool,
}

impl Block {
    pub(super) fn launch(&self) -> &Launch<'_> {
        // SAFETY: the launch outlives what runs in it.
        unsafe { &*self.launch }
    }

    fn begin(&mut self, linear: u64) {
        // Blocks that are so far apart that they have one number are not told apart.
        self.order.begin((linear as u32).wrapping_add(1));
        self.barriers.begin();
        if self.launch().checking.checks.uninitialised {
            for region in &self.shared {
                // SAFETY: the memory is the calling thread's, and no kernel uses it now.
                unsafe {
                    super::fill_uninitialised(region.range.start as *mut u8, region.range.len())
                };
            }
        }
    }

    /// `thread (3, 0, 0)`
    pub(super) fn name_of(&self, thread: u32) -> String {
        let Index { x, y, .. } = self.threads;
        format!("thread ({}, {}, {})", thread % x, thread / x % y, thread / x / y)
    }

    /// ` of block (1, 0, 0)` for another block by its number of [`Order`]; empty for this one.
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
    /// What is wrong with it.
    pub(super) fn check(&mut self, worker: *mut Worker, access: Access) -> Result<(), Fault> {
        self.resolve(access)?;
        let is_placed = access.address.is_multiple_of(access.bytes) || !access.is(OPERATION);
        if !is_placed && self.launch().checking.checks.arithmetic {
            let message = describe_misaligned(self, &access);
            return Err(Fault { kind: FailureKind::Address, message });
        }
        let Some(region) = self.region(worker, access.address) else {
            return self.outside(access);
        };
        let is_read_only = matches!(region.kind, RegionKind::ReadOnly | RegionKind::Literal);
        if is_read_only && access.is(WRITE) && self.launch().checking.checks.bounds {
            let access = Access { how: WRITE, ..access };
            return Err(self.fault(FailureKind::Address, access, " of constant memory", ""));
        }
        if matches!(region.kind, RegionKind::Own | RegionKind::Literal) {
            return Ok(());
        }
        if access.range().end > region.range.end {
            return self.outside(access);
        }
        if is_read_only {
            return Ok(());
        }
        if self.launch().checking.checks.uninitialised && access.is(READ) {
            // SAFETY: the region is live memory of the kernel.
            if unsafe { is_uninitialised(access.range(), &region.range) } {
                let what = " that nothing has written";
                return Err(self.fault(FailureKind::Uninitialised, access, what, ""));
            }
        }
        if self.launch().checking.checks.races {
            self.check_order(access, region.kind)?;
        }
        Ok(())
    }

    /// Decides on an earlier doubtful read by what is done next: by its thread, or by another one, which is when it
    /// waits or has ended.
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

    /// Returns what was wrong with a doubtful read, of a thread that waits now.
    pub(super) fn waits(&mut self) -> Result<(), Fault> {
        self.doubtful.take().map_or(Ok(()), |it| Err(it.fault))
    }

    /// Checks that what other threads have done to the same memory is ordered before an access.
    fn check_order(&mut self, access: Access, region: RegionKind) -> Result<(), Fault> {
        let launch = self.launch;
        // SAFETY: the launch outlives what runs in it.
        let mut history = unsafe { &*launch }.history.borrow_mut();
        let History { global, publications, .. } = &mut *history;
        let shared = region == RegionKind::Shared;
        let shadow = if shared { &mut self.shared_history } else { global };
        let order = &self.order;
        if !order.is_exhausted() {
            let is_before = |event: super::order::Event| {
                // Shared memory of another block is another memory.
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
            // Any atomic access sees what was published before; one that writes publishes.
            self.order.acquire(access.thread, access.address, publications);
            if access.is(WRITE) {
                let releases = access.is(RELEASE);
                self.order.publish(access.thread, access.address, releases, publications);
            }
        }
        Ok(())
    }

    /// A thread goes on behind a barrier of a part of the block.
    pub(super) fn leave_part(&mut self, thread: u32, barrier: u32) {
        // An address that no variable has.
        let key = usize::MAX - (self.order.block as usize * 32 + barrier as usize);
        // SAFETY: the launch outlives what runs in it.
        let mut history = unsafe { &*self.launch }.history.borrow_mut();
        self.order.leave_part(thread, barrier, key, &mut history.publications);
    }

    /// A thread goes on behind the barrier of the grid: nothing before it matters any longer.
    pub(super) fn leave_grid(&mut self, thread: u32) {
        if !self.order.leave(thread) {
            return;
        }
        self.grid_rounds += 1;
        // SAFETY: the launch outlives what runs in it.
        let mut history = unsafe { &*self.launch }.history.borrow_mut();
        if history.grid_rounds < self.grid_rounds {
            history.grid_rounds = self.grid_rounds;
            history.global.clear();
        }
    }

    /// Whether it is time that other blocks of a cooperative launch have their turns, before an access.
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

    /// The fault of an access: what is said of its bytes, and of the access.
    fn fault(&self, kind: FailureKind, access: Access, bytes: &str, what: &str) -> Fault {
        let bytes = describe_access(self, &access, bytes);
        let place = describe_address(self, access.address)
            .map_or_else(String::new, |nearest| format!(", {}", nearest.text));
        Fault { kind, message: format!("{bytes}{what}: address {:#x}{place}", access.address) }
    }

    /// Memory was freed: what was known of it is to be looked up again.
    pub(super) fn forget(&mut self) {
        self.recent = Default::default();
    }

    /// The memory that an address lies in, if a kernel may access it.
    fn region(&mut self, worker: *mut Worker, address: usize) -> Option<Region> {
        if let Some(known) = self.recent.iter().find(|it| it.range.contains(&address)) {
            return Some(known.clone());
        }
        let region = self.look_up(worker, address)?;
        self.recent[self.next_recent] = region.clone();
        self.next_recent = (self.next_recent + 1) % self.recent.len();
        Some(region)
    }

    fn look_up(&self, worker: *mut Worker, address: usize) -> Option<Region> {
        let own = |range| Region { range, kind: RegionKind::Own };
        let global = |range| Region { range, kind: RegionKind::Global };
        if let Some(range) = worker::memory_of(worker, address) {
            return Some(own(range));
        }
        if self.local.contains(&address) {
            return self.local_region(address);
        }
        let Launch { unit, arguments, checking, .. } = self.launch();
        if let Some((variable, _)) = unit.variable(address) {
            let kind = match unit.is_read_only(address) {
                true => RegionKind::ReadOnly,
                false => RegionKind::Global,
            };
            return Some(Region { range: variable.clone(), kind });
        }
        if unit.image.contains(&address) {
            let kind = match unit.is_read_only(address) {
                true => RegionKind::Literal,
                false => RegionKind::Own,
            };
            return Some(Region { range: address..address + 1, kind });
        }
        let live = checking.memory.live(address).or_else(|| heap::live(address));
        live.map(global).or_else(|| {
            let executor = range_of(&super::CHECKED_EXECUTOR);
            let mut own_ranges = arguments.iter().chain([&self.grid, &executor]);
            own_ranges.find(|range| range.contains(&address)).cloned().map(own)
        })
    }

    /// Shared memory, or a variable of the executor's own.
    fn local_region(&self, address: usize) -> Option<Region> {
        let shared = self.shared.iter().find(|region| region.range.contains(&address));
        shared.cloned().or_else(|| {
            let offset = address - self.local.start;
            let mut own = self.launch().unit.locals.iter().filter(|it| it.shared_name.is_empty());
            let found = own.find(|it| it.range.contains(&offset))?;
            let range = self.local.start + found.range.start..self.local.start + found.range.end;
            Some(Region { range, kind: RegionKind::Own })
        })
    }

    /// The shared variable that an address lies in, or behind, or in front of the first of them, and its name.
    pub(super) fn shared_near(&self, address: usize) -> Option<(Range<usize>, String)> {
        if !self.local.contains(&address) {
            return None;
        }
        let locals = self.launch().unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let start = |(_, region): &(_, &Region)| region.range.start;
        let shared = locals.zip(&self.shared);
        let behind = shared.clone().filter(|it| start(it) <= address).max_by_key(start);
        let (local, region) = behind.or_else(|| shared.min_by_key(start))?;
        Some((region.range.clone(), local.shared_name.clone()))
    }
}
