// Random numbers. The arithmetic follows the crate `random` step by step; the tables `RANDOM_...` come from it.

// Uniform numbers from a 32-bit word or from 53 bits. `open_of_bits` returns neither 0 nor 1.
DEVICE f32 unit_of_word(u32 x) { return (f32)x * 2.3283064365386963e-10f + 1.1641532182693481e-10f; }
DEVICE f64 wide_unit_of_word(u32 x) { return (f64)x * 2.3283064365386963e-10 + 1.1641532182693481e-10; }
DEVICE f64 unit_of_bits(u64 x) { return (f64)x * 1.1102230246251565e-16 + 5.551115123125783e-17; }
DEVICE f64 open_of_bits(u64 x) { return ((f64)(x >> 1) + 0.5) * 2.220446049250313e-16; }
DEVICE u64 join_words(u32 x, u32 y) { return (u64)x ^ ((u64)y << 21); }

// A state in registers; `next` draws a word.
struct Xorwow {
    // A draw costs less than its store, and warps that store one value at a time progress through memory
    // together.
    static const int UNROLLED = 1;
    u32 weyl, v0, v1, v2, v3, v4;
    METHOD void load(const u32* s) {
        weyl = s[0], v0 = s[1], v1 = s[2], v2 = s[3], v3 = s[4], v4 = s[5];
    }
    METHOD void store(u32* s) const {
        s[0] = weyl, s[1] = v0, s[2] = v1, s[3] = v2, s[4] = v3, s[5] = v4;
    }
    METHOD u32 next() {
        const u32 t = v0 ^ (v0 >> 2);
        v0 = v1, v1 = v2, v2 = v3, v3 = v4;
        v4 = v4 ^ (v4 << 4) ^ t ^ (t << 1);
        weyl += RANDOM_XORWOW_WEYL;
        return v4 + weyl;
    }
    METHOD void uniform(f32& value) { value = unit_of_word(next()); }
    METHOD void uniform(f64& value) {
        const u32 low = next();
        value = unit_of_bits(join_words(low, next()));
    }
};

// Returns x modulo 2^32 - rest, for x below 2^54.
DEVICE u32 reduce_modulus(u64 x, u32 rest) {
    x = (x >> 32) * rest + (u32)x;
    x = (x >> 32) * rest + (u32)x;
    const u64 modulus = (1ull << 32) - rest;
    return (u32)(x >= modulus ? x - modulus : x);
}

struct Mrg32k3a {
    static const int UNROLLED = 8;
    u32 s0, s1, s2, t0, t1, t2;
    METHOD void load(const u32* s) {
        s0 = s[0], s1 = s[1], s2 = s[2], t0 = s[3], t1 = s[4], t2 = s[5];
    }
    METHOD void store(u32* s) const {
        s[0] = s0, s[1] = s1, s[2] = s2, s[3] = t0, s[4] = t1, s[5] = t2;
    }
    // Returns a number from 1 to 2^32 - 209.
    METHOD u32 draw() {
        const u32 m1 = (u32)RANDOM_MRG_M1, m2 = (u32)RANDOM_MRG_M2;
        const u32 p = reduce_modulus(RANDOM_MRG_A12 * s1 + RANDOM_MRG_A13 * (m1 - s0), 0u - m1);
        const u32 q = reduce_modulus(RANDOM_MRG_A21 * t2 + RANDOM_MRG_A23 * (m2 - t0), 0u - m2);
        s0 = s1, s1 = s2, s2 = p;
        t0 = t1, t1 = t2, t2 = q;
        return p > q ? p - q : p - q + m1;
    }
    METHOD u32 next() { return (u32)((f64)draw() * RANDOM_MRG_WORD); }
    METHOD void uniform(f32& value) { value = (f32)((f64)draw() * RANDOM_MRG_UNIT); }
    METHOD void uniform(f64& value) { value = (f64)draw() * RANDOM_MRG_UNIT; }
};

DEVICE u32 count_trailing_ones(u64 x) {
    u32 count = 0;
    while (x & 1) {
        x >>= 1;
        ++count;
    }
    return count;
}

// The index of the point, its value and the direction vectors, the first of which are kept in registers.
template <class W>
struct Sobol {
    W point, value, v0, v1, v2;
    const W* vectors;
    METHOD void load(const u32* s) {
        const W* words = (const W*)s;
        point = words[0], value = words[1], vectors = words + 3;
        v0 = vectors[0], v1 = vectors[1], v2 = vectors[2];
    }
    METHOD void store(u32* s) const {
        W* words = (W*)s;
        words[0] = point, words[1] = value;
    }
    METHOD W draw() {
        const W drawn = value;
        const u32 changed = count_trailing_ones(point);
        const u32 last = sizeof(W) * 8 - 1;
        value ^= changed == 0   ? v0
                 : changed == 1 ? v1
                 : changed == 2 ? v2
                                : vectors[changed < last ? changed : last];
        ++point;
        return drawn;
    }
};

