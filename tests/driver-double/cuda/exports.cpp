// libcuda.so.1: exports each function of the list.
#include "core/call.hpp"
#include "core/functions.hpp"
#include "core/state.hpp"

#include <dlfcn.h>
#include <string>

#define EXPORTED(name, rule, parameters, arguments)                                          \
    static core::Function function_##name(#name, rule);                                      \
    template <class... A> static int call_##name(A... values) {                              \
        return core::call<core::DriverGate>(                                                 \
            function_##name, [](A... inner) { return driver::name(inner...); }, values...);  \
    }                                                                                        \
    EXPORT int name parameters { return call_##name arguments; }
DRIVER_FUNCTIONS(EXPORTED)

// Finds a function by its name without a version suffix, as CUDA's Python bindings do. Symbols that
// were left out of the library are not found.
EXPORT int cuGetProcAddress_v2(
    const char* symbol, void** function, int, unsigned long long, int* result) {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &self);
    void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = nullptr;
    for (const char* form : {"_v3", "_v2", ""}) {
        if (*function == nullptr) {
            *function = dlsym(library, (std::string(symbol) + form).c_str());
        }
    }
    dlclose(library);
    if (result != nullptr) {
        *result = *function == nullptr ? 1 : 0;
    }
    return *function == nullptr ? 500 : 0;
}
