#pragma once

#include <cstdint>

namespace core {

// How many of a kind exist, for checks that nothing leaks. Each library has its own.
uint64_t live(const char* kind);

} // namespace core