DEVICE u32 word_of_point(u32 x) { return x; }
DEVICE u32 word_of_point(u64 x) { return (u32)(x >> 32); }
DEVICE f64 unit_of_point(u32 x) { return wide_unit_of_word(x); }
DEVICE f64 unit_of_point(u64 x) { return unit_of_bits(x >> 11); }
DEVICE f64 open_of_point(u32 x) { return wide_unit_of_word(x); }
DEVICE f64 open_of_point(u64 x) { return open_of_bits(x >> 11); }

// The distributions: each draws `ELEMENTS` values in one call, and a loop is unrolled `UNROLLED` times. There
// are fewer states than a device can run threads, so it is only busy if the draws of each state overlap.
// threads than there are states: it is busy if the draws of each overlap.
template <class S, class T>
struct pseudo_bits {
    static const int ELEMENTS = 1, UNROLLED = S::UNROLLED;
    METHOD static void draw(S& state, T* to, f64, f64) { to[0] = (T)state.next(); }
};

template <class S, class T>
struct pseudo_uniform {
    static const int ELEMENTS = 1, UNROLLED = S::UNROLLED;
    METHOD static void draw(S& state, T* to, f64, f64) { state.uniform(to[0]); }
};

template <class S>
DEVICE u64 draw_bits(S& state) {
    const u32 low = state.next();
    return join_words(low, state.next());
}

template <class S>
DEVICE Pair<f32> draw_normals(S& state, f32) {
    const u32 x = state.next();
    const f32 radius = random_root(random_square_radius(unit_of_word(x)));
    Pair<f32> both = random_sine_cosine(state.next());
    both.first *= radius;
    both.second *= radius;
    return both;
}

template <class S>
DEVICE Pair<f64> draw_normals(S& state, f64) {
    const u64 x = draw_bits(state);
    const f64 radius = m_sqrt(-2.0 * random_ln(unit_of_bits(x)));
    Pair<f64> both = random_sine_cosine(draw_bits(state));
    both.first *= radius;
    both.second *= radius;
    return both;
}

template <class S, class T>
struct pseudo_normal {
    static const int ELEMENTS = 2, UNROLLED = 8;
    METHOD static void draw(S& state, T* to, f64, f64) {
        const Pair<T> both = draw_normals(state, (T)0);
        to[0] = both.first;
        to[1] = both.second;
    }
};

template <class S, class T>
struct pseudo_log_normal {
    static const int ELEMENTS = 2, UNROLLED = 4;
    METHOD static void draw(S& state, T* to, f64 mean, f64 deviation) {
        const Pair<T> both = draw_normals(state, (T)0);
        to[0] = (T)random_log_normal((f64)both.first, mean, deviation);
        to[1] = (T)random_log_normal((f64)both.second, mean, deviation);
    }
};

DEVICE void store_number(u32& to, f64 number) {
    to = number < 4294967295.0 ? (u32)number : 4294967295u;
}
DEVICE void store_number(f32& to, f64 number) { to = (f32)number; }
DEVICE void store_number(f64& to, f64 number) { to = number; }

template <class S, class T>
struct pseudo_poisson {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64 mean, f64) {
        store_number(to[0], random_poisson(open_of_bits(draw_bits(state)), mean));
    }
};

template <class S, class T>
struct pseudo_poisson_of_element {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64, f64) {
        store_number(to[0], random_poisson(open_of_bits(draw_bits(state)), (f64)to[0]));
    }
};

DEVICE void store_bits(u32& to, u32 x) { to = x; }
DEVICE void store_bits(i32& to, u32 x) { to = (i32)x; }
DEVICE void store_bits(u32& to, u64 x) { to = word_of_point(x); }
DEVICE void store_bits(i32& to, u64 x) { to = (i32)word_of_point(x); }
DEVICE void store_bits(u64& to, u64 x) { to = x; }
DEVICE void store_bits(i64& to, u64 x) { to = (i64)x; }

template <class S, class T>
struct quasi_bits {
    static const int ELEMENTS = 1, UNROLLED = 8;
    METHOD static void draw(S& state, T* to, f64, f64) { store_bits(to[0], state.draw()); }
};

DEVICE void store_unit(f32& to, u32 x) { to = unit_of_word(x); }
DEVICE void store_unit(f32& to, u64 x) { to = unit_of_word(word_of_point(x)); }
DEVICE void store_unit(f64& to, u32 x) { to = unit_of_point(x); }
DEVICE void store_unit(f64& to, u64 x) { to = unit_of_point(x); }

template <class S, class T>
struct quasi_uniform {
    static const int ELEMENTS = 1, UNROLLED = 8;
    METHOD static void draw(S& state, T* to, f64, f64) { store_unit(to[0], state.draw()); }
};

template <class S, class T>
struct quasi_normal {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64, f64) {
        to[0] = (T)random_inverse_normal(open_of_point(state.draw()));
    }
};

template <class S, class T>
struct quasi_log_normal {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64 mean, f64 deviation) {
        const T normal = (T)random_inverse_normal(open_of_point(state.draw()));
        to[0] = (T)random_log_normal((f64)normal, mean, deviation);
    }
};

