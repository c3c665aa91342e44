//! Builtin operations that were compiled ahead of time and are part of the program.
//!
//! The facade's build packs them ([`pack`]) and its registry makes them known ([`register`]);
//! a device uses those that [`Target::fit`] it, and only for the very source that they were
//! made from.

use crate::compile::target::Target;
use crate::source::KernelSpec;
use hal::poison::Unpoisoned as _;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use std::fmt;
use std::sync::RwLock;
use xxhash_rust::xxh3::xxh3_128;

// The form of code in the program: objects, each compressed by itself so that the first
// operation unpacks only its own, and an index of them by the source they were made from.
//
// All numbers are little-endian:
// ```text
// magic; number of objects, of entries, of kernels              8 bytes, 3 x u32
// objects: where the code begins, its size packed and unpacked  3 x u32 each
// entries, sorted: a source's key, the object with its kernels  16 bytes, u32 each
// code                                                          raw DEFLATE each
// ```

/// Changes with the form.
const MAGIC: [u8; 8] = *b"pygpuao2";
const HEADER: usize = 8 + 3 * 4;
const OBJECT: usize = 3 * 4;
const ENTRY: usize = 16 + 4;

/// Squeezes about 2 % more out of code than 6 does; what it costs is paid in the build.
const LEVEL: u8 = 9;

/// What kernels are found under: the hash (XXH3, 128 bits) of their specification's source, so
/// that code is used for the very text that it was made from and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceKey([u8; 16]);

impl SourceKey {
    pub(crate) fn of(source: &str) -> SourceKey {
        SourceKey(xxh3_128(source.as_bytes()).to_le_bytes())
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

/// Returns an archive of these objects: what [`EmbeddedTarget::new`]
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
const fn kernels(archive: &[u8]) -> usize {
    counts(archive)[2]
}

/// The number of the object with a source's kernels.
fn find(archive: &[u8], key: SourceKey) -> Option<usize> {
    let [objects, entries, _] = counts(archive);
    let start = HEADER + OBJECT * objects;
    let entries = archive.get(start..start.checked_add(ENTRY.checked_mul(entries)?)?)?;
    let (entries, _) = entries.as_chunks::<ENTRY>();
    let place = entries.binary_search_by(|entry| entry[..16].cmp(&key.0)).ok()?;
    Some(number(&entries[place], 16)).filter(|object| *object < objects)
}

/// The code of an object; `None` if it is damaged.
fn unpack(archive: &[u8], object: usize) -> Option<Vec<u8>> {
    let record = archive.get(HEADER + OBJECT * object..)?.get(..OBJECT)?;
    let [start, packed, size] = [0, 4, 8].map(|at| number(record, at));
    let code = archive.get(start..start.checked_add(packed)?)?;
    let mut unpacked = vec![0; size];
    let written =
        decompress_slice_iter_to_slice(&mut unpacked, std::iter::once(code), false, true).ok()?;
    (written == size).then_some(unpacked)
}

/// Code for one target.
#[derive(Clone, Copy)]
pub struct EmbeddedTarget {
    name: &'static str,
    compiler: &'static str,
    archive: &'static [u8],
}

impl fmt::Debug for EmbeddedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernels, bytes) = (self.kernels(), self.bytes());
        write!(f, "EmbeddedTarget({}, {kernels} kernels, {bytes} bytes)", self.name)
    }
}

impl EmbeddedTarget {
    /// Code for the target of this name (see [`Target`]) by a compiler, as [`pack`] returned it.
    ///
    /// # Safety
    /// Each object of the archive is what the compiler made of the source that it is kept under: devices run it
    /// for that source, in operations that are safe.
    pub const unsafe fn new(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        EmbeddedTarget { name, compiler, archive }
    }

    /// What the code is for: `gfx90a:xnack-`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Name and version of the compiler.
    pub const fn compiler(&self) -> &'static str {
        self.compiler
    }

    /// The number of kernels.
    pub const fn kernels(&self) -> usize {
        kernels(self.archive)
    }

    /// Bytes in the program.
    pub const fn bytes(&self) -> usize {
        self.archive.len()
    }

    /// The code with the kernels of a specification's source, unpacked, if there is any.
    pub fn code(&self, source: &str) -> Option<Vec<u8>> {
        unpack(self.archive, find(self.archive, SourceKey::of(source))?)
    }
}

/// Everything that was registered.
static REGISTERED: RwLock<Vec<EmbeddedTarget>> = RwLock::new(Vec::new());

/// Makes code known to every device of the process, for the operations that it has not run
/// yet. What is registered already counts once.
pub fn register(targets: &[EmbeddedTarget]) {
    let mut registered = REGISTERED.write().unpoisoned();
    for target in targets {
        let known = |it: &EmbeddedTarget| std::ptr::eq(it.archive, target.archive);
        if !registered.iter().any(known) {
            registered.push(*target);
        }
    }
}

