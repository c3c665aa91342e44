// Device attributes by HIP's numbers.
#pragma once

namespace hip {

int device_attribute(int* value, int attribute, int device);

// Returns true if the devices have texture hardware.
bool has_textures();

// Writes the name of a device's target, with its features.
int target_of(int device, char* text, unsigned long size);

// Returns how many bytes of shared memory a block may have; kernels need not opt in.
int shared_limit(int* bytes, int device);

} // namespace hip
