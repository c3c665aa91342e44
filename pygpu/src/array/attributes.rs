//! The attributes of an array.

use super::{GPUArray, hold_memory, wait_for_array};
use crate::allocator::{allocation_object, mem_alloc_object};
use crate::errors::OrRaise;
use crate::status;
use crate::stream::PER_THREAD;
use gpuarray::{Layout, Stream};
use numpy::PyArrayDescr;
use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::time::{Duration, Instant};

/// The memory orders of an array's elements: the attribute `flags` of a `GPUArray`.
///
/// Attributes
/// ----------
/// c_contiguous : bool
///     True if the elements are contiguous with the last axis fastest.
/// f_contiguous : bool
///     True if the elements are contiguous with the first axis fastest.
/// forc : bool
///     True if either of the two is true.
/// fnc : bool
///     True if only the second is true.
/// owndata : bool
///     False if the array is a view of another object.
/// writeable, aligned : bool
///     True, as for every array on a device.
///
/// numpy's names are indices: ``flags["C_CONTIGUOUS"]``.
///
/// Examples
/// --------
/// >>> from pygpu import gpuarray
/// >>> a = gpuarray.zeros((2, 3))
/// >>> a.flags.c_contiguous, a.T.flags.c_contiguous, a.T.flags.forc
/// (True, False, True)
#[pyclass(frozen, module = "pygpu.gpuarray")]
pub(crate) struct ArrayFlags {
    /// True if the elements are contiguous with the last axis fastest.
    #[pyo3(get)]
    c_contiguous: bool,
    /// True if the elements are contiguous with the first axis fastest.
    #[pyo3(get)]
    f_contiguous: bool,
    /// True if either of the two is true.
    #[pyo3(get)]
    forc: bool,
    /// True if only the second of the two is true.
    #[pyo3(get)]
    fnc: bool,
    /// False if the array is a view of another object.
    #[pyo3(get)]
    owndata: bool,
}

impl ArrayFlags {
    fn of(layout: &Layout, owndata: bool) -> ArrayFlags {
        let (c, f) = (layout.is_c_contiguous(), layout.is_f_contiguous());
        ArrayFlags { c_contiguous: c, f_contiguous: f, forc: c || f, fnc: f && !c, owndata }
    }
}

#[pymethods]
impl ArrayFlags {
    /// True: every array on a device can be written.
    #[getter]
    fn writeable(&self) -> bool {
        true
    }

    /// True: every array on a device is aligned.
    #[getter]
    fn aligned(&self) -> bool {
        true
    }

    /// The flags that numpy derives from the others, such as `carray`.
    fn __getattr__(&self, name: &str) -> PyResult<bool> {
        let is_flag = matches!(
            name,
            "behaved" | "carray" | "contiguous" | "farray" | "fortran" | "writebackifcopy"
        );
        if is_flag {
            return self.__getitem__(&name.to_uppercase());
        }
        Err(PyAttributeError::new_err(format!("ArrayFlags has no attribute {name:?}")))
    }

    fn __getitem__(&self, name: &str) -> PyResult<bool> {
        match name {
            "C_CONTIGUOUS" | "CONTIGUOUS" | "C" | "CARRAY" | "CA" => Ok(self.c_contiguous),
            "F_CONTIGUOUS" | "FORTRAN" | "F" => Ok(self.f_contiguous),
            "OWNDATA" | "O" => Ok(self.owndata),
            "WRITEABLE" | "W" | "ALIGNED" | "A" | "BEHAVED" | "B" => Ok(true),
            "WRITEBACKIFCOPY" | "X" => Ok(false),
            "FORC" => Ok(self.forc),
            "FNC" | "FARRAY" | "FA" => Ok(self.fnc),
            _ => Err(PyKeyError::new_err(format!(
                "no flag {name:?}; the flags are C_CONTIGUOUS, F_CONTIGUOUS, FORC, FNC, OWNDATA, WRITEABLE, ALIGNED \
                 and WRITEBACKIFCOPY"
            ))),
        }
    }

    fn __repr__(&self) -> String {
        let python = |flag| if flag { "True" } else { "False" };
        format!(
            "  C_CONTIGUOUS : {}\n  F_CONTIGUOUS : {}",
            python(self.c_contiguous),
            python(self.f_contiguous)
        )
    }
}

#[pymethods]
impl GPUArray {
    #[classattr]
    fn __array_priority__() -> i32 {
        100
    }

