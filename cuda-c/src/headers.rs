//! The language's headers, which are part of the program.

macro_rules! headers {
    ($($name:literal),*; there $($there:literal)*; of_curand $($of_curand:literal)*) => {
        /// Name and text of each.
        pub const HEADERS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../include/", $name))),)*
            $(($there, "// There already: the headers of the language hold it.\n#pragma once\n"),)*
            $(($of_curand, "#include \"curand_kernel.h\"\n"),)*
        ];
    };
}

headers!(
    "assert.h",
    "bits/std_abs.h",
    "cmath",
    "cooperative_groups.h",
    "cooperative_groups/memcpy_async.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cuComplex.h",
    "cuda.h",
    "cuda/atomic",
    "cuda/std/array",
    "cuda/std/atomic",
    "cuda/std/cassert",
    "cuda/std/cfloat",
    "cuda/std/climits",
    "cuda/std/cmath",
    "cuda/std/complex",
    "cuda/std/cstddef",
    "cuda/std/cstdint",
    "cuda/std/functional",
    "cuda/std/initializer_list",
    "cuda/std/limits",
    "cuda/std/tuple",
    "cuda/std/type_traits",
    "cuda/std/utility",
    "cuda_bf16.h",
    "cuda_c/alloca.h",
    "cuda_c/atomics.h",
    "cuda_c/bf16.h",
    "cuda_c/check.h",
    "cuda_c/conversions.h",
    "cuda_c/counts.h",
    "cuda_c/dot_products.h",
    "cuda_c/hip_bf16.h",
    "cuda_c/hip_lanes.h",
    "cuda_c/hip_textures.h",
    "cuda_c/integer.h",
    "cuda_c/libm.h",
    "cuda_c/memory.h",
    "cuda_c/mrg32k3a.h",
    "cuda_c/narrow.h",
    "cuda_c/narrow_functions.h",
    "cuda_c/numbers.h",
    "cuda_c/philox.h",
    "cuda_c/placement.h",
    "cuda_c/poisson.h",
    "cuda_c/ptx.h",
    "cuda_c/ptx/bits.h",
    "cuda_c/ptx/compare.h",
    "cuda_c/ptx/convert.h",
    "cuda_c/ptx/floating.h",
    "cuda_c/ptx/integer.h",
    "cuda_c/ptx/memory.h",
    "cuda_c/ptx/narrow.h",
    "cuda_c/ptx/values.h",
    "cuda_c/ptx/video.h",
    "cuda_c/ptx/warp.h",
    "cuda_c/qualifiers.h",
    "cuda_c/regions.h",
    "cuda_c/rounding.h",
    "cuda_c/runtime_types.h",
    "cuda_c/simd.h",
    "cuda_c/sobol.h",
    "cuda_c/special.h",
    "cuda_c/std.h",
    "cuda_c/surfaces.h",
    "cuda_c/texture_types.h",
    "cuda_c/textures.h",
    "cuda_c/threads.h",
    "cuda_c/vectors.h",
    "cuda_c/volatile_writes.h",
    "cuda_c/warp.h",
    "cuda_c/xorwow.h",
    "cuda_c/xorwow_jumps.h",
    "cuda_fp16.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "cuda_runtime.h",
    "curand_kernel.h",
    "gpuarray_abi.h",
    "gpuarray_prelude.h",
    "hip/device_functions.h",
    "hip/hip_bf16.h",
    "hip/hip_common.h",
    "hip/hip_complex.h",
    "hip/hip_cooperative_groups.h",
    "hip/hip_fp16.h",
    "hip/hip_runtime.h",
    "hip/hip_runtime_api.h",
    "hip/hip_vector_types.h",
    "hip/math_functions.h",
    "math.h",
    "math_constants.h",
    "math_functions.h",
    "nvfunctional",
    "stdlib.h";
    there
    "builtin_types.h"
    "channel_descriptor.h"
    "common_functions.h"
    "crt/device_double_functions.h"
    "crt/device_functions.h"
    "crt/host_config.h"
    "crt/host_defines.h"
    "crt/math_functions.h"
    "cuda_device_runtime_api.h"
    "cuda_profiler_api.h"
    "cuda_runtime_api.h"
    "cuda_surface_types.h"
    "cuda_texture_types.h"
    "device_atomic_functions.h"
    "device_double_functions.h"
    "device_functions.h"
    "device_launch_parameters.h"
    "device_types.h"
    "driver_types.h"
    "host_config.h"
    "host_defines.h"
    "sm_20_atomic_functions.h"
    "sm_20_intrinsics.h"
    "sm_30_intrinsics.h"
    "sm_32_atomic_functions.h"
    "sm_32_intrinsics.h"
    "sm_35_atomic_functions.h"
    "sm_35_intrinsics.h"
    "sm_60_atomic_functions.h"
    "sm_61_intrinsics.h"
    "surface_functions.h"
    "surface_indirect_functions.h"
    "surface_types.h"
    "texture_fetch_functions.h"
    "texture_indirect_functions.h"
    "texture_types.h"
    "vector_functions.h"
    "vector_types.h";
    of_curand
    "curand_globals.h"
    "curand_mrg32k3a.h"
    "curand_normal.h"
    "curand_philox4x32_x.h"
    "curand_poisson.h"
    "curand_uniform.h"
);

/// Returns the text of a header with those that it includes in it, each in a guard, for compilers that find no
/// files; `None` if there is no header of that name.
pub fn header_text(name: &str) -> Option<String> {
    let (name, own) = HEADERS.iter().find(|(known, _)| *known == name)?;
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

/// What the headers' names begin with, as line markers tell them.
pub const PREFIX: &str = "language/";

/// The header that each text is compiled behind.
pub const PRELUDE: &str = "gpuarray_prelude.h";

#[cfg(test)]
mod tests {
    use super::{HEADERS, header_text};
    use std::path::Path;

    /// Paths of all files below a folder.
    fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => files(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn every_header_is_embedded() {
        let mut there = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("include"), "", &mut there);
        let mut embedded: Vec<_> = HEADERS.iter().map(|(name, _)| (*name).to_owned()).collect();
        // Those without a file have one text.
        embedded.retain(|name| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name).exists()
        });
        there.sort();
        embedded.sort();
        assert_eq!(embedded, there);
    }

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
}
