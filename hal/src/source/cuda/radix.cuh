// Sorting by digits of eight bits, the lowest first, after "Onesweep: A Faster Least Significant Digit
// Radix Sort for GPUs" (Adinets and Merrill, 2022): one kernel counts the digits of all places, then
// each pass reads and writes the elements once. A block sorts a tile by the digit in shared memory; where
// its elements of a digit go follows from the counts, and from those of the tiles before it, which it
// takes from the words that their blocks have published. Equal elements keep their order.

// Words whose order is that of the elements: NaN, whatever its bits, is the last, and zeros are equal.
template <class Bits, int FRACTION>
struct FloatOrder {
    static METHOD Bits of(Bits bits) {
        const Bits sign = (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1));
        const Bits magnitude = (Bits)(bits & (Bits)~sign);
        const Bits infinity = (Bits)((Bits)(sign - 1) >> FRACTION << FRACTION);
        if (magnitude > infinity) {
            return (Bits)~(Bits)0;
        }
        return magnitude == 0 ? sign : (bits & sign) != 0 ? (Bits)~bits : (Bits)(bits | sign);
    }
};
template <class Bits>
struct SignedOrder {
    static METHOD Bits of(Bits bits) { return (Bits)(bits ^ (Bits)((Bits)1 << (sizeof(Bits) * 8 - 1))); }
};

// The order of elements of a type, and an element that none comes after.
template <class V>
struct Digits {
    typedef V Bits;
    static METHOD Bits order(V x) { return x; }
    static METHOD V last() { return (V)~(V)0; }
};
template <>
struct Digits<bool> {
    typedef u8 Bits;
    static METHOD Bits order(u8 x) { return x != 0 ? 1 : 0; }
    static METHOD u8 last() { return 1; }
};
#define GPUARRAY_SIGNED_DIGITS(type, bits)                                            \
    template <>                                                                       \
    struct Digits<type> {                                                             \
        typedef bits Bits;                                                            \
        static METHOD Bits order(type x) { return SignedOrder<bits>::of((bits)x); }   \
        static METHOD type last() { return (type)((bits)~(bits)0 >> 1); }             \
    };
GPUARRAY_SIGNED_DIGITS(i8, u8)
GPUARRAY_SIGNED_DIGITS(i16, u16)
GPUARRAY_SIGNED_DIGITS(i32, u32)
GPUARRAY_SIGNED_DIGITS(i64, u64)
template <class F>
struct Digits<narrow_float<F> > {
    typedef typename F::Bits Bits;
    static METHOD Bits order(narrow_float<F> x) { return FloatOrder<Bits, F::FRACTION>::of(x.bits); }
    static METHOD narrow_float<F> last() {
        narrow_float<F> x;
        x.bits = (Bits)((Bits)~(Bits)0 >> 1);
        return x;
    }
};
template <>
struct Digits<f32> {
    typedef u32 Bits;
    static METHOD Bits order(f32 x) { return FloatOrder<u32, 23>::of(to_bits(x)); }
    static METHOD f32 last() { return from_bits(0x7fffffffu); }
};
template <>
struct Digits<f64> {
    typedef u64 Bits;
    static METHOD Bits order(f64 x) { return FloatOrder<u64, 52>::of(to_bits(x)); }
    static METHOD f64 last() { return from_bits((u64)0x7fffffffffffffffull); }
};

// Words that count elements and the words of indices in memory: of 32 bits below 2^30 elements.
template <bool WIDE>
struct RadixWords {
    typedef u32 Word;
};
template <>
struct RadixWords<true> {
    typedef u64 Word;
};

template <class W>
struct BlockSums {
    W values[272];
    W groups[17];

    // What precedes the thread's value among those of the block; `total` becomes their sum.
    METHOD W before(W value, W* total) {
        const u32 thread = threadIdx.x;
        values[thread + thread / 16] = value;
        __syncthreads();
        if (thread < 16) {
            W item[16], running = 0;
#pragma unroll
            for (u32 k = 0; k < 16; ++k) {
                item[k] = values[thread * 17 + k];
            }
#pragma unroll
            for (u32 k = 0; k < 16; ++k) {
                values[thread * 17 + k] = running;
                running += item[k];
            }
            groups[thread] = running;
        }
        __syncthreads();
        if (thread == 0) {
            W item[16], running = 0;
#pragma unroll
            for (u32 k = 0; k < 16; ++k) {
                item[k] = groups[k];
            }
#pragma unroll
            for (u32 k = 0; k < 16; ++k) {
                groups[k] = running;
                running += item[k];
            }
            groups[16] = running;
        }
        __syncthreads();
        *total = groups[16];
        return groups[thread / 16] + values[thread + thread / 16];
    }
};

