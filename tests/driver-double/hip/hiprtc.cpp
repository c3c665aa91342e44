// hipRTC: the fake compiler or, if DOUBLE_FORWARD names a libcuda, the NVRTC in the file that DOUBLE_NVRTC
// names. With DOUBLE_HIPRTC, the real hipRTC in that file also compiles each program: its errors refuse
// the program, and its warnings are added to the log.
#include "core/call.hpp"
#include "hip_api.hpp" // made by declare.py
#include "nvrtc/functions.hpp"
#include "nvrtc/program.hpp"
#include "rtc_options.hpp"
#include "target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>

namespace {

struct Nvrtc {
#define MEMBER(name, parameters, arguments) int(*name) parameters;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
};

// Finds a function of a library; does nothing after a previous failure.
template <class F> void find(void* library, bool& complete, F& member, const char* name) {
    void* symbol = complete ? dlsym(library, name) : nullptr;
    complete = symbol != nullptr;
    member = reinterpret_cast<F>(symbol);
}

// Returns the real compiler, or null for the fake one.
const Nvrtc* real() {
    static Nvrtc all = {};
    static const bool loaded = [] {
        const char* path = std::getenv("DOUBLE_NVRTC");
        void* library = dlopen(path && *path ? path : "libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) std::fprintf(stderr, "driver double: DOUBLE_NVRTC: %s\n", dlerror());
        bool complete = library != nullptr;
#define FIND(name, parameters, arguments) find(library, complete, all.name, #name);
        NVRTC_FUNCTIONS(FIND)
        if (!complete) std::abort(); // a user has set it, and only for this purpose
        return complete;
    }();
    return loaded ? &all : nullptr;
}

const Nvrtc* forwarded() { return hip::forwarded() ? real() : nullptr; }

uint64_t at(hiprtcProgram program) { return reinterpret_cast<uintptr_t>(program); }
uint64_t* out(hiprtcProgram* program) { return reinterpret_cast<uint64_t*>(program); }

// Programs whose variables are device variables: clang uses a pragma, NVRTC an option.
std::set<uint64_t>& of_device() {
    static auto* it = new std::set<uint64_t>;
    return *it;
}
std::mutex& mutex() {
    static auto* it = new std::mutex;
    return *it;
}

int compile_forwarded(const Nvrtc& nvrtc, uint64_t program, const hip::RtcOptions& read) {
    // NVRTC refuses architectures other than its own, as hipRTC does.
    const std::string known = hip::forwarded_architecture(read.target);
    const std::string architecture = known.empty() ? read.target : known;
    std::vector<const char*> options;
    const std::string first = "-arch=" + architecture;
    options.push_back(first.c_str());
    for (const std::string& option : read.nvrtc) options.push_back(option.c_str());
    {
        std::lock_guard<std::mutex> lock(mutex());
        if (of_device().count(program)) options.push_back("--device-as-default-execution-space");
    }
    return nvrtc.nvrtcCompileProgram(program, int(options.size()), options.data());
}

// The real hipRTC in addition to the fake one; null if it is not set or the loader cannot open it.
struct Hiprtc {
    decltype(&::hiprtcCreateProgram) create;
    decltype(&::hiprtcDestroyProgram) destroy;
    decltype(&::hiprtcAddNameExpression) add_name;
    decltype(&::hiprtcCompileProgram) compile;
    decltype(&::hiprtcGetProgramLogSize) log_size;
    decltype(&::hiprtcGetProgramLog) log;
};

const Hiprtc* beside() {
    static Hiprtc all = {};
    static const bool loaded = [] {
        const char* path = std::getenv("DOUBLE_HIPRTC");
        void* library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr;
        if (path && *path && !library) std::fprintf(stderr, "driver double: %s\n", dlerror());
        bool complete = library != nullptr;
        find(library, complete, all.create, "hiprtcCreateProgram");
        find(library, complete, all.destroy, "hiprtcDestroyProgram");
        find(library, complete, all.add_name, "hiprtcAddNameExpression");
        find(library, complete, all.compile, "hiprtcCompileProgram");
        find(library, complete, all.log_size, "hiprtcGetProgramLogSize");
        find(library, complete, all.log, "hiprtcGetProgramLog");
        return complete;
    }();
    return loaded ? &all : nullptr;
}

// Compiles a program with the real hipRTC as well; returns the status, and appends to the log.
int compile_beside(const Hiprtc& real, const compiler::Program& source, int count,
                   const char** options, std::string& log) {
    std::vector<const char*> headers, names;
    for (const auto& [name, text] : source.headers) {
        names.push_back(name.c_str());
        headers.push_back(text.c_str());
    }
    hiprtcProgram program = nullptr;
    int status = real.create(&program, source.text.c_str(), "CompileSource", int(headers.size()),
                             headers.data(), names.data());
    if (status != 0) return status;
    for (const std::string& name : source.name_expressions) {
        if (status == 0) status = real.add_name(program, name.c_str());
    }
    if (status == 0) status = real.compile(program, count, options);
    size_t size = 0;
    if (real.log_size(program, &size) == 0 && size > 1) {
        std::string said(size, 0);
        real.log(program, said.data());
        said.resize(size - 1);
        log += said;
    }
    real.destroy(&program);
    return status;
}

int compile_here(uint64_t handle, const hip::RtcOptions& read, int count, const char** options) {
    const auto program = nvrtc::find_program(handle);
    if (!program) return HIPRTC_ERROR_INVALID_PROGRAM;
    std::lock_guard<std::mutex> lock(program->mutex);
    program->log.clear();
    if (read.target.empty()) return HIPRTC_ERROR_COMPILATION; // with an empty log, like hipRTC
    if (!read.wrong.empty() || !hip::is_target(read.target)) {
        const std::string wrong =
            read.wrong.empty() ? "invalid target ID '" + read.target + "'" : read.wrong;
        program->log = "error: " + wrong + "\n";
        return HIPRTC_ERROR_COMPILATION;
    }
    program->source.hip = true;
    program->source.warp = hip::wavefront(read.target);
    // The name that hipRTC uses for the text in its log.
    program->source.name = "/tmp/comgr-d0b1e5/input/CompileSource";
    program->source.options = read.passed;
    const int status = nvrtc::compile(*program, read.target, true, false);
    const Hiprtc* real = status == 0 ? beside() : nullptr;
    return real ? compile_beside(*real, program->source, count, options, program->log) : status;
}

} // namespace

#define RTC(name, parameters, arguments)                                                     \
    static int body_##name parameters;                                                       \
    static core::Function function_##name(#name, 0);                                         \
    template <class... A> static hiprtcResult call_##name(A... values) {                     \
        const int wanted =                                                                   \
            core::recorded(function_##name, HIPRTC_ERROR_INTERNAL_ERROR, values...);         \
        return hiprtcResult(wanted != 0 ? wanted : body_##name(values...));                  \
    }                                                                                        \
    EXPORT hiprtcResult name parameters { return call_##name arguments; }                    \
    static int body_##name parameters

RTC(hiprtcVersion, (int* major, int* minor), (major, minor)) {
    if (!major || !minor) return HIPRTC_ERROR_INVALID_INPUT;
    *major = 9; // in every generation
    *minor = 0;
    return 0;
}

RTC(hiprtcCreateProgram,
    (hiprtcProgram * program, const char* text, const char* name, int count, const char** headers,
     const char** names),
    (program, text, name, count, headers, names)) {
    const Nvrtc* nvrtc = forwarded();
    if (!nvrtc) return nvrtc::create(out(program), text, name, count, headers, names);
    const int status = nvrtc->nvrtcCreateProgram(out(program), text, name, count, headers, names);
    std::lock_guard<std::mutex> lock(mutex());
    const bool asks = status == 0 && text &&
                      std::strstr(text, "#pragma clang attribute push(__attribute__((device))");
    if (status == 0) of_device().erase(at(*program)); // left by another program at the same address
    if (asks) of_device().insert(at(*program));
    return status;
}

RTC(hiprtcDestroyProgram, (hiprtcProgram * program), (program)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcDestroyProgram(out(program)) : nvrtc::destroy(out(program));
}

RTC(hiprtcCompileProgram, (hiprtcProgram program, int count, const char** options),
    (program, count, options)) {
    if (count < 0 || (count > 0 && !options)) return HIPRTC_ERROR_INVALID_INPUT;
    const hip::RtcOptions read = hip::read_rtc_options(count, options);
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? compile_forwarded(*nvrtc, at(program), read)
                 : compile_here(at(program), read, count, options);
}

RTC(hiprtcAddNameExpression, (hiprtcProgram program, const char* expression),
    (program, expression)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcAddNameExpression(at(program), expression)
                 : nvrtc::add_name(at(program), expression);
}

RTC(hiprtcGetLoweredName, (hiprtcProgram program, const char* expression, const char** name),
    (program, expression, name)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcGetLoweredName(at(program), expression, name)
                 : nvrtc::lowered_name(at(program), expression, name);
}

RTC(hiprtcGetProgramLogSize, (hiprtcProgram program, size_t* bytes), (program, bytes)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcGetProgramLogSize(at(program), bytes)
                 : nvrtc::size_of(at(program), &nvrtc::Program::log, true, bytes);
}

RTC(hiprtcGetProgramLog, (hiprtcProgram program, char* log), (program, log)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcGetProgramLog(at(program), log)
                 : nvrtc::copy_of(at(program), &nvrtc::Program::log, true, log);
}

RTC(hiprtcGetCodeSize, (hiprtcProgram program, size_t* bytes), (program, bytes)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcGetCUBINSize(at(program), bytes)
                 : nvrtc::size_of(at(program), &nvrtc::Program::code, false, bytes);
}

RTC(hiprtcGetCode, (hiprtcProgram program, char* code), (program, code)) {
    const Nvrtc* nvrtc = forwarded();
    return nvrtc ? nvrtc->nvrtcGetCUBIN(at(program), code)
                 : nvrtc::copy_of(at(program), &nvrtc::Program::code, false, code);
}

EXPORT const char* hiprtcGetErrorString(hiprtcResult status) {
    struct Named {
        hiprtcResult status;
        const char* name;
    };
#define NAMED(name) {name, #name},
    static constexpr Named NAMES[] = {EACH_hiprtcResult(NAMED)};
    const auto found = std::find_if(std::begin(NAMES), std::end(NAMES),
                                    [&](const Named& it) { return it.status == status; });
    return found == std::end(NAMES) ? "Invalid HIPRTC error code" : found->name;
}
