//! Operations between the threads of a kernel through the headers: warps, groups, atomics, text. Expected
//! values are computed here, lane by lane, from the definitions.

use crate::units::load_in as load;
use host_executor::{Error, FailureKind, Kernel, Language, Library, Schedule, Shape};
use std::ffi::c_void;
use std::sync::Arc;

fn launch(
    library: &Arc<Library>,
    name: &str,
    shape: &Shape,
    array: &mut [u64],
) -> host_executor::Result<()> {
    let kernel = Kernel::find(library, name).expect("the kernel");
    let mut address = array.as_mut_ptr();
    let arguments = [std::ptr::from_mut(&mut address).cast::<c_void>()];
    // SAFETY: the tests' kernels take a pointer, and stay inside the array.
    unsafe { kernel.launch(shape, &Schedule::default(), &arguments, &|| None) }
}

fn run(library: &Arc<Library>, name: &str, grid: u32, block: u32, per_thread: usize) -> Vec<u64> {
    let mut array = vec![u64::MAX - 1; grid as usize * block as usize * per_thread];
    let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], cooperative: false };
    launch(library, name, &shape, &mut array).unwrap_or_else(|error| panic!("{error}"));
    array
}

/// Returns the lane that a shuffle reads, or the lane itself if the definition does not give a source.
fn source(form: usize, lane: usize, by: usize, width: usize) -> usize {
    let first = lane / width * width;
    match form {
        0 => first + by % width,
        1 if lane - first >= by => lane - by,
        2 if lane - first + by < width => lane + by,
        3 if (lane ^ by) < first + width => lane ^ by,
        _ => lane,
    }
}

const SHUFFLES: &str = r#"
__device__ double wide(int lane) { return lane * 1.5 - 7; }
extern "C" __global__ void shuffles(unsigned long long *out) {
    const int lane = threadIdx.x % warpSize;
    out += 16 * threadIdx.x;
    int at = 0;
    for (int width = 2; width <= warpSize; width *= 4) {
        for (int by = 0; by < 4; by += 3) {
            if (at < 16) {
                out[at++] = __shfl_sync(~0u, 100 + lane, by, width);
                out[at++] = __shfl_up_sync(~0u, 100ull + lane, by, width);
                out[at++] = (unsigned long long)((__shfl_down_sync(~0u, wide(lane), by, width) + 7) / 1.5) + 100;
                out[at++] = (unsigned long long)__shfl_xor_sync(~0u, 100.0f + lane, by, width);
            }
        }
    }
}
"#;

#[test]
fn shuffles_of_every_form_and_width() {
    let library = load(Language::default(), SHUFFLES);
    let found = run(&library, "shuffles", 2, 64, 16);
    for thread in 0..64 {
        let lane = thread % 32;
        let mut expected = Vec::new();
        for width in [2, 8, 32] {
            for by in [0, 3] {
                for form in 0..4 {
                    expected.push(100 + source(form, lane, by, width) as u64);
                }
            }
        }
        assert_eq!(found[16 * thread..][..16], expected[..16], "thread {thread}");
    }
}

const VOTES: &str = r#"
extern "C" __global__ void votes(unsigned long long *out) {
    const unsigned lane = threadIdx.x % 32;
    out += 12 * threadIdx.x;
    out[0] = __ballot_sync(~0u, lane % 3 == 0);
    out[1] = __any_sync(~0u, lane == 7) + 2 * __any_sync(~0u, lane > 40) + 4 * __all_sync(~0u, lane < 32) +
             8 * __all_sync(~0u, lane < 31);
    out[2] = __match_any_sync(~0u, lane / 5);
    int all;
    out[3] = __match_all_sync(~0u, 2.5, &all);
    out[3] += all;
    out[4] = __match_all_sync(~0u, lane / 31, &all);
    out[4] += all;
    out[5] = __reduce_add_sync(~0u, lane) + 1000 * __reduce_max_sync(~0u, lane) + 100000 * __reduce_min_sync(~0u, 5 + lane);
    out[6] = (unsigned)__reduce_min_sync(~0u, 3 - (int)lane) + (__reduce_xor_sync(~0u, 1u << lane) == ~0u) +
             (__reduce_and_sync(~0u, ~lane) == ~31u) + (__reduce_or_sync(~0u, lane) == 31);
    // Diverged: each side asks its own lanes, by masks and without.
    if (lane % 2) {
        out[7] = __activemask();
        out[8] = __ballot_sync(0xaaaaaaaa, lane > 16);
    } else {
        out[7] = __activemask();
        out[8] = __shfl_xor_sync(0x55555555, lane, 4);
    }
    __syncwarp();
    out[9] = lane < 5 ? __ballot(lane != 2) : __shfl_down(lane, 1);
    out[10] = 0;
    for (unsigned k = 0; k <= lane; ++k) {
        if (k == 30) out[10] = __activemask();
    }
    out[11] = __activemask();
}
extern "C" __global__ void wide(unsigned long long *out) {
    out[4 * threadIdx.x] = __ballot(threadIdx.x % 64 >= 40);
    out[4 * threadIdx.x + 1] = __shfl_xor(threadIdx.x, 63);
    out[4 * threadIdx.x + 2] = __popcll(__activemask());
    out[4 * threadIdx.x + 3] = __shfl(7 * threadIdx.x, 40) + warpSize;
}
"#;

