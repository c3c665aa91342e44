//! The safe, statically typed array.

use super::{Argument, Array};
use crate::Complex;
use crate::device::Device;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::f16;
use crate::function::{BinaryFunction, Reduction, UnaryFunction};
use crate::layout::{IndexItem, Layout, Order, checked_size, shape_text};
use crate::scalar::Scalar;
use crate::status::Status;
use crate::stream::Stream;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Element types with fractions.
pub trait Inexact: Element {}

impl Inexact for f16 {}
impl Inexact for f32 {}
impl Inexact for f64 {}
impl Inexact for Complex<f32> {}
impl Inexact for Complex<f64> {}

/// An array of `T` in device memory.
///
/// Operations are queued on the array's stream and ordered with those of other arrays that
/// share its memory, on whatever stream; only transfers to the host wait. Operations that
/// write take `&mut self`. Views share the memory: what is written through one is seen
/// through the others.
pub struct DeviceArray<T: Element> {
    array: Array,
    element: PhantomData<T>,
}

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

    /// The typed form of an array.
    ///
    /// # Errors
    /// `InvalidType` if its dtype is another.
    pub fn from_untyped(array: Array) -> Result<Self> {
        if array.dtype() != T::DTYPE {
            return Err(Error::invalid_type(
                "array",
                format!("the array has dtype {}, not {}", array.dtype(), T::DTYPE),
            ));
        }
        Ok(Self::wrap(array))
    }

    /// The array whose type is known at run time.
    pub fn untyped(&self) -> &Array {
        &self.array
    }

    /// The array whose type is known at run time.
    pub fn into_untyped(self) -> Array {
        self.array
    }

    /// A one-dimensional copy of a slice.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn from_slice(device: &Arc<dyn Device>, values: &[T]) -> Result<Self> {
        Self::from_shaped(device, &[values.len()], values)
    }

    /// A copy of a slice as an array of `shape`, the last axis fastest.
    ///
    /// # Errors
    /// `InvalidArgument` if the slice has not as many elements as the shape; `OutOfMemory`.
    pub fn from_shaped(device: &Arc<dyn Device>, shape: &[usize], values: &[T]) -> Result<Self> {
        if checked_size(shape, size_of::<T>())? != values.len() {
            return Err(Error::invalid(
                "values",
                format!("{} values do not fill shape {}", values.len(), shape_text(shape)),
            ));
        }
        let mut array = Self::wrap(Array::empty(device, shape, T::DTYPE, Order::C)?);
        array.copy_from_slice(values)?;
        Ok(array)
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` for a shape larger than the address space.
    pub fn zeros(device: &Arc<dyn Device>, shape: &[usize]) -> Result<Self> {
        Self::full(device, shape, T::ZERO)
    }

    /// An array of ones.
    ///
    /// # Errors
    /// As [`DeviceArray::zeros`].
    pub fn ones(device: &Arc<dyn Device>, shape: &[usize]) -> Result<Self> {
        Self::full(device, shape, T::ONE)
    }

    /// An array of one value.
    ///
    /// # Errors
    /// As [`DeviceArray::zeros`].
    pub fn full(device: &Arc<dyn Device>, shape: &[usize], value: T) -> Result<Self> {
        Ok(Self::wrap(Array::full(device, shape, Scalar::new(value), Order::C)?))
    }

    /// `start + i * step` for `i` below `length`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn sequence(device: &Arc<dyn Device>, start: T, step: T, length: usize) -> Result<Self> {
        let (start, step) = (Scalar::new(start), Scalar::new(step));
        Ok(Self::wrap(Array::sequence(device, start, step, length)?))
    }

    /// The elements, the last axis fastest. Waits for the work that produces them.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = vec![T::ZERO; self.size()];
        self.copy_to_slice(&mut values)?;
        Ok(values)
    }

    /// Copies the elements into a slice, the last axis fastest. Waits for the work that
    /// produces them.
    ///
    /// # Errors
    /// `InvalidArgument` if the slice has another length; a failure of queued work.
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<()> {
        self.check_length(values.len())?;
        let packed = if self.layout().is_c_contiguous() {
            self.array.clone()
        } else {
            self.array.contiguous(Order::C)?
        };
        // SAFETY: the slice has room for the elements, and the call waits until they are there.
        let copied = unsafe { packed.download(values.as_mut_ptr().cast(), true) };
        if T::DTYPE == DType::Bool {
            // Foreign writers may store any byte; a Rust bool must be 0 or 1. So it must behind
            // a copy that failed, which may have copied a part.
            // SAFETY: the bytes are those of the slice, and any byte is a valid u8.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), values.len())
            };
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        copied
    }

    /// Sets the elements from a slice, the last axis fastest. Waits until they have arrived.
    ///
    /// # Errors
    /// `InvalidArgument` if the slice has another length; `OutOfMemory`.
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<()> {
        self.check_length(values.len())?;
        if self.layout().is_c_contiguous() {
            // SAFETY: the slice has as many elements, and the call waits until they are read.
            return unsafe { self.array.upload(values.as_ptr().cast(), true) };
        }
        let staged = self.array.new_result(self.shape(), T::DTYPE)?;
        // SAFETY: as above.
        unsafe { staged.upload(values.as_ptr().cast(), true)? };
        self.array.assign(&staged)
    }

    fn check_length(&self, length: usize) -> Result<()> {
        if length == self.size() {
            return Ok(());
        }
        Err(Error::invalid(
            "values",
            format!(
                "a slice of {length} elements does not fit shape {} of {} elements",
                shape_text(self.shape()),
                self.size()
            ),
        ))
    }

    /// Shape, strides and offset.
    pub fn layout(&self) -> &Layout {
        self.array.layout()
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.array.size()
    }

    /// The device that the array is on.
    pub fn device(&self) -> &Arc<dyn Device> {
        self.array.device()
    }

    /// The stream that operations of this array are queued on.
    pub fn stream(&self) -> &Arc<dyn Stream> {
        self.array.stream()
    }

    /// The address of the first element, for kernels of other libraries. Work that uses it
    /// must be ordered with this array's stream by the caller.
    pub fn as_device_pointer(&self) -> u64 {
        self.array.address()
    }

    /// The same elements, with operations queued on another stream.
    ///
    /// # Errors
    /// `InvalidArgument` if the stream is of another device.
    pub fn on(&self, stream: &Arc<dyn Stream>) -> Result<Self> {
        Ok(Self::wrap(self.array.on(stream)?))
    }

    /// The view that an index expression names: `a.index(&[(1..5).into(), 0.into()])`.
    ///
    /// # Errors
    /// As [`Layout::index`].
    pub fn index(&self, items: &[IndexItem]) -> Result<Self> {
        Ok(Self::wrap(self.array.index(items)?))
    }

    /// The view with its axes in the order given; reversed without one.
    ///
    /// # Errors
    /// `InvalidArgument` unless `axes` names every axis once.
    pub fn transpose(&self, axes: Option<&[usize]>) -> Result<Self> {
        Ok(Self::wrap(self.array.transpose(axes)?))
    }

    /// The elements under another shape: a view where the strides allow it, else a copy.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of elements differs.
    pub fn reshape(&self, shape: &[isize]) -> Result<Self> {
        Ok(Self::wrap(self.array.reshape(shape, Order::C)?))
    }

    /// The view repeated to a larger shape.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        Ok(Self::wrap(self.array.broadcast_to(shape)?))
    }

    /// A copy without gaps.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn copy(&self) -> Result<Self> {
        Ok(Self::wrap(self.array.copy()?))
    }

    /// Every element converted to another type.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn cast<U: Element>(&self) -> Result<DeviceArray<U>> {
        Ok(DeviceArray::wrap(self.array.astype(U::DTYPE)?))
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.array.fill(Scalar::new(value))
    }

    /// Sets the elements to those of `source`, broadcast.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit.
    pub fn assign(&mut self, source: &Self) -> Result<()> {
        self.array.assign(&source.array)
    }

    /// A function of each element that keeps the type.
    ///
    /// # Errors
    /// `InvalidType` where the function is not defined for `T` or has another type.
    pub fn map(&self, function: UnaryFunction) -> Result<Self> {
        Self::from_untyped(self.array.unary(function)?)
    }

    /// A function of corresponding elements that keeps the type.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit; `InvalidType` where the function is not
    /// defined for `T` or has another type.
    pub fn zip(&self, function: BinaryFunction, other: &Self) -> Result<Self> {
        Self::from_untyped(Array::binary(function, (&self.array).into(), (&other.array).into())?)
    }

    /// A comparison of corresponding elements.
    ///
    /// # Errors
    /// As [`DeviceArray::zip`].
    pub fn compare(&self, function: BinaryFunction, other: &Self) -> Result<DeviceArray<bool>> {
        DeviceArray::from_untyped(Array::binary(
            function,
            (&self.array).into(),
            (&other.array).into(),
        )?)
    }

    /// Stores `self[i] = function(self[i], other[i])`.
    ///
    /// # Errors
    /// As [`DeviceArray::zip`].
    pub fn update(&mut self, function: BinaryFunction, other: &Self) -> Result<()> {
        self.array.set_binary(function, (&self.array).into(), (&other.array).into())
    }

    /// Stores `self[i] = function(self[i], value)`.
    ///
    /// # Errors
    /// As [`DeviceArray::zip`].
    pub fn update_scalar(&mut self, function: BinaryFunction, value: T) -> Result<()> {
        self.array.set_binary(function, (&self.array).into(), Scalar::new(value).into())
    }

    /// `criterion ? self : otherwise`, element by element.
    ///
    /// # Errors
    /// `InvalidArgument` for shapes that do not fit.
    pub fn select(criterion: &DeviceArray<bool>, then: &Self, otherwise: &Self) -> Result<Self> {
        let (then, otherwise) = (Argument::Array(&then.array), Argument::Array(&otherwise.array));
        Self::from_untyped(Array::select(&criterion.array, then, otherwise, false)?)
    }

    /// Combines the elements along `axes`, or all of them, in the type `T`.
    ///
    /// # Errors
    /// As [`Array::reduce`].
    pub fn reduce(&self, reduction: Reduction, axes: Option<&[isize]>) -> Result<Self> {
        Self::from_untyped(self.array.reduce(reduction, T::DTYPE, axes, false)?)
    }

    /// The sum of all elements. Waits for it.
    ///
    /// # Errors
    /// A failure of queued work.
    pub fn sum(&self) -> Result<T> {
        self.reduce(Reduction::Sum, None)?.item()
    }

    /// The smallest element. Waits for it.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no elements; a failure of queued work.
    pub fn min(&self) -> Result<T> {
        self.reduce(Reduction::Minimum, None)?.item()
    }

    /// The largest element. Waits for it.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no elements; a failure of queued work.
    pub fn max(&self) -> Result<T> {
        self.reduce(Reduction::Maximum, None)?.item()
    }

    /// The sum of the products of corresponding elements. Waits for it.
    ///
    /// # Errors
    /// `InvalidArgument` unless the shapes are the same; a failure of queued work.
    pub fn dot(&self, other: &Self) -> Result<T> {
        Self::from_untyped(self.array.dot(&other.array, T::DTYPE)?)?.item()
    }

    /// Running values along an axis.
    ///
    /// # Errors
    /// As [`Array::scan`].
    pub fn scan(&self, reduction: Reduction, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.scan(reduction, T::DTYPE, axis, false, None)?)
    }

    /// The elements that `indices` names along an axis.
    ///
    /// # Errors
    /// As [`Array::take`].
    pub fn take<I: Element>(&self, indices: &DeviceArray<I>, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.take(&indices.array, axis)?)
    }

    /// The only element. Waits for it.
    ///
    /// # Errors
    /// `InvalidArgument` unless there is exactly one; a failure of queued work.
    pub fn item(&self) -> Result<T> {
        let mut value = [T::ZERO];
        self.copy_to_slice(&mut value)?;
        Ok(value[0])
    }

    /// The status of the last operation that this object took part in.
    pub fn last_status(&self) -> Status {
        self.array.last_status()
    }
}
