#include "pool.hpp"
#include "capture.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstring>

namespace core {
namespace {

enum Attribute { REUSE_INTERNAL = 3, THRESHOLD = 4, RESERVED, RESERVED_MOST, USED, USED_MOST };

void trim(Pool& pool, uint64_t keep) {
    const uint64_t rest = std::max(pool.backed, std::min(keep, pool.reserved));
    give(pool.device, size_t(pool.reserved - rest));
    pool.reserved = rest;
}

template <class Action> void each_pool(int device, Action action) {
    state().pools.erase_if([&](Pool& pool) {
        if (pool.device == device) action(pool);
        return false;
    });
}

bool pool_takes(Pool& pool, size_t bytes) {
    const uint64_t backed = pool.backed + rounded(bytes);
    if (backed > pool.reserved) {
        // The device may trim memory that this pool does not use.
        const uint64_t missing = backed - pool.reserved;
        const Device& device = state().devices[size_t(pool.device)];
        if (missing > device.memory) return false;
        if (device.memory - device.used < missing) trim_all(pool.device);
        if (!take(pool.device, size_t(backed - pool.reserved))) return false;
        pool.reserved = backed;
    }
    pool.backed = backed;
    pool.used += bytes;
    pool.most_used = std::max(pool.most_used, pool.used);
    pool.most_reserved = std::max(pool.most_reserved, pool.reserved);
    return true;
}

// Tries to allocate. If memory is short, first runs the stream's queued work, then the work of other
// streams if the pool may wait for them, because they may free memory.
bool takes_after_frees(Pool& pool, size_t bytes, const Ref<Stream>& stream) {
    if (pool_takes(pool, bytes)) return true;
    if (stream->tail) run_unless_host(stream->tail);
    if (pool_takes(pool, bytes)) return true;
    if (!pool.reuse[REUSE_INTERNAL]) return false;
    const std::vector<Ref<Work>> all(stream->context->pending.begin(),
                                     stream->context->pending.end());
    for (const Ref<Work>& work : all) run_unless_host(work);
    return pool_takes(pool, bytes);
}

// A capturing stream adds a node; the memory is allocated when the graph runs.
int capture_allocation(CUdeviceptr* address, size_t bytes, const Ref<Stream>& stream) {
    const int status = check_capture(stream);
    if (status != 0) return status;
    const Ref<Memory> memory =
        reserve(stream->context->device, bytes, Kind::Pooled, stream->context);
    if (!memory) return OUT_OF_MEMORY;
    memory->of_graph = true;
    Node node;
    node.allocates = memory;
    node.operation.action = [memory] {
        if (memory->state == Memory::Reserved && launch_allocation(memory) != 0) {
            return int(OUT_OF_MEMORY);
        }
        if (memory->state == Memory::Pending) commit(*memory);
        return 0;
    };
    capture_node(*stream, std::move(node));
    *address = memory->address;
    return 0;
}

int allocate(CUdeviceptr* address, size_t bytes, const Ref<Pool>& pool, const Ref<Stream>& stream) {
    if (!address) return INVALID_VALUE;
    if (bytes == 0) {
        *address = 0;
        return 0;
    }
    if (bytes > size_t(1) << 50) return OUT_OF_MEMORY;
    if (stream->capture) return capture_allocation(address, bytes, stream);
    int status = check_unsafe();
    if (status == 0) status = check_capture(stream);
    if (status != 0) return status;
    if (!takes_after_frees(*pool, bytes, stream)) return OUT_OF_MEMORY;
    const Ref<Memory> memory = reserve(pool->device, bytes, Kind::Pooled, nullptr);
    if (!memory) {
        pool_gives_back(*pool, bytes);
        return OUT_OF_MEMORY;
    }
    memory->pool = pool;
    memory->state = Memory::Pending;
    *address = memory->address;
    Operation operation;
    operation.action = [memory] {
        if (memory->state == Memory::Pending) commit(*memory);
        return 0;
    };
    return submit(stream, std::move(operation));
}

} // namespace

void pool_gives_back(Pool& pool, size_t bytes) {
    pool.used -= bytes;
    pool.backed -= rounded(bytes);
}

void trim_all(int device) {
    each_pool(device, [](Pool& pool) { trim(pool, 0); });
}

void trim_after_wait(int device) {
    each_pool(device, [](Pool& pool) { trim(pool, pool.threshold); });
}

int launch_allocation(const Ref<Memory>& memory) {
    if (memory->state != Memory::Reserved) return INVALID_VALUE;
    if (!take(memory->device, rounded(memory->size))) return OUT_OF_MEMORY;
    memory->state = Memory::Pending;
    return 0;
}

} // namespace core

