// The hooks that a unit compiled with checks calls for each memory access.
//
// The compiler inserts these calls. Its thread sanitizer inserts them for reads, writes, atomic operations
// and fences; its undefined-behaviour sanitizer inserts them for misaligned addresses and divisions by zero.
// The called functions are defined here and forward to the executor, so no sanitizer library is linked.
// Functions that copy or allocate memory forward to the executor in the same way.
#pragma once

#ifdef GPUARRAY_CHECK

extern "C++" {
namespace gpuarray_check {

typedef unsigned long size;

// The kind of an access, as a sum of these flags. A volatile access counts as atomic, and an exchange as a
// write. COMPARE means that the thread derived the new value from the value that it compares with. OPERATION
// requires an address that is a multiple of the size.
enum How : unsigned { READ = 1, WRITE = 2, ATOMIC = 4, RELEASE = 8, COMPARE = 16, OPERATION = 32 };

// The functions of the executor. `thread` is the linear index of the calling thread in its block. `place` is
// a code address after the access, or null for an access by the executor's own functions.
struct Checker {
    // Returns if the thread may access these bytes; otherwise the kernel fails.
    void (*access)(const volatile void* address, size bytes, unsigned how, unsigned thread, const void* place);
    // A fence: a thread that sees a later atomic operation of this thread also sees everything that it did
    // before the fence.
    void (*fence)(unsigned thread);
    // Fails the kernel for another reason. `type` is null for a division by zero. `place` is a code address,
    // as above.
    void (*fail)(const char* type, size address, size alignment, const char* file, unsigned line, unsigned thread,
                 const void* place);
    // Allocates memory for the kernel; returns null if there is not enough.
    void* (*allocate)(size bytes, size alignment);
    void (*release)(void* memory, unsigned thread, const void* place);
    void (*copy)(void* to, const void* from, size bytes);
    void (*fill)(void* to, int byte, size bytes);
};

#define GPUARRAY_HOOKED GPUARRAY_UNCHECKED __attribute__((visibility("hidden"), used, noinline))

// The hooks during loading, while constructors of the unit's variables run. They check nothing.
namespace loading {
GPUARRAY_HOOKED void access(const volatile void*, size, unsigned, unsigned, const void*) {}
GPUARRAY_HOOKED void fence(unsigned) {}
GPUARRAY_HOOKED void fail(const char*, size, size, const char*, unsigned, unsigned, const void*) {}
// The functions below hide the system's `malloc` and `free`, so memory that is freed here is not released.
void* aligned(size alignment, size bytes) __asm__("aligned_alloc");
GPUARRAY_HOOKED void* allocate(size bytes, size alignment) {
    return aligned(alignment, (bytes + alignment - 1) / alignment * alignment);
}
GPUARRAY_HOOKED void release(void*, unsigned, const void*) {}
// Volatile, because the compiler would otherwise turn these loops into calls of `memmove` and `memset`, which
// would call these functions again.
GPUARRAY_HOOKED void copy(void* to, const void* from, size bytes) {
    volatile char* const into = (char*)to;
    const volatile char* const out_of = (const char*)from;
    const bool is_upwards = into < out_of;
    for (size i = 0; i < bytes; ++i) {
        const size at = is_upwards ? i : bytes - 1 - i;
        into[at] = out_of[at];
    }
}
GPUARRAY_HOOKED void fill(void* to, int byte, size bytes) {
    for (size i = 0; i < bytes; ++i) ((volatile char*)to)[i] = (char)byte;
}
static constexpr Checker CHECKER = {access, fence, fail, allocate, release, copy, fill};
} // namespace loading

// Points to the executor's functions once the unit is loaded. The executor recognises units with checks by
// the name of this symbol.
static const Checker* checker __asm__("gpuarray_checker") __attribute__((used)) = &loading::CHECKER;

// The range of the executor's own thread-local variables, such as the thread's index, relative to
// `gpuarray_local`. Kernels read them more often than anything else. Set when the unit is loaded.
static long own[2] __asm__("gpuarray_own") __attribute__((used)) = {0, 0};
GPUARRAY_UNCHECKED static inline bool is_own(const volatile void* address) {
    const long at = (long)((unsigned long)address - (unsigned long)&gpuarray_abi::local);
    return at >= own[0] && at < own[1];
}

#define GPUARRAY_THREAD (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define GPUARRAY_CALLER __builtin_return_address(0)
#define GPUARRAY_ACCESS(address, bytes, how)                                                    \
    (is_own(address) ? (void)0 : checker->access(address, bytes, how, GPUARRAY_THREAD, GPUARRAY_CALLER))

// Defines a function under the symbol that compilers call.
#define GPUARRAY_HOOK(result, name, symbol, ...)                                                \
    GPUARRAY_HOOKED result name(__VA_ARGS__) __asm__(symbol);                                \
    result name(__VA_ARGS__)

#define GPUARRAY_ACCESSES(bytes)                                                                \
    GPUARRAY_ACCESS_OF(bytes, read, READ)                                                       \
    GPUARRAY_ACCESS_OF(bytes, write, WRITE)                                                     \
    GPUARRAY_ACCESS_OF(bytes, read_write, READ | WRITE)                                         \
    GPUARRAY_ACCESS_OF(bytes, unaligned_read, READ)                                             \
    GPUARRAY_ACCESS_OF(bytes, unaligned_write, WRITE)                                           \
    GPUARRAY_ACCESS_OF(bytes, unaligned_read_write, READ | WRITE)                               \
    GPUARRAY_ACCESS_OF(bytes, volatile_read, READ | ATOMIC)                                     \
    GPUARRAY_ACCESS_OF(bytes, volatile_write, WRITE | ATOMIC)                                   \
    GPUARRAY_ACCESS_OF(bytes, unaligned_volatile_read, READ | ATOMIC)                           \
    GPUARRAY_ACCESS_OF(bytes, unaligned_volatile_write, WRITE | ATOMIC)
#define GPUARRAY_ACCESS_OF(bytes, name, how)                                                    \
    GPUARRAY_HOOK(void, name##bytes, "__tsan_" #name #bytes, const volatile void* p) { GPUARRAY_ACCESS(p, bytes, how); }
GPUARRAY_ACCESSES(1)
GPUARRAY_ACCESSES(2)
GPUARRAY_ACCESSES(4)
GPUARRAY_ACCESSES(8)
GPUARRAY_ACCESSES(16)
#undef GPUARRAY_ACCESSES
#undef GPUARRAY_ACCESS_OF
GPUARRAY_HOOK(void, read_range, "__tsan_read_range", const void* p, size n) { GPUARRAY_ACCESS(p, n, READ); }
GPUARRAY_HOOK(void, write_range, "__tsan_write_range", const void* p, size n) { GPUARRAY_ACCESS(p, n, WRITE); }
GPUARRAY_HOOK(void, vptr_read, "__tsan_vptr_read", void** p) { GPUARRAY_ACCESS(p, sizeof *p, READ); }
GPUARRAY_HOOK(void, vptr_update, "__tsan_vptr_update", void** p, void*) { GPUARRAY_ACCESS(p, sizeof *p, WRITE); }
GPUARRAY_HOOK(void, begin, "__tsan_init", ) {}
GPUARRAY_HOOK(void, function_entry, "__tsan_func_entry", void*) {}
GPUARRAY_HOOK(void, function_exit, "__tsan_func_exit", ) {}

// Atomic operations. The order determines if they release the thread's earlier writes; every one acquires.
#define GPUARRAY_ATOMICS(bits, T)                                                               \
    GPUARRAY_HOOK(T, load##bits, "__tsan_atomic" #bits "_load", const volatile T* p, int order) { \
        GPUARRAY_ACCESS(p, sizeof(T), READ | ATOMIC | OPERATION);                               \
        return (void)order, __atomic_load_n(p, __ATOMIC_SEQ_CST);                               \
    }                                                                                           \
    GPUARRAY_HOOK(void, store##bits, "__tsan_atomic" #bits "_store", volatile T* p, T v, int order) { \
        GPUARRAY_ACCESS(p, sizeof(T), GPUARRAY_ORDER(WRITE, order));                            \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
    }                                                                                           \
    GPUARRAY_HOOK(T, exchange##bits, "__tsan_atomic" #bits "_exchange", volatile T* p, T v, int order) { \
        GPUARRAY_ACCESS(p, sizeof(T), GPUARRAY_ORDER(WRITE, order));                            \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                     \
    }                                                                                           \
    GPUARRAY_FETCH(bits, T, add)                                                                \
    GPUARRAY_FETCH(bits, T, sub)                                                                \
    GPUARRAY_FETCH(bits, T, and)                                                                \
    GPUARRAY_FETCH(bits, T, or)                                                                 \
    GPUARRAY_FETCH(bits, T, xor)                                                                \
    GPUARRAY_FETCH(bits, T, nand)                                                               \
    GPUARRAY_COMPARE(bits, T, strong)                                                           \
    GPUARRAY_COMPARE(bits, T, weak)                                                             \
    GPUARRAY_HOOK(T, compare_value##bits, "__tsan_atomic" #bits "_compare_exchange_val",        \
                  volatile T* p, T expected, T v, int order, int) {                             \
        GPUARRAY_ACCESS(p, sizeof(T), GPUARRAY_ORDER(READ | WRITE | COMPARE, order));           \
        __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected;                                                                        \
    }
#define GPUARRAY_ORDER(how, order) ((how) | ATOMIC | OPERATION | ((order) >= __ATOMIC_RELEASE ? RELEASE : 0u))
#define GPUARRAY_FETCH(bits, T, name)                                                           \
    GPUARRAY_HOOK(T, name##bits, "__tsan_atomic" #bits "_fetch_" #name, volatile T* p, T v, int order) { \
        GPUARRAY_ACCESS(p, sizeof(T), GPUARRAY_ORDER(READ | WRITE, order));                     \
        return __atomic_fetch_##name(p, v, __ATOMIC_SEQ_CST);                                   \
    }
#define GPUARRAY_COMPARE(bits, T, kind)                                                         \
    GPUARRAY_HOOK(bool, compare_##kind##bits, "__tsan_atomic" #bits "_compare_exchange_" #kind, \
                  volatile T* p, T* expected, T v, int order, int) {                            \
        GPUARRAY_ACCESS(p, sizeof(T), GPUARRAY_ORDER(READ | WRITE | COMPARE, order));           \
        return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }
GPUARRAY_ATOMICS(8, unsigned char)
GPUARRAY_ATOMICS(16, unsigned short)
GPUARRAY_ATOMICS(32, unsigned int)
GPUARRAY_ATOMICS(64, unsigned long)
#undef GPUARRAY_ATOMICS
#undef GPUARRAY_FETCH
#undef GPUARRAY_COMPARE
#undef GPUARRAY_ORDER
GPUARRAY_HOOK(void, thread_fence, "__tsan_atomic_thread_fence", int) { checker->fence(GPUARRAY_THREAD); }
GPUARRAY_HOOK(void, signal_fence, "__tsan_atomic_signal_fence", int) { checker->fence(GPUARRAY_THREAD); }

// The description of a source location that the undefined-behaviour sanitizer passes.
struct Place {
    const char* file;
    unsigned line, column;
};
struct Type {
    unsigned short kind, info;
    char name[1];
};
struct Mismatch {
    Place place;
    const Type* type;
    unsigned char alignment, kind;
};
struct Overflow {
    Place place;
    const Type* type;
};
GPUARRAY_HOOK(void, misaligned, "__ubsan_handle_type_mismatch_v1", const Mismatch* at, size address) {
    checker->fail(at->type->name, address, (size)1 << at->alignment, at->place.file, at->place.line, GPUARRAY_THREAD,
                  GPUARRAY_CALLER);
}
GPUARRAY_HOOK(void, divided, "__ubsan_handle_divrem_overflow", const Overflow* at, size, size) {
    checker->fail(nullptr, 0, 0, at->place.file, at->place.line, GPUARRAY_THREAD, GPUARRAY_CALLER);
}

// A false `__builtin_assume`. Units without checks trap at once.
GPUARRAY_HOOK(void, unreachable, "__ubsan_handle_builtin_unreachable", const void*) { __builtin_trap(); }

// Functions of the C library that access or allocate memory. The compiler also calls some of them to assign
// large structures.
GPUARRAY_HOOK(void*, copy, "memcpy", void* to, const void* from, size n) {
    GPUARRAY_ACCESS(from, n, READ);
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->copy(to, from, n);
    return to;
}
GPUARRAY_HOOK(void*, move, "memmove", void* to, const void* from, size n) {
    GPUARRAY_ACCESS(from, n, READ);
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->copy(to, from, n);
    return to;
}
GPUARRAY_HOOK(void*, fill, "memset", void* to, int byte, size n) {
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->fill(to, byte, n);
    return to;
}
#ifdef __clang__
// The sanitizer's names for these functions, which it calls to copy structures.
GPUARRAY_HOOK(void*, copy_structure, "__tsan_memcpy", void* to, const void* from, size n) {
    GPUARRAY_ACCESS(from, n, READ);
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->copy(to, from, n);
    return to;
}
GPUARRAY_HOOK(void*, move_structure, "__tsan_memmove", void* to, const void* from, size n) {
    GPUARRAY_ACCESS(from, n, READ);
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->copy(to, from, n);
    return to;
}
GPUARRAY_HOOK(void*, fill_structure, "__tsan_memset", void* to, int byte, size n) {
    GPUARRAY_ACCESS(to, n, WRITE);
    checker->fill(to, byte, n);
    return to;
}
#endif
#define GPUARRAY_ALLOCATES(name, symbol)                                                        \
    GPUARRAY_HOOK(void*, name, symbol, size n) { return checker->allocate(n, 16); }
#define GPUARRAY_RELEASES(name, symbol, ...)                                                    \
    GPUARRAY_HOOK(void, name, symbol, void* p __VA_ARGS__) { checker->release(p, GPUARRAY_THREAD, GPUARRAY_CALLER); }
GPUARRAY_ALLOCATES(allocate, "malloc")
GPUARRAY_ALLOCATES(make, "_Znwm")
GPUARRAY_ALLOCATES(make_array, "_Znam")
GPUARRAY_RELEASES(release, "free")
GPUARRAY_RELEASES(drop, "_ZdlPv")
GPUARRAY_RELEASES(drop_array, "_ZdaPv")
GPUARRAY_RELEASES(drop_sized, "_ZdlPvm", , size)
GPUARRAY_RELEASES(drop_array_sized, "_ZdaPvm", , size)
#undef GPUARRAY_ALLOCATES
#undef GPUARRAY_RELEASES
GPUARRAY_HOOK(int, allocate_aligned, "posix_memalign", void** p, size alignment, size n) {
    *p = checker->allocate(n, alignment);
    return *p ? 0 : 12; // ENOMEM
}

#undef GPUARRAY_HOOK
#undef GPUARRAY_ACCESS
#undef GPUARRAY_CALLER
#undef GPUARRAY_THREAD
#undef GPUARRAY_HOOKED

} // namespace gpuarray_check
} // extern "C++"

#endif
