//! The functions of PyCUDA's driver module that fill and copy device memory.

use crate::copies::{copy_on_device, copy_to_device, copy_to_host, fill_memory, fill_rows};
use crate::errors::to_python;
use crate::integer::{argument, integer};
use gpuarray::Error;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Returns the element `data` of a fill, a signed or an unsigned number.
fn element(data: Any<'_, '_>, bits: u32) -> PyResult<u32> {
    let number = match integer::<isize>("data", data) {
        Err(error) if !error.is_instance_of::<PyOverflowError>(data.py()) => return Err(error),
        number => number.ok().filter(|it| (-(1 << (bits - 1))..1 << bits).contains(it)),
    };
    let mask = u32::MAX >> (32 - bits);
    number.map(|it| it as u32 & mask).ok_or_else(|| {
        PyOverflowError::new_err(format!("data is {data}; it must fit a {bits}-bit integer"))
    })
}

/// Returns the argument `name` as a number of elements, rows or bytes.
fn extent(name: &str, value: Any<'_, '_>) -> PyResult<usize> {
    integer(name, value).map_err(|error| {
        if value.lt(0).unwrap_or(false) {
            return to_python(Error::invalid(
                "memset",
                format!("{name} is {value}; it must not be negative"),
            ));
        }
        error
    })
}

/// Defines the fills of one width of elements: of a run and of rows, each also queued on a stream.
macro_rules! fills {
    ($bits:literal, $run:literal, $row:literal: $now:ident, $queued:ident, $rows:ident, $queued_rows:ident) => {
        #[doc = concat!(
            "Fills device memory ``dest`` with ``count`` ", $bits, "-bit elements ``data``.\n\n",
            ">>> memory = driver.mem_alloc(", $run, ")\n",
            ">>> driver.", stringify!($now), "(memory, 7, 3)\n",
            ">>> driver.from_device(memory, 3, np.uint", $bits, ")\n",
            "array([7, 7, 7], dtype=uint", $bits, ")",
        )]
        #[pyfunction]
        pub(crate) fn $now(
            py: Python<'_>,
            dest: Any<'_, '_>,
            data: Any<'_, '_>,
            count: Any<'_, '_>,
        ) -> PyResult<()> {
            $queued(py, dest, data, count, None)
        }

        #[doc = concat!(
            "Queues :func:`", stringify!($now), "` on ``stream``, by default the default stream.\n\n",
            "It fills ``count`` elements ``data`` of device memory ``dest``.\n\n",
            ">>> memory = driver.mem_alloc(", $run, ")\n",
            ">>> driver.", stringify!($queued), "(memory, 7, 3, driver.Stream())\n",
            ">>> driver.from_device(memory, 3, np.uint", $bits, ")\n",
            "array([7, 7, 7], dtype=uint", $bits, ")",
        )]
        #[pyfunction]
        #[pyo3(signature = (dest, data, count, stream = None))]
        pub(crate) fn $queued(
            py: Python<'_>,
            dest: Any<'_, '_>,
            data: Any<'_, '_>,
            count: Any<'_, '_>,
            stream: Option<Any<'_, '_>>,
        ) -> PyResult<()> {
            fill_memory(py, dest, element(data, $bits)?, $bits / 8, extent("count", count)?, stream)
        }

        #[doc = concat!(
            "Fills ``height`` rows of ``width`` ", $bits, "-bit elements ``data``.\n\n",
            "The rows are in device memory ``dest``, ``pitch`` bytes apart.\n\n",
            ">>> memory, pitch = driver.mem_alloc_pitch(", $row, ", 2, 4)\n",
            ">>> driver.", stringify!($rows), "(memory, pitch, 7, 3, 2)\n",
            ">>> driver.from_device(int(memory) + pitch, 3, np.uint", $bits, ")\n",
            "array([7, 7, 7], dtype=uint", $bits, ")",
        )]
        #[pyfunction]
        pub(crate) fn $rows(
            py: Python<'_>,
            dest: Any<'_, '_>,
            pitch: Any<'_, '_>,
            data: Any<'_, '_>,
            width: Any<'_, '_>,
            height: Any<'_, '_>,
        ) -> PyResult<()> {
            $queued_rows(py, dest, pitch, data, width, height, None)
        }

        #[doc = concat!(
            "Queues :func:`", stringify!($rows), "` on ``stream``, by default the default stream.\n\n",
            "It fills ``height`` rows of ``width`` elements ``data`` of device memory ``dest``, which are ",
            "``pitch`` bytes apart.\n\n",
            ">>> memory, pitch = driver.mem_alloc_pitch(", $row, ", 2, 4)\n",
            ">>> driver.", stringify!($queued_rows), "(memory, pitch, 7, 3, 2, driver.Stream())\n",
            ">>> driver.from_device(int(memory) + pitch, 3, np.uint", $bits, ")\n",
            "array([7, 7, 7], dtype=uint", $bits, ")",
        )]
        #[pyfunction]
        #[pyo3(signature = (dest, pitch, data, width, height, stream = None))]
        pub(crate) fn $queued_rows(
            py: Python<'_>,
            dest: Any<'_, '_>,
            pitch: Any<'_, '_>,
            data: Any<'_, '_>,
            width: Any<'_, '_>,
            height: Any<'_, '_>,
            stream: Option<Any<'_, '_>>,
        ) -> PyResult<()> {
            let (pitch, data) = (extent("pitch", pitch)?, element(data, $bits)?);
            let (width, height) = (extent("width", width)?, extent("height", height)?);
            fill_rows(py, dest, pitch, data, $bits / 8, width, height, stream)
        }
    };
}

