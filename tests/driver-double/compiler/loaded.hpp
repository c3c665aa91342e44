// A program's library in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace compiler {

// These types are those of shim.h.
struct Entry {
    const char* name;
    void (*function)();
    void (*invoke)(void (*)(), void**);
    const unsigned short* layout;
    unsigned parameters;
    int most_threads;
    int index;
    const Entry* next;
};

struct Extent {
    long index;
    unsigned long bytes;
};

struct Index {
    unsigned x, y, z;
};

struct Module {
    char stamp[64];
    Index *thread, *block, *block_size, *grid_size;
    char* shared;
    const Extent *extents, *extents_end;
    const Entry* entries;
    unsigned long serial;
    void (*barrier)(int warp);
    void (*trap)(int status);
};

class Library {
public:
    // Null, with the reason, if the loader refuses it.
    static std::shared_ptr<Library> load(const std::string& bytes, std::string& why);
    ~Library();
    Library(const Library&) = delete;

    Module* module;

    // The symbol of an entry's function, or its name in the text if it has none.
    std::string symbol(const Entry& entry) const;

    // Address and bytes of a variable; null if there is none.
    void* variable(const char* name, size_t* bytes) const;

private:
    Library() = default;
    void* handle;
};

} // namespace compiler
