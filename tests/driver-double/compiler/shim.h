// CUDA C on the host, for programs without any header: what the compiler of the real vendor
// has built in. Kept small, for it is compiled with every program. `double_` names belong to
// the driver double, which finds `double_module` in the finished library.

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

#define DOUBLE_VECTOR(name, type, alignment)                                               \
    struct name##1 { type x; };                                                            \
    struct __attribute__((aligned(alignment * 2))) name##2 { type x, y; };                 \
    struct name##3 { type x, y, z; };                                                      \
    struct __attribute__((aligned(alignment * 4 > 16 ? 16 : alignment * 4))) name##4 {     \
        type x, y, z, w;                                                                   \
    };                                                                                     \
    static inline name##1 make_##name##1(type x) { return {x}; }                           \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }     \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
DOUBLE_VECTOR(char, signed char, 1)
DOUBLE_VECTOR(uchar, unsigned char, 1)
DOUBLE_VECTOR(short, short, 2)
DOUBLE_VECTOR(ushort, unsigned short, 2)
DOUBLE_VECTOR(int, int, 4)
DOUBLE_VECTOR(uint, unsigned, 4)
DOUBLE_VECTOR(long, long, 8)
DOUBLE_VECTOR(ulong, unsigned long, 8)
DOUBLE_VECTOR(longlong, long long, 8)
DOUBLE_VECTOR(ulonglong, unsigned long long, 8)
DOUBLE_VECTOR(float, float, 4)
DOUBLE_VECTOR(double, double, 8)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = DOUBLE_WARP;

// What the driver double and a program know of each other.
struct double_entry {
    const char* name;
    void (*function)();
    void (*invoke)(void (*)(), void**);
    const unsigned short* layout; // size and alignment of each parameter
    unsigned parameters;
    int most_threads; // of __launch_bounds__, 0 without
    int index;        // among the kernels of the text, -1 for name expressions
    const double_entry* next;
};
struct double_extent {
    long index;
    unsigned long bytes;
};
extern "C" __attribute__((weak, visibility("hidden"))) const double_extent __start_double_sizes[];
extern "C" __attribute__((weak, visibility("hidden"))) const double_extent __stop_double_sizes[];
extern "C" __attribute__((visibility("hidden"), aligned(128))) char double_dynamic_shared[];
char double_dynamic_shared[232448 + 256];
extern "C" struct double_module_type {
    char stamp[64];
    uint3 *thread, *block;
    dim3 *block_size, *grid_size;
    char* shared;
    const double_extent *extents, *extents_end; // static shared memory of the kernels
    const double_entry* entries;
    unsigned long serial; // of the block that runs
    void (*barrier)(int warp);
    void (*trap)(int status);
} double_module;
double_module_type double_module = {
    "driver double: program", &threadIdx, &blockIdx, &blockDim, &gridDim, double_dynamic_shared,
    __start_double_sizes, __stop_double_sizes, 0, 0, 0, 0};

template <unsigned long... I> struct double_indices {};
#ifdef __clang__
template <class, unsigned long... I> using double_indices_of = double_indices<I...>;
template <unsigned long N>
using double_range = __make_integer_seq<double_indices_of, unsigned long, N>;
#else
template <unsigned long N> using double_range = double_indices<__integer_pack(N)...>;
#endif
template <class... A> struct double_signature {
    template <unsigned long... I>
    static void call(void (*kernel)(A...), void** arguments, double_indices<I...>) {
        kernel(*(A*)arguments[I]...);
    }
    static void invoke(void (*kernel)(), void** arguments) {
        call((void (*)(A...))kernel, arguments, double_range<sizeof...(A)>());
    }
    static const unsigned short* layout() {
        static const unsigned short it[] = {sizeof(A)..., alignof(A)..., 0};
        return it;
    }
};
struct double_kernel : double_entry {
    template <class... A>
    double_kernel(const char* name, void (*kernel)(A...), int most_threads, int index)
        : double_entry{name, (void (*)())kernel, double_signature<A...>::invoke,
                       double_signature<A...>::layout(), sizeof...(A), most_threads, index,
                       double_module.entries} {
        double_module.entries = this;
    }
    double_kernel(const char* name, const volatile void* variable, int, int)
        : double_entry{name, (void (*)())variable, 0, 0, 0, 0, -1, double_module.entries} {
        double_module.entries = this;
    }
};
// Shared memory holds garbage when a block starts.
extern "C" void* memset(void*, int, unsigned long) noexcept;
extern "C" void* memcpy(void*, const void*, unsigned long) noexcept;
static inline void double_fresh(void* memory, unsigned long bytes, unsigned long& serial) {
    if (serial != double_module.serial) {
        serial = double_module.serial;
        memset(memory, 0xcd, bytes);
    }
}

