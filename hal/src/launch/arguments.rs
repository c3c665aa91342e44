//! What can be an argument of a launch, and tuples of arguments.

use super::ArgumentList;
use crate::error::Result;
use crate::memory::{Access, DeviceMemory};
use crate::scalar::Scalar;
use std::sync::Arc;

/// What can be an argument of a launch. How it is passed says what the kernel may do with the memory:
/// an array that is borrowed to be read is only read; what goes as `&mut`, or as shared
/// [`DeviceMemory`], is written.
pub trait KernelArgument {
    /// Adds itself to the list.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that cannot be passed.
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()>;
}

macro_rules! numbers {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {$(
        impl KernelArgument for $rust {
            fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
                list.scalar(Scalar::new(*self));
                Ok(())
            }
        }
    )*};
}
crate::dtypes!(numbers);

macro_rules! sizes {
    ($($number:ty),*) => {$(
        impl KernelArgument for $number {
            fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
                list.number(&self.to_ne_bytes(), size_of::<$number>())
            }
        }
    )*};
}
sizes!(isize, usize);

impl KernelArgument for Scalar {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.scalar(*self);
        Ok(())
    }
}

/// The address; the kernel may read and write the memory.
impl KernelArgument for Arc<DeviceMemory> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.memory(self.address(), self, Access::Write);
        Ok(())
    }
}

/// A tuple of arguments.
pub trait KernelArguments {
    /// Adds every member to the list.
    ///
    /// # Errors
    /// As for [`KernelArgument::add_to`].
    fn add_all<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()>;
}

impl KernelArguments for () {
    fn add_all<'a>(&'a self, _: &mut ArgumentList<'a>) -> Result<()> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($name:ident)*) => { tuples!(@ [] $($name)*); };
    (@ [$($done:ident)*]) => {};
    (@ [$($done:ident)*] $next:ident $($rest:ident)*) => {
        impl<$($done: KernelArgument,)* $next: KernelArgument> KernelArguments
            for ($($done,)* $next,)
        {
            #[allow(non_snake_case, reason = "a type's name serves as its value's")]
            fn add_all<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
                let ($($done,)* $next,) = self;
                $($done.add_to(list)?;)*
                $next.add_to(list)
            }
        }
        tuples!(@ [$($done)* $next] $($rest)*);
    };
}

tuples!(A B C D E F G H I J K L M N O P);

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
