// Exchanges between the lanes of a warp: shuffles, votes, matches and reductions.
//
// Each lane passes a record. When all lanes of the mask have arrived, one of them writes all results. A lane
// that has returned does not take part. Reading from a lane that does not take part returns the reader's own
// value; on a GPU the result is undefined.
//
// `__activemask` and the forms without a mask treat as active the lanes that reach the same source line
// before any lane of the warp can continue without them. `__activemask` also distinguishes the paths by which
// lanes arrive, like a GPU, which runs branches one after another.
#pragma once

extern "C++" {
namespace cuda_c {

typedef gpuarray_abi::Lanes Lanes;

// The lanes that arrive by the same path: in the same copy of the code, for example of a function that is
// inlined into two branches, and from the same call of the enclosing function. The compiler may make more
// copies than the program shows. That separates lanes that might have arrived together, which no program can
// rely on.
static inline __attribute__((always_inline)) Lanes active_lanes(const char* file, unsigned line) {
    unsigned long long way = 0;
#if defined(__x86_64__)
    __asm__ __volatile__("lea 0(%%rip), %0" : "=r"(way));
#elif defined(__aarch64__)
    __asm__ __volatile__("adr %0, ." : "=r"(way));
#endif
    way = way * 31 + (unsigned long long)__builtin_return_address(0);
    return gpuarray_abi::rendezvous(0, (void*)way, nullptr, file, line);
}
#if GPUARRAY_WARP_SIZE > 32
typedef unsigned long long Mask; // the type of masks in programs
#else
typedef unsigned int Mask;
#endif

// Runs a function on the records of two lanes, for the lanes that arrived.
template <class Record> static inline auto& record_of(void* const* records, int lane) {
    return *static_cast<Record*>(records[lane]);
}

template <class T> struct Shuffle {
    T value, result;
    int from;
    static auto combine(void* const* records, Lanes lanes) {
        for (Lanes left = lanes; left; left &= left - 1) {
            Shuffle& own = record_of<Shuffle>(records, __builtin_ctzll(left));
            const bool here = lanes >> own.from & 1;
            own.result = here ? record_of<Shuffle>(records, own.from).value : own.value;
        }
    }
};
template <class T>
static inline auto shuffle(Lanes mask, T value, int from, const char* file, unsigned line) {
    Shuffle<T> record = {value, value, from};
    gpuarray_abi::rendezvous(mask, &record, Shuffle<T>::combine, file, line);
    return record.result;
}
// The lane that each form reads. Offsets count modulo the warp size, as in the instructions.
static inline int lane_at(int lane, int source, int width) {
    return (lane & -width) | (source & (width - 1));
}
static inline int lane_up(int lane, unsigned int by, int width) {
    const int from = lane - (int)(by % GPUARRAY_WARP_SIZE);
    return from < (lane & -width) ? lane : from;
}
static inline int lane_down(int lane, unsigned int by, int width) {
    const int from = lane + (int)(by % GPUARRAY_WARP_SIZE);
    return from > (lane | (width - 1)) ? lane : from;
}
static inline int lane_xor(int lane, int bits, int width) {
    const int from = lane ^ (bits & (GPUARRAY_WARP_SIZE - 1));
    return from > (lane | (width - 1)) ? lane : from;
}

struct Vote {
    Lanes result;
    bool predicate;
    static auto combine(void* const* records, Lanes lanes) {
        Lanes voted = 0;
        for (Lanes left = lanes; left; left &= left - 1) {
            const int lane = __builtin_ctzll(left);
            voted |= (Lanes)record_of<Vote>(records, lane).predicate << lane;
        }
        for (Lanes left = lanes; left; left &= left - 1) {
            record_of<Vote>(records, __builtin_ctzll(left)).result = voted;
        }
    }
};
static inline Lanes ballot(Lanes mask, bool predicate, const char* file, unsigned line) {
    Vote record = {0, predicate};
    gpuarray_abi::rendezvous(mask, &record, Vote::combine, file, line);
    return record.result;
}

template <class T> struct Match {
    T value;
    Lanes equal, present;
    static auto combine(void* const* records, Lanes lanes) {
        for (Lanes left = lanes; left; left &= left - 1) {
            Match& own = record_of<Match>(records, __builtin_ctzll(left));
            own.equal = 0;
            own.present = lanes;
            for (Lanes others = lanes; others; others &= others - 1) {
                const int other = __builtin_ctzll(others);
                own.equal |= (Lanes)(record_of<Match>(records, other).value == own.value) << other;
            }
        }
    }
};
template <class T>
static inline auto match(Lanes mask, T value, const char* file, unsigned line) {
    Match<T> record = {value, 0, 0};
    gpuarray_abi::rendezvous(mask, &record, Match<T>::combine, file, line);
    return record;
}

// A reduction in lane order, and the sums before or up to each lane.
template <class T, class Operation> struct Reduce {
    T value;
    const Operation* operation;
    static auto combine(void* const* records, Lanes lanes) {
        Reduce& first = record_of<Reduce>(records, __builtin_ctzll(lanes));
        T sum = first.value;
        for (Lanes left = lanes & (lanes - 1); left; left &= left - 1) {
            sum = (*first.operation)(sum, record_of<Reduce>(records, __builtin_ctzll(left)).value);
        }
        for (Lanes left = lanes; left; left &= left - 1) {
            record_of<Reduce>(records, __builtin_ctzll(left)).value = sum;
        }
    }
};
template <class T, class Operation>
static inline auto reduce(Lanes mask, T value, const Operation& operation, const char* file, unsigned line) {
    Reduce<T, Operation> record = {value, &operation};
    gpuarray_abi::rendezvous(mask, &record, Reduce<T, Operation>::combine, file, line);
    return record.value;
}
template <class T, class Operation> struct Scan {
    T value, before;
    const Operation* operation;
    static auto combine(void* const* records, Lanes lanes) {
        Scan* last = nullptr;
        for (Lanes left = lanes; left; left &= left - 1) {
            Scan& own = record_of<Scan>(records, __builtin_ctzll(left));
            if (last) {
                own.before = last->value;
                own.value = (*own.operation)(last->value, own.value);
            }
            last = &own;
        }
    }
};
template <class T, class Operation>
static inline Scan<T, Operation> scan(Lanes mask, T value, T first, const Operation& operation,
                                      const char* file, unsigned line) {
    Scan<T, Operation> record = {value, first, &operation};
    gpuarray_abi::rendezvous(mask, &record, Scan<T, Operation>::combine, file, line);
    return record;
}

} // namespace cuda_c

static inline void __syncwarp(cuda_c::Mask mask = ~(cuda_c::Mask)0, GPUARRAY_PLACE) {
    gpuarray_abi::rendezvous(mask, nullptr, nullptr, file, line);
}
static inline __attribute__((always_inline)) cuda_c::Mask __activemask(GPUARRAY_PLACE) {
    return (cuda_c::Mask)cuda_c::active_lanes(file, line);
}

// Defines each shuffle for a type, with and without a mask.
#define CUDA_C_SHUFFLE(type, name, lane_of, offset)                                             \
    static inline type __##name##_sync(cuda_c::Mask mask, type value, offset by,                \
                                       int width = GPUARRAY_WARP_SIZE, GPUARRAY_PLACE) {        \
        const int from = cuda_c::lane_of((int)gpuarray_abi::lane(), by, width);                 \
        return cuda_c::shuffle(mask, value, from, file, line);                                  \
    }                                                                                           \
    static inline type __##name(type value, offset by, int width = GPUARRAY_WARP_SIZE,          \
                                GPUARRAY_PLACE) {                                               \
        const int from = cuda_c::lane_of((int)gpuarray_abi::lane(), by, width);                 \
        return cuda_c::shuffle(0, value, from, file, line);                                     \
    }
