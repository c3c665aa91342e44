// Arrays for textures.
#pragma once

#include "hip.hpp"

namespace hip {

// Bytes of a texel of an array; 0 for null, and for a handle that is no array's.
unsigned texel_bytes(hipArray_t array);

} // namespace hip
