// Scans: by one block per range, by one block per tile in a single pass, or by one thread per range.

// One block per range, one tile after another.
template <class Op, bool EXCLUSIVE, class Index, class Read, class Write>
DEVICE void scan_range(Read read, Write write, Index length, typename Op::value carry) {
    typedef typename Op::value A;
    typedef TileScan<Op> Scan;
    __shared__ typename Scan::Memory memory;
    for (Index base = 0; base < length; base += Tile<A>::size) {
        const u32 limit = length - base < Tile<A>::size ? (u32)(length - base) : Tile<A>::size;
        Scan tile;
        tile.read(read, limit, memory);
        const A total = tile.scan(memory);
        const bool carried = EXCLUSIVE || base > 0;
        tile.template write<EXCLUSIVE>(write, limit, memory, carried, carry);
        carry = carried ? Op::combine(carry, total) : total;
        read.advance(Tile<A>::size);
        write.advance(Tile<A>::size);
        __syncthreads();
    }
}

// Scans in a single pass, in which a block gets the prefix of its tile from earlier blocks. This follows "Single-pass
// Parallel Prefix Scan with Decoupled Look-back" (Merrill and Garland, 2016), but combines in an order that does not
// depend on timing. 256 tiles form a team. A tile publishes its total. The prefix of a tile is the prefix of its team,
// combined with the totals of the earlier tiles of the team, sixteen by sixteen. The last tile of a team publishes the
// prefix of the next team. Tiles are numbered in the order in which blocks take them, so that every tile that a block
// waits for is complete or in progress.
//
// The state consists of 64-bit words that are initially zero: the number of tiles taken, then the prefix of each team
// except the first of each row, then the total of each tile. A word has 32 bits of a value, and a mark. A value of any
// size is complete once all of its words have the mark, so no fence is needed.
constexpr u32 TEAM = 256;

template <class A>
struct Published {
    static constexpr u32 words = InWords<A>::count;
    typedef typename InWords<A>::Parts Parts;

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

// Returns the combined values before a tile, in the order of the tiles: the prefix of its team, which is `carry` for
// the first team, then the totals of the `rank` tiles before it in the team. `totals` and `prefix` are the words of
// this tile and of its team. The first tile of an inclusive scan does not have a prefix.
template <class Op, bool EXCLUSIVE>
DEVICE typename Op::value look_back(const u64* totals, const u64* prefix, u32 rank, bool is_first_team,
                                    typename Op::value carry, BlockValues<typename Op::value>& block) {
    typedef typename Op::value A;
    typedef Published<A> Word;
    __shared__ A before_team;
    const u32 thread = threadIdx.x;
    // `rank` is less than the number of the last thread, which therefore does not wait for a tile.
    if (thread < rank) {
        block.values[thread + thread / 16] = Word::wait(totals - (rank - thread) * Word::words);
    } else if (thread == TEAM - 1 && !is_first_team) {
        before_team = Word::wait(prefix);
    }
    __syncthreads();
    if (thread * 16 < rank) {
        block.groups[thread] = fold_in_order<Op>(block.values + thread * 17, rank - thread * 16);
    }
    __syncthreads();
    if (!is_first_team) {
        carry = before_team;
    }
    if (rank > 0) {
        const A earlier = fold_in_order<Op>(block.groups, (rank + 15) / 16);
        carry = EXCLUSIVE || !is_first_team ? Op::combine(carry, earlier) : earlier;
    }
    return carry;
}

// Rows whose tiles are shared by blocks. `Rows::at` stores the functors that read and write a row.
template <class Op, bool EXCLUSIVE, class Rows>
struct SharedTiles {
    typedef typename Op::value A;
    typedef typename Rows::Read Read;
    typedef typename Rows::Write Write;
    typedef Published<A> Word;
    typedef TileScan<Op> Scan;

    const Rows& rows;
    // Elements per row, number of rows, and tiles per row. There are fewer than 2^32 tiles in total: more would fill
    // terabytes.
    const u64 length;
    const u32 count, parts;
    u64* const state;

    // A tile, and its functors, which start at the tile.
    struct Place {
        u32 row, part;
        u32 limit;
        Read read;
        Write write;
    };

    METHOD Place place(u32 tile) const {
        Place place;
        place.row = tile / parts;
        place.part = tile - place.row * parts;
        const u64 base = (u64)place.part * Tile<A>::size;
        place.limit = length - base < Tile<A>::size ? (u32)(length - base) : Tile<A>::size;
        rows.at(place.row, &place.read, &place.write);
        place.read.advance((i64)base);
        place.write.advance((i64)base);
        return place;
    }

    // The words for the prefix of a tile's team, and for the tile's total.
    METHOD u64* prefix(const Place& place) const {
        const u32 teams = (parts + TEAM - 1) / TEAM;
        return state + 1 + (u64)(place.row * teams + place.part / TEAM) * Word::words;
    }
    METHOD u64* total(const Place& place) const {
        const u32 teams = (parts + TEAM - 1) / TEAM;
        return state + 1 + ((u64)count * teams + place.row * parts + place.part) * Word::words;
    }

