//! Compiling with NVRTC or hipRTC: the same functions with different prefixes, as declared in `nvrtc.h` and
//! `hip/hiprtc.h`.

use super::Compilation;
use hal::error::{Error, ErrorKind, Result};
use hal::library::Symbols;
use hal::module::Compiled;
use hal::status::{Api, Status};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

/// `nvrtcVersion`: major, minor.
pub type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// `nvrtcCreateProgram`: result, text, name, number of headers, their texts, their names.
pub type Create<P> = unsafe extern "C" fn(
    *mut *mut P,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

/// `nvrtcDestroyProgram`, and other functions that take a pointer.
pub type Call<P> = unsafe extern "C" fn(*mut P) -> c_int;

/// `nvrtcCompileProgram`: program, number of options, options.
pub type Compile<P> = unsafe extern "C" fn(*mut P, c_int, *const *const c_char) -> c_int;

/// `nvrtcAddNameExpression`: program, expression.
pub type AddName<P> = unsafe extern "C" fn(*mut P, *const c_char) -> c_int;

/// `nvrtcGetLoweredName`: program, expression, result, which the program owns.
pub type GetName<P> = unsafe extern "C" fn(*mut P, *const c_char, *mut *const c_char) -> c_int;

/// `nvrtcGetCUBINSize` and similar: program, bytes.
pub type GetSize<P> = unsafe extern "C" fn(*mut P, *mut usize) -> c_int;

/// `nvrtcGetCUBIN` and similar: program, buffer of that size.
pub type GetOutput<P> = unsafe extern "C" fn(*mut P, *mut c_char) -> c_int;

/// `nvrtcGetErrorString`: returns the text of a status.
pub type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// Checks the types of this module against the declarations of a vendor's compiler.
///
/// The first line has the vendor's marker type of [`hal::abi`], the type of a program, and the calling convention
/// of the declarations: `"C"`, or `"Rust"` if the bindings load a function when it is first called. `sizes` has
/// the functions that return a size, `outputs` the functions that write that many bytes.
#[macro_export]
macro_rules! check_program_calls {
    (
        $vendor:ty, $program:ty, $abi:literal;
        version: $version:path, create: $create:path, destroy: $destroy:path,
        compile: $compile:path, add_name: $add_name:path, lowered_name: $lowered_name:path,
        error_string: $error_string:path,
        sizes: [$($size:path),*], outputs: [$($output:path),*],
    ) => {
        // Compiles only if each function has the declared type.
        const _: () = {
            use $crate::compile::program as ours;
            use $crate::abi::check_function as check;
            type P = $program;
            type F1<A, R> = unsafe extern $abi fn(A) -> R;
            type F2<A, B, R> = unsafe extern $abi fn(A, B) -> R;
            type F3<A, B, C, R> = unsafe extern $abi fn(A, B, C) -> R;
            type F6<A, B, C, D, E, F, R> = unsafe extern $abi fn(A, B, C, D, E, F) -> R;
            check::<$vendor, ours::Version, F2<_, _, _>>($version);
            check::<$vendor, ours::Create<P>, F6<_, _, _, _, _, _, _>>($create);
            check::<$vendor, ours::Call<*mut P>, F1<_, _>>($destroy);
            check::<$vendor, ours::Compile<P>, F3<_, _, _, _>>($compile);
            check::<$vendor, ours::AddName<P>, F2<_, _, _>>($add_name);
            check::<$vendor, ours::GetName<P>, F3<_, _, _, _>>($lowered_name);
            check::<$vendor, ours::ErrorString, F1<_, _>>($error_string);
            $(check::<$vendor, ours::GetSize<P>, F2<_, _, _>>($size);)*
            $(check::<$vendor, ours::GetOutput<P>, F2<_, _, _>>($output);)*
        };
    };
}

/// An output of a compiled program: a log, or code.
#[derive(Debug)]
struct Output<P> {
    name: &'static str,
    size: GetSize<P>,
    get: GetOutput<P>,
}

/// The functions that compile a program `P`.
#[derive(Debug)]
pub struct ProgramCalls<P> {
    api: Api,
    prefix: &'static str,
    version: Version,
    error_string: Option<ErrorString>,
    create: Create<P>,
    destroy: Call<*mut P>,
    compile: Compile<P>,
    add_name: AddName<P>,
    lowered_name: GetName<P>,
    log: Output<P>,
    outputs: Vec<Output<P>>,
}

impl<P> ProgramCalls<P> {
    /// Looks up the functions by their prefix (`nvrtc`, `hiprtc`) and the names of the forms of code (`CUBIN`,
    /// `PTX`; `Code`), the best first. The last form is required.
    ///
    /// # Errors
    /// An error that names all missing functions.
    ///
    /// # Safety
    /// The library has these functions with the types of this module.
    pub unsafe fn find(
        symbols: &mut Symbols,
        api: Api,
        prefix: &'static str,
        outputs: &[&'static str],
    ) -> Result<Self> {
        let name = |end: &str| format!("{prefix}{end}");
        // SAFETY: the caller's promise, for each.
        let (version, create, destroy, compile, add_name, lowered_name, error_string) = unsafe {
            (
                symbols.required::<Version>(&name("Version")),
                symbols.required::<Create<P>>(&name("CreateProgram")),
                symbols.required::<Call<*mut P>>(&name("DestroyProgram")),
                symbols.required::<Compile<P>>(&name("CompileProgram")),
                symbols.required::<AddName<P>>(&name("AddNameExpression")),
                symbols.required::<GetName<P>>(&name("GetLoweredName")),
                symbols.optional(&name("GetErrorString")),
            )
        };
        let mut output = |it: &'static str, required: bool| {
            let (size, get) = (name(&format!("Get{it}Size")), name(&format!("Get{it}")));
            // SAFETY: the caller's promise, for each.
            let (size, get) = unsafe {
                if required {
                    (symbols.required::<GetSize<P>>(&size), symbols.required::<GetOutput<P>>(&get))
                } else {
                    (symbols.optional::<GetSize<P>>(&size), symbols.optional::<GetOutput<P>>(&get))
                }
            };
            Some(Output { name: it, size: size?, get: get? })
        };
        let log = output("ProgramLog", true);
        let outputs = outputs
            .iter()
            .enumerate()
            .filter_map(|(i, &it)| output(it, i + 1 == outputs.len()))
            .collect();
        let calls = || {
            Some(ProgramCalls {
                api,
                prefix,
                version: version?,
                error_string,
                create: create?,
                destroy: destroy?,
                compile: compile?,
                add_name: add_name?,
                lowered_name: lowered_name?,
                log: log?,
                outputs,
            })
        };
        symbols.complete(calls())
    }

    /// Returns the compiler's version: major, minor.
    ///
    /// # Errors
    /// The compiler's.
    pub fn version(&self) -> Result<(c_int, c_int)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid.
        self.check("Version", unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((major, minor))
    }

    /// Returns true if the compiler supports this form of code.
    pub fn has_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|output| output.name == name)
    }

    /// Compiles a text with exactly these options, and returns the first form of code that the compiled program
    /// has.
    ///
    /// # Errors
    /// `InvalidArgument` for a string with a zero byte; `CompileFailed` with the log.
    pub fn compile(&self, compilation: &Compilation<'_>, options: &[&str]) -> Result<Compiled> {
        let text = c_string("the text", compilation.text)?;
        let name = c_string("the name", compilation.name)?;
        let options = c_strings("an option", options)?;
        let names = c_strings("a name expression", compilation.names)?;
        let count = c_int::try_from(options.len()).map_err(|_| {
            Error::invalid(
                "compile",
                format!("options has length {}; allowed are up to {}", options.len(), c_int::MAX),
            )
        })?;
        let program = Program::new(self, &text, &name)?;
        for name in &names {
            // SAFETY: the program is live, and the string ends with a zero byte.
            let status = unsafe { (self.add_name)(program.handle, name.as_ptr()) };
            self.check("AddNameExpression", status)?;
        }
        let pointers: Vec<*const c_char> = options.iter().map(|it| it.as_ptr()).collect();
        // SAFETY: the program is live, and there are `count` strings that end with zero bytes.
        let status = unsafe { (self.compile)(program.handle, count, pointers.as_ptr()) };
        let log = program.log();
        if status != Status::SUCCESS {
            if log.is_empty() {
                self.check("CompileProgram", status)?;
            }
            return Err(self.error("CompileProgram", status, log));
        }
        let lowered = names.iter().map(|it| program.lowered_name(it)).collect::<Result<_>>()?;
        for output in &self.outputs {
            let code = program.output(output)?;
            // Empty text consists of its terminating zero byte only.
            if code.len() > 1 {
                return Ok(Compiled { code, log, lowered });
            }
        }
        let forms: Vec<_> = self.outputs.iter().map(|output| output.name).collect();
        let detail =
            format!("with options {options:?} the compiler makes no {}", forms.join(" and no "));
        Err(Error::unsupported("compile", detail))
    }

    /// Returns the compiler's text for a status.
    fn describe(&self, status: c_int) -> String {
        let unknown = || format!("status {status}");
        let Some(error_string) = self.error_string else { return unknown() };
        // SAFETY: the result is null or a constant of the library, for every number.
        unsafe {
            let text = error_string(status);
            if text.is_null() { unknown() } else { CStr::from_ptr(text).to_string_lossy().into() }
        }
    }

    fn check(&self, call: &str, status: c_int) -> Result<()> {
        if status == Status::SUCCESS {
            return Ok(());
        }
        let detail = format!("{}{call} failed: {}", self.prefix, self.describe(status));
        Err(self.error(call, status, detail))
    }

    fn error(&self, call: &str, status: c_int, detail: String) -> Error {
        // NVRTC_ERROR_OUT_OF_MEMORY and HIPRTC_ERROR_OUT_OF_MEMORY.
        let kind = if status == 1 { ErrorKind::OutOfMemory } else { ErrorKind::CompileFailed };
        Error::new(kind, Status::new(self.api, status), format!("{}{call}", self.prefix), detail)
    }
}

