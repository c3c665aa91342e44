// Reductions: blocks of 256 threads, combined in a fixed order, without wavefront intrinsics.

// Combines neighbours in pairs, then pairs of pairs, and so on; `COUNT` is a power of two.
template <class Op, int COUNT>
DEVICE typename Op::value fold(typename Op::value* leaf) {
#pragma unroll
    for (int reach = 1; reach < COUNT; reach *= 2) {
#pragma unroll
        for (int k = 0; k + reach < COUNT; k += 2 * reach) {
            leaf[k] = Op::combine(leaf[k], leaf[k + reach]);
        }
    }
    return leaf[0];
}

// A product of bytes that the compiler does not turn into a vector. AMD's LLVM 21 and 22 crash in
// instruction selection for sums of such vectors.
template <class T>
DEVICE T apart(T product) {
#ifdef __AMDGCN__
    u32 word = (u32)product;
    asm("" : "+v"(word));
    return (T)word;
#else
    return product;
#endif
}

// An element and its index among the elements of its output.
template <class T, class Index>
struct Placed {
    T value;
    Index place;
};

template <class T, class Index>
DEVICE Placed<T, Index> placed(T value, Index place) {
    Placed<T, Index> it;
    it.value = value;
    it.place = place;
    return it;
}

// The first element that is equal to the result of `Extreme`, or the first NaN.
template <class Extreme, class Functions, bool INEXACT, class Index>
struct FirstPlace {
    typedef typename Extreme::value T;
    typedef Placed<T, Index> value;
    static METHOD value identity() { return placed(Extreme::identity(), (Index)~(Index)0); }
    static METHOD bool is(T x, T extreme) {
        return Functions::equal(x, extreme) || (INEXACT && Functions::not_equal(x, x));
    }
    // The first element among `COUNT` packs, whose first elements are `STEP` packs apart and begin at
    // `base`.
    template <int COUNT, int PACK, u32 STEP>
    static METHOD value gathered(const T* leaf, Index base) {
        T all[COUNT * PACK];
#pragma unroll
        for (int k = 0; k < COUNT * PACK; ++k) {
            all[k] = leaf[k];
        }
        const T extreme = fold<Extreme, COUNT * PACK>(all);
        Index offset = 0;
#pragma unroll
        for (int k = COUNT * PACK; k-- > 0;) {
            if (is(leaf[k], extreme)) {
                offset = (Index)(k / PACK) * STEP * PACK + k % PACK;
            }
        }
        return placed(extreme, base + offset);
    }
    static METHOD value combine(const value& x, const value& y) {
        const T extreme = Extreme::combine(x.value, y.value);
        const bool later = is(y.value, extreme) && (y.place < x.place || !is(x.value, extreme));
        // Choosing between the operands themselves would choose between addresses, which keeps them in
        // memory.
        const Index earlier = x.place, other = y.place;
        return placed(extreme, later ? other : earlier);
    }
};

// For `WIDTH` outputs with equally many elements each: that number, the means, and the sums of squared
// distances from the means.
template <class A, int WIDTH>
struct Moments {
    A count;
    A mean[WIDTH];
    A squares[WIDTH];
};

template <class A>
DEVICE Moments<A, 1> moments_of_one(A value) {
    Moments<A, 1> one;
    one.count = 1;
    one.mean[0] = value;
    one.squares[0] = 0;
    return one;
}

// Deviations from a mean that is NaN or infinite are NaN.
template <class A>
DEVICE A squares(const Moments<A, 1>& all) {
    return all.squares[0] + (all.mean[0] - all.mean[0]);
}

template <class A>
struct Sum {
    typedef A value;
    static METHOD A combine(A x, A y) { return x + y; }
};

// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
// 1979.
template <class A, int WIDTH = 1>
struct CombineMoments {
    typedef Moments<A, WIDTH> value;
    static METHOD value identity() {
        value none;
        none.count = 0;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            none.mean[k] = 0;
            none.squares[k] = 0;
        }
        return none;
    }
    template <int COUNT, int PACK, u32 STEP, class Index>
    static METHOD value gathered(const A* leaf, Index) {
        constexpr int N = COUNT * PACK;
        value them;
        them.count = N;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            A all[N];
#pragma unroll
            for (int j = 0; j < N; ++j) {
                all[j] = leaf[k * N + j];
            }
            them.mean[k] = fold<Sum<A>, N>(all) * ((A)1 / N);
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const A distance = leaf[k * N + j] - them.mean[k];
                all[j] = distance * distance;
            }
            them.squares[k] = fold<Sum<A>, N>(all);
        }
        return them;
    }
    static METHOD value combine(const value& x, const value& y) {
        value both;
        both.count = x.count + y.count;
        const A share = y.count / both.count;
        const A weight = x.count * share;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const A distance = y.mean[k] - x.mean[k];
            both.mean[k] = x.mean[k] + distance * share;
            both.squares[k] = x.squares[k] + y.squares[k] + distance * distance * weight;
        }
        return x.count == 0 ? y : y.count == 0 ? x : both;
    }
};

