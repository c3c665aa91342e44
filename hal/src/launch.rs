//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the arguments against
//! the kernel's parameters, if the driver reports them. It orders the launch after other streams' work on the same
//! memory, and queues it. Arguments that do not correspond one to one to the parameters are packed as PyCUDA packs
//! them ([`ArgumentList::launch`]).

mod list;
mod packing;

pub use list::ArgumentList;

use crate::error::Result;
use crate::memory::{Access, DeviceMemory};
use crate::module::{Kernel, LaunchConfig};
use crate::scalar::Scalar;
use crate::stream::Stream;
use std::sync::Arc;

impl dyn Kernel + '_ {
    /// Queues a launch with a tuple of up to 16 arguments: numbers, [`Scalar`](crate::Scalar)s, `&array` for an
    /// array that the kernel only reads, `&mut array` for one that it writes. The kind of reference determines how
    /// the launch is ordered after other streams' work on the same memory.
    ///
    /// # Errors
    /// `InvalidArgument` if the number or sizes of the arguments do not match the kernel's parameters, as far as
    /// the driver reports them, or if the configuration exceeds the device's limits. Nothing is queued then.
    ///
    /// # Safety
    /// - The arguments have the types that the kernel declares.
    /// - The kernel stays inside the arrays that they name.
    /// - The kernel writes only to arrays passed as `&mut DeviceArray`. Other streams may read arrays that are
    ///   passed as `&DeviceArray` at the same time.
    /// - `stream` and the kernel belong to the same device, and this device can access the arrays.
    pub unsafe fn launch(
        &self,
        config: LaunchConfig,
        stream: &Arc<dyn Stream>,
        arguments: impl KernelArguments,
    ) -> Result<()> {
        let mut list = ArgumentList::new();
        arguments.add_all(&mut list)?;
        // SAFETY: the caller's promise.
        unsafe { list.launch(self, &config, stream, false) }
    }
}

// A launch whose arguments are added one by one.

/// A launch whose arguments are added one by one, for a number of arguments known only at run time or too large
/// for a tuple. [`dyn Kernel::launcher`](trait.Kernel.html#method.launcher) creates it.
///
/// The arguments of a kernel, one call for each:
///
/// ```
/// use gpuarray::{DeviceArray, LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let kernel = module.kernel("scale")?;
/// let stream = device.default_stream();
/// let mut x = DeviceArray::from_slice(&device, &[1.0f32, 2.0])?;
/// let y = &mut x;
/// let launch = kernel.launcher(&stream).block([2, 1, 1]).argument(&y).argument(&3.0f32);
/// // SAFETY: the kernel takes a pointer and a float, and two threads stay inside the array.
/// unsafe { launch.launch()? };
/// assert_eq!(x.to_vec()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is launched before `launch`"]
pub struct Launcher<'a> {
    kernel: &'a dyn Kernel,
    stream: &'a Arc<dyn Stream>,
    config: LaunchConfig,
    arguments: Result<ArgumentList<'a>>,
    cooperative: bool,
}

impl dyn Kernel + '_ {
    /// Begins a launch on a stream, by default with one block of one thread.
    pub fn launcher<'a>(&'a self, stream: &'a Arc<dyn Stream>) -> Launcher<'a> {
        Launcher {
            kernel: self,
            stream,
            config: LaunchConfig::linear(1, 1),
            arguments: Ok(ArgumentList::new()),
            cooperative: false,
        }
    }
}

impl<'a> Launcher<'a> {
    /// Sets the grid, the block and the shared memory.
    pub fn config(mut self, config: LaunchConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the number of blocks along x, y and z.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.config.grid = grid;
        self
    }

    /// Sets the number of threads per block along x, y and z.
    pub fn block(mut self, block: [u32; 3]) -> Self {
        self.config.block = block;
        self
    }

    /// Sets the bytes of dynamic shared memory per block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.config.shared_bytes = bytes;
        self
    }

    /// Makes all blocks run concurrently, so that the whole grid can synchronize.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds an argument: `argument(&n)` for a number, `argument(&x)` for an array that the kernel only reads,
    /// `argument(&&mut y)` for one that it writes. [`Launcher::launch`] returns the error if the argument cannot
    /// be passed.
    pub fn argument(mut self, argument: &'a impl KernelArgument) -> Self {
        self.arguments = self.arguments.and_then(|mut list| {
            argument.add_to(&mut list)?;
            Ok(list)
        });
        self
    }

    /// Queues the launch.
    ///
    /// # Errors
    /// As for `dyn Kernel::launch`.
    ///
    /// # Safety
    /// As for `dyn Kernel::launch`.
    pub unsafe fn launch(self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.arguments?.launch(self.kernel, &self.config, self.stream, self.cooperative) }
    }
}

