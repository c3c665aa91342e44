//! Copies of rows and slices with a row pitch, for `Memcpy2D` and `Memcpy3D`.

use crate::copies::{DeviceAddress, PeerSide, queue, queue_between};
use crate::current_device::current_device;
use crate::errors::{OrRaise, to_python};
use crate::numpy_array;
use crate::owner::kept;
use crate::profile::at_line;
use crate::stream::stream_argument;
use crate::texture::PyTextureArray;
use gpuarray::memory::{Access, AccessGuard, Use};
use gpuarray::texture::{ArrayCopy, CopySide};
use gpuarray::{Direction, Error, Stream, Transfer};
use hal::recording::{self, Kind, Work};
use pyo3::prelude::*;
use std::sync::Arc;

/// Bytes per row, rows per slice, slices.
type Extent = (usize, usize, usize);

/// The position of the copied bytes in a memory: x in bytes, y in rows, z in slices; then bytes from
/// row to row and rows from slice to slice, where 0 means that the copied part has no gaps.
type Position = (usize, usize, usize, usize, usize);

/// The bytes of a memory that a copy accesses.
struct Span {
    /// The offset of the first byte.
    start: usize,
    /// The offset after the last byte.
    end: usize,
    pitch: usize,
    slice: usize,
}

impl Span {
    /// Returns the span of an extent without zeros.
    fn new(name: &str, at: Position, (width, height, depth): Extent) -> PyResult<Span> {
        let (x, y, z, pitch, slice_rows) = at;
        let refused = |what: String| to_python(Error::invalid("memcpy", format!("{name}_{what}")));
        let overflow =
            || refused(format!("position is {:?}, which is outside the address space", (x, y, z)));
        let row = x.checked_add(width).ok_or_else(overflow)?;
        let one_row = height < 2 && depth < 2 && y == 0 && z == 0;
        let pitch = if one_row || pitch == 0 { pitch.max(row) } else { pitch };
        if pitch < row {
            return Err(refused(format!(
                "pitch is {pitch}; a row of width {width} from byte {x} needs {row}"
            )));
        }
        let rows = y.checked_add(height).ok_or_else(overflow)?;
        let one_slice = depth < 2 && z == 0;
        let slice_rows =
            if one_slice || slice_rows == 0 { slice_rows.max(rows) } else { slice_rows };
        if slice_rows < rows {
            return Err(refused(format!(
                "height is {slice_rows}; a slice of height {height} from row {y} needs {rows}"
            )));
        }
        let slice = pitch.checked_mul(slice_rows).ok_or_else(overflow)?;
        let slices = z.checked_add(depth).ok_or_else(overflow)?;
        let offset = |z: usize, y: usize| -> Option<usize> {
            z.checked_mul(slice)?.checked_add(y.checked_mul(pitch)?)?.checked_add(x)
        };
        let start = offset(z, y).ok_or_else(overflow)?;
        let end = offset(slices - 1, rows - 1)
            .and_then(|last| last.checked_add(width))
            .ok_or_else(overflow)?;
        Ok(Span { start, end, pitch, slice })
    }
}

/// One side of a copy.
enum Endpoint<'py> {
    Host(numpy_array::HostRange<'py>),
    Device(DeviceAddress),
}

impl<'py> Endpoint<'py> {
    fn new(
        name: &str,
        value: &Bound<'py, PyAny>,
        is_host: bool,
        writable: bool,
        span: &Span,
    ) -> PyResult<Endpoint<'py>> {
        if !is_host {
            return Ok(Endpoint::Device(DeviceAddress::new(name, value, span.end)?));
        }
        let block = numpy_array::reach(name, value, writable)?;
        if block.bytes < span.end {
            return Err(to_python(Error::invalid(
                "memcpy",
                format!(
                    "the size of {name} is {}; the copy reaches byte {}",
                    block.bytes, span.end
                ),
            )));
        }
        Ok(Endpoint::Host(block))
    }

    /// Returns the memory if it is host memory.
    fn host(&self) -> Option<&numpy_array::HostRange<'py>> {
        match self {
            Endpoint::Host(block) => Some(block),
            Endpoint::Device(_) => None,
        }
    }

    fn address(&self, span: &Span) -> u64 {
        let base = match self {
            Endpoint::Host(block) => block.pointer as u64,
            Endpoint::Device(memory) => memory.address,
        };
        base + span.start as u64
    }
}

