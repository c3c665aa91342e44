//! 64-bit ELF files: cubins and AMD's code objects (System V ABI, "Object Files").
//!
//! The crate `object` is not used, because it only checks what is accessed, so each check here would still be
//! necessary. The tests use it as a second implementation, which must be able to read everything that is
//! accepted here.

use super::{Checked, number, part};

pub(super) const MAGIC: &[u8] = b"\x7fELF";

const HEADER: u64 = 64;
const SECTION: u64 = 64;
const SEGMENT: u64 = 56;
const SYMBOL: u64 = 24;

/// The maximum size of a section or segment in memory, larger than any device's memory.
const MOST_MEMORY: u64 = 1 << 40;

const SHT_NULL: u64 = 0;
const SHT_SYMTAB: u64 = 2;
const SHT_STRTAB: u64 = 3;
const SHT_RELA: u64 = 4;
const SHT_NOBITS: u64 = 8;
const SHT_REL: u64 = 9;
const SHT_DYNSYM: u64 = 11;
/// Section numbers from here on have special meanings.
const SHN_LORESERVE: u64 = 0xff00;
const PT_LOAD: u64 = 1;
const PT_NOTE: u64 = 4;
/// The maximum number of note segments that are read; compilers generate one.
const NOTE_SEGMENTS: usize = 8;

const EM_CUDA: u64 = 190;
/// Types of CUDA sections that, like `SHT_NOBITS`, may have no bytes in the file: global, local and shared
/// memory.
const CUDA_MEMORY: [u64; 3] = [0x7000_0007, 0x7000_0009, 0x7000_000a];

/// Checks that everything that the headers refer to is inside the file.
pub(super) fn check(file: &[u8]) -> Checked {
    if part(file, 0, HEADER).is_none() {
        return Err("is an ELF file cut short in its header".into());
    }
    // Class, byte order, version.
    if file[4..7] != [2, 1, 1] {
        return Err("is not an ELF file with 64 bits, little-endian numbers and version 1".into());
    }
    let field = |offset, size| number(file, offset, size).unwrap_or(0);
    let sections = Sections::of(file)?;
    for index in 0..sections.count {
        sections
            .check(index)
            .map_err(|what| format!("is a damaged ELF file: section {index} {what}"))?;
    }
    let names = field(0x3e, 2);
    if sections.count > 0 {
        let names = match names {
            0xffff => sections.field(0, 0x28, 4),
            names => names,
        };
        let table =
            sections.strings(names).ok_or("is a damaged ELF file: its sections have no names")?;
        if (0..sections.count).any(|index| sections.field(index, 0, 4) >= table) {
            return Err("is a damaged ELF file: a section has an invalid name".into());
        }
    }
    for (index, Segment { kind, content, memory }) in segments(file)?.enumerate() {
        let fits = |content: &[u8]| content.len() as u64 <= memory && memory <= MOST_MEMORY;
        if content.is_none_or(|content| kind == PT_LOAD && !fits(content)) {
            return Err(format!("is a damaged ELF file: segment {index} is not inside the file"));
        }
    }
    Ok(())
}

/// The segment that a program header describes.
struct Segment<'a> {
    kind: u64,
    /// `None` if the content is not inside the file.
    content: Option<&'a [u8]>,
    /// The size in memory, in bytes.
    memory: u64,
}

fn segments(file: &[u8]) -> Result<impl Iterator<Item = Segment<'_>>, String> {
    let field = |offset, size| number(file, offset, size).unwrap_or(0);
    // e_phoff, e_phentsize, e_phnum.
    let (offset, size, count) = (field(0x20, 8), field(0x36, 2), field(0x38, 2));
    let table = table(file, offset, size, count, SEGMENT, "segments")?;
    Ok((0..count).map(move |index| {
        let field = |offset, size| number(table, index * SEGMENT + offset, size).unwrap_or(0);
        // p_type, p_offset, p_filesz, p_memsz.
        let content = part(file, field(0x08, 8), field(0x20, 8));
        Segment { kind: field(0, 4), content, memory: field(0x28, 8) }
    }))
}

/// Returns the content of the first note with an owner and a type, in a file for a machine.
pub(super) fn note<'a>(file: &'a [u8], machine: u64, owner: &[u8], kind: u64) -> Option<&'a [u8]> {
    // Class and byte order.
    if !file.starts_with(MAGIC) || part(file, 4, 2)? != [2, 1] || number(file, 0x12, 2)? != machine
    {
        return None;
    }
    let notes = segments(file).ok()?.filter(|segment| segment.kind == PT_NOTE);
    notes.take(NOTE_SEGMENTS).find_map(|segment| note_among(segment.content?, owner, kind))
}

fn note_among<'a>(mut notes: &'a [u8], owner: &[u8], wanted: u64) -> Option<&'a [u8]> {
    loop {
        let field = |offset| number(notes, offset, 4);
        let (name_size, size, kind) = (field(0)?, field(4)?, field(8)?);
        let name = part(notes, 12, name_size)?;
        let start = 12 + name_size.next_multiple_of(4);
        let description = part(notes, start, size)?;
        if kind == wanted && name.strip_suffix(b"\0") == Some(owner) {
            return Some(description);
        }
        notes = notes.get(usize::try_from(start + size.next_multiple_of(4)).ok()?..)?;
    }
}

