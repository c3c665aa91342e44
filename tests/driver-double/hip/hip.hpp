// Shared by the functions of HIP: the driver that they call, the thread's device, and the entry of
// each call.
//
// Each function of HIP calls CUDA's driver API: the fake driver's own functions, or, if
// DOUBLE_FORWARD names a file, a real libcuda.
#pragma once

#include "core/call.hpp"
#include "core/functions.hpp"
#include "hip_api.hpp" // made by declare.py

#include <string>

namespace hip {

// The ROCm generation of the library: 5, 6 or 7.
extern const int ROCM;

struct Cuda {
#define MEMBER(name, rule, parameters, arguments) int(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

// Complete once `initialise` has succeeded.
extern Cuda cuda;

// The preconditions of a function.
enum Needs : unsigned {
    NOTHING,
    DRIVER, // the driver that it calls is initialised
    DEVICE, // the primary context of the thread's device is current
};

int prepare(unsigned needs);

// Returns the primary context of a device, which is retained at first use.
int primary(int device, Handle* context);

// Destroys all objects of the thread's device.
int reset();

int thread_device();
void set_thread_device(int device);

// Returns true if the handle does not belong to a stream.
bool is_unknown(hipStream_t stream);
template <class T> bool is_unknown(T) { return false; }

bool forked();
hipError_t remember(int status);
hipError_t last_error();

template <class Body, class... A>
hipError_t call(core::Function& function, Body body, A... arguments) {
    if (forked()) return hipErrorNotInitialized;
    const int wanted = core::recorded(function, hipErrorNotSupported, arguments...);
    if (wanted != 0) return remember(wanted);
    int status = prepare(function.rule);
    if (status == 0) status = body(arguments...);
    if (status == hipErrorInvalidHandle && (is_unknown(arguments) || ...)) {
        status = hipErrorContextIsDestroyed; // in every call
    }
    return remember(status);
}

template <class T> uint64_t at(T* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Passes an output pointer for a handle or an address.
template <class T> uint64_t* out(T** pointer) { return reinterpret_cast<uint64_t*>(pointer); }

} // namespace hip

// Defines an exported function; its body returns a status.
#define HIP(name, needs, parameters, arguments)                                              \
    static int body_##name parameters;                                                       \
    static core::Function function_##name(#name, hip::needs);                                \
    template <class... A> static hipError_t call_##name(A... values) {                       \
        return hip::call(                                                                    \
            function_##name, [](A... inner) { return body_##name(inner...); }, values...);   \
    }                                                                                        \
    EXPORT hipError_t name parameters { return call_##name arguments; }                      \
    static int body_##name parameters
