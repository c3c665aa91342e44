//! Checks of running kernels for errors: the kinds that are checked, and the descriptions of memory in reports.
//!
//! Only backends that run kernels on the host support checks. The setting belongs to the process and applies to
//! all launches that are requested while it is set.

use crate::environment;
use crate::error::{Error, Result};
use crate::process::ProcessMutex;
use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::ops::{BitOr, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The environment variable that switches checks on.
const VARIABLE: &str = "PYGPU_CHECK";

/// Returns the advice to append when a kernel fails on the host without checks; empty if all launches are checked.
pub fn advice() -> &'static str {
    match current().are_lasting() {
        false => "; PYGPU_CHECK=1 looks at each access of the kernels, and names the faulty one",
        true => "",
    }
}

/// A set of kinds of faults to check for.
///
/// The set that a value of `PYGPU_CHECK` names:
///
/// ```
/// use gpuarray::checking::Checks;
///
/// # fn main() -> gpuarray::Result<()> {
/// let checks = Checks::parse("bounds,races")?;
/// assert_eq!(checks, Checks::BOUNDS | Checks::RACES);
/// assert!(!checks.contains(Checks::UNINITIALISED));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks(u8);

impl Checks {
    /// No checks.
    pub const NONE: Checks = Checks(0);
    /// Accesses outside live allocations, and to freed memory.
    pub const BOUNDS: Checks = Checks(1);
    /// Reads of memory that was never written.
    pub const UNINITIALISED: Checks = Checks(2);
    /// Unordered accesses of two threads to the same memory.
    pub const RACES: Checks = Checks(4);
    /// Threads of a block at different barriers.
    pub const BARRIERS: Checks = Checks(8);
    /// Integer divisions by zero, and misaligned addresses.
    pub const ARITHMETIC: Checks = Checks(16);
    /// All kinds.
    pub const ALL: Checks = Checks(31);
    /// A modifier, not a kind: only the first launches of each kernel are checked; later ones run without checks.
    pub const FIRST: Checks = Checks(32);

    /// Each kind and its name.
    pub const NAMES: [(&'static str, Checks); 5] = [
        ("bounds", Checks::BOUNDS),
        ("uninitialised", Checks::UNINITIALISED),
        ("races", Checks::RACES),
        ("barriers", Checks::BARRIERS),
        ("arithmetic", Checks::ARITHMETIC),
    ];

    /// Returns true if the set contains all of `kinds`.
    pub fn contains(self, kinds: Checks) -> bool {
        self.0 & kinds.0 == kinds.0
    }

    /// Returns true if every launch is checked, so that code is compiled with checks.
    pub fn are_lasting(self) -> bool {
        !self.is_none() && !self.contains(Self::FIRST)
    }

    /// Returns true if the set is empty.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the names of the kinds in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let of_set = Self::NAMES.into_iter().filter(move |(_, kind)| self.contains(*kind));
        of_set.map(|(name, _)| name)
    }

    /// Parses a comma-separated list of kinds, which may include `first`; or `all` (also `1` and other "on" words) or
    /// `none` (also `0` and other "off" words).
    ///
    /// # Errors
    /// `InvalidArgument` that names the unknown kind.
    pub fn parse(text: &str) -> Result<Checks> {
        Self::read(text).ok_or_else(|| {
            let allowed = Self::allowed();
            Error::invalid("checking", format!("checks is {text:?}; allowed are {allowed}"))
        })
    }

    fn read(text: &str) -> Option<Checks> {
        if let Some(is_on) = environment::switch(text) {
            return Some(if is_on { Checks::ALL } else { Checks::NONE });
        }
        let set =
            text.split(',').map(str::trim).try_fold(Checks::NONE, |set, word| match word {
                "all" => Some(set | Checks::ALL),
                "first" => Some(set | Checks::FIRST),
                "none" => Some(set),
                _ => {
                    Self::NAMES.iter().find(|(name, _)| *name == word).map(|(_, kind)| set | *kind)
                }
            })?;
        Some(if set == Checks::FIRST { Checks::ALL | Checks::FIRST } else { set })
    }

    fn allowed() -> String {
        let names: Vec<_> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        format!(
            "{}, with commas between; all; first; none; {}",
            names.join(", "),
            environment::SWITCH
        )
    }
}

impl BitOr for Checks {
    type Output = Checks;

    fn bitor(self, other: Checks) -> Checks {
        Checks(self.0 | other.0)
    }
}

