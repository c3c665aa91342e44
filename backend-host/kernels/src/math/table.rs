//! Functions of types stored in few bits, as tables of all values: 65,536 for binary16.
//!
//! A lookup takes less time than any correctly rounded evaluation. A table is created once as many values
//! have been computed individually as it holds. Programs that rarely use half precision therefore pay neither
//! the time nor the 128 KiB.

use super::precision::Elementary;
use crate::bodies::step_single;
use crate::float::Float;
use crate::multiversion::Loop;
use crate::number::for_each;
use hal::dtype::narrow::Narrow;
use hal::function::UnaryFunction;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The number of elements that are read before their values are written.
const GROUP: usize = 8;

/// A type with tables.
pub(crate) trait Tabled: Float + Narrow {
    /// The number of values of the type.
    const VALUES: usize = 1 << (8 * size_of::<Self>());
    /// Returns the table of a function.
    fn table<F: Elementary>() -> &'static Table<Self>;
}

macro_rules! tabled {
    ([] $dtype:ident, $rust:ty) => {
        impl Tabled for $rust {
            fn table<F: Elementary>() -> &'static Table<Self> {
                static TABLES: [Table<$rust>; UnaryFunction::ALL.len()] =
                    [const { Table::new() }; UnaryFunction::ALL.len()];
                &TABLES[F::FUNCTION as usize]
            }
        }
    };
}

for_each!(narrow => tabled []);

/// The table of one function of one type.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// The values, in the order of the arguments' bits, or null.
    values: AtomicPtr<T>,
    /// The number of values computed without the table.
    computed: AtomicUsize,
}

impl<T: Tabled> Table<T> {
    const fn new() -> Self {
        Table { values: AtomicPtr::new(ptr::null_mut()), computed: AtomicUsize::new(0) }
    }

    /// Returns the values, if computing `length` more values justifies the table. `compute` is the function's
    /// loop.
    ///
    /// This does not use a lock, since a fork could leave it locked. If several threads create the table
    /// concurrently, the first one is kept.
    fn values(&self, length: usize, compute: Loop) -> Option<&[T]> {
        let mut known = self.values.load(Ordering::Acquire);
        if known.is_null() {
            let computed = self.computed.fetch_add(length, Ordering::Relaxed);
            if computed.saturating_add(length) < T::VALUES {
                return None;
            }
            let arguments: Vec<T> = (0..T::VALUES).map(|bits| T::of_bits(bits as u16)).collect();
            let mut made = arguments.clone().into_boxed_slice();
            let argument = arguments.as_ptr().cast();
            // SAFETY: both sides have this number of elements of the type.
            unsafe { compute(made.as_mut_ptr().cast(), &[argument; 4], 0, T::VALUES) };
            let made = Box::into_raw(made);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            known = made.cast::<T>();
            if let Err(first) =
                self.values.compare_exchange(ptr::null_mut(), known, success, failure)
            {
                known = first;
                // SAFETY: the box from above, which no other thread has seen.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        // SAFETY: this many values, which are never changed or freed once stored.
        Some(unsafe { std::slice::from_raw_parts(known, T::VALUES) })
    }

    /// The body of a loop that uses the table if it exists.
    ///
    /// # Safety
    /// See [`Loop`]; `compute` must be a loop between elements of the type.
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
        // SAFETY: the table has a value for every bit pattern.
        let look_up = |x: T| unsafe { *table.get_unchecked(usize::from(x.bits())) };
        let whole = length - length % GROUP;
        let (argument, value) = (arguments[0].cast::<T>(), value.cast::<T>());
        for start in (0..whole).step_by(GROUP) {
            // SAFETY: within the length; the values may overwrite the arguments.
            unsafe {
                let group = argument.add(start).cast::<[T; GROUP]>().read();
                value.add(start).cast::<[T; GROUP]>().write(group.map(look_up));
            }
        }
        for index in whole..length {
            // SAFETY: within the length.
            unsafe { value.add(index).write(look_up(argument.add(index).read())) };
        }
    }
}

/// The loop of a function on processors without fused multiply-add.
///
/// # Safety
/// See [`Loop`].
pub(super) unsafe fn library_loop<T: Tabled, F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let apply = |x: T| T::narrow_double(F::library(x.widen().into()));
    // SAFETY: passed on to the caller.
    unsafe { step_single(value, arguments, repeated, length, apply) }
}
