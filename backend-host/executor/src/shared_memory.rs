//! Shared memory in a unit: the names of its variables, and how much of it there is.

/// Bytes of shared memory of a block at most, static and dynamic: those of the largest GPUs.
pub const MOST_SHARED_BYTES: u32 = 227 << 10;

/// The symbol of the storage of dynamic shared memory.
pub(crate) const DYNAMIC_SHARED: &str = "gpuarray_dynamic_shared";
/// Bytes of that storage behind what a launch can ask for.
pub(crate) const GUARD_BYTES: usize = 256;

/// What lies in front of shared memory and behind it: memory of nobody, so that what a GPU forgives, a kernel of more
/// threads than its array has elements, ends neither in the executor's variables nor in the process's heap.
pub(crate) const RED_ZONE: &str = "gpuarray_red_zone";
/// The one in front, behind all variables of the executor.
pub(crate) const RED_ZONE_BEFORE: &str = "gpuarray_red_zone_before";
/// Room for a block of 1024 threads, with eight bytes each behind.
const BYTES_BEFORE: usize = 4096;
const BYTES_BEHIND: usize = 8192;

/// Assembler text of the memory of nobody, to be linked behind all else: variables with a value lie in front of
/// those without, and only the executor's have one.
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

/// True for the thread-local variables that are shared memory: the others are the executor's, and the compiler's.
pub(crate) fn is_shared(name: &str) -> bool {
    const INDICES: [&str; 4] = ["_ZL9threadIdx", "_ZL8blockIdx", "_ZL8blockDim", "_ZL7gridDim"];
    // Words that programs may not use.
    const RESERVED: [&str; 4] = ["gpuarray_abi", "gpuarray_local", RED_ZONE, "__nanosleep"];
    let is_own = INDICES.contains(&name) || RESERVED.iter().any(|own| name.contains(own));
    !is_own && !is_guard(name)
}

/// True for what the compiler keeps for a thread-local variable with a constructor: a byte that is 1 once that
/// has run. On a GPU the constructors of shared memory never run; what they wrote would race.
pub(crate) fn is_guard(name: &str) -> bool {
    name.starts_with("_ZGV") || name == "__tls_guard"
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
