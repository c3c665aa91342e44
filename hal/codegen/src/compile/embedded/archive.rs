//! The form of embedded code: archives of compressed modules, found by their sources.

use crate::compile::ptx::absolute;
use xxhash_rust::xxh3::xxh3_64;

// An archive of code: blocks of a few objects each, and an index of their modules by source. A block is compressed
// as a whole, because objects resemble each other; the first use of an operation unpacks the block up to its
// module. An archive may be packed over another one, its base: then each block holds what differs from the base's
// block with the same number. A base may have a base itself. An archive without keys has those of its base, and their
// numbers of modules.
//
// All numbers are little-endian:
// ```text
// magic; checksum of what follows up to the code            8 bytes, u64
// the base's checksum, or 0                                 u64
// LZMA's properties                                         u32
// numbers of blocks, modules, keys and kernels              4 x u32
// blocks: start of the code, its packed and unpacked size   3 x u32 each
// modules: block, start there, length, checksum             4 x u32 each
// keys of sources, sorted                                   8 bytes each
// the number of each key's module                           u16 each
// code                                                      raw LZMA each
// ```

/// The magic number; a new form gets a new one.
pub(super) const MAGIC: [u8; 8] = *b"pygpuao5";
const CHECKSUM: usize = MAGIC.len();
const BASE: usize = CHECKSUM + 8;
const PROPERTIES: usize = BASE + 8;
const COUNTS: usize = PROPERTIES + 4;
pub(super) const HEADER: usize = COUNTS + 4 * 4;
pub(super) const BLOCK: usize = 3 * 4;
pub(super) const MODULE: usize = 4 * 4;
pub(super) const KEY: usize = 8;
pub(super) const NUMBER: usize = 2;

/// The largest size of a block.
const MOST: usize = 1 << 28;

/// The key of kernels: the hash (XXH3, 64 bits) of their specification's source. Code is used for the
/// exact text from which it was compiled only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceKey(pub(super) [u8; KEY]);

impl SourceKey {
    pub(super) fn of(source: &str) -> SourceKey {
        SourceKey(xxh3_64(source.as_bytes()).to_le_bytes())
    }
}

/// Returns the checksum of a module.
pub(super) fn checksum(code: &[u8]) -> u32 {
    xxh3_64(code) as u32
}

/// Returns the distance that matches may reach back.
#[cfg(any(test, feature = "embedded"))]
pub(super) fn window(size: usize, known: &[u8]) -> u32 {
    ((size + known.len()) as u32).max(4096)
}

/// Returns the numbers of blocks, modules, keys and kernels; zeros if the bytes are not an archive.
pub(super) const fn counts(archive: &[u8]) -> [usize; 4] {
    let mut i = 0;
    if archive.len() < HEADER {
        return [0; 4];
    }
    while i < MAGIC.len() {
        if archive[i] != MAGIC[i] {
            return [0; 4];
        }
        i += 1;
    }
    [
        number(archive, COUNTS),
        number(archive, COUNTS + 4),
        number(archive, COUNTS + 8),
        number(archive, COUNTS + 12),
    ]
}

pub(super) const fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

/// The number of kernels in an archive.
pub(super) const fn kernels(archive: &[u8]) -> usize {
    counts(archive)[3]
}

/// The place of a module in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) block: usize,
    /// The first byte in the block.
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) checksum: u32,
}

/// What precedes the code of an archive.
pub(super) struct Index<'a> {
    pub(super) checksum: u64,
    pub(super) base: u64,
    pub(super) properties: u8,
    pub(super) blocks: &'a [[u8; BLOCK]],
    pub(super) modules: &'a [[u8; MODULE]],
    pub(super) keys: &'a [[u8; KEY]],
    pub(super) numbers: &'a [[u8; NUMBER]],
}

