//! Opening vendors' shared libraries at run time.
//!
//! Nothing links a vendor's library: a program starts without any of them, and a missing file or symbol is an
//! ordinary error. An opened library stays loaded until the process ends, because drivers do not survive `dlclose`.

use crate::error::{Error, ErrorKind, Result};
use crate::status::{Api, Status};
use std::ffi::{CString, OsString, c_void};
use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Each list is complete and never freed. A lock could be held at a fork by a thread that the child does not have.
static DIRECTORIES: AtomicPtr<Vec<PathBuf>> = AtomicPtr::new(ptr::null_mut());

/// Adds a directory of Python packages, such as an entry of `sys.path`, to later searches. Vendors publish libraries
/// in Python packages; a Rust library cannot know where these are.
pub fn add_search_directory(path: impl Into<PathBuf>) {
    let path = path.into();
    loop {
        let known = DIRECTORIES.load(Ordering::Acquire);
        let mut directories = listed(known);
        if directories.contains(&path) {
            return;
        }
        directories.push(path.clone());
        let new = Box::into_raw(Box::new(directories));
        let stored = DIRECTORIES.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
        if stored.is_ok() {
            return;
        }
        // SAFETY: the value was boxed above, and no other thread has seen it.
        drop(unsafe { Box::from_raw(new) });
    }
}

/// Returns the directories that were added, in order.
pub fn search_directories() -> Vec<PathBuf> {
    listed(DIRECTORIES.load(Ordering::Acquire))
}

fn listed(directories: *const Vec<PathBuf>) -> Vec<PathBuf> {
    // SAFETY: a stored list is neither changed nor freed.
    unsafe { directories.as_ref() }.cloned().unwrap_or_default()
}

/// A search for a library: the files to try, and the error if all of them fail.
#[derive(Clone, Debug)]
pub struct Search {
    library: &'static str,
    kind: ErrorKind,
    advice: String,
    explicit: Option<(&'static str, PathBuf)>,
    candidates: Vec<PathBuf>,
}

impl Search {
    /// Returns a search for the library that messages call `library`. By default, failure is a `BackendUnavailable`
    /// error.
    pub fn new(library: &'static str) -> Self {
        Search {
            library,
            kind: ErrorKind::BackendUnavailable,
            advice: String::new(),
            explicit: None,
            candidates: Vec::new(),
        }
    }

    /// Sets the kind of the error for a failed search.
    pub fn kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds advice for the user to the error's message.
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Sets a path from the environment variable `variable`. If `value` is set, no other path is tried.
    pub fn explicit(mut self, variable: &'static str, value: Option<OsString>) -> Self {
        self.explicit = value.filter(|it| !it.is_empty()).map(|it| (variable, PathBuf::from(it)));
        self
    }

    /// Returns true if the user named a file. That file is then the only one tried.
    pub fn is_explicit(&self) -> bool {
        self.explicit.is_some()
    }

    /// Adds files to try: paths, or bare names (the loader searches for them in its own directories).
    pub fn candidates<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.candidates.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Opens the first candidate that loads and that `accept` accepts.
    ///
    /// # Errors
    /// An error that lists all attempts, each with the loader's reason or the detail of `accept`'s error. Its status
    /// is the first one that a library returned, if any.
    ///
    /// # Safety
    /// The initialisers of the candidates may run.
    pub unsafe fn open<T>(&self, mut accept: impl FnMut(Library) -> Result<T>) -> Result<T> {
        let mut status = None;
        let mut attempt = |path: &Path| {
            // SAFETY: the caller's promise.
            let library = unsafe { Library::open(path) }?;
            accept(library).map_err(|error| {
                status = status.or(Some(error.status()).filter(|it| it.api != Api::Host));
                without(&format!("{} ", path.display()), error.detail())
            })
        };
        if let Some((variable, path)) = &self.explicit {
            return attempt(path).map_err(|reason| {
                self.error(status, &format!("{variable} is {path:?}: {reason}"))
            });
        }
        let mut tried: Vec<(String, Vec<&Path>)> = Vec::new();
        for path in &self.candidates {
            let reason = match attempt(path) {
                Ok(it) => return Ok(it),
                Err(reason) => reason,
            };
            match tried.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, paths)) => paths.push(path),
                None => tried.push((reason, vec![path])),
            }
        }
        Err(self.error(status, &format!("tried {}", Tried(&tried))))
    }

    fn error(&self, status: Option<Status>, what: &str) -> Error {
        let code = match self.kind {
            ErrorKind::BackendUnavailable => Status::NO_DEVICE,
            ErrorKind::Unsupported => Status::NOT_SUPPORTED,
            _ => Status::NOT_FOUND,
        };
        let mut detail = format!("{} cannot be opened: {what}", self.library);
        if !self.advice.is_empty() {
            detail = format!("{detail}; {}", self.advice);
        }
        Error::new(self.kind, status.unwrap_or(Status::host(code)), "dlopen", detail)
    }
}

