//! Typed arrays in managed memory: host and device share this memory.

use super::DeviceArray;
use super::transfer::normalize;
use crate::Array;
use crate::layout::{Layout, Order, shape_text};
use hal::device::Device;
use hal::dtype::{DType, Element};
use hal::error::{Error, Result};
use hal::memory::{Access, DeviceMemory, HostAccess, Managed};
use hal::properties::DeviceAttribute;
use hal::stream::{PrefetchTarget, Stream};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// An array of `T` in managed memory; host and device share the elements. It is a [`DeviceArray`] on the device and a
/// slice on the host, at the same addresses and without a copy.
///
/// A slice waits for conflicting work. While a slice of [`ManagedArray::as_slice`] lives, writes fail,
/// through every view and on every thread. While a slice of [`ManagedArray::as_mut_slice`] lives, all
/// operations fail.
///
/// The host writes the input of a calculation, and reads the result in place:
///
/// ```
/// use gpuarray::{ErrorKind, ManagedArray};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut x = ManagedArray::<f32>::zeros(&device, &[4])?;
/// x.as_mut_slice()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// x.mul_assign(2.0)?;
/// assert_eq!(x.as_slice()?[..], [2.0, 4.0, 6.0, 8.0]);
///
/// let mut view = x.clone();
/// let slice = x.as_slice()?;
/// assert_eq!(view.fill(0.0).unwrap_err().kind(), ErrorKind::InvalidArgument);
/// assert_eq!(view.sum()?, slice.iter().sum());
/// # Ok(())
/// # }
/// ```
pub struct ManagedArray<T: Element> {
    /// None for an array without elements.
    managed: Option<Managed>,
    /// The memory of the original array, even if the program replaces `array`.
    memory: Arc<DeviceMemory>,
    length: usize,
    array: DeviceArray<T>,
}

impl<T: Element> ManagedArray<T> {
    /// Returns a new array in C order, with all elements [`Element::ZERO`]. Its operations are queued on the device's
    /// default stream.
    ///
    /// # Errors
    /// `Unsupported` if the device does not support managed memory, or does not allow the host to use it while the
    /// device works; `OutOfMemory`; `Overflow` if the shape is larger than the address space.
    pub fn zeros(device: &Arc<dyn Device>, shape: &[usize]) -> Result<Self> {
        const { assert!(align_of::<T>() <= 256, "an element aligned to more than an allocation") };
        let layout = Layout::contiguous(shape, size_of::<T>(), Order::C)?;
        let (bytes, length) = (layout.nbytes(), layout.size());
        if device.attribute(DeviceAttribute::CONCURRENT_MANAGED_ACCESS).unwrap_or(0) == 0 {
            let detail = "the host may not use the device's managed memory while the device works; use a DeviceArray";
            return Err(Error::unsupported("managed", detail));
        }
        let managed = (bytes > 0).then(|| Managed::new(device, bytes)).transpose()?;
        let memory = match &managed {
            Some(managed) => managed.allocation().memory().clone(),
            None => Arc::new(DeviceMemory::plain(device, 0)?),
        };
        let array = Array::from_memory(memory.clone(), layout, T::DTYPE, device.default_stream())?;
        let array = DeviceArray::wrap(array);
        let mut managed = ManagedArray { managed, memory, length, array };
        managed.as_mut_slice()?.fill(T::ZERO);
        Ok(managed)
    }

    /// Like [`ManagedArray::zeros`], with one axis and the elements of a slice.
    ///
    /// # Errors
    /// As for [`ManagedArray::zeros`].
    pub fn from_slice(device: &Arc<dyn Device>, values: &[T]) -> Result<Self> {
        let mut managed = Self::zeros(device, &[values.len()])?;
        managed.as_mut_slice()?.copy_from_slice(values);
        Ok(managed)
    }

