// The functions in pygpu-amd-rounding.hpp and pygpu-amd-half-rounding.hpp, compiled for the CPU,
// are compared with the CPU's own rounding modes; 16-bit results with a list of all such numbers.
//
// Arguments: the number of random batches, and `all` to test one-argument functions with every
// float.

#define __HIP__ 1
// Divisions and roots to nearest, as compiler options make them that allow other roundings.
#define PYGPU_FAST_MATH
#define __device__
struct __half {
    unsigned short bits;
};
static __half __ushort_as_half(unsigned short bits) { return {bits}; }
static float __half2float(__half x);
#include <pygpu-amd-half-rounding.hpp>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

static unsigned long long state = 20261128;
static unsigned long long any() {
    unsigned long long z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static int any_between(int low, int high) { return low + (int)(any() % (high - low + 1)); }

template <class To, class From> static To bits(From from) { return __builtin_bit_cast(To, from); }
template <class T> using Bits = pygpu_rounded::Word<T>;

template <class T> struct Batch {
    std::vector<T> x, y, z;
    void put(T a, T b, T c) { x.push_back(a), y.push_back(b), z.push_back(c); }
};

static long long compared, wrong;

template <class R> static bool same(R a, R b) {
    return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}
// Code that depends on the rounding mode is in separate functions, called through pointers.
template <class R, class T>
static void compare(const char *name, int mode, const Batch<T> &batch,
                    void (*here)(R *, const T *, const T *, const T *, size_t),
                    void (*ours)(R *, const T *, const T *, const T *, size_t)) {
    const size_t count = batch.x.size();
    static std::vector<R> expected, got;
    expected.resize(count), got.resize(count);
    std::fesetround(mode);
    here(expected.data(), batch.x.data(), batch.y.data(), batch.z.data(), count);
    std::fesetround(FE_TONEAREST);
    ours(got.data(), batch.x.data(), batch.y.data(), batch.z.data(), count);
    compared += count;
    for (size_t i = 0; i < count; i++)
        if (!same(expected[i], got[i]) && wrong++ < 20)
            std::printf("%s(%a, %a, %a): %a, not %a\n", name, (double)batch.x[i], (double)batch.y[i],
                        (double)batch.z[i], (double)got[i], (double)expected[i]);
}

#define LOOP(R, T, value)                                                                       \
    [](R *out, const T *a, const T *b, const T *c, size_t count) {                              \
        for (size_t i = 0; i < count; i++) {                                                    \
            const T x = a[i], y = b[i], z = c[i];                                               \
            (void)x, (void)y, (void)z, out[i] = value;                                          \
        }                                                                                       \
    }
#define COMPARE(R, T, name, mode, ours, here)                                                   \
    compare<R, T>(#name, mode, batch, LOOP(R, T, here), LOOP(R, T, name ours));
#define DIRECTIONS(R, T, name, ours, here)                                                      \
    COMPARE(R, T, name##_rd, FE_DOWNWARD, ours, here)                                           \
    COMPARE(R, T, name##_ru, FE_UPWARD, ours, here)                                             \
    COMPARE(R, T, name##_rz, FE_TOWARDZERO, ours, here)
#define ROUNDINGS(R, T, name, ours, here)                                                       \
    DIRECTIONS(R, T, name, ours, here) COMPARE(R, T, name##_rn, FE_TONEAREST, ours, here)

// Converts a number in the range of an integer type, with the current rounding mode.
template <class I, class T> static I integer(T x, I of_nan) {
    typedef std::numeric_limits<I> Limits;
    const T whole = std::nearbyint(x);
    if (whole != whole) return of_nan;
    if (whole >= 2 * (T)(Limits::max() / 2 + 1)) return Limits::max();
    return whole <= (T)Limits::min() ? Limits::min() : (I)whole;
}
static const long long HIGHEST = std::numeric_limits<long long>::min();

static float __half2float(__half x) {
    const int field = x.bits >> 10 & 31, digits = x.bits & 1023;
    const float size = field == 31 ? digits ? NAN : INFINITY
                       : field     ? std::ldexp((float)(digits + 1024), field - 25)
                                   : std::ldexp((float)digits, -24);
    return x.bits >> 15 ? -size : size;
}
// Returns the one of the number's two 16-bit neighbours that a rounding mode selects.
static unsigned short neighbour(long double x, int mode) {
    static const std::vector<long double> all = [] {
        std::vector<long double> all;
        for (int at = 0; at <= 0x7c00; at++) all.push_back(__half2float({(unsigned short)at}));
        return all;
    }();
    if (x != x) return 0x7fff;
    const long double size = std::fabs(x);
    const int below = (int)(std::upper_bound(all.begin(), all.end(), size) - all.begin()) - 1;
    const bool exact = all[below] == size, negative = std::signbit(x);
    bool next = mode == FE_DOWNWARD ? negative : mode == FE_UPWARD && !negative;
    if (mode == FE_TONEAREST && !exact) {
        const long double above = below == 0x7bff ? 65536 : all[below + 1];
        const long double middle = (all[below] + above) / 2;
        next = size > middle || (size == middle && below % 2);
    }
    return (unsigned short)(negative << 15 | (below + (!exact && next)));
}
static void to_halves(const Batch<float> &batch) {
    typedef unsigned short U;
    COMPARE(U, float, __float2half_rd, FE_TONEAREST, (x).bits, neighbour(x, FE_DOWNWARD))
    COMPARE(U, float, __float2half_ru, FE_TONEAREST, (x).bits, neighbour(x, FE_UPWARD))
    COMPARE(U, float, __float2half_rz, FE_TONEAREST, (x).bits, neighbour(x, FE_TOWARDZERO))
}
static void to_halves(const Batch<double> &batch) {
    COMPARE(unsigned short, double, __double2half, FE_TONEAREST, (x).bits, neighbour(x, FE_TONEAREST))
}
#define OF_INTEGER(I, name)                                                                     \
    COMPARE(U, L, name##_rd, FE_TONEAREST, ((I)x).bits, neighbour((I)x, FE_DOWNWARD))           \
    COMPARE(U, L, name##_ru, FE_TONEAREST, ((I)x).bits, neighbour((I)x, FE_UPWARD))             \
    COMPARE(U, L, name##_rz, FE_TONEAREST, ((I)x).bits, neighbour((I)x, FE_TOWARDZERO))
static void to_halves(const Batch<long long> &batch) {
    typedef unsigned short U;
    typedef long long L;
    OF_INTEGER(short, __short2half)
    OF_INTEGER(U, __ushort2half)
    OF_INTEGER(int, __int2half)
    OF_INTEGER(unsigned int, __uint2half)
    OF_INTEGER(L, __ll2half)
    OF_INTEGER(unsigned long long, __ull2half)
}
static void of_halves() {
    typedef unsigned short U;
    Batch<U> batch;
    for (int at = 0; at < 0x10000; at++) batch.put((U)at, 0, 0);
#define TO_INTEGER(I, name, of_nan)                                                             \
    ROUNDINGS(I, U, name, (__ushort_as_half(x)), integer(__half2float({x}), (I)of_nan))
    TO_INTEGER(short, __half2short, 0)
    TO_INTEGER(U, __half2ushort, 0)
    TO_INTEGER(int, __half2int, 0)
    TO_INTEGER(unsigned int, __half2uint, 0)
    TO_INTEGER(long long, __half2ll, HIGHEST)
    TO_INTEGER(unsigned long long, __half2ull, HIGHEST)
}

static void of_one(const Batch<float> &batch) {
    ROUNDINGS(long long, float, __float2ll, (x), integer(x, HIGHEST))
    ROUNDINGS(unsigned long long, float, __float2ull, (x), integer(x, 1ull << 63))
    ROUNDINGS(float, float, __frcp, (x), 1.0f / x)
    ROUNDINGS(float, float, __fsqrt, (x), __builtin_sqrtf(x))
    // No float's result is as close to the midpoint of two floats as the error of this computation.
    COMPARE(float, float, __frsqrt_rn, FE_TONEAREST, (x), (float)(1 / std::sqrt((long double)x)))
}
static void of_one(const Batch<double> &batch) {
    ROUNDINGS(int, double, __double2int, (x), integer(x, std::numeric_limits<int>::min()))
    ROUNDINGS(unsigned int, double, __double2uint, (x), integer(x, 1u << 31))
    ROUNDINGS(long long, double, __double2ll, (x), integer(x, HIGHEST))
    ROUNDINGS(unsigned long long, double, __double2ull, (x), integer(x, 1ull << 63))
    ROUNDINGS(double, double, __drcp, (x), 1 / x)
    ROUNDINGS(double, double, __dsqrt, (x), __builtin_sqrt(x))
    DIRECTIONS(float, double, __double2float, (x), (float)x)
}
static void of_two(const Batch<float> &batch) {
    ROUNDINGS(float, float, __fadd, (x, y), x + y)
    ROUNDINGS(float, float, __fsub, (x, y), x - y)
    ROUNDINGS(float, float, __fmul, (x, y), x * y)
    ROUNDINGS(float, float, __fdiv, (x, y), x / y)
}
static void of_two(const Batch<double> &batch) {
    ROUNDINGS(double, double, __dadd, (x, y), x + y)
    ROUNDINGS(double, double, __dsub, (x, y), x - y)
    ROUNDINGS(double, double, __dmul, (x, y), x * y)
    ROUNDINGS(double, double, __ddiv, (x, y), x / y)
}
static void of_three(const Batch<float> &batch) {
    DIRECTIONS(float, float, __fmaf, (x, y, z), __builtin_fmaf(x, y, z))
    ROUNDINGS(float, float, __fmaf_ieee, (x, y, z), __builtin_fmaf(x, y, z))
}
static void of_three(const Batch<double> &batch) {
    DIRECTIONS(double, double, __fma, (x, y, z), __builtin_fma(x, y, z))
}
static void of_integers(const Batch<long long> &batch) {
    typedef unsigned long long U;
    COMPARE(double, long long, __uint2double_rn, FE_TONEAREST, ((unsigned int)x), (double)(unsigned int)x)
    DIRECTIONS(float, long long, __int2float, ((int)x), (float)(int)x)
    DIRECTIONS(float, long long, __uint2float, ((unsigned int)x), (float)(unsigned int)x)
    DIRECTIONS(float, long long, __ll2float, (x), (float)x)
    DIRECTIONS(double, long long, __ll2double, (x), (double)x)
    // The CPU converts only signed integers.
    DIRECTIONS(float, long long, __ull2float, ((U)x), x < 0 ? 2 * (float)(long long)((U)x >> 1 | (x & 1)) : (float)x)
    DIRECTIONS(double, long long, __ull2double, ((U)x), x < 0 ? 2 * (double)(long long)((U)x >> 1 | (x & 1)) : (double)x)
}

template <class T> static std::vector<T> special() {
    constexpr int DIGITS = pygpu_rounded::Form<T>::DIGITS;
    const Bits<T> infinity = pygpu_rounded::infinity<T>(), least = (Bits<T>)1 << (DIGITS - 1);
    std::vector<T> all;
    for (Bits<T> at : {(Bits<T>)1, least / 2, least, 2 * least, (DIGITS + 1) * least, bits<Bits<T>>((T)0.5),
                       bits<Bits<T>>((T)1), bits<Bits<T>>((T)1.5), bits<Bits<T>>((T)2), bits<Bits<T>>((T)3),
                       bits<Bits<T>>((T)std::ldexp((T)1, DIGITS)), infinity - least, infinity})
        for (int by = -1; by <= 1; by++)
            for (T one : {bits<T>((Bits<T>)(at + by)), -bits<T>((Bits<T>)(at + by))}) all.push_back(one);
    return all;
}
// Adds numbers at which a narrowing conversion changes its result, and midpoints between two such
// numbers.
static void put_edges(Batch<float> &batch) {
    for (int at = 0; at < 0x7c00; at++)
        for (int by = -2; by <= 2; by++)
            for (int odd = 0; odd <= 1; odd++) {
                const float low = __half2float({(unsigned short)at});
                const float middle = low + odd * std::ldexp(1.0f, std::max(at >> 10, 1) - 26);
                const float near = bits<float>(bits<int>(middle) + by);
                batch.put(by & 1 ? -near : near, 1, 1);
            }
}
static void put_edges(Batch<double> &batch) {
    for (float at : special<float>())
        for (double middle : {(double)at, (at + (double)std::nextafter(at, INFINITY)) / 2})
            for (int by = -2; by <= 2; by++)
                batch.put(bits<double>(bits<long long>(middle) + by), 1, 1);
    for (int at = 0; at < 0x7c00; at++)
        for (int by = -1; by <= 1; by++) {
            const double middle = __half2float({(unsigned short)at}) + std::ldexp(1.0, std::max(at >> 10, 1) - 26);
            batch.put(bits<double>(bits<long long>(middle) + by), 1, 1);
        }
}

// Returns a random number with any digits, including zeros, and an exponent in a range.
template <class T> static T number(int low, int high) {
    constexpr int DIGITS = pygpu_rounded::Form<T>::DIGITS;
    Bits<T> fraction = (Bits<T>)any();
    if (any() & 1) fraction &= ~(Bits<T>)0 << any_between(0, DIGITS - 1);
    fraction &= ((Bits<T>)1 << (DIGITS - 1)) - 1;
    const T one = bits<T>((Bits<T>)(bits<Bits<T>>((T)1) | fraction));
    return std::ldexp(any() & 1 ? one : -one, any_between(low, high));
}
template <class T> static T near(T x) { return bits<T>((Bits<T>)(bits<Bits<T>>(x) + any_between(-3, 3))); }

template <class T> static void put_random(Batch<T> &batch) {
    constexpr int DIGITS = pygpu_rounded::Form<T>::DIGITS, LEAST = pygpu_rounded::Form<T>::LEAST;
    constexpr int MOST = -LEAST - DIGITS + 2;
    const T a = bits<T>((Bits<T>)any()), b = bits<T>((Bits<T>)any()), c = bits<T>((Bits<T>)any());
    batch.put(a, b, c);
    // Sums of numbers with similar exponents, and of almost equal numbers.
    const T x = number<T>(LEAST, MOST), y = number<T>(-30, 30);
    const T close = std::ldexp(number<T>(0, 0), std::ilogb(x) + any_between(-DIGITS - 3, DIGITS + 3));
    batch.put(x, close, a);
    batch.put(x, -near(x), near(x));
    batch.put(x, -std::ldexp(near(x), any_between(-1, 1)), b);
    // Products and quotients near the least and the largest numbers.
    const int to = any() & 1 ? any_between(LEAST - 3, LEAST + DIGITS + 1) : any_between(MOST - 3, MOST + 1);
    const T u = number<T>(-60, 60), v = number<T>(0, 0);
    batch.put(u, std::ldexp(v, to - std::ilogb(u)), number<T>(LEAST, LEAST + 2 * DIGITS));
    const int down = any_between(0, 90);
    batch.put(number<T>(MOST - down, MOST), number<T>(-90, 90), number<T>(MOST - 2, MOST));
    batch.put(number<T>(LEAST, LEAST + 60), number<T>(-90, 90), x);
    // Exact results, and results next to exact ones.
    batch.put(near(y * v), v, near(-y));
    batch.put(near(y * y), y, near(y));
    // Multiply-adds that cancel, or whose operands overlap only in the last digits.
    batch.put(y, v, -near(y * v));
    batch.put(y, v, -(y * v));
    const T other = std::ldexp(number<T>(0, 0), std::ilogb(y) + any_between(-2 * DIGITS - 3, 2 * DIGITS + 3));
    batch.put(y, v, other);
    batch.put(u, std::ldexp(v, to - std::ilogb(u)), -near(u * std::ldexp(v, to - std::ilogb(u))));
    // Doubles that are converted to floats.
    batch.put(number<T>(-152, 130), number<T>(-2, 2), number<T>(-3, 3));
    // Numbers near the limits of integer types, and halves.
    batch.put(near(std::ldexp((T)1, any_between(30, 65))), x, y);
    batch.put(-near(std::ldexp((T)1, any_between(30, 65))), x, y);
    batch.put(std::ldexp((T)any_between(-99, 99), any_between(-3, 1)), x, y);
    batch.put(number<T>(-2, 65), x, y);
    batch.put(near((T)bits<float>((unsigned int)any())), a, near((T)bits<float>((unsigned int)any())));
}

template <class T> static void compare_all(int batches) {
    const std::vector<T> all = special<T>();
    Batch<T> batch;
    for (T x : all)
        for (T y : all) batch.put(x, y, x);
    put_edges(batch);
    of_one(batch), of_two(batch), to_halves(batch);
    for (T x : all) {
        batch = {};
        for (T y : all)
            for (T z : all) batch.put(x, y, z);
        of_three(batch);
    }
    for (int n = 0; n < batches; n++) {
        batch = {};
        while (batch.x.size() < 4096) put_random(batch);
        of_one(batch), of_two(batch), of_three(batch);
        if (n % 4 == 0) to_halves(batch);
    }
}

int main(int count, char **arguments) {
    const int batches = std::atoi(arguments[1]);
    of_halves();
    compare_all<float>(batches);
    compare_all<double>(batches);
    Batch<long long> batch;
    for (int at = 0; at < 64; at++)
        for (int by = -3; by <= 3; by++)
            for (int low = 0; low <= at; low++)
                for (long long sign : {1, -1})
                    batch.put(sign * ((1ll << at) + (1ll << low) + by), 0, 0);
    for (int n = 0; n < batches; n++) {
        of_integers(batch);
        if (n % 4 == 0) to_halves(batch);
        batch = {};
        while (batch.x.size() < 4096) batch.put((long long)any() >> any_between(0, 63), 0, 0);
    }
    if (count > 2 && !std::strcmp(arguments[2], "all"))
        for (unsigned long long from = 0; from < 1ull << 32; from += 4096) {
            Batch<float> floats;
            for (unsigned int i = 0; i < 4096; i++) floats.put(bits<float>((unsigned int)from + i), 0, 0);
            of_one(floats);
        }
    std::printf("%lld compared, %lld wrong\n", compared, wrong);
    return wrong != 0;
}
