// Finds the indices of the true elements of a mask, or the values there, in one pass. As in scans, blocks take tiles
// by number, publish totals, and wait for the totals of earlier tiles. The truths of 32 elements are the bits of a
// word. A tile has two words per thread for 256 threads, so that a block can keep a tile while it counts its next
// one. `nonzero.rs` relies on the size.
constexpr u32 SEARCHED = 256 * 64;

#if defined(__AMDGCN__)
DEVICE u32 count_bits(u32 word) { return (u32)__builtin_popcount(word); }
#else
DEVICE u32 count_bits(u32 word) { return (u32)__popc(word); }
#endif

template <class C>
struct CountSum {
    typedef C value;
    static METHOD C combine(C x, C y) { return x + y; }
};

// Returns a bit for each of the 32 elements from `base`, set if the element exists and is true.
DEVICE u32 truths(const u8* mask, u64 base, u64 length) {
    u32 bits = 0;
    if (base + 32 <= length && packable<u32, 4>((const char*)mask + base)) {
#pragma unroll
        for (u32 k = 0; k < 2; ++k) {
            const Pack<u32, 4> pack = *(const Pack<u32, 4>*)(mask + base + k * 16);
#pragma unroll
            for (u32 j = 0; j < 4; ++j) {
                // Sets the highest bit of each byte that is not zero, then moves the four bits next to each other.
                const u32 word = pack.item[j];
                const u32 ones = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) >> 7 & 0x01010101u;
                bits |= (ones * 0x10204080u) >> 28 << (k * 16 + j * 4);
            }
        }
        return bits;
    }
    // Unrolling further needs more conditions at a time than AMD's devices have scalar registers for.
#pragma unroll 4
    for (u32 k = 0; k < 32; ++k) {
        if (base + k < length && mask[base + k] != 0) {
            bits |= 1u << k;
        }
    }
    return bits;
}

// The value stored for the true element `i`.
template <class T>
struct IndexAt {
    METHOD T at(u64 i) const { return (T)i; }
};
template <class T>
struct ValueAt {
    const T* values;
    METHOD T at(u64 i) const { return values[i]; }
};

template <class C, class F, class T>
DEVICE void find_true(const u8* mask, u64 length, u64 most, F found, T* out, u64* state) {
    typedef Published<C> Word;
    __shared__ u32 sums[8];
    __shared__ BlockValues<C> block;
    // For the kept tile: the words of truths, and the number of true elements before each word.
    __shared__ u32 words[512];
    __shared__ u32 befores[512];
    const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const u64 parts = (length + SEARCHED - 1) / SEARCHED, teams = (parts + TEAM - 1) / TEAM;
    u64 kept = 0;
    u32 total = 0;
    bool more = true;
    for (bool first = true; more; first = false) {
        u64 part = 0;
        // A single tile does not use the state.
        more = parts == 1 ? first : take_tile(state, parts, first, &part);
        u32 low = 0, high = 0, before = 0, count = 0;
        if (more) {
            const u64 base = part * SEARCHED;
            if (part + AHEAD + 1 < parts) {
                prefetch((const char*)mask + base + (u64)AHEAD * SEARCHED, SEARCHED);
            }
            low = truths(mask, base + thread * 64, length);
            high = truths(mask, base + thread * 64 + 32, length);
            const u32 own = count_bits(low) + count_bits(high);
            u32 inclusive = own;
#pragma unroll
            for (u32 by = 1; by < 32; by *= 2) {
                const u32 other = word_before(inclusive, by);
                inclusive += lane >= by ? other : 0;
            }
            if (lane == 31) {
                sums[warp] = inclusive;
            }
            __syncthreads();
            before = inclusive - own;
#pragma unroll
            for (u32 k = 0; k < 8; ++k) {
                before += k < warp ? sums[k] : 0;
                count += sums[k];
            }
            if (thread == 0 && part + 1 < parts) {
                Word::put(state + 1 + (teams + part) * Word::words, (C)count);
            }
        }
        if (!first) {
            const u32 rank = (u32)(kept % TEAM);
            u64* const prefix = state + 1 + kept / TEAM * Word::words;
            const C place = look_back<CountSum<C>, true>(state + 1 + (teams + kept) * Word::words, prefix, rank,
                                                         kept < TEAM, 0, block);
            if (thread == 0 && rank == TEAM - 1 && kept + 1 < parts) {
                Word::put(prefix + Word::words, (C)(place + total));
            }
            // A warp processes a word at a time, with one element per lane. It loads the values of eight words
            // before it stores the values of the first word.
            const u32 earlier_lanes = (1u << lane) - 1;
            for (u32 begin = warp; begin < 512; begin += 64) {
                T values[8];
#pragma unroll
                for (u32 k = 0; k < 8; ++k) {
                    const u32 word = begin + k * 8;
                    if ((words[word] >> lane & 1) != 0) {
                        values[k] = found.at(kept * SEARCHED + word * 32 + lane);
                    }
                }
#pragma unroll
                for (u32 k = 0; k < 8; ++k) {
                    const u32 word = begin + k * 8, own = words[word];
                    const u64 to = (u64)place + befores[word] + count_bits(own & earlier_lanes);
                    if ((own >> lane & 1) != 0 && to < most) {
                        out[to] = values[k];
                    }
                }
            }
            __syncthreads();
        }
        words[thread * 2] = low;
        words[thread * 2 + 1] = high;
        befores[thread * 2] = before;
        befores[thread * 2 + 1] = before + count_bits(low);
        kept = part;
        total = count;
    }
}
