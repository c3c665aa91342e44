// The entry of every exported function: it counts and logs the call, and makes it fail if a test
// requests that.
#pragma once

#include "rules.hpp"

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace core {

struct Function {
    const char* name;
    unsigned rule;
    std::atomic<uint64_t> calls{0};
    Function* next;

    Function(const char* name, unsigned rule);
};

// Counts and logs a call. Returns 0, or the status that a test chose for it. A name that starts
// with a dot stands for queued work instead of a call: ".kernel", ".copy".
int note(Function& function, const uint64_t* arguments, unsigned count, const char* text);
int injected(const char* name);

// The function that the thread called last, for messages when the process ends.
extern thread_local const char* called;

// Counts concurrent calls of two threads with an object that they must not share. The first call is
// slow, so that the other overlaps with it.
class Alone {
public:
    explicit Alone(uint64_t object);
    ~Alone();

private:
    uint64_t object;
};

// True if DOUBLE_HIDE lists the function.
bool hidden(const char* name);

template <class T> uint64_t number_of(T value) {
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<uintptr_t>(value);
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
        return uint64_t(value);
    } else {
        return 0;
    }
}

template <class T> void find_text(const char*& text, T value) {
    if constexpr (std::is_same_v<T, const char*>) text = text ? text : value;
}

// Counts and logs a call. Returns `unsupported` if the function is hidden, the status that a test
// chose for it, or 0.
template <class... A> int recorded(Function& function, int unsupported, A... arguments) {
    const uint64_t numbers[] = {number_of(arguments)..., 0};
    const char* text = nullptr;
    called = function.name;
    (find_text(text, arguments), ...);
    const int wanted = note(function, numbers, sizeof...(A), text);
    return hidden(function.name) ? unsupported : wanted;
}

// `Gate` defines the status of an unsupported call, and holds the resources that a call needs while
// it runs:
// `Gate gate(rule); if (gate.status) return gate.status;`
template <class Gate, class Body, class... A>
int call(Function& function, Body body, A... arguments) {
    if (Gate::forked()) return Gate::FORKED;
    const uint64_t numbers[] = {number_of(arguments)..., 0};
    const Alone alone(function.rule & ALONE ? numbers[0] : 0);
    Gate gate(function.rule, recorded(function, Gate::UNSUPPORTED, arguments...));
    return gate.status ? gate.status : body(arguments...);
}

} // namespace core

#define EXPORT extern "C" __attribute__((visibility("default")))
