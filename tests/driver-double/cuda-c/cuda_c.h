// The product's CUDA C compiler and executor, with the interface that the fake drivers use.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum CudaCStatus {
    CUDA_C_OK,
    CUDA_C_REFUSED, // the text does not compile, or the bytes are not a compiled unit
    CUDA_C_FAILED,  // the compiler is missing, or a system call failed
    // The failures of a kernel:
    CUDA_C_ADDRESS, // invalid address
    CUDA_C_ASSERT,
    CUDA_C_TRAP, // every other failure
};

// Receives bytes in any number of parts.
struct CudaCSink {
    void* to;
    void (*write)(void* to, const char* bytes, size_t count);
};

// A program to compile. Arrays may be null if their count is 0.
struct CudaCProgram {
    const char *text, *name;
    const char* const* options; // with the names that NVRTC or hipRTC uses
    size_t option_count;
    const char* const* expressions; // expressions that name kernels and variables
    size_t expression_count;
    const char *const *header_names, *const *header_texts;
    size_t header_count;
    unsigned warp_size; // 32 or 64
    int hip;            // 1 for HIP's names and macros, 0 for CUDA's
    const char* cache;  // a folder that caches compiled programs, or null
};

// Compiles a program. Errors and warnings are written to the log.
int cuda_c_compile(const struct CudaCProgram* program, struct CudaCSink library,
                   struct CudaCSink log);

// A compiled unit that is loaded in this process. Loading returns null, with the reason in the log,
// if the bytes are not a unit. The code stays loaded until the unit and all its kernels have been
// dropped.
struct CudaCUnit;
struct CudaCUnit* cuda_c_load(const void* bytes, size_t count, struct CudaCSink log);
void cuda_c_drop_unit(struct CudaCUnit* unit);

// Writes the symbol of expression `index` of the `count` expressions that the unit was compiled
// with; empty if it has none.
void cuda_c_lowered(const struct CudaCUnit* unit, size_t count, size_t index,
                    struct CudaCSink symbol);

// Returns the address and size of a variable; null if it does not exist.
void* cuda_c_variable(const struct CudaCUnit* unit, const char* name, size_t* bytes);

// A kernel. Looking it up by its symbol returns null if it does not exist.
struct CudaCKernel;
struct CudaCKernel* cuda_c_kernel(const struct CudaCUnit* unit, const char* name);
void cuda_c_drop_kernel(struct CudaCKernel* kernel);

unsigned cuda_c_most_threads(const struct CudaCKernel* kernel); // threads of a block
size_t cuda_c_static_shared(const struct CudaCKernel* kernel);  // bytes
// Returns a parameter's offset and size; returns 0 if the kernel has fewer parameters.
int cuda_c_parameter(const struct CudaCKernel* kernel, size_t index, size_t* offset, size_t* bytes);

// The struct that texture and surface objects of kernels point to: `Texture` in
// cuda-c/include/gpuarray_abi.h, which documents the fields.
struct CudaCTexture {
    unsigned long long texels, width, height, slices, row_pitch, slice_pitch;
    unsigned format, channels, address[3], linear, normalized, fractions;
};

struct CudaCLaunch {
    unsigned grid[3], block[3];
    unsigned shared;  // bytes of dynamic shared memory; with a fill, writes past the end fail
    int cooperative;  // 1 if blocks may wait for each other
    int fill;         // the byte that fills shared memory when a block starts; -1: not initialised
    int reversed;     // 1 to run the last blocks first
};

// Runs a kernel on the calling thread; cooperative blocks also run on other threads. `arguments`
// points to a value for each parameter. The reason of a failure is written to the log.
int cuda_c_launch(const struct CudaCKernel* kernel, const struct CudaCLaunch* launch,
                  void* const* arguments, struct CudaCSink log);

#ifdef __cplusplus
}
#endif
