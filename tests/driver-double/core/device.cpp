// The properties of the devices: the numbers come from an NVIDIA H200.
#include "functions.hpp"
#include "state.hpp"

#include <cstdio>
#include <cstring>

namespace core {
namespace {

// By number of CUdevice_attribute, from 1.
constexpr int ATTRIBUTES[] = {
    1024, 1024, 1024, 64, 2147483647, 65535, 65535, 49152, 65536, 32, 2147483647, 65536, 1980000,
    512, 1, 132, 0, 0, 1, 0, 131072, 131072, 65536, 16384, 16384, 16384, 32768, 32768, 2048, 512,
    1, 1, 0, 6, 0, 3201000, 6016, 62914560, 2048, 3, 1, 32768, 2048, 1, 32768, 32768, 8192, 8192,
    32768, 0, 32, 32768, 32768, 2046, 32768, 131072, 65536, 16384, 16384, 16384, 32768, 2048,
    32768, 32768, 2048, 32768, 32768, 2046, 268435456, 131072, 65000, 2097120, 32768, 32768, 9,
    0, 32768, 1, 1, 1, 233472, 65536, 1, 0, 0, 0, 2, 0, 1, 1, 1, 0, 0, 0, 1, 1, 232448, 0, 1, 0,
    0, 1, 1, 0, 0, 32, 1, 39321600, 134217728, 1, 1024, 1, 1, 1, 1, 1, 1, 100, 9, 1, 1, 1, 1, 1,
    1, 4, 1, 1, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 590680286, 415174878, 1, 1, 0, 1, 1, 0, 0,
};
constexpr int ATTRIBUTE_COUNT = sizeof ATTRIBUTES / sizeof *ATTRIBUTES;

void bus_id(char (&text)[16], CUdevice device) {
    std::snprintf(text, sizeof text, "0000:%02X:00.0", unsigned(device + 1) & 0xff);
}

int copy_text(char* to, int length, const char* from) {
    std::snprintf(to, size_t(length), "%s", from);
    return 0;
}

} // namespace
} // namespace core

namespace driver {
using namespace core;

int cuDeviceGetCount(int* count) {
    if (!count) return INVALID_VALUE;
    *count = int(state().devices.size());
    return 0;
}

int cuDeviceGet(CUdevice* device, int ordinal) {
    if (!device) return INVALID_VALUE;
    if (!device_at(ordinal)) return INVALID_DEVICE;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char* name, int length, CUdevice device) {
    if (!name || length <= 0) return INVALID_VALUE;
    return device_at(device) ? copy_text(name, length, "Driver Double") : INVALID_DEVICE;
}

int cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    if (!uuid) return INVALID_VALUE;
    if (!device_at(device)) return INVALID_DEVICE;
    std::memcpy(uuid->bytes, "driver double  ", 15);
    uuid->bytes[15] = static_cast<unsigned char>(device + 1);
    return 0;
}

int cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    if (!text || length <= 0) return INVALID_VALUE;
    if (!device_at(device)) return INVALID_DEVICE;
    char full[16];
    bus_id(full, device);
    copy_text(text, length, full);
    return size_t(length) > std::strlen(full) ? 0 : INVALID_VALUE;
}

int cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
    if (!device || !text) return INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
        domain = 0;
        if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) != 3) return INVALID_VALUE;
    }
    const bool there = domain == 0 && slot == 0 && function == 0 && device_at(int(bus) - 1);
    if (!there) return INVALID_DEVICE;
    *device = int(bus) - 1;
    return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (!bytes) return INVALID_VALUE;
    const Device* it = device_at(device);
    if (!it) return INVALID_DEVICE;
    *bytes = it->memory;
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
    if (!value || attribute < 1 || attribute > ATTRIBUTE_COUNT) return INVALID_VALUE;
    if (!device_at(device)) return INVALID_DEVICE;
    constexpr int PCI_BUS = 33, PCI_DEVICE = 34, COOPERATIVE = 95;
    *value = attribute == PCI_BUS       ? device + 1
             : attribute == PCI_DEVICE  ? 0
             : attribute == COOPERATIVE ? int(state().cooperative)
                                        : ATTRIBUTES[attribute - 1];
    return 0;
}

int cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    if (!can) return INVALID_VALUE;
    if (!device_at(device) || !device_at(peer)) return INVALID_DEVICE;
    *can = device != peer;
    return 0;
}

} // namespace driver
