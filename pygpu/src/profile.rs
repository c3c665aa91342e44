//! Profiles: what a program's lines cost in time and memory.

use crate::current_device;
use crate::errors::OrRaise;
use crate::integer::argument;
use crate::running_line::running_line;
use crate::stream_registry::live_streams;
use hal::DeviceId;
use hal::poison::Unpoisoned as _;
use hal::process::ProcessMutex;
use hal::recording::{self, AtLine, Recording, Session, Sort, copy_rate};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

/// Names the running line of the program as the cause of the calls that follow, until the value is dropped. While
/// nothing is recorded, this costs one load. The caller holds no locks.
#[inline]
pub(crate) fn at_line(py: Python<'_>) -> Option<AtLine> {
    (recording::is_on() && !AtLine::is_known()).then(|| AtLine::new(running_line(py)))
}

/// The rates of the devices' own copies, which are measured once.
static RATES: ProcessMutex<HashMap<DeviceId, Option<f64>>> = ProcessMutex::new(HashMap::new);

fn rate(device: &dyn gpuarray::Device) -> Option<f64> {
    if let Some(rate) = RATES.lock().get(&device.id()) {
        return *rate;
    }
    // Captures forbid allocations.
    if live_streams(device).iter().any(|stream| stream.is_capturing().unwrap_or(true)) {
        return None;
    }
    let rate =
        copy_rate(device).inspect_err(|error| log::debug!("no rate of copies: {error}")).ok();
    RATES.lock().insert(device.id(), rate);
    rate
}

enum State {
    New,
    Running(Session),
    Done(Recording),
}

/// Records the work of its block: kernels, operations, copies, fills, allocations and waits, with the times of
/// host and device and the line of the program that caused each.
///
/// The block's end waits for the recorded work, and measures once how fast the device copies its own memory. The
/// table compares bandwidths with this limit. The latest 262,144 calls are kept. Work that a stream captures has
/// no device time. Processes that the block starts are not recorded.
///
/// Parameters
/// ----------
/// name : str, optional. The title of the table and of the page.
///
/// Examples
/// --------
/// >>> import pygpu
/// >>> from pygpu import autoinit, gpuarray
/// >>> with pygpu.profile("add") as p:
/// ...     a = gpuarray.zeros(1000, "f4") + 1
/// >>> {row["kind"] for row in p.rows} >= {"operation", "allocate"}
/// True
/// >>> "add" in p.table("bytes"), list(p.limits) == [f"{pygpu.choose_backend()}:0"]
/// (True, True)
/// >>> p.save("add.html")         # doctest: +SKIP
#[pyclass(frozen, name = "profile", module = "pygpu")]
pub(crate) struct Profile {
    name: String,
    state: Mutex<State>,
}

impl Profile {
    fn with<T>(&self, work: impl FnOnce(&Recording) -> T) -> PyResult<T> {
        match &*self.state.lock().unpoisoned() {
            State::Done(recording) => Ok(work(recording)),
            _ => Err(PyRuntimeError::new_err(format!(
                "profile {:?} has no rows yet; leave its `with` block first",
                self.name
            ))),
        }
    }
}