impl<'a> Index<'a> {
    /// Returns the index of an archive; `None` if it is damaged.
    pub(super) fn of(archive: &'a [u8]) -> Option<Index<'a>> {
        let [blocks, modules, keys, _] = counts(archive);
        let mut rest = archive.get(HEADER..)?;
        let mut table = |count: usize, size: usize| {
            let (table, behind) = rest.split_at_checked(count.checked_mul(size)?)?;
            rest = behind;
            Some(table)
        };
        let index = Index {
            checksum: u64::from_le_bytes(*archive[CHECKSUM..].first_chunk()?),
            base: u64::from_le_bytes(*archive[BASE..].first_chunk()?),
            properties: archive[PROPERTIES],
            blocks: table(blocks, BLOCK)?.as_chunks().0,
            modules: table(modules, MODULE)?.as_chunks().0,
            keys: table(keys, KEY)?.as_chunks().0,
            numbers: table(keys, NUMBER)?.as_chunks().0,
        };
        let end = archive.len() - rest.len();
        (index.checksum == index_checksum(&archive[BASE..end])).then_some(index)
    }

    /// Returns the index with the keys of the first archive; the next one is its base, and so on.
    pub(super) fn with_keys(archives: &[&'a [u8]]) -> Option<Index<'a>> {
        let (archive, bases) = archives.split_first()?;
        let index = Index::of(archive)?;
        if index.keys.is_empty() && !bases.is_empty() {
            return Index::with_keys(bases);
        }
        Some(index)
    }
}

/// Returns a checksum that is not 0.
pub(super) fn index_checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes).max(1)
}

/// Returns the place of the module with a source's kernels in the first archive; the next one is its base, and so on.
pub(super) fn find(archives: &[&[u8]], key: SourceKey) -> Option<Place> {
    let named = Index::with_keys(archives)?;
    let at = named.keys.binary_search(&key.0).ok()?;
    let index = Index::of(archives.first()?)?;
    let module = index.modules.get(usize::from(u16::from_le_bytes(named.numbers[at])))?;
    let [block, start, length, checksum] = [0, 4, 8, 12].map(|at| number(module, at));
    Some(Place { block, start, length, checksum: checksum as u32 })
}

/// The first `length` bytes of a block of the first archive; the next one is its base, and so on. `None` if one is
/// damaged.
pub(super) fn unpack(archives: &[&[u8]], block: usize, length: Option<usize>) -> Option<Vec<u8>> {
    let (archive, bases) = archives.split_first()?;
    let index = Index::of(archive)?;
    let mut known = Vec::new();
    let mut checksum = 0;
    if let Some(base) = bases.first() {
        let base = Index::of(base)?;
        checksum = base.checksum;
        if block < base.blocks.len() {
            known = unpack(bases, block, None)?;
        }
    }
    if checksum != index.base {
        return None;
    }
    let record = index.blocks.get(block)?;
    let [start, packed, size] = [0, 4, 8].map(|at| number(record, at));
    let code = archive.get(start..start.checked_add(packed)?)?;
    let mut unpacked = vec![0; length.unwrap_or(size)];
    if size > MOST || unpacked.len() > size {
        return None;
    }
    decompress(code, size, index.properties, &known, &mut unpacked)?;
    Some(unpacked)
}

/// A module of the first archive; `None` if that one or one of its bases is damaged.
pub(super) fn module(archives: &[&[u8]], place: Place) -> Option<Vec<u8>> {
    let Place { block, start, length, checksum: expected } = place;
    let mut code = unpack(archives, block, Some(start.checked_add(length)?))?;
    code.drain(..start);
    if checksum(&code) != expected {
        return None;
    }
    absolute(code)
}

/// Decompresses the start of a block.
#[cfg(any(test, feature = "embedded"))]
fn decompress(
    code: &[u8],
    size: usize,
    properties: u8,
    known: &[u8],
    unpacked: &mut [u8],
) -> Option<()> {
    use std::io::Read as _;
    let (size, window) = (size as u64, window(size, known));
    let known = Some(known).filter(|it| !it.is_empty());
    let reader = lzma_rust2::LzmaReader::new_with_props(code, size, properties, window, known);
    reader.ok()?.read_exact(unpacked).ok()
}

/// Without the feature a build does not contain code to decompress.
#[cfg(not(any(test, feature = "embedded")))]
fn decompress(_: &[u8], _: usize, _: u8, _: &[u8], _: &mut [u8]) -> Option<()> {
    None
}
