// Compiles CUDA C to a host library, with the product's compiler.
#pragma once

#include <string>
#include <vector>

namespace compiler {

struct Program {
    std::string text, name;
    std::vector<std::pair<std::string, std::string>> headers; // name and text
    std::vector<std::string> name_expressions;
    std::vector<std::string> options; // with the names that NVRTC or hipRTC uses
    bool hip = false;
    unsigned warp = 32; // threads of a warp
};

struct Compiled {
    bool ok;
    std::string log;
    std::string library;
};

// Safe on any thread, and lock-free. DOUBLE_CACHE names a folder that caches the libraries.
Compiled compile(const Program& program);

} // namespace compiler
