//! Compares random programs of barriers and warp operations with a model that is independent of the schedule.
//!
//! A kernel interprets a list of instructions. The model runs each instruction for all threads of a block
//! before the next one. They share only the list.

use crate::units::{Random, load_in};
use host_executor::{Kernel, Language, Schedule, Shape};
use std::ffi::c_void;
use std::sync::Arc;

/// Each instruction consists of three numbers: the operation and two parameters.
const TEXT: &str = r#"
#define LANE (thread % warpSize)
#define ALL ((decltype(__activemask()))-1)
__device__ int hash(int x, int y) {
    unsigned h = x * 0x9e3779b1u ^ y * 0x85ebca77u;
    return (h ^ h >> 15) & 0xffff;
}
// The lanes of the warp for which a condition holds, those of another one, and threads of some warps.
__device__ unsigned long long lanes_of(int p, bool chosen) {
    unsigned long long lanes = 0;
    for (int lane = 0; lane < warpSize; ++lane) lanes |= (unsigned long long)((lane % (p + 2) == 0) == chosen) << lane;
    return lanes;
}
__device__ unsigned long long halves(int thread, int p) {
    unsigned long long lanes = 0;
    for (int lane = 0; lane < warpSize; ++lane) {
        lanes |= (unsigned long long)(hash(thread / warpSize * warpSize + lane, p) % 2) << lane;
    }
    return lanes;
}
__device__ int warps_of(int p, int threads) {
    int count = 0;
    for (int thread = 0; thread < threads; ++thread) count += thread / warpSize % 2 == p % 2;
    return count;
}
__device__ __noinline__ void exchange(int *shared, int thread, int threads, int by, int &own) {
    shared[thread] = own;
    __syncthreads();
    own += shared[(thread + by) % threads];
    __syncthreads();
}
extern "C" __global__ void interpret(const int *program, int length, int *results) {
    __shared__ int shared[1024];
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int block = blockIdx.x;
    int own = hash(thread, block), *result = results + block * threads + thread;
    shared[thread] = 0;
    __syncthreads();
    for (int at = 0; at < length; at += 3) {
        const int p = program[at + 1], q = program[at + 2];
        switch (program[at]) {
        case 0: exchange(shared, thread, threads, p, own); break;
        case 1: own += __syncthreads_count(own & 1 << p % 5); break;
        case 2: own = 2 * own + __syncthreads_or(own % (p + 2) == 0); break;
        case 3: own = 2 * own + __syncthreads_and(own % (p + 2) != 0); break;
        case 4: own += __shfl_xor_sync(ALL, own, p); break;
        case 5: own ^= __shfl_up_sync(ALL, own, p, 1 << q % 6); break;
        case 6: own ^= __shfl_down_sync(ALL, own, p, 1 << q % 6); break;
        case 7: own += 3 * __shfl_sync(ALL, own, p + LANE * q); break;
        case 8: own += __popcll(__ballot_sync(ALL, own & 1)) * (p + 1); break;
        case 9: own = own * 4 + __any_sync(ALL, own % (p + 2) == 0) * 2 + __all_sync(ALL, own % 3 != 0); break;
        // Two parts of a warp meet apart from each other.
        case 10:
            if (LANE % (p + 2) == 0) own += __shfl_sync(lanes_of(p, true), own, 0);
            else own -= __shfl_xor_sync(lanes_of(p, false), own, q);
            break;
        // Lanes return.
        case 11: if (hash(thread, p) % 8 == 0) { *result = own; return; } break;
        // One barrier on two lines of the program.
        case 12:
            if (hash(thread, p) % 3) { own += 1; __syncthreads(); } else { __syncthreads(); own -= 1; }
            break;
        // Some warps meet at a barrier of their own, and some lanes run on.
        case 13: if (thread / warpSize % 2 == p % 2) __barrier_sync_count(1 + q % 15, warps_of(p, threads)); break;
        case 14: if (hash(thread, p) % 2) { __syncwarp(halves(thread, p)); own += 5; } break;
        case 15: own += __popcll(__match_any_sync(ALL, own % (p + 1))); break;
        case 16: for (int turn = 0; turn < p % 4; ++turn) exchange(shared, thread, threads, q + turn, own); break;
        default: own = own * 3 + p;
        }
        own &= 0xffffff;
    }
    *result = own;
}
"#;

