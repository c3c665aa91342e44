// Products of matrices. A block of 256 threads, 16 by 16, computes a tile of the result. Eight terms of its rows and
// columns are in shared memory at a time, while the next eight are being loaded into registers. Each thread keeps the
// sums for some rows and columns in registers.

// Adds a term to a sum. Floating-point numbers use fused multiply-add, like linear algebra libraries.
template <class F, class A>
struct WholeSum {
    typedef A value;
    static METHOD A zero() { return convert<A>((i32)0); }
    static METHOD A add(A sum, A x, A y) { return F::add(sum, F::multiply(x, y)); }
};
template <class R>
struct RealSum {
    typedef R value;
    static METHOD R zero() { return (R)0; }
    static METHOD R add(R sum, R x, R y) { return m_fma(x, y, sum); }
};
template <class R>
struct ComplexSum {
    typedef complex<R> value;
    static METHOD value zero() { return make_complex<R>((R)0, (R)0); }
    static METHOD value add(value sum, value x, value y) {
        sum.re = m_fma(-x.im, y.im, m_fma(x.re, y.re, sum.re));
        sum.im = m_fma(x.im, y.re, m_fma(x.re, y.im, sum.im));
        return sum;
    }
};

// The number of terms in shared memory at a time.
constexpr u32 TERMS = 8;

// On NVIDIA's devices, two blocks share a multiprocessor, so that a thread has 128 registers. AMD's compiler reads
// all terms of an unrolled loop before it adds the first. Elements of eight bytes or more then do not fit into
// registers, nor do the lane masks that it uses for booleans.
#if defined(__CUDA_ARCH__)
#define GPUARRAY_TILE_BOUNDS __launch_bounds__(256, 2)
template <class A> constexpr u32 TERMS_AT_ONCE = TERMS;
#else
#define GPUARRAY_TILE_BOUNDS __launch_bounds__(256)
template <class A> constexpr u32 TERMS_AT_ONCE = sizeof(A) < 8 && sizeof(A) > 1 ? TERMS : 1;
#endif

// The lines of a tile (rows of the left matrix, columns of the right one): `COUNT` per thread, in packs of `width`
// that are 16 packs apart, so that neighbouring threads read neighbouring packs.
template <class A, u32 COUNT>
struct Lines {
    static constexpr u32 count = COUNT;
    static constexpr u32 size = 16 * COUNT;
    static constexpr u32 most = (u32)(sizeof(A) < 16 ? 16 / sizeof(A) : 1);
    static constexpr u32 width = most < COUNT ? most : COUNT;
    // The gap makes threads that store neighbouring terms of a line use different banks.
    static constexpr u32 pitch = size + width;
    struct Memory {
        alignas(16) A item[2][TERMS][pitch];
    };
    // Returns the line of the tile for line `k` of the thread.
    static METHOD u32 line(u32 thread, u32 k) {
        return k / width * (16 * width) + thread * width + k % width;
    }
    // Reads the thread's lines of one term.
    static METHOD void get(const Memory& memory, u32 buffer, u32 term, u32 thread, A* own) {
        const A* const from = memory.item[buffer][term] + thread * width;
#pragma unroll
        for (u32 k = 0; k < COUNT; k += width) {
            Neighbours<A, width>::get(own + k, from + k * 16);
        }
    }
};

// Copies lines of a matrix to shared memory. Neighbouring threads read neighbouring terms of a line with
// `ALONG_TERMS`, otherwise neighbouring lines: whichever are closer in memory. `Element` reads one element. Elements
// beyond the matrix are zero.
template <class A, class Element, bool ALONG_TERMS, u32 COUNT>
struct LineReader {
    typedef Lines<A, COUNT> L;
    // The number of elements that a thread reads, `apart` lines or terms from each other.
    static constexpr u32 items = L::size * TERMS / 256;
    static constexpr u32 apart = ALONG_TERMS ? 256 / TERMS : 256 / L::size;
    const char* at;
    i64 step;
    i64 advance;
    u32 line;
    u32 term;
    u64 lines;