fills!(8, 3, 3: memset_d8, memset_d8_async, memset_d2d8, memset_d2d8_async);
fills!(16, 6, 6: memset_d16, memset_d16_async, memset_d2d16, memset_d2d16_async);
fills!(32, 12, 12: memset_d32, memset_d32_async, memset_d2d32, memset_d2d32_async);

/// Copies host memory ``src`` to device memory ``dest``.
///
/// ``src`` is contiguous. It may be changed once the call returns.
///
/// >>> a = np.arange(3)
/// >>> memory = driver.mem_alloc(a.nbytes)
/// >>> driver.memcpy_htod(memory, a)
/// >>> driver.from_device(memory, 3, np.int64)
/// array([0, 1, 2])
#[pyfunction]
pub(crate) fn memcpy_htod(py: Python<'_>, dest: Any<'_, '_>, src: Any<'_, '_>) -> PyResult<()> {
    copy_to_device(py, dest, src, None, true)
}

/// Queues a copy of host memory ``src`` to device memory ``dest`` on ``stream``, by default the default stream.
///
/// ``src`` is contiguous. Page-locked memory may be changed once the copy has run, other memory once the call returns.
///
/// >>> a = np.arange(3)
/// >>> memory = driver.mem_alloc(a.nbytes)
/// >>> driver.memcpy_htod_async(memory, a, driver.Stream())
/// >>> driver.from_device(memory, 3, np.int64)
/// array([0, 1, 2])
#[pyfunction]
#[pyo3(signature = (dest, src, stream = None))]
pub(crate) fn memcpy_htod_async(
    py: Python<'_>,
    dest: Any<'_, '_>,
    src: Any<'_, '_>,
    stream: Option<Any<'_, '_>>,
) -> PyResult<()> {
    copy_to_device(py, dest, src, stream, false)
}

/// Copies device memory ``src`` to host memory ``dest``, and waits for the copy.
///
/// ``dest`` is contiguous.
///
/// >>> memory = driver.to_device(np.arange(3))
/// >>> a = np.empty(3, np.int64)
/// >>> driver.memcpy_dtoh(a, memory)
/// >>> a
/// array([0, 1, 2])
#[pyfunction]
pub(crate) fn memcpy_dtoh(py: Python<'_>, dest: Any<'_, '_>, src: Any<'_, '_>) -> PyResult<()> {
    copy_to_host(py, dest, src, None, true)
}

/// Queues a copy of device memory ``src`` to host memory ``dest`` on ``stream``, by default the default stream.
///
/// ``dest`` is contiguous. Page-locked memory has the bytes once the copy has run, other memory once the call returns.
///
/// >>> memory, stream = driver.to_device(np.arange(3)), driver.Stream()
/// >>> a = driver.pagelocked_empty(3, np.int64)
/// >>> driver.memcpy_dtoh_async(a, memory, stream)
/// >>> stream.synchronize()
/// >>> a
/// array([0, 1, 2])
#[pyfunction]
#[pyo3(signature = (dest, src, stream = None))]
pub(crate) fn memcpy_dtoh_async(
    py: Python<'_>,
    dest: Any<'_, '_>,
    src: Any<'_, '_>,
    stream: Option<Any<'_, '_>>,
) -> PyResult<()> {
    copy_to_host(py, dest, src, stream, false)
}

/// Copies ``size`` bytes from ``src`` to ``dest``, both on the device.
///
/// The host does not wait for the copy; later uses do.
///
/// >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
/// >>> driver.memcpy_dtod(dest, src, 24)
/// >>> driver.from_device(dest, 3, np.int64)
/// array([0, 1, 2])
#[pyfunction]
pub(crate) fn memcpy_dtod(
    py: Python<'_>,
    dest: Any<'_, '_>,
    src: Any<'_, '_>,
    #[pyo3(from_py_with = argument::size)] size: usize,
) -> PyResult<()> {
    copy_on_device(py, dest, src, size, None, true)
}

/// Queues :func:`memcpy_dtod` on ``stream``, by default the default stream.
///
/// It copies ``size`` bytes from ``src`` to ``dest``. Later uses of the memory wait for the copy.
///
/// >>> src, dest = driver.to_device(np.arange(3)), driver.mem_alloc(24)
/// >>> driver.memcpy_dtod_async(dest, src, 24, driver.Stream())
/// >>> driver.from_device(dest, 3, np.int64)
/// array([0, 1, 2])
#[pyfunction]
#[pyo3(signature = (dest, src, size, stream = None))]
pub(crate) fn memcpy_dtod_async(
    py: Python<'_>,
    dest: Any<'_, '_>,
    src: Any<'_, '_>,
    #[pyo3(from_py_with = argument::size)] size: usize,
    stream: Option<Any<'_, '_>>,
) -> PyResult<()> {
    copy_on_device(py, dest, src, size, stream, false)
}
