//! Made-up code objects and bundles with notes that a test chooses.

use crate::{LARGEST, Places, places};
use std::time::{Duration, Instant};

#[test]
fn notes_that_claim_too_much_are_refused_soon() {
    let start = Instant::now();
    let long = u32::MAX.to_be_bytes();
    for kind in [0xdb, 0xdd, 0xdf, 0xc6, 0xc9] {
        let claim = [&[kind][..], &long].concat();
        // Nested lists in place of the map, of the list of kernels, and of a skipped value.
        for note in [
            claim.clone(),
            [b"\x81\xaeamdhsa.kernels", &claim[..]].concat(),
            [b"\x81\xa1x", &claim[..], &[0x93; 1 << 20]].concat(),
            [b"\x81\xaeamdhsa.kernels\x91\x82\xa5.name\xa1k\xa5.args", &claim[..]].concat(),
        ] {
            let code = code_object(&note);
            LARGEST.set(0);
            assert_eq!(places(&code, "gfx90a"), None, "{kind:#x}");
            assert!(LARGEST.get() <= 1024, "{} bytes", LARGEST.get());
        }
    }
    // Many segments, each with the same notes.
    let mut file = header(u16::MAX);
    for _ in 0..u16::MAX {
        file.extend(segment(4 << 20, 2 << 20));
    }
    file.resize(6 << 20, 0);
    assert_eq!(places(&file, "gfx90a"), None);
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend(u64::MAX.to_le_bytes());
    bundle.resize(16 << 20, 0);
    assert_eq!(places(&bundle, "gfx90a"), None);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A kernel `k` with a parameter of 8 bytes after a hidden one, and fields of every kind.
const NOTE: &[u8] = b"\x8c\
    \xa1a\xc0\xa1b\xc3\xa1c\xe0\xa1d\xd1\xff\0\xa1e\xca\0\0\0\0\xa1f\xcb\0\0\0\0\0\0\0\0\
    \xa1g\xc4\x02xy\xa1h\xc7\x02\x01xy\xa1i\xd5\x01xy\xa1j\xdc\0\x02\x91\x01\x81\xa1k\xa1v\
    \xa1l\xde\0\x01\xd9\x01m\xcd\x01\0\
    \xaeamdhsa.kernels\xdd\0\0\0\x01\x83\xa2.x\x01\xa5.args\x92\
    \x83\xa7.offset\x00\xa5.size\x08\xab.value_kind\xadhidden_none_x\
    \x84\xab.value_kind\xa8by_value\xa7.offset\xcc\x08\xa5.size\xcd\0\x08\xa5.name\xa1p\
    \xa5.name\xd9\x01k";

#[test]
fn notes_are_read_whatever_else_they_have() {
    let expected = Some(Places::from([("k".to_owned(), vec![(8, 8)])]));
    assert_eq!(places(&code_object(NOTE), "gfx90a"), expected);
    // A kernel without parameters; a note without kernels.
    let none = b"\x81\xaeamdhsa.kernels\x91\x81\xa5.name\xa1k";
    let expected = Some(Places::from([("k".to_owned(), vec![])]));
    assert_eq!(places(&code_object(none), "gfx90a"), expected);
    let empty = b"\x81\xaeamdhsa.kernels\x90";
    assert_eq!(places(&code_object(empty), "gfx90a"), Some(Places::new()));
}

#[test]
fn what_does_not_tell_is_none() {
    let whole = code_object(NOTE);
    let with = |place: usize, byte: u8| {
        let mut other = whole.clone();
        other[place] = byte;
        other
    };
    // 32 bits, big-endian, another machine, no note, a note of another type, a note of another
    // vendor.
    for (place, byte) in [(4, 1), (5, 2), (0x12, 62), (64, 1), (148, 10), (152, b'X')] {
        assert_eq!(places(&with(place, byte), "gfx90a"), None, "{place}");
    }
    for note in [
        &b""[..],
        b"\x80",
        b"\x90",
        b"\xc1",
        b"\x81\xaeamdhsa.kernels\x80",
        b"\x81\xaeamdhsa.kernels\x91\x80",
        b"\x81\xaeamdhsa.kernels\x91\x81\xa5.name\xa1\xff",
        b"\x81\xaeamdhsa.kernels\x91\x81\xa5.name\x01",
        b"\x81\xaeamdhsa.kernels\x91\x82\xa5.name\xa1k\xa5.args\x91\x81\xa5.size\x08",
        b"\x81\x01\x90",
    ] {
        assert_eq!(places(&code_object(note), "gfx90a"), None, "{note:?}");
    }
    for bytes in [&b""[..], b"\x7fELF", b".version 7.0\n\0", b"CCOB\x02\0\x01\0"] {
        assert_eq!(places(bytes, "gfx90a"), None, "{bytes:?}");
    }
}

#[test]
fn of_a_bundle_it_is_the_code_that_suits_the_device_best() {
    let named = |name: &str| {
        code_object(&[b"\x81\xaeamdhsa.kernels\x91\x81\xa5.name\xa1", name.as_bytes()].concat())
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(named);
    let bundle = bundle(&[
        ("host-x86_64-unknown-linux-gnu-", b""),
        ("hip-amdgcn-amd-amdhsa-gfx906", &d),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a", &a),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", &b),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", &c),
        ("openmp-amdgcn-amd-amdhsa--gfx1100", &c),
    ]);
    let found = |device: &str| places(&bundle, device).map(|it| it.into_keys().next());
    for (device, name) in [
        ("gfx90a:sramecc+:xnack+", "a"),
        ("gfx90a:sramecc+:xnack-", "b"),
        ("gfx1030", "c"),
        ("gfx906:sramecc-:xnack-", "d"),
    ] {
        assert_eq!(found(device), Some(Some(name.to_owned())), "{device}");
    }
    for device in ["gfx1100", "gfx908", "sm_90", ""] {
        assert_eq!(found(device), None, "{device}");
    }
}

/// Returns one of AMD's ELF files with a metadata note after another vendor's note.
pub(crate) fn code_object(metadata: &[u8]) -> Vec<u8> {
    let other = [&[4, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0][..], b"GNU\0abc\0"].concat();
    let length = (metadata.len() as u32).to_le_bytes();
    let own = [&[7, 0, 0, 0][..], &length, &[32, 0, 0, 0], b"AMDGPU\0\0", metadata].concat();
    let notes = [other, own].concat();
    let mut file = header(1);
    file.extend(segment(120, notes.len() as u64));
    file.extend(notes);
    file
}

/// Returns the header of an ELF file with this many segments.
fn header(segments: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[0x12] = 224;
    header[0x20] = 64;
    header[0x36] = 56;
    header[0x38..0x3a].copy_from_slice(&segments.to_le_bytes());
    header
}

/// Returns the program header of a note segment.
fn segment(offset: u64, size: u64) -> Vec<u8> {
    let mut segment = vec![0; 56];
    segment[0] = 4;
    segment[8..16].copy_from_slice(&offset.to_le_bytes());
    segment[32..40].copy_from_slice(&size.to_le_bytes());
    segment
}

/// Returns a bundle as clang makes it for several devices.
pub(crate) fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend((entries.len() as u64).to_le_bytes());
    let names: usize = entries.iter().map(|(name, _)| 24 + name.len()).sum();
    let mut offset = bundle.len() + names;
    for (name, code) in entries {
        for number in [offset, code.len(), name.len()] {
            bundle.extend((number as u64).to_le_bytes());
        }
        bundle.extend(name.as_bytes());
        offset += code.len();
    }
    entries.iter().for_each(|(_, code)| bundle.extend(*code));
    bundle
}
