//! The line of the program that Python is running.

use hal::process::ProcessMutex;
use hal::recording::line_number;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;
use std::mem;
use std::path::PathBuf;

/// The most lines that are known at the same time.
const MOST: usize = 1 << 14;

/// A code object, which keeps its address from being used again, and the number of a line; `None` for this package's
/// own lines.
type Known = (Py<PyAny>, Option<u32>);

/// The known lines by the addresses of code objects and the instruction that runs.
static LINES: ProcessMutex<FxHashMap<(usize, i32), Known>> = ProcessMutex::new(FxHashMap::default);

/// Returns the number of the innermost line that is not in this package, as [`line_number`] does; 0 if there is none.
pub(crate) fn running_line(py: Python<'_>) -> u32 {
    // SAFETY: the thread holds Python's lock; a frame that runs is alive.
    let innermost = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut next = innermost;
    while let Some(frame) = next.take() {
        let pointer: *mut ffi::PyFrameObject = frame.as_ptr().cast();
        // SAFETY: the object is a frame, and the code is a new reference.
        let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(pointer).cast()) };
        let instruction = frame.getattr(intern!(py, "f_lasti")).and_then(|it| it.extract());
        let Ok(instruction) = instruction else { return 0 };
        let key = (code.as_ptr() as usize, instruction);
        let known = LINES.lock().get(&key).map(|it| it.1);
        let found = known.unwrap_or_else(|| {
            // SAFETY: as above. The search for the line takes longer, the longer the function is.
            let number = unsafe { ffi::PyFrame_GetLineNumber(pointer) };
            let found = named(&code, number).unwrap_or(None);
            let mut lines = LINES.lock();
            // Programs that make code without end forget its lines.
            let forgotten =
                if lines.len() < MOST { FxHashMap::default() } else { mem::take(&mut *lines) };
            lines.insert(key, (code.unbind(), found));
            drop(lines);
            drop(forgotten);
            found
        });
        if let Some(found) = found {
            return found;
        }
        next = frame.getattr(intern!(py, "f_back")).ok().filter(|back| !back.is_none());
    }
    0
}

/// Returns the number of a line of the program; `None` for a line of this package.
#[cold]
fn named(code: &Bound<'_, PyAny>, number: i32) -> PyResult<Option<u32>> {
    let file = code.getattr("co_filename")?.cast::<PyString>()?.to_string_lossy().into_owned();
    let package: PathBuf = code.py().import("pygpu._core")?.getattr("__file__")?.extract()?;
    let beside = package.ancestors().nth(2).unwrap_or(&package);
    let is_own = ["pygpu", "PyGPU", "PybindGPU"]
        .iter()
        .any(|name| PathBuf::from(&file).starts_with(beside.join(name)));
    Ok((!is_own).then(|| line_number(&format!("{file}:{number}"))))
}
