//! The status of an object's last call.

use super::{Api, Status};
use std::sync::atomic::{AtomicU64, Ordering};

/// A status that any thread can read and set: what an object keeps of its last call.
///
/// A new one is a success.
#[derive(Debug, Default)]
pub struct AtomicStatus(AtomicU64);

impl AtomicStatus {
    /// Returns an object whose status is success.
    pub const fn new() -> AtomicStatus {
        // `Api::Host` is 0, as is the code of success.
        AtomicStatus(AtomicU64::new(0))
    }

    /// Returns the status that was set last.
    pub fn load(&self) -> Status {
        let bits = self.0.load(Ordering::Relaxed);
        // Only `store` writes the number of an interface.
        let api = Api::ALL.get((bits >> 32) as usize).copied().unwrap_or(Api::Host);
        Status::new(api, bits as u32 as i32)
    }

    /// Stores the status of a call.
    #[inline]
    pub fn store(&self, status: Status) {
        let api = if status.is_success() { Api::Host } else { status.api };
        let bits = ((api as u64) << 32) | u64::from(status.code as u32);
        // Threads that share an object mostly succeed: they only read what all of them have.
        if self.0.load(Ordering::Relaxed) != bits {
            self.0.store(bits, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_and_number_are_kept() {
        let last = AtomicStatus::new();
        assert_eq!(last.load(), Status::OK);
        for &api in &Api::ALL {
            for code in [1, 999, -1, i32::MIN, i32::MAX] {
                last.store(Status::new(api, code));
                assert_eq!(last.load(), Status::new(api, code));
            }
        }
    }
}
