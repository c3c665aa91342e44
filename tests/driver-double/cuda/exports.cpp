// libcuda.so.1: each function of the list, behind the gate.
#include "core/call.hpp"
#include "core/functions.hpp"
#include "core/state.hpp"

#define EXPORTED(name, rule, parameters, arguments)                                          \
    static core::Function function_##name(#name, rule);                                      \
    template <class... A> static int call_##name(A... values) {                              \
        return core::call<core::DriverGate>(                                                 \
            function_##name, [](A... inner) { return driver::name(inner...); }, values...);  \
    }                                                                                        \
    EXPORT int name parameters { return call_##name arguments; }
DRIVER_FUNCTIONS(EXPORTED)
