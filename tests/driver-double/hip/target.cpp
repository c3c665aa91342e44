#include "target.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

namespace hip {
namespace {

constexpr const char* FORWARDED = "gfx-sm";

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(':', begin), text.size());
        out.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

const char* setting(const char* name) {
    const char* text = std::getenv(name);
    return text && *text ? text : nullptr;
}

} // namespace

const char* forwarded() {
    static const char* path = setting("DOUBLE_FORWARD");
    return path;
}

std::string double_target() {
    const char* text = setting("DOUBLE_TARGET");
    return text ? text : "gfx90a:sramecc+:xnack-";
}

std::string forwarded_target(int major, int minor) {
    return FORWARDED + std::to_string(major * 10 + minor);
}

std::string forwarded_architecture(const std::string& target) {
    const std::string prefix = FORWARDED;
    return target.compare(0, prefix.size(), prefix) == 0 ? "sm_" + target.substr(prefix.size())
                                                         : "";
}

bool is_target(const std::string& text) {
    const std::vector<std::string> parts = split(text);
    const std::string& name = parts[0];
    const bool named = name.size() > 3 && name.compare(0, 3, "gfx") == 0 &&
                       std::all_of(name.begin() + 3, name.end(), [](unsigned char letter) {
                           return std::isdigit(letter) || (letter >= 'a' && letter <= 'f');
                       });
    return named && std::all_of(parts.begin() + 1, parts.end(), [](const std::string& feature) {
               return feature == "xnack+" || feature == "xnack-" || feature == "sramecc+" ||
                      feature == "sramecc-";
           });
}

unsigned wavefront(const std::string& target) {
    const std::string name = split(target)[0];
    return name.size() > 6 && name.compare(3, 1, "1") == 0 ? 32 : 64;
}

bool runs_on(const std::string& code, const std::string& device) {
    const std::vector<std::string> wanted = split(code), has = split(device);
    return wanted[0] == has[0] && std::all_of(wanted.begin() + 1, wanted.end(), [&](auto& it) {
               return std::find(has.begin() + 1, has.end(), it) != has.end();
           });
}

} // namespace hip
