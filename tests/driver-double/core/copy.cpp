// Copies that wait exactly as a real driver does, and as the driver's documentation ("API
// synchronization behavior") requires.
#include "capture.hpp"
#include "call.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "texture.hpp"
#include "vendor.hpp"
#include "work.hpp"

#include <cstring>

namespace core {
namespace {

// The limit of staged pageable bytes in streams; beyond it their copies run.
constexpr size_t MOST_STAGED = size_t(256) << 20;
size_t staged_bytes = 0;

struct Rows {
    uint64_t address;
    size_t pitch, slice;
    Ref<Memory> memory; // null: pageable
    bool on_host() const { return !memory || !memory->on_device(); }
};

struct Box {
    Rows to, from;
    size_t width, height, depth;
    bool of_array = false;
    bool is_one_row() const { return height == 1 && depth == 1 && !of_array; }
};

size_t span(const Rows& rows, const Box& box) {
    return (box.depth - 1) * rows.slice + (box.height - 1) * rows.pitch + box.width;
}

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

// Copies between overlapping ranges are undefined: this order corrupts them.
void copy_row(char* to, const char* from, size_t bytes) {
    if (to + bytes <= from || from + bytes <= to || to == from) {
        std::memcpy(to, from, bytes);
    } else if (to > from) {
        for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
    } else {
        for (size_t i = bytes; i-- > 0;) to[i] = from[i];
    }
}

int perform(const Box& box) {
    if (const int status = injected(".copy")) return status;
    for (const Rows* rows : {&box.to, &box.from}) {
        if (rows->memory && rows->memory->state != Memory::Live) return ILLEGAL_ADDRESS;
    }
    for (size_t z = 0; z < box.depth; ++z) {
        for (size_t y = 0; y < box.height; ++y) {
            copy_row(pointer(box.to.address + z * box.to.slice + y * box.to.pitch),
                     pointer(box.from.address + z * box.from.slice + y * box.from.pitch),
                     box.width);
        }
    }
    return 0;
}

// Copies the bytes of a pageable source now.
std::shared_ptr<char> stage(Box& box) {
    const size_t bytes = box.width * box.height * box.depth;
    staged_bytes += bytes;
    std::shared_ptr<char> copy(new char[bytes], [bytes](char* it) {
        staged_bytes -= bytes;
        delete[] it;
    });
    Box now = box;
    now.to = {reinterpret_cast<uintptr_t>(copy.get()), box.width, box.width * box.height, nullptr};
    perform(now);
    box.from = now.to;
    return copy;
}

int find(Rows& rows, const Box& box, bool captured) {
    if (rows.address == 0) return INVALID_VALUE;
    rows.memory = known_memory(rows.address, captured);
    if (!rows.memory) return in_arena(rows.address) ? int(INVALID_VALUE) : 0;
    return holds(*rows.memory, rows.address, span(rows, box)) ? 0 : int(INVALID_VALUE);
}

enum Needs { ANY, TO_KNOWN = 1, FROM_KNOWN = 2 };

int copy(const Ref<Stream>& stream, Box box, bool blocking, int needs) {
    if (box.width == 0 || box.height == 0 || box.depth == 0) return 0;
    const bool captured = stream->capture != nullptr;
    for (Rows* rows : {&box.to, &box.from}) {
        if (rows->memory) continue; // rows of an array
        if (const int status = find(*rows, box, captured)) return status;
    }
    if ((needs & TO_KNOWN) && !box.to.memory) return INVALID_VALUE;
    if ((needs & FROM_KNOWN) && !box.from.memory) return INVALID_VALUE;
    if (const int status = check_capture(stream)) return status;

    const bool between_hosts = box.to.on_host() && box.from.on_host();
    bool wait = between_hosts || (!box.to.memory && !captured);
    if (blocking) wait |= box.to.on_host() != box.from.on_host();
    std::shared_ptr<char> staged;
    const bool late = VENDOR.late_rows && !blocking && !box.is_one_row();
    if (!box.from.memory && !captured && !between_hosts && !late) {
        // A blocking copy waits for the stream, and after that only for the staging.
        if (blocking) {
            if (const int status = wait_for(stream)) return status;
        }
        if (staged_bytes > MOST_STAGED && stream->tail) run_unless_host(stream->tail);
        staged = stage(box);
        wait = false;
    }
    Operation operation;
    operation.action = [box, staged] { return perform(box); };
    Ref<Work> work;
    const int status = submit(stream, std::move(operation), nullptr, &work);
    if (status != 0 || captured || !wait) return status;
    run(work);
    return state().devices[size_t(stream->context->device)].failure;
}

int copy_row(uint64_t to, uint64_t from, size_t bytes, Handle handle, bool blocking, int needs) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    Box box = {{to, bytes, bytes, nullptr}, {from, bytes, bytes, nullptr}, bytes, 1, 1};
    return copy(stream, box, blocking, needs);
}

// Finds where in an array a copy begins; refuses positions outside the array.
int rows_of_array(const CopySide& side, const CUDA_MEMCPY3D& it, Rows& rows) {
    if (side.array == 0) return INVALID_VALUE;
    const Ref<Array> array = state().arrays.find(side.array);
    if (!array) return INVALID_HANDLE;
    const auto fits = [](size_t from, size_t count, size_t all) {
        return from <= all && count <= all - from;
    };
    const size_t row = array->width * array->texel;
    if (!fits(side.x, it.width, row) || !fits(side.y, it.height, array->height) ||
        !fits(side.z, it.depth, array->slices) || side.x % array->texel || it.width % array->texel) {
        return INVALID_VALUE;
    }
    const size_t offset = side.z * array->slice + side.y * array->pitch + side.x;
    rows = {array->texels->address + offset, array->pitch, array->slice, array->texels};
    return 0;
}

int rows_of(const CopySide& side, const CUDA_MEMCPY3D& it, Rows& rows) {
    if (side.type == ARRAY) return rows_of_array(side, it, rows);
    uint64_t base = side.device;
    if (side.type == HOST) {
        base = reinterpret_cast<uintptr_t>(side.host);
    } else if (side.type != DEVICE && side.type != UNIFIED) {
        return INVALID_VALUE;
    }
    if (base == 0) return INVALID_VALUE;
    size_t row = 0, lines = 0, offset = 0, part = 0, whole = 0;
    bool bad = __builtin_add_overflow(side.x, it.width, &row);
    bad |= __builtin_add_overflow(side.y, it.height, &lines);
    rows.pitch = side.pitch ? side.pitch : row;
    const size_t height = side.height ? side.height : lines;
    bad |= rows.pitch < row || height < lines;
    bad |= __builtin_mul_overflow(rows.pitch, height, &rows.slice);
    bad |= __builtin_mul_overflow(rows.slice, side.z, &offset);
    bad |= __builtin_mul_overflow(rows.pitch, side.y, &part);
    bad |= __builtin_mul_overflow(rows.slice, it.depth, &whole);
    bad |= whole > size_t(1) << 50 || offset > size_t(1) << 50 || part > size_t(1) << 50;
    if (bad) return INVALID_VALUE;
    rows.address = base + offset + part + side.x;
    return 0;
}

int copy_box(const CUDA_MEMCPY3D* it, Handle handle, bool blocking, bool peer) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (!it) return INVALID_VALUE;
    if (peer) {
        for (const CopySide* side : {&it->source, &it->destination}) {
            if (side->type == HOST) continue;
            const Ref<Context> context = state().contexts.find(side->context);
            if (const int status = usable(context)) return status;
        }
        if (stream->capture) return refuse_if_captured(stream);
    }
    if (it->width == 0 || it->height == 0 || it->depth == 0) return 0;
    Box box = {{}, {}, it->width, it->height, it->depth};
    if (const int status = rows_of(it->destination, *it, box.to)) return status;
    if (const int status = rows_of(it->source, *it, box.from)) return status;
    box.of_array = it->destination.type == ARRAY || it->source.type == ARRAY;
    const int needs = (it->destination.type == DEVICE ? TO_KNOWN : ANY) |
                      (it->source.type == DEVICE ? FROM_KNOWN : ANY);
    return copy(stream, box, blocking, needs);
}

