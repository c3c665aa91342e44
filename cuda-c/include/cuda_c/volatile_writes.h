// Writes to volatile shared and global memory, as the lanes of a warp make them on a GPU: all lanes read, then
// all lanes write.
//
// Programs written before __syncwarp rely on that: `s[t] += s[t + 16]; s[t] += s[t + 8];`. Without these
// functions, a lane would run to the next barrier before another one starts. The front end wraps the left
// sides of such assignments in them (src/volatile_writes.rs).
#pragma once

extern "C++" {
namespace cuda_c {

// Returns true for global memory. Most variables of this thread are close to the frame of this function.
static inline bool is_far(const volatile void* written) {
    const size_t near = 4096, after = (size_t)written - (size_t)__builtin_frame_address(0);
    return after + near > 2 * near && gpuarray_abi::space_of(written) == gpuarray_abi::GLOBAL;
}

// Waits for the lanes that reach the same line, if the memory is shared, or global and FAR is true.
template <bool FAR> static inline void meet_at(const volatile void* written, const char* file, unsigned line) {
    if (gpuarray_abi::is_shared(written) || (FAR && is_far(written)))
        gpuarray_abi::rendezvous(0, nullptr, nullptr, file, line);
}

// After a branch in which lanes write, the other lanes wait for them. The meeting place is numbered above all
// lines of the program; the ends of branches are numbered in source order.
static inline void meet_behind(unsigned number) {
    gpuarray_abi::rendezvous(0, nullptr, nullptr, nullptr, 0x40000000u | number);
}

// A volatile variable on the left side of an assignment. All lanes read their values before any lane writes,
// and all lanes write before any continues. A constant is written immediately, for lanes that wait for it.
template <class T, bool FAR, bool AT_ONCE, bool IS_CLASS> struct Meeting {
    volatile T& left;
    const char* file;
    unsigned line;

    void meet() const { meet_at<FAR>(&left, file, line); }
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

// A class has its own operators.
template <class T, bool FAR, bool AT_ONCE> struct Meeting<T, FAR, AT_ONCE, true> {
    volatile T& left;
    const char* file;
    unsigned line;

    void meet() const { meet_at<FAR>(&left, file, line); }
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

// Variables that are not volatile are assigned as usual.
template <bool FAR = false, class X> static inline X&& together(X&& left) { return static_cast<X&&>(left); }
template <bool FAR = false, class X> static inline X&& at_once(X&& left) { return static_cast<X&&>(left); }
template <bool FAR = false, class T>
static inline Meeting<T, FAR, false, has_own_operators<T>> together(volatile T& left, GPUARRAY_PLACE) {
    return {left, file, line};
}
template <bool FAR = false, class T>
static inline Meeting<T, FAR, true, has_own_operators<T>> at_once(volatile T& left, GPUARRAY_PLACE) {
    return {left, file, line};
}

// Lets the other threads of the block run, for a loop that waits for one of them.
static inline bool turn(GPUARRAY_PLACE) {
    // A thread that is alone in its block waits for the host program, not for another thread.
    if (blockDim.x * blockDim.y * blockDim.z > 1) __nanosleep(0, file, line);
    return true;
}

// True for references to volatile variables.
template <class X> constexpr bool is_volatile = false;
template <class T> constexpr bool is_volatile<volatile T&> = true;

// True for volatile types, and for pointers, arrays and references to such types.
template <class T> constexpr bool leads_to_volatile = false;
template <class T> struct Element { static constexpr bool value = leads_to_volatile<T>; };
template <class T> struct Element<T[]> : Element<T> {};
template <class T, decltype(sizeof(0)) n> struct Element<T[n]> : Element<T> {};
template <class T> constexpr bool leads_to_volatile<const T> = leads_to_volatile<T>;
template <class T> constexpr bool leads_to_volatile<volatile T> = true;
template <class T> constexpr bool leads_to_volatile<const volatile T> = true;
template <class T> constexpr bool leads_to_volatile<T*> = Element<T>::value;
template <class T> constexpr bool leads_to_volatile<T&> = Element<T>::value;
template <class T> constexpr bool leads_to_volatile<T&&> = Element<T>::value;

// Where the text does not show if an expression is volatile, the compiler says so by an error that names this type and
// the line. The front end then writes the text again.
template <int line> struct VolatileAt;
template <class X, int line> static inline constexpr void written() {
    if constexpr (is_volatile<X>) (void)sizeof(VolatileAt<line>);
}
template <class X, int line> static inline constexpr void awaited() {
    if constexpr (leads_to_volatile<X>) (void)sizeof(VolatileAt<line>);
}
// On such a line, for a loop with expressions of these types in its condition.
template <class... X> static inline bool turn_for(GPUARRAY_PLACE) {
    if constexpr ((leads_to_volatile<X> || ...)) turn(file, line);
    return true;
}

} // namespace cuda_c
} // extern "C++"
