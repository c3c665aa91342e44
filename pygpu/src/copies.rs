//! Copies and fills of raw memory.

use crate::allocation::{address_of, memory_of};
use crate::array::GPUArray;
use crate::current_device::{self, current_device};
use crate::entries::Entries;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array;
use crate::owner::kept;
use crate::profile::at_line;
use crate::stream::stream_argument;
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, Use};
use gpuarray::{Array, DType, Device, Direction, Error, Layout, Scalar, Stream, Transfer};
use hal::HostRange;
use hal::operation::Strides;
use hal::recording::{self, Kind, Work};
use pyo3::prelude::*;
use std::sync::Arc;

/// Device memory named by an argument: an allocation, or a raw address.
pub(crate) struct DeviceAddress {
    pub(crate) address: u64,
    memory: Option<Arc<DeviceMemory>>,
}

impl DeviceAddress {
    /// Returns the memory named by the argument `name`, of at least `bytes` bytes, on the current device.
    pub(crate) fn new(
        name: &str,
        value: &Bound<'_, PyAny>,
        bytes: usize,
    ) -> PyResult<DeviceAddress> {
        DeviceAddress::on(&current_device()?.device, name, value, bytes)
    }

    /// Like [`DeviceAddress::new`], on another device.
    pub(crate) fn on(
        device: &Arc<dyn Device>,
        name: &str,
        value: &Bound<'_, PyAny>,
        bytes: usize,
    ) -> PyResult<DeviceAddress> {
        let (address, memory) = match value.cast::<GPUArray>() {
            Ok(array) => {
                let array = array.get().array()?;
                (array.address(), Some(array.memory().clone()))
            }
            Err(_) => (address_of(name, value)?, memory_of(value)?.cloned()),
        };
        let Some(memory) = memory.filter(|memory| memory.bytes() > 0) else {
            if bytes > 0 && !device.can_access(address, bytes) {
                return Err(to_python(Error::invalid(
                    "memcpy",
                    format!(
                        "{name} is {address:#x}, where device {} has no memory of size {bytes}",
                        device.id()
                    ),
                )));
            }
            return Ok(DeviceAddress { address, memory: None });
        };
        let rest = memory.bytes() - (address - memory.address()) as usize;
        if rest < bytes {
            return Err(to_python(Error::invalid(
                "memcpy",
                format!("the size of {name} is {rest}; the copy has size {bytes}"),
            )));
        }
        Ok(DeviceAddress { address, memory: Some(memory) })
    }

    /// Returns true for memory that was allocated here for the device only: neither managed memory nor another
    /// library's.
    fn is_of_device(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.external_owner().is_none())
    }

    pub(crate) fn access(&self, access: Access) -> Option<Use<'_>> {
        self.memory.as_ref().map(|memory| (memory, access))
    }
}

