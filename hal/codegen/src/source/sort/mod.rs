//! Sorting of rows, and the indices that sort them: by merges, or long rows digit by digit.

mod key;
mod merge;
mod radix;
mod source;

use crate::source::launches::Launches;
use hal::operation::Sort;

pub(super) use key::Key;

/// Adds the launches of a sort and returns the key of their kernels.
pub(super) fn plan(operation: &Sort, launches: &mut Launches) -> Key {
    if radix::takes(operation) {
        radix::plan(operation, launches)
    } else {
        merge::plan(operation, launches)
    }
}
