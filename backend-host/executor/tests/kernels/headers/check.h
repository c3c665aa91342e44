// Checks for the programs in this folder: each prints a failure, and makes the program exit with 1.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
            if (++failures > 20) exit(1);                                                       \
        }                                                                                       \
    } while (0)
// Compares bits, so that zeros of different signs differ and a NaN equals itself.
#define CHECK_SAME(found, expected)                                                             \
    do {                                                                                        \
        const auto found_ = (found);                                                            \
        const decltype(found_) expected_ = (expected);                                          \
        if (memcmp(&found_, &expected_, sizeof found_) != 0) {                                  \
            fprintf(stderr, "%s:%d: %s is %.17g, not %.17g\n", __FILE__, __LINE__, #found,      \
                    (double)found_, (double)expected_);                                         \
            if (++failures > 20) exit(1);                                                       \
        }                                                                                       \
    } while (0)

// Pseudo-random words, the same in each run: a linear congruential generator (D. Knuth, MMIX).
static unsigned long long random_state = 88172645463325252ull;
static inline unsigned long long random_word() {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return random_state ^ random_state >> 29;
}
