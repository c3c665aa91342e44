//! Bundles, the output of `hipcc --genco`: code for several devices, plain or compressed. Sources:
//! "Clang Offload Bundler" in LLVM's documentation; for compressed ones also its
//! `OffloadBundler.cpp`.

use super::{Checked, elf, number, part};
use crate::compile::Target;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

pub(super) const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// SPIR-V, which runtimes since 7.0 compile themselves.
const SPIRV: &[u8] = &[0x03, 0x02, 0x23, 0x07];
pub(super) const COMPRESSED: &[u8] = b"CCOB";

/// The maximum number of bytes that one byte of DEFLATE (RFC 1951) can expand to.
const DEFLATE_RATIO: u64 = 1032;
/// The maximum number of bytes of a block (RFC 8878).
const ZSTD_BLOCK: u64 = 128 << 10;
const ZSTD_MAGIC: u64 = 0xfd2f_b528;

/// An entry of a plain bundle: its code, and the target as in
/// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.
struct Entry<'a> {
    name: &'a [u8],
    code: &'a [u8],
}

impl Entry<'_> {
    /// Returns true for device code; bundles also have an entry for the host.
    fn is_for_device(&self) -> bool {
        self.name.starts_with(b"hip")
    }
}

/// Returns the entries of a plain bundle. If the bundle is damaged, the last item is an error.
fn entries(bytes: &[u8]) -> impl Iterator<Item = Result<Entry<'_>, String>> {
    let cut = || "is a bundle of clang cut short".to_owned();
    let mut at = PLAIN.len() as u64;
    let mut left = number(bytes, at, 8).ok_or_else(cut);
    at += 8;
    let mut index = 0;
    let mut entry = move || {
        let field = |offset| number(bytes, at.checked_add(offset)?, 8);
        let header = field(0).zip(field(8)).zip(field(16));
        let ((offset, size), length) = header.ok_or_else(cut)?;
        let name = part(bytes, at + 24, length).ok_or_else(cut)?;
        at += 24 + length;
        let code = part(bytes, offset, size).ok_or_else(|| {
            format!("is a damaged bundle of clang: entry {index} is not inside the file")
        })?;
        index += 1;
        Ok(Entry { name, code })
    };
    std::iter::from_fn(move || {
        let read = match std::mem::replace(&mut left, Ok(0)) {
            Ok(0) => return None,
            Ok(count) => entry().inspect(|_| left = Ok(count - 1)),
            Err(error) => Err(error),
        };
        Some(read)
    })
}

/// Checks that every entry of a plain bundle is inside the bundle.
pub(super) fn check(bytes: &[u8]) -> Checked {
    for (index, entry) in entries(bytes).enumerate() {
        let entry = entry?;
        let code = entry.code;
        if entry.is_for_device() && !code.is_empty() {
            // The runtime takes all other code for ELF.
            let checked = match code {
                _ if code.starts_with(elf::MAGIC) => elf::check(code),
                _ if code.starts_with(SPIRV) => Ok(()),
                _ => Err("is not code".into()),
            };
            checked.map_err(|what| format!("is a bundle of clang whose entry {index} {what}"))?;
        }
    }
    Ok(())
}

/// Returns the code in a plain bundle that suits a device best; the first of two that suit equally
/// well.
pub(super) fn code_for<'a>(bytes: &'a [u8], device: &Target) -> Option<&'a [u8]> {
    let mut best: Option<(u32, &[u8])> = None;
    for entry in entries(bytes) {
        let entry = entry.ok()?;
        let name = std::str::from_utf8(entry.name).ok().filter(|_| entry.is_for_device());
        let target = name.and_then(|name| name[name.find("-gfx")? + 1..].parse().ok());
        let Some(fit) = target.and_then(|target: Target| target.fit(device)) else { continue };
        if best.is_none_or(|(known, _)| known < fit) {
            best = Some((fit, entry.code));
        }
    }
    best.map(|(_, code)| code)
}

/// Checks that the compressed data is complete, and expands to the stated number of bytes.
pub(super) fn check_compressed(bytes: &[u8]) -> Checked {
    let cut = || "is a compressed bundle of clang cut short".to_owned();
    let damaged = |what: &str| format!("is a damaged compressed bundle of clang: {what}");
    let (version, method) = number(bytes, 4, 2).zip(number(bytes, 6, 2)).ok_or_else(cut)?;
    // The bytes per size field, and whether the total size is one of the fields. An 8-byte hash
    // follows.
    let (size, has_total) = match version {
        1 => (4, false),
        2 => (4, true),
        3 => (8, true),
        _ => return Err(damaged(&format!("its version is {version}; known are 1 to 3"))),
    };
    let total = match has_total {
        true => number(bytes, 8, size).ok_or_else(cut)?,
        false => bytes.len() as u64,
    };
    let unpacked_at = if has_total { 8 + size } else { 8 };
    let unpacked = number(bytes, unpacked_at, size).ok_or_else(cut)?;
    let header = unpacked_at + size + 8;
    let packed = total.checked_sub(header).and_then(|size| part(bytes, header, size));
    let packed = packed.ok_or_else(cut)?;
    match method {
        0 => {
            let most = DEFLATE_RATIO * packed.len() as u64;
            let limit = usize::try_from(unpacked).ok().filter(|_| unpacked <= most);
            let plain =
                limit.and_then(|limit| decompress_to_vec_zlib_with_limit(packed, limit).ok());
            let plain = plain.filter(|plain| plain.len() as u64 == unpacked);
            let plain = plain.ok_or_else(|| damaged("its data is not what zlib made"))?;
            match plain.starts_with(PLAIN) {
                true => check(&plain),
                false => Err(damaged("no bundle is in it")),
            }
        }
        1 => match zstd_fits(packed, unpacked) {
            Some(true) => Ok(()),
            _ => Err(damaged("its data is not what zstd made")),
        },
        _ => Err(damaged(&format!("its method is {method}; known are 0 and 1"))),
    }
}

/// Returns true if a zstd frame (RFC 8878) may expand to this many bytes; `None` if the frame is
/// incomplete.
fn zstd_fits(frame: &[u8], unpacked: u64) -> Option<bool> {
    if number(frame, 0, 4)? != ZSTD_MAGIC {
        return None;
    }
    let descriptor = number(frame, 4, 1)?;
    let is_single = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][(descriptor & 3) as usize];
    let size = [u64::from(is_single), 2, 4, 8][(descriptor >> 6) as usize];
    let size_at = 5 + u64::from(!is_single) + dictionary;
    let told = number(frame, size_at, size)? + if size == 2 { 256 } else { 0 };
    let mut at = size_at + size;
    let mut most = 0_u64;
    loop {
        let header = number(frame, at, 3)?;
        let (is_last, kind, bytes) = (header & 1 == 1, header >> 1 & 3, header >> 3);
        let (stored, stands_for) = match kind {
            0 => (bytes, bytes),
            1 => (1, bytes),
            2 => (bytes, ZSTD_BLOCK),
            _ => return None,
        };
        at += 3 + stored;
        most += stands_for;
        if is_last {
            break;
        }
    }
    // A checksum may follow.
    part(frame, 0, at + 4 * (descriptor >> 2 & 1))?;
    Some(unpacked <= most && (size == 0 || told == unpacked))
}
