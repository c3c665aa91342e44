//! Checks the format of bytes that are passed in as code. Drivers get only the address of the code,
//! and read past its end if it is damaged.
//!
//! The checks cover everything that locates data: the counts, offsets and sizes of every form,
//! including those of contained ELF files, whose tables, names and links are followed. The contents
//! of an ELF file's sections are left to the driver, as is the check that the device can run the
//! code.

mod bundle;
mod elf;

use hal::error::{Error, Result};

/// The form of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Machine code: a cubin or a code object.
    Elf,
    /// Several code objects of one vendor's compiler: a fat binary or a bundle.
    FatBinary,
    /// PTX, which the driver compiles.
    Ptx,
}

/// The reason why bytes do not have the form that their start indicates.
type Checked = std::result::Result<(), String>;

/// Determines the form of the bytes, and checks that they are complete.
///
/// # Errors
/// `InvalidArgument` that says which form the bytes lack.
pub fn examine(bytes: &[u8]) -> Result<Format> {
    let (form, checked) = if bytes.starts_with(elf::MAGIC) {
        (Format::Elf, elf::check(bytes))
    } else if bytes.starts_with(&FATBIN) {
        (Format::FatBinary, check_fatbin(bytes))
    } else if bytes.starts_with(bundle::PLAIN) {
        (Format::FatBinary, bundle::check(bytes))
    } else if bytes.starts_with(bundle::COMPRESSED) {
        (Format::FatBinary, bundle::check_compressed(bytes))
    } else if is_ptx(bytes) {
        (Format::Ptx, Ok(()))
    } else {
        (
            Format::Ptx,
            Err("is not a cubin, fatbin, code object, bundle of clang or PTX text".into()),
        )
    };
    checked.map(|()| form).map_err(|what| {
        Error::invalid("load_module", format!("image has a length of {} and {what}", bytes.len()))
    })
}

/// Returns the code in an image that suits a device best: an ELF file itself, or the entry of an
/// uncompressed clang bundle. The image may be any bytes.
///
/// Returns `None` for everything else: other or damaged bytes, code for other devices, a compressed
/// bundle, and a bundle if `device` is not a valid [`Target`](super::Target).
pub fn code_for<'a>(image: &'a [u8], device: &str) -> Option<&'a [u8]> {
    match image {
        _ if image.starts_with(elf::MAGIC) => Some(image),
        _ if image.starts_with(bundle::PLAIN) => bundle::code_for(image, &device.parse().ok()?),
        _ => None,
    }
}

/// Returns the content of the first note of type `kind` from `owner` in an ELF file for a machine,
/// found through the file's program headers. The file may be any bytes.
///
/// Returns `None` if no such note exists, for a 32-bit or big-endian file, for another machine, and
/// for damaged bytes.
pub fn note<'a>(file: &'a [u8], machine: u16, owner: &str, kind: u32) -> Option<&'a [u8]> {
    elf::note(file, machine.into(), owner.as_bytes(), kind.into())
}

fn is_ptx(bytes: &[u8]) -> bool {
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let is_text = text.iter().all(|&byte| byte >= b' ' || b"\t\r\n\x0c".contains(&byte));
    is_text && text.windows(8).any(|window| window == b".version")
}

/// Returns `size` bytes from an offset; `None` if they are not inside `bytes`.
fn part(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let end = usize::try_from(offset.checked_add(size)?).ok()?;
    bytes.get(usize::try_from(offset).ok()?..end)
}

/// Reads a little-endian number of 1 to 8 bytes.
fn number(bytes: &[u8], offset: u64, size: u64) -> Option<u64> {
    Some(part(bytes, offset, size)?.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
}

// Fat binaries, in which nvcc packs code for several devices: a header, then entries of cubins and PTX. NVIDIA does
// not document the format; this is the layout that cuobjdump prints and that other tools use.

const FATBIN: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
const FATBIN_HEADER: u64 = 16;
/// The first bytes of an entry's header, which contain the entry's size.
const FATBIN_ENTRY: u64 = 16;

/// Checks that the entries fill the body, because a driver walks from one entry to the next.
fn check_fatbin(bytes: &[u8]) -> Checked {
    let cut = || "is a fatbin cut short".to_owned();
    // The sizes of the header (16 bits) and of the rest (64 bits).
    let (header, body) = number(bytes, 6, 2).zip(number(bytes, 8, 8)).ok_or_else(cut)?;
    if header < FATBIN_HEADER {
        return Err("is a damaged fatbin: its header has no room".into());
    }
    let mut rest = part(bytes, header, body).ok_or_else(cut)?;
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let damaged = || format!("is a damaged fatbin: entry {index} is not inside the file");
        // The sizes of the entry's header (32 bits) and of its code (64 bits).
        let (header, size) = number(rest, 4, 4).zip(number(rest, 8, 8)).ok_or_else(damaged)?;
        let whole =
            header.checked_add(size).filter(|_| header >= FATBIN_ENTRY).ok_or_else(damaged)?;
        let entry = part(rest, 0, whole).ok_or_else(damaged)?;
        let code = &entry[header as usize..];
        if code.starts_with(elf::MAGIC) {
            elf::check(code).map_err(|what| format!("is a fatbin whose entry {index} {what}"))?;
        }
        rest = &rest[entry.len()..];
    }
    Ok(())
}
