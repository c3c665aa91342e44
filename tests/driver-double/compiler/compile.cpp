#include "compile.hpp"
#include "sink.hpp"

#include <cstdlib>

namespace compiler {

Compiled compile(const Program& program) {
    std::vector<const char*> options, expressions, names, texts;
    for (const std::string& it : program.options) options.push_back(it.c_str());
    for (const std::string& it : program.name_expressions) expressions.push_back(it.c_str());
    for (const auto& [name, text] : program.headers) {
        names.push_back(name.c_str());
        texts.push_back(text.c_str());
    }
    const char* cache = std::getenv("DOUBLE_CACHE");
    const CudaCProgram source = {
        program.text.c_str(), program.name.c_str(), options.data(),
        options.size(),       expressions.data(),   expressions.size(),
        names.data(),         texts.data(),         names.size(),
        program.warp,         program.hip,          cache && *cache ? cache : nullptr,
    };
    Compiled result = {false, "", ""};
    result.ok = cuda_c_compile(&source, into(result.library), into(result.log)) == CUDA_C_OK;
    return result;
}

} // namespace compiler
