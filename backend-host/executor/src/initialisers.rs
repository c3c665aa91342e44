//! The initialisers of a unit's variables: code of the program that the system's loader would run, where a
//! fault ends the process. They are taken from the loader, and run as kernels are.

use crate::error::{Error, Result};
use object::{Object as _, ObjectSection as _};
use std::borrow::Cow;

/// Bytes of an entry of the dynamic table: a tag and a value.
const ENTRY: usize = 16;
/// `DT_INIT_ARRAY` and `DT_INIT_ARRAYSZ`.
const ADDRESS: u64 = 25;
const BYTES: u64 = 27;

/// Functions without arguments, in a table of their addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Initialisers {
    /// The table's address from the start of the library.
    pub(crate) start: u64,
    bytes: u64,
}

impl Initialisers {
    pub(crate) fn count(self) -> usize {
        self.bytes as usize / size_of::<usize>()
    }
}

/// Returns a library whose loading runs no initialisers, and where they are.
///
/// # Errors
/// `NotAUnit` for other bytes.
pub(crate) fn take(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Initialisers)> {
    let file = object::File::parse(bytes)
        .map_err(|error| Error::NotAUnit(format!("no compiled unit: {error}")))?;
    let mut found = Initialisers::default();
    let section = file.section_by_name(".dynamic").and_then(|it| it.file_range());
    let (start, length) = section.map_or((0, 0), |it| (it.0 as usize, it.1 as usize));
    let table = bytes.get(start..start.saturating_add(length)).unwrap_or_default();
    let mut size_at = None;
    for (index, entry) in table.chunks_exact(ENTRY).enumerate() {
        let word = |at: usize| {
            entry[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        match word(0) {
            ADDRESS => found.start = word(8),
            BYTES => {
                found.bytes = word(8);
                size_at = Some(start + index * ENTRY + 8);
            }
            _ => {}
        }
    }
    let Some(size_at) = size_at.filter(|_| found.bytes > 0) else {
        return Ok((Cow::Borrowed(bytes), Initialisers::default()));
    };
    let mut without = bytes.to_vec();
    without[size_at..size_at + 8].fill(0);
    Ok((Cow::Owned(without), found))
}
