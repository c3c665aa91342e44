// Radix sort with digits of eight bits, the lowest first, after "Onesweep: A Faster Least Significant
// Digit Radix Sort for GPUs" (Adinets and Merrill, 2022). One kernel counts the digits of all places;
// then each pass reads and writes the elements once. A block sorts a tile by the digit in shared memory.
// It computes the destination of the elements of a digit from the counts and from the counts of earlier
// tiles, which it reads from the words that their blocks have published. Equal elements keep their order.

// Words that tiles publish.
template <bool WIDE>
struct RadixState {
    typedef typename RadixWords<WIDE>::Word Word;

    // A word is a count, with a mark in its upper bits: of this tile alone, or including all earlier
    // tiles.
    static constexpr u32 mark = sizeof(Word) * 8 - 2;
    static constexpr Word alone = (Word)1 << mark;
    static constexpr Word complete = (Word)2 << mark;
    static constexpr Word value = alone - 1;

    // Returns the number of elements of the thread's digit in the tiles before `state`. There is at least
    // one such tile.
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

// Counts the digits of all places in each row, in parts of this many elements.
constexpr u32 COUNTED = 1 << 16;

template <class V, bool INDICES, bool WIDE>
DEVICE void count_digits(const char* in, u64 rows, u64 length, typename RadixWords<WIDE>::Word* histogram) {
    typedef RadixElements<V, INDICES, WIDE> E;
    typedef typename E::T T;
    constexpr u32 places = sizeof(T);
    constexpr u32 copies = 16 / places;
    // Equal digits of neighbouring threads are counted in different copies, to avoid conflicts.
    __shared__ u32 counts[places * 256 * copies];
    const u32 thread = threadIdx.x;
    const u64 parts = (length + COUNTED - 1) / COUNTED;
    for (u64 work = blockIdx.x; work < rows * parts; work += gridDim.x) {
        for (u32 k = thread; k < places * 256 * copies; k += 256) {
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
                    const typename Digits<V>::Bits order = Digits<V>::order(key[k]);
#pragma unroll
                    for (u32 place = 0; place < places; ++place) {
                        const u32 digit = (u32)(order >> place * 8) & 255;
                        fetch_add(&counts[(place * 256 + digit) * copies + thread % copies], (u32)1);
                    }
                }
            }
        }
        __syncthreads();
        for (u32 place = 0; place < places; ++place) {
            u32 sum = 0;
            for (u32 copy = 0; copy < copies; ++copy) {
                sum += counts[(place * 256 + thread) * copies + copy];
            }
            if (sum != 0) {
                fetch_add(histogram + (row * places + place) * 256 + thread, (typename E::Word)sum);
            }
        }
        __syncthreads();
    }
}

// Sorts the rows by one digit, tile by tile. `state` has a word for each tile and digit, initially zero;
// `next_state`, if not null, is cleared for the next pass.
template <class V, bool INDICES, bool WIDE>
DEVICE void radix_pass(const RadixArrays<typename Stored<V>::type, typename RadixWords<WIDE>::Word>& arrays,
                       u64 rows, u64 length, u32 place, u64* counter,
                       const typename RadixWords<WIDE>::Word* histogram,
                       typename RadixWords<WIDE>::Word* state,
                       typename RadixWords<WIDE>::Word* next_state) {
    typedef RadixTile<V, INDICES, WIDE> R;
    typedef RadixState<WIDE> S;
    typedef typename S::Word Word;
    __shared__ typename R::Memory memory;
    const u32 thread = threadIdx.x;
    const u32 shift = place * 8;
    const u64 tiles = (length + R::size - 1) / R::size;
    u64 tile;
    for (bool first = true; take_tile(counter, rows * tiles, first, &tile); first = false) {
        const u64 row = tile / tiles, part = tile - row * tiles;
        const u64 base = part * R::size;
        const u32 limit = length - base < R::size ? (u32)(length - base) : R::size;
        if (part + AHEAD + 1 < tiles) {
            prefetch((const char*)(arrays.keys + row * length + base + (u64)AHEAD * R::size),
                     R::size * (u32)sizeof(typename R::T));
            if (INDICES && arrays.indices != 0) {
                prefetch((const char*)(arrays.indices + row * length + base + (u64)AHEAD * R::size),
                         R::size * (u32)sizeof(Word));
            }
        }
        R elements;
        u32 begin, count;
        elements.read(arrays, row * length, base, limit, shift, memory, &begin, &count);
        Word* const own_state = state + tile * 256 + thread;
        if (part > 0) {
            publish(own_state, (Word)(S::alone | count));
        }
        elements.sort(memory);
        elements.read_indices(arrays, row * length, base, limit);
        Word before;
        if (part == 0) {
            Word total;
            before = memory.starts.before(histogram[(row * sizeof(typename R::T) + place) * 256 + thread], &total);
        } else {
            before = S::look_back(own_state, part);
        }
        publish(own_state, (Word)(S::complete | (before + count)));
        if (next_state != 0) {
            next_state[tile * 256 + thread] = 0;
        }
        memory.move[thread] = before - begin;
        __syncthreads();
        elements.write(arrays, row * length, limit, shift, memory);
        __syncthreads();
    }
}
