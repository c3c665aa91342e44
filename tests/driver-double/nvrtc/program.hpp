// Programs of a run-time compiler, which NVRTC and hipRTC share.
#pragma once

#include "compiler/compile.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace nvrtc {

enum Result {
    PROGRAM_CREATION_FAILURE = 2,
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
    NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    NAME_EXPRESSION_NOT_VALID = 10,
    INTERNAL_ERROR = 11,
};

struct Program {
    std::mutex mutex; // a compilation takes long, and must not block other programs
    compiler::Program source;
    bool compiled = false;
    std::string log, code, ptx; // code is empty for a virtual architecture
    std::map<std::string, std::string> lowered;
};

std::shared_ptr<Program> find_program(uint64_t handle);

int create(uint64_t* handle, const char* text, const char* name, int count,
           const char* const* headers, const char* const* names);
int destroy(uint64_t* handle);

// Compiles the program for an architecture. If `numbered`, errors read `name(line): `.
int compile(Program& program, const std::string& architecture, bool with_code, bool numbered);

int add_name(uint64_t handle, const char* expression);
int lowered_name(uint64_t handle, const char* expression, const char** name);

// Returns one of the program's texts, with or without its terminating zero.
int size_of(uint64_t handle, std::string Program::*text, bool zero, size_t* bytes);
int copy_of(uint64_t handle, std::string Program::*text, bool zero, char* to);

uint64_t live_programs();

} // namespace nvrtc
