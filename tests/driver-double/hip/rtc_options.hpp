// Options of hipRTC, which are clang's options.
#pragma once

#include <string>
#include <vector>

namespace hip {

struct RtcOptions {
    std::string wrong; // the message for the first invalid option; empty if all are valid
    std::string target;
    std::vector<std::string> passed; // to the compiler
    std::vector<std::string> nvrtc;  // the equivalent options of NVRTC
};

RtcOptions read_rtc_options(int count, const char* const* options);

} // namespace hip
