// The generators of curand_kernel.h. The expected values come from cuRAND's own header, compiled for the
// host. Words and uniform numbers are equal bit by bit; normal numbers differ in the last digits because of
// its sine.
#include "check.h"

#include <curand_kernel.h>

struct Expected {
    unsigned long long seed, sequence, offset;
    unsigned int words[6], behind_skip, behind_sequence;
    float uniform;
    double uniform_double;
    double normals[2], normals_double[2], log_normal;
};

static bool near(double x, double y, double relative) { return fabs(x - y) <= relative * (1 + fabs(y)); }

template <class State> static void generator(const Expected& it, unsigned long long sequence_skip) {
    State state;
    curand_init(it.seed, it.sequence, it.offset, &state);
    for (const unsigned int word : it.words) CHECK(curand(&state) == word);
    skipahead(12345678901ull, &state);
    CHECK(curand(&state) == it.behind_skip);
    skipahead_sequence(sequence_skip, &state);
    CHECK(curand(&state) == it.behind_sequence);
    CHECK_SAME(curand_uniform(&state), it.uniform);
    CHECK_SAME(curand_uniform_double(&state), it.uniform_double);
    for (const double value : it.normals) CHECK(near(curand_normal(&state), value, 1e-6));
    for (const double value : it.normals_double) CHECK(near(curand_normal_double(&state), value, 1e-14));
    CHECK(near(curand_log_normal(&state, 0.5f, 0.25f), it.log_normal, 1e-6));
    // A kept normal number is not used as a log-normal one, and a kept log-normal number has the mean with
    // which it was drawn.
    State kept = state, fresh;
    kept.boxmuller_flag = kept.boxmuller_flag_double = 0;
    curand_normal(&kept);
    curand_normal_double(&kept);
    fresh = kept;
    const float2 pair = curand_log_normal2(&fresh, 0.5f, 0.25f);
    CHECK_SAME(curand_log_normal(&kept, 0.5f, 0.25f), pair.x);
    CHECK_SAME(curand_log_normal(&kept, 7.0f, 3.0f), pair.y);
    const double2 wide = curand_log_normal2_double(&fresh, 0.5, 0.25);
    CHECK_SAME(curand_log_normal_double(&kept, 0.5, 0.25), wide.x);
    CHECK_SAME(curand_log_normal_double(&kept, 7.0, 3.0), wide.y);
    CHECK(curand(&kept) == curand(&fresh));
    // Skipping words gives the same state as drawing them.
    State drawn = state, skipped = state;
    for (int i = 0; i < 1001; ++i) curand(&drawn);
    skipahead(1001, &skipped);
    CHECK(curand(&drawn) == curand(&skipped));
}

