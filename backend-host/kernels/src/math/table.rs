//! Functions of numbers of few bits as tables of all their values, 65,536 for binary16.
//!
//! A look-up costs less than any evaluation that is exact. A table is made once as many values
//! have been computed one by one as it holds, so that programs with little half precision pay
//! neither for the time nor for the 128 KiB.

use super::Elementary;
use crate::bodies::step_single;
use crate::float::Float;
use crate::multiversion::Loop;
use crate::number::for_each;
use hal::dtype::narrow::Narrow;
use hal::function::UnaryFunction;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Elements that are looked up between their reading and their writing.
const GROUP: usize = 8;

/// A type with tables.
pub(crate) trait Tabled: Float + Narrow {
    /// How many values it has.
    const VALUES: usize = 1 << (8 * size_of::<Self>());
    /// The table of a function.
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
    /// The first of the values, which are in the order of the arguments' bits.
    values: AtomicPtr<T>,
    /// Values that were computed without the table.
    computed: AtomicUsize,
}

impl<T: Tabled> Table<T> {
    const fn new() -> Self {
        Table { values: AtomicPtr::new(ptr::null_mut()), computed: AtomicUsize::new(0) }
    }

    /// The values, if `length` more justify them; `compute` is the function's loop.
    ///
    /// There is no lock, which a fork could leave taken: threads that make the table at the
    /// same time keep the first.
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
            // SAFETY: as many elements of the type on both sides.
            unsafe { compute(made.as_mut_ptr().cast(), &[argument; 4], 0, T::VALUES) };
            let made = Box::into_raw(made);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            known = made.cast::<T>();
            if let Err(first) =
                self.values.compare_exchange(ptr::null_mut(), known, success, failure)
            {
                known = first;
                // SAFETY: the box from above, which nobody else has seen.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        // SAFETY: so many values, which are neither changed nor freed once they are stored.
        Some(unsafe { std::slice::from_raw_parts(known, T::VALUES) })
    }

    /// The body of a loop that uses the table where there is one.
    ///
    /// # Safety
    /// See [`Loop`]; `compute` must be a loop from elements of the type to such.
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
        // SAFETY: the table has a value for every pattern of bits.
        let look_up = |x: T| unsafe { *table.get_unchecked(usize::from(x.bits())) };
        let whole = length - length % GROUP;
        let (argument, value) = (arguments[0].cast::<T>(), value.cast::<T>());
        for start in (0..whole).step_by(GROUP) {
            // SAFETY: within the length; the values may lie where the arguments do.
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

/// The loop of a function for processors without fused multiply-add.
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