    // Reads a tile, scans it by itself, and publishes its total.
    METHOD A begin(const Place& place, Scan& scan, typename Scan::Memory& memory) const {
        if (place.part + AHEAD + 1 < parts) {
            place.read.prefetch((i64)AHEAD * Tile<A>::size, Tile<A>::size);
        }
        scan.read(place.read, place.limit, memory);
        const A value = scan.scan(memory);
        if (threadIdx.x == 0 && place.part + 1 < parts) {
            Word::put(total(place), value);
        }
        return value;
    }

    // Waits for the prefix of a tile. The last tile of a team publishes the prefix of the next team. `value` is the
    // total of the tile, which only the first thread uses.
    METHOD A wait(const Place& place, const A& value, const A& start, BlockValues<A>& block) const {
        const u32 rank = place.part % TEAM;
        u64* const before = prefix(place);
        const A carry = look_back<Op, EXCLUSIVE>(total(place), before, rank, place.part < TEAM, start, block);
        if (threadIdx.x == 0 && rank == TEAM - 1 && place.part + 1 < parts) {
            Word::put(before + Word::words, Op::combine(carry, value));
        }
        return carry;
    }

    METHOD bool carries(const Place& place) const { return EXCLUSIVE || place.part > 0; }
};

// If true, a block keeps a tile in shared memory while it reads and scans its next one. The prefix of the kept tile is
// then usually available, so that memory is not idle while blocks wait. On other devices, one block waits while others
// read.
#if defined(__CUDA_ARCH__)
constexpr bool TILES_ARE_KEPT = LANES_EXCHANGE;
#else
constexpr bool TILES_ARE_KEPT = false;
#endif

template <bool KEPT>
struct TileLoop {
    template <class Op, bool EXCLUSIVE, class Rows>
    static METHOD void run(const SharedTiles<Op, EXCLUSIVE, Rows>& tiles, const typename Op::value& start) {
        typedef typename Op::value A;
        typedef TileScan<Op> Scan;
        __shared__ typename Scan::Memory memory;
        u64 tile;
        for (bool first = true; take_tile(tiles.state, (u64)tiles.count * tiles.parts, first, &tile); first = false) {
            const auto place = tiles.place((u32)tile);
            Scan scan;
            const A total = tiles.begin(place, scan, memory);
            const A carry = tiles.wait(place, total, start, memory.block);
            scan.template write<EXCLUSIVE>(place.write, place.limit, memory, tiles.carries(place), carry);
        }
    }
};

template <>
struct TileLoop<true> {
    template <class Op, bool EXCLUSIVE, class Rows>
    static METHOD void run(const SharedTiles<Op, EXCLUSIVE, Rows>& tiles, const typename Op::value& start) {
        typedef typename Op::value A;
        typedef TileScan<Op> Scan;
        __shared__ typename Scan::Memory memory;
        __shared__ typename Scan::Kept kept;
        // The kept tile, except in the first iteration.
        u32 earlier = 0;
        bool more = true;
        for (bool first = true; more; first = false) {
            u64 tile;
            more = take_tile(tiles.state, (u64)tiles.count * tiles.parts, first, &tile);
            Scan scan;
            A total;
            if (more) {
                total = tiles.begin(tiles.place((u32)tile), scan, memory);
                scan.template settle<EXCLUSIVE>();
            }
            if (!first) {
                const auto place = tiles.place(earlier);
                const A carry = tiles.wait(place, kept.total, start, memory.block);
                Scan::template write_kept<EXCLUSIVE>(kept, place.write, place.limit, memory, tiles.carries(place),
                                                     carry);
            }
            if (more) {
                scan.keep(kept);
                earlier = (u32)tile;
                if (threadIdx.x == 0) {
                    kept.total = total;
                }
            }
        }
    }
};

// Scans the rows, each of which has `length` elements in `parts` tiles. `start` is the first value of an exclusive
// scan.
template <class Op, bool EXCLUSIVE, class Rows>
DEVICE void scan_tiles(const Rows& rows, u64 length, u64 count, u64 parts, u64* state,
                       const typename Op::value& start) {
    const SharedTiles<Op, EXCLUSIVE, Rows> tiles = {rows, length, (u32)count, (u32)parts, state};
    TileLoop<TILES_ARE_KEPT && Tile<typename Op::value>::by_lanes>::run(tiles, start);
}

// One thread per range, eight elements at a time; the operator has an identity.
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

// The totals of the chunks of a row, `step` apart, which are replaced by the prefix of each chunk.
template <class A, class Index>
struct Carries {
    A* values;
    Index step;
    METHOD A operator()(Index i) const { return values[i * step]; }
    METHOD void operator()(Index i, A value) const { values[i * step] = value; }
};
