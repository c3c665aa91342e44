// The list of NVRTC's functions in the fake library.
#pragma once

#include <cstddef>
#include <cstdint>

using ProgramHandle = uint64_t;

// clang-format off
#define NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion, (int* major, int* minor), (major, minor)) \
    X(nvrtcCreateProgram, (ProgramHandle* program, const char* text, const char* name, int count, const char* const* headers, const char* const* names), (program, text, name, count, headers, names)) \
    X(nvrtcDestroyProgram, (ProgramHandle* program), (program)) \
    X(nvrtcCompileProgram, (ProgramHandle program, int count, const char* const* options), (program, count, options)) \
    X(nvrtcGetPTXSize, (ProgramHandle program, size_t* bytes), (program, bytes)) \
    X(nvrtcGetPTX, (ProgramHandle program, char* ptx), (program, ptx)) \
    X(nvrtcGetCUBINSize, (ProgramHandle program, size_t* bytes), (program, bytes)) \
    X(nvrtcGetCUBIN, (ProgramHandle program, char* cubin), (program, cubin)) \
    X(nvrtcGetProgramLogSize, (ProgramHandle program, size_t* bytes), (program, bytes)) \
    X(nvrtcGetProgramLog, (ProgramHandle program, char* log), (program, log)) \
    X(nvrtcGetNumSupportedArchs, (int* count), (count)) \
    X(nvrtcGetSupportedArchs, (int* architectures), (architectures)) \
    X(nvrtcAddNameExpression, (ProgramHandle program, const char* expression), (program, expression)) \
    X(nvrtcGetLoweredName, (ProgramHandle program, const char* expression, const char** name), (program, expression, name))
// clang-format on

namespace nvrtc {
#define DECLARE(name, parameters, arguments) int name parameters;
NVRTC_FUNCTIONS(DECLARE)
#undef DECLARE
const char* nvrtcGetErrorString(int status);
} // namespace nvrtc
