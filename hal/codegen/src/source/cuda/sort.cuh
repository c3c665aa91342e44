// Merge sort: tiles are sorted in shared memory, then runs are merged in pairs until each row is one run. Equal
// elements keep their order.

// Returns true if `x` comes before `y`. NaN is last. Complex numbers are ordered by their real parts, then by
// their imaginary parts; of those with a NaN, the ones whose real part is a number come first.
template <class T>
struct Ascending {
    static METHOD bool precedes(T x, T y) { return x < y || (y != y && x == x); }
};
template <class F>
struct Ascending<narrow_float<F> > {
    static METHOD bool precedes(narrow_float<F> x, narrow_float<F> y) {
        return Ascending<f32>::precedes(widen(x), widen(y));
    }
};
template <class R>
struct Ascending<complex<R> > {
    static METHOD bool precedes(complex<R> x, complex<R> y) {
        const bool real_x = x.re == x.re, real_y = y.re == y.re;
        const bool imaginary_x = x.im == x.im, imaginary_y = y.im == y.im;
        if (real_x != real_y) {
            return real_x;
        }
        if (imaginary_x != imaginary_y) {
            return imaginary_x;
        }
        return real_x && x.re != y.re ? x.re < y.re : x.im < y.im;
    }
};

// Elements of a row as stored in memory, and with `INDICES` the index of each in the row.
template <class V, bool INDICES>
struct Sorted {
    typedef typename Stored<V>::type T;
    // The number of elements per thread. `count` in sort/merge.rs relies on it.
    static constexpr u32 count = sizeof(T) > 8 ? 4 : 8;
    static constexpr u32 size = 256 * count;

    struct Memory {
        T key[size];
        i64 index[INDICES ? size : 1];
    };

    static METHOD bool precedes(T x, T y) {
        return Ascending<V>::precedes(Stored<V>::get(x), Stored<V>::get(y));
    }

    // Returns how many of the first `taken` elements of two merged runs come from the first run.
    template <class Index>
    static METHOD Index split(const T* first, Index first_count, const T* second, Index second_count,
                              Index taken) {
        Index low = taken > second_count ? taken - second_count : 0;
        Index high = taken < first_count ? taken : first_count;
        while (low < high) {
            const Index middle = low + (high - low) / 2;
            if (precedes(second[taken - 1 - middle], first[middle])) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    // Merges the thread's elements of two runs in shared memory: `first` up to `first_end`, and `second` up to
    // `second_end`.
    static METHOD void merge(const Memory& memory, u32 first, u32 first_end, u32 second, u32 second_end,
                             T* own, i64* index) {
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            const bool from_second =
                first >= first_end ||
                (second < second_end && precedes(memory.key[second], memory.key[first]));
            const u32 item = from_second ? second++ : first++;
            if (item < size) {
                own[k] = memory.key[item];
                if (INDICES) {
                    index[k] = memory.index[item];
                }
            }
        }
    }

    static METHOD void keep(Memory& memory, const T* own, const i64* index) {
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            memory.key[threadIdx.x * count + k] = own[k];
            if (INDICES) {
                memory.index[threadIdx.x * count + k] = index[k];
            }
        }
    }

    static METHOD void write(const Memory& memory, u32 limit, T* keys, i64* indices) {
        for (u32 item = threadIdx.x; item < limit; item += 256) {
            put(memory, item, item, keys, indices);
        }
    }

    static METHOD void put(const Memory& memory, u32 from, u64 to, T* keys, i64* indices) {
        if (!INDICES || keys != 0) {
            keys[to] = memory.key[from];
        }
        if (INDICES) {
            indices[to] = memory.index[from];
        }
    }

    // Sorts the first `length` elements of each `span` in shared memory. `span` is a power of two, and at least
    // the number of elements per thread.
    static METHOD void sort(Memory& memory, u32 length, u32 span) {
        const u32 begin = threadIdx.x * count;
        const u32 limit = begin - begin % span + length;
        const u32 valid = limit <= begin ? 0 : limit - begin < count ? limit - begin : count;
        T own[count];
        i64 index[count];
#pragma unroll
        for (u32 k = 0; k < count; ++k) {
            own[k] = memory.key[begin + k];
            index[k] = INDICES ? memory.index[begin + k] : 0;
        }
#pragma unroll
        for (u32 turn = 0; turn < count; ++turn) {
#pragma unroll
            for (u32 k = turn % 2; k + 1 < count; k += 2) {
                if (k + 1 < valid && precedes(own[k + 1], own[k])) {
                    const T key = own[k];
                    own[k] = own[k + 1];
                    own[k + 1] = key;
                    const i64 other = index[k];
                    index[k] = index[k + 1];
                    index[k + 1] = other;
                }
            }
        }
        for (u32 width = count; width < length; width *= 2) {
            keep(memory, own, index);
            __syncthreads();
            const u32 base = begin - begin % (2 * width);
            const u32 middle = base + width < limit ? base + width : limit;
            const u32 end = base + 2 * width < limit ? base + 2 * width : limit;
            if (begin < limit) {
                const u32 from_first = split<u32>(memory.key + base, middle - base, memory.key + middle,
                                                  end - middle, begin - base);
                merge(memory, base + from_first, middle, middle + (begin - base - from_first), end, own,
                      index);
            }
            __syncthreads();
        }
        keep(memory, own, index);
        __syncthreads();
    }
};

