//! Kernels with code that their statements do not show: operators, constructors, template functions, and
//! variables selected by conditional expressions. Both forms must compute the same.

use crate::units;
use host_executor::{Kernel, Schedule, Shape};

const THREADS: u32 = 45;

/// Runs `kernel` of a text in both forms. Thread `i` must leave `expected(i)`. Returns true if it has a loop
/// variant.
fn check(text: &str, expected: impl Fn(i32) -> i32) -> bool {
    let library = units::load(text);
    let kernel = Kernel::find(&library, "kernel").expect("the kernel");
    for fibers in [true, false] {
        let mut array: Vec<i32> = (0..THREADS as i32).map(|it| it * 7 + 3).collect();
        let schedule = Schedule { fibers, fill: Some(0x5a), ..Schedule::default() };
        units::launch_with(&kernel, &units::shape(1, THREADS), &schedule, &mut array)
            .unwrap_or_else(|error| panic!("{error}, fibers {fibers}\n{text}"));
        let expected: Vec<i32> = (0..THREADS as i32).map(&expected).collect();
        assert_eq!(array, expected, "fibers {fibers}\n{text}");
    }
    kernel.has_regions()
}

fn kernel(before: &str, body: &str) -> String {
    format!(
        "{before}\nextern \"C\" __global__ void kernel(int *a, int n) {{ \
         __shared__ int s[64]; int t = threadIdx.x; {body} }}"
    )
}

#[test]
fn functions_whose_names_are_not_in_front_of_a_parenthesis_know_their_thread() {
    for (before, value) in [
        ("template <int N> __device__ int of() { return threadIdx.x + N; }", "of<3>()"),
        (
            "template <class T, int N> __device__ T of() { return threadIdx.x + N; }\
             template <class T> struct Three { static const int value = 3; };",
            "of<int, Three<Three<int>>::value>()",
        ),
        (
            "struct V { int n; __device__ operator int() const { return n + threadIdx.x; } };",
            "({ V v = {3}; v; })",
        ),
    ] {
        let text = kernel(before, &format!("s[t] = {value}; __syncthreads(); a[t] = s[t];"));
        check(&text, |it| it + 3);
    }
    let conversion =
        "struct V { int n; __device__ operator int() const { return n + threadIdx.x; } };";
    let body = "V v = {3}; s[t] = v; __syncthreads(); a[t] = s[t];";
    assert!(check(&kernel(conversion, body), |it| it + 3));
    let operator = "struct V { int n; }; \
                    __device__ V operator+(V v, int n) { v.n += n + threadIdx.x; return v; }";
    let body = "V v = {2}; v = v + 1; s[t] = v.n; __syncthreads(); a[t] = s[t];";
    assert!(check(&kernel(operator, body), |it| it + 3));
    let constructor = "struct V { int n; __device__ V() { n = threadIdx.x; } };";
    check(&kernel(constructor, "V v; s[t] = v.n; __syncthreads(); a[t] = s[t];"), |it| it);
    check(&kernel("", "s[t] = ::threadIdx.x; __syncthreads(); a[t] = s[t];"), |it| it);
}

#[test]
fn what_a_loop_begins_with_is_done_by_each_thread() {
    let body = "int k = 0; for (s[t] = t; k < n - 44; ++k) __syncthreads(); a[t] = s[t];";
    check(&kernel("", body), |it| it);
    let body = "int k = 9; for (atomicAdd(a, 1); k < n; ++k) __syncthreads(); if (t) a[t] = k;";
    check(&kernel("", body), |it| if it == 0 { 48 } else { 45 });
}

#[test]
fn a_pointer_to_one_of_two_variables_outlives_a_barrier() {
    let body = "int k = a[t], m = k + 1, *p = &(t & 1 ? m : k); s[t] = t; __syncthreads(); a[t] = *p + s[0];";
    assert!(check(&kernel("", body), |it| it * 7 + 3 + it % 2));
    let before = "__device__ int *of(int &x) { return &x; }";
    let body =
        "int k = a[t], m = k + 1, *p = of((t & 1 ? m : k)); s[t] = t; __syncthreads(); a[t] = *p;";
    assert!(check(&kernel(before, body), |it| it * 7 + 3 + it % 2));
    for before in [
        "typedef int &Reference; __device__ int *of(Reference x) { return &x; }",
        "using Reference = int &; __device__ int *of(Reference x) { return &x; }",
        "template <class T> struct Of { typedef T &type; }; typedef Of<int>::type Reference; \
         __device__ int *of(Reference x) { return &x; }",
    ] {
        let body = "int k = a[t], *p = of(k); s[t] = t; __syncthreads(); a[t] = *p;";
        assert!(check(&kernel(before, body), |it| it * 7 + 3));
    }
}

/// If all threads had to reach the lock before one continues, none would continue.
#[test]
fn a_lock_is_given_back_before_another_thread_waits_for_it() {
    let before = "__device__ int lock;";
    let body = "for (int k = 0; k < 3; ++k) { s[t] = k; __syncthreads(); \
                while (atomicCAS(&lock, 0, 1)) ; if (n == k + 44) { atomicExch(&lock, 0); continue; } \
                a[t] += 1; atomicExch(&lock, 0); }";
    check(&kernel(before, body), |it| it * 7 + 3 + 2);
}

