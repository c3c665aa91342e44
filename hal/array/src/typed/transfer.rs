//! Copies between typed arrays and the host.
//!
//! A copy from or to ordinary memory waits, so it can use a slice. A copy that does not wait needs memory that
//! is not freed or used meanwhile, even if the program leaks the copy. Such a copy therefore owns a
//! [`PinnedBuffer`] until it is done.

use super::DeviceArray;
use crate::layout::shape_text;
use hal::device::Device;
use hal::dtype::{DType, Element};
use hal::error::{Error, ErrorKind, Result};
use hal::event::{Event, EventOptions};
use hal::memory::{PinnedMemory, is_left, wait_before_copy};
use hal::recording::{self, Kind};
use hal::status::Status;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Replaces the bytes of bools by 0 or 1. A Rust bool must be 0 or 1, but foreign writers may store any byte.
///
/// # Safety
/// `length` elements of `T` can be written at `values`.
pub(super) unsafe fn normalize<T: Element>(values: *mut T, length: usize) {
    if T::DTYPE == DType::Bool {
        // SAFETY: the caller's promise, and any byte is a valid u8.
        let bytes = unsafe { std::slice::from_raw_parts_mut(values.cast::<u8>(), length) };
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
}

impl<T: Element> DeviceArray<T> {
    /// Returns the elements, the last axis fastest. Waits for the work that computes them.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.array.during(|| {
            let mut values = Vec::new();
            values.try_reserve_exact(self.size()).map_err(|_| {
                let status = Status::host(Status::OUT_OF_MEMORY);
                let what =
                    format!("the host has no memory for {} elements of {}", self.size(), T::DTYPE);
                Error::new(ErrorKind::OutOfMemory, status, "to_vec", what)
            })?;
            // SAFETY: the buffer has room for the elements, which have arrived when the copy returns.
            unsafe {
                self.copy_to(values.as_mut_ptr())?;
                normalize(values.as_mut_ptr(), self.size());
                values.set_len(self.size());
            }
            Ok(values)
        })
    }

    /// Copies the elements to host memory, the last axis fastest, and waits for the copy.
    ///
    /// # Safety
    /// All elements can be written at `values`.
    unsafe fn copy_to(&self, values: *mut T) -> Result<()> {
        let packed = self.array.in_c_order()?;
        if self.size() > 0 {
            wait_before_copy(packed.stream().as_ref())?;
        }
        // SAFETY: the caller's promise, and the call waits until the elements have arrived.
        unsafe { packed.download(values.cast(), true) }
    }

    /// Copies the elements into a slice, the last axis fastest. Waits for the work that computes them.
    ///
    /// # Errors
    /// `InvalidArgument` if the slice has another length; a failure of queued work.
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<()> {
        self.array.during(|| {
            self.check_length(values.len())?;
            // SAFETY: the slice has room for the elements.
            let copied = unsafe { self.copy_to(values.as_mut_ptr()) };
            // Also done after a failed copy, which may have copied a part. SAFETY: the slice has this many
            // elements.
            unsafe { normalize(values.as_mut_ptr(), values.len()) };
            copied
        })
    }

    /// Sets the elements from a slice, the last axis fastest. Waits until they have arrived.
    ///
    /// # Errors
    /// `InvalidArgument` if the slice has another length; `OutOfMemory`.
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<()> {
        self.array.during(|| {
            self.check_length(values.len())?;
            if !values.is_empty() {
                wait_before_copy(self.stream().as_ref())?;
            }
            if self.layout().is_c_contiguous() {
                // SAFETY: the slice has the right number of elements, and the call waits until they have been
                // read.
                return unsafe { self.array.upload(values.as_ptr().cast(), true) };
            }
            let staged = self.array.new_result(self.shape(), T::DTYPE)?;
            // SAFETY: as above.
            unsafe { staged.upload(values.as_ptr().cast(), true)? };
            self.array.assign(&staged)
        })
    }

    fn check_length(&self, length: usize) -> Result<()> {
        if length == self.size() {
            return Ok(());
        }
        Err(Error::invalid(
            "values",
            format!(
                "the length of the slice is {length}; shape {} has the size {}",
                shape_text(self.shape()),
                self.size()
            ),
        ))
    }

    /// Queues a copy of the elements, the last axis fastest, to a page-locked buffer. [`PendingCopy::wait`]
    /// returns the buffer.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer has another length, or while the stream captures;
    /// `OutOfMemory`.
    pub fn copy_to_pinned(&self, buffer: PinnedBuffer<T>) -> Result<PendingCopy<T>> {
        self.array.during(|| {
            self.check_length(buffer.len())?;
            let packed = self.array.in_c_order()?;
            let pointer = buffer.memory.pointer();
            let pending = PendingCopy::new(self, buffer)?;
            // SAFETY: the buffer has room for the elements; it belongs to the pending copy, which
            // returns it when the copy has run.
            unsafe { packed.download(pointer, false)? };
            pending.mark(self)
        })
    }

    /// Queues a copy of a page-locked buffer's elements, the last axis fastest, to this array.
    /// [`PendingCopy::wait`] returns the buffer.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer has another length, or while the stream captures;
    /// `OutOfMemory`.
    pub fn copy_from_pinned(&mut self, buffer: PinnedBuffer<T>) -> Result<PendingCopy<T>> {
        self.array.during(|| {
            self.check_length(buffer.len())?;
            let pointer = buffer.memory.pointer();
            let is_direct = self.layout().is_c_contiguous();
            let target = match is_direct {
                true => self.array.clone(),
                false => self.array.new_result(self.shape(), T::DTYPE)?,
            };
            let pending = PendingCopy::new(self, buffer)?;
            // SAFETY: as for `copy_to_pinned`.
            unsafe { target.upload(pointer, false)? };
            if !is_direct {
                self.array.assign(&target)?;
            }
            pending.mark(self)
        })
    }
}

