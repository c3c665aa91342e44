//! Which accesses of other threads are ordered before what a thread does now.
//!
//! Time is counted for each block, and goes on with each event that orders something, so that the accesses of
//! a thread between two events have one time. A thread knows, of the block, everything before
//! the last barrier of all threads (a *round* begins there); of its warp, up to which time it knows each
//! lane's accesses; and what atomic operations have told it: of each variable, how many of the
//! *publications* there it has seen.

use super::publications::{Publication, Publications, Seen};
use crate::abi::Lanes;
use std::sync::Arc;

/// Lanes of a warp at most.
const LANES: usize = 64;

/// Times of a block at most; later ones order nothing, and nothing is said of them.
pub(super) const MOST_TIME: u32 = (1 << 26) - 1;

/// What a thread knows of others, or what a fence of it covers.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    /// Everything in the block before this time.
    pub(super) before: u32,
    /// Of each lane of the thread's warp, everything up to and with this time.
    pub(super) lanes: [u32; LANES],
    /// Of each thread of the block, likewise; what fences before the last barrier covered.
    pub(super) threads: Option<Arc<[u32]>>,
    /// Publications that were seen.
    pub(super) seen: Arc<Seen>,
}

impl Knowledge {
    fn new() -> Knowledge {
        Knowledge { before: 0, lanes: [0; LANES], threads: None, seen: Arc::default() }
    }

    fn join(&mut self, other: &Knowledge) {
        self.before = self.before.max(other.before);
        for (own, other) in self.lanes.iter_mut().zip(other.lanes) {
            *own = (*own).max(other);
        }
        // Of one block, the later one holds the earlier one.
        if other.threads.is_some() && (self.threads.is_none() || other.before >= self.before) {
            self.threads.clone_from(&other.threads);
        }
        Seen::join(&mut self.seen, &other.seen);
    }
}

/// A thread of the block.
#[derive(Debug)]
struct Thread {
    /// The round in which `own.lanes` was written: they are nothing in another one.
    round: u64,
    own: Knowledge,
    /// What the thread's fences cover; what its relaxed atomic operations publish.
    fence: Option<Box<Knowledge>>,
    /// Counts what changes `fence`.
    version: u64,
    /// The last publication: the variable and the version.
    published: (usize, u64),
    /// Waits for a barrier with this number, or for its warp.
    waits: Option<u32>,
}

impl Thread {
    fn new() -> Thread {
        Thread {
            round: 0,
            own: Knowledge::new(),
            fence: None,
            version: 0,
            published: (0, 0),
            waits: None,
        }
    }
}

/// What waits for lanes of its warp, in place of a barrier's number.
const WARP: u32 = u32::MAX;

/// An access of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) block: u32,
    pub(super) thread: u32,
    pub(super) time: u32,
}

/// The order within the block that runs.
#[derive(Debug)]
pub(super) struct Order {
    /// Its number, from 1 on.
    pub(super) block: u32,
    warp_size: u32,
    pub(super) time: u32,
    round_start: u32,
    /// Counts the rounds of all blocks.
    round: u64,
    threads: Vec<Thread>,
    has_fences: bool,
    has_acquired: bool,
}

impl Order {
    pub(super) fn new(threads: u32, warp_size: u32) -> Order {
        Order {
            block: 0,
            warp_size,
            time: 1,
            round_start: 1,
            round: 0,
            threads: (0..threads).map(|_| Thread::new()).collect(),
            has_fences: false,
            has_acquired: false,
        }
    }

    /// Another block begins.
    pub(super) fn begin(&mut self, block: u32) {
        let is_clean = !self.has_fences && !self.has_acquired;
        self.block = block;
        (self.time, self.round_start) = (1, 1);
        self.round += 1;
        for thread in &mut self.threads {
            thread.waits = None;
            if !is_clean {
                (thread.fence, thread.own.seen) = (None, Arc::default());
                thread.published = (0, 0);
            }
        }
        (self.has_fences, self.has_acquired) = (false, false);
    }

    /// What a thread does now, for later accesses.
    pub(super) fn event(&self, thread: u32) -> Event {
        Event { block: self.block, thread, time: self.time }
    }

    /// True if nothing can be said any longer.
    pub(super) fn is_exhausted(&self) -> bool {
        self.time >= MOST_TIME
    }

    fn tick(&mut self) {
        self.time = (self.time + 1).min(MOST_TIME);
    }

    fn lane(&self, thread: u32) -> usize {
        (thread % self.warp_size) as usize
    }

    /// What the thread knows now.
    fn knowledge(&mut self, thread: u32) -> &mut Knowledge {
        let (round, start) = (self.round, self.round_start);
        let thread = &mut self.threads[thread as usize];
        if thread.round != round {
            thread.round = round;
            thread.own.lanes = [0; LANES];
        }
        thread.own.before = start;
        &mut thread.own
    }

    /// What it knows with its own accesses up to now.
    fn knowledge_and_own(&mut self, thread: u32) -> Knowledge {
        let (lane, time) = (self.lane(thread), self.time);
        let mut knowledge = self.knowledge(thread).clone();
        knowledge.lanes[lane] = time;
        knowledge
    }

    /// True if an access is ordered before what a thread does now.
    pub(super) fn is_before(&self, event: Event, thread: u32, all: &Publications) -> bool {
        let own = &self.threads[thread as usize];
        if event.block == self.block {
            if event.thread == thread || event.time < self.round_start {
                return true;
            }
            let is_of_warp = event.thread / self.warp_size == thread / self.warp_size;
            if is_of_warp
                && own.round == self.round
                && own.own.lanes[self.lane(event.thread)] >= event.time
            {
                return true;
            }
        }
        all.tell_of(&own.own.seen, event, self.warp_size)
    }

