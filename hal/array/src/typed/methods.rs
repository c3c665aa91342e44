//! Methods of typed arrays in addition to functions of elements: statistics, sorting, selections, products and random
//! numbers.

use super::{Arithmetic, DeviceArray, Float, Integer, Real};
use crate::Array;
use hal::device::Device;
use hal::dtype::Element;
use hal::error::Result;
use hal::random::{Distribution, Generator};
use std::sync::Arc;

impl<T: Arithmetic> DeviceArray<T> {
    /// Returns the mean of all elements: in their own type for floating-point and complex numbers, else as `f64`. Waits
    /// for the result. The mean of no elements is NaN.
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

    /// Returns the matrix product in this array's type; see [`Array::matmul`].
    ///
    /// # Errors
    /// As for [`Array::matmul`].
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        Self::from_untyped(self.array.matmul(&other.array, T::DTYPE)?)
    }

    /// Returns the elements in ascending order along an axis; see [`Array::sort`].
    ///
    /// # Errors
    /// As for [`Array::sort`].
    pub fn sort(&self, axis: isize) -> Result<Self> {
        Self::from_untyped(self.array.sort(axis)?)
    }

    /// Returns the indices that sort an axis.
    ///
    /// # Errors
    /// As for [`Array::sort`].
    pub fn argsort(&self, axis: isize) -> Result<DeviceArray<i64>> {
        DeviceArray::from_untyped(self.array.argsort(axis)?)
    }

    /// Returns the indices of the nonzero elements, in C order. Waits until the device has counted them.
    ///
    /// # Errors
    /// As for [`Array::nonzero`].
    pub fn nonzero(&self) -> Result<DeviceArray<i64>> {
        DeviceArray::from_untyped(self.array.nonzero(hal::DType::Int64)?)
    }

    /// Returns the number of nonzero elements. Waits until the device has counted them.
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
    /// Returns the variance of all elements: the sum of the squared distances of the elements from their
    /// mean, divided by the number of elements minus `degrees` (0 for the variance of a population, 1 for a
    /// sample). Waits for the result.
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
    /// As for [`DeviceArray::variance`].
    pub fn standard_deviation(&self, degrees: f64) -> Result<T::Mean> {
        let deviation = || self.array.standard_deviation(None, None, false, degrees);
        self.array.during(|| DeviceArray::from_untyped(deviation()?)?.item())
    }
}

impl<T: Element> DeviceArray<T> {
    /// Returns the elements at which `mask` is true, in C order, along one axis. Waits until the device has
    /// counted them.
    ///
    /// # Errors
    /// As for [`Array::compress`].
    pub fn compress(&self, mask: &DeviceArray<bool>) -> Result<Self> {
        Self::from_untyped(self.array.compress(&mask.array)?)
    }

    /// Stores values at `indices` along an axis; see [`Array::put`].
    ///
    /// # Errors
    /// As for [`Array::put`].
    pub fn put<I: Integer>(
        &mut self,
        indices: &DeviceArray<I>,
        values: &Self,
        axis: isize,
    ) -> Result<()> {
        self.array.put(&indices.array, &values.array, axis)
    }

    /// Joins arrays along an existing axis, in a new array on the first one's stream.
    ///
    /// # Errors
    /// As for [`Array::concatenate`].
    pub fn concatenate(arrays: &[&Self], axis: isize) -> Result<Self> {
        let arrays: Vec<&Array> = arrays.iter().map(|it| &it.array).collect();
        Self::from_untyped(Array::concatenate(&arrays, axis)?)
    }

    /// Returns a copy in the memory of another device, of any backend, on its default stream. The elements are copied
    /// through the host, and the call waits for them.
    ///
    /// # Errors
    /// `OutOfMemory`; a failure of queued work.
    pub fn to_device(&self, device: &Arc<dyn Device>) -> Result<Self> {
        self.array.during(|| Self::from_shaped(device, self.shape(), &self.to_vec()?))
    }
}

impl<T: Float> DeviceArray<T> {
    /// Sets the elements to uniform random numbers in `[0, 1)`, generated from a seed. The same seed gives the same
    /// numbers on every backend.
    ///
    /// # Errors
    /// As for [`Array::fill_from_seed`].
    pub fn fill_uniform(&mut self, seed: u64) -> Result<()> {
        self.array.fill_from_seed(seed, Distribution::HalfOpen)
    }
}

impl<T: Real> DeviceArray<T> {
    /// Sets the elements to random numbers drawn from the states of a generator, and advances the states; see
    /// [`Array::fill_random`]. [`Generator::seeded`] creates states.
    ///
    /// # Errors
    /// As for [`Array::fill_random`].
    pub fn fill_random(
        &mut self,
        generator: Generator,
        states: &mut DeviceArray<u32>,
        distribution: Distribution,
    ) -> Result<()> {
        self.array.fill_random(generator, &states.array, distribution)
    }
}