/// Elements in page-locked host memory. Devices copy to and from this memory directly.
///
/// A buffer is a slice on the host. A copy owns it until the copy is done:
///
/// ```
/// use gpuarray::{DeviceArray, PinnedBuffer};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut buffer = PinnedBuffer::<f32>::new(&device, 2)?;
/// buffer.copy_from_slice(&[1.0, 2.0]);
/// let mut x = DeviceArray::<f32>::zeros(&device, &[2])?;
/// let buffer = x.copy_from_pinned(buffer)?.wait()?;
/// assert_eq!(x.to_vec()?, buffer[..]);
/// # Ok(())
/// # }
/// ```
pub struct PinnedBuffer<T: Element> {
    memory: PinnedMemory,
    length: usize,
    element: PhantomData<T>,
}

impl<T: Element> PinnedBuffer<T> {
    /// Allocates `length` elements, all of them [`Element::ZERO`].
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` for more than the address space.
    pub fn new(device: &Arc<dyn Device>, length: usize) -> Result<Self> {
        // The allocation is aligned to a page.
        const { assert!(align_of::<T>() <= 4096, "an element aligned to more than a page") };
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| {
            Error::overflow(
                "length",
                format!(
                    "length is {length}; allowed are up to {} for elements of size {}",
                    isize::MAX as usize / size_of::<T>(),
                    size_of::<T>()
                ),
            )
        })?;
        let memory = PinnedMemory::new(device, bytes)?;
        let mut buffer = PinnedBuffer { memory, length, element: PhantomData };
        buffer.fill(T::ZERO);
        Ok(buffer)
    }

    fn start(&self) -> *mut T {
        match self.memory.is_empty() {
            true => std::ptr::dangling_mut(),
            false => self.memory.pointer().cast(),
        }
    }
}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} elements of {})", self.length, T::DTYPE)
    }
}

impl<T: Element> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer owns this many aligned, valid elements.
        unsafe { std::slice::from_raw_parts(self.start(), self.length) }
    }
}

impl<T: Element> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the buffer is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.length) }
    }
}

/// A copy in progress, with its buffer. Dropping it waits for the copy; leaking it leaks the buffer.
///
/// A copy during which the host does other work:
///
/// ```
/// use gpuarray::{DeviceArray, PinnedBuffer};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::<f64>::ones(&device, &[1 << 16])?;
/// let copy = (&x * 3.0)?.copy_to_pinned(PinnedBuffer::new(&device, 1 << 16)?)?;
/// let mut rounds = 0;
/// while !copy.is_done()? {
///     rounds += 1;
/// }
/// println!("{rounds} rounds of other work");
/// assert_eq!(copy.wait()?[0], 3.0);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a copy waits for it"]
pub struct PendingCopy<T: Element> {
    /// None once it has been returned.
    buffer: Option<PinnedBuffer<T>>,
    /// Recorded after the copy, once that is queued.
    event: Arc<dyn Event>,
    is_marked: bool,
    array: DeviceArray<T>,
}

impl<T: Element> PendingCopy<T> {
    fn new(array: &DeviceArray<T>, buffer: PinnedBuffer<T>) -> Result<Self> {
        if array.stream().is_capturing()? {
            // Each launch of the graph would use a buffer that has already been returned.
            return Err(Error::invalid(
                "stream",
                "the array's stream captures; a copy that owns its buffer can run only once",
            ));
        }
        let event = array.stream().create_event(EventOptions::ORDERING)?;
        Ok(PendingCopy { buffer: Some(buffer), event, is_marked: false, array: array.clone() })
    }

