//! What bytes handed in as code are: drivers are told where code begins and not where it ends,
//! and read past the end of what they take for code.
//!
//! Checked is what says where something lies: counts, offsets and sizes of every form, down to
//! the ELF files inside, whose tables, names and links are followed. What a section of an ELF
//! file holds is the driver's own, and whether it is what the device runs, too.

mod bundle;
mod elf;
mod fatbin;

use hal::error::{Error, Result};

/// The form of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Machine code: a cubin or a code object.
    Elf,
    /// Several code objects of one vendor's compiler in a row: a fat binary or a bundle.
    FatBinary,
    /// PTX, which the driver compiles.
    Ptx,
}

/// Why bytes are not the form that they begin as.
type Checked = std::result::Result<(), String>;

/// Finds out the form, and checks that all of it is there.
///
/// # Errors
/// `InvalidArgument` that says what the bytes are not.
pub fn examine(bytes: &[u8]) -> Result<Format> {
    let (form, checked) = if bytes.starts_with(elf::MAGIC) {
        (Format::Elf, elf::check(bytes))
    } else if bytes.starts_with(&fatbin::MAGIC) {
        (Format::FatBinary, fatbin::check(bytes))
    } else if bytes.starts_with(bundle::PLAIN) {
        (Format::FatBinary, bundle::check(bytes))
    } else if bytes.starts_with(bundle::COMPRESSED) {
        (Format::FatBinary, bundle::check_compressed(bytes))
    } else if is_ptx(bytes) {
        (Format::Ptx, Ok(()))
    } else {
        (Format::Ptx, Err("is no cubin, fatbin, code object, bundle of clang or PTX text".into()))
    };
    checked.map(|()| form).map_err(|what| {
        Error::invalid("load_module", format!("image has {} bytes and {what}", bytes.len()))
    })
}

/// Returns the code in an image that suits a device best: an ELF file itself, or the entry of a plain
/// bundle of clang. The image may be any bytes.
///
/// `None` for everything else: bytes that are neither or are damaged, code for other devices, a
/// compressed bundle, and a bundle where `device` is no [`Target`](super::Target).
pub fn code_for<'a>(image: &'a [u8], device: &str) -> Option<&'a [u8]> {
    match image {
        _ if image.starts_with(elf::MAGIC) => Some(image),
        _ if image.starts_with(bundle::PLAIN) => bundle::code_for(image, &device.parse().ok()?),
        _ => None,
    }
}

/// Returns the content of the first note of type `kind` that `owner` wrote into an ELF file for a
/// machine, by the file's program headers. The file may be any bytes.
///
/// `None` without such a note, for a file of 32 bits, of big-endian numbers or for another machine,
/// and for damaged bytes.
pub fn note<'a>(file: &'a [u8], machine: u16, owner: &str, kind: u32) -> Option<&'a [u8]> {
    elf::note(file, machine.into(), owner.as_bytes(), kind.into())
}

fn is_ptx(bytes: &[u8]) -> bool {
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let is_text = text.iter().all(|&byte| byte >= b' ' || b"\t\r\n\x0c".contains(&byte));
    is_text && text.windows(8).any(|window| window == b".version")
}

/// So many bytes from an offset on; `None` where that is not inside.
fn part(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let end = usize::try_from(offset.checked_add(size)?).ok()?;
    bytes.get(usize::try_from(offset).ok()?..end)
}

/// A little-endian number of 1 to 8 bytes.
fn number(bytes: &[u8], offset: u64, size: u64) -> Option<u64> {
    Some(part(bytes, offset, size)?.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
}
