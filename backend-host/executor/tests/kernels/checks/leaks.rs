//! A failing kernel abandons its fibres, so nothing on their stacks is dropped. The executor must not leak
//! memory because of that.

use super::run;
use crate::units::load_checked;
use host_executor::{Checks, FailureKind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The number of blocks that the thread has allocated and not freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a counter.
struct Counted;

// SAFETY: the system's allocator does the work; the counter does not have a destructor, so it lives as long as the
// thread.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - 1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn failures_leave_no_memory() {
    let library = load_checked(
        r#"
#include <assert.h>
#include <stdlib.h>
extern "C" {
__global__ void asserts(int *a, int n) { assert(n == 1); }
__global__ void traps(int *a, int n) { __trap(); }
__global__ void exits(int *a, int n) { exit(n); }
__global__ void divides(int *a, int n) { a[0] = 5 / n; }
__global__ void misses(int *a, int n) { *(int *)((char *)a + 2) = n; }
__global__ void frees(int *a, int n) { free(a); }
__global__ void parts(int *a, int n) {
    if (threadIdx.x < 1) __syncthreads();
    else __syncthreads();
}
__global__ void waits(int *a, int n) { asm volatile("barrier.sync 1, 64;"); }
__global__ void names(int *a, int n) { asm volatile("barrier.sync %0, 32;" :: "r"(n + 16)); }
__global__ void outside(int *a, int n) { a[n + 50] = 1; }
}
"#,
    );
    let kernels = [
        ("asserts", FailureKind::Assert),
        ("traps", FailureKind::Trap),
        ("exits", FailureKind::Trap),
        ("divides", FailureKind::Trap),
        ("misses", FailureKind::Address),
        ("frees", FailureKind::Address),
        ("parts", FailureKind::Divergence),
        ("waits", FailureKind::Deadlock),
        ("names", FailureKind::Unsupported),
        ("outside", FailureKind::Address),
    ];
    for (name, kind) in kernels {
        let mut array = [0; 32];
        let mut fail = || {
            let result = run(&library, name, (1, 32), &mut array, 0, Checks::ALL);
            let (found, message) = result.unwrap_or_else(|| panic!("{name} does not fail"));
            assert_eq!(found, kind, "{name}: {message}");
        };
        // The first launch allocates memory that is kept for the next ones.
        fail();
        let before = LIVE.get();
        (0..8).for_each(|_| fail());
        assert_eq!(LIVE.get() - before, 0, "{name}");
    }
}
