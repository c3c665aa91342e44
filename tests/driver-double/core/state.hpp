// The whole state of the fake driver, protected by one lock.
#pragma once

#include "abi.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace core {

struct Capture;
struct Context;
struct Event;
struct Function;
struct Graph;
struct Module;
struct Pool;
struct Stream;
struct Work;
template <class T> using Ref = std::shared_ptr<T>;

// Returns the number in an environment variable.
size_t setting(const char* name, size_t otherwise);

// Ends the process with a message: real drivers dereference invalid handles.
[[noreturn]] void crash(const char* kind, Handle handle, bool is_gone);

// Objects by handle. A handle is a readable address, like a driver's. No handle is used twice, so the handle
// of a destroyed object stays invalid. With DOUBLE_REUSE=1 the handle that was freed last is reused first, as
// in many drivers.
template <class T> class Registry {
public:
    explicit Registry(const char* kind) : kind(kind) {}

    Handle add(Ref<T> object) {
        Handle handle;
        if (freed.empty()) {
            if (next == end) reserve();
            handle = next;
            next += 16;
        } else {
            handle = freed.back();
            freed.pop_back();
        }
        objects[handle] = std::move(object);
        return handle;
    }
    // Returns the object. Null for handle 0; any other invalid handle ends the process.
    Ref<T> find(Handle handle) const {
        const Ref<T> object = known(handle);
        if (!object && handle != 0) crash(kind, handle, was_made(handle));
        return object;
    }
    // Like `find`, but null for a destroyed object.
    Ref<T> find_or_gone(Handle handle) const { return was_made(handle) ? known(handle) : find(handle); }
    // Returns false for 0.
    bool erase(Handle handle) {
        if (!find(handle)) return false;
        objects.erase(handle);
        note_freed(handle);
        return true;
    }
    size_t size() const { return objects.size(); }
    template <class Condition> void erase_if(Condition condition) {
        for (auto it = objects.begin(); it != objects.end();) {
            if (!condition(*it->second)) {
                ++it;
                continue;
            }
            const Handle handle = it->first;
            it = objects.erase(it);
            note_freed(handle);
        }
    }

private:
    Ref<T> known(Handle handle) const {
        const auto found = objects.find(handle);
        return found == objects.end() ? nullptr : found->second;
    }
    bool was_made(Handle handle) const {
        return std::any_of(begins.begin(), begins.end(), [&](Handle begin) {
            const Handle behind = begin + BYTES == end ? next : begin + BYTES;
            return handle >= begin && handle < behind && handle % 16 == 0;
        });
    }
    void note_freed(Handle handle) {
        if (setting("DOUBLE_REUSE", 0)) freed.push_back(handle);
    }

    void reserve() {
        void* const start = mmap(nullptr, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) throw std::bad_alloc();
        next = reinterpret_cast<Handle>(start);
        end = next + BYTES;
        begins.push_back(next);
    }

    static constexpr size_t BYTES = 1 << 16;
    const char* kind;
    Handle next = 0, end = 0;
    std::vector<Handle> begins;
    std::vector<Handle> freed;
    std::unordered_map<Handle, Ref<T>> objects;
};

// An operation of a stream. A graph's operations run many times.
struct Operation {
    std::function<int()> action;      // a status other than 0 fails the device permanently
    std::function<void(int)> host;    // alternatively: runs on the thread of host functions
    bool host_after_failure = false;
};

// A queued operation. The work that must run before it is known when it is queued.
struct Work {
    enum State { Queued, Running, Done } state = Queued;
    Operation operation;
    std::vector<Ref<Work>> after;
    Ref<Context> context;
    Ref<Stream> stream; // null for the inner nodes of a graph
    std::list<Ref<Work>>::iterator pending;
    std::chrono::steady_clock::time_point queued, finished;
};

struct Stream {
    Handle handle = 0;
    Ref<Context> context;
    unsigned flags = 0;
    int priority = 0;
    bool legacy = false, destroyed = false;
    size_t queued = 0;
    Ref<Work> tail;
    Ref<Capture> capture;
    std::vector<int> frontier; // the capture's nodes that precede the next one
    bool blocking() const { return !legacy && !(flags & 1); }
};

struct Event {
    Ref<Context> context;
    unsigned flags = 0;
    Ref<Work> work; // null before the first record
    Ref<Capture> capture;
    std::vector<int> nodes;
};

// Texels and Object are internal memory: calls may not pass their addresses.
enum class Kind { Plain, Pooled, Managed, Pinned, Registered, Imported, Global, Texels, Object };

// An address range that the driver knows.
struct Memory {
    enum State { Reserved, Pending, Live, Freed } state = Live;
    Kind kind = Kind::Plain;
    uint64_t address = 0;
    size_t size = 0;
    int device = 0;
    unsigned flags = 0;
    uint64_t number = 0;
    bool freeing = false;    // a free is queued
    unsigned opened = 1;     // number of opens, if imported
    bool of_graph = false;   // belongs to an allocation node: the range outlives a free
    std::string handle;      // if imported
    Ref<Context> context;    // null for pool memory
    Ref<Pool> pool;
    bool on_device() const {
        return kind != Kind::Pinned && kind != Kind::Registered;
    }
};

