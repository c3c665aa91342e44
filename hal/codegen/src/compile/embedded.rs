//! Builtin operations that were compiled ahead of time and embedded in the program.
//!
//! The facade's build packs them ([`pack`]), and its registry registers them ([`register`]). A device
//! uses the code that fits it ([`Target::fit`]), and only for the exact source from which it was
//! compiled.

use crate::compile::ptx::PtxUnit;
use crate::compile::ptx::relative::{absolute, relative};
use crate::compile::target::Target;
use crate::source::KernelSpec;
use hal::poison::Unpoisoned as _;
use std::sync::{OnceLock, RwLock};
use std::{fmt, slice};
use xxhash_rust::xxh3::xxh3_128;

// An archive of code: blocks, and an index of their modules by source. Each block is compressed
// separately, so that an operation unpacks only its own block. A dictionary holds text that many
// blocks share; it is compressed also, and unpacked once.
//
// All numbers are little-endian:
// ```text
// magic; number of blocks, of entries, of kernels           8 bytes, 3 x u32
// blocks: start of the code, its packed and unpacked size   3 x u32 each; the first: the dictionary
// entries, sorted: a source's key; its block, the start     16 bytes, 3 x u32 each
//     of its module in the block, and the module's length
// code                                                      raw LZMA each
// ```

/// The magic number; a new form gets a new one.
const MAGIC: [u8; 8] = *b"pygpuao3";
const HEADER: usize = 8 + 3 * 4;
const BLOCK: usize = 3 * 4;
const ENTRY: usize = 16 + 3 * 4;

#[cfg(any(test, feature = "embedded"))]
/// LZMA's `lc`, `lp` and `pb`, chosen for text and for instructions of whole words.
const MODEL: [u32; 3] = [3, 0, 2];

/// The largest size of a block, and of the dictionary.
const MOST: usize = 1 << 28;

/// The key of kernels: the hash (XXH3, 128 bits) of their specification's source. Code is used for the
/// exact text from which it was compiled only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceKey([u8; 16]);

impl SourceKey {
    pub(crate) fn of(source: &str) -> SourceKey {
        SourceKey(xxh3_128(source.as_bytes()).to_le_bytes())
    }
}

/// One compiled unit: its modules and their kernels.
#[derive(Clone, Debug, Default)]
pub struct PackedObject {
    modules: Vec<(Vec<SourceKey>, Vec<u8>)>,
    kernels: usize,
}

impl PackedObject {
    /// Returns the code of a unit made of these specifications, in one module.
    pub fn new(specs: &[KernelSpec], code: &[u8]) -> PackedObject {
        let mut object = PackedObject::default();
        object.add(specs, code.to_vec());
        object
    }

    /// Returns PTX of a unit made of these specifications, in a module for each.
    ///
    /// `None` if the text is not NVRTC's PTX with all of their kernels.
    pub fn of_ptx(specs: &[KernelSpec], text: &[u8]) -> Option<PackedObject> {
        let unit = PtxUnit::parse(std::str::from_utf8(text).ok()?)?;
        let mut object = PackedObject::default();
        for spec in specs {
            let text = unit.module(&spec.kernel_names())?;
            object.add(slice::from_ref(spec), relative(&text));
        }
        Some(object)
    }

    fn add(&mut self, specs: &[KernelSpec], code: Vec<u8>) {
        self.kernels += specs.iter().map(|spec| spec.kernel_names().len()).sum::<usize>();
        let keys = specs.iter().map(|spec| SourceKey::of(&spec.source())).collect();
        self.modules.push((keys, code));
    }

    #[cfg(any(test, feature = "embedded"))]
    fn code(&self) -> Vec<u8> {
        self.modules.iter().flat_map(|(_, code)| code).copied().collect()
    }
}

