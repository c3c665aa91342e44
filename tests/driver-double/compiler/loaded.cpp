#include "loaded.hpp"
#include "sink.hpp"

namespace compiler {

std::shared_ptr<Library> Library::load(const std::string& bytes, std::string& why) {
    CudaCUnit* unit = cuda_c_load(bytes.data(), bytes.size(), into(why));
    if (!unit) return nullptr;
    auto library = std::make_shared<Library>();
    library->unit = {unit, cuda_c_drop_unit};
    return library;
}

std::shared_ptr<const Code> Library::code(const char* symbol) const {
    CudaCKernel* kernel = cuda_c_kernel(unit.get(), symbol);
    if (!kernel) return nullptr;
    auto code = std::make_shared<Code>();
    code->kernel = {kernel, cuda_c_drop_kernel};
    code->most_threads = int(cuda_c_most_threads(kernel));
    code->static_shared = cuda_c_static_shared(kernel);
    Parameter parameter;
    while (cuda_c_parameter(kernel, code->parameters.size(), &parameter.offset, &parameter.bytes)) {
        code->parameters.push_back(parameter);
    }
    return code;
}

void* Library::variable(const char* name, size_t* bytes) const {
    return cuda_c_variable(unit.get(), name, bytes);
}

std::string Library::lowered(size_t count, size_t index) const {
    std::string symbol;
    cuda_c_lowered(unit.get(), count, index, into(symbol));
    return symbol;
}

} // namespace compiler