template <class V, bool INDICES, bool WIDE>
struct Radix {
    typedef typename Stored<V>::type T;
    typedef typename RadixWords<WIDE>::Word Word;
    // Digits of an element.
    static constexpr u32 places = sizeof(T);
    // Elements of a thread: an odd number, which spreads the threads over the banks, and at most 15, so
    // that counts of them have four bits. `tile` in sort/radix.rs knows this.
    static constexpr u32 count = WIDE && INDICES ? 7 : sizeof(T) > 4 ? 9 : 15;
    static constexpr u32 size = 256 * count;

    // A word that is published is a count, below a mark: of the tile alone, or with all before it.
    static constexpr u32 mark = sizeof(Word) * 8 - 2;
    static constexpr Word alone = (Word)1 << mark;
    static constexpr Word complete = (Word)2 << mark;
    static constexpr Word value = alone - 1;

    struct Memory {
        T key[size];
        Word index[INDICES ? size : 1];
        // For each thread, how many of its elements have a half digit: two of the sixteen to a word,
        // with a gap behind eight words.
        u32 counts[256 * 9];
        BlockSums<u32> sums;
        BlockSums<Word> starts;
        // Where the elements of each digit begin and end in the tile.
        u32 begin[256];
        u32 end[256];
        // How far they go from there.
        Word move[256];
    };

    static METHOD u32 digit(T key, u32 shift) { return (u32)(Digits<V>::order(key) >> shift) & 255; }
    static METHOD u32 at(u32 word) { return word + word / 8; }

    // Sorts the tile in shared memory by half a digit.
    static METHOD void sort_half(Memory& memory, u32 shift) {
        const u32 thread = threadIdx.x;
        T own[count];
        // Four bits of each: the half digits, how many equal ones a thread has before, and has in all.
        u64 halves = 0, ranks = 0, counts = 0;
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            own[k] = memory.key[thread * count + k];
            const u32 half = (u32)(Digits<V>::order(own[k]) >> shift) & 15;
            halves |= (u64)half << (k * 4);
            ranks |= (counts >> half * 4 & 15) << (k * 4);
            counts += (u64)1 << half * 4;
        }
        const u32 low = (u32)counts, high = (u32)(counts >> 32);
#pragma unroll
        for (u32 word = 0; word < 8; ++word) {
            memory.counts[at(word * 256 + thread)] = (low >> word * 4 & 15) | (high >> word * 4 & 15) << 16;
        }
        __syncthreads();
        u32 item[8], own_total = 0, total;
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            item[k] = own_total;
            own_total += memory.counts[thread * 9 + k];
        }
        // The upper halves count digits that come after all of the lower ones'.
        u32 before = memory.sums.before(own_total, &total);
        before += total << 16;
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            memory.counts[thread * 9 + k] = before + item[k];
        }
        __syncthreads();
        u32 rank[count];
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            const u32 half = (u32)(halves >> k * 4) & 15;
            const u32 pair = memory.counts[at(half % 8 * 256 + thread)];
            rank[k] = (pair >> half / 8 * 16 & 0xffffu) + ((u32)(ranks >> k * 4) & 15);
            memory.key[rank[k]] = own[k];
        }
        if (INDICES) {
            Word index[count];
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                index[k] = memory.index[thread * count + k];
            }
            __syncthreads();
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                memory.index[rank[k]] = index[k];
            }
        }
        __syncthreads();
    }

    // How many elements of the thread's digit are in the tiles before `state`, of which there is one
    // at least.
    static METHOD Word look_back(const Word* state, u64 tiles) {
        Word sum = 0;
        for (bool done = false; !done;) {
            Word word[4];
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                word[k] = k < tiles ? published(state - (u64)(k + 1) * 256) : 0;
            }
            bool ready = true;
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                ready = ready && !done && word[k] >> mark != 0;
                if (ready) {
                    sum += word[k] & value;
                    done = word[k] >= complete;
                    state -= 256;
                    --tiles;
                }
            }
        }
        return sum;
    }
};

// Counts the digits of all places in each row, in parts of so many elements.
constexpr u32 COUNTED = 1 << 16;

