// Mathematical functions and intrinsics of CUDA C, over the host's library.

template <class T, class R> struct double_integral {};
#define DOUBLE_INTEGRAL(T) template <class R> struct double_integral<T, R> { typedef R type; };
DOUBLE_INTEGRAL(bool) DOUBLE_INTEGRAL(char) DOUBLE_INTEGRAL(signed char)
DOUBLE_INTEGRAL(unsigned char) DOUBLE_INTEGRAL(short) DOUBLE_INTEGRAL(unsigned short)
DOUBLE_INTEGRAL(int) DOUBLE_INTEGRAL(unsigned) DOUBLE_INTEGRAL(long)
DOUBLE_INTEGRAL(unsigned long) DOUBLE_INTEGRAL(long long) DOUBLE_INTEGRAL(unsigned long long)

#define DOUBLE_MATH_1(name)                                                  \
    extern "C" double name(double) noexcept;                                 \
    extern "C" float name##f(float) noexcept;                                \
    static inline float name(float x) { return name##f(x); }                 \
    template <class T> static inline typename double_integral<T, double>::type name(T x) { \
        return name((double)x);                                              \
    }
#define DOUBLE_MATH_2(name)                                                  \
    extern "C" double name(double, double) noexcept;                         \
    extern "C" float name##f(float, float) noexcept;                         \
    static inline float name(float x, float y) { return name##f(x, y); }     \
    template <class T, class U> static inline double name(T x, U y) {        \
        return name((double)x, (double)y);                                   \
    }
DOUBLE_MATH_1(acos) DOUBLE_MATH_1(acosh) DOUBLE_MATH_1(asin) DOUBLE_MATH_1(asinh)
DOUBLE_MATH_1(atan) DOUBLE_MATH_1(atanh) DOUBLE_MATH_1(cbrt) DOUBLE_MATH_1(ceil)
DOUBLE_MATH_1(cos) DOUBLE_MATH_1(cosh) DOUBLE_MATH_1(erf) DOUBLE_MATH_1(erfc)
DOUBLE_MATH_1(exp) DOUBLE_MATH_1(exp2) DOUBLE_MATH_1(exp10) DOUBLE_MATH_1(expm1)
DOUBLE_MATH_1(fabs) DOUBLE_MATH_1(floor) DOUBLE_MATH_1(lgamma) DOUBLE_MATH_1(log)
DOUBLE_MATH_1(log10) DOUBLE_MATH_1(log1p) DOUBLE_MATH_1(log2) DOUBLE_MATH_1(logb)
DOUBLE_MATH_1(nearbyint) DOUBLE_MATH_1(rint) DOUBLE_MATH_1(round) DOUBLE_MATH_1(sin)
DOUBLE_MATH_1(sinh) DOUBLE_MATH_1(sqrt) DOUBLE_MATH_1(tan) DOUBLE_MATH_1(tanh)
DOUBLE_MATH_1(tgamma) DOUBLE_MATH_1(trunc)
DOUBLE_MATH_1(j0) DOUBLE_MATH_1(j1) DOUBLE_MATH_1(y0) DOUBLE_MATH_1(y1)
DOUBLE_MATH_2(atan2) DOUBLE_MATH_2(copysign) DOUBLE_MATH_2(fdim) DOUBLE_MATH_2(fmax)
DOUBLE_MATH_2(fmin) DOUBLE_MATH_2(fmod) DOUBLE_MATH_2(hypot) DOUBLE_MATH_2(nextafter)
DOUBLE_MATH_2(pow) DOUBLE_MATH_2(remainder)

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
double remquo(double, double, int*) noexcept;
float remquof(float, float, int*) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double*, double*) noexcept;
void sincosf(float, float*, float*) noexcept;
int printf(const char*, ...);
}
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float ldexp(float x, int n) { return ldexpf(x, n); }
static inline float scalbn(float x, int n) { return scalbnf(x, n); }
static inline float frexp(float x, int* n) { return frexpf(x, n); }
static inline float modf(float x, float* whole) { return modff(x, whole); }
static inline float remquo(float x, float y, int* n) { return remquof(x, y, n); }
static inline int ilogb(float x) { return ilogbf(x); }
static inline long lrint(float x) { return lrintf(x); }
static inline long long llrint(float x) { return llrintf(x); }
static inline long lround(float x) { return lroundf(x); }
static inline long long llround(float x) { return llroundf(x); }
static inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline double rcbrt(double x) { return 1 / cbrt(x); }
static inline float rcbrtf(float x) { return 1 / cbrtf(x); }
static inline double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
static inline double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
static inline float sinpif(float x) { return (float)sinpi((double)x); }
static inline float cospif(float x) { return (float)cospi((double)x); }
static inline float sinpi(float x) { return sinpif(x); }
static inline float cospi(float x) { return cospif(x); }
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> static inline bool signbit(T x) { return __builtin_signbit(x); }