#[test]
fn votes_matches_and_reductions() {
    let library = load(Language::default(), VOTES);
    let found = run(&library, "votes", 1, 64, 12);
    for thread in 0..64_usize {
        let lane = thread % 32;
        let of = |condition: &dyn Fn(usize) -> bool| {
            (0..32).filter(|&it| condition(it)).map(|it| 1_u64 << it).sum::<u64>()
        };
        let row = &found[12 * thread..][..12];
        assert_eq!(row[0], of(&|it| it % 3 == 0));
        assert_eq!(row[1], 1 + 4);
        assert_eq!(row[2], of(&|it| it / 5 == lane / 5));
        assert_eq!(row[3], 0xffff_ffff + 1);
        assert_eq!(row[4], 0);
        assert_eq!(row[5], 496 + 31_000 + 500_000);
        assert_eq!(row[6], u64::from((-28_i32 + 3) as u32));
        assert_eq!(row[7], if lane % 2 == 1 { 0xaaaa_aaaa } else { 0x5555_5555 });
        let sides = [lane as u64 ^ 4, of(&|it| it % 2 == 1 && it > 16)];
        assert_eq!(row[8], sides[lane % 2]);
        let down = if lane < 31 { lane + 1 } else { lane };
        assert_eq!(row[9], if lane < 5 { 0b11011 } else { down as u64 });
        assert_eq!(row[10], if lane >= 30 { 3 << 30 } else { 0 });
        assert_eq!(row[11], 0xffff_ffff);
    }
}

#[test]
fn a_warp_of_64_lanes() {
    let library = load(
        Language { warp_size: 64, hip: true, ..Language::default() },
        &VOTES[VOTES.find("extern \"C\" __global__ void wide").expect("it")..],
    );
    let found = run(&library, "wide", 1, 128, 4);
    for thread in 0..128_u64 {
        let row = &found[4 * thread as usize..][..4];
        let from = thread / 64 * 64 + 40;
        assert_eq!(row, [!0 << 40, thread ^ 63, 64, 7 * from + 64]);
    }
}

const GROUPS: &str = r#"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
struct Big { long long a, b, c; };

extern "C" __global__ void groups(unsigned long long *out) {
    const cg::thread_block block = cg::this_thread_block();
    const unsigned t = block.thread_rank();
    out += 12 * t;
    const auto tile = cg::tiled_partition<8>(block);
    out[0] = tile.thread_rank() + 10 * tile.size() + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size();
    out[1] = tile.ballot(t % 3 == 0) + 1000 * tile.shfl(t, 5) + 1000000 * tile.shfl_up(t, 2);
    out[2] = cg::reduce(tile, (int)t, cg::plus<int>()) + 1000 * cg::reduce(tile, (int)t, cg::greater<int>());
    out[3] = cg::inclusive_scan(tile, t) + 1000 * cg::exclusive_scan(tile, t);
    const Big big = tile.shfl_xor(Big{(long long)t, 2, 3 * (long long)t}, 1);
    out[4] = big.a * 100 + big.b * 10 + (big.c == 3 * big.a);
    const auto warp = cg::tiled_partition<32>(block);
    const auto part = cg::labeled_partition(warp, t % 32 / 10);
    out[5] = part.size() + 100 * part.thread_rank() + 10000 * part.shfl(t, 1);
    out[6] = cg::reduce(part, (int)t, cg::less<int>());
    out[7] = 0;
    if (t % 4 == 1) {
        const auto together = cg::coalesced_threads();
        out[7] = together.size() + 100 * together.thread_rank() + 10000 * together.shfl_down(t, 1) +
                 100000000ull * together.ballot(t % 32 > 16);
    }
    const cg::thread_group quarter = cg::tiled_partition(cg::thread_group(block), 4);
    out[8] = quarter.thread_rank() + 10 * quarter.size();
    quarter.sync();
    unsigned all;
    out[9] = tile.match_any(t % 2) + 1000 * warp.any(t == 7) + 10000 * warp.all(t < 64);
    out[10] = block.group_index().x + 10 * block.thread_index().x + cg::this_grid().is_valid();
    out[11] = cg::invoke_one_broadcast(tile, [&] { return t * 3; });
    (void)all;
}
extern "C" __global__ void grid(unsigned long long *out) {
    const cg::grid_group grid = cg::this_grid();
    const unsigned long long i = grid.thread_rank(), n = grid.num_threads();
    out[i] = i;
    for (int k = 0; k < 3; ++k) {
        grid.sync();
        const unsigned long long next = out[(i + 1) % n];
        grid.sync();
        out[i] = next + 1;
    }
}
"#;