/// The checks of the current launches: a copy of the setting in [`Asked`].
static CURRENT: AtomicU8 = AtomicU8::new(0);

/// The requests for checks.
#[derive(Debug)]
struct Asked {
    /// The checks while no [`Checking`] is alive.
    always: Checks,
    /// The live [`Checking`]s, the newest last; they end in any order.
    begun: Vec<(u64, Checks)>,
    count: u64,
}

static ASKED: ProcessMutex<Asked> = ProcessMutex::new(Asked::new);

impl Asked {
    /// Returns the state before any request: at the start of a process, and in a forked child.
    fn new() -> Asked {
        let always = of_environment().ok().flatten().unwrap_or_default();
        Asked { always, begun: Vec::new(), count: 0 }
    }

    fn apply(&self) {
        let checks = self.begun.last().map_or(self.always, |(_, checks)| *checks);
        CURRENT.store(checks.0, Ordering::Relaxed);
    }
}

/// Returns the checks that apply to launches now.
#[inline]
pub fn current() -> Checks {
    Checks(CURRENT.load(Ordering::Relaxed))
}

/// Checks for faults on every thread while this value lives. When it is dropped, the newest remaining `Checking`
/// applies.
///
/// While checks are on, new allocations are filled with a pattern, so that reads before any write are found.
/// Descriptions of the arrays in new allocations are kept. Freed memory is not reused for a while.
///
/// ```
/// use gpuarray::checking::{Checking, Checks, current};
///
/// {
///     let _checking = Checking::begin(Checks::BOUNDS);
///     assert_eq!(current(), Checks::BOUNDS);
/// }
/// assert!(current().is_none());
/// ```
#[derive(Debug)]
pub struct Checking(u64);

impl Checking {
    /// Starts to check for faults.
    pub fn begin(checks: Checks) -> Checking {
        let mut asked = ASKED.lock();
        asked.count += 1;
        let number = asked.count;
        asked.begun.push((number, checks));
        asked.apply();
        Checking(number)
    }
}

impl Drop for Checking {
    fn drop(&mut self) {
        let mut asked = ASKED.lock();
        asked.begun.retain(|(number, _)| *number != self.0);
        asked.apply();
    }
}

/// Returns the checks that `PYGPU_CHECK` requests, if it is set.
fn of_environment() -> Result<Option<Checks>> {
    environment::parse(VARIABLE, env::var_os(VARIABLE), &Checks::allowed(), Checks::read)
}

/// Applies the checks that `PYGPU_CHECK` requests, if it is set. Backends that support checks call this when they are
/// opened.
///
/// # Errors
/// `InvalidArgument` that names the variable, its value and the allowed values.
pub fn set_from_environment() -> Result<()> {
    if let Some(checks) = of_environment()? {
        let mut asked = ASKED.lock();
        asked.always = checks;
        asked.apply();
    }
    Ok(())
}

/// Information about an allocation, for reports.
#[derive(Clone, Debug, Default)]
struct Note {
    bytes: usize,
    array: Option<String>,
    origin: Option<String>,
    is_freed: bool,
}

#[derive(Debug, Default)]
struct Notes {
    by_address: BTreeMap<u64, Note>,
    /// Addresses of freed allocations, the oldest first.
    freed: VecDeque<u64>,
}

/// The maximum number of freed allocations that are remembered.
const MOST_FREED: usize = 1 << 14;

static NOTES: ProcessMutex<Notes> = ProcessMutex::new(Notes::default);

/// Returns the source line of the program that is allocating memory, for reports.
pub type Origin = fn() -> Option<String>;

static ORIGIN: OnceLock<Origin> = OnceLock::new();

/// Sets the function that finds the source line of the program that allocates memory, in the program's own language.
/// Only the first call has an effect.
pub fn set_origin(origin: Origin) {
    let _ = ORIGIN.set(origin);
}

/// Records an allocation. Backends call this while checks are on.
pub fn allocated(address: u64, bytes: usize) {
    let mut notes = NOTES.lock();
    let end = address.saturating_add(bytes.max(1) as u64);
    // Forget the notes about earlier allocations in this range.
    let overlaps = notes.by_address.range(..end).rev();
    let overlaps =
        overlaps.take_while(|(start, note)| start.saturating_add(note.bytes as u64) > address);
    for start in overlaps.map(|(start, _)| *start).collect::<Vec<_>>() {
        notes.by_address.remove(&start);
    }
    notes.by_address.insert(address, Note { bytes, ..Note::default() });
}

