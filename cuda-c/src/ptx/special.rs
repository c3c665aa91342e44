//! Special registers, and the instructions that the host does not support.

use super::parser::Instruction;
use super::table::ROWS;

/// Returns the expression and the type of a special register.
pub(super) fn register(
    name: &str,
    component: Option<&str>,
) -> Option<(&'static str, &'static str)> {
    let of_index = |x, y, z| match component {
        Some("x") => Some((x, "u32")),
        Some("y") => Some((y, "u32")),
        Some("z") => Some((z, "u32")),
        _ => None,
    };
    match name {
        "%tid" => return of_index("::threadIdx.x", "::threadIdx.y", "::threadIdx.z"),
        "%ntid" => return of_index("::blockDim.x", "::blockDim.y", "::blockDim.z"),
        "%ctaid" => return of_index("::blockIdx.x", "::blockIdx.y", "::blockIdx.z"),
        "%nctaid" => return of_index("::gridDim.x", "::gridDim.y", "::gridDim.z"),
        _ if component.is_some() => return None,
        _ => {}
    }
    Some(match name {
        "%laneid" => ("::gpuarray_abi::lane()", "u32"),
        "%warpid" => ("::gpuarray_abi::warp()", "u32"),
        "%nwarpid" => ("::gpuarray_abi::MOST_THREADS / (unsigned)::warpSize", "u32"),
        // The host appears as one multiprocessor with any number of resident blocks.
        "%smid" => ("0u", "u32"),
        "%nsmid" => ("1u", "u32"),
        "%lanemask_eq" => ("::cuda_c::ptx::lanemask_eq()", "u32"),
        "%lanemask_lt" => ("::cuda_c::ptx::lanemask_lt()", "u32"),
        "%lanemask_le" => ("::cuda_c::ptx::lanemask_le()", "u32"),
        "%lanemask_gt" => ("::cuda_c::ptx::lanemask_gt()", "u32"),
        "%lanemask_ge" => ("::cuda_c::ptx::lanemask_ge()", "u32"),
        "%clock" => ("(::cuda_c::ptx::u32)::clock64()", "u32"),
        "%clock_hi" => ("(::cuda_c::ptx::u32)(::clock64() >> 32)", "u32"),
        "%clock64" => ("(::cuda_c::ptx::u64)::clock64()", "u64"),
        "%globaltimer" => ("::cuda_c::ptx::globaltimer()", "u64"),
        "%globaltimer_lo" => ("(::cuda_c::ptx::u32)::cuda_c::ptx::globaltimer()", "u32"),
        "%globaltimer_hi" => ("(::cuda_c::ptx::u32)(::cuda_c::ptx::globaltimer() >> 32)", "u32"),
        _ => return None,
    })
}

/// Returns the reason why the host does not support an instruction, if there is more to say than its name.
fn reason(name: &str, modifiers: &[String]) -> Option<&'static str> {
    let second = modifiers.first().map_or("", String::as_str);
    Some(match (name, second) {
        ("exit" | "ret", _) => "use the C++ statement 'return' instead",
        ("call", _) => "call the function in C++ instead",
        ("brx", _) => "use bra, or switch in C++",
        ("bar" | "barrier", "arrive" | "cta") => {
            "a thread waits at each barrier that it reaches; use bar.sync"
        }
        ("bar" | "barrier" | "mapa" | "getctarank" | "clusterlaunchcontrol", _) => {
            "blocks do not form clusters there"
        }
        ("tex" | "tld4" | "txq" | "istypep", _) => "use the functions of CUDA C for textures",
        ("suld" | "sust" | "sured" | "suq", _) => "use the functions of CUDA C for surfaces",
        ("wmma" | "mma" | "ldmatrix" | "stmatrix" | "movmatrix" | "wgmma" | "tcgen05", _) => {
            "compute with fma instead of matrix units"
        }
        ("cp" | "tensormap" | "multimem", _) => {
            "asynchronous copies are cp.async with commit_group and wait_group"
        }
        _ => return None,
    })
}

/// Returns the message for an instruction that the host does not support.
pub(super) fn unknown(instruction: &Instruction) -> String {
    let Instruction { name, modifiers, .. } = instruction;
    if let Some(reason) = reason(name, modifiers) {
        return format!("is not supported on the host; {reason}");
    }
    match ROWS.iter().any(|row| row.name == name) {
        true => format!("is not supported on the host; {name} does not have these types or modifiers"),
        false => {
            "is not supported on the host; use CUDA C, or other code where __GPUARRAY_HOST__ is defined"
                .into()
        }
    }
}
