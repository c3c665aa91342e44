//! Determines which accesses of other threads are ordered before an access (happens-before).
//!
//! Each block has a clock that advances with each ordering event, so all accesses of a thread between two
//! events have the same time. A thread knows:
//!
//! - Of its block, everything before the last barrier of all threads. A *round* begins at such a barrier.
//! - Of each lane of its warp, the accesses up to a certain time.
//! - By atomic operations, for each variable, how many of its *publications* it has seen.

use super::knowledge::{Event, Knowledge, LANES, Publication, Publications, Seen};
use crate::abi::Lanes;
use std::sync::Arc;

/// The maximum time of a block. Later events are not ordered, and races after it are not reported.
pub(crate) const MOST_TIME: u32 = (1 << 26) - 1;

/// A thread of the block.
#[derive(Debug)]
struct Thread {
    /// The round in which `own.lanes` was written. In any other round the values are invalid.
    round: u64,
    own: Knowledge,
    /// The accesses that the thread's fences cover. The thread's relaxed atomic operations publish them.
    fence: Option<Box<Knowledge>>,
    /// Counts the changes of `fence`.
    version: u64,
    /// The variable and the version of the last publication.
    published: (usize, u64),
    /// The number of the barrier at which the thread waits, or [`WARP`].
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

/// Marks a thread that waits for lanes of its warp, instead of a barrier's number.
const WARP: u32 = u32::MAX;

/// The order within the running block.
#[derive(Debug)]
pub(crate) struct Order {
    /// The number of the block, from 1.
    pub(crate) block: u32,
    warp_size: u32,
    pub(crate) time: u32,
    round_start: u32,
    /// Counts the rounds of all blocks.
    round: u64,
    threads: Vec<Thread>,
    has_fences: bool,
    has_acquired: bool,
}

impl Order {
    pub(crate) fn new(threads: u32, warp_size: u32) -> Order {
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

    /// Begins another block.
    pub(crate) fn begin(&mut self, block: u32) {
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

    /// Returns the event for an access that a thread makes now.
    pub(crate) fn event(&self, thread: u32) -> Event {
        Event { block: self.block, thread, time: self.time }
    }

    /// Returns true once the clock is exhausted, so that nothing can be ordered.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.time >= MOST_TIME
    }

    fn tick(&mut self) {
        self.time = (self.time + 1).min(MOST_TIME);
    }

    fn lane(&self, thread: u32) -> usize {
        (thread % self.warp_size) as usize
    }

    /// Returns the current knowledge of a thread.
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

    /// Returns the current knowledge of a thread, including its own accesses.
    fn knowledge_and_own(&mut self, thread: u32) -> Knowledge {
        let (lane, time) = (self.lane(thread), self.time);
        let mut knowledge = self.knowledge(thread).clone();
        knowledge.lanes[lane] = time;
        knowledge
    }

    /// Returns true if an access is ordered before the current access of a thread.
    pub(crate) fn is_before(&self, event: Event, thread: u32, all: &Publications) -> bool {
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

    /// Records that a thread arrives at a barrier of the block.
    pub(crate) fn arrive(&mut self, thread: u32, barrier: u32) {
        self.threads[thread as usize].waits = Some(barrier);
    }

    /// Records that a thread arrives at a rendezvous of its warp that orders memory.
    pub(crate) fn arrive_at_warp(&mut self, thread: u32) {
        self.threads[thread as usize].waits = Some(WARP);
    }

    /// Records that a thread continues after a barrier of all threads. Returns true for the first such
    /// thread.
    pub(crate) fn leave(&mut self, thread: u32) -> bool {
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

    /// Gives all threads the knowledge that the fences of all threads cover.
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

    /// Records that a thread continues after a rendezvous of some lanes of its warp.
    pub(crate) fn leave_warp(&mut self, thread: u32, lanes: Lanes) {
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

    /// Records that a thread continues after a barrier of a part of the block. `key` identifies the barrier
    /// in this block.
    pub(crate) fn leave_part(
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

    /// Records a fence. Later atomic operations of the thread publish its knowledge and accesses.
    pub(crate) fn fence(&mut self, thread: u32) {
        let mut knowledge = self.knowledge_and_own(thread);
        knowledge.threads = None;
        let thread = &mut self.threads[thread as usize];
        thread.fence = Some(Box::new(knowledge));
        thread.version += 1;
        self.has_fences = true;
        self.tick();
    }

    /// Records that an atomic operation at an address sees everything published there.
    pub(crate) fn acquire(&mut self, thread: u32, address: usize, all: &Publications) {
        let own = &mut self.threads[thread as usize].own;
        if all.see(address, &mut own.seen) {
            self.has_acquired = true;
        }
    }

    /// Records that an atomic operation writes to an address. With `releases` it publishes all accesses of
    /// the thread, otherwise only accesses that its fences cover.
    pub(crate) fn publish(
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
