#include "state.hpp"
#include "call.hpp"
#include "capture.hpp"
#include "control.hpp"
#include "functions.hpp"
#include "memory.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace core {
namespace {

// True in a forked child of a process that had initialised the driver, where every call fails.
bool is_forked = false;

} // namespace

State& state() {
    static State* it = new State;
    return *it;
}

// Destructors of thread-local objects may also call the driver, in any order. A thread's data is therefore
// destroyed by a pthread key, after all of these objects. A later call creates new data.
Thread& thread() {
    static thread_local Thread* it = nullptr;
    static const pthread_key_t key = [] {
        pthread_key_t made;
        pthread_key_create(&made, [](void* old) {
            it = nullptr;
            delete static_cast<Thread*>(old);
        });
        return made;
    }();
    if (!it) pthread_setspecific(key, it = new Thread);
    return *it;
}

void crash(const char* kind, Handle handle, bool is_gone) {
    std::fprintf(stderr, "driver double: %s: %s %#llx %s; a driver may crash here\n", called, kind,
                 static_cast<unsigned long long>(handle), is_gone ? "is gone" : "was never made");
    std::abort();
}

size_t setting(const char* name, size_t otherwise) {
    const char* text = std::getenv(name);
    return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

Device* device_at(CUdevice number) {
    std::vector<Device>& devices = state().devices;
    return number >= 0 && size_t(number) < devices.size() ? &devices[size_t(number)] : nullptr;
}

Ref<Context> current_context() {
    const auto& contexts = thread().contexts;
    return contexts.empty() ? nullptr : contexts.back();
}

int usable(const Ref<Context>& context) {
    if (!context) return INVALID_CONTEXT;
    if (!context->alive) return CONTEXT_IS_DESTROYED;
    return state().devices[size_t(context->device)].failure;
}

bool DriverGate::forked() { return is_forked; }

DriverGate::DriverGate(unsigned rule, int wanted) : lock(state().mutex), outer(thread().lock) {
    thread().lock = &lock;
    if ((rule & INIT) && !state().initialized) {
        status = NOT_INITIALIZED;
    } else if (wanted != 0) {
        status = wanted;
    } else if (thread().host_function && rule != ALWAYS && !(rule & QUERY)) {
        status = NOT_PERMITTED;
    } else if (rule & STICKY) {
        const Ref<Context> context = current_context();
        const bool needed = (rule & CONTEXT) == CONTEXT;
        if (context || needed) status = usable(context);
        if (!needed && status == CONTEXT_IS_DESTROYED) status = 0;
    }
    if (status == 0 && (rule & UNSAFE)) status = check_unsafe();
}

DriverGate::~DriverGate() { thread().lock = outer; }

uint64_t live(const char* kind) {
    State& it = state();
    std::lock_guard<std::mutex> lock(it.mutex);
    const auto is = [&](const char* name) { return std::strcmp(kind, name) == 0; };
    if (is("streams")) return it.streams.size();
    if (is("events")) return it.events.size();
    if (is("modules")) return it.modules.size();
    if (is("pools")) return it.pools.size();
    if (is("graphs")) return it.graphs.size();
    if (is("graph_execs")) return it.execs.size();
    if (is("links")) return it.links.size();
    if (is("arrays")) return it.arrays.size();
    if (is("texture_objects")) return it.texture_objects.size();
    if (is("overruns")) return it.overruns;
    uint64_t sum = 0;
    for (const Device& device : it.devices) {
        const bool active = device.primary && device.primary->alive;
        if (is("contexts")) sum += device.retained;
        if (is("active_contexts")) sum += active;
    }
    if (is("contexts")) {
        it.contexts.erase_if([&](Context& context) {
            sum += !context.primary && context.alive;
            return false;
        });
    }
    if (is("queued")) {
        it.contexts.erase_if([&](Context& context) {
            sum += context.pending.size();
            return false;
        });
    }
    for (const auto& [address, memory] : it.memory) {
        const bool device_memory = memory->kind == Kind::Plain || memory->kind == Kind::Pooled ||
                                   memory->kind == Kind::Managed || memory->kind == Kind::Texels;
        const bool present = memory->state == Memory::Live || memory->state == Memory::Pending;
        if (!present) continue;
        if (is("device_bytes") && device_memory) sum += memory->size;
        if (is("device_allocations") && device_memory) ++sum;
        if (is("pinned_bytes") && memory->kind == Kind::Pinned) sum += memory->size;
        if (is("registered_bytes") && memory->kind == Kind::Registered) sum += memory->size;
        if (is("imported") && memory->kind == Kind::Imported) ++sum;
    }
    return sum;
}

} // namespace core

namespace driver {
using namespace core;

int cuInit(unsigned flags) {
    if (flags != 0) return INVALID_VALUE;
    State& it = state();
    if (it.initialized) return 0;
    const size_t count = setting("DOUBLE_DEVICES", 2);
    if (count == 0) return 100; // no device
    it.eager = setting("DOUBLE_EAGER", 0) != 0;
    it.cooperative = setting("DOUBLE_COOPERATIVE", 1) != 0;
    it.silent = setting("DOUBLE_NOT_READY", 0) == 1;
    it.unrecorded_wait = setting("DOUBLE_NOT_READY", 0) == 2;
    it.devices.resize(std::min<size_t>(count, 8));
    for (size_t i = 0; i < it.devices.size(); ++i) {
        it.devices[i].memory = setting("DOUBLE_MEMORY", size_t(512) << 20);
        auto pool = std::make_shared<Pool>();
        pool->device = int(i);
        pool->is_default = true;
        pool->handle = it.pools.add(pool);
        it.devices[i].default_pool = it.devices[i].current_pool = pool;
    }
    it.initialized = true;
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
    return 0;
}

int cuDriverGetVersion(int* version) {
    if (!version) return INVALID_VALUE;
    *version = 12080;
    return 0;
}

} // namespace driver