static const Expected xorwow[] = {
    {0x0ull, 0x0ull, 0x0ull,
     {0xbd7f03b6u, 0x703e556du, 0x845af0c5u, 0x283067fdu, 0x1245241fu, 0x7666f33fu},
     0xcc1cd941u, 0x71bee866u, 0x1.411b5p-2f, 0x1.07945c4020636p-1,
     {-0.563731074, -1.5959928}, {-0.20256263507253622, 0.51481915271802958}, 1.19184959},
    {0x4d2ull, 0x0ull, 0x0ull,
     {0x253d5e15u, 0x6f558604u, 0xdee6daf2u, 0x7485b394u, 0xdb6a6a85u, 0x95195c6bu},
     0xfee5c262u, 0x7f71e254u, 0x1.1a1ffap-1f, 0x1.67fe0043eeea7p-2,
     {0.00985461473, 0.0685418248}, {-0.37424321641359209, -0.7776473450911815}, 1.80315197},
    {0x123456789abcdefull, 0x5ull, 0x11ull,
     {0x1605b5fdu, 0x0cec1efbu, 0xf9270ba4u, 0x6a06ed76u, 0x8f9328a3u, 0xa268cc73u},
     0x51fe0cb6u, 0x516ffe9eu, 0x1.ddcde4p-1f, 0x1.5e497609af67cp-1,
     {-0.0351145118, 1.37395859}, {-1.3022543491032514, 1.1840523881690379}, 2.24216223},
    {0x2aull, 0x80000003ull, 0x200000000ull,
     {0xa869a101u, 0x9453bc01u, 0xeb48524du, 0x4e7d2a13u, 0xac026f9bu, 0x35fef73cu},
     0xb856e859u, 0xaeda7910u, 0x1.9235ap-3f, 0x1.33765b8a25527p-2,
     {0.320498586, -1.17447793}, {0.93056405199609182, 2.1039881236905265}, 1.18561196},
    {0xffffffffffffffffull, 0x10000000009ull, 0x3ull,
     {0x511ea32au, 0x1f8de87cu, 0xa85538cau, 0x5ed4da64u, 0xfa337e41u, 0xbfe5179bu},
     0x0526c452u, 0x89686053u, 0x1.064ad4p-2f, 0x1.0e93b5401a984p-1,
     {2.07393265, -0.34898597}, {0.64847924523648848, -1.2133317041442675}, 1.39368963},
};
static const Expected philox[] = {
    {0x0ull, 0x0ull, 0x0ull,
     {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u, 0xf8e4cca4u, 0x5cb200dbu},
     0x1f7f1fd4u, 0x3a9a7959u, 0x1.fd6cc6p-3f, 0x1.caa5017p-4,
     {1.12767982, -0.31640327}, {-1.3436710025839038, -0.81609801391846426}, 2.84749293},
    {0x4d2ull, 0x0ull, 0x0ull,
     {0x2090b348u, 0xda7cf0abu, 0x4401906fu, 0xcbca470eu, 0x9eeede35u, 0x1cbe137cu},
     0x15e8d4c6u, 0xd4b3aa6eu, 0x1.b14366p-1f, 0x1.5ff5b538p-3,
     {-0.337280929, 0.645718455}, {-1.0879044081738261, -0.12932231531452365}, 1.72911716},
    {0x123456789abcdefull, 0x5ull, 0x11ull,
     {0x647b63f3u, 0x470c0344u, 0xad3423ddu, 0x7e195e4bu, 0x71837dbdu, 0xf0951e51u},
     0x707d6431u, 0x9fd35cfbu, 0x1.3a2f86p-3f, 0x1.626d7ccp-4,
     {-0.654253185, 0.023938641}, {-1.1826988268461249, -0.52047659481019193}, 1.37288284},
    {0x2aull, 0x80000003ull, 0x200000000ull,
     {0x48edac3cu, 0x9a3adc77u, 0x56e3e3efu, 0x767b1e42u, 0x39910da3u, 0x023fab07u},
     0x829586d6u, 0x2e41736bu, 0x1.b317c6p-5f, 0x1.6fe95628p-2,
     {-1.54830277, 1.62892485}, {-0.58151876774441602, 0.25552943833152642}, 1.48106909},
    {0xffffffffffffffffull, 0x10000000009ull, 0x3ull,
     {0x53d90fefu, 0xf6da1f84u, 0x269f9cb3u, 0xe43fe286u, 0xff09fff9u, 0x4912ff97u},
     0x40d98798u, 0xa07ce029u, 0x1.5d466cp-2f, 0x1.5d50e09p-1,
     {1.00934815, -1.81607449}, {0.0846092854053032, 0.026482658571808017}, 2.08961415},
};
static const Expected mrg32k3a[] = {
    {0x0ull, 0x0ull, 0x0ull,
     {0x2083cd07u, 0x518b05c4u, 0x4f26d091u, 0xd36ab334u, 0x38bcbcf8u, 0x888c99a3u},
     0xaa687dcfu, 0x86ffb243u, 0x1.acd022p-5f, 0x1.b3dce05bd7533p-3,
     {-1.54748201, -0.421396881}, {0.48874849450142799, -1.1175023286865025}, 2.19251251},
    {0x4d2ull, 0x0ull, 0x0ull,
     {0xc96891f0u, 0x9650c684u, 0x0cbc7881u, 0x5fa111cdu, 0x864a3897u, 0xfa61def9u},
     0xf33adccbu, 0x78aea06au, 0x1.6ce006p-3f, 0x1.cc24d405aa112p-1,
     {0.387187183, 1.40717864}, {0.23486623829184844, 0.10298043514678569}, 1.02721679},
    {0x123456789abcdefull, 0x5ull, 0x11ull,
     {0xd744ff89u, 0x9ab716deu, 0xdb217f8du, 0xd39fdedcu, 0x4de026ceu, 0x58f697ceu},
     0xf44f757cu, 0x2598ce48u, 0x1.e24c5ap-3f, 0x1.588ebbf94c878p-5,
     {-0.695856035, -0.315954059}, {1.3728784834202479, 0.66907699535026399}, 1.7647841},
    {0x2aull, 0x80000003ull, 0x200000000ull,
     {0x1c77f529u, 0x75822da3u, 0xa6fd4f51u, 0xc3fb5eecu, 0x3fa311c7u, 0xbfc045d2u},
     0xa25bb9f2u, 0x5e88adc1u, 0x1.359c34p-3f, 0x1.b26c6f9aaa872p-1,
     {-0.501044691, 0.239967138}, {-0.04574820236747907, -0.86190186689141279}, 1.54545093},
    {0xffffffffffffffffull, 0x10000000009ull, 0x3ull,
     {0xc745b539u, 0x25bb16f6u, 0x638d004fu, 0x8cd80a1du, 0x41a2a3eeu, 0x0550e1e7u},
     0xca83b572u, 0xf38d80bdu, 0x1.708262p-2f, 0x1.8e3be6571ee71p-1,
     {0.633377612, 2.58458757}, {-1.1026773880148766, 0.9614968126761444}, 2.81174088},
};
// Any direction vectors are suitable: here a linear congruential sequence, with the lowest bit of each set.
struct Directions {
    unsigned int words[32];
    unsigned long long long_words[64];
    Directions() {
        unsigned int x = 0x12345679u;
        for (int k = 0; k < 32; ++k) words[k] = ((x = x * 1664525u + 1013904223u) | 1u) << (31 - k);
        unsigned long long y = 0x123456789abcdefull;
        for (int k = 0; k < 64; ++k) {
            y = y * 6364136223846793005ull + 1442695040888963407ull;
            long_words[k] = (y | 1ull) << (63 - k);
        }
    }
};
struct ExpectedSequence {
    unsigned long long words[6], behind_skip;
    double uniform, uniform_double, normal, normal_double, log_normal, log_normal_double;
    unsigned int poisson[5];
};

