//! For each variable with atomic operations, the accesses that are ordered before a read of its value, as
//! an ordered list.

use super::order::{Event, Knowledge};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of publications seen at some addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Vec<(usize, u32)>);

impl Seen {
    /// Adds the publications that another thread has seen.
    pub(super) fn join(own: &mut Arc<Seen>, other: &Arc<Seen>) {
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
pub(super) struct Publication {
    pub(super) block: u32,
    pub(super) warp: u32,
    pub(super) knowledge: Knowledge,
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
pub(super) struct Publications(HashMap<usize, Variable>);

impl Publications {
    /// Adds a publication at an address.
    pub(super) fn add(&mut self, address: usize, mut publication: Publication) {
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
    pub(super) fn see(&self, address: usize, seen: &mut Arc<Seen>) -> bool {
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
    pub(super) fn tell_of(&self, seen: &Seen, event: Event, warp_size: u32) -> bool {
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
