// Thread functions other than sharing memory: barriers, fences, clocks, printf, assertions, and dynamic
// memory allocation.
#pragma once

extern "C++" {

// Barriers of the block. Threads that have returned count as arrived.
static inline void __syncthreads(GPUARRAY_PLACE) { gpuarray_abi::barrier(file, line); }
static inline int __syncthreads_count(int predicate, GPUARRAY_PLACE) {
    return (int)gpuarray_abi::barrier(file, line, predicate != 0);
}
static inline int __syncthreads_or(int predicate, GPUARRAY_PLACE) {
    return gpuarray_abi::barrier(file, line, predicate != 0) != 0;
}
static inline int __syncthreads_and(int predicate, GPUARRAY_PLACE) {
    return gpuarray_abi::barrier(file, line, predicate == 0) == 0;
}
// Numbered barriers, for all threads or for a given number of them.
static inline void __barrier_sync(unsigned int id, GPUARRAY_PLACE) {
    gpuarray_abi::barrier(file, line, 0, id);
}
static inline void __barrier_sync_count(unsigned int id, unsigned int threads, GPUARRAY_PLACE) {
    gpuarray_abi::barrier(file, line, 0, id, threads);
}

// Fences. One thread of the operating system runs all threads of a block, so within a block a compiler fence
// is sufficient.
static inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Clocks: ticks at a constant rate, not processor cycles.
static inline long long clock64() {
#ifdef __x86_64__
    return (long long)__builtin_ia32_rdtsc();
#else
    unsigned long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return (long long)ticks;
#endif
}

// Lets the other threads of the block run. Threads are not preempted, so a loop that waits for another thread
// must call this. Threads continue in the order of their calls: each call is a meeting place of its own,
// numbered above all lines of the program and the ends of its branches (volatile_writes.h). The place has no file,
// because the order of files comes before the order of numbers.
static inline void __nanosleep(unsigned int, GPUARRAY_PLACE) {
    static GPUARRAY_THREAD_LOCAL unsigned int turns = 0;
    (void)file, (void)line;
    gpuarray_abi::rendezvous(0, nullptr, nullptr, nullptr, 0x80000000u | ++turns);
}

[[noreturn]] static inline void __trap(GPUARRAY_PLACE) {
    gpuarray_abi::trap(gpuarray_abi::TRAP, "__trap()", file, line);
}
static inline void __brkpt(int = 0) {}
static inline void __prof_trigger(int) {}
#ifndef __clang__
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif

// Memory comes from the process, because device and host share it.
extern "C" {
void* malloc(size_t) noexcept;
void free(void*) noexcept;
void* memcpy(void*, const void*, size_t) noexcept;
void* memmove(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
int memcmp(const void*, const void*, size_t) noexcept;
}
static inline void* __nv_aligned_device_malloc(size_t bytes, size_t alignment) {
    // The memory must be of a kind that `free` accepts.
    void* memory = nullptr;
    extern int cuda_c_posix_memalign(void**, size_t, size_t) __asm__("posix_memalign");
    const size_t least = alignment < sizeof(void*) ? sizeof(void*) : alignment;
    return cuda_c_posix_memalign(&memory, least, bytes) == 0 ? memory : nullptr;
}

// The kind of memory of an address. The executor knows the stacks and the constants.
static inline unsigned int __isShared(const void* p) { return gpuarray_abi::is_shared(p); }
static inline unsigned int __isLocal(const void* p) {
    return !gpuarray_abi::is_shared(p) && gpuarray_abi::space_of(p) == gpuarray_abi::LOCAL;
}
static inline unsigned int __isConstant(const void* p) {
    return !gpuarray_abi::is_shared(p) && gpuarray_abi::space_of(p) == gpuarray_abi::CONSTANT;
}
static inline unsigned int __isGlobal(const void* p) {
    return !gpuarray_abi::is_shared(p) && gpuarray_abi::space_of(p) == gpuarray_abi::GLOBAL;
}
static inline unsigned int __isGridConstant(const void*) { return 0; }
// All addresses are of the same kind. If a program keeps the address of shared memory in 32 bits, the full
// address is the one near another variable of the block.
static inline size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
static inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
static inline size_t __cvta_generic_to_constant(const void* p) { return (size_t)p; }
static inline size_t __cvta_generic_to_local(const void* p) { return (size_t)p; }
static inline void* __cvta_global_to_generic(size_t p) { return (void*)p; }
static inline void* __cvta_shared_to_generic(size_t p) {
    const size_t near = (size_t)&gpuarray_abi::local;
    return (void*)(near + (size_t)(long)(int)((unsigned)p - (unsigned)near));
}
static inline void* __cvta_constant_to_generic(size_t p) { return (void*)p; }
static inline void* __cvta_local_to_generic(size_t p) { return (void*)p; }

namespace cuda_c {

// In place of `throw` in files that a program includes, which the front end replaces: ends the launch.
struct Thrown {
    const char* file;
    unsigned line;
    template <class E> [[noreturn]] void operator=(const E&) const {
        gpuarray_abi::trap(gpuarray_abi::TRAP, "an exception, which code for a device cannot throw", file, line);
    }
};
static inline Thrown thrown(GPUARRAY_PLACE) { return {file, line}; }

// The number of arguments that a format consumes, which printf returns on a GPU.
static inline int arguments_of(const char* format) {
    int count = 0;
    while (*format) {
        if (*format++ != '%') continue;
        while (*format && !((*format | 32) >= 'a' && (*format | 32) <= 'z') && *format != '%') {
            count += *format++ == '*';
        }
        // `%%` consumes none. Length modifiers precede the conversion letter.
        while (*format == 'h' || *format == 'l' || *format == 'z' || *format == 't' || *format == 'j' ||
               *format == 'L' || *format == 'q') {
            ++format;
        }
        if (*format) count += *format++ != '%';
    }
    return count;
}

// Formats with the system's function, and passes the whole text to the executor, so that the output of
// different threads does not mix.
static inline int print(const char* format, __builtin_va_list arguments) {
    if (!format) return -1;
    char buffer[512];
    __builtin_va_list again;
    __builtin_va_copy(again, arguments);
    const int length = __builtin_vsnprintf(buffer, sizeof buffer, format, arguments);
    int result = length < 0 ? -2 : arguments_of(format);
    if (length >= 0 && (size_t)length < sizeof buffer) {
        gpuarray_abi::print(buffer, (unsigned long)length);
    } else if (length >= 0) {
        char* whole = (char*)malloc((size_t)length + 1);
        if (whole) {
            __builtin_vsnprintf(whole, (size_t)length + 1, format, again);
            gpuarray_abi::print(whole, (unsigned long)length);
            free(whole);
        } else {
            result = -2;
        }
    }
    __builtin_va_end(again);
    return result;
}

} // namespace cuda_c

// The C functions that these replace. Calls use these functions even if the program also includes the
// system's headers.
typedef long clock_t;
extern "C" {
int printf(const char*, ...) __asm__("gpuarray_printf") __attribute__((format(printf, 1, 2)));
int vprintf(const char*, __builtin_va_list) __asm__("gpuarray_vprintf") __attribute__((format(printf, 1, 0)));
clock_t clock() noexcept __asm__("gpuarray_clock");
// No code is generated for them unless they are called. GNU's inline functions of these names, in the header
// with this guard, would be second definitions.
#define _BITS_STDIO_H 1
inline int printf(const char* format, ...) {
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    const int result = cuda_c::print(format, arguments);
    __builtin_va_end(arguments);
    return result;
}
inline int vprintf(const char* format, __builtin_va_list arguments) { return cuda_c::print(format, arguments); }
inline clock_t clock() noexcept { return (clock_t)clock64(); }
}

} // extern "C++"

#include "../assert.h"
