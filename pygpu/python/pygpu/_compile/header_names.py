"""Headers that kernels include, by where their names come from."""

from __future__ import annotations

# Headers of C++ that are those of C here.
OF_C = {
    "cassert": "assert.h",
    "cfloat": "float.h",
    "cinttypes": "inttypes.h",
    "climits": "limits.h",
    "ctime": "time.h",
}

# Headers of C++ that lie in the folder `std`. They are those of NVIDIA's package where it is there.
OF_STD_HERE = frozenset({"array", "functional", "limits", "tuple", "type_traits", "utility"})

# Headers of C++ that only NVIDIA's package has for kernels, in a namespace of its own.
OF_STD = frozenset({"initializer_list", "iterator", "numeric", "optional", "ratio", "variant"})
STD_TEXT = """#ifdef __HIP__
#error "the run-time compiler of HIP has no header {name}"
#else
#include <cuda/std/{name}>
namespace std {{
using namespace cuda::std;
}}
#endif
"""

# Headers of what kernels can't use or have unasked, which programs include for the host's functions
# or by habit.
OF_HOST = frozenset(
    {
        "algorithm",
        "ctype.h",
        "cctype",
        "cerrno",
        "chrono",
        "deque",
        "cstdarg",
        "cstdbool",
        "errno.h",
        "exception",
        "fstream",
        "iomanip",
        "ios",
        "iostream",
        "istream",
        "list",
        "malloc.h",
        "map",
        "memory",
        "mutex",
        "new",
        "omp.h",
        "ostream",
        "pthread.h",
        "queue",
        "random",
        "set",
        "signal.h",
        "sstream",
        "stack",
        "stdarg.h",
        "stdbool.h",
        "stdexcept",
        "string",
        "sys/time.h",
        "thread",
        "typeinfo",
        "unistd.h",
        "unordered_map",
        "unordered_set",
        "values.h",
        "vector",
    }
)

# What the run-time compilers have built in, for which programs include these out of habit.
BUILT_IN = frozenset(
    {
        "cuda_runtime.h",
        "cuda_runtime_api.h",
        "device_functions.h",
        "device_launch_parameters.h",
        "driver_types.h",
        "math_functions.h",
        "surface_functions.h",
        "surface_types.h",
        "texture_fetch_functions.h",
        "texture_types.h",
        "vector_functions.h",
        "vector_types.h",
    }
)

# The start of a header's name; the folder below `nvidia` and the package that hold it.
PACKAGES = (
    ("curand", "curand", "nvidia-curand-cu12"),
    ("cublas", "cublas", "nvidia-cublas-cu12"),
    ("cufft", "cufft", "nvidia-cufft-cu12"),
    ("cusparse", "cusparse", "nvidia-cusparse-cu12"),
    ("cusolver", "cusolver", "nvidia-cusolver-cu12"),
    ("cub/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("thrust/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("cuda/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("nv/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("crt/", "cuda_nvcc", "nvidia-cuda-nvcc-cu12"),
    ("", "cuda_runtime", "nvidia-cuda-runtime-cu12"),
)

# Starts of names that mean a header of NVIDIA's.
OF_NVIDIA: tuple[str, ...] = (
    "cu",
    "cooperative_groups",
    "crt/",
    "device_",
    "driver_",
    "math_",
    "mma.h",
    "nv/",
    "sm_",
)
OF_NVIDIA += ("surface_", "texture_", "thrust/", "vector_")

# Headers of the vendor's that only a compiler of whole programs takes: kernels have unasked what
# they can use of them.
OF_PROGRAMS = frozenset(
    {
        "builtin_types.h",
        "channel_descriptor.h",
        "common_functions.h",
        "crt/device_double_functions.h",
        "crt/device_functions.h",
        "crt/host_config.h",
        "crt/host_defines.h",
        "crt/math_functions.h",
        "cuda_device_runtime_api.h",
        "cuda_profiler_api.h",
        "cuda_surface_types.h",
        "cuda_texture_types.h",
        "device_atomic_functions.h",
        "device_double_functions.h",
        "device_types.h",
        "host_config.h",
        "host_defines.h",
        "sm_20_atomic_functions.h",
        "sm_20_intrinsics.h",
        "sm_30_intrinsics.h",
        "sm_32_atomic_functions.h",
        "sm_32_intrinsics.h",
        "sm_35_atomic_functions.h",
        "sm_35_intrinsics.h",
        "sm_60_atomic_functions.h",
        "sm_61_intrinsics.h",
        "surface_indirect_functions.h",
        "texture_indirect_functions.h",
    }
)

# A header that is in none of the packages.
OF_TOOLKITS = "nvfunctional"
