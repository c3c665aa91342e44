//! Replaces `memcpy` in units. A unit is linked without the C library, because linking it takes longer than
//! compiling most units. glibc's loader then binds `memcpy` to the version of 2002, which uses no wide
//! registers on x86-64. `memmove` has only one version, the fast one.

use crate::symbols::Symbols;

/// Returns assembler text that defines `memcpy` as `memmove`, for an object file that calls it.
pub(crate) fn definition(symbols: &Symbols) -> &'static str {
    let is_old = cfg!(all(target_arch = "x86_64", target_env = "gnu"));
    match is_old && symbols.is_undefined("memcpy") {
        true => {
            ".text\n.globl memcpy\n.hidden memcpy\n.type memcpy, %function\n\
             memcpy: jmp *memmove@GOTPCREL(%rip)\n"
        }
        false => "",
    }
}
