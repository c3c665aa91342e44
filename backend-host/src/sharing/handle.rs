//! The 64-byte handle by which another process finds memory or an event of this one.

use super::process::ProcessIdentity;
use hal::{Error, IpcHandle, Result};

/// The first bytes of every handle of this backend with this layout.
const MAGIC: [u8; 8] = *b"pygpu-h1";

/// The kind of object that a handle refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Memory = 1,
    Event = 2,
}

impl Kind {
    fn name(number: u32) -> &'static str {
        match number {
            1 => "memory",
            2 => "an event",
            _ => "something unknown",
        }
    }
}

/// The fields of a handle.
///
/// The exporter writes the same bytes into the file, one page before the exported object. A handle that is
/// not found there is refused, so a handle is as hard to guess as its nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) kind: Kind,
    /// The exporting process.
    pub(crate) process: ProcessIdentity,
    /// The file descriptor in that process.
    pub(crate) file: u32,
    /// Random bytes, which are also part of the file's name.
    pub(crate) nonce: [u8; 16],
    /// The offset from the start of the file, in bytes.
    pub(crate) offset: u64,
    /// The number of bytes that the exporter allocated.
    pub(crate) length: u64,
}

impl Handle {
    /// Encodes the handle.
    pub(crate) fn to_octets(self) -> IpcHandle {
        let mut octets = [0; 64];
        let parts: [&[u8]; 9] = [
            &MAGIC,
            &(self.kind as u32).to_le_bytes(),
            &self.process.id.to_le_bytes(),
            &self.process.start.to_le_bytes(),
            &self.file.to_le_bytes(),
            &[0; 4],
            &self.nonce,
            &self.offset.to_le_bytes(),
            &self.length.to_le_bytes(),
        ];
        let mut rest = octets.as_mut_slice();
        for part in parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        IpcHandle(octets)
    }

    /// Decodes a handle that another process passed.
    ///
    /// # Errors
    /// `InvalidArgument` for a handle of another library, version or kind.
    pub(crate) fn parse(call: &'static str, octets: &IpcHandle, kind: Kind) -> Result<Handle> {
        let octets = &octets.0;
        let number = |start: usize| u32::from_le_bytes(array(octets, start));
        let long = |start: usize| u64::from_le_bytes(array(octets, start));
        if octets[..8] != MAGIC {
            return Err(Error::invalid(
                call,
                "the handle is not from the host backend: it comes from another backend or \
                 another version, or is \
             damaged",
            ));
        }
        if number(8) != kind as u32 {
            return Err(Error::invalid(
                call,
                format!(
                    "the handle is of {}; a handle of {} is needed",
                    Kind::name(number(8)),
                    Kind::name(kind as u32)
                ),
            ));
        }
        if number(28) != 0 {
            return Err(Error::invalid(call, "the handle is damaged: its reserved octets are set"));
        }
        Ok(Handle {
            kind,
            process: ProcessIdentity { id: number(12), start: long(16) },
            file: number(24),
            nonce: array(octets, 32),
            offset: long(48),
            length: long(56),
        })
    }
}

fn array<const N: usize>(octets: &[u8; 64], start: usize) -> [u8; N] {
    let mut result = [0; N];
    result.copy_from_slice(&octets[start..start + N]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::ErrorKind;

    #[test]
    fn a_handle_keeps_its_parts_and_others_are_refused() {
        let handle = Handle {
            kind: Kind::Memory,
            process: ProcessIdentity { id: 0x0102_0304, start: 0x0506_0708_090a_0b0c },
            file: 77,
            nonce: *b"0123456789abcdef",
            offset: 1 << 40,
            length: 12345,
        };
        let octets = handle.to_octets();
        assert_eq!(Handle::parse("test", &octets, Kind::Memory).ok(), Some(handle));
        for (position, named) in [(0, "not from the host"), (8, "needed"), (29, "reserved")] {
            let mut damaged = octets;
            damaged.0[position] ^= 0x40;
            let error = Handle::parse("test", &damaged, Kind::Memory).expect_err("damaged");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.detail().contains(named), "{error}");
        }
        let error = Handle::parse("test", &octets, Kind::Event).expect_err("another kind");
        assert!(error.detail().contains("memory"), "{error}");
    }
}
