//! Where the blocks of a cooperative launch wait for each other.

use super::Grid;
use crate::interruption::PERIOD;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The barrier of a grid.
#[derive(Debug)]
pub(crate) struct GridBarrier {
    state: Mutex<GridState>,
    changed: Condvar,
}

#[derive(Debug)]
struct GridState {
    /// Blocks that have not ended.
    blocks: u64,
    arrived: u64,
    /// Counts the times that all have come.
    round: u64,
}

impl GridBarrier {
    pub(super) fn new(blocks: u64) -> GridBarrier {
        let state = Mutex::new(GridState { blocks, arrived: 0, round: 0 });
        GridBarrier { state, changed: Condvar::new() }
    }

    /// A block has come. Returns the round that it waits for the end of.
    pub(crate) fn arrive(&self) -> u64 {
        let mut state = self.lock();
        state.arrived += 1;
        let round = state.round;
        self.release_if_complete(&mut state);
        round
    }

    /// Waits for the other blocks; false if the launch has failed meanwhile, and `None` after a while if the
    /// program may want to end it.
    pub(crate) fn wait(&self, grid: &Grid<'_>, round: u64) -> Option<bool> {
        let mut state = self.lock();
        while state.round == round && !grid.is_stopped() {
            let waited = self.changed.wait_timeout(state, PERIOD);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() && grid.is_interrupted.is_some() {
                return None;
            }
        }
        Some(state.round != round)
    }

    fn lock(&self) -> MutexGuard<'_, GridState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block has ended: nobody waits for it any longer.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.blocks -= 1;
        self.release_if_complete(&mut state);
    }

    fn release_if_complete(&self, state: &mut GridState) {
        if state.arrived > 0 && state.arrived >= state.blocks {
            state.arrived = 0;
            state.round += 1;
            self.changed.notify_all();
        }
    }

    pub(super) fn wake(&self) {
        // Under the lock, so that nobody looks, misses this, and then waits.
        let _state = self.lock();
        self.changed.notify_all();
    }
}
