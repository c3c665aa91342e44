// Building blocks of the loop variants that the front end generates: loops over the threads of a block.
#pragma once

extern "C++" {
namespace gpuarray_abi {

// The maximum number of bytes, on the stack, for variables of a block's threads that live longer than one
// loop over threads.
constexpr unsigned long MOST_KEPT = 96 << 10;

template <class T> struct WithoutConst { typedef T type; };
template <class T> struct WithoutConst<const T> { typedef T type; };
// Kept pointers are stored in an array per thread, where `__restrict__` would not hold.
template <class T> struct WithoutConst<T* __restrict__> { typedef T* type; };
template <class T> struct WithoutConst<T* const __restrict__> { typedef T* type; };
template <class T> using Kept = typename WithoutConst<T>::type;

// True for types whose objects may be created in one place and then kept in another. A constructor of the
// program might store a pointer to the first place, if the object has room for one.
template <class T>
constexpr bool may_move = !(__is_class(T) || __is_union(T)) || sizeof(T) < sizeof(void*) ||
                          (__is_aggregate(T) && __is_trivially_constructible(T));
template <class T, unsigned long N> constexpr bool may_move<T[N]> = may_move<T>;

// Gives a kept variable its initial value.
template <class T, class U> static inline __attribute__((always_inline)) void keep(T& kept, const U& value) {
    static_assert(__is_trivially_copyable(T) && sizeof(T) == sizeof(U), "a type of plain data");
    kept = value;
}
template <class T, class U, unsigned long N>
static inline __attribute__((always_inline)) void keep(T (&kept)[N], const U (&value)[N]) {
    for (unsigned long i = 0; i < N; ++i) keep(kept[i], value[i]);
}

// The type of an offset that is added to a variable; for a pointer, a number of elements.
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

// A loop whose iterations are spread over the threads, run in rounds. In each round, a thread's counter is
// its initial value plus `shift`.
template <class T> struct Rounds {
    T end, by, shift = 0, least = 0, most = 0;
    bool is_in_range, is_empty = true;
    template <class End, class By> Rounds(End end, By by) : end(T(end)), by(T(by)) {
        static_assert(End(3) / 2 == 1 && By(3) / 2 == 1, "integers only");
        is_in_range = !(end < 0) && by > 0 && (unsigned long)end <= LIMIT && (unsigned long)by <= LIMIT;
    }
    // Adds the initial counter of a thread.
    void add(T first) {
        least = is_empty || first < least ? first : least;
        most = is_empty || first > most ? first : most;
        is_empty = false;
    }
    // True if no counter is negative and none can wrap.
    bool is_plain() const {
        return is_in_range && !(least < 0) && (unsigned long)most <= LIMIT;
    }
    bool has_all() const { return T(most + shift) < end && !is_empty; }
    bool has_some() const { return T(least + shift) < end && !is_empty; }
    void next() { shift += by; }

  private:
    // A limit so that the sum of three such numbers does not wrap.
    static constexpr unsigned long LIMIT = (~0ul >> (8 * (sizeof(unsigned long) - sizeof(T)))) / 8;
};

// Converts an operand of a comparison to the common type. Both operands are already promoted, because only an
// expression shows that an operand is a bit-field.
template <class A, class B>
static inline __attribute__((always_inline)) decltype(A(0) + B(0)) compared(A operand, B) {
    return static_cast<decltype(A(0) + B(0))>(operand);
}
// True if the threads that meet a comparison of this type can be computed: for integers of at most 64 bits.
template <class T> constexpr bool is_clipped(T) { return sizeof(T) <= sizeof(long) && T(3) / T(2) == T(1); }
// True if a value equals the first one plus a number of threads, without wrapping. Always true for other
// types than integers of at most 64 bits.
template <class T> static inline __attribute__((always_inline)) bool counts(T first, T last, unsigned threads) {
    return !is_clipped(first) || (last >= first && (unsigned long)last - (unsigned long)first == threads);
}

// A row of neighbouring threads, and the range of them that meets comparisons of a value which increases by
// one along the row. `value` belongs to the first thread.
struct Row {
    const unsigned first, threads;
    unsigned begin, end;
    Row(unsigned begin, unsigned end) : first(begin), threads(end - begin), begin(begin), end(end) {}
    template <class T> void less(T value, T bound) { at_most(below(value, bound)); }
    template <class T> void less_or_equal(T value, T bound) { at_most(up_to(value, bound)); }
    template <class T> void greater(T value, T bound) {
        if (is_clipped(bound)) from(up_to(value, bound));
    }
    template <class T> void greater_or_equal(T value, T bound) {
        if (is_clipped(bound)) from(below(value, bound));
    }
    template <class T> void equal(T value, T bound) {
        greater_or_equal(value, bound);
        less_or_equal(value, bound);
    }

  private:
    void at_most(unsigned count) { end = first + count < end ? first + count : end; }
    void from(unsigned count) { begin = first + count > begin ? first + count : begin; }
    // The number of threads whose value is below a bound, and the number whose value is at most the bound.
    template <class T> unsigned below(T value, T bound) const {
        return !is_clipped(bound) ? threads : bound <= value ? 0 : count(value, bound);
    }
    template <class T> unsigned up_to(T value, T bound) const {
        if (!is_clipped(bound)) return threads;
        if (bound < value) return 0;
        const unsigned below = count(value, bound);
        return below < threads ? below + 1 : threads;
    }
    template <class T> unsigned count(T value, T bound) const {
        const unsigned long count = (unsigned long)bound - (unsigned long)value;
        return count < threads ? (unsigned)count : threads;
    }
};

// Prefetches a row of elements some iterations before it is accessed, if the distance between iterations is
// too large for the processor's own prefetcher.
struct Ahead {
    // The distance in bytes from which rows are prefetched, and the size of rows that the first-level cache
    // can hold.
    static constexpr long FAR = 4096;
    static constexpr unsigned long SHORT = 256;
    unsigned long row = ~0ul;
    long index = 0, step = 0;
    // Records the index at which a row begins, using the first row in each iteration.
    void see(unsigned long at, long begin) {
        if (at > row) return;
        step = at == row ? begin - index : 0;
        row = at;
        index = begin;
    }
    template <unsigned long BYTES, bool WRITES>
    void ask(unsigned long elements, long begin, const Row& threads) const {
        if (step * (long)BYTES < FAR && step * (long)BYTES > -FAR) return;
        if ((threads.end - threads.begin) * BYTES <= SHORT) {
            ask_for<BYTES, WRITES, 3>(elements, begin + 2 * step, threads);
        } else {
            ask_for<BYTES, WRITES, 2>(elements, begin + 4 * step, threads);
        }
    }

  private:
    template <unsigned long BYTES, bool WRITES, int NEAR>
    static void ask_for(unsigned long elements, long begin, const Row& threads) {
        const unsigned long first = elements + (unsigned long)begin * BYTES;
        const unsigned long end = first + threads.end * BYTES;
        for (unsigned long at = (first + threads.begin * BYTES) & ~63ul; at < end; at += 64) {
            __builtin_prefetch((const void*)at, WRITES, NEAR);
        }
    }
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
