// The Poisson distribution. For means below 64 and above 4000, the numbers are the same as in cuRAND. Between
// them, the distribution is the same but the numbers differ. For quasi-random sequences, the numbers are the
// same as in cuRAND except for rounding.
#pragma once

extern "C++" {

namespace cuda_c {

// Multiplies factors until the product is small (D. Knuth).
template <class State> static inline unsigned int poisson_by_product(State* state, float mean) {
    unsigned int count = 0;
    float product = expf(mean);
    do {
        ++count;
        product *= curand_uniform(state);
    } while (product > 1.0f);
    return count - 1;
}

// Rejection from a transformed hat (W. Hormann, "The transformed rejection method for generating Poisson
// random variables", 1993: PTRS), for means of at least 10.
template <class State> static inline unsigned int poisson_by_rejection(State* state, double mean) {
    const double b = 0.931 + 2.53 * ::sqrt(mean), a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), top = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        const double u = (double)curand_uniform(state) - 0.5, v = curand_uniform(state);
        const double left = 0.5 - ::fabs(u);
        if (left <= 0.0) continue;
        const double k = ::floor((2.0 * a / left + b) * u + mean + 0.43);
        if (left >= 0.07 && v <= top) return (unsigned int)k;
        if (k < 0.0 || (left < 0.013 && v > left)) continue;
        if (::log(v * inverse / (a / (left * left) + b)) <= k * ::log(mean) - mean - ::lgamma(k + 1.0)) {
            return (unsigned int)k;
        }
    }
}

// A rounded normal number.
static inline unsigned int poisson_of_normal(double normal, double mean) {
    return __double2uint_rz(::sqrt(mean) * normal + mean + 0.5);
}

template <class State> static inline unsigned int poisson(State* state, double mean) {
    if (mean < 64.0) return poisson_by_product(state, (float)mean);
    if (mean <= 4000.0) return poisson_by_rejection(state, mean);
    return poisson_of_normal(curand_normal_double(state), mean);
}

// Inverts the distribution function for a mean below 1000: the smallest count whose cumulative probability is
// at least `u`, with `u` below 1. The terms of the sum include only half of their power of e, because the
// whole power would underflow.
static inline unsigned int poisson_at(double u, double mean) {
    const double scale = ::exp(mean / -2.0);
    unsigned int count = 0;
    double term = scale, sum = scale;
    while (u > sum * scale && term > 0.0) {
        ++count;
        term *= mean / count;
        sum += term;
    }
    return count;
}

} // namespace cuda_c

} // extern "C++"
