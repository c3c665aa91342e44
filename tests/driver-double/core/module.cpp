#include "module.hpp"
#include "compiler/image.hpp"
#include "functions.hpp"
#include "link.hpp"
#include "memory.hpp"
#include "vendor.hpp"
#include "work.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

namespace core {
namespace {

// The numbers of CUjit_option that the fake driver supports.
enum Option { INFO_LOG = 3, INFO_LOG_BYTES, ERROR_LOG, ERROR_LOG_BYTES, LAST_OPTION = 40 };

// Writes text to a log buffer of the caller, and the text's length to the option with the size.
void fill_log(const std::string& text, int buffer, int size, unsigned count, const int* options,
              void** values) {
    char* target = nullptr;
    size_t room = 0;
    void** where = nullptr;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == buffer) target = static_cast<char*>(values[i]);
        if (options[i] == size) {
            room = reinterpret_cast<uintptr_t>(values[i]) & 0xffffffffu;
            where = &values[i];
        }
    }
    size_t written = 0;
    if (target && room > 0) {
        written = std::min(text.size(), room - 1);
        std::memcpy(target, text.data(), written);
        target[written] = '\0';
    }
    if (where) *where = reinterpret_cast<void*>(written);
}

int load(Handle* handle, const compiler::Image& image, std::string& log) {
    log = image.log;
    if (image.status != 0) return image.status;
    if (!VENDOR.fits(image.architecture)) {
        log = "code for " + image.architecture + " does not run on the device";
        return NO_BINARY_FOR_GPU;
    }
    auto module = std::make_shared<Module>();
    module->library = compiler::Library::load(image.bytes, log);
    if (!module->library) return INVALID_IMAGE;
    module->context = current_context();
    *handle = state().modules.add(module);
    return 0;
}

bool valid_options(unsigned count, const int* options, void** values) {
    if (count > 0 && (!options || !values)) return false;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] < 0 || options[i] > LAST_OPTION) return false;
    }
    return true;
}

void unload(Module& module) {
    for (const auto& [name, memory] : module.variables) {
        memory->state = Memory::Freed;
        forget(memory);
    }
    module.variables.clear();
    for (const auto& [name, kernel] : module.kernels) state().kernels.erase(kernel);
}

} // namespace

void unload_all(const Ref<Context>& context) {
    State& it = state();
    it.modules.erase_if([&](Module& module) {
        if (module.context != context) return false;
        unload(module);
        return true;
    });
    it.kernels.erase_if([&](Kernel& kernel) { return kernel.context == context; });
    it.links.erase_if([&](Link& link) { return link.context == context; });
}

} // namespace core

namespace driver {
using namespace core;

int cuModuleLoadDataEx(Handle* module, const void* image, unsigned count, int* options,
                       void** values) {
    if (!module || !image || !valid_options(count, options, values)) return INVALID_VALUE;
    std::string log;
    const int status = load(module, compiler::read_image(image), log);
    fill_log(status == 0 ? "" : log, ERROR_LOG, ERROR_LOG_BYTES, count, options, values);
    fill_log(status == 0 ? log : "", INFO_LOG, INFO_LOG_BYTES, count, options, values);
    return status;
}

int cuModuleLoadData(Handle* module, const void* image) {
    return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

int cuModuleLoad(Handle* module, const char* path) {
    if (!module || !path) return INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return FILE_NOT_FOUND;
    std::ostringstream bytes;
    bytes << file.rdbuf();
    std::string log;
    return load(module, compiler::read_image(bytes.str()), log);
}

int cuModuleUnload(Handle handle) {
    const Ref<Module> module = state().modules.find(handle);
    if (!module) return INVALID_HANDLE;
    if (const int status = usable(module->context)) return status;
    drain(module->context);
    unload(*module);
    state().modules.erase(handle);
    return 0;
}

int cuModuleGetFunction(Handle* handle, Handle module_handle, const char* name) {
    if (!handle || !name) return INVALID_VALUE;
    const Ref<Module> module = state().modules.find(module_handle);
    if (!module) return INVALID_HANDLE;
    const auto known = module->kernels.find(name);
    if (known != module->kernels.end()) {
        *handle = known->second;
        return 0;
    }
    const Ref<const compiler::Code> code = module->library->code(name);
    if (!code) return NOT_FOUND;
    auto kernel = std::make_shared<Kernel>();
    kernel->context = module->context;
    kernel->code = code;
    kernel->name = name;
    kernel->module = module_handle;
    kernel->most_dynamic =
        code->static_shared > MOST_SHARED ? 0 : int(MOST_SHARED - code->static_shared);
    *handle = module->kernels[name] = state().kernels.add(kernel);
    return 0;
}

int cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, Handle handle, const char* name) {
    if (!name) return INVALID_VALUE;
    const Ref<Module> module = state().modules.find(handle);
    if (!module) return INVALID_HANDLE;
    Ref<Memory>& memory = module->variables[name];
    if (!memory) {
        size_t size = 0;
        void* variable = module->library->variable(name, &size);
        if (!variable || size == 0) {
            module->variables.erase(name);
            return NOT_FOUND;
        }
        memory = adopt(reinterpret_cast<uintptr_t>(variable), size, Kind::Global, module->context);
    }
    if (address) *address = memory->address;
    if (bytes) *bytes = memory->size;
    return 0;
}

} // namespace driver
