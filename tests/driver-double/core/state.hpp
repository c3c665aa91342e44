// Everything that the driver double knows, behind one lock.
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

// An environment variable's number.
size_t setting(const char* name, size_t otherwise);

// Ends the process, and says why: drivers follow a handle without a look at it, as far as they get.
[[noreturn]] void crash(const char* kind, Handle handle, bool is_gone);

// Objects by handle. A handle is an address that can be read, as those of drivers are. None is given twice, so
// that one of a destroyed object stays invalid; with DOUBLE_REUSE=1 the one that became free last comes
// first, as from many drivers.
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
    // The object. A handle that is 0 has none; any other one that is none ends the process.
    Ref<T> find(Handle handle) const {
        const Ref<T> object = known(handle);
        if (!object && handle != 0) crash(kind, handle, was_made(handle));
        return object;
    }
    // The same, but null for an object that is gone.
    Ref<T> find_or_gone(Handle handle) const { return was_made(handle) ? known(handle) : find(handle); }
    // False for 0.
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

// What a stream runs. Actions of a graph run many times.
struct Operation {
    std::function<int()> action;      // a status that is not 0 fails the device for good
    std::function<void(int)> host;    // instead: runs on the thread of host functions
    bool host_after_failure = false;
};

// One queued operation. What must run before it is known when it is queued.
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
    std::vector<int> frontier; // the capture's nodes that the next one follows
    bool blocking() const { return !legacy && !(flags & 1); }
};

struct Event {
    Ref<Context> context;
    unsigned flags = 0;
    Ref<Work> work; // null before the first record
    Ref<Capture> capture;
    std::vector<int> nodes;
};

// Texels and what an object is are the driver's own: calls do not take their addresses.
enum class Kind { Plain, Pooled, Managed, Pinned, Registered, Imported, Global, Texels, Object };

// A range of addresses that the driver knows.
struct Memory {
    enum State { Reserved, Pending, Live, Freed } state = Live;
    Kind kind = Kind::Plain;
    uint64_t address = 0;
    size_t size = 0;
    int device = 0;
    unsigned flags = 0;
    uint64_t number = 0;
    bool freeing = false;    // its free is queued
    unsigned opened = 1;     // times, if imported
    bool of_graph = false;   // an allocation node's: the range outlives a free
    std::string handle;      // if imported
    Ref<Context> context;    // null for memory of pools
    Ref<Pool> pool;
    bool on_device() const {
        return kind != Kind::Pinned && kind != Kind::Registered;
    }
};

// An array for textures.
struct Array {
    Ref<Context> context;
    Ref<Memory> texels;
    size_t width, height, slices; // at least 1 each
    unsigned format, channels, flags, texel; // bytes of a texel
    size_t pitch, slice;          // bytes from one row, or slice, to the next
};

// A texture or surface object, whose number is the address of what kernels read.
struct TextureObject {
    Ref<Context> context;
    Ref<Memory> description;
    bool surface;
};

struct Pool {
    Handle handle = 0;
    int device = 0;
    bool is_default = false;
    // `used` is what was asked for, `backed` the same in whole units of allocation; `reserved`
    // is what the device has given, and counts against it.
    uint64_t threshold = 0, used = 0, backed = 0, reserved = 0, most_used = 0, most_reserved = 0;
    int reuse[4] = {0, 1, 1, 1}; // by attribute number
};

struct Node {
    Operation operation;
    std::vector<int> after;
    Ref<Memory> allocates, frees;
};

// What graphs keep for whoever made it.
struct UserObject {
    CUhostFn destroy;
    void* data;
    unsigned references; // of its maker
    ~UserObject() { destroy(data); }
};

struct Graph {
    std::vector<Node> nodes;
    Ref<Context> context;
    std::vector<Ref<UserObject>> objects;
};

struct Capture {
    Ref<Graph> graph;
    Handle handle = 0; // of the graph while the capture goes on, once somebody has asked
    uint64_t number = 0;
    Ref<Stream> origin;
    std::vector<Ref<Stream>> members;
    int mode = 0;
    std::thread::id thread;
    enum { Active = 1, Invalidated = 2, Ended = 3 } status = Active;
    bool in_use = false; // by a call, see OneAtATime
};

struct Context {
    Handle handle = 0;
    int device = 0;
    bool primary = false, alive = true;
    unsigned long long number = 0; // of this life of it
    unsigned flags = 0;
    Ref<Stream> legacy;
    std::map<std::thread::id, Ref<Stream>> per_thread;
    std::vector<Ref<Stream>> streams; // also destroyed ones with work left
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
    // Queries never say yes; not of events that were never recorded.
    bool silent = false, unrecorded_wait = false;
    bool cooperative = true; // the devices can launch so
    std::vector<Device> devices;
    std::map<uint64_t, Ref<Memory>> memory; // by first address
    std::vector<Ref<Capture>> captures;     // those that have not ended
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

// Never destroyed: calls come as late as the process lives.
State& state();

// Of the calling thread.
struct Thread {
    std::vector<Ref<Context>> contexts;
    int capture_mode = 0;
    bool host_function = false; // runs one
    std::unique_lock<std::mutex>* lock = nullptr;
};
Thread& thread();

// The device, null if there is none with this number.
Device* device_at(CUdevice number);
Ref<Context> current_context();

// Finds a context: INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or the failure of its device.
int usable(const Ref<Context>& context);

// Holds the lock and checks what a function needs.
class DriverGate {
public:
    static constexpr int UNSUPPORTED = NOT_SUPPORTED, FORKED = NOT_INITIALIZED;
    static bool forked();
    DriverGate(unsigned rule, int wanted);
    ~DriverGate();
    int status = 0;

private:
    std::unique_lock<std::mutex> lock;
    std::unique_lock<std::mutex>* outer; // of a host function that calls
};

} // namespace core
