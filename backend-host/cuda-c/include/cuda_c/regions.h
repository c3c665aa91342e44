// What the second forms of kernels consist of, which the driver writes: loops over the threads of a block.
#pragma once

extern "C++" {
namespace gpuarray_abi {

// Bytes of threads' variables that live longer than a loop over threads: of a block no more than this, on the
// stack.
constexpr unsigned long MOST_KEPT = 96 << 10;

template <class T> struct WithoutConst { typedef T type; };
template <class T> struct WithoutConst<const T> { typedef T type; };
template <class T> using Kept = typename WithoutConst<T>::type;

// True for what may be made in one place and then kept in another: a constructor of the program's might leave a
// pointer to the first, where there is room for one.
template <class T>
constexpr bool may_move = !(__is_class(T) || __is_union(T)) || sizeof(T) < sizeof(void*) ||
                          (__is_aggregate(T) && __is_trivially_constructible(T));
template <class T, unsigned long N> constexpr bool may_move<T[N]> = may_move<T>;

// Gives a kept variable the value that it begins with.
template <class T, class U> static inline __attribute__((always_inline)) void keep(T& kept, const U& value) {
    static_assert(__is_trivially_copyable(T) && sizeof(T) == sizeof(U), "a type of plain data");
    kept = value;
}
template <class T, class U, unsigned long N>
static inline __attribute__((always_inline)) void keep(T (&kept)[N], const U (&value)[N]) {
    for (unsigned long i = 0; i < N; ++i) keep(kept[i], value[i]);
}

// What is added to a variable, in its own type; for a pointer a number of elements.
template <class T> struct OffsetOf { typedef T type; };
template <class T> struct OffsetOf<T*> { typedef long type; };
template <class T> using Offset = typename OffsetOf<T>::type;
template <class T, class U> static inline void add(T& offset, U by) {
    static_assert(static_cast<decltype(by + 0)>(3) / 2 == 1, "integers only");
    offset += by;
}
template <class T, class U> static inline void subtract(T& offset, U by) {
    static_assert(static_cast<decltype(by + 0)>(3) / 2 == 1, "integers only");
    offset -= by;
}
template <class T> static inline __attribute__((always_inline)) T same(T value) { return value; }

// A loop whose iterations are spread over the threads, in rounds: in each, a thread's counter is
// what it began with, plus `shift`.
template <class T> struct Rounds {
    T end, by, shift = 0, least = 0, most = 0;
    bool is_in_range, is_empty = true;
    template <class End, class By> Rounds(End end, By by) : end(T(end)), by(T(by)) {
        static_assert(End(3) / 2 == 1 && By(3) / 2 == 1, "integers only");
        is_in_range = !(end < 0) && by > 0 && (unsigned long)end <= LIMIT && (unsigned long)by <= LIMIT;
    }
    // The counter that a thread begins with.
    void add(T first) {
        least = is_empty || first < least ? first : least;
        most = is_empty || first > most ? first : most;
        is_empty = false;
    }
    // True if no counter is negative, and none can wrap.
    bool is_plain() const {
        return is_in_range && !(least < 0) && (unsigned long)most <= LIMIT;
    }
    bool has_all() const { return T(most + shift) < end && !is_empty; }
    bool has_some() const { return T(least + shift) < end && !is_empty; }
    void next() { shift += by; }
    // Asks for the elements of a later round, so that memory is there by then: rounds are far apart, and
    // processors do not expect them across pages.
    template <class Element> void ask(const Element* elements, unsigned threads) const {
        const unsigned long first = (unsigned long)least + shift + 2 * by;
        if (first >= (unsigned long)end) return;
        const unsigned long address = (unsigned long)elements + first * sizeof(Element);
        for (unsigned long at = 0; at < threads * sizeof(Element); at += 64) {
            __builtin_prefetch((const void*)(address + at));
        }
    }

  private:
    // Three of these can be added up.
    static constexpr unsigned long LIMIT = (~0ul >> (8 * (sizeof(unsigned long) - sizeof(T)))) / 8;
};

static inline __attribute__((always_inline)) void set_thread(unsigned x, unsigned y, unsigned z) {
    threadIdx.x = x;
    apart();
    threadIdx.y = y;
    apart();
    threadIdx.z = z;
}

} // namespace gpuarray_abi
} // extern "C++"