    METHOD LineReader(const char* matrix, i64 line_stride, i64 term_stride, u64 first, u64 end) {
        line = ALONG_TERMS ? threadIdx.x / TERMS : threadIdx.x % L::size;
        term = ALONG_TERMS ? threadIdx.x % TERMS : threadIdx.x / L::size;
        lines = end - first;
        at = matrix + (i64)(first + line) * line_stride + (i64)term * term_stride;
        step = (i64)apart * (ALONG_TERMS ? line_stride : term_stride);
        advance = (i64)TERMS * term_stride;
    }

    // Reads the next terms. `terms` is the number that remains, which may be larger than a tile.
    METHOD void read(u64 terms, A* own) {
#pragma unroll
        for (u32 k = 0; k < items; ++k) {
            const u32 its_line = line + (ALONG_TERMS ? k * apart : 0);
            const u32 its_term = term + (ALONG_TERMS ? 0 : k * apart);
            own[k] = its_line < lines && its_term < terms ? Element::get(at + (i64)k * step)
                                                          : convert<A>((i32)0);
        }
        at += advance;
    }

    METHOD void put(typename L::Memory& memory, u32 buffer, const A* own) const {
#pragma unroll
        for (u32 k = 0; k < items; ++k) {
            const u32 its_line = line + (ALONG_TERMS ? k * apart : 0);
            const u32 its_term = term + (ALONG_TERMS ? 0 : k * apart);
            memory.item[buffer][its_term][its_line] = own[k];
        }
    }
};

// The tile of a result for an index of work. Tiles that share rows or columns have close indices, in groups of eight
// rows of tiles.
struct TilePlace {
    u64 row;
    u64 column;
    METHOD TilePlace(u64 index, u64 tile_rows, u64 tile_columns) {
        const u64 first = index / (8 * tile_columns) * 8;
        const u64 height = tile_rows - first < 8 ? tile_rows - first : 8;
        const u64 rest = index - first * tile_columns;
        row = first + rest % height;
        column = rest / height;
    }
};

// Computes a tile from the first `terms` terms. The tile begins at `row` and `column`, and `write` stores an element
// at a row and a column.
template <class Sum, u32 ROWS, u32 COLUMNS, class Left, class Right, class Write>
DEVICE void multiply_tile(Left left, Right right, u64 terms, u64 row, u64 rows, u64 column, u64 columns,
                          const Write& write) {
    typedef typename Sum::value A;
    typedef Lines<A, ROWS> Down;
    typedef Lines<A, COLUMNS> Along;
    __shared__ typename Down::Memory left_memory;
    __shared__ typename Along::Memory right_memory;
    const u32 down = threadIdx.x / 16, along = threadIdx.x % 16;
    constexpr u32 AT_ONCE = TERMS_AT_ONCE<A>;
    A sum[ROWS][COLUMNS];
#pragma unroll
    for (u32 i = 0; i < ROWS; ++i) {
#pragma unroll
        for (u32 j = 0; j < COLUMNS; ++j) {
            sum[i][j] = Sum::zero();
        }
    }
    A left_next[Left::items], right_next[Right::items];
    left.read(terms, left_next);
    right.read(terms, right_next);
    left.put(left_memory, 0, left_next);
    right.put(right_memory, 0, right_next);
    __syncthreads();
    u32 buffer = 0;
    for (u64 done = 0; done < terms; done += TERMS) {
        const bool more = terms - done > TERMS;
        if (more) {
            left.read(terms - done - TERMS, left_next);
            right.read(terms - done - TERMS, right_next);
        }
#pragma unroll AT_ONCE
        for (u32 term = 0; term < TERMS; ++term) {
            A x[ROWS], y[COLUMNS];
            Down::get(left_memory, buffer, term, down, x);
            Along::get(right_memory, buffer, term, along, y);
#pragma unroll
            for (u32 i = 0; i < ROWS; ++i) {
#pragma unroll
                for (u32 j = 0; j < COLUMNS; ++j) {
                    sum[i][j] = Sum::add(sum[i][j], x[i], y[j]);
                }
            }
        }
        buffer = 1 - buffer;
        if (more) {
            left.put(left_memory, buffer, left_next);
            right.put(right_memory, buffer, right_next);
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < ROWS; ++i) {
        const u64 its_row = row + Down::line(down, i);
#pragma unroll
        for (u32 j = 0; j < COLUMNS; ++j) {
            const u64 its_column = column + Along::line(along, j);
            if (its_row < rows && its_column < columns) {
                write(its_row, its_column, sum[i][j]);
            }
        }
    }
}
