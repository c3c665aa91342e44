//! The form of code in the program: objects, each compressed by itself so that the first
//! operation unpacks only its own, and an index of them by the source they were made from.
//!
//! All numbers are little-endian:
//! ```text
//! magic; number of objects, of entries, of kernels              8 bytes, 3 x u32
//! objects: where the code begins, its size packed and unpacked  3 x u32 each
//! entries, sorted: a source's key, the object with its kernels  16 bytes, u32 each
//! code                                                          raw DEFLATE each
//! ```

use crate::source::KernelSpec;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use sha2::{Digest, Sha256};

/// Changes with the form.
const MAGIC: [u8; 8] = *b"pygpuao1";
const HEADER: usize = 8 + 3 * 4;
const OBJECT: usize = 3 * 4;
const ENTRY: usize = 16 + 4;

/// Squeezes about 2 % more out of code than 6 does; what it costs is paid in the build.
const LEVEL: u8 = 9;

/// What kernels are found under: a part of the SHA-256 of their specification's source, so
/// that code is used for the very text that it was made from and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceKey([u8; 16]);

impl SourceKey {
    pub(crate) fn of(source: &str) -> SourceKey {
        let mut key = [0; 16];
        key.copy_from_slice(&Sha256::digest(source)[..16]);
        SourceKey(key)
    }
}

/// One compiled unit: compressed code and what is in it.
#[derive(Clone, Debug)]
pub struct PackedObject {
    keys: Vec<SourceKey>,
    kernels: usize,
    size: usize,
    code: Vec<u8>,
}

impl PackedObject {
    /// Returns the code of a unit made of these specifications.
    pub fn new(specs: &[KernelSpec], code: &[u8]) -> PackedObject {
        PackedObject {
            keys: specs.iter().map(|spec| SourceKey::of(&spec.source())).collect(),
            kernels: specs.iter().map(|spec| spec.kernel_names().len()).sum(),
            size: code.len(),
            code: compress_to_vec(code, LEVEL),
        }
    }
}

/// Returns an archive of these objects: what [`EmbeddedTarget::new`](super::EmbeddedTarget::new)
/// takes.
pub fn pack(objects: &[PackedObject]) -> Vec<u8> {
    let numbered = objects.iter().enumerate();
    let mut entries: Vec<(SourceKey, usize)> =
        numbered.flat_map(|(number, it)| it.keys.iter().map(move |key| (*key, number))).collect();
    entries.sort();
    let kernels = objects.iter().map(|it| it.kernels).sum::<usize>();
    let mut archive = MAGIC.to_vec();
    let number = |value: usize| (value as u32).to_le_bytes();
    for value in [objects.len(), entries.len(), kernels] {
        archive.extend(number(value));
    }
    let mut start = HEADER + OBJECT * objects.len() + ENTRY * entries.len();
    for PackedObject { size, code, .. } in objects {
        for value in [start, code.len(), *size] {
            archive.extend(number(value));
        }
        start += code.len();
    }
    for (key, object) in entries {
        archive.extend(key.0);
        archive.extend(number(object));
    }
    objects.iter().for_each(|it| archive.extend(&it.code));
    archive
}

/// The numbers of objects, entries and kernels; zeros for what is no archive.
const fn counts(archive: &[u8]) -> [usize; 3] {
    let mut i = 0;
    if archive.len() < HEADER {
        return [0; 3];
    }
    while i < MAGIC.len() {
        if archive[i] != MAGIC[i] {
            return [0; 3];
        }
        i += 1;
    }
    [number(archive, 8), number(archive, 12), number(archive, 16)]
}

const fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

/// The number of kernels in an archive.
pub(super) const fn kernels(archive: &[u8]) -> usize {
    counts(archive)[2]
}

/// The number of the object with a source's kernels.
pub(super) fn find(archive: &[u8], key: SourceKey) -> Option<usize> {
    let [objects, entries, _] = counts(archive);
    let start = HEADER + OBJECT * objects;
    let entries = archive.get(start..start.checked_add(ENTRY.checked_mul(entries)?)?)?;
    let (entries, _) = entries.as_chunks::<ENTRY>();
    let place = entries.binary_search_by(|entry| entry[..16].cmp(&key.0)).ok()?;
    Some(number(&entries[place], 16)).filter(|object| *object < objects)
}

/// The code of an object; `None` if it is damaged.
pub(super) fn unpack(archive: &[u8], object: usize) -> Option<Vec<u8>> {
    let record = archive.get(HEADER + OBJECT * object..)?.get(..OBJECT)?;
    let [start, packed, size] = [0, 4, 8].map(|at| number(record, at));
    let code = archive.get(start..start.checked_add(packed)?)?;
    let mut unpacked = vec![0; size];
    let written =
        decompress_slice_iter_to_slice(&mut unpacked, std::iter::once(code), false, true).ok()?;
    (written == size).then_some(unpacked)
}
