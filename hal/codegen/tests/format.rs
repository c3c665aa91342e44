//! Tests with damaged code of every form: in accepted code, everything that it refers to is inside
//! the bytes.
//!
//! The bytes come from a seeded generator, so failures are reproducible. `PYGPU_FUZZ_ROUNDS` sets
//! the number of randomly damaged images per form (default: 2,000; a million take minutes), and
//! `PYGPU_FUZZ_SEED` sets the generator's seed.

#![allow(clippy::unwrap_used, reason = "an unwrap that fails is a test that fails")]

use gpuarray_codegen::compile::format::{Format, examine};
use miniz_oxide::deflate::compress_to_vec_zlib;
use object::elf::{FileHeader64, SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, SymbolIndex};

const CUDA: u16 = 190;
const AMDGPU: u16 = 224;

fn put(bytes: &mut [u8], at: usize, number: u64, size: usize) {
    bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
}

fn get(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// A section: name, type, content, link, info, entry size.
type Section = (u64, u64, Vec<u8>, u64, u64, u64);

/// Returns an ELF file with code, symbols, their names, a relocation, shared memory and a segment.
fn elf(machine: u16) -> Vec<u8> {
    let mut symbols = vec![0; 24 * 3];
    for (number, name) in [(1, 1), (2, 8)] {
        put(&mut symbols, 24 * number, name, 4);
        put(&mut symbols, 24 * number + 6, 1, 2);
    }
    let mut relocation = vec![0; 24];
    put(&mut relocation, 8, 2 << 32 | 1, 8);
    // Memory sections do not have bytes in a cubin, so their size may exceed the file's.
    let memory = if machine == CUDA { 0x7000_000a } else { 8 };
    let sections: [Section; 6] = [
        (0, 0, vec![], 0, 0, 0),
        (1, 1, vec![0x90; 40], 0, 0, 0),
        (7, 2, symbols, 3, 1, 24),
        (13, 3, b"\0kernel\0other\0".to_vec(), 0, 0, 0),
        (19, 4, relocation, 2, 1, 24),
        (25, memory, vec![], 0, 0, 0),
    ];
    let names = b"\0.text\0.syms\0.strs\0.rela\0.shared\0".to_vec();
    let mut file = vec![0; 64 + 56];
    let mut headers = Vec::new();
    for (name, kind, content, link, info, entry) in
        sections.into_iter().chain([(0, 3, names, 0, 0, 0)])
    {
        let mut header = vec![0; 64];
        let size = if kind == memory { 1 << 20 } else { content.len() as u64 };
        let fields = [(0, name, 4), (4, kind, 4), (0x18, file.len() as u64, 8), (0x20, size, 8)];
        let more = [(0x28, link, 4), (0x2c, info, 4), (0x38, entry, 8)];
        for (at, number, size) in fields.into_iter().chain(more) {
            put(&mut header, at, number, size);
        }
        file.extend(content);
        headers.push(header);
    }
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let table = file.len() as u64;
    for (at, number, size) in [
        (0x10, 2, 2),
        (0x12, u64::from(machine), 2),
        (0x20, 64, 8),
        (0x28, table, 8),
        (0x36, 56, 2),
        (0x38, 1, 2),
        (0x3a, 64, 2),
        (0x3c, headers.len() as u64, 2),
        (0x3e, headers.len() as u64 - 1, 2),
        // The segment, which is loaded, and consists of the code.
        (64, 1, 4),
        (64 + 0x08, 120, 8),
        (64 + 0x20, 40, 8),
        (64 + 0x28, 4096, 8),
    ] {
        put(&mut file, at, number, size);
    }
    file.extend(headers.concat());
    file
}

fn fatbin() -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, code) in [(2, elf(CUDA)), (1, b".version 8.0\n\0".to_vec())] {
        let mut header = vec![0; 64];
        for (at, number, size) in [(0, kind, 2), (4, 64, 4), (8, code.len() as u64, 8)] {
            put(&mut header, at, number, size);
        }
        body.extend(header);
        body.extend(code);
    }
    let mut whole = vec![0; 16];
    for (at, number, size) in
        [(0, 0xba55_ed50, 4), (4, 1, 2), (6, 16, 2), (8, body.len() as u64, 8)]
    {
        put(&mut whole, at, number, size);
    }
    whole.extend(body);
    whole
}

fn bundle() -> Vec<u8> {
    let code = elf(AMDGPU);
    let entries =
        [("host-x86_64-unknown-linux--", &[][..]), ("hipv4-amdgcn-amd-amdhsa--gfx90a", &code)];
    let header = 32 + entries.iter().map(|(name, _)| 24 + name.len()).sum::<usize>();
    let mut whole = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    whole.extend((entries.len() as u64).to_le_bytes());
    for (name, code) in entries {
        for number in [header, code.len(), name.len()] {
            whole.extend((number as u64).to_le_bytes());
        }
        whole.extend(name.as_bytes());
    }
    whole.extend(&code);
    whole
}