// Barriers, votes and shuffles.
static inline void __syncthreads() { double_module.barrier(0); }
static inline void __syncwarp(unsigned = ~0u) { double_module.barrier(1); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline unsigned double_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
static int double_votes;
static inline int __syncthreads_count(int vote) {
    __syncthreads();
    double_votes = 0;
    __syncthreads();
    double_votes += vote != 0;
    __syncthreads();
    return double_votes;
}
static inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) != 0; }
static inline int __syncthreads_and(int vote) { return __syncthreads_count(!vote) == 0; }
static unsigned long long double_lanes[1024];
template <class T> static inline T double_shuffle(T value, unsigned lane, bool valid) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    double_lanes[double_rank()] = bits;
    double_module.barrier(1);
    bits = double_lanes[double_rank() / warpSize * warpSize + lane];
    double_module.barrier(1);
    if (valid) memcpy(&value, &bits, sizeof value);
    return value;
}
#if DOUBLE_WARP > 32
typedef unsigned long long double_mask; // a bit for each thread
#else
typedef unsigned double_mask;
#endif
template <class T> static inline T double_shfl(T value, int from, int width) {
    const unsigned lane = double_rank() % warpSize;
    return double_shuffle(value, lane / width * width + from % width, true);
}
template <class T> static inline T double_shfl_up(T value, unsigned by, int width) {
    const unsigned lane = double_rank() % warpSize;
    return double_shuffle(value, lane - by, lane % width >= by);
}
template <class T> static inline T double_shfl_down(T value, unsigned by, int width) {
    const unsigned lane = double_rank() % warpSize;
    return double_shuffle(value, lane + by, lane % width + by < (unsigned)width);
}
template <class T> static inline T double_shfl_xor(T value, int mask, int width) {
    const unsigned lane = double_rank() % warpSize;
    const unsigned other = lane ^ mask;
    return double_shuffle(value, other, other / width <= lane / width);
}
static inline double_mask double_ballot(int vote) {
    double_mask all = 0;
    for (int lane = 0; lane < warpSize; ++lane) {
        const int its = double_shfl(vote, lane, warpSize);
        const unsigned rank = double_rank() / warpSize * warpSize + lane;
        all |= (double_mask)(its != 0 && rank < blockDim.x * blockDim.y * blockDim.z) << lane;
    }
    return all;
}
#define DOUBLE_SHUFFLE(name, type)                                                          \
    template <class T>                                                                      \
    static inline T __##name##_sync(double_mask, T value, type by, int width = warpSize) {  \
        return double_##name(value, by, width);                                             \
    }
DOUBLE_SHUFFLE(shfl, int)
DOUBLE_SHUFFLE(shfl_up, unsigned)
DOUBLE_SHUFFLE(shfl_down, unsigned)
DOUBLE_SHUFFLE(shfl_xor, int)
static inline double_mask __ballot_sync(double_mask, int vote) { return double_ballot(vote); }
static inline int __any_sync(double_mask, int vote) { return double_ballot(vote) != 0; }
static inline int __all_sync(double_mask, int vote) { return double_ballot(!vote) == 0; }
#ifdef __HIP__
// HIP has these without a mask as well.
#define DOUBLE_UNMASKED(name, type)                                                         \
    template <class T>                                                                      \
    static inline T __##name(T value, type by, int width = warpSize) {                      \
        return double_##name(value, by, width);                                             \
    }
DOUBLE_UNMASKED(shfl, int)
DOUBLE_UNMASKED(shfl_up, unsigned)
DOUBLE_UNMASKED(shfl_down, unsigned)
DOUBLE_UNMASKED(shfl_xor, int)
static inline double_mask __ballot(int vote) { return double_ballot(vote); }
static inline int __any(int vote) { return double_ballot(vote) != 0; }
static inline int __all(int vote) { return double_ballot(!vote) == 0; }
#endif

// Threads take turns only at barriers, so that plain accesses are atomic.
template <class T> struct double_same { typedef T type; };
#define DOUBLE_ATOMIC(name, next)                                                           \
    template <class T>                                                                      \
    static inline T name(T* address, typename double_same<T>::type value) {                 \
        const T old = *address;                                                             \
        *address = next;                                                                    \
        return old;                                                                         \
    }                                                                                       \
    template <class T>                                                                      \
    static inline T name##_block(T* address, typename double_same<T>::type value) {         \
        return name(address, value);                                                        \
    }                                                                                       \
    template <class T>                                                                      \
    static inline T name##_system(T* address, typename double_same<T>::type value) {        \
        return name(address, value);                                                        \
    }
DOUBLE_ATOMIC(atomicAdd, old + value)
DOUBLE_ATOMIC(atomicSub, old - value)
DOUBLE_ATOMIC(atomicExch, value)
DOUBLE_ATOMIC(atomicMin, value < old ? value : old)
DOUBLE_ATOMIC(atomicMax, value > old ? value : old)
DOUBLE_ATOMIC(atomicAnd, old & value)
DOUBLE_ATOMIC(atomicOr, old | value)
DOUBLE_ATOMIC(atomicXor, old ^ value)
DOUBLE_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
DOUBLE_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <class T>
static inline T atomicCAS(T* address, typename double_same<T>::type compare,
                          typename double_same<T>::type value) {
    const T old = *address;
    *address = old == compare ? value : old;
    return old;
}
