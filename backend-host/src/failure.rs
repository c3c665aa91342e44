//! The failure of a kernel that ran while nobody waited for it.

use hal::poison::Unpoisoned as _;
use hal::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first failure of a queued kernel that no call has reported yet. It is the device's, as on a GPU:
/// whichever call waits next reports it, so that no program reads what a kernel left half done and
/// takes it for a result. The kernel's stream keeps the failure besides, and reports it once.
#[derive(Debug, Default)]
pub(crate) struct KernelFailure {
    exists: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl KernelFailure {
    /// Keeps the failure of a kernel, unless one is kept already.
    pub(crate) fn keep(&self, error: &Error) {
        let mut kept = self.error.lock().unpoisoned();
        kept.get_or_insert_with(|| error.clone());
        self.exists.store(true, Ordering::Release);
    }

    /// Reports the failure, once.
    pub(crate) fn take(&self) -> Result<()> {
        if !self.exists.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut kept = self.error.lock().unpoisoned();
        self.exists.store(false, Ordering::Release);
        kept.take().map_or(Ok(()), Err)
    }
}
