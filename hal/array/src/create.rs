//! Creation of arrays.

use super::Array;
use crate::layout::{Layout, Order};
use hal::checking;
use hal::device::Device;
use hal::dtype::DType;
use hal::environment;
use hal::error::{Error, Result};
use hal::function::{Function, UnaryFunction};
use hal::memory::{Access, AccessGuard, DeviceMemory, same_device};
use hal::operation::{Operation, Sequence, Strides, shape_text};
use hal::recording::{self, Work};
use hal::scalar::Scalar;
use hal::stream::Stream;
use std::sync::{Arc, OnceLock};

/// The environment variable that chooses the memory of arrays without an allocator: `stream` (faster),
/// or `plain` (other processes can open the memory by its address).
const ARRAY_MEMORY: &str = "PYGPU_ARRAY_MEMORY";

/// Returns true if arrays use plain memory. Captures use the stream's memory regardless.
fn is_plain_asked() -> Result<bool> {
    static ASKED: OnceLock<bool> = OnceLock::new();
    if let Some(&asked) = ASKED.get() {
        return Ok(asked);
    }
    let value = std::env::var_os(ARRAY_MEMORY);
    let asked = environment::parse(ARRAY_MEMORY, value, "stream and plain", |text| match text {
        "plain" => Some(true),
        "stream" => Some(false),
        _ => None,
    })?;
    Ok(*ASKED.get_or_init(|| asked.unwrap_or(false)))
}

impl Array {
    /// Returns a new array with the given layout and undefined elements, on `stream`.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` if the layout does not fit the dtype, or if the stream belongs
    /// to another device.
    pub fn with_new_memory(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        layout: Layout,
        dtype: DType,
    ) -> Result<Array> {
        same_device(device, stream.as_ref())?;
        layout.check_dtype(dtype)?;
        Self::on_own_stream(device, stream, layout, dtype)
    }

    /// Like [`Array::with_new_memory`], for a layout that fits the dtype and a stream of the device.
    #[inline]
    fn on_own_stream(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        layout: Layout,
        dtype: DType,
    ) -> Result<Array> {
        let bytes = if layout.is_c_contiguous() && layout.offset() == 0 {
            layout.nbytes()
        } else {
            layout.extent().end
        };
        if is_plain_asked()? && bytes > 0 && !stream.is_capturing()? {
            let memory = Arc::new(DeviceMemory::plain(device, bytes)?);
            return Ok(Self::from_memory(memory, layout, dtype, stream.clone())?.noted());
        }
        // SAFETY: the callers have checked the stream, or took it from an array of the device.
        let memory = unsafe { DeviceMemory::on_own_stream(device, stream, bytes)? };
        Ok(Self::assemble(Arc::new(memory), layout, dtype, None).noted())
    }

    /// Returns the array, after a call of [`Array::note_for_checks`].
    #[inline]
    fn noted(self) -> Array {
        self.note_for_checks();
        self
    }

    /// If checks of kernels are on, describes the array's memory to them, for their reports.
    #[inline]
    pub fn note_for_checks(&self) {
        if !checking::current().is_none() {
            checking::note_content(self.memory.address(), || {
                format!("array of shape {} and dtype {}", shape_text(self.shape()), self.dtype)
            });
        }
    }

    /// Returns a new array with undefined elements, on the device's default stream.
    ///
    /// # Errors
    /// `OutOfMemory`; `Overflow` if the shape is larger than the address space.
    pub fn empty(
        device: &Arc<dyn Device>,
        shape: &[usize],
        dtype: DType,
        order: Order,
    ) -> Result<Array> {
        let layout = Layout::contiguous(shape, dtype.size(), order)?;
        Self::with_new_memory(device, &device.default_stream(), layout, dtype)
    }

    /// Returns a new array with every element equal to `value`.
    ///
    /// # Errors
    /// As for [`Array::empty`].
    pub fn full(
        device: &Arc<dyn Device>,
        shape: &[usize],
        value: Scalar,
        order: Order,
    ) -> Result<Array> {
        let array = Self::empty(device, shape, value.dtype(), order)?;
        array.fill(value)?;
        Ok(array)
    }

    /// Returns a new array of zeros with the given layout, on `stream`.
    ///
    /// # Errors
    /// As for [`Array::with_new_memory`]; `InvalidType` for a record.
    pub fn zeros(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        layout: Layout,
        dtype: DType,
    ) -> Result<Array> {
        same_device(device, stream.as_ref())?;
        layout.check_dtype(dtype)?;
        let zero = Scalar::new(0u8).cast(dtype)?;
        let zeroed = match is_plain_asked()? {
            true => None,
            // SAFETY: the stream has been checked.
            false => unsafe { DeviceMemory::zeroed(device, stream, layout.extent().end)? },
        };
        if let Some(memory) = zeroed {
            return Ok(Self::assemble(Arc::new(memory), layout, dtype, None).noted());
        }
        let array = Self::on_own_stream(device, stream, layout, dtype)?;
        array.apply_first(Function::Unary(UnaryFunction::Copy), dtype, &[zero.into()])?;
        Ok(array)
    }

    /// Returns a new array with the given layout and undefined elements, with this array's stream and
    /// allocator.
    ///
    /// # Errors
    /// As for [`Array::with_new_memory`], or the allocator's error.
    pub fn new_array(&self, layout: Layout, dtype: DType) -> Result<Array> {
        self.during(|| {
            layout.check_dtype(dtype)?;
            let Some(allocator) = self.allocator.as_ref().filter(|_| layout.size() > 0) else {
                return Self::on_own_stream(self.device(), self.stream(), layout, dtype);
            };
            let memory = allocator.allocate(self.device(), self.stream(), layout.extent().end)?;
            let array = Self::from_memory(memory, layout, dtype, self.stream().clone())?;
            Ok(array.with_allocator(self.allocator.clone()).noted())
        })
    }

