// A tile of a radix sort for devices other than NVIDIA's; see `RadixTile` in radix_tile.cuh.

#if !defined(__CUDA_ARCH__)
// The width of wavefronts is unknown here, so each thread counts its own elements, by half a digit at a
// time.
template <class V, bool INDICES, bool WIDE>
struct RadixTile : RadixElements<V, INDICES, WIDE> {
    typedef RadixElements<V, INDICES, WIDE> E;
    typedef typename E::T T;
    typedef typename E::Word Word;
    // The number of elements per thread. It is odd, which spreads the threads over the banks, and at most
    // 15, so that counts fit into four bits. `Tiles` in sort/radix.rs relies on this.
    static constexpr u32 count = WIDE && INDICES ? 7 : sizeof(T) > 4 ? 9 : 15;
    static constexpr u32 size = 256 * count;

    struct Memory {
        T key[size];
        Word index[INDICES ? size : 1];
        // For each thread, the number of its elements with each of the sixteen half digits: two counts per
        // word, with a gap after every eight words.
        u32 counts[256 * 9];
        BlockSums<u32> sums;
        BlockSums<Word> starts;
        // The start and the end of the elements of each digit in the tile.
        u32 begin[256];
        u32 end[256];
        // The offset from the position in the tile to the destination.
        Word move[256];
    };

    static METHOD u32 at(u32 word) { return word + word / 8; }

    // Sorts the tile in shared memory by half a digit.
    static METHOD void sort_half(Memory& memory, u32 shift) {
        const u32 thread = threadIdx.x;
        T own[count];
        // Four bits for each element: its half digit, and the number of equal ones that the thread has
        // before it; four bits for each half digit: the number of equal ones that the thread has.
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
        // The upper halves count digits that come after all digits of the lower halves.
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

    // Reads the `limit` elements of the tile that begins at `base` in its row, and sorts them. `begin` is
    // set to the position of the thread's digit in the sorted tile, and `total` to the number of its
    // elements.
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
