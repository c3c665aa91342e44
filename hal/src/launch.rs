//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the
//! arguments against what the driver says the kernel takes, orders the launch behind other
//! streams' work on the same memory, and queues it. Arguments that are not one for each parameter are packed as
//! PyCUDA packs them ([`ArgumentList::launch`]).

mod arguments;
mod list;
mod packing;

use crate::error::Result;
use crate::module::{Kernel, LaunchConfig, Parameter};
use crate::stream::Stream;
pub use arguments::{KernelArgument, KernelArguments};
pub use list::ArgumentList;
use std::sync::Arc;

impl dyn Kernel + '_ {
    /// Queues a launch with a tuple of up to 16 arguments: numbers, [`Scalar`](crate::Scalar)s, `&array` for
    /// one that the kernel only reads, `&mut array` for one that it writes. The launch is ordered
    /// behind the work of other streams on the same memory, by what the references say.
    ///
    /// # Errors
    /// `InvalidArgument` if number or sizes of the arguments are not those of the kernel's
    /// parameters, as far as the driver tells them, or if the configuration exceeds the
    /// device's limits. Nothing is queued then.
    ///
    /// # Safety
    /// - The arguments are of the types that the kernel declares.
    /// - The kernel stays inside the arrays that they name.
    /// - It writes no array that is passed as `&DeviceArray`: other streams may read it at the same
    ///   time. For one that it writes there is `&mut DeviceArray`.
    /// - `stream` and the kernel are of one device, which can access the arrays.
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

// A launch that is put together one part after the other.

/// A launch whose arguments are added one after the other, where their number is not known when the program is
/// compiled, or a tuple of them is too long. [`dyn Kernel::launcher`](trait.Kernel.html#method.launcher) makes it.
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
    /// Begins a launch of one block of one thread on a stream.
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
    /// Sets grid, block and shared memory.
    pub fn config(mut self, config: LaunchConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the number of blocks along x, y and z.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.config.grid = grid;
        self
    }

    /// Sets the number of threads of a block along x, y and z.
    pub fn block(mut self, block: [u32; 3]) -> Self {
        self.config.block = block;
        self
    }

    /// Sets the bytes of dynamic shared memory of a block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.config.shared_bytes = bytes;
        self
    }

    /// Makes all blocks run at once, so that the grid can wait for itself.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds an argument: `argument(&n)` for a number, `argument(&x)` for an array that the kernel only reads,
    /// `argument(&&mut y)` for one that it writes. What cannot be passed is an error of [`Launcher::launch`].
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
    /// Those of `dyn Kernel::launch`.
    ///
    /// # Safety
    /// As for `dyn Kernel::launch`.
    pub unsafe fn launch(self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.arguments?.launch(self.kernel, &self.config, self.stream, self.cooperative) }
    }
}

// Where the value of an argument lies, and what it can stand for.

/// Where the value of an argument lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its first word; zeros follow the value.
    word: u32,
    size: u16,
    form: Form,
    /// The bytes of a number in it: those of a part of a complex number, 1 for a structure.
    element: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Structures and arrays, which lie anywhere.
    Bytes,
    /// A number that is no integer, or an address.
    Number,
    Signed,
    Unsigned,
}

impl Place {
    /// What its place is a multiple of where arguments are packed one behind the other.
    fn alignment(self) -> usize {
        if self.form == Form::Bytes { 1 } else { usize::from(self.element) }
    }

    /// True if a parameter of `wanted` bytes at `offset`, with `room` bytes before the next one, has the value of
    /// the integer `word` where arguments are packed one behind the other.
    fn stands_for(self, word: u128, wanted: Parameter, room: usize) -> bool {
        let (size, wanted_size) = (usize::from(self.size), wanted.size);
        if !matches!(self.form, Form::Signed | Form::Unsigned)
            || !wanted.offset.is_multiple_of(size)
            || size > room
            || !(1..=8).contains(&wanted_size)
        {
            return false;
        }
        let negative = self.form == Form::Signed && word >> (8 * size - 1) != 0;
        if wanted_size > size {
            // Of short numbers, only 0 is an address that a program means.
            return !negative && (word == 0 || wanted.is_pointer != Some(true));
        }
        let (above, bits) = (word >> (8 * wanted_size), 8 * (size - wanted_size));
        match negative {
            false => above == 0,
            true => above == (1 << bits) - 1 && word >> (8 * wanted_size - 1) & 1 == 1,
        }
    }
}
