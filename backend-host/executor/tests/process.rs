//! Tests of events that would end the process, and of forked children.

#[path = "kernels/units.rs"]
mod units;

use host_executor::{
    Allocation, Checking, Checks, Error, FailureKind, Kernel, Library, Memory, Source,
};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use units::{compiler, failure, load, load_checked, pointer, run, shape};

#[test]
fn functions_that_end_the_process_end_the_launch() {
    let library = load(
        r#"
#include <exception>
#include <vector>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
struct Base { virtual void f() = 0; Base() { g(); } __attribute__((noinline)) void g() { f(); } };
struct Derived : Base { void f() override {} };
extern "C" {
__global__ void exits(int *a) { if (threadIdx.x == 2) exit(a[0]); }
__global__ void aborts(int *a) { __syncthreads(); if (threadIdx.x == 2) abort(); }
__global__ void raises(int *a) { __syncthreads(); if (threadIdx.x == 2) raise(a ? SIGSEGV : 0); }
__global__ void terminates(int *a) { if (threadIdx.x == 2) std::terminate(); }
__global__ void throws(int *a) {
    std::vector<int> some(4);
    __syncthreads();
    a[threadIdx.x] = some.at(threadIdx.x + 2);
}
__global__ void calls_nothing(int *a) { Derived it; a[0] = sizeof it; }
__global__ void leaves_the_thread(int *a) { if (blockIdx.x == 40) pthread_exit(a); }
typedef struct { static const int offset = 0; } Unnamed;
__global__ void stays(int *a, int n) {
    __shared__ int one;
    int *set_by_one;
    if (threadIdx.x == 1) { set_by_one = &one; one = 1; }
    __syncthreads();
    if (threadIdx.x < n) a[threadIdx.x] = threadIdx.x - 1 + atomicAdd(set_by_one, 0) + Unnamed::offset;
}
}
"#,
    );
    for (name, grid, what) in [
        ("exits", 1, "exit was called, which would end the process, in thread 2"),
        ("aborts", 1, "abort was called"),
        ("raises", 1, "signal 11, which the kernel has raised"),
        ("terminates", 1, "std::terminate was called"),
        // The message depends on the C++ library.
        ("throws", 1, "the process"),
        ("calls_nothing", 1, "the process"),
        ("leaves_the_thread", 1000, "pthread_exit was called"),
        ("throws", 1000, "the process"),
    ] {
        let (kind, message) = failure(&library, name, grid, 32);
        assert_eq!(kind, FailureKind::Trap, "{message}");
        assert!(message.starts_with(&format!("kernel {name} failed in block (")), "{message}");
        assert!(message.contains(what), "{message}");
        let mut array = vec![0; 32];
        run(&library, "stays", 2, 32, &mut array);
        assert_eq!(array[31], 31);
    }
}

