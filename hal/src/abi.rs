//! Checks, when a vendor's crate is compiled, that the types of functions that are found at run time are those of
//! the vendor's declarations.
//!
//! A vendor has a marker type `V`, by which it states with [`abi_passes!`](crate::abi_passes) which
//! of its types are passed as which of the table's. All else follows: a function of the table fits a
//! declaration if each of its arguments, and its result, passes as the declared one.

use std::ffi::{c_int, c_uint, c_void};

/// A value that is passed to the vendor `V`, and lies in memory, as a `T` does in the C ABI of
/// 64-bit systems.
pub trait Passes<V, T> {}

/// States that values of types are passed to a vendor as values of other types, and checks that
/// their sizes and alignments agree.
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
// A `char` of C is one of the first two.
itself!(i8, u8, u16, f32, usize, u64, c_int, c_uint, c_void);

/// Enumerations are ints in C; bindings make them signed or unsigned.
impl<V> Passes<V, c_uint> for c_int {}
impl<V> Passes<V, c_int> for c_uint {}

/// Handles are pointers to what only the driver reads.
impl<V, T> Passes<V, *mut T> for usize {}
impl<V, A: Passes<V, B>, B> Passes<V, *mut B> for *mut A {}
impl<V, A: Passes<V, B>, B> Passes<V, *const B> for *mut A {}
impl<V, A: Passes<V, B>, B> Passes<V, *mut B> for *const A {}
impl<V, A: Passes<V, B>, B> Passes<V, *const B> for *const A {}

/// A pointer to a function that calls what the vendor `V` declares as `D`.
pub trait Declared<V, D>: Copy {}

/// A function that may be missing.
impl<V, F: Declared<V, D>, D> Declared<V, D> for Option<F> {}

macro_rules! declared {
    ($($ours:ident as $theirs:ident),*) => {
        impl<V, $($ours: Passes<V, $theirs>, $theirs,)* R: Passes<V, S>, S>
            Declared<V, unsafe extern "C" fn($($theirs),*) -> S>
            for unsafe extern "C" fn($($ours),*) -> R {}

        // As bindings declare a function that they load themselves.
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

/// Compiles if a field of the table `T` may call what the vendor `V` declares as `D`.
pub const fn check_field<V, T, F: Declared<V, D>, D: Copy>(_: fn(&T) -> F, _: D) {}

/// Compiles if a function of type `F` may call what the vendor `V` declares as `D`.
pub const fn check_function<V, F: Declared<V, D>, D: Copy>(_: D) {}
