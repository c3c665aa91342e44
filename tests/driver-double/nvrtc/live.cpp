// The functions of a library that is a compiler without a driver.
#include "core/control.hpp"
#include "program.hpp"

#include <cstring>

namespace core {

uint64_t live(const char* kind) {
    return std::strcmp(kind, "programs") == 0 ? nvrtc::live_programs() : 0;
}

} // namespace core
