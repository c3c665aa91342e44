// Memory and events that other processes open. Device memory is in unnamed files, which other
// processes open through the exporting process.
#include "functions.hpp"
#include "memory.hpp"
#include "work.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace core {
namespace {

constexpr uint64_t MEMORY_MAGIC = 0x6d656d656c627564, EVENT_MAGIC = 0x746e6576656c6264;
constexpr size_t PAGE = 4096;

struct Content {
    uint64_t magic;
    int process, file;
    uint64_t offset, size, number;
};
static_assert(sizeof(Content) <= sizeof(CUipcHandle), "it must fit");

CUipcHandle pack(const Content& content) {
    CUipcHandle handle = {};
    std::memcpy(handle.bytes, &content, sizeof content);
    return handle;
}

Content unpack(const CUipcHandle& handle) {
    Content content;
    std::memcpy(&content, handle.bytes, sizeof content);
    return content;
}

size_t mapped(const Memory& memory) {
    return (memory.address % PAGE + memory.size + PAGE - 1) / PAGE * PAGE;
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuIpcGetMemHandle(CUipcHandle* handle, CUdeviceptr address) {
    const Ref<Memory> memory = known_memory(address);
    if (!handle || !memory || memory->kind != Kind::Plain) return INVALID_VALUE;
    const Place place = place_of(*memory);
    *handle = pack({MEMORY_MAGIC, getpid(), place.file, place.offset, memory->size,
                    memory->number});
    return 0;
}

int cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcHandle handle, unsigned flags) {
    const Content content = unpack(handle);
    if (!address || content.magic != MEMORY_MAGIC) return INVALID_VALUE;
    if (content.process == getpid()) return INVALID_CONTEXT;
    if (flags != 1) return INVALID_VALUE;
    const Ref<Context> context = current_context();
    const std::string bytes(reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes);
    for (const auto& [place, memory] : state().memory) {
        if (memory->handle == bytes && memory->context == context) {
            ++memory->opened;
            *address = memory->address;
            return 0;
        }
    }
    const std::string path =
        "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return MAP_FAILED_STATUS;
    const size_t inside = content.offset % PAGE;
    void* start = mmap(nullptr, (inside + content.size + PAGE - 1) / PAGE * PAGE,
                       PROT_READ | PROT_WRITE, MAP_SHARED, file, off_t(content.offset - inside));
    close(file);
    if (start == MAP_FAILED) return MAP_FAILED_STATUS;
    const Ref<Memory> memory = adopt(reinterpret_cast<uintptr_t>(start) + inside, content.size,
                                     Kind::Imported, context);
    memory->handle = bytes;
    *address = memory->address;
    return 0;
}

int cuIpcCloseMemHandle(CUdeviceptr address) {
    const Ref<Memory> memory = known_memory(address);
    if (!memory || memory->kind != Kind::Imported || memory->address != address) {
        return INVALID_VALUE;
    }
    if (--memory->opened > 0) return 0;
    drain(memory->context);
    memory->state = Memory::Freed;
    forget(memory);
    munmap(reinterpret_cast<void*>(address / PAGE * PAGE), mapped(*memory));
    return 0;
}

int cuIpcGetEventHandle(CUipcHandle* handle, Handle event_handle) {
    const Ref<Event> event = state().events.find(event_handle);
    if (!event || !(event->flags & 4)) return INVALID_HANDLE;
    if (!handle) return INVALID_VALUE;
    *handle = pack({EVENT_MAGIC, getpid(), 0, 0, 0, event_handle});
    return 0;
}

// The work before an interprocess event has run when the event is recorded, so an opened event is
// always complete.
int cuIpcOpenEventHandle(Handle* event_handle, CUipcHandle handle) {
    const Content content = unpack(handle);
    if (!event_handle || content.magic != EVENT_MAGIC) return INVALID_VALUE;
    if (content.process == getpid()) return MAP_FAILED_STATUS;
    if (kill(content.process, 0) != 0 && errno == ESRCH) return MAP_FAILED_STATUS;
    auto event = std::make_shared<Event>();
    event->context = current_context();
    event->flags = 6;
    *event_handle = state().events.add(event);
    return 0;
}

} // namespace driver