/// Reasons, each with the paths that failed for it.
struct Tried<'a>(&'a [(String, Vec<&'a Path>)]);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (reason, paths) in self.0 {
            for path in paths {
                write!(f, "{separator}{}", path.display())?;
                separator = ", ";
            }
            write!(f, " ({reason})")?;
        }
        if self.0.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}

/// A shared library, loaded until the process ends.
#[derive(Clone, Copy)]
pub struct Library {
    inner: &'static libloading::Library,
    path: &'static Path,
}

impl Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.path).finish()
    }
}

impl Library {
    /// # Safety
    /// The library's initialisers run.
    unsafe fn open(path: &Path) -> Result<Library, String> {
        // SAFETY: the caller's promise; finalisers do not run before the process ends.
        match unsafe { libloading::Library::new(path) } {
            Ok(library) => Ok(Library {
                inner: Box::leak(Box::new(library)),
                path: Box::leak(path.to_owned().into_boxed_path()),
            }),
            Err(error) => Err(reason(path, &error)),
        }
    }

    /// Returns the candidate under which the library was opened.
    pub fn path(&self) -> &'static Path {
        self.path
    }

    /// Returns the address of a symbol.
    pub fn address(&self, name: &str) -> Option<NonNull<c_void>> {
        // SAFETY: any symbol is an address; nothing is read or called there.
        let symbol = unsafe { self.inner.get::<*mut c_void>(name) };
        NonNull::new(*symbol.ok()?)
    }

    /// Returns the file from which the loader loaded the library, found through one of its symbols.
    pub fn file(&self, symbol: &str) -> Option<PathBuf> {
        if self.path.is_absolute() {
            return Some(self.path.to_owned());
        }
        file_of(self.address(symbol)?)
    }

    /// Begins to look up symbols.
    pub fn symbols(self) -> Symbols {
        Symbols { library: self, missing: Vec::new() }
    }
}

/// Returns the loader's message without the path at its start.
fn reason(path: &Path, error: &libloading::Error) -> String {
    let text = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    without(&format!("{}: ", path.display()), &text)
}

fn without(prefix: &str, text: &str) -> String {
    text.strip_prefix(prefix).unwrap_or(text).to_owned()
}

#[cfg(unix)]
fn file_of(address: NonNull<c_void>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut information = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr writes through a valid pointer, and all-zero bytes are null pointers. The name lives as long as
    // the library, which is never unloaded.
    let name = unsafe {
        if libc::dladdr(address.as_ptr(), information.as_mut_ptr()) == 0 {
            return None;
        }
        let name = information.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        CString::from(std::ffi::CStr::from_ptr(name))
    };
    Some(PathBuf::from(OsString::from_vec(name.into_bytes())))
}

#[cfg(not(unix))]
fn file_of(_: NonNull<c_void>) -> Option<PathBuf> {
    None
}

/// The symbols of a library, and a list of the missing ones.
#[derive(Debug)]
pub struct Symbols {
    library: Library,
    missing: Vec<String>,
}

impl Symbols {
    /// Looks up the function `name`. If it is missing, returns `None`, and [`Symbols::complete`] then names it. So
    /// look up all functions first.
    ///
    /// # Safety
    /// `F` is a function pointer with the type that the library's function of this name has.
    pub unsafe fn required<F: Copy>(&mut self, name: &str) -> Option<F> {
        // SAFETY: the caller's promise.
        let function = unsafe { self.optional(name) };
        if function.is_none() {
            self.missing.push(name.to_owned());
        }
        function
    }