/// Returns a zstd frame with the bytes in two blocks: a raw block, and one that repeats a byte.
fn zstd(plain: &[u8]) -> Vec<u8> {
    let last = plain[plain.len() - 1];
    let same = plain.iter().rev().take_while(|byte| **byte == last).count();
    let raw = &plain[..plain.len() - same];
    // A single segment, and the unpacked size in 8 bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((plain.len() as u64).to_le_bytes());
    frame.extend(&((raw.len() as u32) << 3).to_le_bytes()[..3]);
    frame.extend(raw);
    frame.extend(&((same as u32) << 3 | 1 << 1 | 1).to_le_bytes()[..3]);
    frame.push(last);
    frame
}

fn compressed(version: u16, method: u16) -> Vec<u8> {
    let plain = bundle();
    let packed = if method == 0 { compress_to_vec_zlib(&plain, 6) } else { zstd(&plain) };
    let size = if version == 3 { 8 } else { 4 };
    let header = 8 + size * if version == 1 { 1 } else { 2 } + 8;
    let mut whole = b"CCOB".to_vec();
    whole.extend(version.to_le_bytes());
    whole.extend(method.to_le_bytes());
    let mut number = |number: usize| whole.extend(&(number as u64).to_le_bytes()[..size]);
    if version > 1 {
        number(header + packed.len());
    }
    number(plain.len());
    whole.extend([0x5a; 8]);
    whole.extend(packed);
    whole
}

fn ptx() -> Vec<u8> {
    b"// a comment\n.version 7.0\n.target sm_50\n.entry k() { ret; }\n\0".to_vec()
}

/// Returns every form, with its name and the expected result.
fn whole() -> Vec<(String, Vec<u8>, Format)> {
    let mut all = vec![
        ("cubin".to_owned(), elf(CUDA), Format::Elf),
        ("code object".to_owned(), elf(AMDGPU), Format::Elf),
        ("fatbin".to_owned(), fatbin(), Format::FatBinary),
        ("bundle".to_owned(), bundle(), Format::FatBinary),
        ("ptx".to_owned(), ptx(), Format::Ptx),
    ];
    for version in 1..=3 {
        for (method, name) in [(0, "zlib"), (1, "zstd")] {
            let name = format!("compressed bundle {version} {name}");
            all.push((name, compressed(version, method), Format::FatBinary));
        }
    }
    all
}

/// Reads everything that an ELF file refers to, as a driver may, with another implementation of the
/// format.
fn read_elf(bytes: &[u8]) {
    let header = FileHeader64::<Endianness>::parse(bytes).unwrap();
    let endian = header.endian().unwrap();
    for segment in header.program_headers(endian, bytes).unwrap() {
        segment.data(endian, bytes).unwrap();
    }
    let sections = header.sections(endian, bytes).unwrap();
    let counts = |table: usize| sections.iter().nth(table).map_or(0, |it| it.sh_size(endian) / 24);
    for (index, section) in sections.iter().enumerate().skip(1) {
        let kind = section.sh_type(endian);
        let has_none = [SHT_NULL, SHT_NOBITS].contains(&kind)
            || header.e_machine(endian) == CUDA
                && [0x7000_0007, 0x7000_0009, 0x7000_000a].contains(&kind);
        if has_none {
            continue;
        }
        let data = section.data(endian, bytes).unwrap();
        sections.section_name(endian, section).unwrap();
        if let Some(table) =
            section.symbols(endian, bytes, &sections, object::SectionIndex(index)).unwrap()
        {
            for symbol in table.symbols() {
                table.symbol_name(endian, symbol).unwrap();
            }
        }
        if [SHT_REL, SHT_RELA].contains(&kind) {
            let size = if kind == SHT_REL { 16 } else { 24 };
            let most = counts(section.sh_link(endian) as usize).max(1);
            for entry in data.chunks_exact(size) {
                let symbol = SymbolIndex(get(entry, 12, 4) as usize);
                assert!((symbol.0 as u64) < most, "{symbol:?}");
            }
        }
    }
}

