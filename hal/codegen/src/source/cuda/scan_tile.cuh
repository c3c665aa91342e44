// A tile of a scan: a block reads it, combines each element with the earlier elements of the tile, and
// writes it combined with the prefix of the tile. Each of 256 threads has some neighbouring elements.
//
// An operator is a struct with the type `value` and the static function `combine(value, value)`, whose first
// operand is the earlier one. The operator does not have to be commutative, and does not need an identity.

template <class A>
struct Tile {
    // The bytes of a thread's elements, counting at least four bytes per element. `tile` in scan/plan.rs and
    // `_tile` in scan.py rely on this.
    static constexpr u32 bytes = sizeof(A) > 8 ? 64 : sizeof(A) == 4 || sizeof(A) == 8 ? 112 : 96;
    // The number of elements per thread.
    static constexpr u32 count = (u32)(bytes / (sizeof(A) > 4 ? sizeof(A) : 4));
    // The number of neighbours that are moved in one access.
    static constexpr u32 width = sizeof(A) == 1                                       ? 8
                                 : sizeof(A) == 2 || sizeof(A) == 4 || sizeof(A) == 8 ? (u32)(16 / sizeof(A))
                                                                                      : 1;
    static constexpr u32 size = 256 * count;
    // The number of blocks that share a multiprocessor: the most that do not spill registers in sums.
    static constexpr u32 blocks = 4;
    // True if lanes exchange values in registers. Elements that are not moved as packs go through shared
    // memory instead, because lanes would have to exchange each of them.
    static constexpr bool by_lanes = LANES_EXCHANGE && width > 1;
};

// A value of each thread, with a gap after every sixteen, and a value for every sixteen threads.
template <class A>
struct BlockValues {
    A values[272];
    A groups[16];
};

// Combines at most sixteen neighbours, in order.
template <class Op>
DEVICE typename Op::value fold_in_order(const typename Op::value* items, u32 count) {
    typename Op::value total = items[0];
    // Further unrolling would keep all of the values in registers at the same time.
#pragma unroll 5
    for (u32 k = 1; k < 16; ++k) {
        if (k < count) {
            total = Op::combine(total, items[k]);
        }
    }
    return total;
}

// A tile in registers. A warp has contiguous elements, and reads them row by row, with a pack of neighbours
// for each lane. The packs of all rows are scanned over the lanes at the same time.
template <class Op, bool BY_LANES = Tile<typename Op::value>::by_lanes>
struct TileScan {
    typedef typename Op::value A;
    typedef Tile<A> T;
    static constexpr u32 rows = T::count / T::width;
    static_assert(rows * T::width == T::count, "rows have whole packs");

    struct Memory {
        // A row for each warp, in which elements are rearranged if memory cannot be accessed in packs.
        alignas(16) A row[8][32 * T::width];
        // The total of each warp.
        A warps[8];
        BlockValues<A> block;
    };
    struct Kept {
        alignas(16) A row[rows][256 * T::width];
        // The total, which only the first thread stores and reads.
        A total;
    };

    A own[T::count];
    // The prefix of the thread's pack in each row, within the warp's elements, and the prefix of the warp
    // within the tile.
    A before[rows];
    A earlier;

    static METHOD u32 lane() { return threadIdx.x % 32; }
    static METHOD u32 warp() { return threadIdx.x / 32; }
    // The position of an element if lanes move neighbouring elements, and of a pack if each lane moves a
    // pack.
    static METHOD u32 item(u32 k) { return warp() * 32 * T::count + k * 32 + lane(); }
    static METHOD u32 pack(u32 row) { return warp() * 32 * T::count + row * 32 * T::width + lane() * T::width; }

    // Reads the `limit` elements of a tile. Positions beyond the limit repeat the last element; only the
    // total depends on them.
    template <class Read>
    METHOD void read(const Read& read, u32 limit, Memory& memory) {
        if (limit == T::size && read.packs()) {
#pragma unroll
            for (u32 k = 0; k < rows; ++k) {
                read.template pack<T::width>(pack(k), own + k * T::width);
            }
            return;
        }
#pragma unroll
        for (u32 k = 0; k < T::count; ++k) {
            own[k] = read(item(k) < limit ? item(k) : limit - 1);
        }
        A* const row = memory.row[warp()];
#pragma unroll
        for (u32 k = 0; k < T::count; k += T::width) {
#pragma unroll
            for (u32 j = 0; j < T::width; ++j) {
                row[j * 32 + lane()] = own[k + j];
            }
            meet_lanes();
            Neighbours<A, T::width>::get(own + k, row + lane() * T::width);
            meet_lanes();
        }
    }

