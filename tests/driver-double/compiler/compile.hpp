// CUDA C to a library for the host, with the system's C++ compiler.
#pragma once

#include <string>
#include <vector>

namespace compiler {

struct Program {
    std::string text, name;
    std::vector<std::pair<std::string, std::string>> headers; // name and text
    std::vector<std::string> name_expressions;
    std::vector<std::string> options; // for the C++ compiler
    bool hip = false;
    unsigned warp = 32; // threads of one
};

struct Compiled {
    bool ok;
    std::string log;
    std::string library;
};

// Safe on any thread, and takes no lock.
Compiled compile(const Program& program);

// Names of a program's symbols for its name expressions; empty for what is no symbol.
std::vector<std::string> lowered(const std::string& library,
                                 const std::vector<std::string>& name_expressions);

} // namespace compiler
