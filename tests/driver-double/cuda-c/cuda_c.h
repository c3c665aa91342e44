// The product's compiler and executor of CUDA C, as the driver double uses them.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum CudaCStatus {
    CUDA_C_OK,
    CUDA_C_REFUSED, // the text does not compile, or the bytes are no compiled unit
    CUDA_C_FAILED,  // there is no compiler, or the system refuses something
    // How a kernel failed.
    CUDA_C_ADDRESS, // no memory, or another's, at an address
    CUDA_C_ASSERT,
    CUDA_C_TRAP, // everything else
};

// Takes bytes, in any number of parts.
struct CudaCSink {
    void* to;
    void (*write)(void* to, const char* bytes, size_t count);
};

// A text to compile. Arrays may be null where their number is 0.
struct CudaCProgram {
    const char *text, *name;
    const char* const* options; // in the words of NVRTC or hipRTC
    size_t option_count;
    const char* const* expressions; // that name kernels and variables
    size_t expression_count;
    const char *const *header_names, *const *header_texts;
    size_t header_count;
    unsigned warp_size; // 32 or 64
    int hip;            // 1 for HIP's names and macros, 0 for CUDA's
    const char* cache;  // a folder that keeps compiled programs; null for none
};

// Compiles a text. The log gets errors or warnings.
int cuda_c_compile(const struct CudaCProgram* program, struct CudaCSink library,
                   struct CudaCSink log);

// A compiled unit in this process; null, with the reason in the log, if it is none. Its code stays
// until it and all its kernels have been dropped.
struct CudaCUnit;
struct CudaCUnit* cuda_c_load(const void* bytes, size_t count, struct CudaCSink log);
void cuda_c_drop_unit(struct CudaCUnit* unit);

// The symbol of expression `index` of the `count` that the unit was compiled with; empty if it has
// none.
void cuda_c_lowered(const struct CudaCUnit* unit, size_t count, size_t index,
                    struct CudaCSink symbol);

// Address and bytes of a variable; null if there is none.
void* cuda_c_variable(const struct CudaCUnit* unit, const char* name, size_t* bytes);

// The kernel of a symbol; null if there is none.
struct CudaCKernel;
struct CudaCKernel* cuda_c_kernel(const struct CudaCUnit* unit, const char* name);
void cuda_c_drop_kernel(struct CudaCKernel* kernel);

unsigned cuda_c_most_threads(const struct CudaCKernel* kernel); // of a block
size_t cuda_c_static_shared(const struct CudaCKernel* kernel);  // bytes
// Offset and bytes of a parameter; 0 if the kernel has no more.
int cuda_c_parameter(const struct CudaCKernel* kernel, size_t index, size_t* offset, size_t* bytes);

// What texture and surface objects of kernels are the addresses of: `Texture` in
// cuda-c/include/gpuarray_abi.h, which says what the fields are.
struct CudaCTexture {
    unsigned long long texels, width, height, slices, row_pitch, slice_pitch;
    unsigned format, channels, address[3], linear, normalized, fractions;
};

struct CudaCLaunch {
    unsigned grid[3], block[3];
    unsigned shared;  // bytes of dynamic shared memory; writes behind them fail where there is a fill
    int cooperative;  // 1 if blocks may wait for each other
    int fill;         // the byte that shared memory has when a block starts; -1: whatever is there
    int reversed;     // 1 to run the last blocks first
};

// Runs a kernel on the calling thread, and on others only where blocks may wait for each other.
// `arguments` point to a value for each parameter. The log gets the reason of a failure.
int cuda_c_launch(const struct CudaCKernel* kernel, const struct CudaCLaunch* launch,
                  void* const* arguments, struct CudaCSink log);

#ifdef __cplusplus
}
#endif
