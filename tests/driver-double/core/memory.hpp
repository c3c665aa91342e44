// Ranges of addresses: device memory, pinned and registered host memory.
#pragma once

#include "state.hpp"

namespace core {

// The range that holds an address, whatever its state; null if there is none.
Ref<Memory> memory_at(uint64_t address);

// The same for one that calls may name: not freed, and not of a graph that has not been
// launched, unless the call is captured.
Ref<Memory> known_memory(uint64_t address, bool captured = false);

// True if the bytes lie in it.
bool holds(const Memory& memory, uint64_t address, size_t bytes);

// True if the address is one of device memory, now or once. Nothing else may be there.
bool in_arena(uint64_t address);

// Reserves a range of a device's addresses with nothing behind it; null if it is out of them.
Ref<Memory> reserve(int device, size_t bytes, Kind kind, const Ref<Context>& context);

// Puts fresh memory, full of 0xCD, behind a range.
void commit(Memory& memory);

// Takes it away again: an access is a fault from now on. Counts what was written beside it.
void decommit(Memory& memory);

// A range that lies where it lies: pinned, registered, a module's variable.
Ref<Memory> adopt(uint64_t address, size_t bytes, Kind kind, const Ref<Context>& context);

// Forgets a range.
void forget(const Ref<Memory>& memory);

// Takes bytes from a device, after giving back what pools hold in vain if need be.
bool take(int device, size_t bytes);
void give(int device, size_t bytes);

// Allocates memory in the current context; null if there is not enough.
Ref<Memory> allocate_at_once(size_t bytes, Kind kind);

// Frees plain, managed or pooled memory: what a queued free does, and what cuMemFree does.
void release(const Ref<Memory>& memory);

// Frees all that belongs to a context.
void release_all(const Context& context);

// Bytes as they count against the device's.
size_t rounded(size_t bytes);

// Where other processes find a device's memory.
struct Place {
    int file;
    size_t offset;
};
Place place_of(const Memory& memory);

} // namespace core
