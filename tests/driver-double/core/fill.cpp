// Fills of memory with elements of one, two or four bytes.
#include "capture.hpp"
#include "call.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "work.hpp"

namespace core {
namespace {

template <class T>
int fill(uint64_t to, size_t pitch, T value, size_t width, size_t height, Handle handle) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (width == 0 || height == 0) return 0;
    if (to % sizeof(T) != 0 || width > (size_t(1) << 50) / sizeof(T)) return INVALID_VALUE;
    if (height > 1) {
        if (pitch % sizeof(T) != 0 || pitch < width * sizeof(T)) return INVALID_VALUE;
        if (height > (size_t(1) << 50) / pitch) return INVALID_VALUE;
    }
    const size_t span = (height - 1) * pitch + width * sizeof(T);
    const Ref<Memory> memory = known_memory(to, stream->capture != nullptr);
    if (!memory || !holds(*memory, to, span)) return INVALID_VALUE;
    Operation operation;
    operation.action = [=]() -> int {
        if (const int status = injected(".fill")) return status;
        if (memory->state != Memory::Live) return ILLEGAL_ADDRESS;
        for (size_t y = 0; y < height; ++y) {
            T* row = reinterpret_cast<T*>(to + y * pitch);
            for (size_t x = 0; x < width; ++x) row[x] = value;
        }
        return 0;
    };
    return submit(stream, std::move(operation));
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, Handle stream) {
    return fill(to, 0, value, count, 1, stream);
}

int cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, Handle stream) {
    return fill(to, 0, value, count, 1, stream);
}

int cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, Handle stream) {
    return fill(to, 0, value, count, 1, stream);
}

int cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                      size_t height, Handle stream) {
    return fill(to, pitch, value, width, height, stream);
}

int cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                       size_t height, Handle stream) {
    return fill(to, pitch, value, width, height, stream);
}

int cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                       Handle stream) {
    return fill(to, pitch, value, width, height, stream);
}

} // namespace driver
