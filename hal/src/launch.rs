//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the
//! arguments against what the driver says the kernel takes, orders the launch behind other
//! streams' work on the same memory, and queues it.

use crate::array::{Array, DeviceArray};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::memory::{Access, AccessGuard, DeviceMemory, Use};
use crate::module::{Kernel, LaunchConfig, Parameter};
use crate::scalar::Scalar;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// The arguments of one launch, packed as a driver takes them, and the memories they name.
#[derive(Debug, Default)]
pub struct ArgumentList<'a> {
    /// Values, each from a multiple of 16 bytes.
    words: SmallVec<[u128; 16]>,
    places: SmallVec<[Place; 16]>,
    uses: SmallVec<[Use<'a>; 8]>,
    /// Memories that nobody but the list may keep.
    kept: Vec<(Arc<DeviceMemory>, Access)>,
}

/// Where the value of an argument lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its first word; zeros follow the value.
    word: u32,
    size: u16,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bytes,
    Signed,
    Unsigned,
}

impl Place {
    /// True if a parameter of `wanted` bytes at `offset`, with `room` bytes before the next one, has the value of
    /// the integer `word` where arguments are packed one behind the other.
    fn stands_for(self, word: u128, wanted: Parameter, room: usize) -> bool {
        let (size, wanted_size) = (usize::from(self.size), wanted.size);
        if self.form == Form::Bytes
            || !wanted.offset.is_multiple_of(size)
            || size > room
            || wanted_size > 8
        {
            return false;
        }
        let negative = self.form == Form::Signed && word >> (8 * size - 1) != 0;
        if wanted_size > size {
            return !negative;
        }
        let (above, bits) = (word >> (8 * wanted_size), 8 * (size - wanted_size));
        match negative {
            false => above == 0,
            true => above == (1 << bits) - 1 && word >> (8 * wanted_size - 1) & 1 == 1,
        }
    }
}

