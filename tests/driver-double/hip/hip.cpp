#include "hip.hpp"
#include "core/state.hpp"
#include "target.hpp"

#include <array>
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>

// The functions of the fake CUDA driver with their preconditions, but without recording the calls:
// only HIP's are recorded.
#define GATED(name, rule, parameters, arguments)                        \
    template <class... A> static int inner_##name(A... values) {        \
        core::DriverGate gate(rule, 0);                                 \
        return gate.status ? gate.status : driver::name(values...);     \
    }                                                                   \
    static int gated_##name parameters { return inner_##name arguments; }
DRIVER_FUNCTIONS(GATED)

namespace hip {
namespace {

constexpr int MOST_DEVICES = 64;

struct Thread {
    int device = 0;
    bool entered = false; // the device's context is current
    hipError_t last = hipSuccess;
};

Thread& thread() {
    static thread_local Thread it;
    return it;
}

std::mutex& mutex() {
    static std::mutex* it = new std::mutex;
    return *it;
}

std::array<Handle, MOST_DEVICES> contexts; // under the mutex
bool is_forked = false;

#define OWN(name, rule, parameters, arguments) gated_##name,
constexpr Cuda DOUBLE = {DRIVER_FUNCTIONS(OWN)};

bool load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "driver double: DOUBLE_FORWARD: %s\n", dlerror());
        return false;
    }
    bool complete = true;
    const auto find = [&](auto& member, const char* name) {
        void* symbol = dlsym(library, name);
        if (!symbol) std::fprintf(stderr, "driver double: DOUBLE_FORWARD: no %s\n", name);
        complete = complete && symbol;
        member = reinterpret_cast<std::decay_t<decltype(member)>>(symbol);
    };
#define FIND(name, rule, parameters, arguments) find(cuda.name, #name);
    DRIVER_FUNCTIONS(FIND)
    return complete;
}

int initialise() {
    static const int status = [] {
        const char* path = forwarded();
        if (path && !load(path)) return int(hipErrorNoDevice);
        if (!path) cuda = DOUBLE;
        const int status = cuda.cuInit(0);
        if (status == 0 && !path) pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
        return status;
    }();
    return status;
}

int enter() {
    Thread& it = thread();
    if (it.entered) return 0;
    Handle context = 0;
    int status = primary(it.device, &context);
    if (status == 0) status = cuda.cuCtxSetCurrent(context);
    it.entered = status == 0;
    return status;
}

} // namespace

Cuda cuda;

int prepare(unsigned needs) {
    if (thread().entered || needs == NOTHING) return 0;
    const int status = initialise();
    return status == 0 && (needs & ~ALONE) == DEVICE ? enter() : status;
}

int primary(int device, Handle* context) {
    int checked = 0;
    const int status = cuda.cuDeviceGet(&checked, device);
    if (status != 0) return status;
    if (device >= MOST_DEVICES) return hipErrorInvalidDevice;
    std::lock_guard<std::mutex> lock(mutex());
    Handle& known = contexts[size_t(device)];
    const int retained = known ? 0 : cuda.cuDevicePrimaryCtxRetain(&known, device);
    *context = known;
    return retained;
}

int reset() {
    Thread& it = thread();
    Handle context = 0;
    int status = primary(it.device, &context);
    if (status == 0) status = cuda.cuDevicePrimaryCtxReset_v2(it.device);
    // CUDA requires another retain before the next use; HIP does not.
    if (status == 0) status = cuda.cuDevicePrimaryCtxRetain(&context, it.device);
    if (status == 0) status = cuda.cuDevicePrimaryCtxRelease_v2(it.device);
    it.entered = false;
    return status == 0 ? enter() : status;
}

int thread_device() { return thread().device; }

void set_thread_device(int device) {
    Thread& it = thread();
    if (it.device != device) it.entered = false;
    it.device = device;
}

bool is_unknown(hipStream_t stream) {
    unsigned flags = 0;
    return stream && cuda.cuStreamGetFlags(at(stream), &flags) == hipErrorInvalidHandle;
}

bool forked() { return is_forked; }

// Up to ROCm 6 a successful call erases the previous failure; since 7 it stays.
hipError_t remember(int status) {
    if (status != 0 || ROCM < 7) thread().last = hipError_t(status);
    return hipError_t(status);
}

hipError_t last_error() {
    const hipError_t last = thread().last;
    thread().last = hipSuccess;
    return last;
}

} // namespace hip
