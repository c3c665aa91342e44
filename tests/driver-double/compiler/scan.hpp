// Changes CUDA C so that a C++ compiler takes it.
#pragma once

#include <string>

namespace compiler {

struct Scanned {
    std::string text;        // as many lines as before
    bool needs_preprocessor; // directives could hide kernels or shared memory
    bool meets;              // threads of a block can wait for one another
};

// Adds a description after each kernel, and gives shared memory its meaning.
Scanned scan(const std::string& text);

} // namespace compiler
