// Functions that turn uniform numbers into numbers of a distribution. The arithmetic follows the crate `random`
// step by step; the tables `RANDOM_...` come from it.

// Evaluates a polynomial by Horner's rule, the highest coefficient first.
template <class R>
DEVICE R horner(R, R sum) {
    return sum;
}
template <class R, class... Rest>
DEVICE R horner(R x, R sum, R next, Rest... rest) {
    return horner(x, m_fma(sum, x, next), rest...);
}

// Returns -2 ln x.
DEVICE f32 random_square_radius(f32 x) {
    const u32 bits = to_bits(x);
    const u32 exponent = (bits - 0x3f400000u) & 0xff800000u;
    const f32 g = m_fma(from_bits((u32)(bits - exponent)), -2.0f, 2.0f);
    const f32 p = horner<f32>(g, RANDOM_SQUARE_RADIUS);
    return m_fma((f32)(i32)exponent, -0.693147180559945309417f / 4194304, m_fma(g * g, p, g));
}

// Returns the correctly rounded square root of zero or of a number from 2^-60 to 2^60. CUDA's compilers take the
// same steps for such numbers, but test each time that the number is one of them.
DEVICE f32 random_root(f32 x) {
#if defined(__CUDA_ARCH__)
    f32 inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x > 1e-20f ? x : 1e-20f));
    const f32 root = x * inverse;
    return m_fma(m_fma(-root, root, x), inverse * 0.5f, root);
#else
    return m_sqrt(x);
#endif
}

DEVICE f64 random_ln(f64 x) {
    const u64 bits = to_bits(x) - 0x3fe8000000000000ull;
    const f64 exponent = (f64)((i64)bits >> 52);
    const f64 f = from_bits((u64)((bits & 0x000fffffffffffffull) + 0x3fe8000000000000ull)) - 1.0;
    const f64 s = f / (f + 2.0);
    const f64 z = s * s;
    const f64 r = horner<f64>(z, RANDOM_LN);
    return m_fma(exponent, 0.693147180559945309417232121458, m_fma(s * z, r, s + s));
}

template <class R>
struct alignas(2 * sizeof(R)) Pair {
    R first, second;
};

// Returns the sine and the cosine of (y + 1/2) / 2^32 of a turn.
DEVICE Pair<f32> random_sine_cosine(u32 y) {
    const f32 unit = RANDOM_TURN_32;
    // Four times the distance from the nearest quarter.
    const f32 x = m_fma((f32)(i32)(y << 2), unit * 0.25f, unit * 0.5f);
    const f32 z = x * x;
    const f32 s = m_fma(x * z, horner<f32>(z, RANDOM_SINE_32), x);
    const f32 c = horner<f32>(z, RANDOM_COSINE_32);
    // The upper bits hold the quarter.
    const u32 quarter = y + 0x20000000u;
    const bool even = (quarter & 0x40000000u) == 0;
    Pair<f32> both;
    both.first = from_bits((u32)(to_bits(even ? s : c) ^ (quarter & 0x80000000u)));
    both.second = from_bits((u32)(to_bits(even ? c : s) ^ ((y + 0x60000000u) & 0x80000000u)));
    return both;
}

// Returns the sine and the cosine of (y + 1/2) / 2^53 of a turn.
DEVICE Pair<f64> random_sine_cosine(u64 y) {
    const f64 unit = RANDOM_TURN_53;
    const u64 quarter = (y + (1ull << 50)) >> 51;
    const f64 x = m_fma((f64)(i64)(y - (quarter << 51)), unit, unit * 0.5);
    const f64 z = x * x;
    const f64 s = m_fma(x * z, horner<f64>(z, RANDOM_SINE_64), x);
    const f64 c = horner<f64>(z, RANDOM_COSINE_64);
    const bool even = (quarter & 1) == 0;
    Pair<f64> both;
    both.first = from_bits((u64)(to_bits(even ? s : c) ^ ((quarter & 2) << 62)));
    both.second = from_bits((u64)(to_bits(even ? c : s) ^ (((quarter + 1) & 2) << 62)));
    return both;
}

DEVICE f64 random_exp(f64 x) {
    if (x != x) {
        return x;
    }
    if (x < -746.0) {
        return 0.0;
    }
    if (x > 710.0) {
        return from_bits((u64)0x7ff0000000000000ull);
    }
    const f64 n = m_fma(x, 1.44269504088896340735992468100, RANDOM_EXP_ROUND) - RANDOM_EXP_ROUND;
    const f64 r = m_fma(n, -RANDOM_LN_2_LOW, m_fma(n, -RANDOM_LN_2_HIGH, x));
    const f64 p = horner<f64>(r, RANDOM_EXP);
    const i32 exponent = (i32)n, half = exponent >> 1;
    return p * from_bits((u64)(half + 1023) << 52) * from_bits((u64)(exponent - half + 1023) << 52);
}

// The quantile of the normal distribution: M. Wichura, algorithm AS 241.
DEVICE f64 random_inverse_normal(f64 p) {
    const f64 q = p - 0.5;
    if (m_fabs(q) <= 0.425) {
        const f64 r = 0.180625 - q * q;
        return q * horner<f64>(r, RANDOM_QUANTILE_CENTRE) / horner<f64>(r, RANDOM_QUANTILE_CENTRE_BELOW);
    }
    f64 r = m_sqrt(-random_ln(q < 0.0 ? p : 1.0 - p));
    f64 x;
    if (r <= 5.0) {
        r = r - 1.6;
        x = horner<f64>(r, RANDOM_QUANTILE_NEAR) / horner<f64>(r, RANDOM_QUANTILE_NEAR_BELOW);
    } else {
        r = r - 5.0;
        x = horner<f64>(r, RANDOM_QUANTILE_FAR) / horner<f64>(r, RANDOM_QUANTILE_FAR_BELOW);
    }
    return q < 0.0 ? -x : x;
}

DEVICE f64 random_log_normal(f64 normal, f64 mean, f64 deviation) {
    return random_exp(m_fma(normal, deviation, mean));
}

// The quantile of the Poisson distribution.
DEVICE f64 random_poisson(f64 point, f64 mean) {
    if (!(mean > 0.0)) {
        return 0.0;
    }
    if (mean < 64.0) {
        f64 probability = random_exp(-mean);
        f64 cumulated = probability;
        f64 number = 0.0;
        while (point > cumulated && number < 400.0) {
            number += 1.0;
            probability = probability * mean / number;
            cumulated += probability;
        }
        return number;
    }
    if (mean > 1.7976931348623157e308) {
        return mean;
    }
    const f64 w = random_inverse_normal(point);
    const f64 root = m_sqrt(mean), square = w * w;
    const f64 constant = m_fma(square, 1.0 / 6.0, 1.0 / 3.0);
    const f64 first = m_fma(square, -1.0 / 72.0, -1.0 / 36.0) * w / root;
    const f64 second = m_fma(m_fma(square, 1.0 / 270.0, 7.0 / 810.0), square, -8.0 / 405.0) / mean;
    const f64 number = m_floor(m_fma(root, w, mean) + constant + first + second);
    return number > 0.0 ? number : 0.0;
}
