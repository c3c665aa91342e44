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
