//! Tests kernels that the program ends, or interrupts and lets continue.

#[path = "kernels/units.rs"]
mod units;

use host_executor::{Error, FailureKind, Kernel, Library, Schedule, Shape};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::load;

const TEXT: &str = r#"
#include <cooperative_groups.h>
extern "C" {
// What a function reads makes no loop one that lets other threads run.
__device__ int read(volatile int *flag) { return *flag; }
__global__ void spins(int *place) { while (read(place) == 0); }
__global__ void spins_in_some(int *place) { if (blockIdx.x % 3 == 1) while (read(place) == 0); }
__global__ void takes_turns(volatile int *flag) { if (blockIdx.x % 3 == 1) while (*flag == 0); }
// A thread waits for what another thread of its block would write.
__global__ void waits_for_another(volatile int *flag) {
    __shared__ int written;
    if (threadIdx.x == 0) while (*(volatile int *)&written != 2);
    else written = 1;
}
__global__ void synchronizes(volatile int *flag) { while (*flag == 0) __syncthreads(); }
__global__ void shuffles(volatile int *flag) { while (__shfl_sync(~0u, *flag, 0) == 0); }
__global__ void sleeps(volatile int *flag) { while (*flag == 0) __nanosleep(100); }
__global__ void calls_the_library(volatile int *flag) { while (*flag == 0) { free(malloc(100)); *(flag + 1) += 1; } }
__global__ void waits_for_the_grid(volatile int *flag) {
    if (blockIdx.x == 1) while (*flag == 0);
    cooperative_groups::this_grid().sync();
}
// A lock that nobody gives back, in front of a barrier.
__global__ void takes_a_lock(int *flag) {
    __shared__ int squares[64];
    squares[threadIdx.x] = threadIdx.x * threadIdx.x;
    while (atomicCAS(flag, 1, 0) == 0);
    __syncthreads();
    flag[1 + threadIdx.x] = squares[blockDim.x - 1 - threadIdx.x];
}
// Registers of all kinds are in use wherever it is interrupted.
__global__ void computes(volatile int *flag) {
    double sum = threadIdx.x;
    unsigned long words[4] = {1, 2, 3, threadIdx.x};
    for (unsigned turn = 0;; ++turn) {
        if (turn % 1000 == 0) { sum = threadIdx.x; for (int k = 0; k < 4; ++k) words[k] = k + threadIdx.x; }
        sum = sum * 0.5 + threadIdx.x;
        for (int k = 0; k < 4; ++k) words[k] = words[k] * 6364136223846793005ul + 1442695040888963407ul;
        if (turn % 1000 == 999 && *flag) break;
    }
    flag[1 + threadIdx.x] = (int)(words[0] >> 40 ^ words[3] >> 33) + (int)sum;
}
}
"#;

fn library() -> Arc<Library> {
    static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| load(TEXT)).clone()
}

fn pool() -> Option<Arc<rayon_core::ThreadPool>> {
    let threads = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    Some(Arc::new(threads))
}

/// Launches a kernel with a flag and space for results. `is_interrupted` is called with the flag.
fn launch(
    name: &str,
    grid: u32,
    block: u32,
    is_interrupted: &dyn Fn(*mut i32) -> bool,
) -> (host_executor::Result<()>, Vec<i32>) {
    let kernel = Kernel::find(&library(), name).expect("the kernel");
    let mut array = vec![0; 1 + block as usize];
    let flag = array.as_mut_ptr();
    let mut address = flag;
    let arguments = [(&raw mut address).cast::<c_void>()];
    let cooperative = name == "waits_for_the_grid";
    let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], cooperative };
    let schedule = Schedule::default();
    let is_interrupted = || is_interrupted(flag);
    // SAFETY: the kernels take a pointer to a flag and a number for each thread.
    let result = unsafe {
        kernel.launch_interruptibly(&shape, &schedule, &arguments, &pool, &is_interrupted)
    };
    (result, array)
}

