//! What CUDA's own run-time compiler takes and what it refuses: the same here.

mod units;

use cuda_c::Source;
use units::{compiler, load, load_checked, run};

/// The compiler's log, if it refuses a text.
fn refused(text: &str) -> Option<String> {
    let compiled = compiler().compile(&Source { text, name: "k.cu", ..Source::default() });
    compiled.err().map(|error| error.to_string())
}

#[test]
fn what_cuda_takes_with_a_warning_is_taken() {
    for text in [
        "__global__ void k(int *a) { int q[2] = {1, 2.5}; a[0] = q[0]; }",
        "__global__ void k(int *a) { int2 p = {threadIdx.x, 3.5f * threadIdx.y}; a[0] = p.x; }",
        "__global__ void k(float *a) { float4 f = {threadIdx.x, 1, 2.0, 3}; a[0] = f.x; }",
        "__global__ void k(int *a) { if (0 < a[0] < 5) a[0] = 1; }",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

#[test]
fn an_address_is_of_one_kind_of_memory() {
    let text = r#"
__constant__ int constants[3] = {1, 2, 3};
template <class T> __constant__ T of_template = 3;
__device__ int global, *allocated;
__device__ int kind(const void *p) {
    return __isGlobal(p) | __isShared(p) << 1 | __isLocal(p) << 2 | __isConstant(p) << 3;
}
extern "C" __global__ void kinds(int *a, int n) {
    __shared__ int s[64];
    extern __shared__ int dynamic[];
    static __constant__ double of_function = 2;
    int locals[4] = {n, n, n, n};
    if (threadIdx.x == 0) allocated = (int *)malloc(16);
    s[threadIdx.x] = kind(locals + 3) + 10 * kind(&locals[threadIdx.x % 4]);
    __syncthreads();
    a[threadIdx.x] = s[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int k[] = {kind(a), kind(a + 63), kind(&global), kind(allocated), kind(s), kind(s + 63), kind(dynamic),
                   kind(constants), kind(&constants[2]), kind(&of_template<int>), kind(&of_function), kind(k), kind(nullptr)};
        for (int i = 0; i < sizeof k / sizeof *k; ++i) a[i] = k[i];
        free(allocated);
    }
}
"#;
    for library in [load(text), load_checked(text)] {
        let mut array = vec![0; 64];
        run(&library, "kinds", 1, 64, &mut array);
        let expected = [1, 1, 1, 1, 2, 2, 2, 8, 8, 8, 8, 4, 1];
        assert_eq!(array[..expected.len()], expected);
        assert!(array[expected.len()..].iter().all(|it| *it == 44), "{array:?}");
    }
}
