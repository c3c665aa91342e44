// CUDA C to a library for the host, by the product's compiler.
#pragma once

#include <string>
#include <vector>

namespace compiler {

struct Program {
    std::string text, name;
    std::vector<std::pair<std::string, std::string>> headers; // name and text
    std::vector<std::string> name_expressions;
    std::vector<std::string> options; // in the words of NVRTC or hipRTC
    bool hip = false;
    unsigned warp = 32; // threads of one
};

struct Compiled {
    bool ok;
    std::string log;
    std::string library;
};

// Safe on any thread, and takes no lock. DOUBLE_CACHE names a folder that keeps the libraries.
Compiled compile(const Program& program);

} // namespace compiler
