// Collects texts from the product's compiler.
#pragma once

#include "cuda-c/cuda_c.h"

#include <string>

namespace compiler {

// Returns a sink that appends to the text.
inline CudaCSink into(std::string& text) {
    return {&text, [](void* to, const char* bytes, size_t count) {
                static_cast<std::string*>(to)->append(bytes, count);
            }};
}

} // namespace compiler
