#include "hip.hpp"

namespace hip {
const int ROCM = 7;
} // namespace hip