template <class State, class Word> static void sequence(State state, const ExpectedSequence& it) {
    for (const unsigned long long word : it.words) CHECK(curand(&state) == word);
    skipahead((Word)1234567, &state);
    CHECK(curand(&state) == it.behind_skip);
    CHECK_SAME(curand_uniform(&state), (float)it.uniform);
    CHECK_SAME(curand_uniform_double(&state), it.uniform_double);
    CHECK(near(curand_normal(&state), it.normal, 1e-6));
    CHECK(near(curand_normal_double(&state), it.normal_double, 1e-14));
    CHECK(near(curand_log_normal(&state, 0.5f, 0.25f), it.log_normal, 1e-6));
    CHECK(near(curand_log_normal_double(&state, 0.5, 0.25), it.log_normal_double, 1e-14));
    const double means[] = {0.5, 7.0, 80.0, 999.0, 1500.0};
    for (int k = 0; k < 5; ++k) CHECK(curand_poisson(&state, means[k]) == it.poisson[k]);
    // The first number of a sequence follows the last one.
    State last = state;
    skipahead((Word)-1 - last.i, &last);
    const State first = state;
    curand(&last);
    CHECK(last.i == 0 && first.i != 0);
}

static void sequences() {
    Directions by;
    curandStateSobol32_t a;
    curandStateScrambledSobol32_t b;
    curandStateSobol64_t c;
    curandStateScrambledSobol64_t d;
    curand_init(by.words, 10u, &a);
    curand_init(by.words, 0xdeadbeefu, 77u, &b);
    curand_init(by.long_words, 11ull, &c);
    curand_init(by.long_words, 0xfeedfacecafebeefull, 99ull, &d);
    sequence<curandStateSobol32_t, unsigned int>(
        a, {{0x70000000, 0xf0000000, 0x10000000, 0x90000000, 0x50000000, 0xd0000000}, 0x6ca1d800, 0x1.7943bp-1,
            0x1.e50ec008p-3, 2.22159147, -0.032981827241316444,
            1.77009368, 1.2162906229736961, {1, 6, 80, 911, 1526}});
    sequence<curandStateScrambledSobol32_t, unsigned int>(
        b, {{0x44adbeef, 0x84adbeef, 0x4adbeef, 0xccadbeef, 0x4cadbeef, 0x8cadbeef}, 0x280c66ef, 0x1.5018cep-1,
            0x1.20319bcp-2, 0.777063131, -1.860049791048938,
            1.68156016, 1.4752932610000833, {1, 3, 82, 995, 1565}});
    sequence<curandStateSobol64_t, unsigned long long>(
        c, {{0xd000000000000000, 0x7000000000000000, 0xf000000000000000, 0xb000000000000000, 0x3000000000000000,
            0x800000000000000}, 0x15e5480000000000, 0x1.2bca9p-1, 0x1.abca9p-1, -0.42469418, 1.7568675284845201,
            1.60837638, 1.3483126563324634, {1, 5, 86, 999, 1406}});
    sequence<curandStateScrambledSobol64_t, unsigned long long>(
        d, {{0x14edfacecafebeef, 0xb4edfacecafebeef, 0x34edfacecafebeef, 0x74edfacecafebeef, 0xf4edfacecafebeef,
            0xc4edfacecafebeef}, 0xd108b2cecafebeef, 0x1.4422ccp-2, 0x1.108b2cecafebcp-4, 0.167569429,
            -0.87223909433355107,
            1.86834753, 2.4398978663003099, {0, 5, 86, 999, 1397}});
}

