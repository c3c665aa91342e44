//! The safe, statically typed array.

mod create;
mod elements;
pub mod functions;
mod lazy;
mod managed;
mod methods;
mod operators;
mod transfer;

pub use elements::{Arithmetic, Bits, Float, Inexact, Integer, Numeric, Real};
pub use lazy::{Lazy, LazyOperand};
pub use managed::{ManagedArray, ManagedSlice, ManagedSliceMut};
pub use operators::Operand;
pub use transfer::{PendingCopy, PinnedBuffer};

use super::{Argument, Array};
use crate::layout::{IndexItem, Layout, Order};
use functions::{BinaryOf, ReductionOf, RunningOf, UnaryOf};
use hal::device::Device;
use hal::dtype::Element;
use hal::error::{Error, Result};
use hal::scalar::Scalar;
use hal::status::Status;
use hal::stream::Stream;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An array of `T` in device memory.
///
/// Operations are queued on the array's stream. They are ordered with operations of other arrays that share its
/// memory, on any stream. Only transfers between device and host wait. Operations that write take `&mut self`. Views
/// share the memory: writes through one are visible through the others.
///
/// Operators queue work, views share memory, and methods that return numbers to the host wait:
///
/// ```
/// use gpuarray::{DeviceArray, s};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let table = DeviceArray::from_shaped(&device, &[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let centred = (&table - &table.mean_along(&[0])?)?;
/// assert_eq!(centred.to_vec()?, [-1.5, -1.5, -1.5, 1.5, 1.5, 1.5]);
///
/// let mut last = table.index(&s![.., -1])?;
/// last.fill(0.0)?;
/// assert_eq!(table.sum()?, 12.0);
/// # Ok(())
/// # }
/// ```
pub struct DeviceArray<T: Element> {
    array: Array,
    element: PhantomData<T>,
}

/// A clone shares the memory, like a clone of an `Arc`: writes through one are visible through the other.
/// [`DeviceArray::copy`] returns new memory.
impl<T: Element> Clone for DeviceArray<T> {
    fn clone(&self) -> Self {
        Self::wrap(self.array.clone())
    }
}

impl<T: Element> fmt::Debug for DeviceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.array.fmt(f)
    }
}

impl<T: Element> DeviceArray<T> {
    fn wrap(array: Array) -> Self {
        const { assert!(size_of::<T>() == T::DTYPE.size(), "Element::DTYPE has another size") };
        DeviceArray { array, element: PhantomData }
    }

    /// Returns the typed form of an array.
    ///
    /// # Errors
    /// `InvalidType` if it has another dtype.
    pub fn from_untyped(array: Array) -> Result<Self> {
        if array.dtype() != T::DTYPE {
            return Err(Error::invalid_type(
                "array",
                format!("the array has dtype {}, not {}", array.dtype(), T::DTYPE),
            ));
        }
        Ok(Self::wrap(array))
    }

    /// Returns the untyped array, whose dtype is known at run time, over the same elements.
    pub fn untyped(&self) -> &Array {
        &self.array
    }

    /// Returns the untyped array, whose dtype is known at run time, over the same elements.
    pub fn into_untyped(self) -> Array {
        self.array
    }

    /// Returns the layout: shape, strides and offset, the latter two in bytes.
    pub fn layout(&self) -> &Layout {
        self.array.layout()
    }