    // Scans the tile and returns its total.
    METHOD A scan(Memory& memory) {
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            A* const pack = own + k * T::width;
#pragma unroll
            for (u32 j = 1; j < T::width; ++j) {
                pack[j] = Op::combine(pack[j - 1], pack[j]);
            }
            before[k] = pack[T::width - 1];
        }
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
#pragma unroll
            for (u32 k = 0; k < rows; ++k) {
                const A other = of_lane_before(before[k], by);
                if (lane() >= by) {
                    before[k] = Op::combine(other, before[k]);
                }
            }
        }
        A total;
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            const A all = of_lane(before[k], 31);
            before[k] = of_lane_before(before[k], 1);
            if (k == 0) {
                total = all;
            } else {
                before[k] = lane() > 0 ? Op::combine(total, before[k]) : total;
                total = Op::combine(total, all);
            }
        }
        if (lane() == 0) {
            memory.warps[warp()] = total;
        }
        __syncthreads();
        total = memory.warps[0];
        earlier = total;
#pragma unroll
        for (u32 k = 1; k < 8; ++k) {
            if (k == warp()) {
                earlier = total;
            }
            total = Op::combine(total, memory.warps[k]);
        }
        return total;
    }

    // Computes the results of the elements without the prefix of the tile. The first element of an exclusive
    // scan then does not have a result.
    template <bool EXCLUSIVE>
    METHOD void settle() {
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            A* const pack = own + k * T::width;
            const bool follows = k > 0 || lane() > 0;
            A first = before[k];
            if (warp() > 0) {
                first = follows ? Op::combine(earlier, first) : earlier;
            }
            if (EXCLUSIVE) {
#pragma unroll
                for (u32 j = T::width - 1; j > 0; --j) {
                    pack[j] = follows || warp() > 0 ? Op::combine(first, pack[j - 1]) : pack[j - 1];
                }
                pack[0] = first;
            } else if (follows || warp() > 0) {
#pragma unroll
                for (u32 j = 0; j < T::width; ++j) {
                    pack[j] = Op::combine(first, pack[j]);
                }
            }
        }
    }

    // Writes the pack of row `k` of a tile after `settle`. `carried` is true if the tile has a prefix, which
    // is `carry`.
    template <bool EXCLUSIVE, class Write>
    static METHOD void write_row(const Write& write, u32 limit, Memory& memory, u32 k, A* pack, bool carried,
                                 const A& carry) {
        if (carried) {
#pragma unroll
            for (u32 j = 0; j < T::width; ++j) {
                pack[j] = EXCLUSIVE && k + j + threadIdx.x == 0 ? carry : Op::combine(carry, pack[j]);
            }
        }
        if (limit == T::size && write.packs()) {
            write.template pack<T::width>(TileScan::pack(k), pack);
            return;
        }
        A* const row = memory.row[warp()];
        Neighbours<A, T::width>::put(row + lane() * T::width, pack);
        meet_lanes();
        // If this loop were unrolled, the positions of all rows would be computed first, and need too many
        // registers.
#pragma unroll 1
        for (u32 j = 0; j < T::width; ++j) {
            if (item(k * T::width + j) < limit) {
                write(item(k * T::width + j), row[j * 32 + lane()]);
            }
        }
        meet_lanes();
    }

    template <bool EXCLUSIVE, class Write>
    METHOD void write(const Write& write, u32 limit, Memory& memory, bool carried, const A& carry) {
        settle<EXCLUSIVE>();
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            write_row<EXCLUSIVE>(write, limit, memory, k, own + k * T::width, carried, carry);
        }
    }

    // Keeps a tile after `settle` until its prefix is known; each thread stores its own elements.
    METHOD void keep(Kept& kept) const {
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            Neighbours<A, T::width>::put(kept.row[k] + threadIdx.x * T::width, own + k * T::width);
        }
    }

    // Writes a kept tile row by row, because the next tile is in the registers.
    template <bool EXCLUSIVE, class Write>
    static METHOD void write_kept(const Kept& kept, const Write& write, u32 limit, Memory& memory, bool carried,
                                  const A& carry) {
#pragma unroll
        for (u32 k = 0; k < rows; ++k) {
            A pack[T::width];
            Neighbours<A, T::width>::get(pack, kept.row[k] + threadIdx.x * T::width);
            write_row<EXCLUSIVE>(write, limit, memory, k, pack, carried, carry);
        }
    }
};