// The divisor is 1 if the sum itself is the result.
template <class Functions, class A>
DEVICE A quotient(A sum, double divisor) {
    return divisor == 1 ? sum : Functions::divide(sum, convert<A>(divisor));
}

template <class Functions, class A>
DEVICE A root_of_quotient(A sum, double divisor, u32 root) {
    const A value = quotient<Functions>(sum, divisor);
    return root ? Functions::sqrt(value) : value;
}

// Combines what `read.gather<COUNT>(i)` combines: `COUNT` reads from `i` on, `step` apart, which are all
// started before any is used. The reads continue up to `end`, eight at a time, and sixteen such groups in a
// row. Since a thread reads a few thousand times at most, rounding errors grow with a small multiple of the
// logarithm of their number.
template <class Op, class Index, class Read>
DEVICE typename Op::value accumulate(const Read& read, Index first, Index end, Index step) {
    typedef typename Op::value A;
    A total = Op::identity();
    Index i = first;
    while (i + 7 * step < end) {
        A part = Op::identity();
        for (int turn = 0; turn < 16 && i + 7 * step < end; ++turn) {
            part = Op::combine(part, read.template gather<8>(i));
            i += 8 * step;
        }
        total = Op::combine(total, part);
    }
    if (i + 3 * step < end) {
        total = Op::combine(total, read.template gather<4>(i));
        i += 4 * step;
    }
    if (i + step < end) {
        total = Op::combine(total, read.template gather<2>(i));
        i += 2 * step;
    }
    if (i < end) {
        total = Op::combine(total, read.template gather<1>(i));
    }
    return total;
}

// Elements returned by `read(i)`.
template <class Op, class Index, class Read>
struct Elements {
    const Read* read;
    Index step;
    template <int COUNT>
    METHOD typename Op::value gather(Index i) const {
        typename Op::value leaf[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            leaf[k] = (*read)(i + (Index)k * step);
        }
        return fold<Op, COUNT>(leaf);
    }
};

template <class Op, class Index, class Read>
DEVICE typename Op::value accumulate_elements(const Read& read, Index first, Index end, Index step) {
    Elements<Op, Index, Read> elements;
    elements.read = &read;
    elements.step = step;
    return accumulate<Op, Index>(elements, first, end, step);
}

// Packs of a row, `DEEP` apart.
template <bool ALIGNED, u32 DEEP, class A, class Index, class Row>
struct Packs {
    const Row* row;
    template <int COUNT>
    METHOD A gather(Index i) const {
        return row->template gather<ALIGNED, COUNT, DEEP>(i);
    }
};

template <class Op, bool ALIGNED, u32 DEEP, class Index, class Row>
DEVICE typename Op::value accumulate_packs(const Row& row, Index first, Index end) {
    Packs<ALIGNED, DEEP, typename Op::value, Index, Row> packs;
    packs.row = &row;
    return accumulate<Op, Index>(packs, first, end, (Index)DEEP);
}

// Combines the values of `DEEP` threads, `STEP` apart; the first of these threads has the result.
template <class Op, u32 DEEP, u32 STEP>
DEVICE typename Op::value together(typename Op::value value) {
    typedef typename Op::value A;
    constexpr u32 FEW = DEEP > 64 ? DEEP / 16 : DEEP > 8 ? DEEP / 8 : 1;
    __shared__ A scratch[256];
    __shared__ A halfway[256 / DEEP * FEW];
    const u32 thread = threadIdx.x;
    const u32 row = thread / STEP % DEEP;
    if (DEEP == 1) {
        return value;
    }
    scratch[thread] = value;
    __syncthreads();
    if (row < FEW) {
        A leaf[DEEP / FEW];
#pragma unroll
        for (u32 k = 0; k < DEEP / FEW; ++k) {
            leaf[k] = scratch[thread + k * FEW * STEP];
        }
        value = fold<Op, DEEP / FEW>(leaf);
    }
    if (FEW > 1) {
        // Either STEP or the number of threads that share it is 1.
        const u32 first = (STEP == 1 ? thread / DEEP : thread % STEP) * FEW;
        if (row < FEW) {
            halfway[first + row] = value;
        }
        __syncthreads();
        if (row == 0) {
            A leaf[FEW];
#pragma unroll
            for (u32 k = 0; k < FEW; ++k) {
                leaf[k] = halfway[first + k];
            }
            value = fold<Op, FEW>(leaf);
        }
    } else {
        __syncthreads();
    }
    return value;
}

