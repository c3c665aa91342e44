//! Functions of half precision as tables of their 65,536 values.
//!
//! A look-up costs less than any evaluation that is exact. A table is made once as many values
//! have been computed one by one as it holds, so that programs with little half precision pay
//! neither for the time nor for the 128 KiB.

use crate::half::{narrow_double, widen};
use crate::multiversion::Loop;
use hal::f16;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The number of values of half precision.
const VALUES: usize = 1 << 16;
/// Elements that are looked up between their reading and their writing.
const GROUP: usize = 8;

/// The table of one function.
#[derive(Debug)]
pub(super) struct Table {
    values: AtomicPtr<[f16; VALUES]>,
    /// Values that were computed without the table.
    computed: AtomicUsize,
}

impl Table {
    pub(super) const fn new() -> Self {
        Table { values: AtomicPtr::new(ptr::null_mut()), computed: AtomicUsize::new(0) }
    }

    /// The values, if `length` more justify them; `compute` is the function's loop.
    ///
    /// There is no lock, which a fork could leave taken: threads that make the table at the
    /// same time keep the first.
    fn values(&self, length: usize, compute: Loop) -> Option<&[f16; VALUES]> {
        let mut known = self.values.load(Ordering::Acquire);
        if known.is_null() {
            let computed = self.computed.fetch_add(length, Ordering::Relaxed);
            if computed.saturating_add(length) < VALUES {
                return None;
            }
            let arguments: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
            let made = Box::into_raw(Box::new([f16::ZERO; VALUES]));
            let argument = arguments.as_ptr().cast();
            // SAFETY: as many elements of half precision on both sides.
            unsafe { compute(made.cast(), &[argument; 4], 0, VALUES) };
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.values.compare_exchange(ptr::null_mut(), made, success, failure) {
                Ok(_) => known = made,
                Err(first) => {
                    known = first;
                    // SAFETY: the box from above, which nobody else has seen.
                    drop(unsafe { Box::from_raw(made) });
                }
            }
        }
        // SAFETY: a box that is neither changed nor freed once it is stored.
        Some(unsafe { &*known })
    }

    /// The body of a loop that uses the table where there is one.
    ///
    /// # Safety
    /// See [`Loop`]; `compute` must be a loop from half precision to half precision.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        compute: Loop,
        value: *mut u8,
        arguments: &[*const u8; 4],
        repeated: u32,
        length: usize,
    ) {
        let wanted = if repeated & 1 == 1 { 1 } else { length };
        let table = match self.values(wanted, compute) {
            Some(table) if wanted == length => table,
            // SAFETY: passed on to the caller.
            _ => return unsafe { compute(value, arguments, repeated, length) },
        };
        let look_up = |x: f16| table[usize::from(x.to_bits())];
        let whole = length - length % GROUP;
        let (argument, value) = (arguments[0].cast::<f16>(), value.cast::<f16>());
        for start in (0..whole).step_by(GROUP) {
            // SAFETY: within the length; the values may lie where the arguments do.
            unsafe {
                let group = argument.add(start).cast::<[f16; GROUP]>().read();
                value.add(start).cast::<[f16; GROUP]>().write(group.map(look_up));
            }
        }
        for index in whole..length {
            // SAFETY: within the length.
            unsafe { value.add(index).write(look_up(argument.add(index).read())) };
        }
    }
}

/// The loop of a function for processors without fused multiply-add.
///
/// # Safety
/// See [`Loop`].
pub(super) unsafe fn library_loop(
    function: fn(f64) -> f64,
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let step = usize::from(repeated & 1 == 0);
    for index in 0..length {
        // SAFETY: passed on to the caller; the values may lie where the arguments do.
        unsafe {
            let x = arguments[0].cast::<f16>().add(index * step).read();
            value.cast::<f16>().add(index).write(narrow_double(function(widen(x).into())));
        }
    }
}
