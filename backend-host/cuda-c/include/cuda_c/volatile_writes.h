// Writes of volatile shared memory, as the lanes of a warp make them on a GPU: all read, then all write.
//
// Programs from before __syncwarp rely on that: `s[t] += s[t + 16]; s[t] += s[t + 8];`. Here a lane would
// run to the next barrier before another one begins. The driver puts these functions in place of such
// assignments (src/volatile_writes.rs).
#pragma once

extern "C++" {
namespace cuda_c {

template <class T> struct WithoutVolatile { typedef T type; };
template <class T> struct WithoutVolatile<volatile T> { typedef T type; };

// Shared memory is thread-local, as this is, and less than a mebibyte of both is in a unit.
static inline bool is_of_block(const volatile void* address) {
    static thread_local char own;
    const unsigned long at = (unsigned long)address, here = (unsigned long)&own;
    return (at > here ? at - here : here - at) < 1ul << 20;
}

// Waits for the lanes that come to the same line.
static inline void meet_at(const volatile void* written, const char* file, unsigned line) {
    if (is_of_block(written)) gpuarray_abi::rendezvous(0, nullptr, nullptr, file, line);
}

// What an assignment makes of the value before it, and does to a variable of a class.
struct Assignment {
    template <class T, class V> static T value(const volatile T&, V& right) { return (T)right; }
    template <class X, class V> static void apply(X& left, V& right) { left = right; }
};
#define CUDA_C_COMPOUND(name, sign)                                                              \
    struct name {                                                                                \
        template <class T, class V> static T value(const volatile T& left, V& right) {           \
            return (T)(left sign right);                                                         \
        }                                                                                        \
        template <class X, class V> static void apply(X& left, V& right) { left sign##= right; } \
    };
CUDA_C_COMPOUND(Addition, +)
CUDA_C_COMPOUND(Subtraction, -)
CUDA_C_COMPOUND(Multiplication, *)
CUDA_C_COMPOUND(Division, /)
CUDA_C_COMPOUND(Remainder, %)
CUDA_C_COMPOUND(Conjunction, &)
CUDA_C_COMPOUND(Disjunction, |)
CUDA_C_COMPOUND(Exclusion, ^)
#undef CUDA_C_COMPOUND

// The right side has been read by all lanes before one writes, and all have written before one goes on.
template <class Operation, class X, class V>
static inline void write_together(X& left, V&& right, GPUARRAY_PLACE) {
    typedef typename WithoutVolatile<X>::type T;
    if constexpr (__is_class(T) || __is_union(T)) {
        meet_at(&left, file, line);
        Operation::apply(left, right);
    } else {
        const T value = Operation::template value<T>(left, right);
        meet_at(&left, file, line);
        left = value;
    }
    meet_at(&left, file, line);
}

// The same of a value that is read from nowhere: it is there for lanes that wait for it.
template <class X, class V> static inline void write_at_once(X& left, const V& right, GPUARRAY_PLACE) {
    left = right;
    meet_at(&left, file, line);
}

} // namespace cuda_c
} // extern "C++"
