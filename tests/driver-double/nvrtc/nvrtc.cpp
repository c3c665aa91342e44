// The functions of NVRTC.
#include "functions.hpp"
#include "options.hpp"
#include "program.hpp"

#include <algorithm>

namespace nvrtc {

int nvrtcVersion(int* major, int* minor) {
    if (!major || !minor) return INVALID_INPUT;
    *major = 12;
    *minor = 8;
    return 0;
}

const char* nvrtcGetErrorString(int status) {
    constexpr const char* NAMES[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
        "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
    };
    constexpr int COUNT = sizeof NAMES / sizeof *NAMES;
    return status >= 0 && status < COUNT ? NAMES[status] : "NVRTC_ERROR unknown";
}

int nvrtcCreateProgram(ProgramHandle* program, const char* text, const char* name, int count,
                       const char* const* headers, const char* const* names) {
    return create(program, text, name, count, headers, names);
}

int nvrtcDestroyProgram(ProgramHandle* program) { return destroy(program); }

int nvrtcCompileProgram(ProgramHandle handle, int count, const char* const* texts) {
    const auto program = find_program(handle);
    if (!program) return INVALID_PROGRAM;
    if (count < 0 || (count > 0 && !texts)) return INVALID_INPUT;
    std::lock_guard<std::mutex> lock(program->mutex);
    const Options options = read_options(count, texts);
    if (!options.wrong.empty()) {
        program->log = "nvrtc: error: " + options.wrong + "\n";
        return INVALID_OPTION;
    }
    program->source.options = options.passed;
    const bool with_code = options.architecture.compare(0, 3, "sm_") == 0;
    return compile(*program, options.architecture, with_code, true);
}

int nvrtcGetPTXSize(ProgramHandle program, size_t* bytes) {
    return size_of(program, &Program::ptx, true, bytes);
}

int nvrtcGetPTX(ProgramHandle program, char* ptx) {
    return copy_of(program, &Program::ptx, true, ptx);
}

int nvrtcGetCUBINSize(ProgramHandle program, size_t* bytes) {
    return size_of(program, &Program::code, false, bytes);
}

int nvrtcGetCUBIN(ProgramHandle program, char* cubin) {
    return copy_of(program, &Program::code, false, cubin);
}

int nvrtcGetProgramLogSize(ProgramHandle program, size_t* bytes) {
    return size_of(program, &Program::log, true, bytes);
}

int nvrtcGetProgramLog(ProgramHandle program, char* log) {
    return copy_of(program, &Program::log, true, log);
}

int nvrtcGetNumSupportedArchs(int* count) {
    if (!count) return INVALID_INPUT;
    *count = int(architectures().size());
    return 0;
}

int nvrtcGetSupportedArchs(int* out) {
    if (!out) return INVALID_INPUT;
    std::copy(architectures().begin(), architectures().end(), out);
    return 0;
}

int nvrtcAddNameExpression(ProgramHandle program, const char* expression) {
    return add_name(program, expression);
}

int nvrtcGetLoweredName(ProgramHandle program, const char* expression, const char** name) {
    return lowered_name(program, expression, name);
}

} // namespace nvrtc
