"""Macros for sources that are both CUDA C and OpenCL C, as in ``pycuda._cluda``."""

_NAMES = {"LID": "threadIdx", "GID": "blockIdx", "LDIM": "blockDim", "GDIM": "gridDim"}
_AXES = "".join(
    f"#define {prefix}_{number} {name}.{axis}\n"
    for prefix, name in _NAMES.items()
    for number, axis in enumerate("xyz")
)

CLUDA_PREAMBLE = f"""
#define local_barrier() __syncthreads();

#define WITHIN_KERNEL __device__
#define KERNEL extern "C" __global__
#define GLOBAL_MEM
#define LOCAL_MEM __shared__
#define LOCAL_MEM_ARG
#define REQD_WG_SIZE(X, Y, Z) __launch_bounds__((X) * (Y) * (Z), 1)

{_AXES}"""
