#pragma once

#include <cstdint>

namespace core {

// Returns the number of live objects of a kind, for checks that nothing leaks. Each library counts
// its own.
uint64_t live(const char* kind);

} // namespace core