/// A program, destroyed when it is dropped.
struct Program<'a, P> {
    calls: &'a ProgramCalls<P>,
    handle: *mut P,
}

impl<'a, P> Program<'a, P> {
    fn new(calls: &'a ProgramCalls<P>, text: &CStr, name: &CStr) -> Result<Self> {
        let mut handle = null_mut();
        let (text, name) = (text.as_ptr(), name.as_ptr());
        // SAFETY: the result's pointer is valid, the strings end with zero bytes, and there are no headers.
        let status = unsafe { (calls.create)(&mut handle, text, name, 0, null(), null()) };
        calls.check("CreateProgram", status)?;
        Ok(Program { calls, handle })
    }

    /// Returns the log without its terminating zero byte and white space; empty if there is none.
    fn log(&self) -> String {
        let log = self.output(&self.calls.log).unwrap_or_default();
        String::from_utf8_lossy(&log)
            .trim_matches(|it: char| it == '\0' || it.is_whitespace())
            .into()
    }

    fn output(&self, output: &Output<P>) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is live and the pointer valid.
        let status = unsafe { (output.size)(self.handle, &mut size) };
        self.calls.check(&format!("Get{}Size", output.name), status)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| {
            let detail = format!(
                "the host has no memory of size {size} for the {} of a program",
                output.name
            );
            Error::new(
                ErrorKind::OutOfMemory,
                Status::host(Status::OUT_OF_MEMORY),
                "compile",
                detail,
            )
        })?;
        bytes.resize(size, 0);
        if size > 0 {
            // SAFETY: the program is live, and the buffer has the requested size.
            let status = unsafe { (output.get)(self.handle, bytes.as_mut_ptr().cast()) };
            self.calls.check(&format!("Get{}", output.name), status)?;
        }
        Ok(bytes)
    }

    fn lowered_name(&self, expression: &CStr) -> Result<String> {
        let mut name = null();
        // SAFETY: the program is live, the string ends with a zero byte, and the pointer is valid.
        let status =
            unsafe { (self.calls.lowered_name)(self.handle, expression.as_ptr(), &mut name) };
        self.calls.check("GetLoweredName", status)?;
        if name.is_null() {
            let detail = format!("{expression:?} has no name in the code");
            return Err(self.calls.error("GetLoweredName", status, detail));
        }
        // SAFETY: the program owns the string and is live.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl<P> Drop for Program<'_, P> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and not used again.
        let status = unsafe { (self.calls.destroy)(&mut self.handle) };
        if let Err(error) = self.calls.check("DestroyProgram", status) {
            log::debug!("{error}");
        }
    }
}

fn c_strings(what: &str, strings: &[&str]) -> Result<Vec<CString>> {
    strings.iter().map(|it| c_string(what, it)).collect()
}

fn c_string(what: &str, string: &str) -> Result<CString> {
    CString::new(string).map_err(|error| {
        let place = error.nul_position();
        Error::invalid("compile", format!("{what} has a zero byte at {place}; allowed are none"))
    })
}