/// Returns an archive of these objects, for [`EmbeddedTarget::new`].
#[cfg(any(test, feature = "embedded"))]
pub fn pack(objects: &[PackedObject]) -> Vec<u8> {
    /// The size of the dictionary in bytes. It is filled with whole objects from all over the catalogue.
    const DICTIONARY: usize = 64 << 10;
    let mut dictionary = Vec::new();
    for object in objects.iter().step_by(objects.len().div_ceil(48).max(5)) {
        let code = object.code();
        if dictionary.len() + code.len() <= DICTIONARY {
            dictionary.extend(code);
        }
    }
    let kernels = objects.iter().map(|it| it.kernels).sum::<usize>();
    let mut entries: Vec<(SourceKey, [usize; 3])> = Vec::new();
    let mut blocks = vec![(compress(&dictionary, &[]), dictionary.len())];
    let codes: Vec<Vec<u8>> = objects.iter().map(PackedObject::code).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let dictionary = &dictionary;
    let compressed: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let parts = codes.chunks(codes.len().div_ceil(threads).max(1));
        let all = |part: &[Vec<u8>]| part.iter().map(|it| compress(it, dictionary)).collect();
        let running: Vec<_> = parts.map(|part| scope.spawn(move || all(part))).collect();
        let done = running.into_iter().map(|it| it.join().expect("compressing does not panic"));
        done.collect::<Vec<Vec<_>>>().concat()
    });
    for ((object, code), block) in objects.iter().zip(compressed).zip(1..) {
        let mut start = 0;
        for (keys, code) in &object.modules {
            entries.extend(keys.iter().map(|key| (*key, [block, start, code.len()])));
            start += code.len();
        }
        blocks.push((code, start));
    }
    entries.sort();
    let mut archive = MAGIC.to_vec();
    let number = |archive: &mut Vec<u8>, value: usize| {
        archive.extend((value as u32).to_le_bytes());
    };
    for value in [blocks.len(), entries.len(), kernels] {
        number(&mut archive, value);
    }
    let mut start = HEADER + BLOCK * blocks.len() + ENTRY * entries.len();
    for (code, size) in &blocks {
        for value in [start, code.len(), *size] {
            number(&mut archive, value);
        }
        start += code.len();
    }
    for (key, place) in entries {
        archive.extend(key.0);
        place.iter().for_each(|value| number(&mut archive, *value));
    }
    blocks.iter().for_each(|(code, _)| archive.extend(code));
    archive
}

#[cfg(any(test, feature = "embedded"))]
fn compress(code: &[u8], dictionary: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut options = lzma_rust2::LzmaOptions::with_preset(6);
    [options.lc, options.lp, options.pb] = MODEL;
    options.nice_len = 128;
    options.dict_size = window(code.len(), dictionary);
    if !dictionary.is_empty() {
        options.preset_dict = Some(dictionary.to_vec());
    }
    let mut writer = lzma_rust2::LzmaWriter::new_no_header(Vec::new(), &options, false)
        .expect("the options are valid");
    writer.write_all(code).and_then(|()| writer.finish()).expect("memory takes what is written")
}

#[cfg(any(test, feature = "embedded"))]
/// Returns the distance that matches may reach back.
fn window(size: usize, dictionary: &[u8]) -> u32 {
    ((size + dictionary.len()) as u32).max(4096)
}

/// Returns the numbers of objects, entries and kernels; zeros if the bytes are not an archive.
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

/// The place of a module: the number of its block, its first byte there, and its length.
type Place = [usize; 3];

/// Returns the place of the module with a source's kernels.
fn find(archive: &[u8], key: SourceKey) -> Option<Place> {
    let [blocks, entries, _] = counts(archive);
    let start = HEADER + BLOCK * blocks;
    let entries = archive.get(start..start.checked_add(ENTRY.checked_mul(entries)?)?)?;
    let (entries, _) = entries.as_chunks::<ENTRY>();
    let place = entries.binary_search_by(|entry| entry[..16].cmp(&key.0)).ok()?;
    Some([16, 20, 24].map(|at| number(&entries[place], at))).filter(|[block, ..]| *block < blocks)
}

