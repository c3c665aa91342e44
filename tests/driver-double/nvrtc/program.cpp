#include "program.hpp"
#include "compiler/image.hpp"
#include "compiler/loaded.hpp"

#include <algorithm>
#include <cstring>

namespace nvrtc {
namespace {

struct Programs {
    std::mutex mutex;
    uint64_t next = uint64_t(0x5a) << 40;
    std::map<uint64_t, std::shared_ptr<Program>> all;
};

Programs& programs() {
    static Programs* it = new Programs;
    return *it;
}

// Converts `name:3: error:` to NVRTC's `name(3): error:`.
std::string numbered_log(const std::string& log, const std::string& name) {
    std::string out;
    for (size_t begin = 0; begin < log.size();) {
        const size_t end = std::min(log.find('\n', begin), log.size() - 1) + 1;
        std::string line = log.substr(begin, end - begin);
        begin = end;
        const size_t digits = name.size() + 1;
        const size_t after = line.find_first_not_of("0123456789", digits);
        if (line.compare(0, digits, name + ":") == 0 && after != digits && line[after] == ':') {
            line = name + "(" + line.substr(digits, after - digits) + ")" + line.substr(after);
        }
        out += line;
    }
    return out;
}

} // namespace

std::shared_ptr<Program> find_program(uint64_t handle) {
    Programs& it = programs();
    std::lock_guard<std::mutex> lock(it.mutex);
    const auto found = it.all.find(handle);
    return found == it.all.end() ? nullptr : found->second;
}

uint64_t live_programs() {
    Programs& it = programs();
    std::lock_guard<std::mutex> lock(it.mutex);
    return it.all.size();
}

int create(uint64_t* handle, const char* text, const char* name, int count,
           const char* const* headers, const char* const* names) {
    if (!handle) return INVALID_PROGRAM;
    if (!text || count < 0 || (count > 0 && (!headers || !names))) return INVALID_INPUT;
    auto program = std::make_shared<Program>();
    program->source.text = text;
    program->source.name = name && *name ? name : "default_program";
    for (int i = 0; i < count; ++i) {
        if (!headers[i] || !names[i]) return INVALID_INPUT;
        const std::string header = names[i];
        const bool outside = header.empty() || header[0] == '/' ||
                             header.find("..") != std::string::npos;
        if (outside) return PROGRAM_CREATION_FAILURE;
        program->source.headers.emplace_back(header, headers[i]);
    }
    Programs& it = programs();
    std::lock_guard<std::mutex> lock(it.mutex);
    it.next += 16;
    it.all[it.next] = program;
    *handle = it.next;
    return 0;
}

int destroy(uint64_t* handle) {
    if (!handle) return INVALID_PROGRAM;
    Programs& it = programs();
    std::lock_guard<std::mutex> lock(it.mutex);
    if (it.all.erase(*handle) == 0) return INVALID_PROGRAM;
    *handle = 0;
    return 0;
}

int compile(Program& program, const std::string& architecture, bool with_code, bool numbered) {
    program.code.clear();
    program.ptx.clear();
    program.lowered.clear();
    const compiler::Compiled result = compiler::compile(program.source);
    program.compiled = true;
    program.log = numbered ? numbered_log(result.log, program.source.name) : result.log;
    if (!result.ok) return COMPILATION;
    const std::string image = compiler::sealed(result.library, architecture);
    if (with_code) program.code = image;
    program.ptx = compiler::as_ptx(image, architecture);
    const auto& expressions = program.source.name_expressions;
    if (expressions.empty()) return 0;
    const auto loaded = compiler::Library::load(result.library, program.log);
    if (!loaded) return INTERNAL_ERROR;
    for (size_t i = 0; i < expressions.size(); ++i) {
        program.lowered[expressions[i]] = loaded->lowered(expressions.size(), i);
    }
    return 0;
}

int add_name(uint64_t handle, const char* expression) {
    const auto program = find_program(handle);
    if (!program) return INVALID_PROGRAM;
    if (!expression) return INVALID_INPUT;
    std::lock_guard<std::mutex> lock(program->mutex);
    if (program->compiled) return NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    program->source.name_expressions.push_back(expression);
    return 0;
}

int lowered_name(uint64_t handle, const char* expression, const char** name) {
    const auto program = find_program(handle);
    if (!program) return INVALID_PROGRAM;
    if (!expression || !name) return INVALID_INPUT;
    std::lock_guard<std::mutex> lock(program->mutex);
    if (program->ptx.empty()) return NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const auto found = program->lowered.find(expression);
    if (found == program->lowered.end() || found->second.empty()) return NAME_EXPRESSION_NOT_VALID;
    *name = found->second.c_str();
    return 0;
}

int size_of(uint64_t handle, std::string Program::*text, bool zero, size_t* bytes) {
    const auto program = find_program(handle);
    if (!program) return INVALID_PROGRAM;
    if (!bytes) return INVALID_INPUT;
    std::lock_guard<std::mutex> lock(program->mutex);
    *bytes = ((*program).*text).size() + zero;
    return 0;
}

int copy_of(uint64_t handle, std::string Program::*text, bool zero, char* to) {
    const auto program = find_program(handle);
    if (!program) return INVALID_PROGRAM;
    if (!to) return INVALID_INPUT;
    std::lock_guard<std::mutex> lock(program->mutex);
    const std::string& from = (*program).*text;
    std::memcpy(to, from.c_str(), from.size() + zero);
    return 0;
}

} // namespace nvrtc