    /// Neither locks nor counts references. There is nothing to clear: everything that an array refers to is older
    /// than the array, so a cycle contains another object that can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(replaced) = self.replaced.get() {
            replaced.traverse(&visit)?;
        }
        self.content.get().map_or(Ok(()), |content| content.traverse(&visit))
    }

    /// The extents of the axes, as in numpy's `shape`.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout()?.shape())
    }

    /// The distances in bytes between neighbours along each axis, as in numpy's `strides`.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout()?.strides())
    }

    /// The type of the elements, as a numpy dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyArrayDescr>> {
        Ok(self.descr()?.clone_ref(py))
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.layout()?.size())
    }

    /// The number of elements: PyCUDA's other name for `size`.
    #[getter]
    fn mem_size(&self) -> PyResult<usize> {
        self.size()
    }

    /// The bytes of all elements, without gaps between them.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.layout()?.nbytes())
    }

    /// The bytes of one element.
    #[getter]
    fn itemsize(&self) -> PyResult<usize> {
        Ok(self.element()?.size())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.layout()?.shape().len())
    }

    /// The memory orders of the elements: an object with `c_contiguous`, `f_contiguous` and `forc` (either of the
    /// two).
    #[getter]
    fn flags(&self) -> PyResult<ArrayFlags> {
        let owns = self.pending().is_some() || self.base_object()?.is_none();
        Ok(ArrayFlags::of(self.layout()?, owns))
    }

    /// The callable that allocates the results of this array: the allocator that the array was created with, else
    /// `driver.mem_alloc`.
    #[getter]
    fn allocator(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.allocator_object()? {
            Some(allocator) => Ok(allocator.clone_ref(py)),
            None => mem_alloc_object(py),
        }
    }

    /// The array that this one is a view of, or the object given as `base`; else None.
    #[getter]
    fn base(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.base_object()?.map(|base| base.clone_ref(py)))
    }

    /// The memory as an object: an allocation, an address for a view, or `None` without elements.
    #[getter]
    fn gpudata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(vacant) = self.vacant() {
            return Ok(vacant.gpudata.clone_ref(py));
        }
        let content = self.content()?;
        let array = &content.array;
        if array.size() == 0 {
            return Ok(py.None());
        }
        if let Some(object) = content.gpudata.get() {
            return Ok(object.clone_ref(py));
        }
        let object = if content.base.is_some() {
            self.ptr()?.into_pyobject(py)?.into_any().unbind()
        } else {
            let bytes = array.layout().nbytes();
            allocation_object(py, array.memory(), content.ticket.pool(), bytes)?
        };
        Ok(content.gpudata.get_or_init(|| object).clone_ref(py))
    }

    /// The device address of the first element; 0 without elements or memory.
    #[getter]
    fn ptr(&self) -> PyResult<u64> {
        if self.vacant().is_some() {
            return Ok(0);
        }
        let array = self.array()?;
        array.memory().show_address().or_raise()?;
        Ok(array.address())
    }

    /// Like `ptr`, for comparisons: nothing is written by it.
    #[getter]
    fn _address(&self) -> PyResult<u64> {
        match self.vacant() {
            Some(_) => Ok(0),
            None => Ok(self.array()?.address()),
        }
    }

    /// The status of the last operation that this object took part in.
    #[getter]
    fn last_status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        status::object(py, self.array()?.last_status())
    }

    /// The description of the array that other libraries read, version 3; see `pygpu._exchange.protocols.describe`.
    #[getter]
    fn __cuda_array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (slf.py(), slf.get());
        let (address, stream) = match array.size()? {
            0 => (0, None),
            _ => {
                array.content()?.array.memory().check().or_raise()?;
                (array.ptr()?, Some(Self::stream_for_others(slf)?))
            }
        };
        let hold = stream.map(|_| hold_memory(slf)).transpose()?;
        static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let describe = DESCRIBE.get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("pygpu._exchange.protocols")?.getattr("describe")?.unbind())
        })?;
        describe.bind(py).call1((slf, address, stream.flatten(), false, hold))
    }

    /// The grid of a launch with at least one thread per element; see `gpuarray.splay`.
    #[getter]
    fn _grid(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 0)
    }

    /// The block of a launch with at least one thread per element; see `gpuarray.splay`.
    #[getter]
    fn _block(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.splay(py, 1)
    }
}

impl GPUArray {
    /// Returns the handle of the stream after whose work others may use the array; `None` if no work is queued. On
    /// the host, where streams do not have handles, this waits for queued work.
    fn stream_for_others(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
        let (py, array) = (slf.py(), slf.get().array()?);
        if !array.device().shares_streams() {
            // Captured work does not run.
            if !array.stream().is_capturing().or_raise()? {
                wait_for_array(slf)?;
            }
            return Ok(None);
        }
        let handle = || {
            let stream = array.memory().stream_in_order()?;
            if !stream.is_capturing()? && done_soon(stream.as_ref())? {
                return Ok(None);
            }
            if stream.has_handle(PER_THREAD) {
                // On the thread that reads it, the handle means another stream.
                stream.synchronize()?;
                return Ok(None);
            }
            Ok(Some(stream.handle()))
        };
        py.detach(handle).or_raise()
    }

    fn splay(&self, py: Python<'_>, part: usize) -> PyResult<Py<PyAny>> {
        let pair = py.import("pygpu.gpuarray")?.call_method1("splay", (self.size()?,))?;
        Ok(pair.get_item(part)?.unbind())
    }
}

/// Returns true if the stream is idle, or soon will be: an upload takes less time than the reader's wait for a
/// stream, or a few milliseconds if other processes share the device. A stream with more work stays busy that long.
fn done_soon(stream: &dyn Stream) -> gpuarray::Result<bool> {
    const MOMENT: Duration = Duration::from_micros(30);
    const TURN: Duration = Duration::from_millis(5);
    let start = Instant::now();
    loop {
        if stream.has_run()? {
            return Ok(true);
        }
        let waited = start.elapsed();
        if waited >= TURN {
            return Ok(false);
        }
        if waited < MOMENT {
            while start.elapsed() < MOMENT {
                std::hint::spin_loop();
            }
        } else {
            std::thread::sleep(MOMENT);
        }
    }
}
