//! Dropping of arrays that keep one another alive.
//!
//! A view keeps its base array, which may itself be a view, and the new state of an array keeps the old one.
//! The length of such a chain is unlimited, so dropping it must not use stack space for each member.

use super::replaced::State;
use std::cell::{Cell, RefCell};

/// The maximum depth of nested drops; deeper ones are postponed until the outermost is done. It is small but
/// not zero: a drop may run a long part of the program, whose arrays should be dropped immediately.
const DEEPEST: u32 = 16;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PUT_OFF: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

fn next() -> Option<State> {
    PUT_OFF.try_with(|states| states.borrow_mut().pop()).ok().flatten()
}

/// Drops the state of an array object, which may drop other array objects.
pub(super) fn drop_state(state: State) {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        // At the end of a thread, the list no longer exists, and the state is dropped immediately.
        let _ = PUT_OFF.try_with(|states| states.borrow_mut().push(state));
        return;
    }
    DEPTH.set(depth + 1);
    drop(state);
    if depth == 0 {
        while let Some(state) = next() {
            drop(state);
        }
    }
    DEPTH.set(depth);
}
