#include "capture.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "module.hpp"
#include "texture.hpp"
#include "work.hpp"

#include <algorithm>

namespace core {
namespace {

constexpr unsigned ALL_FLAGS = 0xff;

bool valid_flags(unsigned flags) {
    const unsigned schedule = flags & 7;
    return (flags & ~ALL_FLAGS) == 0 && schedule != 3 && schedule <= 4;
}

// Creates the initial objects of a context; a primary context can start again.
void start(const Ref<Context>& context) {
    context->alive = true;
    context->number = ++state().context_numbers;
    context->legacy = std::make_shared<Stream>();
    context->legacy->context = context;
    context->legacy->legacy = true;
    context->limits = {{0, 1024}, {1, 8650752}, {2, 8388608}, {4, 2048},
                       {5, 64},   {6, 11796480}, {7, 232448}, {8, 0}};
}

// Runs all queued work, and destroys everything that belongs to the context.
void stop(const Ref<Context>& context) {
    State& it = state();
    drain(context);
    const auto own = [&](const auto& object) { return object.context == context; };
    for (const Ref<Stream>& stream : std::vector<Ref<Stream>>(context->streams)) {
        if (stream->capture) abandon(stream);
        stream->destroyed = true;
    }
    it.streams.erase_if(own);
    it.events.erase_if(own);
    it.graphs.erase_if(own);
    it.execs.erase_if(own);
    unload_all(context);
    forget_textures(context);
    release_all(*context);
    context->streams.clear();
    context->per_thread.clear();
    context->peers.clear();
    context->legacy = nullptr;
    context->alive = false;
}

void set_top(const Ref<Context>& context) {
    auto& contexts = thread().contexts;
    if (!contexts.empty()) contexts.pop_back();
    if (context) contexts.push_back(context);
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuDevicePrimaryCtxRetain(Handle* handle, CUdevice number) {
    if (!handle) return INVALID_VALUE;
    Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (!device->primary) {
        device->primary = std::make_shared<Context>();
        device->primary->device = number;
        device->primary->primary = true;
        device->primary->alive = false;
        device->primary->handle = state().contexts.add(device->primary);
    }
    if (!device->primary->alive) {
        if (device->failure) return device->failure; // a failure that a reset did not clear
        start(device->primary);
    }
    ++device->retained;
    *handle = device->primary->handle;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(CUdevice number) {
    Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (device->retained == 0) return INVALID_CONTEXT;
    if (--device->retained == 0 && device->primary->alive) stop(device->primary);
    return 0;
}

int cuDevicePrimaryCtxReset_v2(CUdevice number) {
    Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (device->primary && device->primary->alive) stop(device->primary);
    // A real driver's device may stay failed until the process ends.
    if (!setting("DOUBLE_STICKY", 0)) device->failure = 0;
    return 0;
}

int cuDevicePrimaryCtxGetState(CUdevice number, unsigned* flags, int* active) {
    const Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (flags) *flags = device->primary_flags;
    if (active) *active = device->primary && device->primary->alive;
    return 0;
}

int cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned flags) {
    Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (!valid_flags(flags)) return INVALID_VALUE;
    device->primary_flags = flags;
    return 0;
}

int cuCtxCreate_v2(Handle* handle, unsigned flags, CUdevice number) {
    if (!handle || !valid_flags(flags)) return INVALID_VALUE;
    Device* device = device_at(number);
    if (!device) return INVALID_DEVICE;
    if (device->failure) return device->failure;
    auto context = std::make_shared<Context>();
    context->device = number;
    context->flags = flags;
    context->handle = state().contexts.add(context);
    start(context);
    thread().contexts.push_back(context);
    *handle = context->handle;
    return 0;
}

int cuCtxDestroy_v2(Handle handle) {
    if (handle == 0) return INVALID_VALUE;
    const Ref<Context> context = state().contexts.find_or_gone(handle);
    if (!context || context->primary) return INVALID_CONTEXT;
    stop(context);
    state().contexts.erase(handle);
    auto& contexts = thread().contexts;
    if (!contexts.empty() && contexts.back() == context) contexts.pop_back();
    return 0;
}

int cuCtxGetCurrent(Handle* handle) {
    if (!handle) return INVALID_VALUE;
    const Ref<Context> context = current_context();
    *handle = context ? context->handle : 0;
    return 0;
}

int cuCtxSetCurrent(Handle handle) {
    const Ref<Context> context = state().contexts.find_or_gone(handle);
    if (handle != 0 && !context) return INVALID_CONTEXT;
    set_top(context);
    return 0;
}

int cuCtxPushCurrent_v2(Handle handle) {
    if (handle == 0) return INVALID_VALUE;
    const Ref<Context> context = state().contexts.find_or_gone(handle);
    if (!context) return INVALID_CONTEXT;
    thread().contexts.push_back(context);
    return 0;
}

int cuCtxPopCurrent_v2(Handle* handle) {
    const Ref<Context> context = current_context();
    if (!context) return INVALID_CONTEXT;
    if (handle) *handle = context->handle;
    set_top(nullptr);
    return 0;
}

int cuCtxGetDevice(CUdevice* device) {
    const Ref<Context> context = current_context();
    if (!context) return INVALID_CONTEXT;
    if (!device) return INVALID_VALUE;
    *device = context->device;
    return 0;
}

int cuCtxGetApiVersion(Handle handle, unsigned* version) {
    const Ref<Context> context =
        handle == 0 ? current_context() : state().contexts.find_or_gone(handle);
    if (!context) return INVALID_CONTEXT;
    if (!version) return INVALID_VALUE;
    *version = 3020;
    return 0;
}

int cuCtxGetId(Handle handle, unsigned long long* number) {
    if (!number) return INVALID_VALUE;
    const Ref<Context> context =
        handle == 0 ? current_context() : state().contexts.find_or_gone(handle);
    if (!context) return handle == 0 ? INVALID_CONTEXT : CONTEXT_IS_DESTROYED;
    if (!context->alive) return CONTEXT_IS_DESTROYED;
    *number = context->number;
    return 0;
}

int cuCtxGetLimit(size_t* value, int limit) {
    if (!value || limit < 0 || limit > 9) return INVALID_VALUE;
    const auto& limits = current_context()->limits;
    const auto found = limits.find(limit);
    if (found == limits.end()) return UNSUPPORTED_LIMIT;
    *value = found->second;
    return 0;
}

int cuCtxSetLimit(int limit, size_t value) {
    if (limit < 0 || limit > 9) return INVALID_VALUE;
    auto& limits = current_context()->limits;
    const auto found = limits.find(limit);
    if (found == limits.end()) return UNSUPPORTED_LIMIT;
    found->second = value;
    return 0;
}

int cuCtxGetCacheConfig(int* config) {
    if (!config) return INVALID_VALUE;
    *config = current_context()->cache_config;
    return 0;
}

int cuCtxSetCacheConfig(int config) {
    if (config < 0 || config > 3) return INVALID_VALUE;
    current_context()->cache_config = config;
    return 0;
}

int cuCtxGetSharedMemConfig(int* config) {
    if (!config) return INVALID_VALUE;
    *config = current_context()->shared_config;
    return 0;
}

int cuCtxSetSharedMemConfig(int config) {
    if (config < 0 || config > 2) return INVALID_VALUE;
    current_context()->shared_config = config == 0 ? 1 : config;
    return 0;
}

int cuCtxEnablePeerAccess(Handle handle, unsigned flags) {
    if (flags != 0) return INVALID_VALUE;
    const Ref<Context> context = current_context(), peer = state().contexts.find_or_gone(handle);
    if (!peer || !peer->alive) return INVALID_CONTEXT;
    if (peer->device == context->device) return PEER_ACCESS_UNSUPPORTED;
    return context->peers.insert(handle).second ? 0 : int(PEER_ACCESS_ALREADY_ENABLED);
}

int cuCtxDisablePeerAccess(Handle handle) {
    if (!state().contexts.find_or_gone(handle)) return INVALID_CONTEXT;
    return current_context()->peers.erase(handle) ? 0 : int(PEER_ACCESS_NOT_ENABLED);
}

int cuProfilerStart() { return 0; }

int cuProfilerStop() { return 0; }

} // namespace driver
