// Integer functions, compared with bit-by-bit definitions and with values computed by hand.
#include "check.h"

static int bit(unsigned long long x, int at) { return x >> at & 1; }

static void bits_of(unsigned int x, unsigned long long y) {
    int count = 0, leading = 0;
    unsigned int reversed = 0;
    for (int i = 0; i < 32; ++i) {
        count += bit(x, i);
        reversed |= (unsigned int)bit(x, i) << (31 - i);
    }
    while (leading < 32 && !bit(x, 31 - leading)) ++leading;
    int first = 0;
    while (first < 32 && !bit(x, first)) ++first;
    CHECK(__popc(x) == count && __clz((int)x) == leading && __brev(x) == reversed);
    CHECK(__ffs((int)x) == (x ? first + 1 : 0));
    unsigned long long wide = 0;
    for (int i = 0; i < 64; ++i) wide |= (unsigned long long)bit(y, i) << (63 - i);
    CHECK(__brevll(y) == wide && __brevll(wide) == y);
}

static unsigned int at(unsigned int word, int lane, int width) {
    return word >> lane * width & ((1u << width) - 1);
}
static int signed_at(unsigned int word, int lane, int width) {
    const int value = (int)at(word, lane, width);
    return value >> (width - 1) ? value - (1 << width) : value;
}

