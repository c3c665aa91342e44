#include "loaded.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace compiler {

std::shared_ptr<Library> Library::load(const std::string& bytes, std::string& why) {
    // A name of its own each time, for the loader tells libraries apart by it.
    static std::atomic<unsigned> number;
    const char* folder = std::getenv("TMPDIR");
    const std::string path = std::string(folder && *folder ? folder : "/tmp") + "/driver-double-" +
                             std::to_string(getpid()) + "-" + std::to_string(number++) + ".so";
    unlink(path.c_str());
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    const ssize_t written = file < 0 ? -1 : write(file, bytes.data(), bytes.size());
    if (file >= 0) close(file);
    if (written != ssize_t(bytes.size())) {
        why = "cannot write " + path;
        unlink(path.c_str());
        return nullptr;
    }
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) why = dlerror();
    unlink(path.c_str());
    if (!handle) return nullptr;
    auto* module = static_cast<Module*>(dlsym(handle, "double_module"));
    if (!module) {
        why = "the image has no program in it";
        dlclose(handle);
        return nullptr;
    }
    std::shared_ptr<Library> library(new Library);
    library->handle = handle;
    library->module = module;
    return library;
}

Library::~Library() { dlclose(handle); }

std::string Library::symbol(const Entry& entry) const {
    Dl_info info;
    void* address = reinterpret_cast<void*>(entry.function);
    const bool found = dladdr(address, &info) != 0 && info.dli_sname && info.dli_saddr == address;
    return found ? info.dli_sname : entry.name;
}

void* Library::variable(const char* name, size_t* bytes) const {
    void* address = dlsym(handle, name);
    Dl_info info;
    void* extra = nullptr;
    if (!address || dladdr1(address, &info, &extra, RTLD_DL_SYMENT) == 0 || !extra) return nullptr;
    const auto* symbol = static_cast<const ElfW(Sym)*>(extra);
    // Not one of a library that this one needs, and neither a function nor our own.
    Dl_info own;
    if (dladdr(module, &own) == 0 || own.dli_fbase != info.dli_fbase || address == module) {
        return nullptr;
    }
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) return nullptr;
    *bytes = symbol->st_size;
    return address;
}

} // namespace compiler
