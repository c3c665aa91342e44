// Kernel attributes and launches.
#include "call.hpp"
#include "capture.hpp"
#include "compiler/sink.hpp"
#include "functions.hpp"
#include "module.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace core {
namespace {

constexpr int MULTIPROCESSORS = 132, MOST_BLOCKS = 32, MOST_RESIDENT = 2048;
constexpr size_t SHARED_OF_MULTIPROCESSOR = 233472, SHARED_OF_SYSTEM = 1024;
constexpr size_t POISON = 0xcd;

// A copy of the arguments, made when the launch is queued.
struct Arguments {
    std::vector<char> bytes;
    std::vector<void*> pointers;
};

struct Grid {
    compiler::Index blocks, threads;
    unsigned shared;
    bool cooperative;
};

size_t parameter_bytes(const Kernel& kernel) {
    const auto& all = kernel.code->parameters;
    return all.empty() ? 0 : all.back().offset + all.back().bytes;
}

// `extra` is a zero-terminated list of pairs: 1 and the packed arguments, 2 and their size.
int packed(void** extra, const char*& bytes, size_t& size) {
    bytes = nullptr;
    size = 0;
    for (; *extra; extra += 2) {
        const uintptr_t what = reinterpret_cast<uintptr_t>(*extra);
        if (what == 1) {
            bytes = static_cast<const char*>(extra[1]);
        } else if (what == 2) {
            if (!extra[1]) return INVALID_VALUE;
            size = *static_cast<const size_t*>(extra[1]);
        } else {
            return INVALID_VALUE;
        }
    }
    return 0;
}

int take_arguments(const Kernel& kernel, void** parameters, void** extra, Arguments& out) {
    const auto& all = kernel.code->parameters;
    out.bytes.assign(parameter_bytes(kernel) + 16, char(POISON));
    // Aligned for every parameter type.
    char* base = out.bytes.data();
    base += -reinterpret_cast<uintptr_t>(base) & 15;
    for (const auto& it : all) out.pointers.push_back(base + it.offset);
    if (parameters) {
        for (size_t i = 0; i < all.size(); ++i) {
            if (!parameters[i]) return INVALID_VALUE;
            std::memcpy(out.pointers[i], parameters[i], all[i].bytes);
        }
        return 0;
    }
    if (!extra) return all.empty() ? 0 : int(INVALID_VALUE);
    const char* bytes = nullptr;
    size_t size = 0;
    if (const int status = packed(extra, bytes, size)) return status;
    if (size > parameter_bytes(kernel)) return LAUNCH_OUT_OF_RESOURCES;
    if (bytes) std::memcpy(base, bytes, size);
    return 0;
}

int check(const Kernel& kernel, const Grid& grid) {
    const auto [x, y, z] = grid.threads;
    const auto [i, j, k] = grid.blocks;
    if (x == 0 || y == 0 || z == 0 || i == 0 || j == 0 || k == 0) return INVALID_VALUE;
    if (x > 1024 || y > 1024 || z > 64 || i > 0x7fffffff || j > 65535 || k > 65535) {
        return INVALID_VALUE;
    }
    if (uint64_t(x) * y * z > uint64_t(kernel.most_threads())) return INVALID_VALUE;
    // A kernel may use more than the default only after its limit was raised.
    const size_t shared = kernel.static_shared() + grid.shared;
    const size_t most = std::max(MOST_SHARED, kernel.static_shared() + size_t(kernel.most_dynamic));
    return shared > most ? int(INVALID_VALUE) : 0;
}

int active_blocks(const Kernel& kernel, int block, size_t shared) {
    if (block > kernel.most_threads()) return 0;
    const int rounded = (block + 31) / 32 * 32;
    const size_t bytes = kernel.static_shared() + shared + SHARED_OF_SYSTEM;
    if (bytes > SHARED_OF_MULTIPROCESSOR) return 0;
    return std::min({MOST_BLOCKS, MOST_RESIDENT / rounded, int(SHARED_OF_MULTIPROCESSOR / bytes)});
}

// Runs a kernel on the calling thread; blocks of a cooperative launch also run on other threads.
// Returns the status.
int run(const Kernel& kernel, const Grid& grid, void* const* arguments) {
    if (kernel.name == "double_trap") return LAUNCH_FAILED;
    if (kernel.name == "double_fault") return ILLEGAL_ADDRESS;
    static const bool reversed = setting("DOUBLE_REVERSED", 0) != 0;
    static const bool explain = setting("DOUBLE_EXPLAIN", 0) != 0;
    const auto& [i, j, k] = grid.blocks;
    const auto& [x, y, z] = grid.threads;
    const CudaCLaunch launch = {{i, j, k}, {x, y, z}, grid.shared, grid.cooperative, int(POISON),
                                reversed};
    std::string why;
    const int status =
        cuda_c_launch(kernel.code->kernel.get(), &launch, arguments, compiler::into(why));
    if (explain && status != CUDA_C_OK) std::fprintf(stderr, "driver double: %s\n", why.c_str());
    switch (status) {
    case CUDA_C_OK: return 0;
    case CUDA_C_ADDRESS: return ILLEGAL_ADDRESS;
    case CUDA_C_ASSERT: return ASSERT;
    default: return LAUNCH_FAILED;
    }
}

int launch(Handle handle, const Grid& grid, Handle stream_handle, void** parameters,
           void** extra) {
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    Ref<Stream> stream;
    if (const int status = find_stream(stream_handle, stream)) return status;
    if (kernel->context != stream->context) return INVALID_HANDLE;
    if (grid.cooperative && !state().cooperative) return NOT_SUPPORTED;
    int status = check(*kernel, grid);
    if (status == 0 && grid.cooperative) {
        const auto [x, y, z] = grid.threads;
        const auto [i, j, k] = grid.blocks;
        const int room = active_blocks(*kernel, int(x * y * z), grid.shared) * MULTIPROCESSORS;
        if (uint64_t(i) * j * k > uint64_t(room)) status = COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    auto arguments = std::make_shared<Arguments>();
    if (status == 0) status = take_arguments(*kernel, parameters, extra, *arguments);
    if (status != 0) {
        if (stream->capture) invalidate(*stream->capture);
        return status;
    }
    Operation operation;
    operation.action = [=] {
        if (const int wanted = injected(".kernel")) return wanted;
        return run(*kernel, grid, arguments->pointers.data());
    };
    return submit(stream, std::move(operation));
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuLaunchKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   Handle stream, void** parameters, void** extra) {
    const Grid grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, false};
    return launch(function, grid, stream, parameters, extra);
}

int cuLaunchCooperativeKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared, Handle stream, void** parameters) {
    const Grid grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, true};
    return launch(function, grid, stream, parameters, nullptr);
}

