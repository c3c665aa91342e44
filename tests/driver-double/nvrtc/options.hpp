// Options of the run-time compilers.
#pragma once

#include <string>
#include <vector>

namespace nvrtc {

struct Options {
    std::string wrong; // the message for the first invalid option; empty if all are valid
    std::string architecture;
    std::vector<std::string> passed; // to the compiler
};

// Returns the numbers of the architectures that the compiler supports.
const std::vector<int>& architectures();

Options read_options(int count, const char* const* options);

} // namespace nvrtc
