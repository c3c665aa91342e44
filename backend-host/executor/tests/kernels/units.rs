//! Functions that tests of units share: compiling, loading, launching.

#![allow(dead_code, reason = "each test takes what it needs")]

use host_executor::{
    Compiler, Error, FailureKind, Kernel, Language, Library, Schedule, Shape, Source,
};
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

pub(crate) fn compiler() -> Compiler {
    compiler_of(Language::default())
}

pub(crate) fn compiler_of(language: Language) -> Compiler {
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/headers");
    Compiler::find(language).expect("a C++ compiler").keeping_headers_in(kept)
}

/// Returns true for zig's compiler, which keeps its own files and finds the system's headers differently.
pub(crate) fn is_zig() -> bool {
    let identity = compiler().identity();
    identity.lines().take(5).any(|line| line.contains("zig"))
}

/// Compiles and loads a text, without warnings.
pub(crate) fn load_source(compiler: &Compiler, source: &Source<'_>) -> Arc<Library> {
    let compiled = compiler.compile(source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compiled.log, "");
    // SAFETY: the text belongs to a test.
    unsafe { Library::load(&compiled.library) }.expect("a unit")
}

pub(crate) fn load_in(language: Language, text: &str) -> Arc<Library> {
    load_source(&compiler_of(language), &Source { text, name: "kernel.cu", ..Source::default() })
}

pub(crate) fn load(text: &str) -> Arc<Library> {
    load_in(Language::default(), text)
}

/// Like [`load`], with checks in the code.
pub(crate) fn load_checked(text: &str) -> Arc<Library> {
    load_in(Language { checked: true, ..Language::default() }, text)
}

pub(crate) fn pool() -> Option<Arc<rayon_core::ThreadPool>> {
    static POOL: OnceLock<Arc<rayon_core::ThreadPool>> = OnceLock::new();
    let make =
        || Arc::new(rayon_core::ThreadPoolBuilder::new().num_threads(4).build().expect("threads"));
    Some(POOL.get_or_init(make).clone())
}

pub(crate) fn pointer<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// Launches a kernel with one array, and then a number of elements.
pub(crate) fn launch_with(
    kernel: &Kernel,
    shape: &Shape,
    schedule: &Schedule,
    array: &mut [i32],
) -> host_executor::Result<()> {
    let (mut address, mut count) = (array.as_mut_ptr(), array.len() as i32);
    let arguments = [pointer(&mut address), pointer(&mut count)];
    // SAFETY: the tests' kernels take a pointer and possibly a number, and stay inside the array.
    unsafe { kernel.launch(shape, schedule, &arguments, &pool) }
}

pub(crate) fn shape(grid: u32, block: u32) -> Shape {
    Shape { grid: [grid, 1, 1], block: [block, 1, 1], cooperative: false }
}

pub(crate) fn run(library: &Arc<Library>, name: &str, grid: u32, block: u32, array: &mut [i32]) {
    let kernel = Kernel::find(library, name).expect("the kernel");
    launch_with(&kernel, &shape(grid, block), &Schedule::default(), array).expect("it runs");
}

pub(crate) fn failure(
    library: &Arc<Library>,
    name: &str,
    grid: u32,
    block: u32,
) -> (FailureKind, String) {
    let kernel = Kernel::find(library, name).expect("the kernel");
    let mut array = vec![0; 4096];
    let result = launch_with(&kernel, &shape(grid, block), &Schedule::default(), &mut array);
    match result.expect_err("it fails") {
        Error::Kernel(failure) => (failure.kind, failure.message),
        other => panic!("{other}"),
    }
}

/// A pseudo-random number generator: xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}