    /// Returns the shape: the number of elements along each axis.
    pub fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        self.array.size()
    }

    /// Returns the device that the array is on.
    pub fn device(&self) -> &Arc<dyn Device> {
        self.array.device()
    }

    /// Returns the stream on which operations of this array are queued.
    pub fn stream(&self) -> &Arc<dyn Stream> {
        self.array.stream()
    }

    /// Returns the address of the first element, for kernels of other libraries. The caller must order such work with
    /// this array's stream.
    pub fn as_device_pointer(&self) -> u64 {
        self.array.address()
    }

    /// Returns an array over the same elements whose operations are queued on another stream.
    ///
    /// # Errors
    /// `InvalidArgument` if the stream belongs to another device.
    pub fn on(&self, stream: &Arc<dyn Stream>) -> Result<Self> {
        Ok(Self::wrap(self.array.on(stream)?))
    }

    /// Returns the view that an index expression selects: `a.index(&[(1..5).into(), 0.into()])`.
    ///
    /// # Errors
    /// As for [`Layout::index`].
    pub fn index(&self, items: &[IndexItem]) -> Result<Self> {
        Ok(Self::wrap(self.array.index(items)?))
    }

    /// Splits the array along its first axis into the elements before `index` and the others, as views that two streams
    /// can use concurrently. Work on this array and its other views is ordered with work on both, and so is freeing
    /// the memory. If the byte ranges of the two views overlap, as for a transposed array, work on one is also ordered
    /// with work on the other.
    ///
    /// ```
    /// use gpuarray::{DeviceArray, StreamOptions};
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    /// let mut x = DeviceArray::<f32>::zeros(&device, &[6])?;
    /// let (head, tail) = x.split_at_mut(2)?;
    /// let second = device.create_stream(StreamOptions::default().non_blocking(true))?;
    /// tail.on(&second)?.fill(2.0)?;
    /// // Does not wait for the second stream.
    /// head.on(&device.default_stream())?.fill(1.0)?;
    /// // Waits for both.
    /// assert_eq!(x.to_vec()?, [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Array::split_at`].
    pub fn split_at_mut(&mut self, index: usize) -> Result<(Self, Self)> {
        let (head, tail) = self.array.split_at(index)?;
        Ok((Self::wrap(head), Self::wrap(tail)))
    }

    /// Returns the view with the axes in the given order, or in reverse order if `None`.
    ///
    /// # Errors
    /// `InvalidArgument` unless `axes` names every axis once.
    pub fn transpose(&self, axes: Option<&[usize]>) -> Result<Self> {
        Ok(Self::wrap(self.array.transpose(axes)?))
    }

    /// Returns the elements with another shape: a view if the strides allow it, else a copy.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of elements differs.
    pub fn reshape(&self, shape: &[isize]) -> Result<Self> {
        Ok(Self::wrap(self.array.reshape(shape, Order::C)?))
    }

    /// Returns a view that repeats the elements to a larger shape, by numpy's broadcasting rule.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        Ok(Self::wrap(self.array.broadcast_to(shape)?))
    }

    /// Returns a contiguous copy.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn copy(&self) -> Result<Self> {
        Ok(Self::wrap(self.array.copy()?))
    }

    /// Converts every element to another type, in a new array.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn cast<U: Arithmetic>(&self) -> Result<DeviceArray<U>>
    where
        T: Arithmetic,
    {
        Ok(DeviceArray::wrap(self.array.astype(U::DTYPE)?))
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// The driver's.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.array.fill(Scalar::new(value))
    }

    /// Sets the elements from `source`, broadcast.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit.
    pub fn assign(&mut self, source: &Self) -> Result<()> {
        self.array.assign(&source.array)
    }

    /// Computes a function of each element, in a new array: `a.map(Sqrt)`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn map<F: UnaryOf<T>>(&self, _: F) -> Result<DeviceArray<F::Value>> {
        DeviceArray::from_untyped(self.array.unary(F::FUNCTION)?)
    }

    /// Computes a function of corresponding elements, broadcast, in a new array:
    /// `a.zip(Less, &b)`.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit; `OutOfMemory`.
    pub fn zip<F: BinaryOf<T>>(&self, _: F, other: &Self) -> Result<DeviceArray<F::Value>> {
        let (left, right) = (Argument::Array(&self.array), Argument::Array(&other.array));
        DeviceArray::from_untyped(Array::binary(F::FUNCTION, left, right)?)
    }

    /// Stores `self[i] = function(self[i], other[i])`, with `other` broadcast.
    ///
    /// # Errors
    /// As for [`DeviceArray::zip`].
    pub fn update<F: BinaryOf<T, Value = T>>(&mut self, _: F, other: &Self) -> Result<()> {
        self.array.set_binary(F::FUNCTION, (&self.array).into(), (&other.array).into())
    }

    /// Stores `self[i] = function(self[i], value)`.
    ///
    /// # Errors
    /// As for [`DeviceArray::zip`].
    pub fn update_scalar<F: BinaryOf<T, Value = T>>(&mut self, _: F, value: T) -> Result<()> {
        self.array.set_binary(F::FUNCTION, (&self.array).into(), Scalar::new(value).into())
    }

    /// Returns `criterion ? then : otherwise`, element by element, in a new array. The shapes are
    /// broadcast.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit.
    pub fn select(criterion: &DeviceArray<bool>, then: &Self, otherwise: &Self) -> Result<Self>
    where
        T: Arithmetic,
    {
        let (then, otherwise) = (Argument::Array(&then.array), Argument::Array(&otherwise.array));
        Self::from_untyped(Array::select(&criterion.array, then, otherwise, false)?)
    }

    /// Combines the elements along `axes`, or all of them, in the type `T`, into a new array without
    /// those axes: `a.reduce(Sum, Some(&[0]))`.
    ///
    /// # Errors
    /// As for [`Array::reduce`].
    pub fn reduce<F: ReductionOf<T>>(
        &self,
        _: F,
        axes: Option<&[isize]>,
    ) -> Result<DeviceArray<F::Value>> {
        DeviceArray::from_untyped(self.array.reduce(F::REDUCTION, T::DTYPE, axes, false)?)
    }

    /// Returns the sum of the products of corresponding elements. Waits for the sum.
    ///
    /// # Errors
    /// `InvalidArgument` unless the shapes are the same; a failure of queued work.
    pub fn dot(&self, other: &Self) -> Result<T>
    where
        T: Arithmetic,
    {
        self.array.during(|| Self::from_untyped(self.array.dot(&other.array, T::DTYPE)?)?.item())
    }

    /// Computes the running values of a reduction along an axis, in a new array: `a.scan(Sum, 0)`.
    ///
    /// # Errors
    /// As for [`Array::scan`].
    pub fn scan<F: RunningOf<T>>(&self, _: F, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.scan(F::REDUCTION, T::DTYPE, axis, false, None)?)
    }

    /// Returns the elements at `indices` along an axis.
    ///
    /// # Errors
    /// As for [`Array::take`].
    pub fn take<I: Integer>(&self, indices: &DeviceArray<I>, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.take(&indices.array, axis)?)
    }

    /// Returns the only element. Waits for the work that computes it.
    ///
    /// # Errors
    /// `InvalidArgument` unless there is exactly one; a failure of queued work.
    pub fn item(&self) -> Result<T> {
        self.array.during(|| {
            let mut value = [T::ZERO];
            self.copy_to_slice(&mut value)?;
            Ok(value[0])
        })
    }

    /// Returns the status of the last operation; see [`Array::last_status`].
    pub fn last_status(&self) -> Status {
        self.array.last_status()
    }
}
