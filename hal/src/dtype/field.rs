//! What a record, a struct of the program's own, consists of.

use std::fmt::Debug;

/// What a field of a record may be.
///
/// # Safety
/// No byte of a value is padding, and every sequence of bytes is a value.
pub unsafe trait Field: Copy + Send + Sync + Debug + PartialEq + 'static {
    /// The value of zeros.
    const ZERO: Self;
    /// The value of ones.
    const ONE: Self;
}

macro_rules! fields {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $(fields!(@ $kind $rust, $zero, $one);)*
    };
    (@ Bool $rust:ty, $zero:expr, $one:expr) => {};
    (@ $kind:ident $rust:ty, $zero:expr, $one:expr) => {
        // SAFETY: a number has no padding, and any bits are one.
        unsafe impl Field for $rust {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
    };
}
crate::dtypes!(fields);
fields!(@ Signed isize, 0, 1);
fields!(@ Unsigned usize, 0, 1);

// SAFETY: elements of an array follow each other without padding.
unsafe impl<T: Field, const N: usize> Field for [T; N] {
    const ZERO: Self = [T::ZERO; N];
    const ONE: Self = [T::ONE; N];
}

/// Returns the bytes of a value.
pub fn bytes_of<T: Field>(value: &T) -> &[u8] {
    // SAFETY: no byte is padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}
