//! Threads that access one place through two pointers, or keep their own array. Vectorised code that runs
//! several threads must keep the order of each thread's accesses. Expected values are computed by hand.

use crate::units::load;
use host_executor::{Kernel, Library, Schedule, Shape};
use std::ffi::c_void;

const TEXT: &str = r#"
struct Pair { int x, y; };
extern "C" {
__global__ void store_between(Pair *a, Pair *b, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i].x = i + 1;
    int seen = b[i].x;
    a[i].y = 2 * seen;
    out[i] = seen;
}
__global__ void load_between(Pair *a, Pair *b, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int before = b[i].x;
    a[i].y = i + 1;
    out[i] = b[i].y + before;
}
__global__ void elements_between(int *a, int *b, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[2 * i] = i + 1;
    int seen = b[2 * i];
    a[2 * i + 1] = seen;
    out[i] = b[2 * i + 1];
}
__global__ void own_array(int *places, int *same_places, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int own[8];
    own[places[i] & 7] = i + 1;
    out[i] = own[same_places[i] & 7];
}
}
"#;

const THREADS: u32 = 1000;

/// Runs a kernel with one array as its first two arguments, and returns the third one.
fn results(library: &std::sync::Arc<Library>, name: &str) -> Vec<i32> {
    let kernel = Kernel::find(library, name).expect("the kernel");
    // Neighbouring threads of `own_array` use the same place, and places change.
    let mut twice: Vec<i32> = (0..2 * THREADS as i32).map(|i| i / 3).collect();
    if name != "own_array" {
        twice.fill(0);
    }
    let mut out = vec![0; THREADS as usize];
    let (mut first, mut third) = (twice.as_mut_ptr(), out.as_mut_ptr());
    let mut second = first;
    let arguments: [*mut c_void; 3] =
        [(&raw mut first).cast(), (&raw mut second).cast(), (&raw mut third).cast()];
    let shape = Shape { grid: [4, 1, 1], block: [THREADS / 4, 1, 1], cooperative: false };
    // SAFETY: the kernels take these pointers, and stay inside the arrays.
    unsafe { kernel.launch(&shape, &Schedule::default(), &arguments, &|| None) }.expect("it runs");
    out
}

#[test]
fn accesses_of_a_thread_keep_their_order_in_vectors() {
    let library = load(TEXT);
    let expected: Vec<i32> = (1..=THREADS as i32).collect();
    for name in ["store_between", "load_between", "elements_between", "own_array"] {
        assert_eq!(results(&library, name), expected, "{name}");
    }
}
