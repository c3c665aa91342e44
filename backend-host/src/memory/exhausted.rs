//! The errors of running out of memory, with numbers that people can read.

use hal::{Error, ErrorKind, Status};

/// The capacity has no room for so many bytes.
pub(super) fn exhausted(bytes: usize, used: usize, capacity: usize) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        Status::host(Status::OUT_OF_MEMORY),
        "allocate",
        format!(
            "out of memory: {} were asked for, {} are used and {} are available of {}",
            bytes_text(bytes),
            bytes_text(used),
            bytes_text(capacity.saturating_sub(used)),
            bytes_text(capacity)
        ),
    )
}

/// The system has no such memory although the capacity would allow it.
pub(super) fn refused_by_system(bytes: usize) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        Status::host(Status::OUT_OF_MEMORY),
        "allocate",
        format!(
            "out of memory: {} were asked for, and the system refused them, which it does where \
             the machine or a limit of the process (ulimit -v) has no more",
            bytes_text(bytes)
        ),
    )
}

/// A number of bytes as people write it.
pub(crate) fn bytes_text(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    match unit {
        None => format!("{bytes} bytes"),
        Some(name) => format!("{bytes} bytes ({value:.1} {name})"),
    }
}