    /// Waits for work that writes the memory, and returns the elements, the last axis fastest. Until the slice is
    /// dropped, operations that write the memory fail. A slice of truth values excludes other slices and all
    /// operations.
    ///
    /// # Errors
    /// `InvalidArgument` while a leaked mutable slice holds the memory, or inside a host function; a failure of queued
    /// work.
    pub fn as_slice(&self) -> Result<ManagedSlice<'_, T>> {
        // Bytes other than 0 and 1 are replaced, so nothing else may read them meanwhile.
        let access = if T::DTYPE == DType::Bool { Access::Write } else { Access::Read };
        Ok(ManagedSlice(self.array.array.during(|| Elements::of(self, access))?))
    }

    /// Waits for work that uses the memory, and returns the elements, the last axis fastest. Until the slice is
    /// dropped, operations on the memory fail.
    ///
    /// # Errors
    /// As for [`ManagedArray::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<ManagedSliceMut<'_, T>> {
        Ok(ManagedSliceMut(self.array.array.during(|| Elements::of(self, Access::Write))?))
    }

    /// Queues the migration of the elements to the stream's device or to the host, before they are used there: see
    /// [`Managed::prefetch`].
    ///
    /// # Errors
    /// As for [`Managed::prefetch`].
    pub fn prefetch(&self, stream: &Arc<dyn Stream>, to: PrefetchTarget) -> Result<()> {
        let prefetch = |managed: &Managed| managed.prefetch(stream, to);
        self.array.array.during(|| self.managed.as_ref().map_or(Ok(()), prefetch))
    }

    /// Returns the device array.
    pub fn into_array(self) -> DeviceArray<T> {
        self.array
    }
}

impl<T: Element> fmt::Debug for ManagedArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManagedArray({} of shape {})", T::DTYPE, shape_text(self.array.shape()))
    }
}

impl<T: Element> Deref for ManagedArray<T> {
    type Target = DeviceArray<T>;

    fn deref(&self) -> &DeviceArray<T> {
        &self.array
    }
}

impl<T: Element> DerefMut for ManagedArray<T> {
    fn deref_mut(&mut self) -> &mut DeviceArray<T> {
        &mut self.array
    }
}

/// The elements of managed memory during a use by the host. This is a pointer because a reference would have to stay
/// valid until the object is gone, and the memory is only valid until the access ends.
struct Elements<'a, T> {
    start: NonNull<T>,
    length: usize,
    _access: HostAccess,
    array: PhantomData<&'a T>,
}

// SAFETY: the object is a slice of elements, which are Send and Sync.
unsafe impl<T: Element> Send for Elements<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Elements<'_, T> {}

impl<'a, T: Element> Elements<'a, T> {
    fn of(managed: &'a ManagedArray<T>, access: Access) -> Result<Self> {
        let (memory, length) = (&managed.memory, managed.length);
        let begun = memory.access_from_host(access)?;
        let start = NonNull::new(memory.address() as *mut T).unwrap_or(NonNull::dangling());
        if access == Access::Write {
            // SAFETY: managed memory has the same addresses on the host. It has `length` elements, which nothing else
            // uses.
            unsafe { normalize(start.as_ptr(), length) };
        }
        Ok(Elements { start, length, _access: begun, array: PhantomData })
    }

    fn get(&self) -> &[T] {
        // SAFETY: the memory has `length` aligned elements, which are neither written nor freed while the access lives.
        // All byte patterns are valid elements, except for truth values, which have been normalised to 0 or 1.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

macro_rules! slices {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        pub struct $name<'a, T: Element>(Elements<'a, T>);

        impl<T: Element> Deref for $name<'_, T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                self.0.get()
            }
        }

        impl<T: Element> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.iter()).finish()
            }
        }
    )+};
}

slices! {
    /// The elements of a [`ManagedArray`], for reading on the host.
    ///
    /// ```
    /// use gpuarray::{ManagedArray, ManagedSlice};
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    /// let x = ManagedArray::from_slice(&device, &[3i32, 1, 2])?;
    /// let slice: ManagedSlice<i32> = x.as_slice()?;
    /// assert_eq!(slice.iter().max(), Some(&3));
    /// # Ok(())
    /// # }
    /// ```
    ManagedSlice
    /// The elements of a [`ManagedArray`], for writing on the host.
    ///
    /// ```
    /// use gpuarray::{ManagedArray, ManagedSliceMut};
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    /// let mut x = ManagedArray::from_slice(&device, &[3i32, 1, 2])?;
    /// let mut slice: ManagedSliceMut<i32> = x.as_mut_slice()?;
    /// slice.sort();
    /// drop(slice);
    /// assert_eq!(x.to_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ManagedSliceMut
}

impl<T: Element> DerefMut for ManagedSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for reading; the access excludes streams and other slices.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.length) }
    }
}
