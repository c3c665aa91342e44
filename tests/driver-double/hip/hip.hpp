// What the functions of HIP share: the driver beneath them, the thread's device, the gate.
//
// Each function of HIP is made of calls of CUDA's driver API: of the double's own, or, where
// DOUBLE_FORWARD names a file, of a real libcuda.
#pragma once

#include "core/call.hpp"
#include "core/functions.hpp"
#include "hip_api.hpp" // made by declare.py

#include <string>

namespace hip {

// Which generation of ROCm the library is: 5, 6 or 7.
extern const int ROCM;

struct Cuda {
#define MEMBER(name, rule, parameters, arguments) int(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

// Complete once `initialise` has succeeded.
extern Cuda cuda;

// What a function needs before it runs.
enum Needs : unsigned {
    NOTHING,
    DRIVER, // the driver beneath, initialised
    DEVICE, // the thread's device, with its primary context current
};

int prepare(unsigned needs);

// The primary context of a device, retained when it is first asked for.
int primary(int device, Handle* context);

// Destroys what the thread's device holds.
int reset();

int thread_device();
void set_thread_device(int device);

// True for a handle that is no stream's.
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
        status = hipErrorContextIsDestroyed; // whatever the call
    }
    return remember(status);
}

template <class T> uint64_t at(T* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Where a handle or an address is returned.
template <class T> uint64_t* out(T** pointer) { return reinterpret_cast<uint64_t*>(pointer); }

} // namespace hip

// Defines an exported function: its body gives a status.
#define HIP(name, needs, parameters, arguments)                                              \
    static int body_##name parameters;                                                       \
    static core::Function function_##name(#name, hip::needs);                                \
    template <class... A> static hipError_t call_##name(A... values) {                       \
        return hip::call(                                                                    \
            function_##name, [](A... inner) { return body_##name(inner...); }, values...);   \
    }                                                                                        \
    EXPORT hipError_t name parameters { return call_##name arguments; }                      \
    static int body_##name parameters
