//! A value that is set once, either when the object is made or later by `__init__`.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

const UNSET: u8 = 0;
const SETTING: u8 = 1;
const SET: u8 = 2;

/// As `std::sync::OnceLock`, but made full without a detour: an array object is made for
/// every result of an operation, and the detour costs more than a tenth of a short one.
pub(crate) struct InitCell<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one thread that changes the state from UNSET to SETTING
// and read only after SET has been stored with release order.
unsafe impl<T: Send + Sync> Sync for InitCell<T> {}

impl<T> InitCell<T> {
    /// A cell without a value.
    pub(crate) const fn empty() -> Self {
        InitCell { state: AtomicU8::new(UNSET), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// A cell with its value.
    pub(crate) const fn full(value: T) -> Self {
        InitCell { state: AtomicU8::new(SET), value: UnsafeCell::new(MaybeUninit::new(value)) }
    }

    /// The value, if there is one.
    pub(crate) fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: the state says that the value is written, and it is never written again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Sets the value; gives it back if there is one already.
    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        if self.state.compare_exchange(UNSET, SETTING, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            return Err(value);
        }
        // SAFETY: only the thread that made the exchange gets here, and nobody reads yet.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(SET, Ordering::Release);
        Ok(())
    }
}

impl<T> Drop for InitCell<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == SET {
            // SAFETY: the value is written, and nobody can use it any longer.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}
