//! The list of a launch's arguments: their values, and the memory objects that they name.

use super::packing::{self, Form, Packed, Place};
use crate::error::{Error, Result};
use crate::memory::{Access, AccessGuard, DeviceMemory, Use};
use crate::module::{Kernel, LaunchConfig, Parameter};
use crate::recording::{self, Work};
use crate::scalar::Scalar;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// Memory objects that a list owns.
#[derive(Debug, Default)]
struct Kept(Vec<(Arc<DeviceMemory>, Access)>);

/// The arguments of one launch in the form that a driver expects, and the memory objects that they name.
///
/// A binding that receives each argument as bytes, for example from another language:
///
/// ```
/// use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, ModuleSource};
/// use gpuarray::{launch::ArgumentList, memory::Access};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// # let text = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// # let source = ModuleSource::Source { text, name: "scale.cu", options: &[] };
/// # // SAFETY: the text has no variables whose initialisers would run.
/// # let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let kernel = module.kernel("scale")?;
/// let x = DeviceArray::from_slice(&device, &[1.0f32, 2.0])?;
/// let mut list = ArgumentList::new();
/// list.memory(x.as_device_pointer(), x.untyped().memory(), Access::Write);
/// list.number(&3.0f32.to_ne_bytes(), 4)?;
/// // SAFETY: the kernel takes a pointer and a float, and two threads stay inside the array.
/// unsafe { list.launch(kernel.as_ref(), &LaunchConfig::linear(2, 2), x.stream(), false)? };
/// assert_eq!(x.to_vec()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ArgumentList<'a> {
    /// The values, each aligned to 16 bytes.
    pub(super) words: SmallVec<[u128; 16]>,
    pub(super) places: SmallVec<[Place; 16]>,
    uses: SmallVec<[Use<'a>; 8]>,
    /// Memory objects that only the list owns; `None` if there are none, so that dropping is cheap.
    kept: Option<Box<Kept>>,
}

fn bytes_text(count: usize) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// Formats the first items of a list in parentheses, so that messages stay short.
fn listed<T>(all: &[T], text: impl Fn(&T) -> String) -> String {
    const MOST: usize = 8;
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = all.iter().take(MOST).map(text).collect();
    let more = if all.len() > MOST { ", ..." } else { "" };
    format!(" ({}{more})", shown.join(", "))
}

