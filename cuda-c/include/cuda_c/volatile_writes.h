// Writes of volatile shared memory, as the lanes of a warp make them on a GPU: all read, then all write.
//
// Programs from before __syncwarp rely on that: `s[t] += s[t + 16]; s[t] += s[t + 8];`. Here a lane would
// run to the next barrier before another one begins. The front end puts these functions around what such statements
// assign to (src/volatile_writes.rs).
#pragma once

extern "C++" {
namespace cuda_c {

// Waits for the lanes that come to the same line.
static inline void meet_at(const volatile void* written, const char* file, unsigned line) {
    if (gpuarray_abi::is_shared(written)) gpuarray_abi::rendezvous(0, nullptr, nullptr, file, line);
}

// Behind a branch in which lanes write, the others wait for them: at a place behind all lines of the program. The ends of
// branches have numbers in their order.
static inline void meet_behind(unsigned number) {
    gpuarray_abi::rendezvous(0, nullptr, nullptr, nullptr, 0x40000000u | number);
}

// A volatile variable that is assigned to. What is assigned has been read by all lanes before one writes, and all have
// written before one goes on. A constant is there at once, for lanes that wait for it.
template <class T, bool AT_ONCE, bool IS_CLASS> struct Meeting {
    volatile T& left;
    const char* file;
    unsigned line;

    void meet() const { meet_at(&left, file, line); }
    T operator=(T value) const {
        if (!AT_ONCE) meet();
        left = value;
        meet();
        return value;
    }
#define CUDA_C_COMPOUND(sign) \
    template <class V> T operator sign##=(V right) const { return *this = (T)(left sign right); }
    CUDA_C_COMPOUND(+)
    CUDA_C_COMPOUND(-)
    CUDA_C_COMPOUND(*)
    CUDA_C_COMPOUND(/)
    CUDA_C_COMPOUND(%)
    CUDA_C_COMPOUND(&)
    CUDA_C_COMPOUND(|)
    CUDA_C_COMPOUND(^)
    CUDA_C_COMPOUND(<<)
    CUDA_C_COMPOUND(>>)
#undef CUDA_C_COMPOUND
    T operator++() const { return *this += 1; }
    T operator--() const { return *this -= 1; }
    T operator++(int) const {
        const T before = left;
        *this = (T)(before + 1);
        return before;
    }
    T operator--(int) const {
        const T before = left;
        *this = (T)(before - 1);
        return before;
    }
};

// A class has operators of its own.
template <class T, bool AT_ONCE> struct Meeting<T, AT_ONCE, true> {
    volatile T& left;
    const char* file;
    unsigned line;

    void meet() const { meet_at(&left, file, line); }
#define CUDA_C_OF_CLASS(sign)                                                                   \
    template <class V> volatile T& operator sign(V&& right) const {                             \
        if (!AT_ONCE) meet();                                                                   \
        left sign static_cast<V&&>(right);                                                      \
        meet();                                                                                 \
        return left;                                                                            \
    }
    CUDA_C_OF_CLASS(=)
    CUDA_C_OF_CLASS(+=)
    CUDA_C_OF_CLASS(-=)
    CUDA_C_OF_CLASS(*=)
    CUDA_C_OF_CLASS(/=)
    CUDA_C_OF_CLASS(%=)
    CUDA_C_OF_CLASS(&=)
    CUDA_C_OF_CLASS(|=)
    CUDA_C_OF_CLASS(^=)
    CUDA_C_OF_CLASS(<<=)
    CUDA_C_OF_CLASS(>>=)
#undef CUDA_C_OF_CLASS
    volatile T& operator++() const {
        meet();
        ++left;
        meet();
        return left;
    }
    volatile T& operator--() const {
        meet();
        --left;
        meet();
        return left;
    }
    void operator++(int) const {
        meet();
        left++;
        meet();
    }
    void operator--(int) const {
        meet();
        left--;
        meet();
    }
};

template <class T> constexpr bool has_own_operators = __is_class(T) || __is_union(T);

// What is not volatile is assigned to as it is.
template <class X> static inline X&& together(X&& left) { return static_cast<X&&>(left); }
template <class X> static inline X&& at_once(X&& left) { return static_cast<X&&>(left); }
template <class T>
static inline Meeting<T, false, has_own_operators<T>> together(volatile T& left, GPUARRAY_PLACE) {
    return {left, file, line};
}
template <class T>
static inline Meeting<T, true, has_own_operators<T>> at_once(volatile T& left, GPUARRAY_PLACE) {
    return {left, file, line};
}

// Lets the other threads of the block run: for a loop that waits for what one of them does.
static inline bool turn(GPUARRAY_PLACE) {
    // A thread without others waits for the program.
    if (blockDim.x * blockDim.y * blockDim.z > 1) __nanosleep(0, file, line);
    return true;
}

} // namespace cuda_c
} // extern "C++"
