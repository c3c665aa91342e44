// libnvrtc.so: exports each function of the list. It does not need the driver's lock.
#include "core/call.hpp"
#include "functions.hpp"
#include "program.hpp"

namespace {

struct Gate {
    static constexpr int UNSUPPORTED = nvrtc::INTERNAL_ERROR, FORKED = nvrtc::INTERNAL_ERROR;
    static bool forked() { return false; }
    Gate(unsigned, int wanted) : status(wanted) {}
    int status;
};

} // namespace

#define EXPORTED(name, parameters, arguments)                                               \
    static core::Function function_##name(#name, 0);                                        \
    template <class... A> static int call_##name(A... values) {                             \
        return core::call<Gate>(                                                            \
            function_##name, [](A... inner) { return nvrtc::name(inner...); }, values...);  \
    }                                                                                       \
    EXPORT int name parameters { return call_##name arguments; }
NVRTC_FUNCTIONS(EXPORTED)

EXPORT const char* nvrtcGetErrorString(int status) { return nvrtc::nvrtcGetErrorString(status); }
