//! The driver's own functions, called as another library in the process would call them.

use crate::context::Context;
use libloading::{Library, Symbol};
use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong};

/// A driver's library, opened a second time.
pub(crate) struct Raw {
    library: Library,
    hip: bool,
}

/// The result of a driver call whose status has been checked.
type DriverResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn check(name: &str, code: c_int) -> DriverResult<()> {
    if code == 0 { Ok(()) } else { Err(format!("{name} returned status {code}").into()) }
}

/// Calls `$name` of the library: `call!(self, "cuCtxGetCurrent", (*mut usize), (&mut handle))`.
macro_rules! call {
    ($raw:expr, $name:expr, ($($type:ty),*), ($($value:expr),*)) => {{
        let name: &str = $name;
        type Function = unsafe extern "C" fn($($type),*) -> c_int;
        // SAFETY: the type comes from the driver's documentation.
        let function: Symbol<'_, Function> = unsafe { $raw.library.get(name.as_bytes())? };
        // SAFETY: pointers are to values of this function, handles are live.
        check(name, unsafe { function($($value),*) })
    }};
}

impl Raw {
    /// Opens the library of the context's backend, which is already loaded.
    pub(crate) fn new(context: &Context) -> DriverResult<Raw> {
        let hip = context.backend.name() == "hip";
        let (variable, name) = match hip {
            true => ("PYGPU_HIP_LIBRARY", "libamdhip64.so"),
            false => ("PYGPU_CUDA_LIBRARY", "libcuda.so.1"),
        };
        let path = std::env::var_os(variable).unwrap_or_else(|| name.into());
        // SAFETY: the library is already loaded.
        Ok(Raw { library: unsafe { Library::new(path)? }, hip })
    }

    fn name<'a>(&self, cuda: &'a str, hip: &'a str) -> &'a str {
        if self.hip { hip } else { cuda }
    }

    /// Returns the bytes of free memory, counting pools as used.
    pub(crate) fn free_memory(&self) -> DriverResult<usize> {
        let (mut free, mut total) = (0, 0);
        let name = self.name("cuMemGetInfo_v2", "hipMemGetInfo");
        call!(self, name, (*mut usize, *mut usize), (&mut free, &mut total))?;
        Ok(free)
    }

    /// Creates a stream that the library under test does not know.
    pub(crate) fn create_stream(&self) -> DriverResult<usize> {
        let (mut stream, non_blocking, priority) = (0, 1, 0);
        let name = self.name("cuStreamCreateWithPriority", "hipStreamCreateWithPriority");
        let stream_out = &mut stream;
        call!(self, name, (*mut usize, c_uint, c_int), (stream_out, non_blocking, priority))?;
        Ok(stream)
    }

    pub(crate) fn destroy_stream(&self, stream: usize) -> DriverResult<()> {
        let name = self.name("cuStreamDestroy_v2", "hipStreamDestroy");
        call!(self, name, (usize), (stream))
    }

    /// Waits until all work of a stream has run. Fails if the handle is not valid.
    pub(crate) fn synchronize_stream(&self, stream: usize) -> DriverResult<()> {
        let name = self.name("cuStreamSynchronize", "hipStreamSynchronize");
        call!(self, name, (usize), (stream))
    }

    /// Begins a capture in the mode that the vendors' runtime libraries use by default.
    pub(crate) fn begin_capture(&self, stream: usize) -> DriverResult<()> {
        let (name, thread_local) =
            (self.name("cuStreamBeginCapture_v2", "hipStreamBeginCapture"), 1);
        call!(self, name, (usize, c_uint), (stream, thread_local))
    }

    pub(crate) fn end_capture(&self, stream: usize) -> DriverResult<usize> {
        let mut graph = 0;
        let name = self.name("cuStreamEndCapture", "hipStreamEndCapture");
        call!(self, name, (usize, *mut usize), (stream, &mut graph))?;
        Ok(graph)
    }

    pub(crate) fn instantiate(&self, graph: usize) -> DriverResult<usize> {
        let (mut executable, flags) = (0, 0);
        let name = self.name("cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags");
        call!(self, name, (*mut usize, usize, c_ulonglong), (&mut executable, graph, flags))?;
        Ok(executable)
    }

    pub(crate) fn launch_graph(&self, executable: usize, stream: usize) -> DriverResult<()> {
        let name = self.name("cuGraphLaunch", "hipGraphLaunch");
        call!(self, name, (usize, usize), (executable, stream))
    }

    /// Destroys a graph; executable graphs made from it stay valid.
    pub(crate) fn destroy_graph(&self, graph: usize) -> DriverResult<()> {
        call!(self, self.name("cuGraphDestroy", "hipGraphDestroy"), (usize), (graph))
    }

    pub(crate) fn destroy_executable(&self, executable: usize) -> DriverResult<()> {
        let name = self.name("cuGraphExecDestroy", "hipGraphExecDestroy");
        call!(self, name, (usize), (executable))
    }

    /// Returns the number of live objects of a kind. Only the fake driver has this function.
    pub(crate) fn live(&self, kind: &str) -> DriverResult<u64> {
        type Live = unsafe extern "C" fn(*const c_char) -> u64;
        let kind = CString::new(kind)?;
        // SAFETY: the type comes from the fake driver's documentation.
        let live: Symbol<'_, Live> = unsafe { self.library.get(b"double_live")? };
        // SAFETY: the text ends with a zero byte and outlives the call.
        Ok(unsafe { live(kind.as_ptr()) })
    }

    /// Returns the calling thread's context, or 0 if it has none.
    pub(crate) fn current_context(&self) -> DriverResult<usize> {
        let mut context = 0;
        call!(self, "cuCtxGetCurrent", (*mut usize), (&mut context))?;
        Ok(context)
    }

    /// Makes a context current on the calling thread; 0 for none.
    pub(crate) fn set_context(&self, context: usize) -> DriverResult<()> {
        call!(self, "cuCtxSetCurrent", (usize), (context))
    }

    /// Creates a context in addition to the primary one, and makes it current on the calling
    /// thread.
    pub(crate) fn create_context(&self, device: usize) -> DriverResult<usize> {
        let (mut context, flags) = (0, 0);
        let device = device as c_int;
        let name = "cuCtxCreate_v2";
        call!(self, name, (*mut usize, c_uint, c_int), (&mut context, flags, device))?;
        Ok(context)
    }

    pub(crate) fn destroy_context(&self, context: usize) -> DriverResult<()> {
        call!(self, "cuCtxDestroy_v2", (usize), (context))
    }
}
