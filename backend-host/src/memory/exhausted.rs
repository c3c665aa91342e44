//! Errors for exhausted memory, with readable sizes.

use hal::{Error, ErrorKind, Status};

/// Returns the error for a request that exceeds the capacity.
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

/// Returns the error for a request within the capacity that the system refuses.
pub(super) fn refused_by_system(bytes: usize) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        Status::host(Status::OUT_OF_MEMORY),
        "allocate",
        format!(
            "out of memory: {} were asked for, and the system refused them: the machine has no \
             more, or a limit of the process allows no more (ulimit -v)",
            bytes_text(bytes)
        ),
    )
}

/// Formats a number of bytes with a unit.
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
