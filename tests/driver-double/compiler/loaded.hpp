// A program's library, loaded in this process.
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

// A kernel, which keeps its library loaded.
struct Code {
    std::shared_ptr<CudaCKernel> kernel;
    std::vector<Parameter> parameters;
    int most_threads;
    size_t static_shared;
};

class Library {
public:
    // Returns null, with the reason, if the compiler did not make the bytes.
    static std::shared_ptr<Library> load(const std::string& bytes, std::string& why);

    // Returns the kernel of a symbol; null if it does not exist.
    std::shared_ptr<const Code> code(const char* symbol) const;

    // Returns the address and size of a variable; null if it does not exist.
    void* variable(const char* name, size_t* bytes) const;

    // Returns the symbol of one of the program's `count` name expressions; empty if it has none.
    std::string lowered(size_t count, size_t index) const;

private:
    std::shared_ptr<CudaCUnit> unit;
};

} // namespace compiler
