// Mathematical functions: compared with multiple-precision values, within the accuracy documented for a GPU,
// and special values computed by hand.
#include "check.h"

template <class T> struct Bits;
template <> struct Bits<float> { typedef int type; };
template <> struct Bits<double> { typedef long long type; };

// The distance of two numbers in units in the last place, which is the number of representable values between
// them.
template <class T> static double apart(T x, T y) {
    typedef typename Bits<T>::type I;
    I a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    const I lowest = I(1) << (sizeof(I) * 8 - 1);
    const double p = a < 0 ? -(double)(a - lowest) : (double)a, q = b < 0 ? -(double)(b - lowest) : (double)b;
    return x == y ? 0 : x != x || y != y ? 1e300 : sizeof(T) == 4 || (a < 0) != (b < 0) ? fabs(p - q) : fabs((double)(a - b));
}

template <class T, int N, class Function>
static void one(const char* name, int bound, const T (&rows)[N][2], Function function) {
    for (const T* row : rows) {
        const T found = function(row[0]);
        const double error = apart(found, row[1]);
        if (error <= bound) continue;
        fprintf(stderr, "%s(%a) is %a, not %a: %g units\n", name, (double)row[0], (double)found, (double)row[1], error);
        ++failures;
    }
}
template <class T, int N, class Function>
static void two(const char* name, int bound, const T (&rows)[N][3], Function function) {
    for (const T* row : rows) {
        const T found = function(row[0], row[1]);
        const double error = apart(found, row[2]);
        if (error <= bound) continue;
        fprintf(stderr, "%s(%a, %a) is %a, not %a: %g units\n", name, (double)row[0], (double)row[1], (double)found,
                (double)row[2], error);
        ++failures;
    }
}
static double norm3d_11(double x, double y) { return norm3d(x, 1.0, y); }
static float norm3d_11f(float x, float y) { return norm3df(x, y, 1.0f); }

static void published() {
#define ONE(T, name, bound, ...)                                                                \
    {                                                                                           \
        const T rows[][2] = {__VA_ARGS__};                                                      \
        one(#name, bound, rows, [](T x) -> T { return name(x); });                              \
    }
#define TWO(T, name, bound, ...)                                                                \
    {                                                                                           \
        const T rows[][3] = {__VA_ARGS__};                                                      \
        two(#name, bound, rows, [](T x, T y) -> T { return name(x, y); });                      \
    }
#include "math_values.h"
}

int main() {
    published();
    const double inf = __builtin_inf(), nan = __builtin_nan("");
    const float inff = __builtin_inff();
    CHECK_SAME(rsqrt(0.0), inf);
    CHECK_SAME(rsqrt(inf), 0.0);
    CHECK(isnan(rsqrt(-1.0)) && isnan(rsqrtf(-1.0f)));
    CHECK_SAME(rsqrtf(0.0f), inff);
    CHECK_SAME(rsqrt(4.0), 0.5);
    CHECK_SAME(rcbrt(-8.0), -0.5);
    CHECK_SAME(sinpi(1.0), 0.0);
    CHECK_SAME(sinpi(-2.0), -0.0);
    CHECK_SAME(sinpi(0.5), 1.0);
    CHECK_SAME(cospi(0.5), 0.0);
    CHECK_SAME(cospi(1e300), 1.0);
    CHECK_SAME(cospif(3.0f), -1.0f);
    CHECK(isnan(sinpi(inf)) && isnan(cospi(nan)));
    CHECK_SAME(norm3d(inf, nan, 1.0), inf);
    CHECK_SAME(norm3d(0x1.8p+601, 0x1p+602, 0.0), 0x1.4p+602);
    CHECK_SAME(rnorm3d(0.0, 0.0, 0.0), inf);
    CHECK_SAME(norm4d(1.0, 1.0, 1.0, 1.0), 2.0);
    CHECK_SAME(rhypotf(3.0f, 4.0f), 0.2f);
    const double vector[] = {2, 3, 6};
    CHECK_SAME(norm(3, vector), 7.0);
    CHECK_SAME(norm(0, vector), 0.0);
    CHECK_SAME(erfinv(1.0), inf);
    CHECK_SAME(erfinv(0.0), 0.0);
    CHECK_SAME(erfcinv(2.0), -inf);
    CHECK_SAME(erfcinv(1.0), 0.0);
    CHECK(isnan(erfinv(1.5)) && isnan(erfcinv(-0.1)) && isnan(normcdfinv(nan)));
    CHECK_SAME(normcdfinv(0.0), -inf);
    CHECK_SAME(normcdf(inf), 1.0);
    CHECK_SAME(normcdf(0.0), 0.5);
    CHECK_SAME(erfcx(-30.0), inf);
    CHECK_SAME(erfcx(inf), 0.0);
    CHECK_SAME(cyl_bessel_i0(0.0), 1.0);
    CHECK_SAME(cyl_bessel_i1(-800.0), -inf);
    CHECK_SAME(fmax(nan, 3.0), 3.0);
    CHECK_SAME(fminf(2.0f, __builtin_nanf("")), 2.0f);
    CHECK(isnan(fmax(nan, nan)));
    CHECK_SAME(max(2.0f, 3.0), 3.0);
    CHECK_SAME(__saturatef(__builtin_nanf("")), 0.0f);
    CHECK_SAME(__saturatef(-0.5f), 0.0f);
    CHECK_SAME(__saturatef(7.0f), 1.0f);
    CHECK_SAME(__fdividef(7.0f, 2.0f), 3.5f);
    float s, c;
    sincospif(0.25f, &s, &c);
    CHECK(s == c && fabs(s - 0.70710678f) < 1e-7);
    double whole;
    int exponent, quotient;
    CHECK(modf(-2.5, &whole) == -0.5 && whole == -2 && frexp(12.0f, &exponent) == 0.75f && exponent == 4);
    CHECK(remquo(7.0, 2.0, &quotient) == -1 && (quotient & 7) == 4 && ilogb(9.0f) == 3 && lrint(2.5) == 2);
    CHECK(sizeof(pow(2.0f, 2)) == 4 && sizeof(pow(2, 2.0f)) == 4 && sizeof(sqrt(4)) == 8 && abs(-3ll) == 3);
    return failures != 0;
}
