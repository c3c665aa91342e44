// Reductions: blocks of fixed size, combined in a fixed order, with no wavefront intrinsics.

// Neighbours combined in pairs, then pairs of pairs; `COUNT` is a power of two.
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

// What is read at `COUNT` places `step` apart: all of it is under way before any is used.
template <class Op, int COUNT, class Index, class Read>
DEVICE typename Op::value gather(const Read& read, Index first, Index step) {
    typename Op::value leaf[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        leaf[k] = read(first + (Index)k * step);
    }
    return fold<Op, COUNT>(leaf);
}

// Combines what is read at `first`, `first + step`, ... below `end`. Eight at a time are
// combined as a tree, and sixteen of those in a row; as a thread reads a few thousand times
// at most, rounding errors grow with a small multiple of the logarithm of their number.
template <class Op, class Index, class Read>
DEVICE typename Op::value accumulate(const Read& read, Index first, Index end, Index step) {
    typedef typename Op::value A;
    A total = Op::identity();
    Index i = first;
    while (i + 7 * step < end) {
        A part = gather<Op, 8>(read, i, step);
        i += 8 * step;
        for (int turn = 1; turn < 16 && i + 7 * step < end; ++turn) {
            part = Op::combine(part, gather<Op, 8>(read, i, step));
            i += 8 * step;
        }
        total = Op::combine(total, part);
    }
    if (i + 3 * step < end) {
        total = Op::combine(total, gather<Op, 4>(read, i, step));
        i += 4 * step;
    }
    if (i + step < end) {
        total = Op::combine(total, gather<Op, 2>(read, i, step));
        i += 2 * step;
    }
    if (i < end) {
        total = Op::combine(total, read(i));
    }
    return total;
}

// How a thread walks its part of an output's elements: one by one, ...
struct ByElement {
    template <class Op, class Index, class Source>
    static METHOD typename Op::value range(const Source& source, Index output, Index begin,
                                           Index end, Index, u32 row, u32 deep) {
        return accumulate<Op, Index>(source.at(output), begin + row, end, (Index)deep);
    }
};

template <bool ALIGNED, class Row, class A, class Index>
struct PackReader {
    const Row* row;
    METHOD A operator()(Index i) const { return row->template pack<ALIGNED>(i); }
};

// ... or in packs of `WIDTH` neighbours, in the same order whether or not they are aligned,
// and last the `source.tail` elements behind all packs.
template <int WIDTH>
struct ByPack {
    template <class Op, class Index, class Source>
    static METHOD typename Op::value range(const Source& source, Index output, Index begin,
                                           Index end, Index length, u32 row, u32 deep) {
        typedef typename Op::value A;
        typedef typename Source::Row Row;
        const Row place = source.at(output);
        A total;
        if (place.aligned()) {
            PackReader<true, Row, A, Index> read;
            read.row = &place;
            total = accumulate<Op, Index>(read, begin + row, end, (Index)deep);
        } else {
            PackReader<false, Row, A, Index> read;
            read.row = &place;
            total = accumulate<Op, Index>(read, begin + row, end, (Index)deep);
        }
        if (end == length) {
            for (u32 k = row; k < source.tail; k += deep) {
                total = Op::combine(total, place.element(length * WIDTH + k));
            }
        }
        return total;
    }
};

// A block of 256 threads serves `1 << split` outputs with `256 >> split` threads each;
// `across` says that neighbouring threads share an output (the reduced axis is the fast one).
// An output's `length` elements or packs are cut into `chunks` of `chunk`.
template <class Op, class Walk, class Index, class Source, class Sink>
DEVICE void reduce_blocks(const Source& source, const Sink& sink, Index outputs, Index length,
                          Index chunk, Index chunks, u32 split, u32 across) {
    typedef typename Op::value A;
    __shared__ A scratch[256];
    const u32 wide = 1u << split;
    const u32 deep = 256u >> split;
    const u32 thread = threadIdx.x;
    const u32 column = across ? thread / deep : thread % wide;
    const u32 row = across ? thread % deep : thread / wide;
    const u32 slot = row * wide + column;
    const Index groups = (outputs + wide - 1) / wide;
    for (Index work = blockIdx.x; work < groups * chunks; work += gridDim.x) {
        const Index part = work / groups;
        const Index output = (work - part * groups) * wide + column;
        const Index begin = part * chunk;
        const Index end = length - begin < chunk ? length : begin + chunk;
        A value = Op::identity();
        if (output < outputs) {
            value = Walk::template range<Op, Index>(source, output, begin, end, length, row, deep);
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

// Partial results lie side by side for one chunk of every output, then the next chunk.
template <class A, class Index>
struct Partials {
    A* values;
    Index outputs;
    METHOD void operator()(Index output, Index part, A value) const {
        values[part * outputs + output] = value;
    }
    struct Row {
        const A* values;
        Index outputs;
        METHOD A operator()(Index part) const { return values[part * outputs]; }
    };
    METHOD Row at(Index output) const {
        Row row;
        row.values = values + output;
        row.outputs = outputs;
        return row;
    }
};