/// Reads everything that an accepted image refers to; panics if something is outside.
fn read(bytes: &[u8], form: Format) {
    match form {
        Format::Elf => read_elf(bytes),
        Format::Ptx => assert!(std::str::from_utf8(bytes).is_ok() || !bytes.is_ascii()),
        Format::FatBinary if bytes.starts_with(b"CCOB") => {
            let size = if get(bytes, 4, 2) == 3 { 8 } else { 4 };
            let total =
                if get(bytes, 4, 2) == 1 { bytes.len() } else { get(bytes, 8, size) as usize };
            let _ = &bytes[24..total];
        }
        Format::FatBinary if bytes.starts_with(b"__CLANG") => {
            let mut at = 32;
            for _ in 0..get(bytes, 24, 8) {
                let [offset, size, name] = [0, 8, 16].map(|it| get(bytes, at + it, 8) as usize);
                let code = &bytes[offset..offset + size];
                if bytes[at + 24..at + 24 + name].starts_with(b"hip")
                    && code.starts_with(b"\x7fELF")
                {
                    read_elf(code);
                }
                at += 24 + name;
            }
        }
        Format::FatBinary => {
            let (mut at, body) = (get(bytes, 6, 2) as usize, get(bytes, 8, 8) as usize);
            let end = at + body;
            while at < end {
                let (header, size) =
                    (get(bytes, at + 4, 4) as usize, get(bytes, at + 8, 8) as usize);
                let code = &bytes[at + header..at + header + size];
                if code.starts_with(b"\x7fELF") {
                    read_elf(code);
                }
                at += header + size;
            }
            assert_eq!(at, end);
        }
        other => panic!("{other:?} is no form that the test knows"),
    }
}

/// Examines the bytes, and reads them if they are accepted; returns true if they are.
fn accepted(bytes: &[u8]) -> bool {
    // A separate allocation, so that a memory checker finds reads past its end.
    let block = bytes.to_vec().into_boxed_slice();
    match examine(&block) {
        Ok(form) => {
            read(&block, form);
            true
        }
        Err(error) => {
            let named = format!("image has a length of {} and ", bytes.len());
            assert!(error.detail().starts_with(&named), "{error}");
            false
        }
    }
}

#[test]
fn whole_images_are_what_they_are() {
    for (name, bytes, form) in whole() {
        assert_eq!(examine(&bytes).ok(), Some(form), "{name}: {:?}", examine(&bytes));
        assert!(accepted(&bytes));
        let longer = [&bytes[..], &[0; 64]].concat();
        assert_eq!(examine(&longer).is_ok(), form != Format::Ptx, "{name} with more behind");
    }
}

#[test]
fn what_is_cut_is_refused_at_every_length() {
    for (name, bytes, form) in whole() {
        for end in 0..bytes.len() {
            let cut = accepted(&bytes[..end]);
            // Text ends anywhere, without a terminator.
            let may = form == Format::Ptx && end >= "// a comment\n.version".len();
            assert_eq!(cut, may, "{name}, {end} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn every_bit_may_be_another() {
    for (name, bytes, _) in whole() {
        let mut refused = 0;
        let mut damaged = bytes.clone();
        for bit in 0..8 * bytes.len() {
            damaged[bit / 8] ^= 1 << (bit % 8);
            refused += usize::from(!accepted(&damaged));
            damaged[bit / 8] = bytes[bit / 8];
        }
        assert!(refused >= 32, "{name}: {refused}");
    }
}

#[test]
fn every_number_may_be_huge() {
    let numbers =
        [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 1 << 31, u64::from(u32::MAX), 1 << 40, 1 << 62]
            .into_iter()
            .chain([u64::MAX / 2, u64::MAX - 63, u64::MAX - 15, u64::MAX - 7, u64::MAX]);
    let numbers: Vec<u64> = numbers.collect();
    for (_, bytes, _) in whole() {
        for at in 0..bytes.len() {
            for size in [2, 4, 8] {
                for &number in &numbers {
                    let mut damaged = bytes.clone();
                    if at + size <= bytes.len() {
                        put(&mut damaged, at, number, size);
                        accepted(&damaged);
                    }
                }
            }
        }
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect(name))
}

#[test]
fn damage_at_random_is_found_or_harmless() {
    let rounds = setting("PYGPU_FUZZ_ROUNDS", 2000);
    let mut state = setting("PYGPU_FUZZ_SEED", 1);
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let all = whole();
    let (mut taken, mut refused) = (0, 0);
    for (_, bytes, _) in &all {
        for _ in 0..rounds {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random(4) {
                let at = random(damaged.len());
                match random(6) {
                    0 => damaged[at] = random(256) as u8,
                    1 => damaged[at] ^= 1 << random(8),
                    2 => damaged.truncate(at.max(1)),
                    3 => {
                        let size = [2, 4, 8][random(3)].min(damaged.len() - at);
                        let number = [random(1 << 10) as u64, random(1 << 30) as u64, u64::MAX];
                        put(&mut damaged, at, number[random(3)], size);
                    }
                    // A part of this or another image, copied to another place.
                    4 => {
                        let other = &all[random(all.len())].1;
                        let from = random(other.len());
                        let size = random(64).min(other.len() - from).min(damaged.len() - at);
                        damaged[at..at + size].copy_from_slice(&other[from..from + size]);
                    }
                    _ => {
                        let size = random(16);
                        damaged.splice(at..at, (0..size).map(|it| it as u8));
                    }
                }
            }
            match accepted(&damaged) {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    assert!(taken > rounds / 10 && refused > rounds, "{taken} {refused}");
}
