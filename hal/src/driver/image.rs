//! What bytes handed in as code are: drivers read past the end of what they take for code.

use crate::error::{Error, Result};

/// The form of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// Machine code: a cubin or a code object.
    Elf,
    /// Several images of one vendor's compiler in a row.
    Bundle,
    /// PTX, which the driver compiles.
    Text,
}

/// Finds out the form, and checks that all of it is there.
///
/// # Errors
/// `InvalidArgument` that says what the bytes are not.
pub(super) fn examine(bytes: &[u8]) -> Result<Image> {
    let refused = |what: &str| {
        Err(Error::invalid("load_module", format!("image has {} bytes and {what}", bytes.len())))
    };
    let at = |offset: usize, size: usize| -> Option<u64> {
        let part = bytes.get(offset..offset.checked_add(size)?)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(part);
        Some(u64::from_le_bytes(word))
    };
    if bytes.starts_with(b"\x7fELF") {
        // Of a 64-bit ELF file: e_shoff, e_shentsize, e_shnum; e_phoff, e_phentsize, e_phnum.
        let tables = [(0x28, 0x3a, 0x3c), (0x20, 0x36, 0x38)];
        let whole = tables.iter().all(|&(offset, size, number)| {
            let end = |offset: u64, size: u64, number: u64| {
                size.checked_mul(number).and_then(|bytes| offset.checked_add(bytes))
            };
            match (at(offset, 8), at(size, 2), at(number, 2)) {
                (Some(offset), Some(size), Some(number)) => {
                    number == 0
                        || end(offset, size, number).is_some_and(|end| end <= bytes.len() as u64)
                }
                _ => false,
            }
        });
        return if whole { Ok(Image::Elf) } else { refused("is an ELF file cut short") };
    }
    // A fatbin: magic, version (16 bits), bytes of the header (16), of what follows (64).
    if at(0, 4) == Some(0xba55_ed50) {
        let end = at(6, 2).zip(at(8, 8)).and_then(|(header, body)| header.checked_add(body));
        return match end {
            Some(end) if end <= bytes.len() as u64 => Ok(Image::Bundle),
            _ => refused("is a fatbin cut short"),
        };
    }
    // What clang makes for HIP, plain and compressed.
    if bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || bytes.starts_with(b"CCOB") {
        return Ok(Image::Bundle);
    }
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let is_text =
        !text.is_empty() && text.iter().all(|&byte| byte >= b' ' || b"\t\r\n\x0c".contains(&byte));
    if is_text && text.windows(8).any(|window| window == b".version") {
        return Ok(Image::Text);
    }
    refused("is no cubin, fatbin, code object or PTX text")
}

#[cfg(test)]
mod tests {
    use super::{Image, examine};

    #[test]
    fn text_is_ptx_if_it_names_its_version() {
        assert_eq!(examine(b"// c\n.version 7.0\n.target sm_50\0").ok(), Some(Image::Text));
        for bytes in [&b""[..], b"\0", b"hello", b".version\x01", b"\0.version 7.0"] {
            assert!(examine(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let mut elf = vec![0; 64];
        elf[..4].copy_from_slice(b"\x7fELF");
        assert_eq!(examine(&elf).ok(), Some(Image::Elf));
        elf[0x28] = 64;
        elf[0x3a] = 64;
        elf[0x3c] = 2;
        assert!(examine(&elf).is_err());
        elf.resize(64 + 128, 0);
        assert_eq!(examine(&elf).ok(), Some(Image::Elf));
        assert!(examine(&elf[..20]).is_err());
        let mut fatbin = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0];
        assert!(examine(&fatbin).is_err());
        fatbin.resize(24, 0);
        assert_eq!(examine(&fatbin).ok(), Some(Image::Bundle));
    }
}
