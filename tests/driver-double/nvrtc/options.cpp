#include "options.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace nvrtc {
namespace {

// The kinds of values that options take.
enum class Value { None, Any, Bool, Standard, Architecture, Passed, Include };

struct Known {
    const char *name, *brief;
    Value value;
};

constexpr Known KNOWN[] = {
    {"--gpu-architecture", "-arch", Value::Architecture},
    {"--define-macro", "-D", Value::Passed},
    {"--undefine-macro", "-U", Value::Passed},
    {"--include-path", "-I", Value::Passed},
    {"--pre-include", "-include", Value::Include},
    {"--std", "-std", Value::Standard},
    {"--fmad", "-fmad", Value::Bool},
    {"--ftz", "-ftz", Value::Bool},
    {"--prec-sqrt", "-prec-sqrt", Value::Bool},
    {"--prec-div", "-prec-div", Value::Bool},
    {"--relocatable-device-code", "-rdc", Value::Bool},
    {"--modify-stack-limit", "-modify-stack-limit", Value::Bool},
    {"--builtin-move-forward", "-builtin-move-forward", Value::Bool},
    {"--builtin-initializer-list", "-builtin-initializer-list", Value::Bool},
    {"--maxrregcount", "-maxrregcount", Value::Any},
    {"--ptxas-options", "-Xptxas", Value::Any},
    {"--diag-error", "-diag-error", Value::Any},
    {"--diag-suppress", "-diag-suppress", Value::Any},
    {"--diag-warn", "-diag-warn", Value::Any},
    {"--optimization-info", "-opt-info", Value::Any},
    {"--split-compile", "-split-compile", Value::Any},
    {"--use_fast_math", "-use_fast_math", Value::None},
    {"--extra-device-vectorization", "-extra-device-vectorization", Value::None},
    {"--device-debug", "-G", Value::None},
    {"--dopt", "-dopt", Value::Any},
    {"--generate-line-info", "-lineinfo", Value::None},
    {"--device-c", "-dc", Value::None},
    {"--device-w", "-dw", Value::None},
    {"--disable-warnings", "-w", Value::None},
    {"--restrict", "-restrict", Value::None},
    {"--device-as-default-execution-space", "-default-device", Value::None},
    {"--device-int128", "-device-int128", Value::None},
    {"--display-error-number", "-err-no", Value::None},
    {"--no-display-error-number", "-no-err-no", Value::None},
    {"--no-source-include", "-no-source-include", Value::None},
    {"--minimal", "-minimal", Value::None},
    {"--no-cache", "-no-cache", Value::None},
};

// Returns the option that the text begins with, and the value that follows it in the text.
const Known* find(const std::string& text, std::string& value, bool& has_value) {
    for (const Known& it : KNOWN) {
        for (const char* name : {it.name, it.brief}) {
            const size_t length = std::strlen(name);
            if (text.compare(0, length, name) != 0) continue;
            has_value = text.size() > length;
            if (!has_value) return &it;
            const bool equals = text[length] == '=';
            const bool letter = length == 2 && it.value == Value::Passed; // -DNAME
            if (equals || letter) {
                value = text.substr(length + (equals && !letter));
                return &it;
            }
        }
    }
    return nullptr;
}

bool known_architecture(const std::string& text) {
    for (const char* prefix : {"compute_", "sm_", "lto_"}) {
        const size_t length = std::strlen(prefix);
        if (text.compare(0, length, prefix) != 0) continue;
        std::string digits = text.substr(length);
        if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
        for (int number : architectures()) {
            if (digits == std::to_string(number)) return true;
        }
    }
    return false;
}

std::string both(const Known& it) { return std::string(it.name) + " (" + it.brief + ")"; }

// Applies one option's value; returns the error message, if any.
std::string take(const Known& it, const std::string& value, Options& out) {
    const auto among = [&](std::initializer_list<const char*> values) {
        return std::any_of(values.begin(), values.end(), [&](auto v) { return value == v; });
    };
    switch (it.value) {
    case Value::Bool:
        if (!among({"true", "false"})) return both(it) + " expects true or false";
        if (std::strcmp(it.brief, "-fmad") == 0) out.passed.push_back("-fmad=" + value);
        return "";
    case Value::Standard:
        if (!among({"c++03", "c++11", "c++14", "c++17", "c++20"})) {
            return "invalid value for " + both(it);
        }
        out.passed.push_back("-std=" + value);
        return "";
    case Value::Architecture:
        if (!out.architecture.empty()) return both(it) + " defined more than once";
        if (!known_architecture(value)) return "invalid value for " + both(it);
        out.architecture = value;
        return "";
    case Value::Passed: out.passed.push_back(it.brief + value); return "";
    case Value::Include:
        out.passed.push_back("-include");
        out.passed.push_back(value);
        return "";
    default:
        for (const char* passed : {"-w", "-use_fast_math"}) {
            if (std::strcmp(it.brief, passed) == 0) out.passed.push_back(passed);
        }
        return "";
    }
}

std::string trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

} // namespace

const std::vector<int>& architectures() {
    static const std::vector<int>* all = new std::vector<int>{
        50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120};
    return *all;
}

Options read_options(int count, const char* const* options) {
    Options out;
    for (int i = 0; i < count; ++i) {
        const std::string text = trimmed(options[i] ? options[i] : "");
        std::string value;
        bool has_value = false;
        const Known* found = find(text, value, has_value);
        if (!found || (found->value == Value::None && has_value)) {
            out.wrong = "unrecognized option " + text + " found";
            return out;
        }
        if (found->value != Value::None && !has_value) {
            if (i + 1 >= count) {
                out.wrong = both(*found) + " expects a value";
                return out;
            }
            value = trimmed(options[++i]);
        }
        out.wrong = take(*found, value, out);
        if (!out.wrong.empty()) return out;
    }
    if (out.architecture.empty()) out.architecture = "compute_52";
    const size_t digits = out.architecture.find('_') + 1;
    out.passed.push_back("-arch=sm_" + out.architecture.substr(digits));
    return out;
}

} // namespace nvrtc
