// Pools of memory that streams allocate from in their order.
#pragma once

#include "state.hpp"

namespace core {

void pool_gives_back(Pool& pool, size_t bytes);

// Gives the device what pools hold beyond what is used.
void trim_all(int device);

// What a wait does: the same beyond the release threshold.
void trim_after_wait(int device);

// Memory of a graph: backs what an allocation node reserved, when the graph is launched.
int launch_allocation(const Ref<Memory>& memory);

} // namespace core
