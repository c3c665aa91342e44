// Pinned and registered host memory. Host and device share one address space.
#include "functions.hpp"
#include "memory.hpp"
#include "work.hpp"

#include <cstring>
#include <sys/mman.h>

namespace driver {
using namespace core;

int cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
    if (!address || flags > 7) return INVALID_VALUE;
    if (bytes == 0) {
        *address = nullptr;
        return 0;
    }
    if (bytes > size_t(1) << 50) return OUT_OF_MEMORY;
    // A page without access follows.
    const size_t pages = (bytes + 4095) / 4096 * 4096;
    void* start = mmap(nullptr, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (start == MAP_FAILED) return OUT_OF_MEMORY;
    mprotect(static_cast<char*>(start) + pages, 4096, PROT_NONE);
    std::memset(start, 0xcd, pages);
    const uint64_t number = reinterpret_cast<uintptr_t>(start);
    adopt(number, bytes, Kind::Pinned, current_context())->flags = flags;
    *address = start;
    return 0;
}

int cuMemFreeHost(void* address) {
    if (!address) return 0;
    const Ref<Memory> memory = known_memory(reinterpret_cast<uintptr_t>(address));
    if (!memory || memory->kind != Kind::Pinned ||
        memory->address != reinterpret_cast<uintptr_t>(address)) {
        return INVALID_VALUE;
    }
    drain(memory->context);
    memory->state = Memory::Freed;
    forget(memory);
    munmap(address, (memory->size + 4095) / 4096 * 4096 + 4096);
    return 0;
}

int cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned flags) {
    if (!address || flags != 0) return INVALID_VALUE;
    const uint64_t number = reinterpret_cast<uintptr_t>(host);
    const Ref<Memory> memory = known_memory(number);
    if (!memory || memory->on_device()) return INVALID_VALUE;
    *address = number;
    return 0;
}

int cuMemHostGetFlags(unsigned* flags, void* host) {
    const Ref<Memory> memory = known_memory(reinterpret_cast<uintptr_t>(host));
    if (!flags || !memory || memory->on_device()) return INVALID_VALUE;
    *flags = memory->flags | 2; // mapped: with unified addressing all pinned memory is
    return 0;
}

int cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
    if (!address || bytes == 0 || flags > 15) return INVALID_VALUE;
    const uint64_t number = reinterpret_cast<uintptr_t>(address);
    if (in_arena(number)) return INVALID_VALUE;
    // Any other range that overlaps this one.
    Ref<Memory> other = memory_at(number);
    const auto next = state().memory.lower_bound(number);
    if (!other && next != state().memory.end() && next->first < number + bytes) {
        other = next->second;
    }
    if (other) {
        return other->kind == Kind::Registered ? int(HOST_MEMORY_ALREADY_REGISTERED)
                                               : int(INVALID_VALUE);
    }
    const Ref<Context> context = current_context();
    drain(context);
    adopt(number, bytes, Kind::Registered, context)->flags = flags;
    return 0;
}

int cuMemHostUnregister(void* address) {
    const uint64_t number = reinterpret_cast<uintptr_t>(address);
    const Ref<Memory> memory = known_memory(number);
    if (!memory) return HOST_MEMORY_NOT_REGISTERED;
    if (memory->kind != Kind::Registered || memory->address != number) return INVALID_VALUE;
    drain(memory->context);
    memory->state = Memory::Freed;
    forget(memory);
    return 0;
}

} // namespace driver
