// A tile of a radix sort: a block reads it, sorts it by a digit in shared memory, and writes it.

// Words for counting elements and for indices in memory: 32 bits for fewer than 2^30 elements.
template <bool WIDE>
struct RadixWords {
    typedef u32 Word;
};
template <>
struct RadixWords<true> {
    typedef u64 Word;
};

// The memory that a pass reads and writes. The first pass only reads the elements, whose indices are their
// positions. The last pass of an argsort only writes 64-bit indices.
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

    // Returns the sum of the values of earlier threads of the block; `total` is set to the sum of all values.
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

// The common part of the two ways to sort a tile.
template <class V, bool INDICES, bool WIDE>
struct RadixElements {
    typedef typename Stored<V>::type T;
    typedef typename RadixWords<WIDE>::Word Word;
    typedef RadixArrays<T, Word> Arrays;

    static METHOD u32 digit(T key, u32 shift) { return DigitOf<V>::at(key, shift); }

    // Returns the index of an element that was read.
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
// Each warp first counts its digits, so that the counts of the tile are known, and published, early. Then its
// threads find the threads with the same digit by a mask in shared memory, in which each of them sets its bit;
// the last of them takes places for all. If many threads have the same digit, as in the upper digits of small
// numbers, they would wait for each other at each mask and count; in this case, they find each other with a
// match instruction.
template <class V, bool INDICES, bool WIDE>
struct RadixTile : RadixElements<V, INDICES, WIDE> {
    typedef RadixElements<V, INDICES, WIDE> E;
    typedef typename E::T T;
    typedef typename E::Word Word;
    // The number of elements per thread that fit into the shared memory of a block. `Tiles` in sort/radix.rs
    // relies on this.
    static constexpr u32 count = sizeof(T) > 4 ? WIDE ? 12 : 18 : WIDE && INDICES ? 12 : 23;
    static constexpr u32 size = 256 * count;
    // The number of blocks that share a multiprocessor, which limits the registers.
    static constexpr u32 blocks = sizeof(T) > 4 && !WIDE ? 2 : 3;

    struct Memory {
        // Keys are stored here after all elements have places, and indices after the keys have been written.
        union {
            T key[size];
            Word index[INDICES ? size : 1];
            // For each warp, the threads that have each digit. Consecutive elements alternate between two sets
            // of masks.
            u32 masks[8 * 2 * 256];
        };
        // For each warp, the number of its elements with each digit; later, the place of the next such element.
        u32 counts[8 * 256];
        // The sum of each warp.
        u32 sums[8];
        BlockSums<Word> starts;
        // The offset from the position in the tile to the destination, for each digit.
        Word move[256];
    };

    // For each element of the thread: its digit; later, its place in the tile.
    u32 rank[count];
    T key[count];
    Word index[INDICES ? count : 1];
    // True if many digits of the warp are probably the same.
    bool alike;

    // Returns a mask of the threads of the warp that have this digit.
    static METHOD u32 match(u32 digit) {
#if __CUDA_ARCH__ >= 700
        return __match_any_sync(0xffffffffu, digit);
#else
        return 0;
#endif
    }
    // If more threads of a warp have the same digit in its first row, the digits are considered alike.
    static constexpr u32 few = 7;

    // Returns the position in the tile of the thread's element `k`. Neighbouring threads have neighbouring
    // elements.
    static METHOD u32 item(u32 k) { return threadIdx.x / 32 * 32 * count + k * 32 + threadIdx.x % 32; }

    // Reads the `limit` elements of the tile that begins at `base` in its row. `begin` is set to the position
    // of the thread's digit in the sorted tile, and `total` to the number of its elements.
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
            // Positions beyond the limit are sorted last.
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

    // Sorts the tile; a barrier is needed before it is written.
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
                // The mask is only used again after the next synchronization of the warp.
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

    // Reads the indices, which arrive while the block waits for other tiles.
    METHOD void read_indices(const typename E::Arrays& arrays, u64 row, u64 base, u32 limit) {
        if (INDICES) {
#pragma unroll
            for (u32 k = 0; k < count; ++k) {
                index[k] = item(k) < limit ? E::index(arrays, row, base + item(k)) : 0;
            }
        }
    }

    METHOD void write(const typename E::Arrays& arrays, u64 row, u32 limit, u32 shift, Memory& memory) {
        // The digits of the elements that the thread writes, four per word.
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
#endif