/// The names of the targets that code was registered for.
pub(super) fn registered() -> Vec<&'static str> {
    let registered = REGISTERED.read().unpoisoned();
    registered.iter().map(EmbeddedTarget::name).collect()
}

/// An object among what was registered: its archive's address and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(usize, usize);

/// An object that has kernels of a source.
#[derive(Debug)]
pub struct EmbeddedObject {
    /// Which of the registered objects it is.
    pub id: ObjectId,
    /// What it is for.
    pub target: EmbeddedTarget,
}

impl EmbeddedObject {
    /// The object for a device that is best for it, of those with the kernels of a source.
    pub fn best(device: &str, source: &str) -> Option<EmbeddedObject> {
        let registered = REGISTERED.read().unpoisoned();
        if registered.is_empty() {
            return None;
        }
        let device: Target = device.parse().ok()?;
        let fitting = registered.iter().filter_map(|target| {
            let code: Target = target.name.parse().ok()?;
            Some((code.fit(&device)?, target))
        });
        let key = SourceKey::of(source);
        let found = fitting.filter_map(|(fit, target)| {
            let object = find(target.archive, key)?;
            let id = ObjectId(target.archive.as_ptr() as usize, object);
            Some((fit, EmbeddedObject { id, target: *target }))
        });
        found.max_by_key(|(fit, _)| *fit).map(|(_, found)| found)
    }

    /// Its code; `None` if it is damaged.
    pub fn code(&self) -> Option<Vec<u8>> {
        unpack(self.target.archive, self.id.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::KernelSpec;
    use crate::source::catalogue::catalogue;

    /// Two specifications and another.
    fn specs() -> [KernelSpec; 3] {
        let groups = catalogue();
        [0, 1, 2].map(|group| groups[group].plans[0].spec())
    }

    /// Code that no device is given.
    fn target(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        // SAFETY: it is looked up, and never run.
        unsafe { EmbeddedTarget::new(name, compiler, archive) }
    }

    fn packed() -> (&'static [u8], [KernelSpec; 3], Vec<u8>) {
        let [a, b, other] = specs();
        let code: Vec<u8> = (0..100_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let objects = [PackedObject::new(&[other], b"small"), PackedObject::new(&[a, b], &code)];
        (pack(&objects).leak(), [a, b, other], code)
    }

    #[test]
    fn what_is_packed_is_found_by_its_source() {
        let (archive, [a, b, other], code) = packed();
        let embedded = target("gfx90a", "a compiler", archive);
        assert_eq!((embedded.kernels(), embedded.bytes()), (3, archive.len()));
        assert!(embedded.bytes() < code.len() / 2);
        assert_eq!(embedded.code(&a.source()), Some(code.clone()));
        assert_eq!(embedded.code(&b.source()), Some(code));
        assert_eq!(embedded.code(&other.source()).as_deref(), Some(&b"small"[..]));
        // Another version's source has the same kernels' names.
        assert_eq!(embedded.code(&a.source().replace("    ", "\t")), None);
        let unknown = catalogue()[3].plans[0].spec();
        assert_eq!(embedded.code(&unknown.source()), None);
    }

    #[test]
    fn what_is_damaged_is_no_code() {
        let (whole, [a, ..], _) = packed();
        let key = SourceKey::of(&a.source());
        let object = find(whole, key).expect("it is there");
        for length in (0..whole.len()).step_by(7) {
            let cut = &whole[..length];
            assert_eq!(unpack(cut, object), None);
            find(cut, key);
        }
        for at in 0..400.min(whole.len()) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0xff;
            if let Some(object) = find(&damaged, key) {
                unpack(&damaged, object);
            }
        }
        assert_eq!(target("sm_90", "", b"nothing of the kind").kernels(), 0);
        assert_eq!(target("sm_90", "", b"").kernels(), 0);
    }

    #[test]
    fn devices_get_the_code_that_suits_them_best() {
        let [a, _, other] = specs();
        let object = |code: &'static [u8]| pack(&[PackedObject::new(&[a], code)]).leak() as &[u8];
        let (plain, exact, newer) = (object(b"plain"), object(b"exact"), object(b"newer"));
        let targets = [
            target("gfx90a", "", plain),
            target("gfx90a:xnack-", "", exact),
            target("sm_70", "", newer),
        ];
        register(&targets);
        register(&targets);
        let source = a.source();
        let code =
            |device: &str| EmbeddedObject::best(device, &source).and_then(|found| found.code());
        assert_eq!(code("gfx90a:sramecc+:xnack-").as_deref(), Some(&b"exact"[..]));
        assert_eq!(code("gfx90a:sramecc+:xnack+").as_deref(), Some(&b"plain"[..]));
        assert_eq!(code("sm_75").as_deref(), Some(&b"newer"[..]));
        assert_eq!(code("sm_60"), None);
        assert_eq!(code("the processor"), None);
        assert!(EmbeddedObject::best("sm_75", &other.source()).is_none());
        assert_eq!(registered().iter().filter(|name| **name == "sm_70").count(), 1);
    }
}