/// Returns the error of loading a text's unit.
fn refused(text: &str) -> String {
    let compiled = compiler().compile(&Source { text, name: "k.cu", ..Source::default() });
    // SAFETY: the text belongs to this test.
    match unsafe { Library::load(&compiled.expect("it compiles").library) } {
        Err(Error::NotAUnit(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn initialisers_of_variables_run_and_their_faults_are_errors() {
    let first =
        "struct Sum { int of; Sum(int n) { of = 0; for (int i = 0; i <= n; ++i) of += i; } };
        __device__ int limit = 10; __device__ volatile int nothing = 0;
        __device__ Sum sum(limit);";
    let kernel = "extern \"C\" __global__ void reads(int *a) { a[0] = sum.of; }";
    let mut array = [0];
    run(&load(&format!("{first}{kernel}")), "reads", 1, 1, &mut array);
    assert_eq!(array, [55]);
    for (initialiser, what) in [
        ("*(volatile int *)8", "an access to address 0x8"),
        ("(__syncthreads(), abort(), 1)", "abort was called"),
    ] {
        let message = refused(&format!(
            "#include <stdlib.h>\n{first}__device__ int bad = {initialiser};{kernel}"
        ));
        assert!(message.contains("the initialisation of variables failed: "), "{message}");
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn functions_that_the_system_s_loader_would_choose_are_refused() {
    let message = refused(
        r#"
extern "C" void chosen() {}
extern "C" void (*choose())() { *(volatile int *)8 = 1; return chosen; }
extern "C" void called() __attribute__((ifunc("choose")));
extern "C" __global__ void calls() { called(); }
"#,
    );
    assert!(message.contains("called is chosen when the unit is loaded"), "{message}");
}

#[test]
fn destructors_run_when_a_unit_goes_and_their_faults_end_no_process() {
    let text = r#"
#include <stdlib.h>
__device__ int *written;
__device__ volatile int nothing = 0;
struct Last {
    int number;
    Last(int number) : number(number) {}
    ~Last() { if (written) written[number] = number; END }
};
__device__ Last one(1), two(2), three(3);
extern "C" __global__ void notes(int *a) { written = a; }
"#;
    for end in ["", "if (number == 2) exit(7);", "abort();", "number /= nothing;", "*(int *)8 = 1;"]
    {
        let library = load(&text.replace("END", end));
        let mut array = [0; 4];
        run(&library, "notes", 1, 1, &mut array);
        drop(library);
        assert_eq!(array, [0, 1, 2, 3], "{end}");
    }
}

#[test]
fn a_kernel_says_how_much_constant_memory_its_unit_has() {
    // The first two results are the same as with an H100's driver.
    for (text, bytes) in [
        ("__constant__ char c[3]; __constant__ double e;", 16),
        (
            "__constant__ float a[10]; __constant__ double b[3]; __device__ float d[100];
             __constant__ const int k[5] = {1, 2, 3, 4, 5};",
            84,
        ),
        (
            "namespace n { __constant__ short a, *b; namespace { __device__ __constant__ int c[2][3] = {}; } }
             template <class T, int N> struct Row { T it[N]; };
             static __constant__ Row<int, 3> row = {{1, 2, 3}}, rows[2];
             __constant__ struct Named { int a; char b; } pair;
             extern \"C\" { __constant__ char last = 'x'; }
             __constant__ int aligned __attribute__((aligned(64))); struct S { int f(int, int); };",
            // 2, to 16, to 40; to 52, to 76; to 84; to 85; from 128 on.
            132,
        ),
    ] {
        let library = load(&format!("{text} extern \"C\" __global__ void none(int *a) {{ a[0] = 1; }}"));
        let kernel = Kernel::find(&library, "none").expect("the kernel");
        assert_eq!(kernel.constant_bytes(), bytes, "{text}");
    }
}

struct Everything;

impl Memory for Everything {
    fn live(&self, _: usize) -> Option<Range<usize>> {
        Some(0..usize::MAX)
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        None
    }
}

fn run_checked(library: &Arc<Library>, name: &str) -> host_executor::Result<()> {
    let kernel = Kernel::find(library, name).expect("the kernel");
    let mut array = [1; 64];
    let mut address = array.as_mut_ptr();
    let checking = Checking { checks: Checks::ALL, memory: &Everything, shared_bytes: 0 };
    // SAFETY: the kernels take a pointer to numbers.
    unsafe { kernel.launch_checked(&shape(1, 1), &checking, &[pointer(&mut address)], &|| false) }
}

/// Runs `body` in a forked child, which an alarm ends if it hangs. Returns true if `body` returned true
/// there.
fn in_a_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs kernels, which is allowed after a fork, and exits without its parent's handlers.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            libc::_exit(i32::from(!body()));
        }
        let mut status = -1;
        libc::waitpid(child, &raw mut status, 0);
        status == 0
    }
}

#[test]
fn a_forked_child_runs_kernels_on_threads_of_its_own() {
    const THREADS: usize = 24;
    let library =
        load("extern \"C\" __global__ void bad(int *a) { *(volatile int *)0x18 = a[0]; }");
    let (ready, done) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let fails = || failure(&library, "bad", 1, 1).1.contains("0x18");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                assert!(fails());
                ready.wait();
                done.wait();
            });
        }
        ready.wait();
        let all_fail = || (0..THREADS).all(|_| fails());
        // The system gives new threads the numbers of threads that the child does not have.
        let of_child = in_a_child(|| {
            all_fail()
                && std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(fails)).collect();
                    threads.into_iter().all(|it| it.join().unwrap_or(false))
                })
        });
        done.wait();
        assert!(of_child);
    });
}

#[test]
fn a_forked_child_finds_what_kernels_allocate_whole() {
    let library = load_checked(
        "__device__ int *kept;
         extern \"C\" __global__ void keeps(int *a) { kept = (int *)malloc(40); kept[9] = a[0]; }
         extern \"C\" __global__ void reads(int *a) { a[0] = kept[9]; free(kept); }
         extern \"C\" __global__ void churns(int *a) {
             for (int i = 0; i < 300; ++i) { int *x = (int *)malloc(4); *x = 1; a[0] = *x; free(x); }
         }",
    );
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                run_checked(&library, "churns").expect("it runs");
            }
        });
        let is_whole = || {
            // The parent's memory is also live in the child.
            let of_child = in_a_child(|| {
                run_checked(&library, "reads").is_ok() && run_checked(&library, "churns").is_ok()
            });
            run_checked(&library, "keeps").is_ok() && of_child
        };
        let kept = run_checked(&library, "keeps");
        let are_whole = (0..20).all(|_| is_whole());
        is_done.store(true, Ordering::Release);
        assert!(kept.is_ok() && are_whole);
    });
}

#[test]
fn a_forked_child_loads_units_while_threads_of_its_parent_do() {
    let text = "extern \"C\" __global__ void sets(int *a) { a[0] = 7; }";
    let compiled = compiler().compile(&Source { text, name: "k.cu", ..Source::default() });
    let unit = compiled.expect("it compiles").library;
    // SAFETY: the text belongs to this test.
    let loads = || unsafe { Library::load(&unit) }.is_ok();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    assert!(loads());
                }
            });
        }
        let all_load = (0..60).all(|_| in_a_child(loads));
        is_done.store(true, Ordering::Release);
        assert!(all_load);
    });
}