    /// Looks up the function `name`; it may be missing.
    ///
    /// # Safety
    /// As for [`Symbols::required`].
    pub unsafe fn optional<F: Copy>(&self, name: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.library.address(name)?;
        // SAFETY: a function pointer is an address; the caller promises its type.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }

    /// Returns the table made of the symbols that were looked up, if none of them is missing.
    ///
    /// # Errors
    /// A `BackendUnavailable` that names the library and all missing symbols.
    pub fn complete<T>(&self, table: Option<T>) -> Result<T> {
        table.filter(|_| self.missing.is_empty()).ok_or_else(|| {
            let path = self.library.path.display();
            Error::unavailable("dlsym", format!("{path} lacks {}", self.missing.join(", ")))
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::ffi::c_double;

    type Unary = unsafe extern "C" fn(c_double) -> c_double;

    fn open(search: &Search) -> Result<Library> {
        // SAFETY: the initialisers of the C mathematics library are harmless.
        unsafe { search.open(Ok) }
    }

    #[test]
    fn the_first_candidate_that_loads_is_taken() {
        let search = Search::new("mathematics").candidates(["libnone.so.1", "libm.so.6"]);
        let library = open(&search).expect("libm");
        assert_eq!(library.path(), Path::new("libm.so.6"));
        assert!(library.file("cos").expect("a file").ends_with("libm.so.6"));
        assert!(library.file("cos").expect("a file").is_absolute());
        let mut symbols = library.symbols();
        // SAFETY: the type of `cos`; `nothing` does not exist.
        let (cos, none) =
            unsafe { (symbols.required::<Unary>("cos"), symbols.optional::<Unary>("nothing")) };
        let cos = symbols.complete(cos).expect("cos");
        // SAFETY: `cos` does not have preconditions.
        assert_eq!(unsafe { cos(0.0) }, 1.0);
        assert!(none.is_none());
    }

    #[test]
    fn all_missing_symbols_are_in_one_error() {
        let library = open(&Search::new("mathematics").candidates(["libm.so.6"])).expect("libm");
        let mut symbols = library.symbols();
        for name in ["first_none", "cos", "second_none"] {
            // SAFETY: the type of cos; the others do not exist.
            let _ = unsafe { symbols.required::<Unary>(name) };
        }
        let error = symbols.complete(Some(())).expect_err("two are missing");
        assert_eq!(error.kind(), ErrorKind::BackendUnavailable);
        assert_eq!(error.detail(), "libm.so.6 lacks first_none, second_none");
    }

    #[test]
    fn a_failure_lists_every_candidate_with_its_reason() {
        let folder = std::env::temp_dir().join(format!("pygpu-library-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = folder.join("libtext.so");
        std::fs::write(&text, "no library, but longer than the header of one".repeat(4))
            .expect("a file");
        let search = Search::new("a driver")
            .candidates(["libnone.so.2", "libnone.so.1"])
            .candidates([&text])
            .candidates(["libm.so.6"])
            .kind(ErrorKind::Unsupported)
            .advice("install one");
        let refuse = |library: Library| -> Result<()> {
            let detail = format!("{} is too old", library.path().display());
            Err(Error::new(ErrorKind::Driver, Status::new(Api::Cuda, 803), "test", detail))
        };
        // SAFETY: as above.
        let error = unsafe { search.open(refuse) }.expect_err("nothing is accepted");
        std::fs::remove_dir_all(&folder).expect("the folder");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.status(), Status::new(Api::Cuda, 803));
        let missing = "cannot open shared object file: No such file or directory";
        assert_eq!(
            error.detail(),
            format!(
                "a driver cannot be opened: tried libnone.so.2, libnone.so.1 ({missing}), {} \
                 (invalid ELF header), libm.so.6 (is too old); install one",
                text.display()
            )
        );
    }

    #[test]
    fn an_explicit_path_is_tried_alone_and_its_variable_named() {
        let search = Search::new("a driver").candidates(["libm.so.6"]);
        let error = open(&search.clone().explicit("PYGPU_X", Some("/none/libx.so".into())))
            .expect_err("no such file");
        assert_eq!(error.kind(), ErrorKind::BackendUnavailable);
        assert_eq!(error.status(), Status::host(Status::NO_DEVICE));
        assert!(
            error.detail().contains("PYGPU_X is \"/none/libx.so\": cannot open shared"),
            "{error}"
        );
        assert!(!error.detail().contains("libm"), "{error}");
        assert!(open(&search.clone().explicit("PYGPU_X", Some("".into()))).is_ok());
        assert!(open(&search.explicit("PYGPU_X", None)).is_ok());
    }

    #[test]
    fn without_candidates_nothing_was_tried() {
        let error = open(&Search::new("a driver")).expect_err("nothing to open");
        assert_eq!(error.detail(), "a driver cannot be opened: tried nothing");
    }

    #[test]
    fn search_directories_are_kept_once_and_in_order() {
        for path in ["/first", "/second", "/first"] {
            add_search_directory(path);
        }
        let directories = search_directories();
        let ours: Vec<_> = directories
            .iter()
            .filter(|it| it.ends_with("first") || it.ends_with("second"))
            .collect();
        assert_eq!(ours, [Path::new("/first"), Path::new("/second")]);
    }
}
