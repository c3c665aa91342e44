// HIP's names for devices: a target with features, as in gfx90a:sramecc+:xnack-.
#pragma once

#include <string>

namespace hip {

// Returns the file of the real libcuda to forward calls to (DOUBLE_FORWARD), or null.
const char* forwarded();

// Returns the target of the fake devices: DOUBLE_TARGET, else an MI200's target.
std::string double_target();

// Returns the target name for a compute capability if calls are forwarded to a real libcuda.
std::string forwarded_target(int major, int minor);

// Returns the architecture that NVRTC compiles such a target for; empty for another target.
std::string forwarded_architecture(const std::string& target);

// Returns true for gfx, a number, and features with a sign each.
bool is_target(const std::string& text);

// Returns the threads of a wavefront: 64, or 32 since gfx10.
unsigned wavefront(const std::string& target);

// Returns true if code for one target runs on a device. A feature that the code leaves open matches
// both settings.
bool runs_on(const std::string& code, const std::string& device);

} // namespace hip
