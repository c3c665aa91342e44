//! Shared memory in a unit: the names of its variables, and how much of it there is.

/// Bytes of shared memory of a block at most, static and dynamic: those of the largest GPUs.
pub const MOST_SHARED_BYTES: u32 = 227 << 10;

/// The symbol of the storage of dynamic shared memory.
pub(crate) const DYNAMIC_SHARED: &str = "gpuarray_dynamic_shared";
/// Bytes of that storage behind what a launch can ask for.
pub(crate) const GUARD_BYTES: usize = 256;

/// What lies between shared memory and the executor's variables in a unit with checks.
pub(crate) const RED_ZONE: &str = "gpuarray_red_zone";

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
