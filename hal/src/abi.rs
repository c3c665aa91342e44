//! Checks the types of run-time loaded functions against the vendor's declarations when the vendor's crate is
//! compiled.
//!
//! A vendor has a marker type `V`. With [`abi_passes!`](crate::abi_passes), it states for each type of the table
//! which of the vendor's types have the same representation in a call. A function of the table then fits a
//! declaration if each argument, and the result, passes as the declared one.

use std::ffi::{c_int, c_uint, c_void};

/// A value that has the representation of the vendor `V`'s type `T`, in memory and as an argument, in the C ABI
/// of 64-bit systems.
pub trait Passes<V, T> {}

/// States that values of some types are passed to a vendor as values of other types, and checks that their sizes
/// and alignments agree.
///
/// ```ignore
/// hal::abi_passes! {
///     Cuda:
///     IpcHandle as sys::CUipcMemHandle, sys::CUipcEventHandle;
/// }
/// ```
#[macro_export]
macro_rules! abi_passes {
    ($vendor:ty: $($type:ty as $($other:ty),+;)*) => {
        $($(
            impl $crate::abi::Passes<$vendor, $other> for $type {}
            const _: () = {
                assert!(size_of::<$type>() == size_of::<$other>());
                assert!(align_of::<$type>() >= align_of::<$other>());
            };
        )+)*
    };
}

macro_rules! itself {
    ($($type:ty),*) => {
        $(impl<V> Passes<V, $type> for $type {})*
    };
}
// C's `char` is either `i8` or `u8`.
itself!(i8, u8, u16, f32, usize, u64, c_int, c_uint, c_void);

/// C enumerations are ints; bindings declare them as signed or unsigned.
impl<V> Passes<V, c_uint> for c_int {}
impl<V> Passes<V, c_int> for c_uint {}

/// Handles are pointers to data that only the driver reads.
impl<V, T> Passes<V, *mut T> for usize {}
impl<V, A: Passes<V, B>, B> Passes<V, *mut B> for *mut A {}
impl<V, A: Passes<V, B>, B> Passes<V, *const B> for *mut A {}
impl<V, A: Passes<V, B>, B> Passes<V, *mut B> for *const A {}
impl<V, A: Passes<V, B>, B> Passes<V, *const B> for *const A {}

/// A pointer to a function that the vendor `V` declares with the type `D`.
pub trait Declared<V, D>: Copy {}

/// A function that may be missing.
impl<V, F: Declared<V, D>, D> Declared<V, D> for Option<F> {}

macro_rules! declared {
    ($($ours:ident as $theirs:ident),*) => {
        impl<V, $($ours: Passes<V, $theirs>, $theirs,)* R: Passes<V, S>, S>
            Declared<V, unsafe extern "C" fn($($theirs),*) -> S>
            for unsafe extern "C" fn($($ours),*) -> R {}

        // Bindings declare functions that they load themselves in this form.
        impl<V, $($ours: Passes<V, $theirs>, $theirs,)* R: Passes<V, S>, S>
            Declared<V, unsafe fn($($theirs),*) -> S>
            for unsafe extern "C" fn($($ours),*) -> R {}
    };
}
declared!();
declared!(A as B);
declared!(A as B, C as D);
declared!(A as B, C as D, E as F);
declared!(A as B, C as D, E as F, G as H);
declared!(A as B, C as D, E as F, G as H, I as J);
declared!(A as B, C as D, E as F, G as H, I as J, K as L);
declared!(A as B, C as D, E as F, G as H, I as J, K as L, M as N, O as P);
declared!(A as B, C as D, E as F, G as H, I as J, K as L, M as N, O as P, Q as T, U as W);
declared!(A as B, C as D, E as F, G as H, I as J, K as L, M as N, O as P, Q as T, U as W, X as Y);

/// Compiles only if a field of the table `T` has a type that can call the function declared as `D`.
pub const fn check_field<V, T, F: Declared<V, D>, D: Copy>(_: fn(&T) -> F, _: D) {}

/// Compiles only if the type `F` can call the function declared as `D`.
pub const fn check_function<V, F: Declared<V, D>, D: Copy>(_: D) {}