#[pymethods]
impl Profile {
    #[new]
    #[pyo3(signature = (name = "profile"))]
    fn new(name: &str) -> Profile {
        Profile { name: name.into(), state: Mutex::new(State::New) }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get();
        {
            let mut state = this.state.lock().unpoisoned();
            if !matches!(*state, State::New) {
                return Err(PyRuntimeError::new_err(format!(
                    "profile {:?} was used already; make another one for each block",
                    this.name
                )));
            }
            *state = State::Running(Session::begin());
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        let state = std::mem::replace(
            &mut *self.state.lock().unpoisoned(),
            State::Done(Recording::default()),
        );
        let State::Running(session) = state else { return Ok(()) };
        let recording = py.detach(|| {
            let mut recording = session.finish();
            let mut ids: Vec<DeviceId> = recording.rows.iter().filter_map(|it| it.device).collect();
            ids.sort_by_key(|id| id.ordinal);
            ids.dedup();
            for id in ids {
                if let Ok(current) = current_device::device(id.ordinal) {
                    recording.describe(current.device.as_ref(), rate(current.device.as_ref()));
                }
            }
            recording
        });
        *self.state.lock().unpoisoned() = State::Done(recording);
        Ok(())
    }

    /// The recorded calls, a list of dictionaries in the order in which the calls returned. Each has `kind`, `name`,
    /// `line`, `bytes`, `grid`, `block`, `device`, `stream`, `thread`, `start`, `seconds`, `device_start`,
    /// `device_seconds` and `in_use`, the bytes allocated since the first recording began. Times are in seconds since
    /// the block began. Entries that do not apply are None.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.with(|recording| recording.rows.clone())?;
        let list = PyList::empty(py);
        for row in rows {
            let entry = PyDict::new(py);
            entry.set_item("kind", row.kind.name())?;
            entry.set_item("name", row.name)?;
            entry.set_item("line", Some(&*row.line).filter(|line| !line.is_empty()))?;
            entry.set_item("bytes", row.bytes)?;
            entry.set_item("grid", row.launch.map(|it| <(u32, u32, u32)>::from(it.grid)))?;
            entry.set_item("block", row.launch.map(|it| <(u32, u32, u32)>::from(it.block)))?;
            entry.set_item("device", row.device.map(|it| it.to_string()))?;
            entry.set_item("stream", Some(row.stream).filter(|stream| *stream != 0))?;
            entry.set_item("thread", row.thread)?;
            entry.set_item("start", row.start)?;
            entry.set_item("seconds", row.seconds)?;
            entry.set_item("device_start", row.device_start)?;
            entry.set_item("device_seconds", row.device_seconds)?;
            entry.set_item("in_use", row.in_use)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// The bytes per second that each device's copies inside its own memory read and write, a dictionary by device.
    #[getter]
    fn limits(&self) -> PyResult<HashMap<String, f64>> {
        self.with(|recording| {
            let limits = recording.devices.iter();
            limits.filter_map(|(id, _, rate)| Some((id.to_string(), (*rate)?))).collect()
        })
    }

    /// Returns the calls by kind and name, as text.
    ///
    /// Parameters
    /// ----------
    /// sort : {"time", "bytes", "count", "bandwidth"}, optional. The order of the lines.
    #[pyo3(signature = (sort = "time"))]
    fn table(&self, sort: &str) -> PyResult<String> {
        let sort: Sort = sort.parse().or_raise()?;
        self.with(|recording| format!("{}: {}", self.name, recording.table(sort)))
    }

    /// Writes the profile to a file: a page for a browser (`.html`), a timeline for Perfetto or
    /// `chrome://tracing` (`.json`), or the table (`.txt`).
    ///
    /// Parameters
    /// ----------
    /// path : str or path. The file, which is replaced.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The file's name ends otherwise.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let text = match ending {
            "html" => self.with(|recording| recording.page(&self.name))?,
            "json" => self.with(Recording::timeline)?,
            "txt" => self.table("time")?,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "path is {:?}; it must end in .html, .json or .txt",
                    path.display().to_string()
                )));
            }
        };
        Ok(fs::write(path, text)?)
    }

    fn __str__(&self) -> String {
        self.table("time").unwrap_or_else(|_| self.__repr__())
    }

    fn __repr__(&self) -> String {
        let state = match &*self.state.lock().unpoisoned() {
            State::New => "not begun".into(),
            State::Running(_) => "recording".into(),
            State::Done(recording) => format!("{} calls", recording.rows.len()),
        };
        format!("<profile {:?}: {state}>", self.name)
    }

    /// Returns the table in HTML, for a notebook; None before the block has ended.
    fn _repr_html_(&self) -> Option<String> {
        self.with(|recording| recording.html_table(Sort::Time)).ok()
    }
}

/// Returns true if a backend has been opened.
#[pyfunction]
pub(crate) fn was_opened() -> bool {
    current_device::opened_backend().is_some()
}

/// Returns the line that allocated the current device's memory at an address, or None if it was not recorded; and
/// the greatest change of the allocated bytes since recording began, or None if nothing records.
#[pyfunction]
pub(crate) fn recorded_memory(
    #[pyo3(from_py_with = argument::address)] address: u64,
) -> PyResult<(Option<String>, Option<i64>)> {
    let id = current_device::current_device()?.device.id();
    let line = recording::line_of_allocation(id, address);
    Ok((Some(line).filter(|line| !line.is_empty()), recording::peak(id)))
}
