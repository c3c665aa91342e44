//! Archives of code, which the facade's build makes.

use super::PackedObject;
use super::archive::{
    BLOCK, HEADER, Index, KEY, MAGIC, MODULE, NUMBER, Place, SourceKey, checksum, find,
    index_checksum, number, unpack, window,
};
use crate::source::KernelSpec;
use std::collections::HashSet;
use std::io::Write as _;

/// The size in bytes from which a block does not take another object, if each object were compressed by itself. Unpacking
/// a block takes a time that depends on its packed size, which is about half of this: a few milliseconds.
pub(super) const FULL: usize = 128 << 10;

/// The unpacked size in bytes above which a block takes no other object either: PTX packs to a fortieth, and its
/// unpacking takes as long as its unpacked size says.
pub(super) const LONG: usize = 1 << 20;

/// Returns the limit of a block. The first blocks are shorter, because the catalogue begins with common operations.
fn limit(of_later: usize, block: usize) -> usize {
    of_later >> 3_usize.saturating_sub(block)
}

/// Returns an archive of these objects, for [`EmbeddedTarget::new`](super::EmbeddedTarget::new).
///
/// A base, which is an archive of objects of the same units, makes the archive small if its code is similar. The second
/// base is the first one's own, and so on.
pub fn pack(objects: &[PackedObject], bases: &[&[u8]]) -> Vec<u8> {
    let model = objects.first().map_or(TEXT, |object| model(&object.code()));
    let mut modules: Vec<[usize; 4]> = Vec::new();
    // Each key with the number of its module.
    let mut entries: Vec<(SourceKey, usize)> = Vec::new();
    let mut codes: Vec<Vec<u8>> = Vec::new();
    let alone = in_threads(objects.len(), |object| match bases {
        [_, ..] => 0,
        [] => compress(&objects[object].code(), model, &[]).len(),
    });
    let mut size = 0;
    for (object, alone) in objects.iter().zip(alone) {
        // The same units as in the base's block.
        let of_base = |key| find(bases, key).map(|it| it.block);
        let block = object.modules.iter().find_map(|(keys, _)| of_base(*keys.first()?));
        size += alone;
        let length = object.modules.iter().map(|(_, code)| code.len()).sum::<usize>();
        let [full, long] = [FULL, LONG].map(|it| limit(it, codes.len().saturating_sub(1)));
        let is_full = codes.last().is_none_or(|it| size > full || it.len() + length > long);
        if is_full {
            size = alone;
        }
        let block = block.unwrap_or(codes.len() - usize::from(!is_full));
        codes.resize(codes.len().max(block + 1), Vec::new());
        for (keys, code) in &object.modules {
            entries.extend(keys.iter().map(|key| (*key, modules.len())));
            modules.push([block, codes[block].len(), code.len(), checksum(code) as usize]);
            codes[block].extend(code);
        }
    }
    let compressed = in_threads(codes.len(), |block| {
        compress(&codes[block], model, &unpack(bases, block, None).unwrap_or_default())
    });
    entries.sort();
    assert!(modules.len() <= 1 << 16, "{} modules", modules.len());
    let mut keys: Vec<[u8; KEY]> = entries.iter().map(|(key, _)| key.0).collect();
    let mut numbers: Vec<[u8; NUMBER]> =
        entries.iter().map(|(_, number)| (*number as u16).to_le_bytes()).collect();
    if Index::with_keys(bases).is_some_and(|it| it.keys == keys && it.numbers == numbers) {
        (keys, numbers) = (Vec::new(), Vec::new());
    }
    let kernels = objects.iter().map(|it| it.kernels).sum::<usize>();
    let [lc, lp, pb] = model;
    let properties = ((pb * 5 + lp) * 9 + lc) as usize;
    let base = bases.first().and_then(|it| Index::of(it)).map_or(0, |it| it.checksum);
    let number = |value: usize| (value as u32).to_le_bytes();
    let mut index = base.to_le_bytes().to_vec();
    for value in [properties, codes.len(), modules.len(), keys.len(), kernels] {
        index.extend(number(value));
    }
    let entries = (KEY + NUMBER) * keys.len();
    let mut start = HEADER + BLOCK * codes.len() + MODULE * modules.len() + entries;
    for (code, packed) in codes.iter().zip(&compressed) {
        index.extend([start, packed.len(), code.len()].map(number).as_flattened());
        start += packed.len();
    }
    modules.iter().for_each(|module| index.extend(module.map(number).as_flattened()));
    index.extend(keys.as_flattened());
    index.extend(numbers.as_flattened());
    let mut archive = MAGIC.to_vec();
    archive.extend(index_checksum(&index).to_le_bytes());
    archive.extend(index);
    compressed.iter().for_each(|code| archive.extend(code.iter()));
    archive
}

/// Returns the bytes of the first archive that the kernels of these specifications take; the next one is its base, and so
/// on. These are, of the index, their entries and modules, and of each block the part that corresponds to the unpacked
/// size of their modules. Specifications without code take none.
pub fn share(archives: &[&[u8]], specs: &[KernelSpec]) -> usize {
    let Some(index) = archives.first().and_then(|it| Index::of(it)) else { return 0 };
    let find = |spec: &KernelSpec| find(archives, SourceKey::of(&spec.source()));
    let places: Vec<Place> = specs.iter().filter_map(find).collect();
    let packed = |place: &Place| {
        let [packed, size] = [4, 8].map(|at| number(&index.blocks[place.block], at));
        MODULE + packed * place.length / size.max(1)
    };
    let entry = if index.keys.is_empty() { 0 } else { KEY + NUMBER };
    let modules: HashSet<&Place> = places.iter().collect();
    entry * places.len() + modules.into_iter().map(packed).sum::<usize>()
}

/// Returns the results for the numbers below `count`, which all processors compute.
fn in_threads<T: Send>(count: usize, compute: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let compute = &compute;
    let part =
        |first: usize| move || (first..count).step_by(threads).map(compute).collect::<Vec<T>>();
    let parts = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(part(first))).collect();
        running
            .into_iter()
            .map(|it| it.join().expect("compressing does not panic"))
            .collect::<Vec<_>>()
    });
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    (0..count).filter_map(|number| parts[number % threads].next()).collect()
}

/// LZMA's `lc`, `lp` and `pb`.
type Model = [u32; 3];

/// The model for text.
const TEXT: Model = [3, 0, 2];

/// Returns the model for a target's code: NVIDIA's instructions have 16 bytes, and AMD's 4 or 8.
fn model(code: &[u8]) -> Model {
    // The field `e_machine` of an ELF file.
    match code.get(0x12..0x14) {
        Some([190, 0]) => [1, 3, 4],
        Some([224, 0]) => [0, 2, 2],
        _ => TEXT,
    }
}

fn compress(code: &[u8], model: Model, known: &[u8]) -> Vec<u8> {
    let mut options = lzma_rust2::LzmaOptions::with_preset(6);
    [options.lc, options.lp, options.pb] = model;
    options.nice_len = 128;
    options.dict_size = window(code.len(), known);
    if !known.is_empty() {
        options.preset_dict = Some(known.to_vec());
    }
    let mut writer = lzma_rust2::LzmaWriter::new_no_header(Vec::new(), &options, false)
        .expect("the options are valid");
    writer.write_all(code).and_then(|()| writer.finish()).expect("memory takes what is written")
}
