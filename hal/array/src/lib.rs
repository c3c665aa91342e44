//! Arrays: typed, shaped views of device memory, and the operations on them.
//!
//! An [`Array`] has an element type known at run time; a [`DeviceArray`] is the safe, statically typed form of an
//! `Array`. This crate checks arguments before anything is allocated or queued; backends rely on these checks.

mod argument;
mod create;
mod elementwise;
mod expression;
mod indexed;
pub mod layout;
mod matmul;
mod promote;
mod random;
mod reduce;
mod resolve;
mod scan;
mod sort;
mod statistics;
mod transfer;
pub mod typed;

pub use argument::Strided;
pub use expression::{Expression, ExpressionArgument, FusedBlock};
pub use layout::{IndexItem, Layout, Order, SliceBounds};
pub use promote::{Argument, Number};
pub use typed::{
    Arithmetic, Bits, DeviceArray, Float, Inexact, Integer, Lazy, LazyOperand, ManagedArray,
    ManagedSlice, ManagedSliceMut, Numeric, PendingCopy, PinnedBuffer, Real, functions,
};

use hal::device::Device;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::memory::{Allocator, DeviceMemory, same_device};
use hal::operation::{Operand, Strides};
use hal::status::{AtomicStatus, Status};
use hal::stream::Stream;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An array in device memory whose element type is known at run time.
///
/// Clones and views share the memory; it lives until the last of these arrays is dropped. Each array has a stream on
/// which its operations are queued; [`Array::on`] returns a view with another stream.
///
/// A program that reads the name of a dtype from a file, and adds arrays of any dtype:
///
/// ```
/// use gpuarray::{Array, DType, DeviceArray, Number, Order, function::BinaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let dtype = DType::ALL.into_iter().find(|it| it.name() == "uint16").expect("a dtype");
/// let x = Array::empty(&device, &[3], dtype, Order::C)?;
/// x.fill(Number::Integer(5).to_scalar(dtype)?)?;
/// let sum = Array::binary(BinaryFunction::Add, (&x).into(), (&x).into())?;
/// assert_eq!(DeviceArray::<u16>::from_untyped(sum)?.to_vec()?, [10, 10, 10]);
/// # Ok(())
/// # }
/// ```
pub struct Array {
    memory: Arc<DeviceMemory>,
    layout: Layout,
    dtype: DType,
    /// The stream for operations, unless it is the memory's own stream.
    stream: Option<Arc<dyn Stream>>,
    allocator: Option<Arc<dyn Allocator>>,
    status: AtomicStatus,
}

impl Clone for Array {
    fn clone(&self) -> Self {
        self.with_layout(self.layout.clone())
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({}, {:?}, {:?})", self.dtype, self.layout, self.memory)
    }
}

impl Array {
    /// Returns the array that `layout` describes in `memory`.
    ///
    /// # Errors
    /// `InvalidArgument` if an element is outside the memory or misaligned, if the item sizes differ, or if the stream
    /// belongs to another device.
    pub fn from_memory(
        memory: Arc<DeviceMemory>,
        layout: Layout,
        dtype: DType,
        stream: Arc<dyn Stream>,
    ) -> Result<Array> {
        same_device(memory.device(), stream.as_ref())?;
        layout.check_within(memory.bytes())?;
        layout.check_dtype(dtype)?;
        if layout.size() != 0 && !memory.address().is_multiple_of(dtype.alignment() as u64) {
            return Err(Error::invalid(
                "array",
                format!("address {:#x} is not aligned for {dtype}", memory.address()),
            ));
        }
        let other = (stream.id() != memory.stream().id()).then_some(stream);
        Ok(Self::assemble(memory, layout, dtype, other))
    }

    fn assemble(
        memory: Arc<DeviceMemory>,
        layout: Layout,
        dtype: DType,
        stream: Option<Arc<dyn Stream>>,
    ) -> Array {
        Array { memory, layout, dtype, stream, allocator: None, status: AtomicStatus::new() }
    }

    /// Returns a view with a layout that contains only elements of this array.
    fn with_layout(&self, layout: Layout) -> Array {
        self.same_memory(layout, self.dtype)
    }

