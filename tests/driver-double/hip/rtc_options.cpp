#include "rtc_options.hpp"

#include <algorithm>

namespace hip {
namespace {

bool begins(const std::string& text, const std::string& prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

// Returns true for options of code generation, most of which the fake compiler ignores.
bool is_code_option(const std::string& text) {
    static const char* const KNOWN[] = {
        "-O0", "-O1", "-O2", "-O3", "-Os", "-g", "-fgpu-rdc", "-fno-gpu-rdc", "-mcumode",
        "-mno-cumode", "-mwavefrontsize64", "-munsafe-fp-atomics", "-fgpu-flush-denormals-to-zero",
        "-fno-gpu-flush-denormals-to-zero", "-gline-tables-only", "-fno-finite-math-only",
        "-ffast-math", "-fno-fast-math", "-ffp-contract=on", "-ffp-contract=fast",
        "-ffp-contract=off", "-ffp-contract=fast-honor-pragmas",
    };
    return std::find(std::begin(KNOWN), std::end(KNOWN), text) != std::end(KNOWN);
}

} // namespace

RtcOptions read_rtc_options(int count, const char* const* options) {
    RtcOptions out;
    const auto both = [&](const std::string& text) {
        out.passed.push_back(text);
        out.nvrtc.push_back(text);
    };
    for (int i = 0; i < count; ++i) {
        const std::string text = options[i] ? options[i] : "";
        const bool takes_value = text == "-D" || text == "-U" || text == "-I" ||
                                 text == "-include";
        if (takes_value) {
            if (i + 1 >= count) {
                out.wrong = "argument to '" + text + "' is missing (expected 1 value)";
                return out;
            }
            both(text);
            both(options[++i]);
        } else if (begins(text, "-D") || begins(text, "-U") || begins(text, "-I") ||
                   text == "-w") {
            both(text);
        } else if (begins(text, "-W")) {
            out.passed.push_back(text);
        } else if (begins(text, "-std=")) {
            out.passed.push_back(text);
            out.nvrtc.push_back(begins(text, "-std=gnu") ? "-std=c" + text.substr(8) : text);
        } else if (begins(text, "--offload-arch=") || begins(text, "--gpu-architecture=")) {
            out.target = text.substr(text.find('=') + 1);
        } else if (text == "-Xclang" && i + 1 < count &&
                   std::string(options[i + 1]) == "-no-enable-noundef-analysis") {
            ++i; // the fake compiler uses the same value
        } else if (is_code_option(text)) {
            if (text == "-ffp-contract=off") {
                out.passed.push_back(text);
                out.nvrtc.push_back("--fmad=false");
            }
            if (text == "-ffast-math") {
                out.passed.push_back(text);
                out.nvrtc.push_back("--use_fast_math");
            }
            if (text == "-gline-tables-only") out.nvrtc.push_back("--generate-line-info");
        } else {
            if (out.wrong.empty()) out.wrong = "unknown argument: '" + text + "'";
            out.nvrtc.push_back(text); // NVRTC reports the error itself
        }
    }
    return out;
}

} // namespace hip