#define CUDA_C_SHUFFLES(type)                                                                   \
    CUDA_C_SHUFFLE(type, shfl, lane_at, int)                                                    \
    CUDA_C_SHUFFLE(type, shfl_up, lane_up, unsigned int)                                        \
    CUDA_C_SHUFFLE(type, shfl_down, lane_down, unsigned int)                                    \
    CUDA_C_SHUFFLE(type, shfl_xor, lane_xor, int)
CUDA_C_SHUFFLES(int)
CUDA_C_SHUFFLES(unsigned int)
CUDA_C_SHUFFLES(long)
CUDA_C_SHUFFLES(unsigned long)
CUDA_C_SHUFFLES(long long)
CUDA_C_SHUFFLES(unsigned long long)
CUDA_C_SHUFFLES(float)
CUDA_C_SHUFFLES(double)

static inline cuda_c::Mask __ballot_sync(cuda_c::Mask mask, int predicate, GPUARRAY_PLACE) {
    return (cuda_c::Mask)cuda_c::ballot(mask, predicate != 0, file, line);
}
static inline int __any_sync(cuda_c::Mask mask, int predicate, GPUARRAY_PLACE) {
    return cuda_c::ballot(mask, predicate != 0, file, line) != 0;
}
static inline int __all_sync(cuda_c::Mask mask, int predicate, GPUARRAY_PLACE) {
    return cuda_c::ballot(mask, predicate == 0, file, line) == 0;
}
static inline int __uni_sync(cuda_c::Mask mask, int predicate, GPUARRAY_PLACE) {
    const cuda_c::Match<bool> found = cuda_c::match(mask, predicate != 0, file, line);
    return found.equal == found.present;
}
static inline cuda_c::Mask __ballot(int predicate, GPUARRAY_PLACE) {
    return (cuda_c::Mask)cuda_c::ballot(0, predicate != 0, file, line);
}
static inline int __any(int predicate, GPUARRAY_PLACE) {
    return cuda_c::ballot(0, predicate != 0, file, line) != 0;
}
static inline int __all(int predicate, GPUARRAY_PLACE) {
    return cuda_c::ballot(0, predicate == 0, file, line) == 0;
}