#[test]
fn a_kernel_without_an_end_is_ended() {
    for (name, grid, block) in [
        ("spins", 1, 1),
        ("spins", 100, 40),
        ("spins_in_some", 100, 3),
        ("takes_turns", 100, 3),
        ("waits_for_another", 2, 33),
        ("synchronizes", 4, 64),
        ("shuffles", 1, 32),
        ("sleeps", 2, 5),
        ("calls_the_library", 2, 2),
        ("waits_for_the_grid", 3, 4),
        ("takes_a_lock", 2, 64),
    ] {
        let asked = Cell::new(0);
        let (result, _) = launch(name, grid, block, &|_| {
            asked.set(asked.get() + 1);
            asked.get() == 2
        });
        match result {
            Err(Error::Kernel(failure)) => {
                assert_eq!(failure.kind, FailureKind::Interrupted, "{name}: {failure}");
                assert!(failure.message.contains(name), "{failure}");
            }
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(asked.get(), 2, "{name}");
        // The abandoned threads run other blocks.
        let (result, array) = launch("computes", 1, 8, &|flag| {
            // SAFETY: the kernel reads the flag as volatile.
            unsafe { flag.write_volatile(1) };
            false
        });
        assert!(result.is_ok());
        assert_eq!(array[1..], results(8));
    }
}

/// Returns the results of the kernel `computes`.
fn results(threads: usize) -> Vec<i32> {
    let result = |thread: usize| {
        let (mut sum, mut words) = (thread as f64, [0, 1, 2, 3].map(|it| it + thread as u64));
        for _ in 0..1000 {
            sum = sum * 0.5 + thread as f64;
            words = words.map(|it| {
                it.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
            });
        }
        ((words[0] >> 40 ^ words[3] >> 33) as i32).wrapping_add(sum as i32)
    };
    (0..threads).map(result).collect()
}

#[test]
fn a_kernel_that_is_not_to_end_goes_on_where_it_was() {
    for block in [1, 64] {
        let asked = Cell::new(0);
        let (result, array) = launch("computes", 1, block, &|flag| {
            asked.set(asked.get() + 1);
            if asked.get() == 5 {
                // SAFETY: the kernel reads the flag as volatile.
                unsafe { flag.write_volatile(1) };
            }
            false
        });
        assert!(result.is_ok(), "{result:?}");
        assert!(asked.get() >= 5);
        assert_eq!(array[1..], results(block as usize));
    }
}

#[test]
fn threads_end_their_own_kernels() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let asked = Cell::new(0);
                let (result, _) = launch("spins", 3, 2, &|_| {
                    asked.set(asked.get() + 1);
                    asked.get() > thread
                });
                assert!(matches!(result, Err(Error::Kernel(_))));
                assert_eq!(asked.get(), thread + 1);
            });
        }
    });
}

#[test]
fn a_child_that_a_handler_forks_ends_a_launch_on_several_threads() {
    for name in ["spins_in_some", "waits_for_the_grid"] {
        let child = Cell::new(None);
        let (result, _) = launch(name, 100, 1, &|_| {
            if child.get().is_none() {
                // SAFETY: the child calls only this executor and `_exit`.
                child.set(Some(unsafe { libc::fork() }));
            }
            // The parent's kernel ends; the child's would continue.
            child.get() != Some(0)
        });
        let Err(Error::Kernel(failure)) = result else { panic!("{name}: {result:?}") };
        if child.get() == Some(0) {
            let is_told =
                failure.kind == FailureKind::Interrupted && failure.message.contains("forked");
            // SAFETY: the child exits here.
            unsafe { libc::_exit(if is_told { 7 } else { 1 }) };
        }
        let child = child.get().expect("the program was asked");
        let mut status = 0;
        // SAFETY: a child of this process that has not been waited for.
        let mut has_ended =
            || unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child;
        let mut pauses = (0..6000).map(|_| std::thread::sleep(Duration::from_millis(10)));
        if !pauses.any(|()| has_ended()) {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("{name}: the child hangs");
        }
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{name}: {status}");
    }
}