/// The threads of a block, all at the same instruction.
struct Model {
    warp_size: usize,
    own: Vec<i32>,
    is_live: Vec<bool>,
    shared: Vec<i32>,
    results: Vec<i32>,
}

fn hash(x: usize, y: usize) -> i32 {
    let h = (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77);
    ((h ^ h >> 15) & 0xffff) as i32
}

impl Model {
    fn new(warp_size: usize, block: usize, threads: usize) -> Model {
        Model {
            warp_size,
            own: (0..threads).map(|thread| hash(thread, block)).collect(),
            is_live: vec![true; threads],
            shared: vec![0; threads],
            results: vec![0; threads],
        }
    }

    fn live(&self) -> Vec<usize> {
        (0..self.own.len()).filter(|&thread| self.is_live[thread]).collect()
    }

    /// Returns the live threads in the warp of `thread` for which `is_chosen` is true.
    fn warp(&self, thread: usize, is_chosen: impl Fn(usize) -> bool) -> Vec<usize> {
        let first = thread / self.warp_size * self.warp_size;
        let live = self.live().into_iter();
        live.filter(|it| (first..first + self.warp_size).contains(it) && is_chosen(*it)).collect()
    }

    /// Sets the value of each live thread to a function of the previous values.
    fn each(&mut self, value: impl Fn(&Model, usize, i32) -> i32) {
        let live = self.live();
        let new: Vec<i32> = live.iter().map(|&it| value(self, it, self.own[it])).collect();
        for (thread, new) in live.into_iter().zip(new) {
            self.own[thread] = new;
        }
    }

    /// Returns the value of a lane in the warp of `thread` if it is in `group`, otherwise the thread's own
    /// value.
    fn lane(&self, thread: usize, lane: usize, group: &[usize]) -> i32 {
        let from = thread / self.warp_size * self.warp_size + lane;
        self.own[if group.contains(&from) { from } else { thread }]
    }

    fn exchange(&mut self, by: usize) {
        for thread in self.live() {
            self.shared[thread] = self.own[thread];
        }
        self.each(|it, thread, own| own + it.shared[(thread + by) % it.shared.len()]);
    }

    fn count(&self, group: &[usize], is_counted: impl Fn(i32) -> bool) -> i32 {
        group.iter().filter(|&&it| is_counted(self.own[it])).count() as i32
    }