// Values are equal if their bits are equal: a NaN matches itself, and zeros of different signs do not match.
#define CUDA_C_MATCH(type, word)                                                                \
    static inline cuda_c::Mask __match_any_sync(cuda_c::Mask mask, type value, GPUARRAY_PLACE) {   \
        return (cuda_c::Mask)cuda_c::match(mask, cuda_c::bits<word>(value), file, line).equal;  \
    }                                                                                           \
    static inline cuda_c::Mask __match_all_sync(cuda_c::Mask mask, type value, int* all,        \
                                                GPUARRAY_PLACE) {                                  \
        const cuda_c::Match<word> found =                                                       \
            cuda_c::match(mask, cuda_c::bits<word>(value), file, line);                         \
        *all = found.equal == found.present;                                                    \
        return *all ? (cuda_c::Mask)found.equal : 0;                                            \
    }
CUDA_C_MATCH(int, unsigned int)
CUDA_C_MATCH(unsigned int, unsigned int)
CUDA_C_MATCH(long, unsigned long)
CUDA_C_MATCH(unsigned long, unsigned long)
CUDA_C_MATCH(long long, unsigned long long)
CUDA_C_MATCH(unsigned long long, unsigned long long)
CUDA_C_MATCH(float, unsigned int)
CUDA_C_MATCH(double, unsigned long long)
#undef CUDA_C_MATCH

#define CUDA_C_REDUCE(type, name, value)                                                        \
    static inline type __reduce_##name##_sync(cuda_c::Mask mask, type brought, GPUARRAY_PLACE) {   \
        struct Operation {                                                                      \
            type operator()(type x, type y) const { return value; }                             \
        };                                                                                      \
        return cuda_c::reduce(mask, brought, Operation(), file, line);                          \
    }
CUDA_C_REDUCE(unsigned int, add, x + y)
CUDA_C_REDUCE(unsigned int, min, y < x ? y : x)
CUDA_C_REDUCE(unsigned int, max, x < y ? y : x)
CUDA_C_REDUCE(int, add, (int)((unsigned int)x + (unsigned int)y))
CUDA_C_REDUCE(int, min, y < x ? y : x)
CUDA_C_REDUCE(int, max, x < y ? y : x)
CUDA_C_REDUCE(unsigned int, and, x & y)
CUDA_C_REDUCE(unsigned int, or, x | y)
CUDA_C_REDUCE(unsigned int, xor, x ^ y)
#undef CUDA_C_REDUCE

} // extern "C++"