#[test]
fn cooperative_groups() {
    let library = load(Language::default(), GROUPS);
    let found = run(&library, "groups", 1, 64, 12);
    for t in 0..64_u64 {
        let (rank, first) = (t % 8, t / 8 * 8);
        let mut expected = [0; 12];
        expected[0] = rank + 80 + 100 * (t / 8) + 80000;
        let votes: u64 = (0..8).filter(|it| (first + it) % 3 == 0).map(|it| 1 << it).sum();
        expected[1] = votes + 1000 * (first + 5) + 1_000_000 * if rank < 2 { t } else { t - 2 };
        expected[2] = (first..first + 8).sum::<u64>() + 1000 * (first + 7);
        expected[3] = (first..=t).sum::<u64>() + 1000 * (first..t).sum::<u64>();
        expected[4] = (t ^ 1) * 100 + 21;
        let (lane, warp) = (t % 32, t / 32 * 32);
        let begin = lane / 10 * 10;
        let size = if begin == 30 { 2 } else { 10 };
        expected[5] = size + 100 * (lane - begin) + 10000 * (warp + begin + 1);
        expected[6] = warp + begin;
        if t % 4 == 1 {
            let place = lane / 4;
            let down = if place < 7 { t + 4 } else { t };
            let above: u64 = (0..8).filter(|it| 4 * it + 1 > 16).map(|it| 1 << it).sum();
            expected[7] = 8 + 100 * place + 10000 * down + 100_000_000 * above;
        }
        expected[8] = t % 4 + 40;
        let same = if t % 2 == 0 { 0b0101_0101 } else { 0b1010_1010 };
        expected[9] = same + if t < 32 { 1000 } else { 0 } + 10000;
        expected[10] = 10 * t;
        expected[11] = first * 3;
        assert_eq!(found[12 * t as usize..][..12], expected, "thread {t}");
    }
}

#[test]
fn a_grid_meets_in_a_cooperative_launch() {
    let library = load(Language::default(), GROUPS);
    let mut array = vec![0; 5 * 40];
    let shape = Shape { grid: [5, 1, 1], block: [40, 1, 1], cooperative: true };
    launch(&library, "grid", &shape, &mut array).expect("it runs");
    assert!(array.iter().enumerate().all(|(i, &it)| it == (i as u64 + 3) % 200 + 3));
}

#[test]
fn assertions_and_traps_end_the_launch() {
    let library = load(
        Language::default(),
        r#"
#include <assert.h>
extern "C" __global__ void asserts(unsigned long long *out) {
    assert(out[0] != 5 || threadIdx.x != 3);
    out[1] = 7;
}
extern "C" __global__ void traps(unsigned long long *out) {
    if (threadIdx.x == 2) __trap();
}
#define NDEBUG
#include <cassert>
extern "C" __global__ void silent(unsigned long long *out) { assert(false); out[0] = 9; }
"#,
    );
    let shape = Shape { grid: [1, 1, 1], block: [8, 1, 1], cooperative: false };
    let failure = |name: &str, array: &mut [u64]| match launch(&library, name, &shape, array) {
        Err(Error::Kernel(failure)) => (failure.kind, failure.message),
        other => panic!("{other:?}"),
    };
    let (kind, text) = failure("asserts", &mut [5, 0]);
    assert_eq!(kind, FailureKind::Assert);
    for part in ["out[0] != 5 || threadIdx.x != 3", "thread 3", "kernel.cu:4"] {
        assert!(text.contains(part), "{text}");
    }
    let (kind, text) = failure("traps", &mut [0]);
    assert!(kind == FailureKind::Trap && text.contains("kernel.cu:8"), "{text}");
    let mut array = [4, 0];
    launch(&library, "asserts", &shape, &mut array).expect("it holds");
    assert_eq!(array[1], 7);
    launch(&library, "silent", &shape, &mut array).expect("no assertion");
    assert_eq!(array[0], 9);
}