/// The first `length` bytes of a block; `None` if it is damaged.
fn unpack(
    archive: &[u8],
    block: usize,
    length: Option<usize>,
    dictionary: &[u8],
) -> Option<Vec<u8>> {
    let record = archive.get(HEADER + BLOCK * block..)?.get(..BLOCK)?;
    let [start, packed, size] = [0, 4, 8].map(|at| number(record, at));
    let code = archive.get(start..start.checked_add(packed)?)?;
    let mut unpacked = vec![0; length.unwrap_or(size)];
    if size > MOST || unpacked.len() > size {
        return None;
    }
    decompress(code, size, dictionary, &mut unpacked)?;
    Some(unpacked)
}

/// Decompresses the start of a block.
#[cfg(any(test, feature = "embedded"))]
fn decompress(code: &[u8], size: usize, dictionary: &[u8], unpacked: &mut [u8]) -> Option<()> {
    use std::io::Read as _;
    let [lc, lp, pb] = MODEL;
    let known = Some(dictionary).filter(|it| !it.is_empty());
    let mut reader =
        lzma_rust2::LzmaReader::new(code, size as u64, lc, lp, pb, window(size, dictionary), known)
            .ok()?;
    reader.read_exact(unpacked).ok()
}

/// Without the feature a build does not contain code to decompress.
#[cfg(not(any(test, feature = "embedded")))]
fn decompress(_: &[u8], _: usize, _: &[u8], _: &mut [u8]) -> Option<()> {
    None
}

/// Returns the dictionary of an archive; empty if it is damaged, so that its blocks are damaged also.
fn dictionary(archive: &[u8]) -> Vec<u8> {
    unpack(archive, 0, None, &[]).unwrap_or_default()
}

/// A module; `None` if it is damaged.
fn module(archive: &[u8], [block, start, length]: Place, dictionary: &[u8]) -> Option<Vec<u8>> {
    let mut code = unpack(archive, block, Some(start.checked_add(length)?), dictionary)?;
    code.drain(..start);
    absolute(code)
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
    /// The compiler made each object of the archive from the source under which it is stored: devices run the
    /// object for that source, in operations that are safe.
    pub const unsafe fn new(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        EmbeddedTarget { name, compiler, archive }
    }

    /// Returns the name of the target: `gfx90a:xnack-`.
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
        module(self.archive, find(self.archive, SourceKey::of(source))?, &dictionary(self.archive))
    }
}

/// Registered code, with the dictionary of its archive after its first use.
struct Registered {
    target: EmbeddedTarget,
    dictionary: OnceLock<Vec<u8>>,
}

/// All registered code.
static REGISTERED: RwLock<Vec<&'static Registered>> = RwLock::new(Vec::new());

/// Registers code for every device of the process, for operations that the device has not run yet.
/// Registering the same code again has no effect.
pub fn register(targets: &[EmbeddedTarget]) {
    let mut registered = REGISTERED.write().unpoisoned();
    for target in targets {
        let known = |it: &&Registered| std::ptr::eq(it.target.archive, target.archive);
        if !registered.iter().any(known) {
            let new = Registered { target: *target, dictionary: OnceLock::new() };
            registered.push(Box::leak(Box::new(new)));
        }
    }
}

/// The names of the targets that code was registered for.
pub(super) fn registered() -> Vec<&'static str> {
    let registered = REGISTERED.read().unpoisoned();
    registered.iter().map(|it| it.target.name).collect()
}

/// The identity of a registered module: the address of its archive, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(usize, Place);

/// A module that has kernels of a source.
pub struct EmbeddedModule {
    /// The identity of the module.
    pub id: ModuleId,
    found: &'static Registered,
}

