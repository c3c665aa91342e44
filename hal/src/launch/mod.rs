//! Launching kernels with typed arguments.
//!
//! `kernel.launch(config, &stream, (a, &x, &mut y, n))` checks the number and the sizes of the
//! arguments against what the driver says the kernel takes, orders the launch behind other
//! streams' work on the same memory, and queues it. Arguments that are not one for each parameter are packed as
//! PyCUDA packs them ([`ArgumentList::launch`]).

mod packing;

use crate::array::{Array, DeviceArray};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::memory::{Access, AccessGuard, DeviceMemory, Use};
use crate::module::{Kernel, LaunchConfig, Parameter};
use crate::scalar::Scalar;
use crate::stream::Stream;
use packing::Packed;
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
    /// Memories that nobody but the list may keep; `None` for none, which is dropped at once.
    kept: Option<Vec<(Arc<DeviceMemory>, Access)>>,
}

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

    /// Adds a value by its bytes: a structure, or several parameters with the padding between them.
    ///
    /// # Errors
    /// `InvalidArgument` for more than 32 KiB, which no device takes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.push(bytes, Form::Bytes, 1)
    }

    /// Adds an array of numbers of `element` bytes by its bytes.
    ///
    /// # Errors
    /// As for [`ArgumentList::bytes`].
    pub fn elements(&mut self, bytes: &[u8], element: usize) -> Result<()> {
        self.push(bytes, Form::Bytes, u8::try_from(element).unwrap_or(1).max(1))
    }

    /// Adds a number by its bytes, which is packed at a multiple of `alignment` bytes.
    ///
    /// # Errors
    /// As for [`ArgumentList::bytes`].
    pub fn number(&mut self, bytes: &[u8], alignment: usize) -> Result<()> {
        self.push(bytes, Form::Number, u8::try_from(alignment).unwrap_or(1).max(1))
    }

    /// Adds the value of at most 16 bytes that `word` begins with; zeros follow it.
    #[inline]
    fn push_word(&mut self, word: u128, size: usize, form: Form, element: u8) {
        let place = Place { word: self.words.len() as u32, size: size as u16, form, element };
        self.places.push(place);
        self.words.push(word);
    }

    /// Adds a number as [`ArgumentList::number`] does.
    #[inline]
    fn scalar(&mut self, scalar: Scalar) {
        let dtype = scalar.dtype();
        self.push_word(scalar.word(), dtype.size(), Form::Number, dtype.alignment() as u8);
    }

    fn push(&mut self, bytes: &[u8], form: Form, element: u8) -> Result<()> {
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
        self.places.push(Place { word, size: bytes.len() as u16, form, element });
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
        let form = if signed { Form::Signed } else { Form::Unsigned };
        self.push(bytes, form, bytes.len() as u8)
    }

    /// Adds an address that nothing is known of.
    #[inline]
    pub fn address(&mut self, address: u64) {
        self.scalar(Scalar::new(address));
    }

    /// Adds an address inside `memory`, which the kernel uses as `access` says: with
    /// [`Access::Read`] it must not write there.
    #[inline]
    pub fn memory(&mut self, address: u64, memory: &'a Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.uses.push((memory, access));
    }

    /// As [`ArgumentList::memory`], with memory that the list keeps.
    pub fn kept_memory(&mut self, address: u64, memory: Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.kept.get_or_insert_default().push((memory, access));
    }

    /// Queues the launch.
    ///
    /// There is an argument of its size for each parameter; or the arguments, each packed behind the one before
    /// it at a multiple of its alignment, have all parameters' bytes where these lie, and nothing else. A structure
    /// is so given by its components, and several parameters by one array.
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
        let packed = self.check(kernel)?;
        let mut pointers = SmallVec::<[*mut c_void; 16]>::new();
        match &packed {
            None => pointers.extend(self.pointers()),
            Some(packed) => pointers.extend(packed.pointers()),
        }
        {
            let _guard = match &self.kept {
                None => AccessGuard::acquire(stream, &self.uses)?,
                Some(kept) => AccessGuard::acquire(stream, &self.all_uses(kept))?,
            };
            // SAFETY: the caller's promise; the driver reads the values before the call returns.
            unsafe {
                match cooperative {
                    false => kernel.launch_raw(stream.as_ref(), config, &pointers),
                    true => kernel.launch_cooperative(stream.as_ref(), config, &pointers),
                }?;
            }
        }
        kernel.finish_launch(stream.as_ref())
    }

    /// Returns the address of each argument.
    fn pointers(&self) -> impl Iterator<Item = *mut c_void> {
        let base = self.words.as_ptr();
        self.places.iter().map(move |it| base.wrapping_add(it.word as usize).cast_mut().cast())
    }

    fn all_uses<'b>(&'b self, kept: &'b [(Arc<DeviceMemory>, Access)]) -> Vec<Use<'b>> {
        let kept = kept.iter().map(|(memory, access)| (memory, *access));
        self.uses.iter().copied().chain(kept).collect()
    }

    /// Checks number and sizes of the arguments; those that are not one for each parameter are returned as packed.
    #[inline]
    fn check(&self, kernel: &dyn Kernel) -> Result<Option<Packed>> {
        let Some(parameters) = kernel.parameters()? else { return Ok(None) };
        let mut pairs = self.places.iter().zip(parameters);
        if self.len() == parameters.len()
            && pairs.all(|(place, parameter)| usize::from(place.size) == parameter.size)
        {
            return Ok(None);
        }
        self.check_other_sizes(kernel, parameters)
    }

    #[cold]
    fn check_other_sizes(
        &self,
        kernel: &dyn Kernel,
        parameters: &[Parameter],
    ) -> Result<Option<Packed>> {
        let packed = || packing::pack(&self.words, &self.places, parameters);
        let (given, wanted) = (self.len(), parameters.len());
        if given != wanted {
            let takes =
                || format!("kernel {} takes {wanted} arguments; {given} were given", kernel.name());
            return packed().map(Some).ok_or_else(|| Error::invalid("launch", takes()));
        }
        for (position, (place, parameter)) in self.places.iter().zip(parameters).enumerate() {
            let size = usize::from(place.size);
            if size == parameter.size {
                continue;
            }
            let end = parameters
                .get(position + 1)
                .map_or(parameter.offset.saturating_add(parameter.size), |next| next.offset);
            let word = self.words.get(place.word as usize).copied().unwrap_or(0);
            if place.stands_for(word, *parameter, end.saturating_sub(parameter.offset)) {
                continue;
            }
            let has = || {
                format!(
                    "argument {position} of kernel {} has {size} bytes; its parameter has {}",
                    kernel.name(),
                    parameter.size
                )
            };
            return packed().map(Some).ok_or_else(|| Error::invalid("launch", has()));
        }
        Ok(None)
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