// A texture array.
struct Array {
    Ref<Context> context;
    Ref<Memory> texels;
    size_t width, height, slices; // at least 1 each
    unsigned format, channels, flags, texel; // bytes of a texel
    size_t pitch, slice;          // byte distance of rows and of slices
};

// A texture or surface object. Its number is the address of the data that kernels read.
struct TextureObject {
    Ref<Context> context;
    Ref<Memory> description;
    bool surface;
};

struct Pool {
    Handle handle = 0;
    int device = 0;
    bool is_default = false;
    // `used` counts requested bytes, and `backed` the same in whole allocation units. `reserved` counts the
    // bytes taken from the device.
    uint64_t threshold = 0, used = 0, backed = 0, reserved = 0, most_used = 0, most_reserved = 0;
    int reuse[4] = {0, 1, 1, 1}; // by attribute number
};

struct Node {
    Operation operation;
    std::vector<int> after;
    Ref<Memory> allocates, frees;
};

// An object that graphs keep alive for a caller.
struct UserObject {
    CUhostFn destroy;
    void* data;
    unsigned references; // held by the caller
    ~UserObject() { destroy(data); }
};

struct Graph {
    std::vector<Node> nodes;
    Ref<Context> context;
    std::vector<Ref<UserObject>> objects;
};

struct Capture {
    Ref<Graph> graph;
    Handle handle = 0; // of the graph during the capture, after a caller has requested it
    uint64_t number = 0;
    Ref<Stream> origin;
    std::vector<Ref<Stream>> members;
    int mode = 0;
    std::thread::id thread;
    enum { Active = 1, Invalidated = 2, Ended = 3 } status = Active;
    bool in_use = false; // by a call; see OneAtATime
};

struct Context {
    Handle handle = 0;
    int device = 0;
    bool primary = false, alive = true;
    unsigned long long number = 0; // changes each time that the context starts
    unsigned flags = 0;
    Ref<Stream> legacy;
    std::map<std::thread::id, Ref<Stream>> per_thread;
    std::vector<Ref<Stream>> streams; // including destroyed ones with queued work
    std::list<Ref<Work>> pending;
    std::map<int, size_t> limits;
    int cache_config = 0, shared_config = 1;
    std::set<Handle> peers;
};

struct Device {
    size_t memory = 0, used = 0;
    int failure = 0; // sticky
    unsigned retained = 0, primary_flags = 0;
    Ref<Context> primary;
    Ref<Pool> default_pool, current_pool;
};

struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool initialized = false, eager = false;
    // Queries never report completion; `unrecorded_wait`: nor for events that were never recorded.
    bool silent = false, unrecorded_wait = false;
    bool cooperative = true; // the devices support cooperative launches
    std::vector<Device> devices;
    std::map<uint64_t, Ref<Memory>> memory; // by first address
    std::vector<Ref<Capture>> captures;     // active captures
    Registry<Context> contexts{"context"};
    Registry<Stream> streams{"stream"};
    Registry<Event> events{"event"};
    Registry<Module> modules{"module"};
    Registry<struct Kernel> kernels{"function"};
    Registry<Pool> pools{"memory pool"};
    Registry<Graph> graphs{"graph"};
    Registry<Graph> execs{"executable graph"};
    Registry<struct Link> links{"link state"};
    Registry<UserObject> user_objects{"user object"};
    Registry<Array> arrays{"array"};
    std::map<uint64_t, TextureObject> texture_objects;
    uint64_t memory_numbers = 0, capture_numbers = 0, context_numbers = 0, overruns = 0;
};

// Never destroyed, because calls may come until the very end of the process.
State& state();

// The state of the calling thread.
struct Thread {
    std::vector<Ref<Context>> contexts;
    int capture_mode = 0;
    bool host_function = false; // true while it runs a host function
    std::unique_lock<std::mutex>* lock = nullptr;
};
Thread& thread();

// Returns the device with this number, or null.
Device* device_at(CUdevice number);
Ref<Context> current_context();

// Returns 0 for a usable context, or INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or its device's failure.
int usable(const Ref<Context>& context);

// Holds the lock, and checks a function's preconditions.
class DriverGate {
public:
    static constexpr int UNSUPPORTED = NOT_SUPPORTED, FORKED = NOT_INITIALIZED;
    static bool forked();
    DriverGate(unsigned rule, int wanted);
    ~DriverGate();
    int status = 0;

private:
    std::unique_lock<std::mutex> lock;
    std::unique_lock<std::mutex>* outer; // of a host function that makes a call
};

} // namespace core
