// Functions that make numbers of a distribution out of uniform ones. The arithmetic is that of the crate
// `random`, step for step: a change here is a change there.

// The value of a polynomial by Horner's rule, the highest coefficient first.
template <class R>
DEVICE R horner(R, R sum) {
    return sum;
}
template <class R, class... Rest>
DEVICE R horner(R x, R sum, R next, Rest... rest) {
    return horner(x, m_fma(sum, x, next), rest...);
}

// -2 ln x.
DEVICE f32 random_square_radius(f32 x) {
    const u32 bits = to_bits(x);
    const u32 exponent = (bits - 0x3f400000u) & 0xff800000u;
    const f32 g = m_fma(from_bits((u32)(bits - exponent)), -2.0f, 2.0f);
    const f32 p = horner<f32>(g, 0.054128315f / 256, 0.12067029f / 128, 0.14983918f / 64, 0.16822858f / 32,
                              0.19977079f / 16, 0.24993441f / 8, 0.33333549f / 4, 0.5000006f / 2);
    return m_fma((f32)(i32)exponent, -0.693147180559945309417f / 4194304, m_fma(g * g, p, g));
}

// The root of zero or of a number from 2^-60 to 2^60, correctly rounded. CUDA's compilers take the same steps for
// such numbers, and ask each time whether it is one.
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
    const f64 r = horner<f64>(z, 2.0 / 25.0, 2.0 / 23.0, 2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0,
                              2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0,
                              2.0 / 3.0);
    return m_fma(exponent, 0.693147180559945309417232121458, m_fma(s * z, r, s + s));
}

template <class R>
struct alignas(2 * sizeof(R)) Pair {
    R first, second;
};

// The sine and the cosine of (y + 1/2) / 2^32 of a turn.
DEVICE Pair<f32> random_sine_cosine(u32 y) {
    const f32 unit = (f32)(2.0 * 3.14159265358979323846264338328 / 4294967296.0);
    // Four times what exceeds the nearest quarter.
    const f32 x = m_fma((f32)(i32)(y << 2), unit * 0.25f, unit * 0.5f);
    const f32 z = x * x;
    const f32 s = m_fma(x * z, horner<f32>(z, 1.0f / 362880.0f, -1.0f / 5040.0f, 1.0f / 120.0f, -1.0f / 6.0f), x);
    const f32 c = horner<f32>(z, 1.0f / 40320.0f, -1.0f / 720.0f, 1.0f / 24.0f, -0.5f, 1.0f);
    // The quarter is in the upper bits.
    const u32 quarter = y + 0x20000000u;
    const bool even = (quarter & 0x40000000u) == 0;
    Pair<f32> both;
    both.first = from_bits((u32)(to_bits(even ? s : c) ^ (quarter & 0x80000000u)));
    both.second = from_bits((u32)(to_bits(even ? c : s) ^ ((y + 0x60000000u) & 0x80000000u)));
    return both;
}

// The sine and the cosine of (y + 1/2) / 2^53 of a turn.
DEVICE Pair<f64> random_sine_cosine(u64 y) {
    const f64 unit = 2.0 * 3.14159265358979323846264338328 / 9007199254740992.0;
    const u64 quarter = (y + (1ull << 50)) >> 51;
    const f64 x = m_fma((f64)(i64)(y - (quarter << 51)), unit, unit * 0.5);
    const f64 z = x * x;
    const f64 s = m_fma(
        x * z,
        horner<f64>(z, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0,
                    -1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0),
        x);
    const f64 c = horner<f64>(z, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                              -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0);
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
    const f64 n = m_fma(x, 1.44269504088896340735992468100, 6755399441055744.0) - 6755399441055744.0;
    const f64 r = m_fma(n, -1.9082149292705877e-10, m_fma(n, -6.931471803691238e-1, x));
    const f64 p = horner<f64>(r, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                              1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                              1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
    const i32 exponent = (i32)n, half = exponent >> 1;
    return p * from_bits((u64)(half + 1023) << 52) * from_bits((u64)(exponent - half + 1023) << 52);
}

// The quantile of the normal distribution: M. Wichura, algorithm AS 241.
DEVICE f64 random_inverse_normal(f64 p) {
    const f64 q = p - 0.5;
    if (m_fabs(q) <= 0.425) {
        const f64 r = 0.180625 - q * q;
        return q *
               horner<f64>(r, 2.5090809287301226727e3, 3.3430575583588128105e4,
                           6.7265770927008700853e4, 4.5921953931549871457e4, 1.3731693765509461125e4,
                           1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0) /
               horner<f64>(r, 5.2264952788528545610e3, 2.8729085735721942674e4,
                           3.9307895800092710610e4, 2.1213794301586595867e4, 5.3941960214247511077e3,
                           6.8718700749205790830e2, 4.2313330701600911252e1, 1.0);
    }
    f64 r = m_sqrt(-random_ln(q < 0.0 ? p : 1.0 - p));
    f64 x;
    if (r <= 5.0) {
        r = r - 1.6;
        x = horner<f64>(r, 7.7454501427834140764e-4, 2.27238449892691845833e-2,
                        2.41780725177450611770e-1, 1.27045825245236838258e0, 3.64784832476320460504e0,
                        5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0) /
            horner<f64>(r, 1.05075007164441684324e-9, 5.475938084995344946e-4,
                        1.51986665636164571966e-2, 1.48103976427480074590e-1,
                        6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0);
    } else {
        r = r - 5.0;
        x = horner<f64>(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5,
                        1.24266094738807843860e-3, 2.65321895265761230930e-2,
                        2.96560571828504891230e-1, 1.78482653991729133580e0,
                        5.46378491116411436990e0, 6.65790464350110377720e0) /
            horner<f64>(r, 2.04426310338993978564e-15, 1.42151175831644588870e-7,
                        1.84631831751005468180e-5, 7.86869131145613259100e-4,
                        1.48753612908506148525e-2, 1.36929880922735805310e-1,
                        5.99832206555887937690e-1, 1.0);
    }
    return q < 0.0 ? -x : x;
}

DEVICE f64 random_log_normal(f64 normal, f64 mean, f64 deviation) {
    return random_exp(m_fma(normal, deviation, mean));
}

// The quantile of Poisson's distribution.
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
