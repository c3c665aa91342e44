// The functions with which tests control the fake driver: see README.md.
#include "control.hpp"
#include "call.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace core {
namespace {

struct Fault {
    std::string name; // "*": any call
    uint64_t after;
    int status;
    bool once;
};

struct Line {
    const char* name;
    unsigned count;
    uint64_t arguments[12];
    char text[40];
};

constexpr size_t LINES = 256;

// Never destroyed, because calls may come until the very end of the process.
struct Control {
    std::mutex mutex;
    Function* functions = nullptr;
    std::vector<Fault> faults;
    std::deque<Line> lines;
    std::set<std::string> hidden;
    std::atomic<bool> watched{true}; // calls are logged, or some must fail
    bool logged = true;
    std::multiset<uint64_t> alone; // objects of calls that are running
    uint64_t overlaps = 0;

    Control() {
        const char* log = std::getenv("DOUBLE_LOG");
        watched = logged = !log || std::strcmp(log, "0") != 0;

        const char* list = std::getenv("DOUBLE_HIDE");
        std::string names = list ? list : "";
        for (size_t begin = 0; begin < names.size();) {
            const size_t end = std::min(names.find(',', begin), names.size());
            hidden.insert(names.substr(begin, end - begin));
            begin = end + 1;
        }
        // A forked child must not find the lock held by a thread that it does not have.
        pthread_atfork([] { control().mutex.lock(); }, [] { control().mutex.unlock(); },
                       [] { control().mutex.unlock(); });
    }
    static Control& control() {
        static Control* it = new Control;
        return *it;
    }
};

Control& control() { return Control::control(); }

int injected_locked(Control& it, const char* name) {
    for (size_t i = 0; i < it.faults.size(); ++i) {
        Fault& fault = it.faults[i];
        const bool any = fault.name == "*" && name[0] != '.';
        if (!any && fault.name != name) continue;
        if (fault.after > 0) {
            --fault.after;
            continue;
        }
        const int status = fault.status;
        if (fault.once) it.faults.erase(it.faults.begin() + long(i));
        return status;
    }
    return 0;
}

} // namespace

Function::Function(const char* name, unsigned rule) : name(name), rule(rule) {
    std::lock_guard<std::mutex> lock(control().mutex);
    next = control().functions;
    control().functions = this;
}

thread_local const char* called = "";

int note(Function& function, const uint64_t* arguments, unsigned count, const char* text) {
    function.calls.fetch_add(1, std::memory_order_relaxed);
    if (!control().watched.load(std::memory_order_acquire)) return 0;
    Line line = {function.name, count, {}, ""};
    std::memcpy(line.arguments, arguments, count * sizeof *arguments);
    if (text) std::snprintf(line.text, sizeof line.text, "%s", text);
    Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    if (it.logged) {
        if (it.lines.size() >= LINES) it.lines.pop_front();
        it.lines.push_back(line);
    }
    return it.faults.empty() ? 0 : injected_locked(it, function.name);
}

int injected(const char* name) {
    Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    return it.faults.empty() ? 0 : injected_locked(it, name);
}

Alone::Alone(uint64_t object) : object(object) {
    if (!object) return;
    {
        Control& it = control();
        std::lock_guard<std::mutex> lock(it.mutex);
        if (it.alone.count(object) != 0) ++it.overlaps;
        it.alone.insert(object);
    }
    usleep(200);
}

Alone::~Alone() {
    if (!object) return;
    Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    it.alone.erase(it.alone.find(object));
}

bool hidden(const char* name) {
    const std::set<std::string>& names = control().hidden; // constant after initialisation
    return !names.empty() && names.count(name) != 0;
}

} // namespace core

using core::control;

EXPORT uint64_t double_calls(const char* name) {
    core::Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    const bool all = std::strcmp(name, "*") == 0;
    uint64_t total = 0;
    for (core::Function* function = it.functions; function; function = function->next) {
        if (all || std::strcmp(function->name, name) == 0) total += function->calls;
    }
    return total;
}

EXPORT void double_reset_calls() {
    core::Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    for (core::Function* function = it.functions; function; function = function->next) {
        function->calls = 0;
    }
    it.lines.clear();
}

EXPORT void double_fail(const char* name, uint64_t after, int status, int once) {
    core::Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    std::vector<core::Fault> kept;
    for (core::Fault& fault : it.faults) {
        if (name && fault.name != name) kept.push_back(fault);
    }
    it.faults = kept;
    if (name && status != 0) it.faults.push_back({name, after, status, once != 0});
    it.watched = it.logged || !it.faults.empty();
}

EXPORT size_t double_log(char* text, size_t size) {
    core::Control& it = control();
    std::lock_guard<std::mutex> lock(it.mutex);
    std::string all;
    for (const core::Line& line : it.lines) {
        all += line.name;
        all += '(';
        for (unsigned i = 0; i < line.count; ++i) {
            char number[24];
            const bool address = line.arguments[i] > 0xffffffu;
            std::snprintf(number, sizeof number, address ? "%s0x%llx" : "%s%llu", i ? ", " : "",
                          (unsigned long long)line.arguments[i]);
            all += number;
        }
        all += ')';
        if (line.text[0]) all += std::string(" ") + line.text;
        all += '\n';
    }
    if (text && size > 0) {
        // As many of the last lines as fit, without partial lines.
        size_t skip = all.size() < size ? 0 : all.size() - size + 1;
        if (skip > 0) skip = all.find('\n', skip - 1) + 1;
        std::memcpy(text, all.c_str() + skip, all.size() - skip + 1);
    }
    return all.size();
}

EXPORT uint64_t double_live(const char* kind) {
    core::Control& it = control();
    if (std::strcmp(kind, "overlaps") == 0) {
        std::lock_guard<std::mutex> lock(it.mutex);
        return it.overlaps;
    }
    return core::live(kind);
}