// Means for which the numbers equal cuRAND's, except for rounded normal numbers.
template <class State> static void poisson(const unsigned int (&counts)[8], unsigned int next) {
    const double means[] = {0.0, 0.5, 3.0, 20.0, 63.0, 5000.0, 1e6, 1e9};
    State state;
    curand_init(42, 3, 5, &state);
    for (int k = 0; k < 8; ++k) CHECK(curand_poisson(&state, means[k]) == counts[k]);
    CHECK(curand(&state) == next);
    // Mean, variance and third moment of the distribution, within five standard deviations.
    const double measured[] = {7.0, 64.0, 300.0, 4000.0, 4001.0};
    for (const double mean : measured) {
        const int count = 40000;
        double sums[3] = {};
        for (int k = 0; k < count; ++k) {
            const double x = curand_poisson(&state, mean) - mean;
            sums[0] += x, sums[1] += x * x, sums[2] += x * x * x;
        }
        CHECK(fabs(sums[0] / count) < 5 * sqrt(mean / count));
        CHECK(fabs(sums[1] / count - mean) < 5 * sqrt((2 * mean * mean + mean) / count));
        CHECK(fabs(sums[2] / count - mean) < 5 * sqrt((15 * mean * mean * mean + 24 * mean * mean + mean) / count));
    }
    // No distribution has these means, but each call returns.
    CHECK(curand_poisson(&state, -1.0) == 0);
    curand_poisson(&state, 0.0 / 0.0);
    curand_poisson(&state, 1.0 / 0.0);
}

int main() {
    sequences();
    poisson<curandStateXORWOW_t>({0, 0, 2, 21, 53, 5078, 1000022, 1000003880}, 0x973fc604);
    poisson<curandStatePhilox4_32_10_t>({0, 1, 4, 20, 56, 4999, 999452, 999983337}, 0x59405cf1);
    poisson<curandStateMRG32k3a_t>({0, 0, 4, 17, 60, 4982, 1000396, 1000005159}, 0x883d8ba8);
    for (const Expected& it : xorwow) generator<curandStateXORWOW_t>(it, 77);
    for (const Expected& it : philox) generator<curandStatePhilox4_32_10_t>(it, 77);
    for (const Expected& it : mrg32k3a) generator<curandStateMRG32k3a_t>(it, 77);
    curandStatePhilox4_32_10_t state;
    curand_init(9, 8, 7, &state);
    const uint4 words = curand4(&state);
    CHECK(words.x == 4288411970u && words.y == 1215273496u && words.z == 3237316467u && words.w == 1049893313u);
    const float4 normals = curand_normal4(&state);
    CHECK(near(normals.x, -0.152338848, 1e-6) && near(normals.y, -0.477150917, 1e-6));
    CHECK(near(normals.z, -0.45599848, 1e-6) && near(normals.w, -1.3180716, 1e-6));
    const float4 uniform = curand_uniform4(&state);
    CHECK(uniform.x == 0x1.3a64fep-3 && uniform.y == 0x1.230cc4p-1 && uniform.z == 0x1.2f34aap-4 && uniform.w == 0x1.0906ap-3);
    const double2 pair = curand_uniform2_double(&state);
    CHECK(pair.x == 0x1.41d38a9fd212p-7 && pair.y == 0x1.ece81d3841dc4p-1);
    // Four numbers in one call are two pairs.
    curandStatePhilox4_32_10_t pairs = state;
    const double4 four = curand_uniform4_double(&state), four_normal = curand_normal4_double(&state);
    const double4 four_log = curand_log_normal4_double(&state, 0.5, 0.25);
    const double2 a = curand_uniform2_double(&pairs), b = curand_uniform2_double(&pairs);
    CHECK(four.x == a.x && four.y == a.y && four.z == b.x && four.w == b.y);
    const double2 c = curand_normal2_double(&pairs), d = curand_normal2_double(&pairs);
    CHECK(four_normal.x == c.x && four_normal.y == c.y && four_normal.z == d.x && four_normal.w == d.y);
    const double2 e = curand_log_normal2_double(&pairs, 0.5, 0.25), f = curand_log_normal2_double(&pairs, 0.5, 0.25);
    CHECK(four_log.x == e.x && four_log.y == e.y && four_log.z == f.x && four_log.w == f.y);
    return failures != 0;
}
