//! The headers of the language, which the library contains: one tree, `include`, for all compilers.

/// Name and text of each file for kernels on the host. GPUs' compilers share some of them.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/host_headers.rs"));

/// Name and text of each file for the run-time compilers of GPUs alone. Those below `amd/` are for AMD's compiler
/// and replace other files with the same names; those below `std/` are of the C++ library.
const FOR_GPUS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/gpu_headers.rs"));

/// Headers that run-time compilers have built in.
pub(crate) const BUILT_IN: &str = "
    cuda_runtime.h cuda_runtime_api.h device_functions.h device_launch_parameters.h
    driver_types.h math_functions.h surface_functions.h surface_types.h
    texture_fetch_functions.h texture_types.h vector_functions.h vector_types.h
";

/// NVIDIA's headers that only a compiler of whole programs takes; kernels need not include them.
pub(crate) const OF_PROGRAMS: &str = "
    builtin_types.h channel_descriptor.h common_functions.h crt/device_double_functions.h
    crt/device_functions.h crt/host_config.h crt/host_defines.h crt/math_functions.h
    cuda_device_runtime_api.h cuda_profiler_api.h cuda_surface_types.h cuda_texture_types.h
    device_atomic_functions.h device_double_functions.h device_types.h host_config.h
    host_defines.h sm_20_atomic_functions.h sm_20_intrinsics.h sm_30_intrinsics.h
    sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h sm_35_intrinsics.h
    sm_60_atomic_functions.h sm_61_intrinsics.h surface_indirect_functions.h
    texture_indirect_functions.h
";

/// Headers whose contents are in `curand_kernel.h`.
const OF_CURAND: &str = "
    curand_globals.h curand_mrg32k3a.h curand_normal.h curand_philox4x32_x.h curand_poisson.h curand_uniform.h
";

/// Returns name and text of each header for kernels on the host. Most of NVIDIA's are empty: kernels can use their
/// contents without including them.
pub fn headers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let empty = BUILT_IN.split_ascii_whitespace().chain(OF_PROGRAMS.split_ascii_whitespace());
    let empty = empty.filter(|name| FILES.iter().all(|it| it.0 != *name));
    let of_curand = OF_CURAND.split_ascii_whitespace();
    let files = FILES.iter().copied();
    files
        .chain(empty.map(|name| (name, "#pragma once\n")))
        .chain(of_curand.map(|name| (name, "#include \"curand_kernel.h\"\n")))
}

/// Returns the text of a header, with the headers that it includes inserted, each in a guard, for compilers that
/// find no files; `None` if there is no header of that name.
pub fn header_text(name: &str) -> Option<String> {
    let (name, own) = headers().find(|it| it.0 == name)?;
    let word = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' };
    let guard: String = name.chars().map(word).collect();
    let mut text = format!("#ifndef CUDA_C_{guard}\n#define CUDA_C_{guard}\n");
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    for line in own.lines().filter(|line| *line != "#pragma once") {
        match line.strip_prefix("#include \"").and_then(|it| it.strip_suffix('"')) {
            Some(included) => {
                let beside = format!("{folder}/{included}");
                text += &header_text(&beside).or_else(|| header_text(included))?;
            }
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    Some(text + "#endif\n")
}

/// Returns a header for the run-time compiler of a GPU; `None` if the tree has none of that name.
pub(crate) fn for_gpu(name: &str, is_amd: bool) -> Option<&'static str> {
    let of_gpus = |name: &str| FOR_GPUS.iter().find(|it| it.0 == name).map(|it| it.1);
    let shared =
        || SHARED.contains(&name).then(|| FILES.iter().find(|it| it.0 == name))?.map(|it| it.1);
    let amd = is_amd.then(|| of_gpus(&format!("{AMD}{name}"))).flatten();
    amd.or_else(|| of_gpus(name)).or_else(shared)
}

/// Returns path and text of every header for GPUs.
pub(crate) fn all_for_gpu() -> impl Iterator<Item = (&'static str, &'static str)> {
    let shared = FILES.iter().filter(|it| SHARED.contains(&it.0));
    FOR_GPUS.iter().chain(shared).copied()
}

/// Headers for the host that GPUs' compilers take as they are.
const SHARED: &[&str] = &[
    "cuda.h",
    "cuda_c/math_names.h",
    "curand.h",
    "math_constants.h",
    "pycuda-complex.hpp",
    "pycuda-helpers.hpp",
    "pygpu-cub.hpp",
    "pygpu-cuda-textures.hpp",
    "pygpu-strided.hpp",
    "pygpu-texture-references.hpp",
    "thrust/complex.h",
];

const AMD: &str = "amd/";
/// The folder of the C++ library's headers.
pub(crate) const STD: &str = "std/";

/// The start of the headers' names in line markers.
pub const PREFIX: &str = "language/";

/// The header that precedes each text when it is compiled.
pub const PRELUDE: &str = "gpuarray_prelude.h";

#[cfg(test)]
mod tests {
    use super::{SHARED, all_for_gpu, for_gpu, header_text};

    #[test]
    fn a_text_of_a_header_has_those_that_it_includes() {
        let text = header_text("curand_kernel.h").expect("a header");
        assert!(text.starts_with("#ifndef CUDA_C_CURAND_KERNEL_H\n"), "{text}");
        assert!(!text.contains("#include") && !text.contains("#pragma once"));
        for part in ["#define CUDA_C_CUDA_C_XORWOW_H\n", "curandStatePhilox4_32_10 {"] {
            assert_eq!(text.matches(part).count(), 1, "{part}");
        }
        assert!(header_text("curand_uniform.h").is_some_and(|it| it.contains("XORWOW_JUMPS[131]")));
        assert_eq!(header_text("nowhere.h"), None);
    }

    #[test]
    fn a_gpu_has_headers_of_its_own_and_shares_others() {
        for name in SHARED {
            assert!(for_gpu(name, false).is_some(), "{name}");
        }
        assert_ne!(
            for_gpu("stdlib.h", false),
            super::FILES.iter().find(|it| it.0 == "stdlib.h").map(|it| it.1)
        );
        assert!(for_gpu("cooperative_groups.h", true).is_some());
        assert!(for_gpu("cooperative_groups.h", false).is_none(), "NVRTC has NVIDIA's");
        assert!(for_gpu("nowhere.h", true).is_none());
        let all: Vec<_> = all_for_gpu().map(|it| it.0).collect();
        for name in ["std/limits", "amd/cuda_bf16.h", "stdint.h", "curand.h"] {
            assert_eq!(all.iter().filter(|it| **it == name).count(), 1, "{name}");
        }
    }
}