// Computes the output and the part of its elements that a block processes.
template <class Index>
DEVICE void divide_work(Index work, Index groups, Index chunks, Index* group, Index* part) {
    *part = chunks == 1 ? 0 : groups == 1 ? work : work / groups;
    *group = work - *part * groups;
}

// `DEEP` threads for each output read packs of `WIDTH` neighbours, in the same order whether or not they are
// aligned; the first threads add the elements after all packs. The packs of an output are divided into
// `chunks` chunks of `chunk` packs.
template <class Op, int WIDTH, u32 DEEP, class Index, class Source, class Sink>
DEVICE void reduce_packs(const Source& source, const Sink& sink, Index outputs, Index packs, u32 tail,
                         Index chunk, Index chunks) {
    typedef typename Op::value A;
    typedef typename Source::Row Row;
    constexpr u32 WIDE = 256 / DEEP;
    const u32 column = threadIdx.x / DEEP;
    const u32 row = threadIdx.x % DEEP;
    const Index groups = (outputs + WIDE - 1) / WIDE;
    for (Index work = blockIdx.x; work < groups * chunks; work += gridDim.x) {
        Index group, part;
        divide_work(work, groups, chunks, &group, &part);
        const Index output = group * WIDE + column;
        const Index begin = part * chunk;
        const Index end = packs - begin < chunk ? packs : begin + chunk;
        A value = Op::identity();
        if (output < outputs) {
            const Row place = source.at(output);
            if (place.aligned()) {
                value = accumulate_packs<Op, true, DEEP>(place, begin + row, end);
            } else {
                value = accumulate_packs<Op, false, DEEP>(place, begin + row, end);
            }
            if (end == packs) {
                for (u32 k = row; k < tail; k += DEEP) {
                    value = Op::combine(value, place.element(packs * WIDTH + k));
                }
            }
        }
        value = together<Op, DEEP, 1>(value);
        if (row == 0 && output < outputs) {
            sink(output, part, value);
        }
    }
}

// The values of `WIDTH` neighbouring outputs.
template <class Op, int WIDTH>
struct Beside {
    struct value {
        typename Op::value item[WIDTH];
    };
    static METHOD typename Op::value at(const value& all, int k) { return all.item[k]; }
    static METHOD value identity() {
        value all;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            all.item[k] = Op::identity();
        }
        return all;
    }
    // `COUNT` elements of each output; the elements of the first output come first.
    template <int COUNT, int PACK, u32 STEP, class T, class Index>
    static METHOD value gathered(const T* leaf, Index base) {
        value all;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            all.item[k] = Op::template gathered<COUNT, PACK, STEP>(leaf + k * COUNT, base);
        }
        return all;
    }
    static METHOD value combine(const value& x, const value& y) {
        value all;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            all.item[k] = Op::combine(x.item[k], y.item[k]);
        }
        return all;
    }
};

template <class A, int WIDTH>
struct Beside<CombineMoments<A, 1>, WIDTH> : CombineMoments<A, WIDTH> {
    static METHOD Moments<A, 1> at(const Moments<A, WIDTH>& all, int k) {
        Moments<A, 1> one;
        one.count = all.count;
        one.mean[0] = all.mean[k];
        one.squares[0] = all.squares[k];
        return one;
    }
};

