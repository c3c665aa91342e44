// Texture arrays.
#pragma once

#include "hip.hpp"

namespace hip {

// Returns the size in bytes of an array's texel; 0 for null and for handles of other objects.
unsigned texel_bytes(hipArray_t array);

} // namespace hip