template <class V, bool INDICES, bool WIDE>
DEVICE void count_digits(const char* in, u64 rows, u64 length, typename RadixWords<WIDE>::Word* histogram) {
    typedef Radix<V, INDICES, WIDE> R;
    typedef typename R::T T;
    constexpr u32 copies = 16 / R::places;
    // Equal digits of neighbouring threads are counted in different copies.
    __shared__ u32 counts[R::places * 256 * copies];
    const u32 thread = threadIdx.x;
    const u64 parts = (length + COUNTED - 1) / COUNTED;
    for (u64 work = blockIdx.x; work < rows * parts; work += gridDim.x) {
        for (u32 k = thread; k < R::places * 256 * copies; k += 256) {
            counts[k] = 0;
        }
        __syncthreads();
        const u64 row = work / parts, first = (work - row * parts) * COUNTED;
        const u32 limit = length - first < COUNTED ? (u32)(length - first) : COUNTED;
        const T* const keys = (const T*)in + row * length + first;
        for (u32 base = thread; base < limit; base += 256 * 8) {
            T key[8];
#pragma unroll
            for (u32 k = 0; k < 8; ++k) {
                key[k] = keys[base + k * 256 < limit ? base + k * 256 : base];
            }
#pragma unroll
            for (u32 k = 0; k < 8; ++k) {
                if (base + k * 256 < limit) {
#pragma unroll
                    for (u32 place = 0; place < R::places; ++place) {
                        const u32 digit = R::digit(key[k], place * 8);
                        fetch_add(&counts[(place * 256 + digit) * copies + thread % copies], (u32)1);
                    }
                }
            }
        }
        __syncthreads();
        for (u32 place = 0; place < R::places; ++place) {
            u32 sum = 0;
            for (u32 copy = 0; copy < copies; ++copy) {
                sum += counts[(place * 256 + thread) * copies + copy];
            }
            if (sum != 0) {
                fetch_add(histogram + (row * R::places + place) * 256 + thread, (typename R::Word)sum);
            }
        }
        __syncthreads();
    }
}

// Where a pass reads and writes. The first reads the elements alone, whose indices are their places; the
// last of an argsort writes nothing but indices, of 64 bits.
template <class T, class Word>
struct RadixArrays {
    const T* keys;
    const Word* indices;
    T* sorted_keys;
    Word* sorted_indices;
    i64* result;
};

// Sorts the rows by one digit, tile by tile: `state` has a word for each tile and digit, zeros at first,
// and `next_state`, if there is one, is cleared for the next pass.
template <class V, bool INDICES, bool WIDE>
DEVICE void radix_pass(const RadixArrays<typename Stored<V>::type, typename RadixWords<WIDE>::Word>& arrays,
                       u64 rows, u64 length, u64 tiles, u32 place, u64* counter,
                       const typename RadixWords<WIDE>::Word* histogram,
                       typename RadixWords<WIDE>::Word* state,
                       typename RadixWords<WIDE>::Word* next_state) {
    typedef Radix<V, INDICES, WIDE> R;
    typedef typename R::T T;
    typedef typename R::Word Word;
    __shared__ typename R::Memory memory;
    const u32 thread = threadIdx.x;
    const u32 shift = place * 8;
    u64 tile;
    for (bool first = true; take_tile(counter, rows * tiles, first, &tile); first = false) {
        const u64 row = tile / tiles, part = tile - row * tiles;
        const u64 base = part * R::size;
        const u32 limit = length - base < R::size ? (u32)(length - base) : R::size;
        const u64 from = row * length + base;
#pragma unroll
        for (u32 k = 0; k < R::count; ++k) {
            const u32 item = k * 256 + thread;
            memory.key[item] = item < limit ? arrays.keys[from + item] : Digits<V>::last();
            if (INDICES) {
                const bool is_known = arrays.indices != 0 && item < limit;
                memory.index[item] = is_known ? arrays.indices[from + item] : (Word)(base + item);
            }
        }
        memory.begin[thread] = 0;
        memory.end[thread] = 0;
        __syncthreads();
        R::sort_half(memory, shift);
        R::sort_half(memory, shift + 4);
#pragma unroll 5
        for (u32 k = 0; k < R::count; ++k) {
            const u32 item = k * 256 + thread;
            if (item < limit) {
                const u32 digit = R::digit(memory.key[item], shift);
                if (item == 0 || R::digit(memory.key[item - 1], shift) != digit) {
                    memory.begin[digit] = item;
                }
                if (item + 1 == limit || R::digit(memory.key[item + 1], shift) != digit) {
                    memory.end[digit] = item + 1;
                }
            }
        }
        __syncthreads();
        const Word count = memory.end[thread] - memory.begin[thread];
        Word* const own_state = state + tile * 256 + thread;
        Word before;
        if (part == 0) {
            Word total;
            before = memory.starts.before(histogram[(row * R::places + place) * 256 + thread], &total);
        } else {
            publish(own_state, (Word)(R::alone | count));
            before = R::look_back(own_state, part);
        }
        publish(own_state, (Word)(R::complete | (before + count)));
        if (next_state != 0) {
            next_state[tile * 256 + thread] = 0;
        }
        memory.move[thread] = before - memory.begin[thread];
        __syncthreads();
#pragma unroll 5
        for (u32 k = 0; k < R::count; ++k) {
            const u32 item = k * 256 + thread;
            if (item < limit) {
                const T key = memory.key[item];
                const u64 to = row * length + (Word)(memory.move[R::digit(key, shift)] + item);
                if (!INDICES || arrays.result == 0) {
                    arrays.sorted_keys[to] = key;
                }
                if (INDICES) {
                    if (arrays.result != 0) {
                        arrays.result[to] = (i64)memory.index[item];
                    } else {
                        arrays.sorted_indices[to] = memory.index[item];
                    }
                }
            }
        }
        __syncthreads();
    }
}