/// Returns at most 16 bytes, padded with zeros.
#[inline]
fn word(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    match bytes.len() {
        // Constant sizes compile to moves instead of a call.
        4 => word[..4].copy_from_slice(&bytes[..4]),
        8 => word[..8].copy_from_slice(&bytes[..8]),
        size => word[..size].copy_from_slice(bytes),
    }
    u128::from_ne_bytes(word)
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

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the size in bytes of the last argument; `None` if the list is empty.
    pub fn last_size(&self) -> Option<usize> {
        self.places.last().map(|place| place.size.into())
    }

    /// Returns true if the arguments do not correspond one to one to the kernel's parameters, and are packed into
    /// them instead.
    ///
    /// # Errors
    /// As for [`ArgumentList::launch`].
    pub fn is_packed(&self, kernel: &dyn Kernel) -> Result<bool> {
        self.check(kernel).map(|packed| packed.is_some())
    }

    /// Adds a value as bytes: a structure, or several parameters with the padding between them.
    ///
    /// # Errors
    /// `InvalidArgument` for more than 32 KiB: that exceeds every device's limit.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.push(bytes, Form::Bytes, 1)
    }

    /// Adds an array of numbers as bytes. Each number has `element` bytes.
    ///
    /// # Errors
    /// As for [`ArgumentList::bytes`].
    pub fn elements(&mut self, bytes: &[u8], element: usize) -> Result<()> {
        self.push(bytes, Form::Bytes, u8::try_from(element).unwrap_or(1).max(1))
    }

    /// Adds a number as bytes. When arguments are packed, it is aligned to `alignment` bytes.
    ///
    /// # Errors
    /// As for [`ArgumentList::bytes`].
    pub fn number(&mut self, bytes: &[u8], alignment: usize) -> Result<()> {
        self.push(bytes, Form::Number, u8::try_from(alignment).unwrap_or(1).max(1))
    }

    /// Adds a value of at most 16 bytes: the first `size` bytes of `word`, followed by zeros.
    #[inline]
    fn push_word(&mut self, word: u128, size: usize, form: Form, element: u8) {
        let place = Place { word: self.words.len() as u32, size: size as u16, form, element };
        self.places.push(place);
        self.words.push(word);
    }

    /// Adds a number as [`ArgumentList::number`] does.
    #[inline]
    pub(super) fn scalar(&mut self, scalar: Scalar) {
        let dtype = scalar.dtype();
        self.push_word(scalar.word(), dtype.size(), Form::Number, dtype.alignment() as u8);
    }

    fn push(&mut self, bytes: &[u8], form: Form, element: u8) -> Result<()> {
        const LIMIT: usize = 32 << 10;
        if bytes.len() > LIMIT {
            return Err(Error::invalid(
                "launch",
                format!(
                    "argument {} has a size of {}; at most {LIMIT} is allowed",
                    self.len(),
                    bytes.len()
                ),
            ));
        }
        let (first, rest) = bytes.split_at(bytes.len().min(16));
        self.push_word(word(first), bytes.len(), form, element);
        self.words.extend(rest.chunks(16).map(word));
        Ok(())
    }

    /// Adds an integer of one to eight bytes. Its size may differ from the parameter's if packing the arguments into
    /// one buffer, each aligned to its size, still gives the parameter the same value: the parameter begins at the
    /// integer and has room for it.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of bytes.
    pub fn integer(&mut self, bytes: &[u8], signed: bool) -> Result<()> {
        if !(1..=8).contains(&bytes.len()) {
            return Err(Error::invalid(
                "launch",
                format!(
                    "argument {} is an integer of size {}; 1 to 8 are allowed",
                    self.len(),
                    bytes.len()
                ),
            ));
        }
        let form = if signed { Form::Signed } else { Form::Unsigned };
        self.push(bytes, form, bytes.len() as u8)
    }

    /// Adds an address in memory that the library does not track.
    #[inline]
    pub fn address(&mut self, address: u64) {
        self.scalar(Scalar::new(address));
    }

    /// Adds an address inside `memory`; `access` says how the kernel uses the memory. With [`Access::Read`], the
    /// kernel must not write there.
    #[inline]
    pub fn memory(&mut self, address: u64, memory: &'a Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.uses.push((memory, access));
    }

    /// Like [`ArgumentList::memory`], but the list owns the memory.
    pub fn kept_memory(&mut self, address: u64, memory: Arc<DeviceMemory>, access: Access) {
        self.address(address);
        self.kept.get_or_insert_default().0.push((memory, access));
    }

    /// Queues the launch.
    ///
    /// The arguments correspond one to one to the parameters and have their sizes. Otherwise they are packed into
    /// one buffer, each after the previous one at a multiple of its alignment, and must cover exactly the bytes of
    /// all parameters. So a structure can be passed as its components, and several parameters as one array.
    ///
    /// # Errors
    /// `InvalidArgument` if the number or sizes of the arguments do not match the kernel's parameters, as far as the
    /// driver reports them. Nothing is queued then.
    ///
    /// # Safety
    /// - The arguments have the types that the kernel declares.
    /// - The kernel accesses only memory added by [`ArgumentList::memory`], and memory that the caller keeps
    ///   allocated and ordered until the kernel has run.
    /// - It does not write to memory that was added with [`Access::Read`]: other streams may read it at the same
    ///   time.
    /// - `stream` and `kernel` belong to the same device, and this device can access the memory.
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
            let stream = stream.as_ref();
            let work = || Work::kernel(kernel.name(), config, self.memory_bytes());
            // SAFETY: the caller's promise; the driver reads the values before the call returns.
            recording::queued(stream, work, || unsafe {
                match cooperative {
                    false => kernel.launch_raw(stream, config, &pointers),
                    true => kernel.launch_cooperative(stream, config, &pointers),
                }
            })?;
        }
        kernel.finish_launch(stream.as_ref())
    }

    /// Returns the bytes of all memory that was added, each once.
    fn memory_bytes(&self) -> u64 {
        let kept = self.kept.iter().flat_map(|kept| kept.0.iter().map(|it| &it.0));
        let all = self.uses.iter().map(|it| it.0).chain(kept);
        let mut all: SmallVec<[_; 16]> = all.map(|it| (it.address(), it.bytes() as u64)).collect();
        all.sort_unstable();
        all.dedup();
        all.iter().map(|memory| memory.1).sum()
    }

    /// Returns the address of each argument.
    fn pointers(&self) -> impl Iterator<Item = *mut c_void> {
        let base = self.words.as_ptr();
        self.places.iter().map(move |it| base.wrapping_add(it.word as usize).cast_mut().cast())
    }

    fn all_uses<'b>(&'b self, kept: &'b Kept) -> Vec<Use<'b>> {
        let kept = kept.0.iter().map(|(memory, access)| (memory, *access));
        self.uses.iter().copied().chain(kept).collect()
    }

    /// Checks the number and the sizes of the arguments. If they do not correspond one to one to the parameters,
    /// returns them packed.
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
        let misfit = self.misfit(parameters);
        if self.len() == parameters.len() && misfit.is_none() {
            return Ok(None);
        }
        packing::pack(&self.words, &self.places, parameters).map(Some).ok_or_else(|| {
            Error::invalid("launch", self.refusal(kernel.name(), parameters, misfit))
        })
    }

    /// Returns the position of the first argument that has neither the size of the parameter at its position nor a
    /// value that the parameter can hold.
    #[cold]
    pub fn misfit(&self, parameters: &[Parameter]) -> Option<usize> {
        let fits = |position: usize, place: &Place, parameter: &Parameter| {
            let end = parameters
                .get(position + 1)
                .map_or(parameter.offset.saturating_add(parameter.size), |next| next.offset);
            let word = self.words.get(place.word as usize).copied().unwrap_or(0);
            usize::from(place.size) == parameter.size
                || place.stands_for(word, *parameter, end.saturating_sub(parameter.offset))
        };
        let mut pairs = self.places.iter().zip(parameters).enumerate();
        pairs
            .find(|(position, (place, parameter))| !fits(*position, place, parameter))
            .map(|it| it.0)
    }

    /// Returns the message that says which arguments do not fit.
    fn refusal(&self, kernel: &str, parameters: &[Parameter], misfit: Option<usize>) -> String {
        let (given, wanted) = (self.len(), parameters.len());
        match misfit.and_then(|position| Some((position, self.places.get(position)?.size))) {
            Some((position, size)) if given == wanted => format!(
                "argument {position} (0-based) of kernel {kernel} has {}; its parameter {}has {}",
                bytes_text(size.into()),
                if parameters[position].is_pointer == Some(true) {
                    "is a pointer and "
                } else {
                    ""
                },
                parameters[position].size
            ),
            _ => {
                let own = listed(parameters, |it| match it.is_pointer {
                    Some(true) => "a pointer".into(),
                    _ => bytes_text(it.size),
                });
                let plural = if wanted == 1 { "" } else { "s" };
                let were = if given == 1 { "was" } else { "were" };
                let others = listed(&self.places, |place| bytes_text(place.size.into()));
                format!(
                    "kernel {kernel} takes {wanted} argument{plural}{own}; {given} {were} given{others}"
                )
            }
        }
    }
}