/// One side as Python passes it: the memory, true if it is host memory, and a position.
type Side<'py> = (Bound<'py, PyAny>, bool, Position);

fn is_array(side: &Side<'_>) -> bool {
    side.0.is_instance_of::<PyTextureArray>()
}

/// A side of a copy in which one side is an array for textures.
struct ArraySide<'py> {
    side: CopySide,
    endpoint: Option<Endpoint<'py>>,
}

impl<'py> ArraySide<'py> {
    fn new(
        name: &str,
        (value, is_host, at): &Side<'py>,
        writable: bool,
        copied: &ArrayCopy,
    ) -> PyResult<ArraySide<'py>> {
        if let Ok(array) = value.cast::<PyTextureArray>() {
            let array = array.get().array();
            let origin = [at.0, at.1, at.2];
            copied.check(name, array.shape(), origin).or_raise()?;
            let (array, format) = (array.handle().or_raise()?, array.shape().format);
            let side = CopySide::Array { array, format, origin };
            return Ok(ArraySide { side, endpoint: None });
        }
        let span = Span::new(name, *at, (copied.width, copied.height, copied.depth))?;
        let endpoint = Endpoint::new(name, value, *is_host, writable, &span)?;
        let side = CopySide::Memory {
            address: endpoint.address(&span),
            pitch: span.pitch,
            slice: span.slice,
            is_host: *is_host,
        };
        Ok(ArraySide { side, endpoint: Some(endpoint) })
    }

    fn access(&self, access: Access) -> Option<Use<'_>> {
        match &self.endpoint {
            Some(Endpoint::Device(memory)) => memory.access(access),
            _ => None,
        }
    }
}

/// Copies from or to an array for textures.
fn copy_array<'py>(
    py: Python<'py>,
    dest: &Side<'py>,
    src: &Side<'py>,
    (width, height, depth): Extent,
    stream: &Arc<dyn Stream>,
    wait: bool,
) -> PyResult<()> {
    // The sides are not known yet; only the extents are checked.
    let unset = CopySide::Memory { address: 0, pitch: 0, slice: 0, is_host: false };
    let copy = ArrayCopy { destination: unset, source: unset, width, height, depth, wait };
    let to = ArraySide::new("dst", dest, true, &copy)?;
    let from = ArraySide::new("src", src, false, &copy)?;
    let copy = ArrayCopy { destination: to.side, source: from.side, ..copy };
    copy.check_sides().or_raise()?;
    let uses: Vec<_> =
        [to.access(Access::Write), from.access(Access::Read)].into_iter().flatten().collect();
    if wait {
        crate::synchronize::wait_before_copy(py, stream, &uses)?;
    }
    for side in [&to, &from] {
        side.endpoint.as_ref().and_then(Endpoint::host).map_or(Ok(()), |host| host.check())?;
    }
    let kept = kept([&dest.0, &src.0], wait);
    let owner = kept.as_ref();
    let _line = at_line(py);
    py.detach(|| {
        stream.wait_for_room();
        let _guard = AccessGuard::acquire(stream, &uses)?;
        owner.map_or(Ok(()), |owner| stream.keep_object(owner))?;
        let work =
            || Work::new(Kind::Copy, "rows").bytes((copy.width * copy.height * copy.depth) as u64);
        // SAFETY: the sides were checked against their memory; the arrays come from the arguments.
        recording::queued(stream.as_ref(), work, || unsafe { stream.copy_array(&copy) })
    })
    .or_raise()
}

