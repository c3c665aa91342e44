// Reductions: blocks of fixed size, combined in a fixed order, with no wavefront intrinsics.

// Combines elements `first`, `first + step`, ... below `end`. Eight at a time are combined as
// a tree, eight of those in a row, and eight of those again, so that rounding errors grow
// with a small multiple of the logarithm of the number of elements.
template <class Op, class Index, class Read>
DEVICE typename Op::value accumulate(const Read& read, Index first, Index end, Index step) {
    typedef typename Op::value A;
    A total = Op::identity();
    Index i = first;
    while (i + 7 * step < end) {
        A middle = Op::identity();
        for (int outer = 0; outer < 8 && i + 7 * step < end; ++outer) {
            A inner = Op::identity();
            for (int turn = 0; turn < 8 && i + 7 * step < end; ++turn) {
                A leaf[8];
#pragma unroll
                for (int k = 0; k < 8; ++k) {
                    leaf[k] = read(i + (Index)k * step);
                }
                const A low = Op::combine(Op::combine(leaf[0], leaf[1]), Op::combine(leaf[2], leaf[3]));
                const A high = Op::combine(Op::combine(leaf[4], leaf[5]), Op::combine(leaf[6], leaf[7]));
                inner = Op::combine(inner, Op::combine(low, high));
                i += 8 * step;
            }
            middle = Op::combine(middle, inner);
        }
        total = Op::combine(total, middle);
    }
    for (; i < end; i += step) {
        total = Op::combine(total, read(i));
    }
    return total;
}

// A block of 256 threads serves `1 << split` outputs with `256 >> split` threads each;
// `across` says that neighbouring threads share an output (the reduced axis is the fast one).
// An output's `length` elements are cut into `chunks` of `chunk`.
template <class Op, class Index, class Source, class Sink>
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
        if (output < outputs && begin < length) {
            value = accumulate<Op, Index>(source.at(output), begin + row, end, (Index)deep);
        }
        scratch[slot] = value;
        __syncthreads();
        for (u32 half = deep / 2; half > 0; half /= 2) {
            if (row < half) {
                scratch[slot] = Op::combine(scratch[slot], scratch[slot + half * wide]);
            }
            __syncthreads();
        }
        if (row == 0 && output < outputs) {
            sink(output, part, scratch[slot]);
        }
        __syncthreads();
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
