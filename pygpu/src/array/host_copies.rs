//! Copies of elements between device arrays and host arrays.

use crate::errors::OrRaise;
use crate::numpy_array::{self, HostArray};
use crate::owner::kept;
use crate::profile::at_line;
use crate::synchronize::{self, run};
use gpuarray::memory::Access;
use gpuarray::{Array, Complex, Scalar};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

/// Copies of fewer bytes than this keep Python's lock, because they take less time than acquiring it again.
const RELEASE_FROM_BYTES: usize = 1 << 16;

/// Raw bytes on the host, passed to the thread that copies without Python's lock.
struct HostBytes(*mut u8);

// SAFETY: the caller keeps the array that owns the bytes during the copy, and numpy allows threads without
// Python's lock to read and write an array's bytes.
unsafe impl Send for HostBytes {}

/// Copies between a contiguous array and host memory in the same order. A short copy that does not wait
/// keeps Python's lock; any other releases it. A signal can interrupt the wait for earlier work.
fn copy(
    py: Python<'_>,
    array: &Array,
    address: impl FnOnce() -> PyResult<*mut u8>,
    (access, wait): (Access, bool),
    copy: impl FnOnce(*mut u8) -> gpuarray::Result<()> + Send,
) -> PyResult<()> {
    let _line = at_line(py);
    let (memory, stream, layout) = (array.memory(), array.stream(), array.layout());
    let is_short = layout.nbytes() < RELEASE_FROM_BYTES
        && memory.is_used_only_on(stream.as_ref())
        && stream.has_run().or_raise()?;
    if !is_short && wait {
        synchronize::wait_before_copy(py, stream, &[(memory, access)])?;
    }
    // After the last code of the program, which may be a signal handler.
    let bytes = HostBytes(address()?);
    let copy = move || {
        let HostBytes(pointer) = { bytes };
        copy(pointer)
    };
    if is_short { copy().or_raise() } else { py.detach(copy).or_raise() }
}

fn upload(py: Python<'_>, array: &Array, from: &HostArray<'_>, wait: bool) -> PyResult<()> {
    let kept = kept([from.as_any()], wait);
    let owner = kept.as_ref();
    let address = || numpy_array::data_as(from, array.layout(), array.dtype().size(), false);
    copy(py, array, address, (Access::Write, wait), move |pointer| {
        // SAFETY: the host array has the same number of bytes in the same order, and is kept until the call
        // returns; without `wait`, the backend copies pageable memory before it returns.
        unsafe { array.upload_from(pointer, wait, owner) }
    })
}

fn download(py: Python<'_>, array: &Array, to: &HostArray<'_>, wait: bool) -> PyResult<()> {
    let kept = kept([to.as_any()], wait);
    let owner = kept.as_ref();
    let address = || numpy_array::data_as(to, array.layout(), array.dtype().size(), true);
    copy(py, array, address, (Access::Read, wait), move |pointer| {
        // SAFETY: as for `upload`.
        unsafe { array.download_to(pointer, wait, owner) }
    })
}

/// Returns the element of an array with one element that is a number, and waits for it.
pub(super) fn fetch_number(py: Python<'_>, array: &Array) -> PyResult<Scalar> {
    let mut bytes = [0u8; size_of::<Complex<f64>>()];
    let address = || Ok(bytes.as_mut_ptr());
    copy(py, array, address, (Access::Read, true), |pointer| {
        // SAFETY: as many bytes as the largest number has, which the call has written when it returns.
        unsafe { array.download(pointer, true) }
    })?;
    Scalar::from_bytes(array.dtype(), &bytes[..array.dtype().size()]).or_raise()
}

/// Sets the elements from a host array with the same shape and dtype.
pub(super) fn store(
    py: Python<'_>,
    array: &Array,
    from: &HostArray<'_>,
    wait: bool,
) -> PyResult<()> {
    if array.size() == 0 {
        return Ok(());
    }
    let size = array.dtype().size();
    if array.layout().is_packed() {
        let arranged = numpy_array::arranged(from, array.layout(), size)?;
        // A temporary copy is dropped on return, so the transfer must have finished by then.
        return upload(py, array, &arranged, wait || !arranged.is(from));
    }
    let staged = array.empty_like(array.dtype()).or_raise()?;
    let arranged = numpy_array::arranged(from, staged.layout(), size)?;
    upload(py, &staged, &arranged, wait || !arranged.is(from))?;
    run(py, array.size(), || array.assign(&staged))
}

/// Copies the elements into a host array with the same shape and dtype.
pub(super) fn fetch(py: Python<'_>, array: &Array, to: &HostArray<'_>, wait: bool) -> PyResult<()> {
    if array.size() == 0 {
        return Ok(());
    }
    let packed = if array.layout().is_packed() {
        array.clone()
    } else {
        run(py, array.size(), || array.copy())?
    };
    // An allocator may have changed the host array.
    numpy_array::check_shape(to, packed.layout(), packed.dtype().size())?;
    if numpy_array::is_arranged(to, packed.layout()) {
        return download(py, &packed, to, wait);
    }
    let arranged = numpy_array::empty(py, &to.dtype(), packed.layout())?;
    download(py, &packed, &arranged, true)?;
    numpy_array::copy_into(to, &arranged)
}
