// Loaded modules and their kernels.
#pragma once

#include "compiler/loaded.hpp"
#include "state.hpp"

namespace core {

struct Kernel {
    Ref<Context> context;
    Ref<const compiler::Code> code;
    std::string name;
    int most_dynamic = 0, carveout = -1;
    Handle module = 0;

    size_t static_shared() const { return code->static_shared; }
    int most_threads() const { return code->most_threads; }
};

struct Module {
    Ref<Context> context;
    Ref<compiler::Library> library;
    std::map<std::string, Handle> kernels;   // those that were requested
    std::map<std::string, Ref<Memory>> variables;
};

// Limits of kernels, equal to the device's attributes.
constexpr size_t MOST_SHARED = 49152, MOST_SHARED_OPT_IN = 232448;

// Unloads the modules of a context.
void unload_all(const Ref<Context>& context);

} // namespace core
