//! The initialisers of a unit's variables. They are code of the program; if the system's loader ran them, a
//! fault would end the process. They are therefore removed from the loader's table and run like kernels.

use crate::error::{Error, Result};
use object::{Object as _, ObjectSection as _};
use std::borrow::Cow;

/// The size of an entry in the dynamic table, in bytes: a tag and a value.
const ENTRY: usize = 16;
/// The tags `DT_INIT_ARRAY` and `DT_INIT_ARRAYSZ`.
const ADDRESS: u64 = 25;
const BYTES: u64 = 27;

/// A table with the addresses of functions without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Initialisers {
    /// The address of the table, relative to the start of the library.
    pub(crate) start: u64,
    bytes: u64,
}

impl Initialisers {
    pub(crate) fn count(self) -> usize {
        self.bytes as usize / size_of::<usize>()
    }
}

/// Returns the library without initialisers that the loader would run, and the location of the initialisers.
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
