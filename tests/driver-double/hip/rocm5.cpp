#include "hip.hpp"

namespace hip {
const int ROCM = 5;
} // namespace hip
