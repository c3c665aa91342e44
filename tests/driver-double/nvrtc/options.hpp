// Options of the run-time compilers.
#pragma once

#include <string>
#include <vector>

namespace nvrtc {

struct Options {
    std::string wrong; // what to say of the first bad one; empty if all are good
    std::string architecture;
    std::vector<std::string> passed; // to the compiler
};

// The architectures that the compiler knows, as numbers.
const std::vector<int>& architectures();

Options read_options(int count, const char* const* options);

} // namespace nvrtc
