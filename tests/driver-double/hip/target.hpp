// What HIP calls devices: a target with features, as in gfx90a:sramecc+:xnack-.
#pragma once

#include <string>

namespace hip {

// The file of a real libcuda that calls go to, from DOUBLE_FORWARD; null for the double's own.
const char* forwarded();

// The target of the double's devices: DOUBLE_TARGET, else one of an MI200.
std::string double_target();

// What a device of a compute capability is called where calls go to a real libcuda.
std::string forwarded_target(int major, int minor);

// The architecture that NVRTC compiles such a target for; empty if it is another one.
std::string forwarded_architecture(const std::string& target);

// True for gfx, a number, and features with a sign each.
bool is_target(const std::string& text);

// Threads of a wavefront: 64, 32 since gfx10.
unsigned wavefront(const std::string& target);

// True if code for one target runs on a device: a feature that the code leaves open fits both.
bool runs_on(const std::string& code, const std::string& device);

} // namespace hip
