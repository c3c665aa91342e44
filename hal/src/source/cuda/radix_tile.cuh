// A tile of a sort by digits: a block reads it, sorts it by a digit in shared memory, and writes it.

// Words that count elements and the words of indices in memory: of 32 bits below 2^30 elements.
template <bool WIDE>
struct RadixWords {
    typedef u32 Word;
};
template <>
struct RadixWords<true> {
    typedef u64 Word;
};

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

// What the two ways to sort a tile have in common.
template <class V, bool INDICES, bool WIDE>
struct RadixElements {
    typedef typename Stored<V>::type T;
    typedef typename RadixWords<WIDE>::Word Word;
    typedef RadixArrays<T, Word> Arrays;

    static METHOD u32 digit(T key, u32 shift) { return DigitOf<V>::at(key, shift); }

    // The index of an element that is read.
    static METHOD Word index(const Arrays& arrays, u64 row, u64 place) {
        return arrays.indices != 0 ? arrays.indices[row + place] : (Word)place;
    }
    static METHOD void put_key(const Arrays& arrays, u64 to, T key) {
        if (!INDICES || arrays.result == 0) {
            arrays.sorted_keys[to] = key;
        }
    }
    static METHOD void put_index(const Arrays& arrays, u64 to, Word index) {
        if (arrays.result != 0) {
            arrays.result[to] = (i64)index;
        } else {
            arrays.sorted_indices[to] = index;
        }
    }
};

#if defined(__CUDA_ARCH__)
// Each warp counts its digits first, so that the tile's counts are known, and published, early. Then its
// threads find those with the same digit by a mask in shared memory, into which each sets its bit; the last
// of them takes places for all. Where many threads have one digit, as the upper ones of small numbers are, they
// would wait for one another at each mask and count: there they find one another by a match.
template <class V, bool INDICES, bool WIDE>
struct RadixTile : RadixElements<V, INDICES, WIDE> {
    typedef RadixElements<V, INDICES, WIDE> E;
    typedef typename E::T T;
    typedef typename E::Word Word;
    // Elements of a thread, of which a block's shared memory has room. `Tiles` in sort/radix.rs knows this.
    static constexpr u32 count = sizeof(T) > 4 ? WIDE ? 12 : 18 : WIDE && INDICES ? 12 : 23;
    static constexpr u32 size = 256 * count;
    // Blocks that share a multiprocessor, which bounds the registers.
    static constexpr u32 blocks = sizeof(T) > 4 && !WIDE ? 2 : 3;

    struct Memory {
        // Keys follow when all have places, and indices when the keys have been written.
        union {
            T key[size];
            Word index[INDICES ? size : 1];
            // For each warp, the threads that have a digit; those of one element and the next take turns.
            u32 masks[8 * 2 * 256];
        };
        // For each warp, how many of its elements have a digit; then where the next of them goes.
        u32 counts[8 * 256];
        // Of each warp.
        u32 sums[8];
        BlockSums<Word> starts;
        // How far the elements of a digit go from where they are in the tile.
        Word move[256];
    };

    // Of each element of the thread: the digit; then its place in the tile.
    u32 rank[count];
    T key[count];
    Word index[INDICES ? count : 1];
    // True if many of the warp's digits are probably the same.
    bool alike;

    // The threads of the warp that have this digit, as a mask.
    static METHOD u32 match(u32 digit) {
#if __CUDA_ARCH__ >= 700
        return __match_any_sync(0xffffffffu, digit);
#else
        return 0;
#endif
    }
    // Threads of a warp that have one digit in its first row, above which digits are taken for alike.
    static constexpr u32 few = 7;

    // The element of the tile that is the thread's `k`th: neighbours have neighbours.
    static METHOD u32 item(u32 k) { return threadIdx.x / 32 * 32 * count + k * 32 + threadIdx.x % 32; }

    // Reads the `limit` elements of the tile that begins at `base` in its row. `begin` becomes where the
    // elements of the thread's digit begin in the sorted tile, `total` how many there are.
    METHOD void read(const typename E::Arrays& arrays, u64 row, u64 base, u32 limit, u32 shift, Memory& memory,
                     u32* begin, u32* total) {
        const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
        u32* const counts = memory.counts + warp * 256;
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            key[k] = item(k) < limit ? arrays.keys[row + base + item(k)] : T();
        }
#pragma unroll
        for (u32 k = lane; k < 256; k += 32) {
            counts[k] = 0;
        }
        __syncwarp();
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            // What is not there comes behind all that is.
            rank[k] = item(k) < limit ? E::digit(key[k], shift) : 255;
        }
#if __CUDA_ARCH__ >= 700
        alike = (u32)__popc(__ballot_sync(0xffffffffu, rank[0] == __shfl_sync(0xffffffffu, rank[0], 0))) > few;
#else
        alike = false;
#endif
        if (alike) {
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                const u32 same = match(rank[k]);
                if (lane == 31 - (u32)__clz((int)same)) {
                    counts[rank[k]] += (u32)__popc(same);
                }
                __syncwarp();
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                fetch_add(&counts[rank[k]], (u32)1);
            }
        }
        __syncthreads();
        u32 sum = 0;
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            const u32 own = memory.counts[k * 256 + thread];
            memory.counts[k * 256 + thread] = sum;
            sum += own;
        }
        u32 before = sum;
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, before, by);
            before += lane >= by ? other : 0;
        }
        if (lane == 31) {
            memory.sums[warp] = before;
        }
        __syncthreads();
        before -= sum;