uint64_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    return copy_row(to, number(from), bytes, 0, true, TO_KNOWN);
}

int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    return copy_row(number(to), from, bytes, 0, true, FROM_KNOWN);
}

int cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_row(to, from, bytes, 0, true, TO_KNOWN | FROM_KNOWN);
}

int cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_row(to, from, bytes, 0, true, ANY);
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, Handle stream) {
    return copy_row(to, number(from), bytes, stream, false, TO_KNOWN);
}

int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, Handle stream) {
    return copy_row(number(to), from, bytes, stream, false, FROM_KNOWN);
}

int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, Handle stream) {
    return copy_row(to, from, bytes, stream, false, TO_KNOWN | FROM_KNOWN);
}

int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, Handle stream) {
    return copy_row(to, from, bytes, stream, false, ANY);
}

int cuMemcpyPeerAsync(CUdeviceptr to, Handle to_context, CUdeviceptr from, Handle from_context,
                      size_t bytes, Handle handle) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (stream->capture) return refuse_if_captured(stream);
    for (Handle context : {to_context, from_context}) {
        if (const int status = usable(state().contexts.find(context))) return status;
    }
    return copy_row(to, from, bytes, handle, false, TO_KNOWN | FROM_KNOWN);
}

int cuMemcpy3D_v2(const CUDA_MEMCPY3D* it) { return copy_box(it, 0, true, false); }

int cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* it, Handle stream) {
    return copy_box(it, stream, false, false);
}

int cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D* it, Handle stream) {
    return copy_box(it, stream, false, true);
}

} // namespace driver
