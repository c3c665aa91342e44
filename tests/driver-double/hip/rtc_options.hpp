// Options of hipRTC, which are clang's.
#pragma once

#include <string>
#include <vector>

namespace hip {

struct RtcOptions {
    std::string wrong; // what to say of the first bad one; empty if all are good
    std::string target;
    std::vector<std::string> passed; // to the compiler
    std::vector<std::string> nvrtc;  // what NVRTC calls the same
};

RtcOptions read_rtc_options(int count, const char* const* options);

} // namespace hip