/// Copies `extent` (bytes per row, rows, slices) between two sides, each with a flag that is true for
/// host memory, and a position. With `wait`, returns after the copy has finished.
#[pyfunction]
pub(crate) fn copy_rows<'py>(
    py: Python<'py>,
    dest: Side<'py>,
    src: Side<'py>,
    extent: Extent,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let (width, height, depth) = extent;
    let stream = stream_argument(stream, &current_device()?)?;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    if is_array(&dest) || is_array(&src) {
        return copy_array(py, &dest, &src, extent, &stream, wait);
    }
    let (to_span, from_span) =
        (Span::new("dst", dest.2, extent)?, Span::new("src", src.2, extent)?);
    let to = Endpoint::new("dst", &dest.0, dest.1, true, &to_span)?;
    let from = Endpoint::new("src", &src.0, src.1, false, &from_span)?;
    let (direction, uses) = match (&to, &from) {
        (Endpoint::Device(to), Endpoint::Host(_)) => {
            (Direction::HostToDevice, [to.access(Access::Write), None])
        }
        (Endpoint::Host(_), Endpoint::Device(from)) => {
            (Direction::DeviceToHost, [None, from.access(Access::Read)])
        }
        (Endpoint::Device(to), Endpoint::Device(from)) => {
            (Direction::DeviceToDevice, [to.access(Access::Write), from.access(Access::Read)])
        }
        (Endpoint::Host(_), Endpoint::Host(_)) => {
            return Err(to_python(Error::unsupported(
                "memcpy",
                "both memories are the host's; numpy copies those",
            )));
        }
    };
    let (to_address, from_address) = (to.address(&to_span), from.address(&from_span));
    let transfer =
        rows_between(direction, (to_address, &to_span), (from_address, &from_span), extent, wait);
    let host = to.host().or(from.host());
    queue(py, &stream, &uses, [&dest.0, &src.0], host, transfer)
}

/// Returns a copy of rows between two spans, each with the address of its first byte.
fn rows_between(
    direction: Direction,
    (destination, to): (u64, &Span),
    (source, from): (u64, &Span),
    (width, height, depth): Extent,
    wait: bool,
) -> Transfer {
    Transfer {
        direction,
        destination,
        source,
        width,
        height,
        depth,
        destination_pitch: to.pitch,
        source_pitch: from.pitch,
        destination_slice: to.slice,
        source_slice: from.slice,
        wait,
    }
}

/// One side of a copy between devices: the memory, the device's number and a position.
type PeerArgument<'py> = (Bound<'py, PyAny>, usize, Position);

/// Like [`copy_rows`], from one device's memory to another's.
#[pyfunction]
pub(crate) fn copy_rows_between_devices<'py>(
    py: Python<'py>,
    dest: PeerArgument<'py>,
    src: PeerArgument<'py>,
    extent: Extent,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let (width, height, depth) = extent;
    let stream = stream_argument(stream, &current_device()?)?;
    if width == 0 || height == 0 || depth == 0 {
        return Ok(());
    }
    for (name, side) in [("dst", &dest), ("src", &src)] {
        if side.0.is_instance_of::<PyTextureArray>() {
            return Err(to_python(Error::unsupported(
                "memcpy",
                format!("{name} is an array for textures, which are copied within one device only"),
            )));
        }
    }
    let (to, from) = (Span::new("dst", dest.2, extent)?, Span::new("src", src.2, extent)?);
    let to_side = PeerSide::new("dst", &dest.0, dest.1, to.end)?;
    let from_side = PeerSide::new("src", &src.0, src.1, from.end)?;
    let starts = [(&to_side, &to), (&from_side, &from)]
        .map(|(side, span)| (side.address() + span.start as u64, span));
    if rows_between(Direction::DeviceToDevice, starts[0], starts[1], extent, wait).overlaps() {
        return Err(to_python(Error::unsupported(
            "memcpy",
            format!(
                "src and dst share memory of device {}: make its context current to copy there",
                src.1
            ),
        )));
    }
    // Rows without gaps on both sides form one range.
    let (mut rows, mut slices, mut bytes) = (height, depth, width);
    if rows == 1 || (to.pitch == bytes && from.pitch == bytes) {
        bytes *= rows;
        rows = 1;
        if slices == 1 || (to.slice == bytes && from.slice == bytes) {
            bytes *= slices;
            slices = 1;
        }
    }
    let ranges = (0..slices).flat_map(|z| {
        let (to, from) = (&to, &from);
        (0..rows).map(move |y| {
            let start = |span: &Span| span.start + z * span.slice + y * span.pitch;
            (start(to), start(from), bytes)
        })
    });
    queue_between(py, &stream, &to_side, &from_side, ranges, wait)
}
