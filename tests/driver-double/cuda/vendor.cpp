#include "core/vendor.hpp"

#include <cstdlib>

namespace core {
namespace {

// The devices have compute capability 9.0: they accept binaries for 9.0, and PTX up to 9.0.
bool fits(const std::string& architecture) {
    const size_t digits = architecture.find_first_of("0123456789");
    if (digits == std::string::npos) return false;
    const int number = std::atoi(architecture.c_str() + digits);
    return architecture.compare(0, 3, "sm_") == 0 ? number == 90 : number <= 90;
}

} // namespace

const Vendor VENDOR = {32, fits, false};

} // namespace core
