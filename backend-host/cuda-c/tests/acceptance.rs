//! What CUDA's own run-time compiler takes and what it refuses: the same here.

mod units;

use cuda_c::Source;
use units::compiler;

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
