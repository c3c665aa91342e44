// Differences between the libraries that share this implementation.
#pragma once

#include <string>

namespace core {

struct Vendor {
    unsigned warp; // threads of a warp
    // Returns true if code for this architecture runs on the devices.
    bool (*fits)(const std::string& architecture);
    // True if row copies read pageable memory when they run, not when they are queued.
    bool late_rows;
};

extern const Vendor VENDOR;

} // namespace core
