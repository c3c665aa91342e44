// What creates an object in memory of the program: `new (address) T`. The front end includes this where a text does
// so without declaring it; the system's header, if there is one, which the text may include as well.
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
