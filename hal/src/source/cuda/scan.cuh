// Running values: tiles in shared memory, some neighbours for each of 256 threads.

// Neighbours of a thread: 64 bytes of them, at most 16. `scan::tile` in scan.rs knows this.
template <class A>
struct Neighbours {
    static constexpr int count = sizeof(A) > 4 ? (int)(64 / sizeof(A)) : 16;
};

// An odd distance between the threads' neighbours spreads them over the banks.
template <class A>
DEVICE u32 bank(u32 item) {
    return item + item / Neighbours<A>::count;
}

template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_range(const Read& read, const Write& write, Index begin, Index end,
                       typename Op::value carry) {
    typedef typename Op::value A;
    constexpr int COUNT = Neighbours<A>::count;
    __shared__ A items[256 * (COUNT + 1)];
    __shared__ A totals[2][256];
    const u32 thread = threadIdx.x;
    for (Index base = begin; base < end; base += 256 * COUNT) {
        A own[COUNT];
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {
            const Index i = base + k * 256 + thread;
            own[k] = i < end ? read(i) : Op::identity();
        }
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {
            items[bank<A>(k * 256 + thread)] = own[k];
        }
        __syncthreads();
        own[0] = items[bank<A>(COUNT * thread)];
#pragma unroll
        for (u32 k = 1; k < COUNT; ++k) {
            own[k] = Op::combine(own[k - 1], items[bank<A>(COUNT * thread + k)]);
        }
        totals[0][thread] = own[COUNT - 1];
        __syncthreads();
        // Eight steps, after which the result is where it began.
        u32 side = 0;
        for (u32 reach = 1; reach < 256; reach *= 2) {
            A sum = totals[side][thread];
            if (thread >= reach) {
                sum = Op::combine(totals[side][thread - reach], sum);
            }
            side ^= 1;
            totals[side][thread] = sum;
            __syncthreads();
        }
        const A before = thread > 0 ? Op::combine(carry, totals[0][thread - 1]) : carry;
        carry = Op::combine(carry, totals[0][255]);
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {
            items[bank<A>(COUNT * thread + k)] =
                !EXCLUSIVE ? Op::combine(before, own[k])
                : k > 0    ? Op::combine(before, own[k > 0 ? k - 1 : 0])
                           : before;
        }
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {
            const Index i = base + k * 256 + thread;
            if (i < end) {
                write(i, items[bank<A>(k * 256 + thread)]);
            }
        }
        __syncthreads();
    }
}

// One thread for a range, eight elements at a time.
template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_serial(const Read& read, const Write& write, Index begin, Index end,
                        typename Op::value running) {
    typedef typename Op::value A;
    for (Index base = begin; base < end; base += 8) {
        A item[8];
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            item[k] = base + k < end ? read(base + k) : Op::identity();
        }
#pragma unroll
        for (u32 k = 0; k < 8; ++k) {
            if (base + k < end) {
                const A next = Op::combine(running, item[k]);
                write(base + k, EXCLUSIVE ? running : next);
                running = next;
            }
        }
    }
}

// The total of a range, for every thread of the block.
template <class Op, class Index, class Read>
DEVICE typename Op::value scan_total(const Read& read, Index begin, Index end) {
    typedef typename Op::value A;
    __shared__ A scratch[256];
    const u32 thread = threadIdx.x;
    scratch[thread] = accumulate<Op, Index>(read, begin + thread, end, (Index)256);
    __syncthreads();
    for (u32 half = 128; half > 0; half /= 2) {
        if (thread < half) {
            scratch[thread] = Op::combine(scratch[thread], scratch[thread + half]);
        }
        __syncthreads();
    }
    const A total = scratch[0];
    __syncthreads();
    return total;
}

// The totals of one row's chunks, `step` apart, which become what precedes each chunk.
template <class A, class Index>
struct Carries {
    A* values;
    Index step;
    METHOD A operator()(Index i) const { return values[i * step]; }
    METHOD void operator()(Index i, A value) const { values[i * step] = value; }
};