    fn mark(mut self, array: &DeviceArray<T>) -> Result<Self> {
        array.stream().record(self.event.as_ref())?;
        self.is_marked = true;
        Ok(self)
    }

    /// Returns true once the copy has run.
    ///
    /// # Errors
    /// A failure of queued work, except a host function's failure: a waiting call reports that one.
    pub fn is_done(&self) -> Result<bool> {
        self.event.query()
    }

    /// Waits for the copy, and returns the buffer.
    ///
    /// # Errors
    /// A failure of queued work, including a host function before the copy. The buffer is then freed if the copy
    /// has run, and leaked if the device may still use it.
    pub fn wait(mut self) -> Result<PinnedBuffer<T>> {
        self.drain()?;
        let buffer = self.buffer.take();
        buffer.ok_or_else(|| Error::handle("copy", "the buffer has been returned already"))
    }

    /// Moves the copy to another object.
    fn take(&mut self) -> Self {
        let (event, array) = (self.event.clone(), self.array.clone());
        PendingCopy { buffer: self.buffer.take(), event, is_marked: self.is_marked, array }
    }

    fn drain(&self) -> Result<()> {
        match self.is_marked {
            true => recording::during(Kind::Wait, "event", || self.event.synchronize())?,
            // Recording the event or the copy failed: a part may be queued.
            false => self.array.stream().synchronize()?,
        }
        if let Some(buffer) = &self.buffer {
            // SAFETY: the buffer has this many elements, and the copy has run.
            unsafe { normalize(buffer.start(), buffer.length) };
        }
        Ok(())
    }
}

impl<T: Element> fmt::Debug for PendingCopy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingCopy({:?})", self.buffer)
    }
}

impl<T: Element> Drop for PendingCopy<T> {
    fn drop(&mut self) {
        let device = self.array.device().id();
        if self.buffer.is_none() || is_left(device, || self.take()) {
            return;
        }
        let buffer = self.buffer.take();
        let waited = match self.is_marked {
            true => self.event.drain(),
            false => self.array.stream().drain(),
        };
        if let Err(error) = waited {
            // The device may still write to the buffer.
            log::warn!("waiting for a copy failed, its buffer is kept: {error}");
            std::mem::forget(buffer);
        }
    }
}