    fn run(&mut self, [instruction, p, q]: [usize; 3]) {
        let (size, number, all) = (self.warp_size, p as i32, |_| true);
        let from = move |thread: usize, form: usize| {
            let (lane, width) = (thread % size, 1 << (q % 6));
            let first = lane / width * width;
            match form {
                4 => lane ^ p,
                5 if lane >= first + p => lane - p,
                6 if lane + p < first + width => lane + p,
                7 => (p + lane * q) % size,
                _ => lane,
            }
        };
        match instruction {
            0 => self.exchange(p),
            1 => self.each(|it, _, own| own + it.count(&it.live(), |it| it & 1 << (p % 5) != 0)),
            2 => self.each(|it, _, own| {
                2 * own + i32::from(it.count(&it.live(), |it| it % (number + 2) == 0) > 0)
            }),
            3 => self.each(|it, _, own| {
                2 * own + i32::from(it.count(&it.live(), |it| it % (number + 2) == 0) == 0)
            }),
            4..=7 => self.each(|it, thread, own| {
                let other = it.lane(thread, from(thread, instruction), &it.warp(thread, all));
                match instruction {
                    4 => own + other,
                    7 => own + 3 * other,
                    _ => own ^ other,
                }
            }),
            8 => self.each(|it, thread, own| {
                own + it.count(&it.warp(thread, all), |it| it & 1 != 0) * (number + 1)
            }),
            9 => self.each(|it, thread, own| {
                let warp = it.warp(thread, all);
                let any = it.count(&warp, |it| it % (number + 2) == 0) > 0;
                let all = it.count(&warp, |it| it % 3 == 0) == 0;
                own * 4 + i32::from(any) * 2 + i32::from(all)
            }),
            10 => self.each(|it, thread, own| {
                let is_chosen = |thread: usize| (thread % size).is_multiple_of(p + 2);
                let part = it.warp(thread, |other| is_chosen(other) == is_chosen(thread));
                match is_chosen(thread) {
                    true => own + it.lane(thread, 0, &part),
                    false => own - it.lane(thread, (thread % size) ^ q, &part),
                }
            }),
            11 => {
                for thread in self.live().into_iter().filter(|&it| hash(it, p) % 8 == 0) {
                    self.results[thread] = self.own[thread];
                    self.is_live[thread] = false;
                }
            }
            12 => {
                self.each(|_, thread, own| if hash(thread, p) % 3 != 0 { own + 1 } else { own - 1 })
            }
            13 => {}
            14 => self.each(|_, thread, own| own + 5 * (hash(thread, p) % 2)),
            15 => self.each(|it, thread, own| {
                let key = |own: i32| own % (number + 1);
                own + it.count(&it.warp(thread, all), |other| key(other) == key(own))
            }),
            16 => (0..p % 4).for_each(|turn| self.exchange(q + turn)),
            _ => self.each(|_, _, own| own * 3 + number),
        }
        self.each(|_, _, own| own & 0xff_ffff);
    }

    fn finish(mut self) -> Vec<i32> {
        for thread in self.live() {
            self.results[thread] = self.own[thread];
        }
        self.results
    }
}

fn program(random: &mut Random) -> Vec<[usize; 3]> {
    // Barriers for some threads count them, so no thread may return early.
    let returns = random.below(2) == 0;
    let count = 1 + random.below(30);
    let instructions = (0..count).map(|_| {
        let instruction = match random.below(18) {
            11 if !returns => 17,
            13 if returns => 17,
            other => other,
        };
        [instruction, random.below(30), random.below(32)]
    });
    instructions.collect()
}

/// Runs programs on blocks of many shapes.
fn search(language: Language, programs: usize) {
    let library = load_in(language, TEXT);
    let kernel = Kernel::find(&library, "interpret").expect("the kernel");
    let mut random = Random(language.warp_size.into());
    for number in 0..programs {
        let list = program(&mut random);
        let block = [1 + random.below(48), 1 + random.below(5), 1 + random.below(4)];
        let (threads, blocks) = (block.iter().product::<usize>(), 3);
        let expected: Vec<i32> = (0..blocks)
            .flat_map(|block| {
                let mut model = Model::new(language.warp_size as usize, block, threads);
                list.iter().for_each(|&it| model.run(it));
                model.finish()
            })
            .collect();
        let numbers: Vec<i32> = list.iter().flatten().map(|&it| it as i32).collect();
        let mut results = vec![-1; blocks * threads];
        let (mut program, mut length) = (numbers.as_ptr(), numbers.len() as i32);
        let mut address = results.as_mut_ptr();
        let arguments: [*mut c_void; 3] =
            [(&raw mut program).cast(), (&raw mut length).cast(), (&raw mut address).cast()];
        let shape = Shape {
            grid: [blocks as u32, 1, 1],
            block: block.map(|it| it as u32),
            cooperative: false,
        };
        // SAFETY: the kernel takes these arguments, and stays inside the arrays.
        let done =
            unsafe { kernel.launch(&shape, &Schedule::default(), &arguments, &|| None::<Arc<_>>) };
        assert!(done.is_ok(), "program {number} {list:?} of {block:?}: {done:?}");
        assert!(results == expected, "program {number} {list:?} of {block:?}");
    }
}

#[test]
fn programs_of_warps_of_32_lanes_compute_what_the_model_does() {
    search(Language::default(), 300);
}

#[test]
fn programs_of_warps_of_64_lanes_compute_what_the_model_does() {
    search(Language { warp_size: 64, hip: true, ..Language::default() }, 100);
}
