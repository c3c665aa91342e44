//! Creation of typed arrays.

use super::{Arithmetic, DeviceArray};
use crate::Array;
use crate::layout::{Layout, Order, checked_size, shape_text};
use hal::device::Device;
use hal::dtype::Element;
use hal::error::{Error, Result};
use hal::scalar::Scalar;
use hal::stream::Stream;
use std::sync::Arc;

impl<T: Element> DeviceArray<T> {
    /// Copies a slice to a one-dimensional array on the device's default stream.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn from_slice(device: &Arc<dyn Device>, values: &[T]) -> Result<Self> {
        Self::from_shaped(device, &[values.len()], values)
    }

    /// Copies a slice to a one-dimensional array on a stream of the device.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` if the stream belongs to another device.
    pub fn from_slice_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        values: &[T],
    ) -> Result<Self> {
        Self::from_shaped_on(device, stream, &[values.len()], values)
    }

    /// Copies a slice to an array of `shape`, the last axis fastest, on the device's default stream.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of elements differs from the shape's; `OutOfMemory`.
    pub fn from_shaped(device: &Arc<dyn Device>, shape: &[usize], values: &[T]) -> Result<Self> {
        Self::from_shaped_on(device, &device.default_stream(), shape, values)
    }

    /// Like [`DeviceArray::from_shaped`], on a stream of the device.
    ///
    /// # Errors
    /// As for [`DeviceArray::from_shaped`]; `InvalidArgument` if the stream belongs to another
    /// device.
    pub fn from_shaped_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        shape: &[usize],
        values: &[T],
    ) -> Result<Self> {
        if checked_size(shape, size_of::<T>())? != values.len() {
            return Err(Error::invalid(
                "values",
                format!(
                    "values has length {}, which does not fill shape {}",
                    values.len(),
                    shape_text(shape)
                ),
            ));
        }
        let layout = Layout::contiguous(shape, size_of::<T>(), Order::C)?;
        let array = Array::with_new_memory(device, stream, layout, T::DTYPE)?;
        let mut array = Self::wrap(array);
        array.copy_from_slice(values)?;
        Ok(array)
    }

    /// Returns an array of zeros on the device's default stream.
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` for a shape larger than the address space.
    pub fn zeros(device: &Arc<dyn Device>, shape: &[usize]) -> Result<Self> {
        Self::full(device, shape, T::ZERO)
    }

    /// Returns an array of zeros on a stream of the device.
    ///
    /// # Errors
    /// As for [`DeviceArray::full_on`].
    pub fn zeros_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        shape: &[usize],
    ) -> Result<Self> {
        Self::full_on(device, stream, shape, T::ZERO)
    }

    /// Returns an array of ones on the device's default stream.
    ///
    /// # Errors
    /// As for [`DeviceArray::zeros`].
    pub fn ones(device: &Arc<dyn Device>, shape: &[usize]) -> Result<Self> {
        Self::full(device, shape, T::ONE)
    }

    /// Returns an array of ones on a stream of the device.
    ///
    /// # Errors
    /// As for [`DeviceArray::full_on`].
    pub fn ones_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        shape: &[usize],
    ) -> Result<Self> {
        Self::full_on(device, stream, shape, T::ONE)
    }

    /// Returns an array filled with one value, on the device's default stream.
    ///
    /// # Errors
    /// As for [`DeviceArray::zeros`].
    pub fn full(device: &Arc<dyn Device>, shape: &[usize], value: T) -> Result<Self> {
        Self::full_on(device, &device.default_stream(), shape, value)
    }

    /// Returns an array filled with one value, on a stream of the device.
    ///
    /// # Errors
    /// As for [`DeviceArray::zeros`]; `InvalidArgument` if the stream belongs to another device.
    pub fn full_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        shape: &[usize],
        value: T,
    ) -> Result<Self> {
        let layout = Layout::contiguous(shape, size_of::<T>(), Order::C)?;
        let array = Array::with_new_memory(device, stream, layout, T::DTYPE)?;
        array.fill(Scalar::new(value))?;
        Ok(Self::wrap(array))
    }
}

impl<T: Arithmetic> DeviceArray<T> {
    /// Returns an array of `start + i * step` for `i` below `length`, on the device's default
    /// stream.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn sequence(device: &Arc<dyn Device>, start: T, step: T, length: usize) -> Result<Self> {
        Self::sequence_on(device, &device.default_stream(), start, step, length)
    }

    /// Returns an array of `start + i * step` for `i` below `length`, on a stream of the device.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` if the stream belongs to another device.
    pub fn sequence_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        start: T,
        step: T,
        length: usize,
    ) -> Result<Self> {
        let (start, step) = (Scalar::new(start), Scalar::new(step));
        Ok(Self::wrap(Array::sequence_on(device, stream, start, step, length)?))
    }
}
