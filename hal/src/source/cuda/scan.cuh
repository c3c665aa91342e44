// Running values. Blocks of 256 threads scan tiles: some neighbours for each thread, 64 bytes of
// them, at most 16. `tile` in scan/plan.rs and `_tile` in scan.py know this.
//
// An operator is a struct with the type `value` and the static function `combine(value, value)`, the
// first of which is the earlier operand. It need not be commutative, and has no identity.

template <class A>
struct Tile {
    // Elements of a thread.
    static constexpr u32 count = sizeof(A) > 4 ? (u32)(64 / sizeof(A)) : 16;
    // Elements that shared memory takes in one access.
    static constexpr u32 width =
        sizeof(A) == 1 || sizeof(A) == 2 || sizeof(A) == 4 || sizeof(A) == 8 ? (u32)(16 / sizeof(A)) : 1;
    // Elements between those of one thread and of the next, which spreads the threads over the banks.
    static constexpr u32 gap = count > 1 ? width : 0;
    static constexpr u32 size = 256 * count;
    // Blocks that share a multiprocessor: as many as registers allow without spilling those of sums.
    static constexpr u32 blocks = sizeof(A) <= 4 ? 6 : sizeof(A) <= 8 ? 5 : 4;
};

// The shared memory of a block that scans tiles.
template <class A>
struct TileMemory {
    alignas(16) A items[256 * (Tile<A>::count + Tile<A>::gap)];
    // A value of each thread, with a gap behind sixteen, and one of each sixteen.
    A values[272];
    A groups[16];

    METHOD A* at(u32 item) { return items + item + item / Tile<A>::count * Tile<A>::gap; }
};

// Combines sixteen neighbours, or fewer, in their order.
template <class Op>
DEVICE typename Op::value fold_in_order(const typename Op::value* items, u32 count) {
    typename Op::value total = items[0];
    // No further: all of the values would be in registers at once.
#pragma unroll 5
    for (u32 k = 1; k < 16; ++k) {
        if (k < count) {
            total = Op::combine(total, items[k]);
        }
    }
    return total;
}

// Reads the `limit` elements of a tile, scans those of each thread, and returns what precedes them
// in the tile, which is nothing for the first thread; `total` becomes the total of the tile. Elements
// that are not there repeat the last one: no result but that total depends on them.
template <class Op, class Read>
DEVICE typename Op::value scan_in_tile(const Read& read, u32 limit, TileMemory<typename Op::value>& memory,
                                       typename Op::value* own, typename Op::value* total) {
    typedef typename Op::value A;
    typedef Tile<A> T;
    const u32 thread = threadIdx.x;
    const u32 group = thread / 16;
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
#pragma unroll
    for (u32 k = 1; k < T::count; ++k) {
        own[k] = Op::combine(own[k - 1], own[k]);
    }
    memory.values[thread + group] = own[T::count - 1];
    __syncthreads();
    // Each thread combines what it needs, which takes no longer than to wait for one that does.
    const u32 rank = thread % 16;
    A before = own[0];
    if (rank > 0) {
        before = fold_in_order<Op>(memory.values + group * 17, rank);
    }
    if (rank == 15) {
        memory.groups[group] = Op::combine(before, own[T::count - 1]);
    }
    __syncthreads();
    A earlier = memory.groups[0], all = earlier;
#pragma unroll 5
    for (u32 k = 1; k < 16; ++k) {
        if (k == group) {
            earlier = all;
        }
        all = Op::combine(all, memory.groups[k]);
    }
    *total = all;
    if (group > 0) {
        before = rank > 0 ? Op::combine(earlier, before) : earlier;
    }
    return before;
}

