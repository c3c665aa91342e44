// Placement `new`: `new (address) T`. The front end includes this header in texts that use the operator
// without declaring it. It includes the system's header if there is one, since the text may do so as well.
#pragma once

extern "C++" {
#if __has_include(<new>)
#include <new>
#else
inline void* operator new(decltype(sizeof(0)), void* place) noexcept { return place; }
inline void* operator new[](decltype(sizeof(0)), void* place) noexcept { return place; }
inline void operator delete(void*, void*) noexcept {}
inline void operator delete[](void*, void*) noexcept {}
#endif
}
