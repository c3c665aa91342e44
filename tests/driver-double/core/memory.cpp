#include "memory.hpp"
#include "capture.hpp"
#include "functions.hpp"
#include "pool.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace core {
namespace {

constexpr size_t PAGE = 4096;
constexpr size_t ALIGNMENT = 512; // as for cuMemAlloc
constexpr int FRESH = 0xcd;

size_t up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// The addresses of a device. An allocation ends as close before an inaccessible page as its
// alignment allows, and addresses are not reused soon. An access outside an allocation, or after
// its free, therefore faults.
struct Arena {
    uint64_t base = 0;
    size_t size = 0, next = 0;
    int file = -1;

    bool open(size_t memory) {
        file = memfd_create("driver-double", MFD_CLOEXEC);
        for (size = std::max(size_t(64) << 30, memory * 8); size >= memory * 2; size /= 2) {
            if (file < 0 || ftruncate(file, off_t(size)) != 0) continue;
            void* start = mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (start == MAP_FAILED) continue;
            base = reinterpret_cast<uintptr_t>(start);
            return true;
        }
        return false;
    }
};

Arena arenas[8];

Arena* arena_of(int device) {
    Arena& arena = arenas[size_t(device)];
    if (arena.base == 0 && !arena.open(state().devices[size_t(device)].memory)) return nullptr;
    return &arena;
}

uint64_t first_page(const Memory& memory) { return memory.address / PAGE * PAGE; }
size_t pages_bytes(const Memory& memory) {
    return up(memory.address + memory.size, PAGE) - first_page(memory);
}

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

} // namespace

size_t rounded(size_t bytes) { return up(bytes, ALIGNMENT); }

Ref<Memory> memory_at(uint64_t address) {
    auto& all = state().memory;
    auto found = all.upper_bound(address);
    if (found == all.begin()) return nullptr;
    const Ref<Memory>& memory = std::prev(found)->second;
    const bool inside = address - memory->address < memory->size;
    return inside ? memory : nullptr;
}

Ref<Memory> known_memory(uint64_t address, bool captured) {
    const Ref<Memory> memory = memory_at(address);
    if (!memory || memory->state == Memory::Freed) return nullptr;
    if (memory->kind == Kind::Texels || memory->kind == Kind::Object) return nullptr;
    return memory->state == Memory::Reserved && !captured ? nullptr : memory;
}

bool holds(const Memory& memory, uint64_t address, size_t bytes) {
    const uint64_t offset = address - memory.address;
    return address >= memory.address && offset <= memory.size && bytes <= memory.size - offset;
}

bool in_arena(uint64_t address) {
    return std::any_of(std::begin(arenas), std::end(arenas), [&](const Arena& arena) {
        return arena.base != 0 && address - arena.base < arena.size;
    });
}

Ref<Memory> adopt(uint64_t address, size_t bytes, Kind kind, const Ref<Context>& context) {
    auto memory = std::make_shared<Memory>();
    memory->kind = kind;
    memory->address = address;
    memory->size = bytes;
    memory->context = context;
    memory->device = context ? context->device : 0;
    memory->number = ++state().memory_numbers;
    state().memory[address] = memory;
    return memory;
}

Ref<Memory> reserve(int device, size_t bytes, Kind kind, const Ref<Context>& context) {
    Arena* arena = arena_of(device);
    if (!arena) return nullptr;
    const size_t whole = up(bytes, PAGE) + 2 * PAGE;
    if (whole > arena->size) return nullptr;
    // Goes once around the addresses, and skips ranges that are still in use.
    for (int turn = 0; turn < 2; ++turn) {
        while (arena->next + whole <= arena->size) {
            const uint64_t begin = arena->base + arena->next;
            const auto after = state().memory.lower_bound(begin + whole);
            if (after != state().memory.begin()) {
                const Memory& before = *std::prev(after)->second;
                const uint64_t end = first_page(before) + pages_bytes(before);
                if (end > begin && before.address >= arena->base) {
                    arena->next = end - arena->base;
                    continue;
                }
            }
            arena->next += whole - PAGE;
            const uint64_t end = begin + whole - PAGE;
            const Ref<Memory> memory = adopt(end - rounded(bytes), bytes, kind, context);
            memory->device = device;
            memory->state = Memory::Reserved;
            return memory;
        }
        arena->next = 0;
    }
    return nullptr;
}

