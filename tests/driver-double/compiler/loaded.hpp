// A program's library in this process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct CudaCKernel;
struct CudaCUnit;

namespace compiler {

// Sizes and positions along x, y and z.
struct Index {
    unsigned x, y, z;
};

struct Parameter {
    size_t offset, bytes;
};

// A kernel, which keeps its code.
struct Code {
    std::shared_ptr<CudaCKernel> kernel;
    std::vector<Parameter> parameters;
    int most_threads;
    size_t static_shared;
};

class Library {
public:
    // Null, with the reason, if the bytes are no library that the compiler made.
    static std::shared_ptr<Library> load(const std::string& bytes, std::string& why);

    // The kernel of a symbol; null if there is none.
    std::shared_ptr<const Code> code(const char* symbol) const;

    // Address and bytes of a variable; null if there is none.
    void* variable(const char* name, size_t* bytes) const;

    // The symbol of one of the `count` name expressions of the program; empty if it has none.
    std::string lowered(size_t count, size_t index) const;

private:
    std::shared_ptr<CudaCUnit> unit;
};

} // namespace compiler