/// Queues a copy between the memory of two objects; `host` is the one in host memory.
pub(crate) fn queue(
    py: Python<'_>,
    stream: &Arc<dyn Stream>,
    uses: &[Option<Use<'_>>],
    objects: [&Bound<'_, PyAny>; 2],
    host: Option<&numpy_array::HostRange<'_>>,
    transfer: Transfer,
) -> PyResult<()> {
    if transfer.width == 0 || transfer.height == 0 || transfer.depth == 0 {
        return Ok(());
    }
    let uses: Vec<_> = uses.iter().copied().flatten().collect();
    if transfer.wait {
        crate::synchronize::wait_before_copy(py, stream, &uses)?;
    }
    host.map_or(Ok(()), |host| host.check())?;
    let kept = kept(objects, transfer.wait);
    // References to Python objects are dropped with Python's lock held.
    let owner = kept.as_ref();
    let _line = at_line(py);
    py.detach(|| {
        stream.wait_for_room();
        let _guard = AccessGuard::acquire_for_transfer(stream, &uses, &transfer)?;
        owner.map_or(Ok(()), |owner| stream.keep_object(owner))?;
        // SAFETY: allocations are large enough and ordered by the guard. As with every GPU library, the program
        // is responsible for raw addresses. The caller keeps host memory, and the backend copies pageable memory
        // before the call returns.
        recording::queued(
            stream.as_ref(),
            || Work::copy(&transfer),
            || unsafe { stream.transfer(&transfer) },
        )
    })
    .or_raise()
}

/// Copies from host memory to device memory; with `wait`, returns after the copy has finished.
#[pyfunction]
pub(crate) fn copy_to_device(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let block = numpy_array::block("src", src, false)?;
    let to = DeviceAddress::new("dest", dest, block.bytes)?;
    let stream = stream_argument(stream, &current_device()?)?;
    let transfer = Transfer::linear(
        Direction::HostToDevice,
        to.address,
        block.pointer as u64,
        block.bytes,
        wait,
    );
    queue(py, &stream, &[to.access(Access::Write)], [dest, src], Some(&block), transfer)
}

/// Copies ranges of host memory, each given as an address and a number of bytes, to device memory, one after the
/// other. The package passes ranges of objects that it keeps.
#[pyfunction]
pub(crate) fn gather_to_device(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    ranges: Entries<(u64, usize)>,
) -> PyResult<()> {
    let ranges: Vec<_> =
        ranges.0.into_iter().map(|(address, bytes)| HostRange { address, bytes }).collect();
    let bytes = ranges.iter().map(|range| range.bytes).sum();
    let to = DeviceAddress::new("dest", dest, bytes)?;
    let stream = stream_argument(None, &current_device()?)?;
    let uses: Vec<_> = to.access(Access::Write).into_iter().collect();
    crate::synchronize::wait_before_copy(py, &stream, &uses)?;
    let _line = at_line(py);
    py.detach(|| {
        stream.wait_for_room();
        let _guard = AccessGuard::acquire_waited(&stream, &uses)?;
        let work = || Work::new(Kind::Copy, "host to device").bytes(bytes as u64);
        // SAFETY: the allocation is large enough and ordered by the guard; the package is responsible for the
        // ranges.
        recording::queued(stream.as_ref(), work, || unsafe { stream.gather(to.address, &ranges) })
    })
    .or_raise()
}

/// Copies from device memory to host memory; with `wait`, returns after the copy has finished.
#[pyfunction]
pub(crate) fn copy_to_host(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let block = numpy_array::block("dest", dest, true)?;
    let from = DeviceAddress::new("src", src, block.bytes)?;
    let stream = stream_argument(stream, &current_device()?)?;
    let transfer = Transfer::linear(
        Direction::DeviceToHost,
        block.pointer as u64,
        from.address,
        block.bytes,
        wait,
    );
    queue(py, &stream, &[from.access(Access::Read)], [dest, src], Some(&block), transfer)
}

/// Copies inside device memory. With `wait`, returns after the copy has finished if the memory can be read
/// outside of streams. The driver does not wait for copies inside device memory either.
#[pyfunction]
pub(crate) fn copy_on_device(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument::size)] size: usize,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let (to, from) =
        (DeviceAddress::new("dest", dest, size)?, DeviceAddress::new("src", src, size)?);
    let device = current_device()?;
    let wait =
        wait && !(device.device.shares_streams() && to.is_of_device() && from.is_of_device());
    let stream = stream_argument(stream, &device)?;
    let transfer =
        Transfer::linear(Direction::DeviceToDevice, to.address, from.address, size, wait);
    let uses = [to.access(Access::Write), from.access(Access::Read)];
    queue(py, &stream, &uses, [dest, src], None, transfer)
}

/// Copies from one device's memory to another's; with `wait`, returns after the copy has finished.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "two addresses, each with its device")]
pub(crate) fn copy_between_devices(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument::dest_ordinal)] dest_ordinal: usize,
    src: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument::src_ordinal)] src_ordinal: usize,
    #[pyo3(from_py_with = argument::size)] size: usize,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    if dest_ordinal == src_ordinal && current_device()?.device.id().ordinal == src_ordinal {
        return copy_on_device(py, dest, src, size, stream, wait);
    }
    let to = PeerSide::new("dest", dest, dest_ordinal, size)?;
    let from = PeerSide::new("src", src, src_ordinal, size)?;
    let stream = stream_argument(stream, &current_device()?)?;
    queue_between(py, &stream, &to, &from, [(0, 0, size)].into_iter(), wait)
}

/// One side of a copy between devices.
pub(crate) struct PeerSide {
    memory: DeviceAddress,
    device: Arc<dyn Device>,
}

impl PeerSide {
    /// Returns the memory named by the argument `name`, of at least `bytes` bytes, on the device with a number.
    pub(crate) fn new(
        name: &str,
        value: &Bound<'_, PyAny>,
        ordinal: usize,
        bytes: usize,
    ) -> PyResult<PeerSide> {
        let device = current_device::device(ordinal)?.device;
        let memory = DeviceAddress::on(&device, name, value, bytes)?;
        Ok(PeerSide { memory, device })
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.address
    }
}

