// Running values: tiles in shared memory, some neighbours for each of 256 threads.

// Neighbours of a thread: 64 bytes of them, at most 16. `scan::tile` in scan.rs knows this.
template <class A>
struct Neighbours {
    static constexpr u32 count = sizeof(A) > 4 ? (u32)(64 / sizeof(A)) : 16;
    // Elements between those of one thread and of the next: a word, or one element if that is
    // larger. So each thread's begin at a word, and may be moved in words, and the distance is an
    // odd number of them (of pairs for 8 bytes), which spreads the threads over the banks. Wider
    // accesses of AMD's compilers need not be aligned: for amdhsa they are told that the hardware is
    // set so (`unaligned-access-mode`, "User Guide for AMDGPU Backend" of LLVM).
    static constexpr u32 gap = sizeof(A) < 4 ? (u32)(4 / sizeof(A)) : 1;
};

template <class A>
DEVICE u32 bank(u32 item) {
    return item + item / Neighbours<A>::count * Neighbours<A>::gap;
}

// The threads' totals are combined sixteen by sixteen: within each sixteen, then the sixteens.
template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_range(const Read& read, const Write& write, Index begin, Index end,
                       typename Op::value carry) {
    typedef typename Op::value A;
    constexpr u32 COUNT = Neighbours<A>::count;
    __shared__ A items[256 * (COUNT + Neighbours<A>::gap)];
    __shared__ A totals[256];
    __shared__ A groups[16];
    const u32 thread = threadIdx.x;
    const u32 group = thread / 16;
    for (Index base = begin; base < end; base += 256 * COUNT) {
        A own[COUNT];
        const Index first = base + thread;
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) {
            own[k] = first + k * 256 < end ? read(first + k * 256) : Op::identity();
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
        totals[thread] = own[COUNT - 1];
        __syncthreads();
        A before = Op::identity();
#pragma unroll
        for (u32 k = 0; k < 15; ++k) {
            if (k < thread % 16) {
                before = Op::combine(before, totals[group * 16 + k]);
            }
        }
        if (thread % 16 == 15) {
            groups[group] = Op::combine(before, own[COUNT - 1]);
        }
        __syncthreads();
        A outside = carry;
#pragma unroll
        for (u32 k = 0; k < 16; ++k) {
            if (k == group) {
                outside = carry;
            }
            carry = Op::combine(carry, groups[k]);
        }
        before = thread % 16 > 0 ? Op::combine(outside, before) : outside;
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
            if (first + k * 256 < end) {
                write(first + k * 256, items[bank<A>(k * 256 + thread)]);
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
    scratch[thread] = accumulate_elements<Op>(read, begin + thread, end, (Index)256);
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