void commit(Memory& memory) {
    char* start = pointer(first_page(memory));
    mprotect(start, pages_bytes(memory), PROT_READ | PROT_WRITE);
    std::memset(start, FRESH, pages_bytes(memory));
    memory.state = Memory::Live;
}

void decommit(Memory& memory) {
    if (memory.state == Memory::Live) {
        const char* end = pointer(first_page(memory)) + pages_bytes(memory);
        bool clean = true;
        for (const char* c = pointer(first_page(memory)); c < pointer(memory.address); ++c) {
            clean &= *c == char(FRESH);
        }
        for (const char* c = pointer(memory.address + memory.size); c < end; ++c) {
            clean &= *c == char(FRESH);
        }
        if (!clean) ++state().overruns;
        const Place place = place_of(memory);
        mprotect(pointer(first_page(memory)), pages_bytes(memory), PROT_NONE);
        fallocate(place.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  off_t(place.offset / PAGE * PAGE), off_t(pages_bytes(memory)));
    }
    memory.state = memory.of_graph ? Memory::Reserved : Memory::Freed;
}

Place place_of(const Memory& memory) {
    const Arena* arena = arena_of(memory.device);
    return {arena->file, size_t(memory.address - arena->base)};
}

void forget(const Ref<Memory>& memory) {
    auto& all = state().memory;
    const auto found = all.find(memory->address);
    if (found != all.end() && found->second == memory) all.erase(found);
}

bool take(int device, size_t bytes) {
    Device& it = state().devices[size_t(device)];
    if (bytes > it.memory) return false;
    if (it.memory - it.used < bytes) trim_all(device);
    if (it.memory - it.used < bytes) return false;
    it.used += bytes;
    return true;
}

void give(int device, size_t bytes) { state().devices[size_t(device)].used -= bytes; }

Ref<Memory> allocate_at_once(size_t bytes, Kind kind) {
    const Ref<Context> context = current_context();
    if (bytes > size_t(1) << 50 || !take(context->device, rounded(bytes))) return nullptr;
    const Ref<Memory> memory = reserve(context->device, bytes, kind, context);
    if (memory) {
        commit(*memory);
    } else {
        give(context->device, rounded(bytes));
    }
    return memory;
}

void release(const Ref<Memory>& memory) {
    if (memory->state == Memory::Freed || memory->state == Memory::Reserved) return;
    if (memory->kind == Kind::Managed) {
        munmap(pointer(memory->address), up(memory->size, PAGE) + PAGE);
        memory->state = Memory::Freed;
    } else {
        decommit(*memory);
    }
    memory->freeing = false;
    if (memory->pool) {
        pool_gives_back(*memory->pool, memory->size);
    } else {
        give(memory->device, rounded(memory->size));
    }
    if (!memory->of_graph) forget(memory);
}

void release_all(const Context& context) {
    std::vector<Ref<Memory>> all;
    for (const auto& [address, memory] : state().memory) {
        // Memory of pools belongs to the device, and outlives its contexts.
        if (memory->context.get() == &context) all.push_back(memory);
    }
    for (const Ref<Memory>& memory : all) {
        if (memory->kind == Kind::Plain || memory->kind == Kind::Managed ||
            memory->kind == Kind::Pooled || memory->kind == Kind::Texels ||
            memory->kind == Kind::Object) {
            memory->of_graph = false;
            release(memory);
            forget(memory);
        } else {
            // Pinned memory is followed by a guard page.
            const size_t bytes = pages_bytes(*memory) + (memory->kind == Kind::Pinned ? PAGE : 0);
            if (memory->kind == Kind::Pinned || memory->kind == Kind::Imported) {
                munmap(pointer(first_page(*memory)), bytes);
            }
            memory->state = Memory::Freed;
            forget(memory);
        }
    }
}

} // namespace core

