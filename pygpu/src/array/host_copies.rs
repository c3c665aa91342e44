//! Copies of elements between arrays on a device and arrays of the host.

use crate::copies::kept;
use crate::errors::OrRaise;
use crate::numpy_array::{self, HostArray};
use crate::synchronize;
use gpuarray::Array;
use gpuarray::memory::Access;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

/// Copies of fewer bytes than this keep Python's lock: they are done sooner than it is taken
/// again.
const RELEASE_FROM_BYTES: usize = 1 << 16;

/// Raw bytes on the host, sent to the thread that copies without Python's lock.
struct HostBytes(*mut u8);

// SAFETY: the array that owns the bytes is kept by the caller during the copy, and numpy
// lets threads without Python's lock read and write an array's bytes.
unsafe impl Send for HostBytes {}

/// Makes a copy of `bytes` bytes: with Python's lock if it is short and waits for nothing, else
/// without it; a signal ends the wait for work that was queued before.
fn copy(
    py: Python<'_>,
    array: &Array,
    bytes: usize,
    (access, wait): (Access, bool),
    copy: impl FnOnce() -> gpuarray::Result<()> + Send,
) -> PyResult<()> {
    let (memory, stream) = (array.memory(), array.stream());
    let is_short = bytes < RELEASE_FROM_BYTES
        && memory.is_used_only_on(stream.as_ref())
        && stream.has_run().or_raise()?;
    if is_short {
        return copy().or_raise();
    }
    if wait {
        synchronize::wait_before_copy(py, stream, &[(memory, access)])?;
    }
    py.detach(copy).or_raise()
}

fn upload(py: Python<'_>, array: &Array, from: &HostArray<'_>, wait: bool) -> PyResult<()> {
    let bytes = HostBytes(numpy_array::data(from));
    let kept = kept([from.as_any()], wait);
    let owner = kept.as_ref();
    copy(py, array, numpy_array::nbytes(from), (Access::Write, wait), move || {
        let HostBytes(pointer) = { bytes };
        // SAFETY: the host array has as many bytes in the same order, and is kept until the
        // call returns; without `wait` the backend copies pageable memory before it returns.
        unsafe { array.upload_from(pointer, wait, owner) }
    })
}

fn download(py: Python<'_>, array: &Array, to: &HostArray<'_>, wait: bool) -> PyResult<()> {
    let bytes = HostBytes(numpy_array::data(to));
    let kept = kept([to.as_any()], wait);
    let owner = kept.as_ref();
    copy(py, array, numpy_array::nbytes(to), (Access::Read, wait), move || {
        let HostBytes(pointer) = { bytes };
        // SAFETY: as for `upload`.
        unsafe { array.download_to(pointer, wait, owner) }
    })
}

/// Sets the elements from a host array of the same shape and dtype.
pub(super) fn store(
    py: Python<'_>,
    array: &Array,
    from: &HostArray<'_>,
    wait: bool,
) -> PyResult<()> {
    if array.size() == 0 {
        return Ok(());
    }
    if array.layout().is_packed() {
        let arranged = numpy_array::arranged(from, array.layout())?;
        // A copy made here is gone when this returns, so it must have arrived.
        return upload(py, array, &arranged, wait || !arranged.is(from));
    }
    let staged = array.empty_like(array.dtype()).or_raise()?;
    let arranged = numpy_array::arranged(from, staged.layout())?;
    upload(py, &staged, &arranged, wait || !arranged.is(from))?;
    super::run(py, array.size(), || array.assign(&staged))
}

/// Copies the elements into a host array of the same shape and dtype.
pub(super) fn fetch(py: Python<'_>, array: &Array, to: &HostArray<'_>, wait: bool) -> PyResult<()> {
    if array.size() == 0 {
        return Ok(());
    }
    let packed = if array.layout().is_packed() {
        array.clone()
    } else {
        super::run(py, array.size(), || array.copy())?
    };
    if numpy_array::is_arranged(to, packed.layout()) {
        return download(py, &packed, to, wait);
    }
    let arranged = numpy_array::empty(py, &to.dtype(), packed.layout())?;
    download(py, &packed, &arranged, true)?;
    numpy_array::copy_into(to, &arranged)
}