    fn same_memory(&self, layout: Layout, dtype: DType) -> Array {
        let mut view = Self::assemble(self.memory.clone(), layout, dtype, self.stream.clone());
        view.allocator.clone_from(&self.allocator);
        view
    }

    /// Returns the same elements with another allocator. Results of operations on the new object, and on those
    /// results, get their memory from `allocator`.
    #[inline]
    pub fn with_allocator(mut self, allocator: Option<Arc<dyn Allocator>>) -> Array {
        self.allocator = allocator;
        self
    }

    /// Returns the allocator of results; `None` if the stream allocates them.
    pub fn allocator(&self) -> Option<&Arc<dyn Allocator>> {
        self.allocator.as_ref()
    }

    /// Returns the device that the array is on.
    pub fn device(&self) -> &Arc<dyn Device> {
        self.memory.device()
    }

    /// Returns the stream on which operations of this array are queued.
    pub fn stream(&self) -> &Arc<dyn Stream> {
        self.stream.as_ref().unwrap_or(self.memory.stream())
    }

    /// Returns the memory that contains the elements.
    pub fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Returns the layout: shape, strides and offset, the latter two in bytes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape: the number of elements along each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Returns the strides, in bytes.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// Returns the address of the element whose indices are all zero; 0 for an array without memory.
    pub fn address(&self) -> u64 {
        match self.memory.address() {
            0 => 0,
            // The addition can only wrap for an array without elements.
            start => start.wrapping_add(self.layout.offset() as u64),
        }
    }

    /// Returns the status of the last fallible method of this object, or of the last function, such as
    /// [`Array::binary`], that had this object as an operand.
    pub fn last_status(&self) -> Status {
        self.status.load()
    }