// Writes a tile: `carried` says whether anything precedes it, which is `carry`.
template <class Op, bool EXCLUSIVE, class Write>
DEVICE void write_tile(const Write& write, u32 limit, TileMemory<typename Op::value>& memory,
                       typename Op::value* own, typename Op::value before, bool carried,
                       const typename Op::value& carry) {
    typedef typename Op::value A;
    typedef Tile<A> T;
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

// One block for a range, a tile after the other.
template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_range(Read read, Write write, Index length, typename Op::value carry) {
    typedef typename Op::value A;
    __shared__ TileMemory<A> memory;
    for (Index base = 0; base < length; base += Tile<A>::size) {
        const u32 limit = length - base < Tile<A>::size ? (u32)(length - base) : Tile<A>::size;
        A own[Tile<A>::count];
        A total;
        const A before = scan_in_tile<Op>(read, limit, memory, own, &total);
        const bool carried = EXCLUSIVE || base > 0;
        write_tile<Op, EXCLUSIVE>(write, limit, memory, own, before, carried, carry);
        carry = carried ? Op::combine(carry, total) : total;
        read.advance(Tile<A>::size);
        write.advance(Tile<A>::size);
        __syncthreads();
    }
}

// Scans in one pass, in which a block takes what precedes its tile from the blocks before it: after
// "Single-pass Parallel Prefix Scan with Decoupled Look-back" (Merrill and Garland, 2016), but with
// an order of combination that does not depend on time. 256 tiles are a team. A tile publishes its
// total; what precedes a tile is what precedes its team, then the totals of the earlier tiles of the
// team, sixteen by sixteen; the last tile of a team publishes what precedes the next team. Tiles are
// numbered as blocks take them, so that every tile that a block waits for is done or under way.
//
// The state is made of words of 64 bits that are zero at first: how many tiles have been taken, then
// what precedes each team but the first of each row, then the total of each tile. A word has 32 bits
// of a value, and a mark: so a value of any size is complete once all of its words have the mark,
// and no fence is needed.
constexpr u32 TEAM = 256;

template <class A>
struct Published {
    static constexpr u32 words = (u32)((sizeof(A) + 3) / 4);
    union Parts {
        A value;
        u32 part[words];
        METHOD Parts() { part[words - 1] = 0; }
    };

    static METHOD void put(u64* to, const A& value) {
        Parts parts;
        parts.value = value;
#pragma unroll
        for (u32 k = 0; k < words; ++k) {
            publish(to + k, (u64)1 << 32 | parts.part[k]);
        }
    }

    static METHOD A wait(const u64* from) {
        Parts parts;
        for (u64 marks = 0; marks == 0;) {
            marks = (u64)1 << 32;
#pragma unroll
            for (u32 k = 0; k < words; ++k) {
                const u64 word = published(from + k);
                marks &= word;
                parts.part[k] = (u32)word;
            }
        }
        return parts.value;
    }
};

// What precedes a tile, in the order of the tiles: what precedes its team, which is `carry` for the
// first, then the totals of the `rank` tiles before it in the team. `totals` and `prefix` are the words
// of this tile and of its team. There is nothing before the first tile of an inclusive scan.
template <class Op, bool EXCLUSIVE>
DEVICE typename Op::value look_back(const u64* totals, const u64* prefix, u32 rank, bool is_first_team,
                                    typename Op::value carry, TileMemory<typename Op::value>& memory) {
    typedef typename Op::value A;
    typedef Published<A> Word;
    __shared__ A before_team;
    const u32 thread = threadIdx.x;
    // The last thread has no tile to wait for, and `rank` is below it.
    if (thread < rank) {
        memory.values[thread + thread / 16] = Word::wait(totals - (rank - thread) * Word::words);
    } else if (thread == TEAM - 1 && !is_first_team) {
        before_team = Word::wait(prefix);
    }
    __syncthreads();
    if (thread * 16 < rank) {
        memory.groups[thread] = fold_in_order<Op>(memory.values + thread * 17, rank - thread * 16);
    }
    __syncthreads();
    if (!is_first_team) {
        carry = before_team;
    }
    if (rank > 0) {
        const A earlier = fold_in_order<Op>(memory.groups, (rank + 15) / 16);
        carry = EXCLUSIVE || !is_first_team ? Op::combine(carry, earlier) : earlier;
    }
    return carry;
}

// Scans tile `part` of the `parts` of `row`, of which there are `rows`. `read` and `write` are those of the
// row, `start` is what an exclusive scan begins with.
template <class Op, bool EXCLUSIVE, class Read, class Write>
DEVICE void scan_tile(Read read, Write write, u64 length, u64 row, u64 rows, u64 part, u64 parts, u64* state,
                      const typename Op::value& start) {
    typedef typename Op::value A;
    typedef Published<A> Word;
    __shared__ TileMemory<A> memory;
    const u64 teams = (parts + TEAM - 1) / TEAM;
    const u64 team = part / TEAM;
    const u32 rank = (u32)(part % TEAM);
    u64* const prefix = state + 1 + (row * teams + team) * Word::words;
    u64* const totals = state + 1 + (rows * teams + row * parts + part) * Word::words;
    const u64 base = part * Tile<A>::size;
    const u32 limit = length - base < Tile<A>::size ? (u32)(length - base) : Tile<A>::size;
    read.advance((i64)base);
    write.advance((i64)base);
    if (part + AHEAD + 1 < parts) {
        read.prefetch((i64)AHEAD * Tile<A>::size, Tile<A>::size);
    }
    A own[Tile<A>::count], total;
    const A before = scan_in_tile<Op>(read, limit, memory, own, &total);
    if (threadIdx.x == 0 && part + 1 < parts) {
        Word::put(totals, total);
    }
    const A carry = look_back<Op, EXCLUSIVE>(totals, prefix, rank, team == 0, start, memory);
    if (threadIdx.x == 0 && rank == TEAM - 1 && part + 1 < parts) {
        Word::put(prefix + Word::words, Op::combine(carry, total));
    }
    write_tile<Op, EXCLUSIVE>(write, limit, memory, own, before, EXCLUSIVE || part > 0, carry);
}

// One thread for a range, eight elements at a time; the operator has an identity.
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

// The totals of one row's chunks, `step` apart, which become what precedes each chunk.
template <class A, class Index>
struct Carries {
    A* values;
    Index step;
    METHOD A operator()(Index i) const { return values[i * step]; }
    METHOD void operator()(Index i, A value) const { values[i * step] = value; }
};
