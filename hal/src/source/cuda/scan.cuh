// Running values: tiles of 1024 elements in shared memory, 256 threads with four each.

template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_range(const Read& read, const Write& write, Index begin, Index end,
                       typename Op::value carry) {
    typedef typename Op::value A;
    __shared__ A items[1024];
    __shared__ A totals[256];
    const u32 thread = threadIdx.x;
    for (Index base = begin; base < end; base += 1024) {
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            const Index i = base + k * 256 + thread;
            items[k * 256 + thread] = i < end ? read(i) : Op::identity();
        }
        __syncthreads();
        A own = items[4 * thread];
#pragma unroll
        for (u32 k = 1; k < 4; ++k) {
            own = Op::combine(own, items[4 * thread + k]);
        }
        totals[thread] = own;
        __syncthreads();
        for (u32 reach = 1; reach < 256; reach *= 2) {
            A sum = totals[thread];
            if (thread >= reach) {
                sum = Op::combine(totals[thread - reach], sum);
            }
            __syncthreads();
            totals[thread] = sum;
            __syncthreads();
        }
        A running = thread > 0 ? Op::combine(carry, totals[thread - 1]) : carry;
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            const A item = items[4 * thread + k];
            const A next = Op::combine(running, item);
            items[4 * thread + k] = EXCLUSIVE ? running : next;
            running = next;
        }
        carry = Op::combine(carry, totals[255]);
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            const Index i = base + k * 256 + thread;
            if (i < end) {
                write(i, items[k * 256 + thread]);
            }
        }
        __syncthreads();
    }
}

// One thread for a whole row.
template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_serial(const Read& read, const Write& write, Index length,
                        typename Op::value running) {
    for (Index i = 0; i < length; ++i) {
        const typename Op::value next = Op::combine(running, read(i));
        write(i, EXCLUSIVE ? running : next);
        running = next;
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

template <class A, class Index>
struct Carries {
    A* values;
    METHOD A operator()(Index i) const { return values[i]; }
    METHOD void operator()(Index i, A value) const { values[i] = value; }
};
