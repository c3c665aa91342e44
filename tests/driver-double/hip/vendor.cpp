#include "core/vendor.hpp"
#include "target.hpp"

namespace core {

const Vendor VENDOR = {
    hip::wavefront(hip::double_target()),
    [](const std::string& code) { return hip::runs_on(code, hip::double_target()); },
    true,
};

} // namespace core
