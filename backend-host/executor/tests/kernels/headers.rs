//! Tests the headers of the language with small programs, compiled by the system's compiler.
//!
//! A program calls the language's functions like host functions, and compares them with exact arithmetic,
//! with definitions written out, and with published values.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

fn compiler() -> String {
    std::env::var("CXX").ok().filter(|it| !it.trim().is_empty()).unwrap_or_else(|| "c++".to_owned())
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a program of `tests/kernels/headers`. With `output` it produces an executable, otherwise it only
/// checks the text.
fn compile(file: &str, options: &[&str], output: Option<&Path>) -> String {
    let words = compiler();
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a compiler"));
    command.args(words).args(["-x", "c++", "-std=c++17", "-fno-math-errno", "-fno-builtin-printf"]);
    // The qualifiers that the driver removes from a program's text.
    command.args([
        "-D__gpuarray_global__=",
        "-D__gpuarray_variable__=",
        "-D__gpuarray_constant__=",
        "-pthread",
    ]);
    // The driver's preprocessor runs without optimisation, because with it the system's headers define
    // functions.
    command.arg("-U__OPTIMIZE__");
    command.arg("-I").arg(crate_folder().join("../../cuda-c/include"));
    command.args(["-include", "gpuarray_prelude.h"]).args(options);
    command.arg(crate_folder().join("tests/kernels/headers").join(file));
    let mut object_file: Option<PathBuf> = None;
    match output {
        Some(output) => command.arg("-o").arg(output),
        None => {
            // Zig warns about `-fsyntax-only` together with `-c`, which it adds itself.
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let object = format!("checked-{}-{number}.o", std::process::id());
            object_file = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join(object));
            command.args(["-c", "-o"]).args(&object_file)
        }
    };
    let result = command.env("LC_ALL", "C").output().expect("the compiler runs");
    if let Some(object) = object_file {
        let _ = std::fs::remove_file(object);
    }
    let log = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(result.status.success(), "{file} does not compile:\n{log}");
    log
}

fn run(name: &str, options: &[&str]) {
    let file = format!("{name}.cpp");
    // Tests run concurrently, and two of them use the same file.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let program: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}-{number}", std::process::id()));
    compile(&file, options, Some(&program));
    let result = Command::new(&program).output().expect("the program runs");
    let _ = std::fs::remove_file(&program);
    let log = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{file}: {log}\n{}", result.status);
}

macro_rules! programs {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), &["-O1", "-march=native"]);
        })*
    };
}

programs!(integers, halves, random, mathematics, atomics);

/// With the options by which the driver allows optimisations of arithmetic.
#[test]
fn rounding() {
    let words = compiler();
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a compiler"));
    let version = command.args(words).arg("--version").output().expect("the compiler runs").stdout;
    let contraction = match String::from_utf8_lossy(&version).contains("clang") {
        true => "-ffp-contract=on",
        false => "-ffp-contract=fast",
    };
    run("rounding", &["-O3", "-march=native", contraction]);
}

/// Without instructions for multiply-add or half-precision conversions.
#[test]
fn rounding_on_an_old_processor() {
    run("rounding", &["-O1"]);
}

/// NVIDIA's compiler accepts the same file: see `tests/python/compile`.
#[test]
fn signatures() {
    compile("signatures.cu", &[], None);
}

#[test]
fn names_of_the_systems_library() {
    compile("names.cu", &["-Wall", "-Wextra", "-Werror"], None);
}

/// A program defines macros with common names before it includes the headers.
#[test]
fn macros_of_programs() {
    compile("macros.cu", &["-Wall", "-Wextra", "-Werror"], None);
}

/// The headers themselves cause no warnings.
#[test]
fn no_warnings() {
    let log = compile("everything.cu", &["-Wall", "-Wextra"], None);
    assert_eq!(log, "");
    let log = compile(
        "everything.cu",
        &["-Wall", "-Wextra", "-DGPUARRAY_HIP=1", "-DGPUARRAY_WARP_SIZE=64"],
        None,
    );
    assert_eq!(log, "");
}
