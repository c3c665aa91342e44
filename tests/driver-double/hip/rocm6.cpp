#include "hip.hpp"

namespace hip {
const int ROCM = 6;
} // namespace hip
