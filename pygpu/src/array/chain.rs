//! Drops of arrays that keep one another.
//!
//! A view keeps the array that it is of, which may be a view itself, and what an array was exchanged for keeps
//! that array. A chain of these has no end but the program's. Its drop must not take stack for each member.

use super::replaced::State;
use std::cell::{Cell, RefCell};

/// Drops inside drops beyond this number are put off until the outermost is done. Few are: what runs inside a
/// drop may be a long part of the program, whose arrays should go when it drops them.
const DEEPEST: u32 = 16;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PUT_OFF: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

fn next() -> Option<State> {
    PUT_OFF.try_with(|states| states.borrow_mut().pop()).ok().flatten()
}

/// Drops what an array object was made of, which may drop other array objects.
pub(super) fn drop_state(state: State) {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        // At the end of a thread there is no list any longer, and the state goes at once.
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