/// Records that memory was freed. Backends call this while checks are on.
pub fn freed(address: u64, bytes: usize) {
    let mut notes = NOTES.lock();
    let note = notes.by_address.entry(address).or_default();
    (note.bytes, note.is_freed) = (bytes, true);
    notes.freed.push_back(address);
    if notes.freed.len() > MOST_FREED
        && let Some(oldest) = notes.freed.pop_front()
        && notes.by_address.get(&oldest).is_some_and(|note| note.is_freed)
    {
        notes.by_address.remove(&oldest);
    }
}

/// Records the contents of the memory at `address`, for example `array of shape (3,) and dtype int32`. The first
/// description of an allocation is kept.
pub fn note_content(address: u64, content: impl FnOnce() -> String) {
    let mut notes = NOTES.lock();
    if let Some(note) = notes.by_address.get_mut(&address) {
        note.array.get_or_insert_with(content);
    }
}

/// Records the source line of the program that allocated the memory. The [`Origin`] function is called without any lock
/// held.
pub fn note_origin(address: u64) {
    let needs_origin = |notes: &Notes| {
        notes.by_address.get(&address).is_some_and(|note| note.origin.is_none() && !note.is_freed)
    };
    if !needs_origin(&NOTES.lock()) {
        return;
    }
    let origin = ORIGIN.get().and_then(|origin| origin());
    if let Some(note) = NOTES.lock().by_address.get_mut(&address) {
        note.origin = origin;
    }
}

/// The description of an allocation in reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The address range.
    pub range: Range<u64>,
    /// True if the allocation was freed.
    pub is_freed: bool,
    /// The contents and the source line of the allocation, if known.
    pub text: String,
}

/// Returns a description of the allocation that contains the address or is closest to it. Only allocations made while
/// checks were on are known.
pub fn nearest(address: u64) -> Option<Description> {
    let notes = NOTES.lock();
    let before = notes.by_address.range(..=address).next_back();
    let after = notes.by_address.range(address..).next();
    let distance = |(start, note): &(&u64, &Note)| {
        let behind =
            address.saturating_sub(start.saturating_add(note.bytes.saturating_sub(1) as u64));
        start.saturating_sub(address).max(behind)
    };
    let (&start, note) = before.into_iter().chain(after).min_by_key(distance)?;
    let what = note.array.as_deref().unwrap_or("memory");
    let origin = note.origin.as_deref().map_or(String::new(), |at| format!(", allocated at {at}"));
    Some(Description {
        range: start..start.saturating_add(note.bytes as u64),
        is_freed: note.is_freed,
        text: format!("{what}{origin}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        assert_eq!(Checks::parse("1").expect("all"), Checks::ALL);
        assert_eq!(Checks::parse("all").expect("all"), Checks::ALL);
        assert_eq!(Checks::parse("off").expect("none"), Checks::NONE);
        let two = Checks::parse("bounds, arithmetic").expect("two");
        assert_eq!(two.names().collect::<Vec<_>>(), ["bounds", "arithmetic"]);
        let error = Checks::parse("bounds,limits").expect_err("refused").to_string();
        assert!(error.contains("\"bounds,limits\"") && error.contains("uninitialised"), "{error}");
        let all = Checks::NAMES.iter().fold(Checks::NONE, |all, (_, kind)| all | *kind);
        assert_eq!(all, Checks::ALL);
    }

    #[test]
    fn those_that_check_end_in_any_order() {
        let first = Checking::begin(Checks::BOUNDS);
        let second = Checking::begin(Checks::RACES);
        drop(first);
        assert_eq!(current(), Checks::RACES);
        let third = Checking::begin(Checks::ALL);
        drop(second);
        assert_eq!(current(), Checks::ALL);
        drop(third);
        assert!(current().is_none());
    }

    #[test]
    fn allocations_are_remembered_until_their_addresses_are_used_again() {
        allocated(0x9000_0000, 64);
        allocated(0x9000_0100, 32);
        let found = nearest(0x9000_0040).expect("the first");
        assert_eq!((found.range, found.is_freed), (0x9000_0000..0x9000_0040, false));
        let found = nearest(0x9000_00f0).expect("the second");
        assert_eq!(found.range, 0x9000_0100..0x9000_0120);
        freed(0x9000_0100, 32);
        assert!(nearest(0x9000_0101).expect("the second").is_freed);
        allocated(0x9000_0110, 4);
        let found = nearest(0x9000_0101).expect("a new one");
        assert_eq!((found.range, found.is_freed), (0x9000_0110..0x9000_0114, false));
    }
}