#pragma unroll
        for (u32 k = 0; k < 7; ++k) {
            before += k < warp ? memory.sums[k] : 0;
        }
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            memory.counts[k * 256 + thread] += before;
        }
        *begin = before;
        *total = thread == 255 ? sum - (size - limit) : sum;
    }

    // Sorts the tile; the threads have to meet before it is written.
    METHOD void sort(Memory& memory) {
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        u32* const counts = memory.counts + warp * 256;
        u32* const masks = memory.masks + warp * 512;
#pragma unroll
        for (u32 k = lane; k < 512; k += 32) {
            masks[k] = 0;
        }
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            u32* const mask = &masks[k % 2 * 256 + rank[k]];
            u32 same;
            if (alike) {
                same = match(rank[k]);
            } else {
                atomicOr(mask, 1u << lane);
                __syncwarp();
                same = *mask;
            }
            const u32 last = 31 - (u32)__clz((int)same);
            u32 place = 0;
            if (lane == last) {
                place = counts[rank[k]];
                counts[rank[k]] = place + (u32)__popc(same);
            }
            __syncwarp();
            if (lane == last && !alike) {
                // Used again behind the next meeting of the warp.
                *mask = 0;
            }
            rank[k] = __shfl_sync(0xffffffffu, place, last) + (u32)__popc(same & ((1u << lane) - 1));
        }
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            memory.key[rank[k]] = key[k];
        }
    }

    // Reads the indices, which come while the block waits for other tiles.
    METHOD void read_indices(const typename E::Arrays& arrays, u64 row, u64 base, u32 limit) {
        if (INDICES) {
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                index[k] = item(k) < limit ? E::index(arrays, row, base + item(k)) : 0;
            }
        }
    }

    METHOD void write(const typename E::Arrays& arrays, u64 row, u32 limit, u32 shift, Memory& memory) {
        // Four to a word: those of the elements that the thread writes.
        u32 digits[(count + 3) / 4] = {};
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            const u32 place = k * 256 + threadIdx.x;
            if (place < limit) {
                const T own = memory.key[place];
                const u32 digit = E::digit(own, shift);
                digits[k / 4] |= digit << k % 4 * 8;
                E::put_key(arrays, row + (Word)(memory.move[digit] + place), own);
            }
        }
        if (INDICES) {
            __syncthreads();
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                memory.index[rank[k]] = index[k];
            }
            __syncthreads();
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                const u32 place = k * 256 + threadIdx.x;
                if (place < limit) {
                    const u32 digit = digits[k / 4] >> k % 4 * 8 & 255;
                    E::put_index(arrays, row + (Word)(memory.move[digit] + place), memory.index[place]);
                }
            }
        }
    }
};
#else
// Without a width of wavefronts to rely on, threads count their own elements, by half a digit at a time.
template <class V, bool INDICES, bool WIDE>
struct RadixTile : RadixElements<V, INDICES, WIDE> {
    typedef RadixElements<V, INDICES, WIDE> E;
    typedef typename E::T T;
    typedef typename E::Word Word;
    // Elements of a thread: an odd number, which spreads the threads over the banks, and at most 15, so
    // that counts of them have four bits. `Tiles` in sort/radix.rs knows this.
    static constexpr u32 count = WIDE && INDICES ? 7 : sizeof(T) > 4 ? 9 : 15;
    static constexpr u32 size = 256 * count;

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

    // Reads the `limit` elements of the tile that begins at `base` in its row, and sorts them. `begin`
    // becomes where the elements of the thread's digit begin in the sorted tile, `total` how many there are.
    METHOD void read(const typename E::Arrays& arrays, u64 row, u64 base, u32 limit, u32 shift, Memory& memory,
                     u32* begin, u32* total) {
        const u32 thread = threadIdx.x;
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            const u32 item = k * 256 + thread;
            memory.key[item] = item < limit ? arrays.keys[row + base + item] : Digits<V>::last();
            if (INDICES) {
                memory.index[item] = item < limit ? E::index(arrays, row, base + item) : 0;
            }
        }
        memory.begin[thread] = 0;
        memory.end[thread] = 0;
        __syncthreads();
        sort_half(memory, shift);
        sort_half(memory, shift + 4);
#pragma unroll 5
        for (u32 k = 0; k < count; ++k) {
            const u32 item = k * 256 + thread;
            if (item < limit) {
                const u32 digit = E::digit(memory.key[item], shift);
                if (item == 0 || E::digit(memory.key[item - 1], shift) != digit) {
                    memory.begin[digit] = item;
                }
                if (item + 1 == limit || E::digit(memory.key[item + 1], shift) != digit) {
                    memory.end[digit] = item + 1;
                }
            }
        }
        __syncthreads();
        *begin = memory.begin[thread];
        *total = memory.end[thread] - memory.begin[thread];
    }

    METHOD void sort(Memory&) {}
    METHOD void read_indices(const typename E::Arrays&, u64, u64, u32) {}

    METHOD void write(const typename E::Arrays& arrays, u64 row, u32 limit, u32 shift, Memory& memory) {
#pragma unroll 5
        for (u32 k = 0; k < count; ++k) {
            const u32 item = k * 256 + threadIdx.x;
            if (item < limit) {
                const T key = memory.key[item];
                const u64 to = row + (Word)(memory.move[E::digit(key, shift)] + item);
                E::put_key(arrays, to, key);
                if (INDICES) {
                    E::put_index(arrays, to, memory.index[item]);
                }
            }
        }
    }
};
#endif