int cuFuncGetAttribute(int* value, int attribute, Handle handle) {
    if (!value || attribute < 0 || attribute > 15) return INVALID_VALUE;
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    switch (attribute) {
    case 0: *value = kernel->most_threads(); break;
    case 1: *value = int(kernel->static_shared()); break;
    case 4: *value = 32; break; // registers
    case 5:
    case 6: *value = 90; break; // PTX and binary version
    case 8: *value = kernel->most_dynamic; break;
    case 9: *value = kernel->carveout; break;
    default: *value = 0;
    }
    return 0;
}

int cuFuncSetAttribute(Handle handle, int attribute, int value) {
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    if (attribute == 8) {
        const bool fits = value >= 0 && kernel->static_shared() + size_t(value) <= MOST_SHARED_OPT_IN;
        if (!fits) return INVALID_VALUE;
        kernel->most_dynamic = value;
        return 0;
    }
    if (attribute == 9) {
        if (value < -1 || value > 100) return INVALID_VALUE;
        kernel->carveout = value;
        return 0;
    }
    return INVALID_VALUE;
}

int cuFuncSetCacheConfig(Handle handle, int config) {
    if (!state().kernels.find(handle)) return INVALID_HANDLE;
    return config < 0 || config > 3 ? int(INVALID_VALUE) : 0;
}

int cuFuncGetParamInfo(Handle handle, size_t index, size_t* offset, size_t* bytes) {
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    const auto& all = kernel->code->parameters;
    if (!offset || index >= all.size()) return INVALID_VALUE;
    *offset = all[index].offset;
    if (bytes) *bytes = all[index].bytes;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Handle handle, int block,
                                                         size_t shared, unsigned flags) {
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    if (!blocks || block <= 0 || flags > 1) return INVALID_VALUE;
    *blocks = active_blocks(*kernel, block, shared);
    return 0;
}

int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, Handle handle,
                                     CUoccupancyB2DSize shared_of, size_t shared, int most) {
    const Ref<Kernel> kernel = state().kernels.find(handle);
    if (!kernel) return INVALID_HANDLE;
    if (!grid || !block || most < 0) return INVALID_VALUE;
    const int largest = most > 0 ? std::min(most, kernel->most_threads()) : kernel->most_threads();
    int best = 0;
    *grid = *block = 0;
    for (int size = largest; size > 0; size = (size - 1) / 32 * 32) {
        const int blocks = active_blocks(*kernel, size, shared_of ? shared_of(size) : shared);
        if (blocks * size > best) {
            best = blocks * size;
            *block = size;
            *grid = blocks * MULTIPROCESSORS;
        }
    }
    return 0;
}

} // namespace driver
