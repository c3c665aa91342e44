// Loaded programs and their kernels.
#pragma once

#include "compiler/loaded.hpp"
#include "state.hpp"

namespace core {

struct Kernel {
    Ref<Context> context;
    Ref<compiler::Library> library; // keeps the code while a launch is queued
    std::string name;
    const compiler::Entry* entry = nullptr;
    size_t static_shared = 0;
    int most_dynamic = 0, carveout = -1;
    Handle module = 0;

    int most_threads() const;
    size_t offset(unsigned parameter) const; // one past the last: bytes of all
    size_t size(unsigned parameter) const { return entry->layout[parameter]; }
};

struct Module {
    Ref<Context> context;
    Ref<compiler::Library> library;
    std::map<std::string, Handle> kernels;   // those asked for
    std::map<std::string, Ref<Memory>> variables;
};

// Kernels' limits, as the attributes of the device say.
constexpr int MOST_THREADS = 1024;
constexpr size_t MOST_SHARED = 49152, MOST_SHARED_OPT_IN = 232448;

// Unloads what belongs to a context.
void unload_all(const Ref<Context>& context);

struct Grid {
    compiler::Index blocks, threads;
    unsigned shared;
};

// Runs a kernel on the calling thread, block by block; the status that it ends with.
int run_grid(const compiler::Library& library, const compiler::Entry& entry, const Grid& grid,
             void** arguments, const std::string& name);

} // namespace core