namespace driver {
using namespace core;

namespace {

int allocate(CUdeviceptr* address, size_t bytes, Kind kind) {
    if (!address || bytes == 0) return INVALID_VALUE;
    const Ref<Memory> memory = allocate_at_once(bytes, kind);
    if (!memory) return OUT_OF_MEMORY;
    *address = memory->address;
    return 0;
}

} // namespace

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    const Device& device = *device_at(current_context()->device);
    if (free) *free = device.memory - device.used;
    if (total) *total = device.memory;
    return 0;
}

int cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    return allocate(address, bytes, Kind::Plain);
}

int cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                       unsigned element) {
    if (!pitch || width == 0 || height == 0) return INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16) return INVALID_VALUE;
    if (width > size_t(1) << 50 || height > (size_t(1) << 50) / width) return OUT_OF_MEMORY;
    const size_t row = rounded(width);
    const int status = allocate(address, row * height, Kind::Plain);
    if (status == 0) *pitch = row;
    return status;
}

// On the host, managed memory is an ordinary mapping, which a reset unmaps.
int cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
    if ((flags != 1 && flags != 2) || !address || bytes == 0) return INVALID_VALUE;
    const Ref<Context> context = current_context();
    if (bytes > size_t(1) << 50 || !take(context->device, rounded(bytes))) return OUT_OF_MEMORY;
    void* start = mmap(nullptr, up(bytes, PAGE) + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        give(context->device, rounded(bytes));
        return OUT_OF_MEMORY;
    }
    mprotect(static_cast<char*>(start) + up(bytes, PAGE), PAGE, PROT_NONE);
    std::memset(start, FRESH, up(bytes, PAGE));
    *address = adopt(reinterpret_cast<uintptr_t>(start), bytes, Kind::Managed, context)->address;
    return 0;
}

int cuMemFree_v2(CUdeviceptr address) {
    if (address == 0) return 0;
    const Ref<Memory> memory = known_memory(address);
    if (!memory || memory->address != address || memory->freeing) return INVALID_VALUE;
    if (memory->kind == Kind::Pooled) {
        // Frees immediately without waiting for any stream.
        release(memory);
        return 0;
    }
    if (memory->kind != Kind::Plain && memory->kind != Kind::Managed) return INVALID_VALUE;
    drain(memory->context);
    release(memory);
    return 0;
}

int cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
    const Ref<Memory> memory = known_memory(address);
    if (!memory) return NOT_FOUND;
    if (base) *base = memory->address;
    if (bytes) *bytes = memory->size;
    return 0;
}

int cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, Handle handle) {
    Ref<Stream> stream;
    const int status = find_stream(handle, stream);
    if (status != 0) return status;
    const Ref<Memory> memory = known_memory(address);
    if (!memory || memory->kind != Kind::Managed || !holds(*memory, address, bytes)) {
        return INVALID_VALUE;
    }
    if (device != -1 && !device_at(device)) return INVALID_DEVICE;
    if (stream->capture) return refuse_if_captured(stream);
    return submit(stream, {});
}

int cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
    const Ref<Memory> memory = known_memory(address);
    if (!value || !memory) return INVALID_VALUE;
    const bool device = memory->on_device(), managed = memory->kind == Kind::Managed;
    const auto number = [&](auto it) {
        std::memcpy(value, &it, sizeof it);
        return 0;
    };
    switch (attribute) {
    case 1: return number(memory->context ? memory->context->handle : Handle(0));
    case 2: return number(unsigned(device ? DEVICE : HOST));
    case 3: return number(address);
    case 4: return device && !managed ? int(INVALID_VALUE) : number(address);
    case 6: return number(int(device));
    case 7: return number(memory->number);
    case 8: return number(int(managed));
    case 9: return number(memory->device);
    case 10: return number(int(memory->kind == Kind::Plain));
    case 11: return number(memory->address);
    case 12: return number(memory->size);
    case 13: return number(1);
    case 14: return number(uint64_t(0));
    case 15: return number(int(memory->kind == Kind::Plain));
    case 16: return number(3);
    case 17: return number(memory->pool ? memory->pool->handle : Handle(0));
    default: return INVALID_VALUE;
    }
}

} // namespace driver