template <class S, class T>
struct quasi_poisson {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64 mean, f64) {
        store_number(to[0], random_poisson(open_of_point(state.draw()), mean));
    }
};

template <class S, class T>
struct quasi_poisson_of_element {
    static const int ELEMENTS = 1, UNROLLED = 1;
    METHOD static void draw(S& state, T* to, f64, f64) {
        store_number(to[0], random_poisson(open_of_point(state.draw()), (f64)to[0]));
    }
};

// Draws of one state, `COUNT` draws apart, each written by a single store if `PACKED`.
template <class S, u32 COUNT, class D, bool PACKED, class T>
DEVICE void draw_all(S& state, T* place, u64 rounds, f64 first, f64 second) {
    typedef Pack<T, D::ELEMENTS> pack;
    const u64 apart = (u64)COUNT * D::ELEMENTS;
#pragma unroll (D::UNROLLED)
    for (u64 round = 0; round < rounds; ++round, place += apart) {
        if (PACKED) {
            pack values = *(pack*)place;
            D::draw(state, values.item, first, second);
            *(pack*)place = values;
        } else {
            D::draw(state, place, first, second);
        }
    }
}

// One thread for each of `COUNT` states of `WORDS` words.
template <class S, u32 COUNT, u32 WORDS, class D, class T>
DEVICE void fill_random(u32* states, T* out, u64 length, f64 first, f64 second) {
    const u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    const u64 whole = length / D::ELEMENTS;
    const bool cut = whole * D::ELEMENTS < length && whole % COUNT == index;
    if (index >= COUNT || (index >= whole && !cut)) {
        return;
    }
    S state;
    state.load(states + (u64)index * WORDS);
    T* place = out + (u64)index * D::ELEMENTS;
    const u64 rounds = index < whole ? (whole - 1 - index) / COUNT + 1 : 0;
    if ((u64)out % (sizeof(T) * D::ELEMENTS) == 0) {
        draw_all<S, COUNT, D, true>(state, place, rounds, first, second);
    } else {
        draw_all<S, COUNT, D, false>(state, place, rounds, first, second);
    }
    if (cut) {
        T values[D::ELEMENTS];
        D::draw(state, values, first, second);
        out[whole * D::ELEMENTS] = values[0];
    }
    state.store(states + (u64)index * WORDS);
}

DEVICE u64 wide_product(u32 x, u32 y) {
#if defined(__CUDA_ARCH__)
    // NVRTC would compile a 64-bit product, and add the upper half of y, which is zero.
    u64 product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "r"(y));
    return product;
#else
    return (u64)x * y;
#endif
}

// Philox4x32-10: four words for each value of a counter.
DEVICE void random_block(u64 index, u64 seed, u32* words) {
    u32 a = (u32)index, b = (u32)(index >> 32), c = 0, d = 0;
    u32 k = (u32)seed, l = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 x = wide_product(a, RANDOM_PHILOX_FIRST);
        const u64 y = wide_product(c, RANDOM_PHILOX_SECOND);
        a = (u32)(y >> 32) ^ b ^ k, b = (u32)y, c = (u32)(x >> 32) ^ d ^ l, d = (u32)x;
        k += RANDOM_PHILOX_FIRST_STEP, l += RANDOM_PHILOX_SECOND_STEP;
    }
    words[0] = a, words[1] = b, words[2] = c, words[3] = d;
}

template <class T>
struct block_bits {
    METHOD static void draw(const u32* words, T* to) {
        for (int k = 0; k < 4; ++k) {
            to[k] = (T)words[k];
        }
    }
};

template <class T>
struct block_half_open;
template <>
struct block_half_open<f32> {
    METHOD static void draw(const u32* words, f32* to) {
        for (int k = 0; k < 4; ++k) {
            to[k] = (f32)(words[k] >> 8) * 5.9604644775390625e-8f;
        }
    }
};
template <>
struct block_half_open<f64> {
    METHOD static void draw(const u32* words, f64* to) {
        for (int k = 0; k < 2; ++k) {
            to[k] = (f64)(join_words(words[2 * k], words[2 * k + 1])) * 1.1102230246251565e-16;
        }
    }
};

template <class B, class T>
DEVICE void fill_from_seed(T* out, u64 length, u64 seed) {
    const int elements = 16 / sizeof(T);
    typedef Pack<T, elements> pack;
    const bool packed = (u64)out % 16 == 0;
    const u64 step = (u64)gridDim.x * blockDim.x;
    const u64 blocks = (length + elements - 1) / elements;
    for (u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += step) {
        u32 words[4];
        random_block(block, seed, words);
        pack values;
        B::draw(words, values.item);
        T* place = out + block * elements;
        const u64 left = length - block * elements;
        if (packed && left >= elements) {
            *(pack*)place = values;
        } else {
            for (int k = 0; k < elements && k < left; ++k) {
                place[k] = values.item[k];
            }
        }
    }
}