// Packs hold elements of `WIDTH` outputs; a block processes `WIDE` such `columns`.
template <class Op, int WIDTH, u32 WIDE, class Index, class Source, class Sink>
DEVICE void reduce_columns(const Source& source, const Sink& sink, Index columns, Index length,
                           Index chunk, Index chunks) {
    typedef Beside<Op, WIDTH> Each;
    typedef typename Each::value A;
    constexpr u32 DEEP = 256 / WIDE;
    const u32 row = threadIdx.x / WIDE;
    const Index groups = (columns + WIDE - 1) / WIDE;
    for (Index work = blockIdx.x; work < groups * chunks; work += gridDim.x) {
        Index group, part;
        divide_work(work, groups, chunks, &group, &part);
        const Index column = group * WIDE + threadIdx.x % WIDE;
        const Index begin = part * chunk;
        const Index end = length - begin < chunk ? length : begin + chunk;
        A value = Each::identity();
        if (column < columns) {
            value = accumulate_packs<Each, true, DEEP>(source.at(column * WIDTH), begin + row, end);
        }
        value = together<Each, DEEP, WIDE>(value);
        if (row == 0 && column < columns) {
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) {
                sink(column * WIDTH + k, part, Each::at(value, k));
            }
        }
    }
}

// Element by element: a block processes `1 << split` outputs with `256 >> split` threads each. `across` is
// true if neighbouring threads share an output, because the reduced axis is the fastest one.
template <class Op, class Index, class Source, class Sink>
DEVICE void reduce_elements(const Source& source, const Sink& sink, Index outputs, Index length,
                            Index chunk, Index chunks, u32 split, u32 across) {
    typedef typename Op::value A;
    __shared__ A scratch[256];
    const u32 wide = 1u << split;
    const u32 deep = 256u >> split;
    const u32 thread = threadIdx.x;
    const u32 column = across ? thread >> (8 - split) : thread & (wide - 1);
    const u32 row = across ? thread & (deep - 1) : thread >> split;
    const u32 slot = row * wide + column;
    const Index groups = (outputs + wide - 1) >> split;
    for (Index work = blockIdx.x; work < groups * chunks; work += gridDim.x) {
        Index group, part;
        divide_work(work, groups, chunks, &group, &part);
        const Index output = group * wide + column;
        const Index begin = part * chunk;
        const Index end = length - begin < chunk ? length : begin + chunk;
        A value = Op::identity();
        if (output < outputs) {
            value = accumulate_elements<Op>(source.at(output), begin + row, end, (Index)deep);
        }
        if (deep > 1) {
            scratch[slot] = value;
            __syncthreads();
            for (u32 half = deep / 2; half > 0; half /= 2) {
                if (row < half) {
                    value = Op::combine(value, scratch[slot + half * wide]);
                    scratch[slot] = value;
                }
                __syncthreads();
            }
        }
        if (row == 0 && output < outputs) {
            sink(output, part, value);
        }
    }
}

// Partial results are stored contiguously: those for the first chunk of every output, then those for the
// next chunk.
template <class A, class Index>
struct Partials {
    A* values;
    Index outputs;
    METHOD void operator()(Index output, Index part, A value) const {
        values[part * outputs + output] = value;
    }
};

// Combines eight partial results of an output, `step` apart; the identity replaces those beyond the last.
template <class Op, class Index>
DEVICE typename Op::value gather_partials(const typename Op::value* values, Index outputs,
                                          Index chunks, Index first, Index step) {
    typename Op::value leaf[8];
#pragma unroll
    for (u32 k = 0; k < 8; ++k) {
        const Index part = first + k * step;
        leaf[k] = part < chunks ? values[part * outputs] : Op::identity();
    }
    return fold<Op, 8>(leaf);
}

// Combines the chunks of each output, with a block for an output that has many chunks, otherwise with a
// thread.
template <class Op, class Index, class Sink>
DEVICE void reduce_partials(const Sink& sink, const typename Op::value* values, Index outputs,
                            Index chunks, u32 by_block) {
    typedef typename Op::value A;
    if (by_block) {
        for (Index output = blockIdx.x; output < outputs; output += gridDim.x) {
            A value = Op::identity();
            for (Index first = threadIdx.x; first < chunks; first += 8 * 256) {
                const A next = gather_partials<Op, Index>(values + output, outputs, chunks, first, 256);
                value = Op::combine(value, next);
            }
            value = together<Op, 256, 1>(value);
            if (threadIdx.x == 0) {
                sink(output, (Index)0, value);
            }
        }
        return;
    }
    const Index step = (Index)gridDim.x * 256;
    for (Index output = (Index)blockIdx.x * 256 + threadIdx.x; output < outputs; output += step) {
        A value = Op::identity();
        for (Index first = 0; first < chunks; first += 8) {
            value = Op::combine(value, gather_partials<Op, Index>(values + output, outputs, chunks, first, 1));
        }
        sink(output, (Index)0, value);
    }
}