// The buffers for elements and indices after each iteration. Without indices, buffer 0 is the output, and buffer
// 1 the workspace. With indices, the output is for the indices, and the workspace has two buffers for elements,
// then one for indices.
template <class V, bool INDICES>
struct SortBuffers {
    typedef typename Stored<V>::type T;
    char* out;
    char* workspace;
    u64 bytes;
    METHOD T* keys(u32 buffer) const {
        return (T*)(INDICES ? workspace + buffer * bytes : buffer == 0 ? out : workspace);
    }
    METHOD i64* indices(u32 buffer) const {
        return (i64*)(buffer == 0 || !INDICES ? out : workspace + 2 * bytes);
    }
};

// Sorts the tiles of all rows into a buffer; rows that are at most half as long as a tile share one. If there are
// indices, the elements are not needed after the last iteration.
template <class V, bool INDICES>
DEVICE void sort_tiles(const SortBuffers<V, INDICES>& buffers, const char* in, u64 rows, u64 length,
                       u64 tiles, u32 buffer, bool last) {
    typedef Sorted<V, INDICES> S;
    __shared__ typename S::Memory memory;
    // The logarithm of the number of elements of a tile that each row gets.
    u32 bits = S::count == 8 ? 3 : 2;
    while ((u64)1 << bits < length && 1u << bits < S::size) {
        ++bits;
    }
    const u32 span = 1u << bits;
    const u32 together = S::size >> bits;
    const u64 works = tiles > 1 ? rows * tiles : (rows + together - 1) / together;
    typename S::T* const to = INDICES && last ? 0 : buffers.keys(buffer);
    i64* const indices = buffers.indices(buffer);
    for (u64 work = blockIdx.x; work < works; work += gridDim.x) {
        const u64 row = tiles > 1 ? work / tiles : work * together;
        const u64 first = tiles > 1 ? (work - row * tiles) * S::size : 0;
        const u32 limit = length - first < S::size ? (u32)(length - first) : S::size;
        const u32 here = rows - row < together ? (u32)(rows - row) : together;
        const u64 at = row * length + first;
        const typename S::T* const keys = (const typename S::T*)in + at;
        for (u32 item = threadIdx.x; item < S::size; item += 256) {
            const u32 line = item >> bits < here ? item >> bits : here - 1;
            const u32 place = item & (span - 1);
            memory.key[item] = keys[(u64)line * length + (place < limit ? place : limit - 1)];
            if (INDICES) {
                memory.index[item] = (i64)(first + place);
            }
        }
        __syncthreads();
        S::sort(memory, limit, span);
        for (u32 item = threadIdx.x; item < here * span; item += 256) {
            const u32 line = item >> bits, place = item & (span - 1);
            if (place < limit) {
                S::put(memory, item, at + (u64)line * length + place, to, indices);
            }
        }
        __syncthreads();
    }
}

// Merges runs of `width` elements in pairs, from one buffer into the other. Each block produces a tile.
template <class V, bool INDICES>
DEVICE void merge_tiles(const SortBuffers<V, INDICES>& buffers, u64 rows, u64 length, u64 tiles,
                        u64 width, u32 buffer, bool last) {
    typedef Sorted<V, INDICES> S;
    typedef typename S::T T;
    __shared__ typename S::Memory memory;
    __shared__ u64 splits[2];
    const u32 thread = threadIdx.x;
    for (u64 work = blockIdx.x; work < rows * tiles; work += gridDim.x) {
        const u64 row = work / tiles;
        const u64 first = (work - row * tiles) * S::size;
        const u64 base = first - first % (2 * width);
        const u64 middle = length - base < width ? length : base + width;
        const u64 end = length - base < 2 * width ? length : base + 2 * width;
        const u64 taken = first - base;
        const u32 limit = end - first < S::size ? (u32)(end - first) : S::size;
        const T* keys = buffers.keys(1 - buffer) + row * length;
        const i64* indices = buffers.indices(1 - buffer) + (INDICES ? row * length : 0);
        if (thread < 2) {
            splits[thread] = S::template split<u64>(keys + base, middle - base, keys + middle,
                                                    end - middle, taken + thread * limit);
        }
        __syncthreads();
        const u64 begin = base + splits[0];
        const u64 second = middle + (taken - splits[0]);
        const u32 from_first = (u32)(splits[1] - splits[0]);
        for (u32 item = thread; item < limit; item += 256) {
            const u64 from = item < from_first ? begin + item : second + (item - from_first);
            memory.key[item] = keys[from];
            if (INDICES) {
                memory.index[item] = indices[from];
            }
        }
        __syncthreads();
        T own[S::count];
        i64 index[S::count];
        const u32 own_first = thread * S::count < limit ? thread * S::count : limit;
        const u32 own_split = S::template split<u32>(memory.key, from_first, memory.key + from_first,
                                                     limit - from_first, own_first);
        S::merge(memory, own_split, from_first, from_first + (own_first - own_split), limit, own, index);
        __syncthreads();
        S::keep(memory, own, index);
        __syncthreads();
        const u64 at = row * length + first;
        S::write(memory, limit, INDICES && last ? 0 : buffers.keys(buffer) + at,
                 buffers.indices(buffer) + (INDICES ? at : 0));
        __syncthreads();
    }
}
