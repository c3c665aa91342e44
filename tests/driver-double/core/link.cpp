// Linking. Programs of the fake driver are already complete, so it accepts one image, of any kind
// that it makes, and refuses a second one.
#include "link.hpp"
#include "compiler/image.hpp"
#include "functions.hpp"
#include "module.hpp"

#include <fstream>
#include <sstream>

namespace driver {
using namespace core;

namespace {

enum Input { CUBIN, PTX, FATBINARY, OBJECT, LIBRARY };

int add(Handle handle, int type, const std::string& bytes) {
    const Ref<Link> link = state().links.find(handle);
    if (!link) return INVALID_HANDLE;
    if (type < CUBIN || type > LIBRARY) return INVALID_VALUE;
    const compiler::Image image = compiler::read_image(bytes);
    if (image.status != 0) return image.status;
    if (link->images++ > 0) return NOT_SUPPORTED;
    link->image = compiler::sealed(image.bytes, image.architecture);
    return 0;
}

} // namespace

int cuLinkCreate_v2(unsigned count, int* options, void** values, Handle* handle) {
    if (!handle || (count > 0 && (!options || !values))) return INVALID_VALUE;
    auto link = std::make_shared<Link>();
    link->context = current_context();
    *handle = state().links.add(link);
    return 0;
}

int cuLinkAddData_v2(Handle handle, int type, void* data, size_t bytes, const char*, unsigned,
                     int*, void**) {
    if (!data) return INVALID_VALUE;
    return add(handle, type, std::string(static_cast<const char*>(data), bytes));
}

int cuLinkAddFile_v2(Handle handle, int type, const char* path, unsigned, int*, void**) {
    if (!path) return INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return FILE_NOT_FOUND;
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return add(handle, type, bytes.str());
}

int cuLinkComplete(Handle handle, void** image, size_t* bytes) {
    const Ref<Link> link = state().links.find(handle);
    if (!link) return INVALID_HANDLE;
    if (!image || link->image.empty()) return INVALID_VALUE;
    *image = &link->image[0];
    if (bytes) *bytes = link->image.size();
    return 0;
}

int cuLinkDestroy(Handle handle) {
    return state().links.erase(handle) ? 0 : int(INVALID_HANDLE);
}

} // namespace driver
