//! What typed arrays have beside functions of elements: statistics, orders, selections, products and random
//! numbers.

use super::{Arithmetic, DeviceArray, Float, Integer, Real};
use crate::Array;
use hal::device::Device;
use hal::dtype::Element;
use hal::error::Result;
use hal::random::{Distribution, Generator};
use std::sync::Arc;

impl<T: Arithmetic> DeviceArray<T> {
    /// Returns the mean of all elements: of floating-point and complex numbers in their own type, else as `f64`.
    /// Waits for it. The mean of no elements is NaN.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn mean(&self) -> Result<T::Mean> {
        self.array.during(|| DeviceArray::from_untyped(self.array.mean(None, None, false)?)?.item())
    }

    /// Computes the mean of the elements along `axes`, in a new array without those axes.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `OutOfMemory`.
    pub fn mean_along(&self, axes: &[isize]) -> Result<DeviceArray<T::Mean>> {
        DeviceArray::from_untyped(self.array.mean(None, Some(axes), false)?)
    }

    /// Returns the product of matrices, as [`Array::matmul`] documents it, in this array's type.
    ///
    /// # Errors
    /// Those of [`Array::matmul`].
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        Self::from_untyped(self.array.matmul(&other.array, T::DTYPE)?)
    }

    /// Returns the elements in ascending order along an axis, as [`Array::sort`] documents it.
    ///
    /// # Errors
    /// Those of [`Array::sort`].
    pub fn sort(&self, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.sort(axis)?)
    }

    /// Returns the indices along an axis that sort it.
    ///
    /// # Errors
    /// Those of [`Array::sort`].
    pub fn argsort(&self, axis: isize) -> Result<DeviceArray<i64>> {
        DeviceArray::from_untyped(self.array.argsort(axis)?)
    }

    /// Returns the indices of the elements that are not zero, of the array read in C order. Waits for their number.
    ///
    /// # Errors
    /// Those of [`Array::nonzero`].
    pub fn nonzero(&self) -> Result<DeviceArray<i64>> {
        DeviceArray::from_untyped(self.array.nonzero(hal::DType::Int64)?)
    }

    /// Returns the number of elements that are not zero. Waits for it.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn count_nonzero(&self) -> Result<i64> {
        self.array.during(|| {
            let count: DeviceArray<i64> =
                DeviceArray::from_untyped(self.array.count_nonzero(None, false)?)?;
            count.item()
        })
    }
}

impl<T: Real> DeviceArray<T> {
    /// Returns the variance of all elements: the sum of their squared distances from their mean, divided by their
    /// number less `degrees` (0 for the variance of a population, 1 for that of a sample). Waits for it.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn variance(&self, degrees: f64) -> Result<T::Mean> {
        self.array.during(|| {
            DeviceArray::from_untyped(self.array.variance(None, None, false, degrees)?)?.item()
        })
    }

    /// Returns the square root of [`DeviceArray::variance`].
    ///
    /// # Errors
    /// Those of [`DeviceArray::variance`].
    pub fn standard_deviation(&self, degrees: f64) -> Result<T::Mean> {
        let deviation = || self.array.standard_deviation(None, None, false, degrees);
        self.array.during(|| DeviceArray::from_untyped(deviation()?)?.item())
    }
}

impl<T: Element> DeviceArray<T> {
    /// Returns the elements at which `mask` is true, in C order, along one axis. Waits for their number.
    ///
    /// # Errors
    /// Those of [`Array::compress`].
    pub fn compress(&self, mask: &DeviceArray<bool>) -> Result<Self> {
        Self::from_untyped(self.array.compress(&mask.array)?)
    }

    /// Stores values at the places that `indices` names along an axis; see [`Array::put`].
    ///
    /// # Errors
    /// Those of [`Array::put`].
    pub fn put<I: Integer>(
        &mut self,
        indices: &DeviceArray<I>,
        values: &Self,
        axis: isize,
    ) -> Result<()> {
        self.array.put(&indices.array, &values.array, axis)
    }

    /// Joins arrays along an axis that they have, in a new array on the first one's stream.
    ///
    /// # Errors
    /// Those of [`Array::concatenate`].
    pub fn concatenate(arrays: &[&Self], axis: isize) -> Result<Self> {
        let arrays: Vec<&Array> = arrays.iter().map(|it| &it.array).collect();
        Self::from_untyped(Array::concatenate(&arrays, axis)?)
    }

    /// Returns a copy in the memory of another device, of any backend, on its default stream. The elements pass
    /// through the host, and the call waits for them.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn to_device(&self, device: &Arc<dyn Device>) -> Result<Self> {
        self.array.during(|| Self::from_shaped(device, self.shape(), &self.to_vec()?))
    }
}

impl<T: Float> DeviceArray<T> {
    /// Sets the elements to numbers from 0, included, to 1, excluded, all equally likely: those of a seed, the same on every
    /// backend.
    ///
    /// # Errors
    /// Those of [`Array::fill_from_seed`].
    pub fn fill_uniform(&mut self, seed: u64) -> Result<()> {
        self.array.fill_from_seed(seed, Distribution::HalfOpen)
    }
}

impl<T: Real> DeviceArray<T> {
    /// Sets the elements to numbers that the states of a generator draw, and advances the states; see
    /// [`Array::fill_random`]. States are made by [`Generator::seeded`].
    ///
    /// # Errors
    /// Those of [`Array::fill_random`].
    pub fn fill_random(
        &mut self,
        generator: Generator,
        states: &mut DeviceArray<u32>,
        distribution: Distribution,
    ) -> Result<()> {
        self.array.fill_random(generator, &states.array, distribution)
    }
}