// Values that can be arguments of a launch, and tuples of arguments.

/// A value that can be an argument of a launch.
///
/// Numbers, [`Scalar`]s, records, arrays and memory implement it. Programs implement it for their own types of kernel
/// arguments. A launch calls it once for each argument.
///
/// The reference decides what the kernel may do with an array's memory. The kernel only reads an array that is passed
/// as `&`. The kernel may write an array that is passed as `&mut`, and shared [`DeviceMemory`].
///
/// A program's own type that is passed as a number:
///
/// ```
/// use gpuarray::launch::{ArgumentList, KernelArgument};
///
/// # fn main() -> gpuarray::Result<()> {
/// struct Metres(f32);
///
/// impl KernelArgument for Metres {
///     fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> gpuarray::Result<()> {
///         self.0.add_to(list)
///     }
/// }
///
/// let mut list = ArgumentList::new();
/// Metres(2.5).add_to(&mut list)?;
/// assert_eq!(list.len(), 1);
/// # Ok(())
/// # }
/// ```
pub trait KernelArgument {
    /// Adds this value to the list.
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

/// Passes the address; the kernel may read and write the memory.
impl KernelArgument for Arc<DeviceMemory> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.memory(self.address(), self, Access::Write);
        Ok(())
    }
}

/// The arguments of a launch: a tuple of up to 16 [`KernelArgument`]s.
///
/// Tuples implement this trait, and the launch calls it. A function that forwards arguments uses it as a bound. If the
/// number of arguments is known only at run time, use a [`Launcher`].
///
/// A function that launches any kernel on one block and forwards its arguments:
///
/// ```
/// use gpuarray::{DeviceArray, Kernel, LaunchConfig, LoadOptions, ModuleSource, Result, Stream};
/// use gpuarray::launch::KernelArguments;
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// /// # Safety
/// /// As for `Kernel::launch`.
/// unsafe fn one_block(
///     kernel: &dyn Kernel, threads: u32, stream: &Arc<dyn Stream>, arguments: impl KernelArguments,
/// ) -> Result<()> {
///     // SAFETY: the caller's promise.
///     unsafe { kernel.launch(LaunchConfig::linear(threads, threads), stream, arguments) }
/// }
///
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let mut x = DeviceArray::from_slice(&device, &[1.0f32, 2.0])?;
/// let stream = device.default_stream();
/// // SAFETY: the kernel takes a pointer and a float, and two threads stay inside the array.
/// unsafe { one_block(module.kernel("scale")?.as_ref(), 2, &stream, (&mut x, 3.0f32))? };
/// assert_eq!(x.to_vec()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
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

/// Defines a struct that can be an element of arrays and an argument of kernels. It is `repr(C)`, without padding, and
/// consists of numbers, arrays of numbers and other records. It also derives `Clone`, `Copy`, `Debug` and `PartialEq`.
///
/// ```
/// gpuarray::record! {
///     /// As `struct Particle { float3 at; float mass; }` of the kernel.
///     pub struct Particle {
///         pub at: [f32; 3],
///         pub mass: f32,
///     }
/// }
/// assert_eq!(<Particle as gpuarray::Element>::DTYPE, gpuarray::DType::Opaque(16));
/// ```
///
/// Where C would insert padding, the struct needs an explicit field:
///
/// ```compile_fail,E0080
/// gpuarray::record! {
///     struct Padded {
///         kind: u8,
///         value: f64,
///     }
/// }
/// ```
///
/// `bool` is not allowed as a field, because most bytes are not valid values of it:
///
/// ```compile_fail,E0277
/// gpuarray::record! {
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

        // SAFETY: the struct consists of its fields, one after the other and without padding.
        unsafe impl $crate::dtype::Field for $name {
            const ZERO: Self = $name { $($field: <$type as $crate::dtype::Field>::ZERO),+ };
            const ONE: Self = $name { $($field: <$type as $crate::dtype::Field>::ONE),+ };
        }

        // SAFETY: as above; the dtype has the struct's size.
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