/// Queues copies of ranges from one device's memory to another's, each given by its offset on both sides and its
/// bytes; with `wait`, returns after the copies have finished.
pub(crate) fn queue_between(
    py: Python<'_>,
    stream: &Arc<dyn Stream>,
    to: &PeerSide,
    from: &PeerSide,
    mut ranges: impl Iterator<Item = (usize, usize, usize)> + Send,
    wait: bool,
) -> PyResult<()> {
    let _line = at_line(py);
    let queued = py.detach(|| {
        let uses = [to.memory.access(Access::Write), from.memory.access(Access::Read)];
        let uses: Vec<_> = uses.into_iter().flatten().collect();
        stream.wait_for_room();
        let _guard = AccessGuard::acquire(stream, &uses)?;
        ranges.try_for_each(|(start, source_start, bytes)| {
            let destination = to.memory.address + start as u64;
            let source = from.memory.address + source_start as u64;
            let work = || Work::new(Kind::Copy, "between devices").bytes(bytes as u64);
            // SAFETY: as for `queue`; the ranges are inside the memory that was checked for both sides.
            recording::queued(stream.as_ref(), work, || unsafe {
                let peer = from.device.as_ref();
                to.device.transfer_peer(stream.as_ref(), destination, source, peer, bytes)
            })
        })
    });
    queued.or_raise()?;
    if wait {
        crate::synchronize::synchronize_stream(py, stream.as_ref())?.or_raise()
    } else {
        Ok(())
    }
}

/// Fills `count` elements of `width` bytes.
pub(crate) fn fill_memory(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    value: u32,
    width: usize,
    count: usize,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let bytes = count.checked_mul(width).ok_or_else(|| {
        to_python(Error::invalid(
            "memset",
            format!("count is {count}; allowed are up to {}", usize::MAX / width),
        ))
    })?;
    let to = DeviceAddress::new("dest", dest, bytes)?;
    let stream = stream_argument(stream, &current_device()?)?;
    if bytes == 0 {
        return Ok(());
    }
    let _line = at_line(py);
    py.detach(|| {
        let uses: Vec<_> = to.access(Access::Write).into_iter().collect();
        stream.wait_for_room();
        let _guard = AccessGuard::acquire(&stream, &uses)?;
        let work = || Work::new(Kind::Fill, "fill").bytes(bytes as u64);
        // SAFETY: as for `queue`.
        recording::queued(stream.as_ref(), work, || unsafe {
            stream.fill(to.address, value, width, count)
        })
    })
    .or_raise()
}

/// Fills `height` rows of `width` elements of `element` bytes, `pitch` bytes apart.
#[allow(clippy::too_many_arguments, reason = "the driver's arguments")]
pub(crate) fn fill_rows(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    pitch: usize,
    value: u32,
    element: usize,
    width: usize,
    height: usize,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let row = width.checked_mul(element).filter(|&row| height < 2 || pitch >= row);
    let Some(row) = row else {
        return Err(to_python(Error::invalid(
            "memset",
            format!(
                "pitch is {pitch}; it must be at least width {width} times the element size {element}"
            ),
        )));
    };
    if height < 2 || row == pitch {
        return fill_memory(py, dest, value, element, width.saturating_mul(height), stream);
    }
    let bytes = pitch.checked_mul(height - 1).and_then(|start| start.checked_add(row));
    let bytes = bytes.ok_or_else(|| {
        to_python(Error::invalid(
            "memset",
            format!(
                "height is {height}; with pitch {pitch} the rows reach beyond the address space"
            ),
        ))
    })?;
    let to = DeviceAddress::new("dest", dest, bytes)?;
    let current = current_device()?;
    let stream = stream_argument(stream, &current)?;
    let (dtype, value) = match element {
        1 => (DType::UInt8, Scalar::new(value as u8)),
        2 => (DType::UInt16, Scalar::new(value as u16)),
        _ => (DType::UInt32, Scalar::new(value)),
    };
    let strides = Strides::from_slice(&[pitch as isize, element as isize]);
    let _line = at_line(py);
    py.detach(|| {
        let (memory, offset) = match to.memory {
            Some(memory) => {
                let offset = (to.address - memory.address()) as usize;
                (memory, offset)
            }
            // SAFETY: the device can access the range, and the program is responsible for it.
            None => unsafe {
                let owner = Box::new(());
                (
                    Arc::new(DeviceMemory::from_raw_parts(
                        &current.device,
                        to.address,
                        bytes,
                        owner,
                    )),
                    0,
                )
            },
        };
        let layout = Layout::with_strides(&[height, width], &strides, offset, element)?;
        Array::from_memory(memory, layout, dtype, stream)?.fill(value)
    })
    .or_raise()
}