    /// Returns a new contiguous array with undefined elements, in this array's memory order, on this
    /// array's stream.
    /// # Errors
    /// `OutOfMemory`.
    pub fn empty_like(&self, dtype: DType) -> Result<Array> {
        self.during(|| {
            let layout = self.layout.dense_like(dtype.size())?;
            self.new_array(layout, dtype)
        })
    }

    /// Sets every element to `value`, converted to the array's dtype.
    ///
    /// # Errors
    /// `InvalidType` for a conversion between a record and another type.
    pub fn fill(&self, value: Scalar) -> Result<()> {
        self.during(|| {
            let value = value.cast(self.dtype)?;
            self.apply_into(Function::Unary(UnaryFunction::Copy), self.dtype, &[value.into()])
        })
    }

    /// Returns an array of `start + i * step` for `i` below `length`, in the type of `start`, on the
    /// device's default stream.
    ///
    /// # Errors
    /// `InvalidType` unless both have the same numeric type; `OutOfMemory`.
    pub fn sequence(
        device: &Arc<dyn Device>,
        start: Scalar,
        step: Scalar,
        length: usize,
    ) -> Result<Array> {
        Self::sequence_on(device, &device.default_stream(), start, step, length)
    }

    /// Like [`Array::sequence`], on a stream of the device.
    ///
    /// # Errors
    /// As for [`Array::sequence`]; `InvalidArgument` if the stream belongs to another device.
    pub fn sequence_on(
        device: &Arc<dyn Device>,
        stream: &Arc<dyn Stream>,
        start: Scalar,
        step: Scalar,
        length: usize,
    ) -> Result<Array> {
        let dtype = start.dtype();
        if step.dtype() != dtype || matches!(dtype, DType::Opaque(_)) {
            return Err(Error::invalid_type(
                "arange",
                format!("start ({dtype}) and step ({}) must have one numeric type", step.dtype()),
            ));
        }
        let layout = Layout::contiguous(&[length], dtype.size(), Order::C)?;
        let array = Self::with_new_memory(device, stream, layout, dtype)?;
        if length > 0 {
            let strides = Strides::from_slice(&[dtype.size() as isize]);
            let output = array.operand(strides, 0);
            let operation = Operation::new(Sequence { length, start, step, output })?;
            array.stream().wait_for_room();
            let _guard = AccessGuard::acquire(stream, &[(&array.memory, Access::Write)])?;
            // SAFETY: the output is a new array of `length` elements, whose use is ordered.
            let execute = || unsafe { array.stream().execute(&operation) };
            recording::queued(array.stream().as_ref(), || Work::operation(&operation), execute)?;
        }
        Ok(array)
    }

    /// Returns a contiguous copy in this array's memory order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn copy(&self) -> Result<Array> {
        self.during(|| {
            let copy = self.empty_like(self.dtype)?;
            copy.set_first(self)?;
            Ok(copy)
        })
    }

    /// Returns a contiguous copy in the given order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn contiguous(&self, order: Order) -> Result<Array> {
        self.during(|| {
            let layout = Layout::contiguous(self.shape(), self.dtype.size(), order)?;
            let copy = self.new_array(layout, self.dtype)?;
            copy.set_first(self)?;
            Ok(copy)
        })
    }

    /// Returns this array if it is contiguous in C order, else a copy in C order.
    pub(super) fn in_c_order(&self) -> Result<Array> {
        if self.layout.is_c_contiguous() { Ok(self.clone()) } else { self.contiguous(Order::C) }
    }

    /// Returns a copy with every element converted to `dtype`, in this array's memory order.
    ///
    /// # Errors
    /// `InvalidType` for a conversion between a record and another type; `OutOfMemory`.
    pub fn astype(&self, dtype: DType) -> Result<Array> {
        self.during(|| {
            self.check_convertible(dtype)?;
            let copy = self.empty_like(dtype)?;
            copy.set_first(self)?;
            Ok(copy)
        })
    }

    /// Sets the elements of this new array from an array of the same shape.
    fn set_first(&self, source: &Array) -> Result<()> {
        self.apply_first(Function::Unary(UnaryFunction::Copy), self.dtype, &[source.into()])
    }

    /// Sets the elements from `source`, broadcast and converted. As in numpy's assignment, extra leading
    /// axes of extent 1 in `source` are ignored.
    ///
    /// # Errors
    /// `InvalidArgument` if the shapes do not fit; `InvalidType` between a record and
    /// anything else.
    pub fn assign(&self, source: &Array) -> Result<()> {
        self.during(|| {
            source.check_convertible(self.dtype)?;
            let copy = Function::Unary(UnaryFunction::Copy);
            if source.ndim() > self.ndim() {
                let trimmed = source.with_layout(source.layout.trim_leading(self.ndim()));
                return self.apply_into(copy, self.dtype, &[(&trimmed).into()]);
            }
            self.apply_into(copy, self.dtype, &[source.into()])
        })
    }

    fn check_convertible(&self, dtype: DType) -> Result<()> {
        let is_record = |dtype| matches!(dtype, DType::Opaque(_));
        if self.dtype != dtype && (is_record(self.dtype) || is_record(dtype)) {
            return Err(Error::invalid_type(
                "astype",
                format!("elements of {} cannot become {dtype}", self.dtype),
            ));
        }
        Ok(())
    }
}