namespace driver {
using namespace core;

int cuMemPoolCreate(Handle* pool, const CUmemPoolProps* properties) {
    if (!pool || !properties || properties->allocation_type != 1) return INVALID_VALUE;
    if (properties->location.type != 1) return INVALID_VALUE;
    if (!device_at(properties->location.id)) return INVALID_DEVICE;
    if ((properties->handle_types & ~1) != 0) return NOT_SUPPORTED;
    auto made = std::make_shared<Pool>();
    made->device = properties->location.id;
    *pool = made->handle = state().pools.add(made);
    return 0;
}

int cuMemPoolDestroy(Handle handle) {
    const Ref<Pool> pool = state().pools.find(handle);
    if (!pool || pool->is_default) return INVALID_VALUE;
    trim(*pool, 0);
    Device& device = *device_at(pool->device);
    if (device.current_pool == pool) device.current_pool = device.default_pool;
    // Its allocations stay valid, and their memory returns to the default pool.
    state().pools.erase(handle);
    for (const auto& [address, memory] : state().memory) {
        if (memory->pool == pool) memory->pool = device.default_pool;
    }
    Pool& heir = *device.default_pool;
    heir.used += pool->used;
    heir.backed += pool->backed;
    heir.reserved += pool->reserved;
    return 0;
}

int cuMemPoolSetAttribute(Handle handle, int attribute, void* value) {
    const Ref<Pool> pool = state().pools.find(handle);
    if (!pool || !value) return INVALID_VALUE;
    uint64_t number = 0;
    std::memcpy(&number, value, attribute < THRESHOLD ? 4 : 8);
    switch (attribute) {
    case 1:
    case 2:
    case REUSE_INTERNAL: pool->reuse[attribute] = number != 0; return 0;
    case THRESHOLD: pool->threshold = number; return 0;
    case RESERVED_MOST:
        if (number != 0) return INVALID_VALUE;
        pool->most_reserved = pool->reserved;
        return 0;
    case USED_MOST:
        if (number != 0) return INVALID_VALUE;
        pool->most_used = pool->used;
        return 0;
    default: return INVALID_VALUE;
    }
}

int cuMemPoolGetAttribute(Handle handle, int attribute, void* value) {
    const Ref<Pool> pool = state().pools.find(handle);
    if (!pool || !value || attribute < 1 || attribute > USED_MOST) return INVALID_VALUE;
    if (attribute < THRESHOLD) {
        std::memcpy(value, &pool->reuse[attribute], sizeof(int));
        return 0;
    }
    const uint64_t numbers[] = {pool->threshold, pool->reserved, pool->most_reserved, pool->used,
                                pool->most_used};
    std::memcpy(value, &numbers[attribute - THRESHOLD], sizeof(uint64_t));
    return 0;
}

int cuMemPoolTrimTo(Handle handle, size_t keep) {
    const Ref<Pool> pool = state().pools.find(handle);
    if (!pool) return INVALID_VALUE;
    trim(*pool, keep);
    return 0;
}

int cuMemPoolSetAccess(Handle handle, const CUmemAccessDesc* map, size_t count) {
    if (!state().pools.find(handle) || (count > 0 && !map)) return INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        if (map[i].location.type != 1) return INVALID_VALUE;
        if (!device_at(map[i].location.id)) return INVALID_DEVICE;
        if (map[i].flags != 0 && map[i].flags != 1 && map[i].flags != 3) return INVALID_VALUE;
    }
    return 0;
}

int cuDeviceGetDefaultMemPool(Handle* pool, CUdevice device) {
    if (!pool) return INVALID_VALUE;
    const Device* it = device_at(device);
    if (!it) return INVALID_DEVICE;
    *pool = it->default_pool->handle;
    return 0;
}

int cuDeviceGetMemPool(Handle* pool, CUdevice device) {
    if (!pool) return INVALID_VALUE;
    const Device* it = device_at(device);
    if (!it) return INVALID_DEVICE;
    *pool = it->current_pool->handle;
    return 0;
}

int cuDeviceSetMemPool(CUdevice device, Handle handle) {
    const Ref<Pool> pool = state().pools.find(handle);
    Device* it = device_at(device);
    if (!it) return INVALID_DEVICE;
    if (!pool || pool->device != device) return INVALID_VALUE;
    it->current_pool = pool;
    return 0;
}

int cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, Handle pool_handle,
                            Handle stream_handle) {
    const Ref<Pool> pool = state().pools.find(pool_handle);
    if (!pool) return INVALID_VALUE;
    Ref<Stream> stream;
    const int status = find_stream(stream_handle, stream);
    return status != 0 ? status : allocate(address, bytes, pool, stream);
}

int cuMemAllocAsync(CUdeviceptr* address, size_t bytes, Handle stream_handle) {
    Ref<Stream> stream;
    const int status = find_stream(stream_handle, stream);
    if (status != 0) return status;
    const Ref<Pool> pool = state().devices[size_t(stream->context->device)].current_pool;
    return allocate(address, bytes, pool, stream);
}

int cuMemFreeAsync(CUdeviceptr address, Handle stream_handle) {
    Ref<Stream> stream;
    int status = find_stream(stream_handle, stream);
    if (status != 0) return status;
    if (address == 0) return 0;
    const bool captured = stream->capture != nullptr;
    if (!captured) status = check_unsafe();
    if (status == 0) status = check_capture(stream);
    if (status != 0) return status;
    const Ref<Memory> memory = known_memory(address, captured);
    if (!memory || memory->address != address || memory->freeing) return INVALID_VALUE;
    const bool can = memory->kind == Kind::Pooled || memory->kind == Kind::Plain ||
                     memory->kind == Kind::Managed;
    if (!can || captured != (memory->state == Memory::Reserved)) return INVALID_VALUE;
    Operation operation;
    operation.action = [memory] {
        release(memory);
        return 0;
    };
    if (captured) {
        Node node;
        node.frees = memory;
        node.operation = std::move(operation);
        capture_node(*stream, std::move(node));
        return 0;
    }
    memory->freeing = true;
    return submit(stream, std::move(operation));
}

} // namespace driver
