//! The knowledge of a launch's threads about each other's accesses, and the publications that carry it: for each
//! variable with atomic operations, an ordered list of the accesses that precede a read of its value.

use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of lanes in a warp.
pub(crate) const LANES: usize = 64;

/// A past access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) time: u32,
}

/// The accesses that a thread knows of, or that its fence covers.
#[derive(Clone, Debug)]
pub(crate) struct Knowledge {
    /// Everything in the block before this time.
    pub(crate) before: u32,
    /// For each lane of the thread's warp, everything up to and including this time.
    pub(crate) lanes: [u32; LANES],
    /// The same for each thread of the block: the accesses covered by fences before the last barrier.
    pub(crate) threads: Option<Arc<[u32]>>,
    /// The publications that were seen.
    pub(crate) seen: Arc<Seen>,
}

impl Knowledge {
    pub(crate) fn new() -> Knowledge {
        Knowledge { before: 0, lanes: [0; LANES], threads: None, seen: Arc::default() }
    }

    pub(crate) fn join(&mut self, other: &Knowledge) {
        self.before = self.before.max(other.before);
        for (own, other) in self.lanes.iter_mut().zip(other.lanes) {
            *own = (*own).max(other);
        }
        // Within a block, later knowledge includes earlier knowledge.
        if other.threads.is_some() && (self.threads.is_none() || other.before >= self.before) {
            self.threads.clone_from(&other.threads);
        }
        Seen::join(&mut self.seen, &other.seen);
    }
}

/// The number of publications seen at some addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Vec<(usize, u32)>);

impl Seen {
    /// Adds the publications that another thread has seen.
    pub(crate) fn join(own: &mut Arc<Seen>, other: &Arc<Seen>) {
        if Arc::ptr_eq(own, other) || other.0.iter().all(|it| own.has(*it)) {
            return;
        }
        if own.0.is_empty() {
            own.clone_from(other);
            return;
        }
        let joined = Arc::make_mut(own);
        other.0.iter().for_each(|&(address, count)| joined.raise(address, count));
    }

    fn has(&self, (address, count): (usize, u32)) -> bool {
        let found = self.0.binary_search_by_key(&address, |it| it.0);
        found.is_ok_and(|index| self.0[index].1 >= count)
    }

    fn raise(&mut self, address: usize, count: u32) {
        match self.0.binary_search_by_key(&address, |it| it.0) {
            Ok(index) => self.0[index].1 = self.0[index].1.max(count),
            Err(index) => self.0.insert(index, (address, count)),
        }
    }
}

/// The knowledge of a thread, of this block and warp, when it published.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) knowledge: Knowledge,
}

/// The publications at one address, in order.
#[derive(Debug, Default)]
struct Variable {
    /// Each one includes the knowledge in earlier publications of its block and warp, and everything that any
    /// earlier one had seen.
    all: Vec<Publication>,
    /// The positions by block, and by block and warp.
    of_block: HashMap<u32, Vec<u32>>,
    of_warp: HashMap<(u32, u32), Vec<u32>>,
}

/// The publications of a launch.
#[derive(Debug, Default)]
pub(crate) struct Publications(HashMap<usize, Variable>);

impl Publications {
    /// Adds a publication at an address.
    pub(crate) fn add(&mut self, address: usize, mut publication: Publication) {
        let variable = self.0.entry(address).or_default();
        let (block, warp) = (publication.block, publication.warp);
        let own = &mut publication.knowledge;
        let of_block = variable.of_block.entry(block).or_default();
        if let Some(&last) = of_block.last() {
            let before = &variable.all[last as usize].knowledge;
            own.before = own.before.max(before.before);
            if own.threads.is_none() {
                own.threads.clone_from(&before.threads);
            }
        }
        let of_warp = variable.of_warp.entry((block, warp)).or_default();
        if let Some(&last) = of_warp.last() {
            let before = &variable.all[last as usize].knowledge.lanes;
            for (own, before) in own.lanes.iter_mut().zip(before) {
                *own = (*own).max(*before);
            }
        }
        if let Some(last) = variable.all.last() {
            Seen::join(&mut own.seen, &last.knowledge.seen);
        }
        let position = variable.all.len() as u32;
        of_block.push(position);
        of_warp.push(position);
        variable.all.push(publication);
    }

    /// Marks everything published at an address as seen. Returns true if some of it is new.
    pub(crate) fn see(&self, address: usize, seen: &mut Arc<Seen>) -> bool {
        let Some(variable) = self.0.get(&address) else { return false };
        let count = variable.all.len() as u32;
        if seen.has((address, count)) {
            return false;
        }
        if let Some(last) = variable.all.last() {
            Seen::join(seen, &last.knowledge.seen);
        }
        Arc::make_mut(seen).raise(address, count);
        true
    }

    /// Returns true if one of the seen publications covers an access.
    pub(crate) fn tell_of(&self, seen: &Seen, event: Event, warp_size: u32) -> bool {
        let Event { block, thread, time } = event;
        seen.0.iter().any(|&(address, count)| {
            let Some(variable) = self.0.get(&address) else { return false };
            let last_of = |positions: Option<&Vec<u32>>| {
                let positions = positions?;
                let end = positions.partition_point(|&position| position < count);
                let last = *positions[..end].last()?;
                Some(&variable.all[last as usize].knowledge)
            };
            let by_block = last_of(variable.of_block.get(&block)).is_some_and(|known| {
                let of_thread = known.threads.as_ref().map_or(0, |it| it[thread as usize]);
                time < known.before || time <= of_thread
            });
            let warp = (block, thread / warp_size);
            by_block
                || last_of(variable.of_warp.get(&warp))
                    .is_some_and(|known| time <= known.lanes[(thread % warp_size) as usize])
        })
    }
}