// Every lane of a packed function, compared with the function of one lane.
template <class Packed, class Lane>
static void packed(Packed function, Lane lane, int width, bool is_signed, unsigned int x, unsigned int y) {
    const unsigned int result = function(x, y);
    for (int i = 0; i < 32 / width; ++i) {
        const int a = is_signed ? signed_at(x, i, width) : (int)at(x, i, width);
        const int b = is_signed ? signed_at(y, i, width) : (int)at(y, i, width);
        CHECK(at(result, i, width) == ((unsigned int)lane(a, b, width) & ((1u << width) - 1)));
    }
}
#define PACKED(name, is_signed, value)                                                          \
    packed(name##2, [](int a, int b, int w) { return (void)w, (void)a, (void)b, value; }, 16, is_signed, x, y);     \
    packed(name##4, [](int a, int b, int w) { return (void)w, (void)a, (void)b, value; }, 8, is_signed, x, y)

static int limited(int value, int low, int high) { return value < low ? low : value > high ? high : value; }
static int floor_half(int value) { return value >= 0 ? value / 2 : (value - 1) / 2; }

static void packed_functions(unsigned int x, unsigned int y) {
    PACKED(__vadd, false, a + b);
    PACKED(__vsub, false, a - b);
    PACKED(__vaddss, true, limited(a + b, -(1 << (w - 1)), (1 << (w - 1)) - 1));
    PACKED(__vaddus, false, limited(a + b, 0, (1 << w) - 1));
    PACKED(__vsubss, true, limited(a - b, -(1 << (w - 1)), (1 << (w - 1)) - 1));
    PACKED(__vsubus, false, limited(a - b, 0, (1 << w) - 1));
    PACKED(__vavgu, false, (a + b + 1) / 2);
    PACKED(__vhaddu, false, floor_half(a + b));
    PACKED(__vabsdiffs, true, abs(a - b));
    PACKED(__vabsdiffu, false, abs(a - b));
    PACKED(__vmaxs, true, a > b ? a : b);
    PACKED(__vminu, false, a < b ? a : b);
    PACKED(__vcmpeq, true, a == b ? -1 : 0);
    PACKED(__vcmpgtu, false, a > b ? -1 : 0);
    PACKED(__vcmples, true, a <= b ? -1 : 0);
    PACKED(__vsetlts, true, a < b);
    PACKED(__vsetgeu, false, a >= b);
    packed([](unsigned int v, unsigned int) { return __vabs2(v); }, [](int a, int, int) { return abs(a); }, 16, true, x, y);
    packed([](unsigned int v, unsigned int) { return __vnegss4(v); },
           [](int a, int, int) { return a == -128 ? 127 : -a; }, 8, true, x, y);
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += abs(signed_at(x, i, 8) - signed_at(y, i, 8));
    CHECK(__vsads4(x, y) == (unsigned int)sum);
}

static void products(unsigned int x, unsigned int y, unsigned long long p, unsigned long long q) {
    CHECK(__umulhi(x, y) == (unsigned int)((unsigned long long)x * y / 4294967296ull));
    CHECK(__mulhi((int)x, (int)y) == (int)(((long long)(int)x * (int)y) >> 32));
    // Long multiplication with 32-bit halves.
    const unsigned long long a = p >> 32, b = p & 0xffffffffu, c = q >> 32, d = q & 0xffffffffu;
    const unsigned long long middle = (b * d >> 32) + (a * d & 0xffffffffu) + (b * c & 0xffffffffu);
    CHECK(__umul64hi(p, q) == a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32));
    CHECK(__umul24(x, y) == (x % 16777216u) * (y % 16777216u));
    CHECK(__uhadd(x, y) == (unsigned int)(((unsigned long long)x + y) / 2));
    CHECK(__urhadd(x, y) == (unsigned int)(((unsigned long long)x + y + 1) / 2));
    CHECK(__usad(x, y, 5) == 5 + (x > y ? x - y : y - x));
    int dot = 7;
    for (int i = 0; i < 4; ++i) dot += signed_at(x, i, 8) * signed_at(y, i, 8);
    CHECK(__dp4a((int)x, (int)y, 7) == dot);
    unsigned int halves = 9;
    for (int i = 0; i < 2; ++i) halves += at(x, i, 16) * at(y, i + 2, 8);
    CHECK(__dp2a_hi(x, y, 9u) == halves);
}

int main() {
    const unsigned int edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7f7f7f7f, 0x80808080,
                                  0x7fffffff, 0x80000000, 0x80008000, 0xffffffff, 0x12345678};
    for (const unsigned int x : edges) {
        for (const unsigned int y : edges) {
            packed_functions(x, y);
            products(x, y, (unsigned long long)x << 32 | y, (unsigned long long)y << 32 | x);
        }
        bits_of(x, (unsigned long long)x << 32 | ~x);
    }
    for (int i = 0; i < 20000; ++i) {
        const unsigned long long p = random_word(), q = random_word();
        packed_functions((unsigned int)p, (unsigned int)q);
        products((unsigned int)p, (unsigned int)q, p, q);
        bits_of((unsigned int)p, q);
    }
    // Computed by hand.
    CHECK(__byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311);
    CHECK(__byte_perm(0x332211f0, 0x77665584, 0x98c4) == 0x11f08484);
    CHECK(__funnelshift_l(0x80000001, 0x12345678, 4) == 0x23456788);
    CHECK(__funnelshift_l(1, 2, 32) == 2 && __funnelshift_lc(1, 2, 40) == 1);
    CHECK(__funnelshift_r(0x80000001, 0x12345678, 4) == 0x88000000);
    CHECK(__funnelshift_r(1, 2, 32) == 1 && __funnelshift_rc(1, 2, 32) == 2);
    CHECK(__clzll(0) == 64 && __clzll(1) == 63 && __ffsll(1ll << 40) == 41 && __popcll(~0ull) == 64);
    CHECK(__mul24(-3, 5) == -15 && __mul24(0x01800000, 2) == -16777216);
    CHECK(__hadd(-3, 0) == -2 && __rhadd(-3, 0) == -1 && __hadd(2147483647, 2147483647) == 2147483647);
    CHECK(__sad(-5, 7, 1) == 13 && __sad((-2147483647 - 1), 2147483647, 0) == 4294967295u);
    CHECK(__vavgs2(0xffff0001, 0xfffe0002) == 0xfffe0002); // -1.5 and 1.5, away from zero
    CHECK(__fns(0xb4, 0, 1) == 2 && __fns(0xb4, 3, 2) == 5 && __fns(0xb4, 4, -2) == 2 && __fns(0xb4, 2, 0) == 2);
    CHECK(__fns(0xb4, 3, 0) == ~0u && __fns(0xb4, 0, 9) == ~0u && __fns(1, 31, (-2147483647 - 1)) == ~0u);
    CHECK(min(-1, 1u) == 1u && max(-1, 1u) == ~0u && min(3ll, -4ll) == -4 && max(-1ll, 5ull) == ~0ull);
    bool high, low;
    CHECK(__vibmax_s16x2(0x0001ffff, 0x00020000, &high, &low) == 0x00020000 && !high && !low);
    CHECK(__vimin3_s32(3, -2, 5) == -2 && __vimax3_s32_relu(-3, -2, -5) == 0);
    CHECK(__viaddmax_s16x2_relu(0xfffe0001, 0xfffe0002, 0xfff00000) == 0x00000003);
    return failures != 0;
}