#[test]
fn a_class_that_points_into_itself_stays_where_it_is_made() {
    let before = "struct Stack { int items[4]; int *top; __device__ Stack() { top = items; } };";
    let body = "Stack q; *q.top = t; q.top = q.top + 1; s[t] = t; __syncthreads(); \
                *q.top = s[t] + 1; __syncthreads(); a[t] = q.items[0] + 3 * q.items[1];";
    check(&kernel(before, body), |it| it + 3 * (it + 1));
}

/// This is undefined behaviour, but works on every GPU: PyCUDA's example `select_to_list` relies on it.
#[test]
fn a_value_that_only_one_thread_assigns_is_that_of_all() {
    let body =
        "__shared__ int c; int *p; if (t == 0) { p = &c; *p = 5; } __syncthreads(); a[t] = *p;";
    assert!(!check(&kernel("", body), |_| 5));
    // Variables that every thread assigns before it reads them do not prevent a loop variant.
    let body = "int v, w, x; float f; if (t & 1) v = 3; else v = a[t]; do w = t; while (n < 0); f = w; \
                if (n < 0) return; for (x = 0; x < t; ++x) ; s[t] = v; __syncthreads(); \
                a[t] = s[t] + v + w + f + x;";
    assert!(check(&kernel("", body), |it| {
        let v = if it % 2 == 1 { 3 } else { it * 7 + 3 };
        2 * v + 3 * it
    }));
}

#[test]
fn a_kernel_whose_loop_variant_is_refused_leaves_it_to_the_others() {
    // The compiler knows that values of this type must not move.
    let text = r#"
struct Pinned { long one, two; __device__ Pinned() : one(threadIdx.x), two(3) {} };
extern "C" __global__ void refused(int *a, int n) {
    Pinned p;
    __syncthreads();
    a[threadIdx.x] = p.one + p.two;
}
extern "C" __global__ void taken(int *a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[(threadIdx.x + 1) % n];
}
"#;
    let library = units::load(text);
    let find = |name: &str| Kernel::find(&library, name).expect("the kernel");
    assert!(!find("refused").has_regions() && find("taken").has_regions());
    let mut array = vec![0; THREADS as usize];
    units::run(&library, "refused", 1, THREADS, &mut array);
    units::run(&library, "taken", 1, THREADS, &mut array);
    let expected = |it: u32| ((it + 1) % THREADS + 3) as i32;
    assert_eq!(array, (0..THREADS).map(expected).collect::<Vec<_>>());
}

/// GCC 12 computes an address in the loop variant that is too far from the shared array for a linker.
#[test]
fn a_kernel_whose_loop_variant_cannot_be_linked_compiles() {
    let library = units::load(
        r#"
extern "C" __global__ void chain(int *out, const int *in, int n) {
    __shared__ int s[256];
    int t = threadIdx.x, g = blockIdx.x * blockDim.x + t;
    int r;
    if (t < 10) r = 1; else if (t < 20) r = in[g]; else if (t < n) r = 2; else r = 3;
    s[t] = r;
    __syncthreads();
    if (t < 5) out[g] = s[t]; else out[g] = s[63 - t];
}
"#,
    );
    let kernel = Kernel::find(&library, "chain").expect("the kernel");
    let (mut out, input, mut n) = (vec![0; 64], (0..64).collect::<Vec<i32>>(), 30);
    let (mut to, mut from) = (out.as_mut_ptr(), input.as_ptr());
    let arguments = [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut n).cast()];
    let shape = Shape { grid: [1; 3], block: [64, 1, 1], cooperative: false };
    // SAFETY: the kernel takes these arguments, and stays inside the arrays.
    let done = unsafe { kernel.launch(&shape, &Schedule::default(), &arguments, &|| None) };
    done.unwrap_or_else(|error| panic!("{error}"));
    let kept = |t: i32| match t {
        0..10 => 1,
        10..20 => t,
        20..30 => 2,
        _ => 3,
    };
    let expected = |t: i32| kept(if t < 5 { t } else { 63 - t });
    assert_eq!(out, (0..64).map(expected).collect::<Vec<_>>());
}

#[test]
fn inline_ptx_may_ask_for_the_thread_and_wait() {
    let index =
        "__device__ int index() { int i; asm(\"mov.u32 %0, %%tid.x;\" : \"=r\"(i)); return i; }";
    let body = "s[t] = index() + 3; __syncthreads(); a[t] = s[t];";
    assert!(!check(&kernel(index, body), |it| it + 3));
    let wait = "__device__ void wait() { asm volatile(\"bar.sync 0;\" ::: \"memory\"); }";
    let body = "s[t] = t; wait(); int other = s[n - 1 - t]; __syncthreads(); a[t] = other;";
    assert!(!check(&kernel(wait, body), |it| THREADS as i32 - 1 - it));
    let unused = "__device__ void fence() { asm volatile(\"membar.gl;\" ::: \"memory\"); }";
    let body = "s[t] = t; __syncthreads(); a[t] = s[n - 1 - t];";
    assert!(check(&kernel(unused, body), |it| THREADS as i32 - 1 - it));
}
