//! Functions of the system that units call in another form.
//!
//! - Functions that end the process, or the thread that runs a block. If a kernel calls one, its launch ends with an
//!   error instead.
//! - `memcpy`. A unit is linked without the C library, because linking it takes longer than compiling most units.
//!   glibc's loader then binds `memcpy` to the version of 2002, which uses no wide registers on x86-64. `memmove` has
//!   only one version, the fast one.

use crate::symbols::Symbols;
use std::fmt::Write as _;

/// The functions that end a process or thread, by their symbols, and their names in messages.
const ENDINGS: [(&str, &str); 8] = [
    ("abort", "abort"),
    ("exit", "exit"),
    ("_exit", "_exit"),
    ("_Exit", "_Exit"),
    ("quick_exit", "quick_exit"),
    ("pthread_exit", "pthread_exit"),
    ("thrd_exit", "thrd_exit"),
    ("_ZSt9terminatev", "std::terminate"),
];

/// Jumps to the function in the unit's headers that ends a launch, with the address of a name as its
/// argument.
#[cfg(target_arch = "x86_64")]
const JUMP: &str = "lea 1f(%rip), %rdi\njmp gpuarray_ending\n";
#[cfg(target_arch = "aarch64")]
const JUMP: &str = "adrp x0, 1f\nadd x0, x0, :lo12:1f\nb gpuarray_ending\n";

/// Returns the linker options that redirect an object file's calls of functions that end to [`definitions`],
/// even if a linked library has the function itself.
pub(crate) fn options(symbols: &Symbols) -> impl Iterator<Item = String> + '_ {
    called(symbols).map(|(symbol, _)| format!("-Wl,--wrap={symbol}"))
}

fn called(symbols: &Symbols) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
    ENDINGS.into_iter().filter(|it| symbols.is_undefined(it.0))
}

/// Returns assembler text with the definitions to which the calls of an object file are redirected.
pub(crate) fn definitions(symbols: &Symbols) -> String {
    let mut text = String::new();
    for (symbol, name) in called(symbols) {
        let symbol = format!("__wrap_{symbol}");
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            ".text\n.globl {symbol}\n.hidden {symbol}\n.type {symbol}, %function\n{symbol}:\n{JUMP}\
             .section .rodata\n1: .asciz \"{name}\"\n"
        );
    }
    let is_old = cfg!(all(target_arch = "x86_64", target_env = "gnu"));
    if is_old && symbols.is_undefined("memcpy") {
        text.push_str(
            ".text\n.globl memcpy\n.hidden memcpy\n.type memcpy, %function\n\
             memcpy: jmp *memmove@GOTPCREL(%rip)\n",
        );
    }
    text
}