impl<'a> ArgumentList<'a> {
    /// Returns a list without arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a value by its bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for more than 32 KiB, which no device takes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        const LIMIT: usize = 32 << 10;
        if bytes.len() > LIMIT {
            return Err(Error::invalid(
                "launch",
                format!(
                    "argument {} has {} bytes; at most {LIMIT} are allowed",
                    self.len(),
                    bytes.len()
                ),
            ));
        }
        let word = self.words.len() as u32;
        self.places.push(Place { word, size: bytes.len() as u16, form: Form::Bytes });
        for part in bytes.chunks(16) {
            let mut word = [0; 16];
            word[..part.len()].copy_from_slice(part);
            self.words.push(u128::from_ne_bytes(word));
        }
        Ok(())
    }

    /// Adds an integer of one to eight bytes. It may be of another size than the kernel's parameter where
    /// arguments that are packed into one buffer, each at a multiple of its size, reach the kernel all the same:
    /// the parameter begins there, and has room for the integer or more bytes, and its value is the same.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of bytes.
    pub fn integer(&mut self, bytes: &[u8], signed: bool) -> Result<()> {
        if !(1..=8).contains(&bytes.len()) {
            return Err(Error::invalid(
                "launch",
                format!(
                    "argument {} is an integer of {} bytes; one to eight are allowed",
                    self.len(),
                    bytes.len()
                ),
            ));
        }
        self.bytes(bytes)?;
        if let Some(place) = self.places.last_mut() {
            place.form = if signed { Form::Signed } else { Form::Unsigned };
        }
        Ok(())
    }

    /// Adds an address that nothing is known of.
    pub fn address(&mut self, address: u64) {
        self.places.push(Place { word: self.words.len() as u32, size: 8, form: Form::Bytes });
        let mut word = [0; 16];
        word[..8].copy_from_slice(&address.to_ne_bytes());
        self.words.push(u128::from_ne_bytes(word));
    }

    /// Adds an address inside `memory`, which the kernel uses as `access` says: with
    /// [`Access::Read`] it must not write there.
    pub fn memory(&mut self, address: u64, memory: &'a Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.uses.push((memory, access));
    }

    /// As [`ArgumentList::memory`], with memory that the list keeps.
    pub fn kept_memory(&mut self, address: u64, memory: Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.kept.push((memory, access));
    }

    /// Queues the launch.
    ///
    /// # Errors
    /// `InvalidArgument` if number or sizes of the arguments are not those of the kernel's
    /// parameters, as far as the driver tells them; nothing is queued then.
    ///
    /// # Safety
    /// - The arguments are of the types that the kernel declares.
    /// - The kernel accesses no memory but that of [`ArgumentList::memory`], and what the caller
    ///   keeps allocated and in order until it has run.
    /// - It writes no memory that was added with [`Access::Read`]: other streams may read it at the
    ///   same time.
    /// - `stream` and `kernel` are of one device, which can access the memory.
    pub unsafe fn launch(
        &self,
        kernel: &dyn Kernel,
        config: &LaunchConfig,
        stream: &Arc<dyn Stream>,
        cooperative: bool,
    ) -> Result<()> {
        self.check(kernel)?;
        let guard = match self.kept.is_empty() {
            true => AccessGuard::acquire(stream, &self.uses)?,
            false => AccessGuard::acquire(stream, &self.all_uses())?,
        };
        let base = self.words.as_ptr();
        let pointers: SmallVec<[*mut c_void; 16]> = self
            .places
            .iter()
            .map(|place| base.wrapping_add(place.word as usize).cast_mut().cast())
            .collect();
        // SAFETY: the caller's promise; the driver reads the values before the call returns.
        unsafe {
            match cooperative {
                false => kernel.launch_raw(stream.as_ref(), config, &pointers),
                true => kernel.launch_cooperative(stream.as_ref(), config, &pointers),
            }?;
        }
        drop(guard);
        kernel.finish_launch(stream.as_ref())
    }

    fn all_uses(&self) -> Vec<Use<'_>> {
        let kept = self.kept.iter().map(|(memory, access)| (memory, *access));
        self.uses.iter().copied().chain(kept).collect()
    }

    fn check(&self, kernel: &dyn Kernel) -> Result<()> {
        let Some(parameters) = kernel.parameters()? else { return Ok(()) };
        let (given, wanted) = (self.len(), parameters.len());
        if given != wanted {
            return Err(Error::invalid(
                "launch",
                format!("kernel {} takes {wanted} arguments; {given} were given", kernel.name()),
            ));
        }
        for (position, (place, parameter)) in self.places.iter().zip(parameters).enumerate() {
            let size = usize::from(place.size);
            if size == parameter.size {
                continue;
            }
            let end = parameters
                .get(position + 1)
                .map_or(parameter.offset + parameter.size, |next| next.offset);
            let word = self.words.get(place.word as usize).copied().unwrap_or(0);
            if place.stands_for(word, *parameter, end.saturating_sub(parameter.offset)) {
                continue;
            }
            return Err(Error::invalid(
                "launch",
                format!(
                    "argument {position} of kernel {} has {size} bytes; its parameter has {}",
                    kernel.name(),
                    parameter.size
                ),
            ));
        }
        Ok(())
    }
}

/// What can be an argument of a launch. How it is passed says what the kernel may do with the memory:
/// what goes as `&DeviceArray` is only read, what goes as `&mut DeviceArray`, [`Array`] or
/// [`DeviceMemory`] is written.
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
                list.bytes(Scalar::new(*self).bytes())
            }
        }
    )*};
}
crate::dtypes!(numbers);

macro_rules! sizes {
    ($($number:ty),*) => {$(
        impl KernelArgument for $number {
            fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
                list.bytes(&self.to_ne_bytes())
            }
        }
    )*};
}
sizes!(isize, usize);

impl KernelArgument for Scalar {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.bytes(self.bytes())
    }
}

/// The address of the first element. The kernel must not write the array: other streams may read it
/// at the same time, and launches with the same argument are not ordered.
impl<T: Element> KernelArgument for &DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        let array = self.untyped();
        list.memory(array.address(), array.memory(), Access::Read);
        Ok(())
    }
}

/// The address of the first element; the kernel reads and writes the array.
impl<T: Element> KernelArgument for &mut DeviceArray<T> {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        self.untyped().add_to(list)
    }
}

/// The address of the first element; the kernel may read and write the array.
impl KernelArgument for Array {
    fn add_to<'a>(&'a self, list: &mut ArgumentList<'a>) -> Result<()> {
        list.memory(self.address(), self.memory(), Access::Write);
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

impl dyn Kernel {
    /// Queues a launch with a tuple of up to 16 arguments: numbers, [`Scalar`]s, `&array` for
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
