//! Arithmetic, alignment, and constructors of variables.

use super::{OTHERS, found, load, run};
use host_executor::{Checks, FailureKind};

#[test]
fn divisions_by_zero_and_addresses_that_are_not_aligned_are_found() {
    let library = load(
        r#"
extern "C" __global__ void divide(int *a, int n) { a[threadIdx.x] = 10 / (n - (int)threadIdx.x); }
extern "C" __global__ void modulo(unsigned *a, unsigned n) { a[0] = 10u % (n - threadIdx.x); }
extern "C" __global__ void vector(char *a, int n) {
    float4 *v = (float4 *)(a + (16 - (size_t)a % 16) % 16 + n);
    v->x = 1;
}
extern "C" __global__ void integer(char *a, int n) { *(int *)(a + n) = 1; }
extern "C" __global__ void cached(char *a, int n) {
    int v =
        __ldg((const int *)(a + n));
    __stcg((int *)(a + n), v);
}
extern "C" __global__ void atomic(char *a, int n) {
    atomicAdd((unsigned *)(a + n), 1);
    atomicExch((unsigned long long *)a, 1ull);
    atomicCAS((unsigned short *)(a + n), (unsigned short)1, (unsigned short)2);
}
struct __attribute__((packed)) Packed { char kind; volatile int value; };
extern "C" __global__ void packed(Packed *a, int n) { if (threadIdx.x == 0) a->value = n; }
struct __attribute__((aligned(64))) Wide { int value; };
extern "C" __global__ void wide(char *a, int n) { ((Wide *)(a + (80 - (size_t)a % 64) % 64 + n))->value = 1; }
"#,
    );
    let mut array = vec![0; 48];
    let mut run = |name, number| run(&library, name, (1, 8), &mut array, number, OTHERS);
    assert_eq!(run("divide", 8), None);
    let texts = ["thread (5, 0, 0) divides by zero, in kernel.cu:2"];
    found(run("divide", 5), FailureKind::Trap, &texts);
    assert_eq!(run("modulo", 9), None);
    found(run("modulo", 3), FailureKind::Trap, &["thread (3, 0, 0)", "kernel.cu:3"]);
    assert_eq!(run("vector", 16), None);
    let texts = ["thread (0, 0, 0) accesses", "float4", "kernel.cu:6", "not a multiple of 16"];
    found(run("vector", 4), FailureKind::Address, &texts);
    assert_eq!(run("integer", 4), None);
    found(
        run("integer", 2),
        FailureKind::Address,
        &["'int'", "kernel.cu:8", "not a multiple of 4"],
    );
    assert_eq!(run("cached", 4), None);
    let texts = ["thread (0, 0, 0) accesses", "in kernel.cu:11", "not a multiple of 4"];
    found(run("cached", 6), FailureKind::Address, &texts);
    assert_eq!(run("atomic", 8), None);
    let texts =
        ["accesses 4 bytes at", "by an atomic operation, in kernel.cu:15", "not a multiple of 4"];
    found(run("atomic", 9), FailureKind::Address, &texts);
    assert_eq!(run("packed", 4), None);
    // 16 bytes behind a multiple of 64: a GPU accesses at most 16 bytes at a time.
    assert_eq!(run("wide", 0), None);
    found(run("wide", 8), FailureKind::Address, &["kernel.cu:22", "not a multiple of 64"]);
    let without = Checks { arithmetic: false, ..OTHERS };
    assert_eq!(super::run(&library, "atomic", (1, 8), &mut [0; 24], 9, without), None);
}

#[test]
fn constructors_of_variables_run_when_the_unit_is_loaded() {
    let library = load(
        r#"
struct Table {
    int *rows, values[64], copies[64];
    Table() : rows(new int[8]) {
        for (int i = 0; i < 64; ++i) values[i] = i;
        memcpy(copies, values, sizeof values);
        memmove(values + 1, values, 63 * sizeof(int));
        memset(values + 60, 0, 4 * sizeof(int));
        rows[7] = atomicAdd(&values[1], 40);
    }
    ~Table() { delete[] rows; }
};
__device__ Table table;
extern "C" __global__ void read(int *a, int n) {
    a[threadIdx.x] = table.values[threadIdx.x] + 100 * table.copies[threadIdx.x];
}
"#,
    );
    let mut array = vec![0; 64];
    assert_eq!(run(&library, "read", (1, 64), &mut array, 0, Checks::ALL), None);
    let values = [0, 40].into_iter().chain(1..59).chain([0; 4]);
    let expected: Vec<i32> = values.zip(0..).map(|(value, copy)| value + 100 * copy).collect();
    assert_eq!(array, expected);
}