impl EmbeddedModule {
    /// Returns the modules that a device may run among those with the kernels of a source, the
    /// best first.
    pub fn all(device: &str, source: &str) -> Vec<EmbeddedModule> {
        let registered = REGISTERED.read().unpoisoned();
        if registered.is_empty() {
            return Vec::new();
        }
        let Ok(device) = device.parse::<Target>() else { return Vec::new() };
        let key = SourceKey::of(source);
        let fitting = registered.iter().filter_map(|found| {
            let code: Target = found.target.name.parse().ok()?;
            let fit = code.fit(&device)?;
            let archive = found.target.archive;
            let id = ModuleId(archive.as_ptr() as usize, find(archive, key)?);
            Some((fit, EmbeddedModule { id, found }))
        });
        let mut fitting: Vec<_> = fitting.collect();
        fitting.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        fitting.into_iter().map(|(_, module)| module).collect()
    }

    /// Returns the target of the code.
    pub fn target(&self) -> &EmbeddedTarget {
        &self.found.target
    }

    /// Its code; `None` if it is damaged.
    pub fn code(&self) -> Option<Vec<u8>> {
        let archive = self.found.target.archive;
        let dictionary = self.found.dictionary.get_or_init(|| dictionary(archive));
        module(archive, self.id.1, dictionary)
    }
}

impl fmt::Debug for EmbeddedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedModule({:?} of {:?})", self.id.1, self.found.target)
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
        [0, 1, 2].map(|group| groups[group].plans[0].spec().clone())
    }

    /// Code that never reaches a device.
    fn target(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        // SAFETY: the code is looked up, and never run.
        unsafe { EmbeddedTarget::new(name, compiler, archive) }
    }

    fn packed() -> (&'static [u8], [KernelSpec; 3], Vec<u8>) {
        let [a, b, other] = specs();
        let code: Vec<u8> = (0..100_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let objects = [
            PackedObject::new(slice::from_ref(&other), b"small"),
            PackedObject::new(&[a.clone(), b.clone()], &code),
        ];
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
        let unknown = catalogue()[3].plans[0].spec().clone();
        assert_eq!(embedded.code(&unknown.source()), None);
    }

    #[test]
    fn what_is_damaged_is_no_code() {
        let (whole, [a, ..], _) = packed();
        let key = SourceKey::of(&a.source());
        let place = find(whole, key).expect("it is there");
        let known = dictionary(whole);
        for length in (0..whole.len()).step_by(7) {
            let cut = &whole[..length];
            assert_eq!(module(cut, place, &known), None);
            find(cut, key);
        }
        for at in 0..400.min(whole.len()) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0xff;
            if let Some(place) = find(&damaged, key) {
                module(&damaged, place, &dictionary(&damaged));
            }
        }
        assert_eq!(target("sm_90", "", b"nothing of the kind").kernels(), 0);
        assert_eq!(target("sm_90", "", b"").kernels(), 0);
    }

    #[test]
    fn devices_get_the_code_that_suits_them_best() {
        let [a, _, other] = specs();
        let object = |code: &'static [u8]| {
            pack(&[PackedObject::new(slice::from_ref(&a), code)]).leak() as &[u8]
        };
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
            |device: &str| EmbeddedModule::all(device, &source).first().and_then(|it| it.code());
        assert_eq!(code("gfx90a:sramecc+:xnack-").as_deref(), Some(&b"exact"[..]));
        assert_eq!(code("gfx90a:sramecc+:xnack+").as_deref(), Some(&b"plain"[..]));
        assert_eq!(code("sm_75").as_deref(), Some(&b"newer"[..]));
        assert_eq!(code("sm_60"), None);
        assert_eq!(code("the processor"), None);
        assert!(EmbeddedModule::all("sm_75", &other.source()).is_empty());
        let names = |device: &str| -> Vec<&str> {
            EmbeddedModule::all(device, &source).iter().map(|it| it.target().name()).collect()
        };
        assert_eq!(names("gfx90a:sramecc+:xnack-"), ["gfx90a:xnack-", "gfx90a"]);
        assert_eq!(registered().iter().filter(|name| **name == "sm_70").count(), 1);
    }
}
