//! What a code object says of its kernels' parameters: the HIP runtime has no call that does.
//!
//! The layouts are those of ELF-64; of notes of type `NT_AMDGPU_METADATA`, which code objects
//! have since version 3 ("User Guide for AMDGPU Backend" of LLVM); of MessagePack, which such
//! a note is written in; and of plain bundles ("Clang Offload Bundler").
//!
//! Users hand in any bytes: each read is checked, nothing recurses, and no room is made for
//! more than was read.
//!
//! MessagePack is read by hand for this reason. `rmp` (0.8.15) panics when it skips an extension type
//! (`MessageLen`), and recurses; `rmpv` makes a tree of 40 bytes and more for each value, of which a
//! damaged note can have one in each byte.

use hal::Parameter;
use hal::compile::Target;
use hal::driver::vendor::KernelParameters;

/// What a bundle of code for several devices begins with.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// The beginning of a 64-bit ELF file of little-endian numbers.
const ELF: &[u8] = b"\x7fELF\x02\x01";
const EM_AMDGPU: usize = 224;
const PT_NOTE: usize = 4;
const NT_AMDGPU_METADATA: usize = 32;

/// Segments of notes that are looked at; compilers make one.
const NOTE_SEGMENTS: usize = 8;

/// Returns the parameters that a caller passes to each kernel of a code object, by the kernel's
/// name. Of a bundle it is the code that suits the device best, whose architecture is `target`.
///
/// `None` for everything else: bytes that are neither or are damaged, code for other devices,
/// a compressed bundle.
pub fn parameters(image: &[u8], target: &str) -> Option<KernelParameters> {
    let object = if image.starts_with(BUNDLE) { bundled(image, target)? } else { image };
    let mut kernels = None;
    Reader(metadata(object)?).fields(|key, value| {
        match key {
            b"amdhsa.kernels" => kernels = Some(value.list(kernel)?),
            _ => value.skip()?,
        }
        Some(())
    })?;
    Some(kernels?.into_iter().collect())
}

fn part(bytes: &[u8], offset: usize, size: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(size)?)
}

fn little_endian(bytes: &[u8], offset: usize, size: usize) -> Option<usize> {
    let bytes = part(bytes, offset, size)?.iter().rev();
    usize::try_from(bytes.fold(0, |all: u64, byte| all << 8 | u64::from(*byte))).ok()
}

/// The code object in a bundle that suits a device best.
fn bundled<'a>(bundle: &'a [u8], target: &str) -> Option<&'a [u8]> {
    let device: Target = target.parse().ok()?;
    let mut best: Option<(Option<u32>, usize, usize)> = None;
    let mut entry = BUNDLE.len() + 8;
    for _ in 0..little_endian(bundle, BUNDLE.len(), 8)? {
        let field = |offset| little_endian(bundle, entry + offset, 8);
        let (offset, size, length) = (field(0)?, field(8)?, field(16)?);
        let name = part(bundle, entry + 24, length)?;
        entry += 24 + length;
        // As in hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-; the host has an entry, too.
        let name = std::str::from_utf8(name).ok().filter(|it| it.starts_with("hip"));
        let code = name.and_then(|it| it[it.find("-gfx")? + 1..].parse().ok());
        let fit = code.and_then(|it: Target| it.fit(&device));
        if fit.is_some() && best.is_none_or(|(known, ..)| known < fit) {
            best = Some((fit, offset, size));
        }
    }
    let (_, offset, size) = best?;
    part(bundle, offset, size)
}

/// The metadata of a code object, found through its program headers.
fn metadata(object: &[u8]) -> Option<&[u8]> {
    if !object.starts_with(ELF) || little_endian(object, 0x12, 2)? != EM_AMDGPU {
        return None;
    }
    // e_phoff, e_phentsize, e_phnum.
    let (offset, size) = (little_endian(object, 0x20, 8)?, little_endian(object, 0x36, 2)?);
    let headers = object.get(offset..)?.chunks_exact(size.max(56));
    let headers = headers.take(little_endian(object, 0x38, 2)?);
    let notes = headers.filter(|header| little_endian(header, 0, 4) == Some(PT_NOTE));
    notes.take(NOTE_SEGMENTS).find_map(|header| {
        // p_offset, p_filesz.
        let (offset, size) = (little_endian(header, 0x08, 8)?, little_endian(header, 0x20, 8)?);
        metadata_among(part(object, offset, size)?)
    })
}