    /// A thread comes to a barrier of the block.
    pub(super) fn arrive(&mut self, thread: u32, barrier: u32) {
        self.threads[thread as usize].waits = Some(barrier);
    }

    /// A thread comes to a rendezvous of its warp that orders memory.
    pub(super) fn arrive_at_warp(&mut self, thread: u32) {
        self.threads[thread as usize].waits = Some(WARP);
    }

    /// A thread goes on behind a barrier of all threads; true for the first one.
    pub(super) fn leave(&mut self, thread: u32) -> bool {
        if self.threads[thread as usize].waits.is_none() {
            return false;
        }
        self.tick();
        self.round_start = self.time;
        self.round += 1;
        self.threads.iter_mut().for_each(|thread| thread.waits = None);
        if self.has_acquired {
            let mut seen = Arc::default();
            self.threads.iter().for_each(|thread| Seen::join(&mut seen, &thread.own.seen));
            self.threads.iter_mut().for_each(|thread| thread.own.seen = seen.clone());
        }
        if self.has_fences {
            self.join_fences();
        }
        true
    }

    /// All threads know what the fences of all cover.
    fn join_fences(&mut self) {
        let mut joined = Knowledge::new();
        let mut threads = vec![0; self.threads.len()];
        for (index, thread) in self.threads.iter().enumerate() {
            let Some(fence) = &thread.fence else { continue };
            joined.before = joined.before.max(fence.before);
            Seen::join(&mut joined.seen, &fence.seen);
            let first = index - index % self.warp_size as usize;
            for (own, time) in threads[first..].iter_mut().zip(fence.lanes) {
                *own = time.max(*own);
            }
            for (own, time) in threads.iter_mut().zip(fence.threads.iter().flat_map(|it| it.iter()))
            {
                *own = (*time).max(*own);
            }
        }
        joined.threads = Some(threads.into());
        for thread in &mut self.threads {
            thread.fence = Some(Box::new(joined.clone()));
            thread.version += 1;
        }
    }

    /// A thread goes on behind a rendezvous of some lanes of its warp.
    pub(super) fn leave_warp(&mut self, thread: u32, lanes: Lanes) {
        if self.threads[thread as usize].waits != Some(WARP) {
            return;
        }
        let first = thread - thread % self.warp_size;
        let members = (0..self.warp_size).filter(|lane| lanes >> lane & 1 != 0);
        let members: Vec<u32> = members.map(|lane| first + lane).collect();
        let mut joined = Knowledge::new();
        let mut fence: Option<Box<Knowledge>> = None;
        for &member in &members {
            joined.join(&self.knowledge_and_own(member));
            if let Some(own) = &self.threads[member as usize].fence {
                fence.get_or_insert_with(|| Box::new(Knowledge::new())).join(own);
            }
        }
        for &member in &members {
            *self.knowledge(member) = joined.clone();
            let thread = &mut self.threads[member as usize];
            thread.waits = None;
            if fence.is_some() {
                thread.fence.clone_from(&fence);
                thread.version += 1;
            }
        }
        self.tick();
    }

    /// A thread goes on behind a barrier of a part of the block. `key` is the barrier's in this block.
    pub(super) fn leave_part(
        &mut self,
        thread: u32,
        barrier: u32,
        key: usize,
        all: &mut Publications,
    ) {
        if self.threads[thread as usize].waits != Some(barrier) {
            return;
        }
        let waits = |it: &Thread| it.waits == Some(barrier);
        let came = self.threads.iter().zip(0..).filter(|(it, _)| waits(it)).map(|(_, index)| index);
        let came: Vec<u32> = came.collect();
        for &member in &came {
            let knowledge = self.knowledge_and_own(member);
            all.add(key, self.publication(member, knowledge));
        }
        for &member in &came {
            self.threads[member as usize].waits = None;
            self.acquire(member, key, all);
        }
        self.tick();
    }

    fn publication(&self, thread: u32, knowledge: Knowledge) -> Publication {
        Publication { block: self.block, warp: thread / self.warp_size, knowledge }
    }

    /// A fence: what the thread knows, and has done, is published by its later atomic operations.
    pub(super) fn fence(&mut self, thread: u32) {
        let mut knowledge = self.knowledge_and_own(thread);
        knowledge.threads = None;
        let thread = &mut self.threads[thread as usize];
        thread.fence = Some(Box::new(knowledge));
        thread.version += 1;
        self.has_fences = true;
        self.tick();
    }

    /// An atomic operation at an address sees what was published there.
    pub(super) fn acquire(&mut self, thread: u32, address: usize, all: &Publications) {
        let own = &mut self.threads[thread as usize].own;
        if all.see(address, &mut own.seen) {
            self.has_acquired = true;
        }
    }

    /// An atomic operation writes to an address; `releases` is true if it publishes all that the thread has
    /// done, and not what its fences cover alone.
    pub(super) fn publish(
        &mut self,
        thread: u32,
        address: usize,
        releases: bool,
        all: &mut Publications,
    ) {
        let knowledge = if releases {
            self.knowledge_and_own(thread)
        } else {
            let thread = &mut self.threads[thread as usize];
            let published = (address, thread.version);
            let Some(fence) = thread.fence.as_deref().filter(|_| thread.published != published)
            else {
                return;
            };
            thread.published = published;
            fence.clone()
        };
        all.add(address, self.publication(thread, knowledge));
        if releases {
            self.tick();
        }
    }
}
