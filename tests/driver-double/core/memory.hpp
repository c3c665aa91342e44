// Address ranges: device memory, pinned and registered host memory.
#pragma once

#include "state.hpp"

namespace core {

// Returns the range that contains an address, in any state; null if there is none.
Ref<Memory> memory_at(uint64_t address);

// Like `memory_at`, but only for memory that calls may use: not freed, and, unless the call is
// captured, not memory of a graph that has not been launched.
Ref<Memory> known_memory(uint64_t address, bool captured = false);

// Returns true if the bytes are inside the memory.
bool holds(const Memory& memory, uint64_t address, size_t bytes);

// Returns true if the address is in the range for device memory, allocated or not. No other mapping
// may be there.
bool in_arena(uint64_t address);

// Reserves a range of a device's addresses without memory; null if no range is free.
Ref<Memory> reserve(int device, size_t bytes, Kind kind, const Ref<Context>& context);

// Maps fresh memory, filled with 0xCD, into a range.
void commit(Memory& memory);

// Unmaps the memory: later accesses fault. Counts writes outside the allocation.
void decommit(Memory& memory);

// Registers a range at an existing address: pinned, registered, a module's variable.
Ref<Memory> adopt(uint64_t address, size_t bytes, Kind kind, const Ref<Context>& context);

// Removes a range from the table.
void forget(const Ref<Memory>& memory);

// Takes bytes from a device, if necessary after trimming unused memory of pools.
bool take(int device, size_t bytes);
void give(int device, size_t bytes);

// Allocates memory in the current context immediately; null if memory is short.
Ref<Memory> allocate_at_once(size_t bytes, Kind kind);

// Frees plain, managed or pooled memory, for queued frees and for cuMemFree.
void release(const Ref<Memory>& memory);

// Frees all memory that belongs to a context.
void release_all(const Context& context);

// Returns how many bytes an allocation takes from the device.
size_t rounded(size_t bytes);

// The file and offset at which other processes find a device's memory.
struct Place {
    int file;
    size_t offset;
};
Place place_of(const Memory& memory);

} // namespace core
