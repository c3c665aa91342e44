// Device attributes by HIP's numbers.
#pragma once

namespace hip {

int device_attribute(int* value, int attribute, int device);

// Whether the devices have hardware for textures.
bool has_textures();

// What HIP calls a device, with its features.
int target_of(int device, char* text, unsigned long size);

// Bytes of shared memory that one block may have; none of them needs permission.
int shared_limit(int* bytes, int device);

} // namespace hip
