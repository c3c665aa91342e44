//! The barrier at which the blocks of a cooperative launch wait for each other.

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
    /// The number of blocks that have not ended.
    blocks: u64,
    arrived: u64,
    /// The number of times that all blocks have arrived.
    round: u64,
}

impl GridBarrier {
    pub(super) fn new(blocks: u64) -> GridBarrier {
        let state = Mutex::new(GridState { blocks, arrived: 0, round: 0 });
        GridBarrier { state, changed: Condvar::new() }
    }

    /// Records that a block has arrived. Returns the round whose end it waits for.
    pub(crate) fn arrive(&self) -> u64 {
        let mut state = self.lock();
        state.arrived += 1;
        let round = state.round;
        self.release_if_complete(&mut state);
        round
    }

    /// Waits for the other blocks. Returns false if the launch has failed meanwhile, and `None` after a
    /// while, so that the program can end the launch.
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

    /// Records that a block has ended, so that no other block waits for it.
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
        // Notify under the lock. Otherwise a thread could check, miss the notification, and then wait.
        let _state = self.lock();
        self.changed.notify_all();
    }
}