static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long long llabs(long long x) { return abs(x); }
template <class T, class U> using double_common = decltype(true ? T() : U());
template <class T, class U> static inline double_common<T, U> min(T x, U y) {
    const double_common<T, U> a = x, b = y;
    return a < b ? a : b;
}
template <class T, class U> static inline double_common<T, U> max(T x, U y) {
    const double_common<T, U> a = x, b = y;
    return a > b ? a : b;
}
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }

static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
#define DOUBLE_ROUNDED(type, letter)                                                \
    static inline type __##letter##add_rn(type x, type y) { return x + y; }         \
    static inline type __##letter##sub_rn(type x, type y) { return x - y; }         \
    static inline type __##letter##mul_rn(type x, type y) { return x * y; }         \
    static inline type __##letter##div_rn(type x, type y) { return x / y; }         \
    static inline type __##letter##sqrt_rn(type x) { return sqrt(x); }              \
    static inline type __##letter##rcp_rn(type x) { return 1 / x; }
DOUBLE_ROUNDED(float, f)
DOUBLE_ROUNDED(double, d)
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

template <class To, class From> static inline To double_pun(From from) {
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline int __float_as_int(float x) { return double_pun<int>(x); }
static inline unsigned __float_as_uint(float x) { return double_pun<unsigned>(x); }
static inline float __int_as_float(int x) { return double_pun<float>(x); }
static inline float __uint_as_float(unsigned x) { return double_pun<float>(x); }
static inline long long __double_as_longlong(double x) { return double_pun<long long>(x); }
static inline double __longlong_as_double(long long x) { return double_pun<double>(x); }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline int __float2int_ru(float x) { return (int)ceilf(x); }
static inline unsigned __float2uint_rn(float x) { return (unsigned)rintf(x); }
static inline unsigned __float2uint_rz(float x) { return (unsigned)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline int __double2int_rn(double x) { return (int)rint(x); }
static inline int __double2int_rz(double x) { return (int)x; }
static inline float __double2float_rn(double x) { return (float)x; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int bit = 0; bit < 32; ++bit) y |= (x >> bit & 1) << (31 - bit);
    return y;
}
static inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
    return (unsigned)((unsigned long long)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline long long __mul64hi(long long x, long long y) {
    return (long long)((__int128)x * y >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((unsigned long long)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        out |= (unsigned)(both >> ((selector >> 4 * i & 7) * 8) & 0xff) << 8 * i;
    }
    return out;
}
template <class T> static inline T __ldg(const T* address) { return *address; }
static long long double_clock;
static inline long long clock64() { return double_clock += 10; }
static inline int clock() { return (int)clock64(); }

// Statuses of the driver: an assertion, and a trap.
#define assert(condition) ((condition) ? (void)0 : double_module.trap(710))
static inline void __trap() { double_module.trap(719); }
static inline void __brkpt() {}

// Instructions of PTX that programs may name.
static inline float double_widen(unsigned short x) {
    const unsigned sign = (x & 0x8000u) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint(fraction * 5.9604644775390625e-8f));
    const unsigned wide = exponent == 31 ? 255 : exponent + 112;
    return __uint_as_float(sign | wide << 23 | fraction << 13);
}
static inline unsigned short double_narrow(double x) {
    const unsigned short sign = __builtin_signbit(x) ? 0x8000 : 0;
    const double size = __builtin_fabs(x);
    if (x != x) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 6.103515625e-5) return sign | (unsigned short)__builtin_rint(size * 16777216);
    int exponent;
    const double fraction = __builtin_frexp(size, &exponent); // at least a half
    const unsigned rounded = (unsigned)__builtin_rint(fraction * 2048);
    return (unsigned short)(sign | (((unsigned)exponent + 13) << 10) + rounded);
}
static inline void double_ptx_cvt_f32_f16(float& to, unsigned short from) { to = double_widen(from); }
static inline void double_ptx_cvt_f64_f16(double& to, unsigned short from) { to = double_widen(from); }
static inline void double_ptx_cvt_rn_f16_f32(unsigned short& to, float from) { to = double_narrow(from); }
static inline void double_ptx_cvt_rn_f16_f64(unsigned short& to, double from) { to = double_narrow(from); }