fn metadata_among(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let field = |offset| little_endian(notes, offset, 4);
        let (name_size, size, kind) = (field(0)?, field(4)?, field(8)?);
        let name = part(notes, 12, name_size)?;
        let start = 12 + name_size.checked_next_multiple_of(4)?;
        let description = part(notes, start, size)?;
        if kind == NT_AMDGPU_METADATA && name == b"AMDGPU\0" {
            return Some(description);
        }
        notes = notes.get(start + size.checked_next_multiple_of(4)?..)?;
    }
}

fn kernel(reader: &mut Reader<'_>) -> Option<(String, Vec<Parameter>)> {
    let (mut name, mut arguments) = (None, Vec::new());
    reader.fields(|key, value| {
        match key {
            b".name" => name = Some(String::from_utf8(value.text()?.to_vec()).ok()?),
            b".args" => arguments = value.list(argument)?,
            _ => value.skip()?,
        }
        Some(())
    })?;
    Some((name?, arguments.into_iter().flatten().collect()))
}

/// A parameter; nothing for one that the runtime adds.
fn argument(reader: &mut Reader<'_>) -> Option<Option<Parameter>> {
    let (mut offset, mut size, mut hidden) = (None, None, None);
    reader.fields(|key, value| {
        match key {
            b".offset" => offset = Some(value.number()?),
            b".size" => size = Some(value.number()?),
            b".value_kind" => hidden = Some(value.text()?.starts_with(b"hidden_")),
            _ => value.skip()?,
        }
        Some(())
    })?;
    let parameter = Parameter { offset: offset?, size: size? };
    Some((!hidden?).then_some(parameter))
}

/// Reads MessagePack from the front of bytes.
struct Reader<'a>(&'a [u8]);

/// A value; what a list or a map of that length holds follows it.
enum Value<'a> {
    Number(usize),
    Text(&'a [u8]),
    List(usize),
    Map(usize),
    Other,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn big_endian(&mut self, size: usize) -> Option<usize> {
        let bytes = self.take(size)?.iter();
        usize::try_from(bytes.fold(0, |all: u64, byte| all << 8 | u64::from(*byte))).ok()
    }

    fn other(&mut self, size: usize) -> Option<Value<'a>> {
        self.take(size).map(|_| Value::Other)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let kind = self.big_endian(1)?;
        // The number of a type is the logarithm of the bytes that a number or length has.
        let power = |first: usize| 1 << (kind - first);
        match kind {
            0x00..=0x7f => Some(Value::Number(kind)),
            0x80..=0x8f => Some(Value::Map(kind & 15)),
            0x90..=0x9f => Some(Value::List(kind & 15)),
            0xa0..=0xbf => self.take(kind & 31).map(Value::Text),
            // Nil, never used, false, true; small negative numbers.
            0xc0..=0xc3 | 0xe0.. => Some(Value::Other),
            // Bytes; bytes behind a type; floats.
            0xc4..=0xc6 => self.big_endian(power(0xc4)).and_then(|size| self.other(size)),
            0xc7..=0xc9 => {
                self.big_endian(power(0xc7)).and_then(|size| self.other(size.checked_add(1)?))
            }
            0xca | 0xcb => self.other(4 * power(0xca)),
            0xcc..=0xcf => self.big_endian(power(0xcc)).map(Value::Number),
            // Negative numbers; a few bytes behind a type.
            0xd0..=0xd3 => self.other(power(0xd0)),
            0xd4..=0xd8 => self.other(1 + power(0xd4)),
            0xd9..=0xdb => {
                self.big_endian(power(0xd9)).and_then(|size| self.take(size)).map(Value::Text)
            }
            0xdc | 0xdd => self.big_endian(2 * power(0xdc)).map(Value::List),
            0xde | 0xdf => self.big_endian(2 * power(0xde)).map(Value::Map),
        }
    }

    fn number(&mut self) -> Option<usize> {
        if let Value::Number(number) = self.value()? { Some(number) } else { None }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        if let Value::Text(text) = self.value()? { Some(text) } else { None }
    }

    fn list<T>(&mut self, element: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let Value::List(length) = self.value()? else { return None };
        (0..length).map(|_| element(self)).collect()
    }

    /// Calls `field` with each key of a map; it reads the value.
    fn fields(&mut self, mut field: impl FnMut(&'a [u8], &mut Self) -> Option<()>) -> Option<()> {
        let Value::Map(length) = self.value()? else { return None };
        (0..length).try_for_each(|_| {
            let key = self.text()?;
            field(key, self)
        })
    }

    /// Reads a value with everything in it.
    fn skip(&mut self) -> Option<()> {
        let mut left: usize = 1;
        while left > 0 {
            left = match self.value()? {
                Value::List(length) => left.checked_add(length)?,
                Value::Map(length) => left.checked_add(length.checked_mul(2)?)?,
                _ => left,
            } - 1;
        }
        Some(())
    }
}