/// Returns a table with `count` entries.
fn table<'a>(
    file: &'a [u8],
    offset: u64,
    size: u64,
    count: u64,
    expected: u64,
    what: &str,
) -> Result<&'a [u8], String> {
    if count == 0 {
        return Ok(&[]);
    }
    let bytes = count.checked_mul(expected).filter(|_| size == expected);
    bytes
        .and_then(|bytes| part(file, offset, bytes))
        .ok_or_else(|| format!("is an ELF file cut short: its {count} {what} are not all inside"))
}

/// The table of sections.
struct Sections<'a> {
    file: &'a [u8],
    table: &'a [u8],
    count: u64,
    is_cuda: bool,
}

impl<'a> Sections<'a> {
    fn of(file: &'a [u8]) -> Result<Sections<'a>, String> {
        let field = |offset, size| number(file, offset, size).unwrap_or(0);
        // e_shoff, e_shentsize, e_shnum.
        let (offset, size, mut count) = (field(0x28, 8), field(0x3a, 2), field(0x3c, 2));
        if count == 0 && offset != 0 {
            // The count does not fit in this field: the size of the first section contains it.
            let first = table(file, offset, size, 1, SECTION, "sections")?;
            count = number(first, 0x20, 8).unwrap_or(0);
        }
        let table = table(file, offset, size, count, SECTION, "sections")?;
        Ok(Sections { file, table, count, is_cuda: field(0x12, 2) == EM_CUDA })
    }

    /// Returns a field of a section; 0 if the section does not exist.
    fn field(&self, section: u64, offset: u64, size: u64) -> u64 {
        let at = section.checked_mul(SECTION).and_then(|at| at.checked_add(offset));
        at.and_then(|at| number(self.table, at, size)).unwrap_or(0)
    }

    fn kind(&self, section: u64) -> u64 {
        self.field(section, 0x04, 4)
    }

    fn bytes(&self, section: u64) -> u64 {
        self.field(section, 0x20, 8)
    }

    /// Returns the bytes of a section in the file; `None` if they are incomplete.
    fn content(&self, section: u64) -> Option<&'a [u8]> {
        let kind = self.kind(section);
        match kind == SHT_NULL || kind == SHT_NOBITS {
            true => Some(&[]),
            false => part(self.file, self.field(section, 0x18, 8), self.bytes(section)),
        }
    }

    /// Returns the size of a string table, if all its strings are terminated.
    fn strings(&self, section: u64) -> Option<u64> {
        let is_table = section < self.count && self.kind(section) == SHT_STRTAB;
        let text = self.content(section).filter(|_| is_table)?;
        (text.last() == Some(&0)).then_some(text.len() as u64)
    }

    /// Returns the number of entries of a table without partial entries.
    fn entries(&self, section: u64, size: u64) -> Option<u64> {
        let (bytes, entry) = (self.bytes(section), self.field(section, 0x38, 8));
        (entry == size && bytes.is_multiple_of(size)).then_some(bytes / size)
    }

    fn check(&self, section: u64) -> Result<(), &'static str> {
        let kind = self.kind(section);
        if section == 0 || kind == SHT_NULL {
            return Ok(());
        }
        let may_be_empty = self.is_cuda && CUDA_MEMORY.contains(&kind);
        if self.bytes(section) > MOST_MEMORY {
            return Err("is larger than any memory");
        }
        let content = match self.content(section) {
            Some(content) => content,
            None if may_be_empty => &[],
            None => return Err("is not inside the file"),
        };
        // sh_link, sh_info.
        let (link, info) = (self.field(section, 0x28, 4), self.field(section, 0x2c, 4));
        if link >= self.count {
            return Err("belongs to a section that does not exist");
        }
        match kind {
            SHT_STRTAB if content.last().is_some_and(|last| *last != 0) => {
                Err("is texts of which the last has no end")
            }
            SHT_SYMTAB | SHT_DYNSYM => self.check_symbols(section, content, link),
            SHT_REL | SHT_RELA => {
                let size = if kind == SHT_REL { 16 } else { 24 };
                let count = self.entries(section, size).ok_or("has entries of another size")?;
                let symbols = match link {
                    0 => 1,
                    link => self.entries(link, SYMBOL).ok_or("belongs to no table of symbols")?,
                };
                let symbol = |entry| number(content, entry * size + 12, 4).unwrap_or(u64::MAX);
                if info >= self.count || (0..count).any(|entry| symbol(entry) >= symbols) {
                    return Err("relocates bytes that do not exist");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_symbols(&self, section: u64, content: &[u8], link: u64) -> Result<(), &'static str> {
        let count = self.entries(section, SYMBOL).ok_or("has symbols of another size")?;
        if count == 0 {
            return Ok(());
        }
        let texts = self.strings(link).ok_or("has symbols without names")?;
        let is_whole = |symbol: u64| {
            let field = |offset, size| number(content, symbol * SYMBOL + offset, size);
            // st_name, st_shndx.
            let (name, place) = (field(0, 4), field(6, 2));
            name.is_some_and(|name| name < texts)
                && place.is_some_and(|place| place < self.count || place >= SHN_LORESERVE)
        };
        match (0..count).all(is_whole) {
            true => Ok(()),
            false => Err("has a symbol whose name does not exist"),
        }
    }
}