#[test]
fn lanes_meet_in_one_operation() {
    let library = load(
        Language::default(),
        r#"
extern "C" __global__ void mixed(unsigned long long *out) {
    if (threadIdx.x < 16) out[0] = __shfl_sync(~0u, 1.5, 20);
    else out[1] = __ballot_sync(~0u, 1);
}
"#,
    );
    let shape = Shape { grid: [1, 1, 1], block: [32, 1, 1], cooperative: false };
    match launch(&library, "mixed", &shape, &mut [0, 0]) {
        Err(Error::Kernel(failure)) => {
            assert_eq!(failure.kind, FailureKind::Deadlock);
            for part in ["threads 0 to 15", "kernel.cu:3", "threads 16 to 31", "kernel.cu:4"] {
                assert!(failure.message.contains(part), "{}", failure.message);
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sleeping_threads_let_others_go_on() {
    let library = load(
        Language::default(),
        r#"
__device__ void wait(volatile unsigned long long *flag) { while (*flag == 0) __nanosleep(20); }
extern "C" __global__ void chain(volatile unsigned long long *out) {
    const int t = threadIdx.x;
    // Each waits for the next in a ring through all warps; the one in the middle begins.
    const int next = (t + 37) % 96;
    if (t != 50) wait(&out[next]);
    out[t] = t == 50 ? 1 : out[next] + 1;
}
"#,
    );
    let mut array = vec![0; 96];
    let shape = Shape { grid: [1, 1, 1], block: [96, 1, 1], cooperative: false };
    launch(&library, "chain", &shape, &mut array).expect("it runs");
    let mut thread = 50;
    for place in 1..=96 {
        assert_eq!(array[thread], place);
        thread = (thread + 96 - 37) % 96;
    }
}

#[test]
fn printf_returns_the_number_of_arguments() {
    let library = load(
        Language::default(),
        r#"
extern "C" __global__ void says(unsigned long long *out) {
    out[0] = printf("nothing\n");
    out[1] = printf("%d %s %5.2f%% %lld\n", 1, "two", 3.0, 4ll);
    out[2] = printf("%*d\n", 5, 6);
    out[3] = printf(nullptr) == -1;
    out[4] = printf("%600d\n", 7);
}
"#,
    );
    let mut array = vec![0; 5];
    let shape = Shape { grid: [1, 1, 1], block: [1, 1, 1], cooperative: false };
    launch(&library, "says", &shape, &mut array).expect("it runs");
    assert_eq!(array, [0, 4, 2, 1, 1]);
}

const DRAWS: &str = r#"
#include <curand_kernel.h>
template <class State> __device__ unsigned long long *draws(State *state, unsigned long long *out) {
    for (int k = 0; k < 6; ++k) *out++ = ((const unsigned int *)state)[k];
    for (int k = 0; k < 4; ++k) *out++ = curand(state);
    return out;
}
extern "C" __global__ void generators(unsigned long long *out) {
    const unsigned long long seed = threadIdx.x * 1000000007u;
    out += 24 * threadIdx.x;
    curandStateXORWOW_t xorwow;
    curand_init(seed, threadIdx.x, 1000, &xorwow);
    out = draws(&xorwow, out);
    curandStateMRG32k3a_t mrg;
    curand_init(seed, threadIdx.x, 1000, &mrg);
    out = draws(&mrg, out);
    curandStatePhilox4_32_10_t philox;
    curand_init(seed, 0, 4 * threadIdx.x, &philox);
    const uint4 block = curand4(&philox);
    *out++ = block.x, *out++ = block.y, *out++ = block.z, *out++ = block.w;
}
"#;

/// The generators of kernels have the same seeds, jumps and steps as the generators of arrays, which use the
/// crate `random`.
#[test]
fn generators_of_kernels_draw_what_those_of_arrays_do() {
    use random::{Generator, mrg32k3a, philox, xorwow};
    let library = load(Language::default(), DRAWS);
    let found = run(&library, "generators", 1, 64, 24);
    let seeds: Vec<u32> = (0..64_u32).map(|thread| thread.wrapping_mul(1_000_000_007)).collect();
    let states = |generator: Generator| {
        generator.seeded(&seeds, 1000).expect("memory").expect("a pseudo-random generator")
    };
    let (linear, recursive) = (states(Generator::Xorwow), states(Generator::Mrg32k3a));
    for (thread, &seed) in seeds.iter().enumerate() {
        let mut expected = Vec::new();
        let state = &linear[xorwow::WORDS * thread..][..6];
        expected.extend(state);
        let (mut weyl, mut v) = (state[0], [1, 2, 3, 4, 5].map(|word: usize| state[word]));
        for _ in 0..4 {
            xorwow::step(&mut v);
            weyl = weyl.wrapping_add(xorwow::WEYL);
            expected.push(v[4].wrapping_add(weyl));
        }
        let mut state = [0, 1, 2, 3, 4, 5].map(|word| recursive[mrg32k3a::WORDS * thread + word]);
        expected.extend(state);
        expected.extend((0..4).map(|_| mrg32k3a::word(mrg32k3a::step(&mut state))));
        expected.extend(philox::nth(thread as u64, seed.into()));
        let expected: Vec<u64> = expected.into_iter().map(u64::from).collect();
        assert_eq!(found[24 * thread..][..24], expected, "thread {thread}");
    }
}
