// Memory pools for stream-ordered allocation.
#pragma once

#include "state.hpp"

namespace core {

void pool_gives_back(Pool& pool, size_t bytes);

// Releases all unused memory of pools to the device.
void trim_all(int device);

// Releases unused memory above the release threshold, as a wait does.
void trim_after_wait(int device);

// Allocates the memory that an allocation node reserved, when the graph is launched.
int launch_allocation(const Ref<Memory>& memory);

} // namespace core