// A tile whose elements go through shared memory: each thread has neighbouring elements.
template <class Op>
struct TileScan<Op, false> {
    typedef typename Op::value A;
    typedef Tile<A> T;
    // A gap between the elements of neighbouring threads, which spreads the threads over the banks.
    static constexpr u32 gap = T::count > 1 ? T::width : 0;

    struct Memory {
        alignas(16) A items[256 * (T::count + gap)];
        BlockValues<A> block;

        METHOD A* at(u32 item) { return items + item + item / T::count * gap; }
    };

    A own[T::count];
    // The prefix of the thread's elements in the tile; the first thread does not have one.
    A before;

    template <class Read>
    METHOD void read(const Read& read, u32 limit, Memory& memory) {
        const u32 thread = threadIdx.x;
        if (limit == T::size && read.packs()) {
#pragma unroll
            for (u32 k = 0; k < T::count; k += T::width) {
                read.template pack<T::width>(k * 256 + thread * T::width, own + k);
            }
#pragma unroll
            for (u32 k = 0; k < T::count; k += T::width) {
                Neighbours<A, T::width>::put(memory.at(k * 256 + thread * T::width), own + k);
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < T::count; ++k) {
                const u32 item = k * 256 + thread;
                own[k] = read(item < limit ? item : limit - 1);
            }
#pragma unroll
            for (u32 k = 0; k < T::count; ++k) {
                *memory.at(k * 256 + thread) = own[k];
            }
        }
        __syncthreads();
        const A* const row = memory.at(thread * T::count);
#pragma unroll
        for (u32 k = 0; k < T::count; k += T::width) {
            Neighbours<A, T::width>::get(own + k, row + k);
        }
    }

    METHOD A scan(Memory& memory) {
        const u32 thread = threadIdx.x;
        const u32 group = thread / 16, rank = thread % 16;
#pragma unroll
        for (u32 k = 1; k < T::count; ++k) {
            own[k] = Op::combine(own[k - 1], own[k]);
        }
        BlockValues<A>& block = memory.block;
        block.values[thread + group] = own[T::count - 1];
        __syncthreads();
        // Each thread combines the values that it needs, which is as fast as waiting for one thread to do
        // it.
        before = own[0];
        if (rank > 0) {
            before = fold_in_order<Op>(block.values + group * 17, rank);
        }
        if (rank == 15) {
            block.groups[group] = Op::combine(before, own[T::count - 1]);
        }
        __syncthreads();
        A earlier = block.groups[0], all = earlier;
#pragma unroll 5
        for (u32 k = 1; k < 16; ++k) {
            if (k == group) {
                earlier = all;
            }
            all = Op::combine(all, block.groups[k]);
        }
        if (group > 0) {
            before = rank > 0 ? Op::combine(earlier, before) : earlier;
        }
        return all;
    }

    template <bool EXCLUSIVE, class Write>
    METHOD void write(const Write& write, u32 limit, Memory& memory, bool carried, const A& carry) {
        const u32 thread = threadIdx.x;
        if (carried) {
            before = thread > 0 ? Op::combine(carry, before) : carry;
        }
        if (EXCLUSIVE) {
#pragma unroll
            for (u32 k = T::count - 1; k > 0; --k) {
                own[k] = Op::combine(before, own[k - 1]);
            }
            own[0] = before;
        } else if (carried || thread > 0) {
#pragma unroll
            for (u32 k = 0; k < T::count; ++k) {
                own[k] = Op::combine(before, own[k]);
            }
        }
        A* const row = memory.at(thread * T::count);
#pragma unroll
        for (u32 k = 0; k < T::count; k += T::width) {
            Neighbours<A, T::width>::put(row + k, own + k);
        }
        __syncthreads();
        if (limit == T::size && write.packs()) {
#pragma unroll
            for (u32 k = 0; k < T::count; k += T::width) {
                const u32 item = k * 256 + thread * T::width;
                Neighbours<A, T::width>::get(own + k, memory.at(item));
                write.template pack<T::width>(item, own + k);
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < T::count; ++k) {
                const u32 item = k * 256 + thread;
                if (item < limit) {
                    write(item, *memory.at(item));
                }
            }
        }
    }
};