    /// Calls `call`, and stores its status. A test checks that every fallible method does this.
    #[inline]
    fn during<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.status.during(call)
    }

    /// Returns an array over the same elements whose operations are queued on another stream.
    ///
    /// # Errors
    /// `InvalidArgument` if the stream belongs to another device.
    pub fn on(&self, stream: &Arc<dyn Stream>) -> Result<Array> {
        self.during(|| {
            same_device(self.device(), stream.as_ref())?;
            let mut view = self.clone();
            view.stream = (stream.id() != self.memory.stream().id()).then(|| stream.clone());
            Ok(view)
        })
    }

    /// Returns the view that an index expression selects.
    ///
    /// # Errors
    /// As for [`Layout::index`].
    pub fn index(&self, items: &[IndexItem]) -> Result<Array> {
        self.during(|| Ok(self.with_layout(self.layout.index(items)?)))
    }

    /// Splits the array along its first axis into the elements before `index` and the others. Work on one view is not
    /// ordered with work on the other: two streams may use them concurrently, unless the byte ranges of the two views
    /// overlap. Work on this array or on another view is ordered with work on either half. The memory is freed after
    /// all this work.
    ///
    /// # Errors
    /// `InvalidArgument` for an array without axes; `IndexOutOfRange` if there are fewer elements along the axis.
    pub fn split_at(&self, index: usize) -> Result<(Array, Array)> {
        self.during(|| {
            let Some(&extent) = self.shape().first() else {
                return Err(Error::invalid("split_at", "an array without axes has one element"));
            };
            if index > extent {
                let detail =
                    format!("the index is {index}; the extent of the first axis is {extent}");
                return Err(Error::index("split_at", detail));
            }
            let part = |range: Range<usize>| {
                let layout = self.layout.index(&[range.into()])?;
                let bytes = if layout.size() == 0 { 0..0 } else { layout.extent() };
                let offset = layout.offset().saturating_sub(bytes.start);
                let part = Layout::with_strides(
                    layout.shape(),
                    layout.strides(),
                    offset,
                    layout.itemsize(),
                )?;
                let mut view = self.same_memory(part, self.dtype);
                view.memory = Arc::new(self.memory.part(bytes)?);
                Ok(view)
            };
            Ok((part(0..index)?, part(index..extent)?))
        })
    }

    /// Returns the view with its axes in the given order; reversed if `None`.
    ///
    /// # Errors
    /// `InvalidArgument` unless `axes` names every axis once.
    pub fn transpose(&self, axes: Option<&[usize]>) -> Result<Array> {
        self.during(|| {
            let layout = match axes {
                Some(axes) => self.layout.permute(axes)?,
                None => self.layout.reversed_axes(),
            };
            Ok(self.with_layout(layout))
        })
    }

    /// Returns the elements with another shape: a view if the strides allow it, else a copy.
    /// One extent may be -1.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of elements differs.
    pub fn reshape(&self, shape: &[isize], order: Order) -> Result<Array> {
        self.during(|| {
            let shape = self.layout.resolve_shape(shape)?;
            if let Some(layout) = self.layout.reshape(&shape, order)? {
                return Ok(self.with_layout(layout));
            }
            let mut copy = self.contiguous(order)?;
            copy.layout = Layout::contiguous(&shape, self.dtype.size(), order)?;
            Ok(copy)
        })
    }

    /// Returns a view without the axes of extent 1.
    pub fn squeeze(&self) -> Array {
        self.with_layout(self.layout.squeeze())
    }

    /// Returns a view that repeats the elements to a larger shape, by numpy's broadcasting rule.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        self.during(|| Ok(self.with_layout(self.layout.broadcast_to(shape)?)))
    }

    /// Returns the same bytes as elements of another type. A bool is true if its byte is not 0. Operations that only
    /// move elements keep the byte; copies of a [`DeviceArray`] to the host change it to 1.
    ///
    /// # Errors
    /// `InvalidArgument` if the bytes of the fastest axis are not a multiple of the new element size, or are
    /// misaligned for the new type.
    pub fn view(&self, dtype: DType) -> Result<Array> {
        self.during(|| {
            let layout = self.layout.with_itemsize(dtype.size())?;
            let view =
                Self::from_memory(self.memory.clone(), layout, dtype, self.stream().clone())?;
            Ok(view.with_allocator(self.allocator.clone()))
        })
    }

    /// Returns the view of a part of each element: a `dtype` that starts at byte `offset` of the element.
    ///
    /// # Errors
    /// `InvalidArgument` if the part is not inside the element, or is misaligned.
    pub fn field(&self, offset: usize, dtype: DType) -> Result<Array> {
        self.during(|| {
            let layout = self.layout.part(offset, dtype.size())?;
            let view =
                Self::from_memory(self.memory.clone(), layout, dtype, self.stream().clone())?;
            Ok(view.with_allocator(self.allocator.clone()))
        })
    }

    /// Returns the real parts of a complex array as a view; the array itself if it is real.
    pub fn real_view(&self) -> Array {
        self.component(0)
    }

    /// Returns the imaginary parts of a complex array as a view.
    ///
    /// # Errors
    /// `InvalidType` if the array is not complex.
    pub fn imaginary_view(&self) -> Result<Array> {
        self.during(|| {
            if !self.dtype.is_complex() {
                return Err(Error::invalid_type(
                    "imaginary_view",
                    format!("an array of {} has no imaginary parts", self.dtype),
                ));
            }
            Ok(self.component(1))
        })
    }

    fn component(&self, index: usize) -> Array {
        let dtype = self.dtype.real();
        match self.layout.part(index * dtype.size(), dtype.size()) {
            Ok(layout) => self.same_memory(layout, dtype),
            // A component is always inside its element.
            Err(_) => self.clone(),
        }
    }

    fn operand(&self, strides: Strides, moved: isize) -> Operand {
        Operand {
            address: self.address().wrapping_add_signed(moved as i64),
            dtype: self.dtype,
            strides,
        }
    }

    /// Returns true if both arrays may share bytes.
    pub fn overlaps(&self, other: &Array) -> bool {
        if Arc::ptr_eq(&self.memory, &other.memory) {
            return self.layout.overlaps(&other.layout);
        }
        if self.size() == 0 || other.size() == 0 {
            return false;
        }
        let range = |array: &Array| {
            let extent = array.layout.extent();
            let start = array.memory.address();
            start + extent.start as u64..start + extent.end as u64
        };
        let (a, b) = (range(self), range(other));
        !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
    }
}

#[cfg(test)]
mod tests;
