//! Shared memory in a unit: its variables, their sizes, and what the linker adds.

use crate::symbols::{Symbol, Symbols};
use object::SymbolKind;
use std::fmt::Write as _;

/// The maximum shared memory of a block in bytes, static and dynamic, as on the largest GPUs.
pub const MOST_SHARED_BYTES: u32 = 227 << 10;

/// The symbol of the storage for dynamic shared memory.
pub(crate) const DYNAMIC_SHARED: &str = "gpuarray_dynamic_shared";
/// The number of bytes in that storage beyond the largest possible request.
pub(crate) const GUARD_BYTES: usize = 256;

/// The red zones before and after shared memory: unused memory. A GPU tolerates a kernel with more threads
/// than its array has elements; here such a kernel must not overwrite the executor's variables or the
/// process's heap.
pub(crate) const RED_ZONE: &str = "gpuarray_red_zone";
/// The red zone before shared memory, after all variables of the executor.
pub(crate) const RED_ZONE_BEFORE: &str = "gpuarray_red_zone_before";
/// Room for a block of 1024 threads, with eight bytes each in the red zone after shared memory.
const BYTES_BEFORE: usize = 4096;
const BYTES_BEHIND: usize = 8192;

/// Returns assembler text that defines the red zones. It is linked after everything else. Initialised
/// variables precede uninitialised ones, and only the executor's are initialised.
pub(crate) fn red_zones() -> String {
    let zone = |section: &str, name: &str, bytes: usize| {
        format!(
            ".section {section}\n.balign 16\n.type {name}, %object\n.size {name}, {bytes}\n\
             {name}:\n.zero {bytes}\n"
        )
    };
    zone(".tdata,\"awT\",%progbits", RED_ZONE_BEFORE, BYTES_BEFORE)
        + &zone(".tbss,\"awT\",%nobits", &format!("{RED_ZONE}_behind"), BYTES_BEHIND)
}

/// Returns true for thread-local variables that are shared memory, rather than the executor's or the
/// compiler's.
pub(crate) fn is_shared(name: &str) -> bool {
    const INDICES: [&str; 4] = ["_ZL9threadIdx", "_ZL8blockIdx", "_ZL8blockDim", "_ZL7gridDim"];
    // Names that programs must not use.
    const RESERVED: [&str; 4] = ["gpuarray_abi", "gpuarray_local", RED_ZONE, "__nanosleep"];
    let is_own = INDICES.contains(&name) || RESERVED.iter().any(|own| name.contains(own));
    !is_own && !is_guard(name)
}

/// Returns true for the flag that the compiler keeps for a thread-local variable with a constructor: a byte
/// that is 1 once the constructor has run. On a GPU, constructors of shared memory never run, because their
/// writes would race.
pub(crate) fn is_guard(name: &str) -> bool {
    name.starts_with("_ZGV") || name == "__tls_guard"
}

/// Returns the symbols of static shared memory.
pub(crate) fn static_shared(symbols: &Symbols) -> impl Iterator<Item = &Symbol> {
    let all = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Tls && it.bytes > 0);
    all.filter(|it| is_shared(&it.name) && it.name != DYNAMIC_SHARED)
}

/// Returns the offsets of the guards of shared variables with constructors.
pub(crate) fn guards(symbols: &Symbols) -> Vec<u64> {
    let all = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Tls && it.bytes > 0);
    all.filter(|it| is_guard(&it.name)).map(|it| it.value).collect()
}

/// Returns the start and end of shared memory in thread-local memory, relative to the unit's variable
/// `gpuarray_local`.
pub(crate) fn shared_bounds(symbols: &Symbols) -> [i64; 2] {
    let from = symbols.find("gpuarray_local").map_or(0, |it| it.value);
    let all = || static_shared(symbols).chain(symbols.find(DYNAMIC_SHARED));
    let begin = all().map(|it| it.value).min().unwrap_or(from);
    let end = all().map(|it| it.value + it.bytes).max().unwrap_or(from);
    [begin, end].map(|it| it.wrapping_sub(from) as i64)
}

/// Returns true for an object file that uses shared memory.
pub(crate) fn uses_shared(symbols: &Symbols) -> bool {
    symbols.undefined_thread_local().next().is_some() || static_shared(symbols).next().is_some()
}

/// Returns assembler text that defines the dynamic shared memory of a unit: one storage for all names.
pub(crate) fn dynamic_shared(symbols: &Symbols) -> String {
    let mut names = symbols.undefined_thread_local().peekable();
    if names.peek().is_none() {
        return String::new();
    }
    let mut text = String::from(".section .tbss,\"awT\",%nobits\n.balign 128\n");
    for name in names {
        let _ = write!(
            text,
            ".globl \"{name}\"\n.hidden \"{name}\"\n.type \"{name}\", %object\n\"{name}\":\n"
        );
    }
    let bytes = MOST_SHARED_BYTES as usize + GUARD_BYTES;
    let _ = writeln!(text, "{DYNAMIC_SHARED}:\n.zero {bytes}");
    let _ = writeln!(text, ".type {DYNAMIC_SHARED}, %object\n.size {DYNAMIC_SHARED}, {bytes}");
    text
}

#[cfg(test)]
mod tests {
    use super::is_shared;

    #[test]
    fn what_tells_whether_a_constructor_has_run_is_not_shared() {
        for shared in ["_ZZ4kernvE5tiles", "_ZZ4kernvE4_ZGV", "__tls_guards"] {
            assert!(is_shared(shared), "{shared}");
        }
        for own in ["_ZGVZ4kernvE5tiles", "__tls_guard", "_ZL9threadIdx", "gpuarray_local"] {
            assert!(!is_shared(own), "{own}");
        }
    }
}
