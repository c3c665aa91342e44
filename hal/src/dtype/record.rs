//! Records: structs of the program's own as elements and as arguments of kernels.

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

/// Defines a struct that can be an element of arrays and an argument of kernels: `repr(C)`, of numbers, arrays of
/// numbers and other records, without padding. It also derives `Clone`, `Copy`, `Debug` and `PartialEq`.
///
/// ```
/// gpuarray_hal::record! {
///     /// As `struct Particle { float3 at; float mass; }` of the kernel.
///     pub struct Particle {
///         pub at: [f32; 3],
///         pub mass: f32,
///     }
/// }
/// assert_eq!(<Particle as gpuarray_hal::Element>::DTYPE, gpuarray_hal::DType::Opaque(16));
/// ```
///
/// Where C would put padding, the struct needs a field of its own:
///
/// ```compile_fail,E0080
/// gpuarray_hal::record! {
///     struct Padded {
///         kind: u8,
///         value: f64,
///     }
/// }
/// ```
///
/// `bool` is no field, because most bytes are no value of it:
///
/// ```compile_fail,E0277
/// gpuarray_hal::record! {
///     struct Flagged {
///         flag: bool,
///     }
/// }
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(C)]
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)+
        }

        const _: () = assert!(
            0 $(+ ::std::mem::size_of::<$type>())+ == ::std::mem::size_of::<$name>(),
            "the record has padding; give it fields in its place"
        );

        // SAFETY: the struct is its fields, one behind the other and without padding.
        unsafe impl $crate::dtype::Field for $name {
            const ZERO: Self = $name { $($field: <$type as $crate::dtype::Field>::ZERO),+ };
            const ONE: Self = $name { $($field: <$type as $crate::dtype::Field>::ONE),+ };
        }

        // SAFETY: as above; the dtype has the size.
        unsafe impl $crate::dtype::Element for $name {
            const DTYPE: $crate::dtype::DType =
                $crate::dtype::DType::Opaque(::std::mem::size_of::<$name>() as u32);
            const ZERO: Self = <$name as $crate::dtype::Field>::ZERO;
            const ONE: Self = <$name as $crate::dtype::Field>::ONE;
        }

        impl $crate::launch::KernelArgument for $name {
            fn add_to<'a>(
                &'a self,
                list: &mut $crate::launch::ArgumentList<'a>,
            ) -> $crate::error::Result<()> {
                list.bytes($crate::dtype::bytes_of(self))
            }
        }
    };
}

/// Returns the bytes of a value.
pub fn bytes_of<T: Field>(value: &T) -> &[u8] {
    // SAFETY: no byte is padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}
