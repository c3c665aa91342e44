//! Tests which kernels get a loop variant. The texts are preprocessed.

use super::program::waits;
use crate::declarations::{Choices, Unit, unit};
use crate::tokens::Tokens;
use host_executor::{Compiler, Language, Source};
use std::collections::HashSet;

/// Returns true if a kernel in the text has a loop variant.
fn has_form(text: &str) -> bool {
    of(text).has_variants
}

/// Compiles a text with loop variants.
fn of(text: &str) -> Unit {
    let words = [
        ("__global__", "__gpuarray_global__"),
        ("__device__", "__gpuarray_variable__"),
        ("__shared__", "thread_local"),
    ];
    let text = words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    unit(&format!("# 1 \"kernel.cu\"\n{text}"), &[], &Choices::all(), false).expect("a unit")
}

/// Returns a kernel with the given body, preceded by a text.
fn kernel(before: &str, body: &str) -> String {
    format!(
        "{before}\n__global__ void k(int *a, int n) {{ __shared__ int s[64]; int t = threadIdx.x; {body} }}"
    )
}

#[test]
fn kernels_of_known_statements_have_a_loop_variant() {
    let function = "__device__ int f(int x) { return x + 1; }";
    for (before, body) in [
        ("", "s[t] = a[t]; __syncthreads(); a[t] = s[n - t];"),
        ("", "for (int k = 0; k < n; ++k) { s[t] = k; __syncthreads(); }"),
        ("", "int k = 9; while (k > 0) { __syncthreads(); k /= 2; }"),
        ("", "if (n > 2) __syncthreads(); else { s[t] = 1; } a[t] = s[0];"),
        ("", "for (;;) { __syncthreads(); if (n == 3) break; }"),
        ("", "if (t >= n) return; __syncthreads(); a[t] = t;"),
        ("", "float4 v = make_float4(t, 0, 0, 0); __syncthreads(); a[t] = v.x;"),
        ("", "int b[4] = {0}, *p = b; __syncthreads(); a[t] = p[1];"),
        ("", "__shared__ alignas(16) float q[64]; q[t] = t; __syncthreads(); a[t] = q[n - t];"),
        (function, "s[t] = f(t); __syncthreads(); a[t] = f(s[0]);"),
        ("const int N = 3;", "for (int k = 0; k < N; ++k) __syncthreads();"),
        ("__device__ void g() { __syncthreads(); }", "s[t] = 1; __syncthreads();"),
        ("", "int k; if (t) k = 1; else k = 2; __syncthreads(); a[t] = k;"),
        ("", "int k; if (t) return; else k = 2; __syncthreads(); a[t] = k;"),
        ("", "int k; do k = t; while (k < 3); __syncthreads(); a[t] = k;"),
        ("", "float2 v; v.x = t; v.y = 2; __syncthreads(); a[t] = v.x;"),
        ("", "int k; sincos(t, &k); __syncthreads(); a[t] = k;"),
        ("", "switch (a[t]) { case 1: s[t] = 2; break; default: s[t] = 3; } __syncthreads();"),
        // No barriers, but a condition that neighbouring threads meet.
        ("", "if (t < n) a[t] = n;"),
        (
            "",
            "if (t >= n || blockIdx.y > 2) { return; } int k = a[t]; if (k) return; a[t] = k + 1;",
        ),
        ("", "if (n != t) return; a[t] = 1;"),
    ] {
        assert!(has_form(&kernel(before, body)), "{before}\n{body}");
    }
    let template = "template <int N, class T> __global__ void k(T *a) { __shared__ T s[N]; T v = a[0]; \
                    for (int i = N; i > 0; i >>= 1) __syncthreads(); a[0] = v; } \
                    template __global__ void k<4, int>(int *);";
    assert!(has_form(template));
}

#[test]
fn a_form_has_room_between_kernels_that_touch() {
    for body in
        ["__syncthreads(); a[t] = s[n - t];", "a[t] = a[63 - t];", "if (t < n) {a[t]=a[0]+1;}"]
    {
        let one = kernel("", body);
        let text = of(&format!("{}{}", one.trim(), one.trim().replace("void k(", "void l("))).text;
        assert!(text.contains("gpuarray_regions_k(") && text.contains("gpuarray_regions_l("));
    }
}

#[test]
fn what_is_not_known_for_certain_leaves_a_kernel_as_it_is() {
    for body in [
        // Nothing to split.
        "a[t] = n;",
        "if (t < n) a[t] = n; else a[t] = 1;",
        "if (a[t] > n) return; a[t] = n;",
        "int k = a[t]; if (t == n) return; a[t] = k;",
        "if (t > n) return; a[t] = n; atomicAdd(a, 1);",
        // A barrier under a condition that differs between threads, or is read from memory.
        "if (t < 3) __syncthreads();",
        "if (a[0]) __syncthreads();",
        "for (int k = 0; k < t; ++k) __syncthreads();",
        "for (int k = 0; k < a[0]; ++k) __syncthreads();",
        "int k = 0; if (t) k = 1; if (k) __syncthreads();",
        "int k = 0, *p = &k; *p = t; if (k) __syncthreads();",
        "int k = n; (k) = t; if (k) __syncthreads();",
        "int k = n; (t ? k : n) = 1; if (k) __syncthreads();",
        "int k = n; k += (n = t); if (k) __syncthreads();",
        "int k = n; if (n) { int k = t; if (k) __syncthreads(); }",
        "for (;;) { __syncthreads(); if (t == 3) break; }",
        "for (int k = 0; k < n; ++k) { if (t == k) continue; __syncthreads(); }",
        "int k = f(n); if (k) __syncthreads();",
        "switch (n) { case 1: __syncthreads(); }",
        // A barrier whose result is used, or that is part of an expression.
        "if (__syncthreads_or(t)) a[t] = 1;",
        "n ? __syncthreads() : (void)0;",
        "for (int k = 0; k < n; ++k, __syncthreads()) a[t] = k;",
        // Warp functions and cooperative groups.
        "a[t] = __shfl_xor_sync(~0u, t, 1); __syncthreads();",
        "__syncwarp(); __syncthreads();",
        "cooperative_groups::sync(cooperative_groups::this_thread_block()); __syncthreads();",
        // Declarations and statements that are not supported.
        "auto k = f(n); if (k) __syncthreads();",
        "int &k = n; k = t; if (n) __syncthreads();",
        "auto [x, y] = make_int2(t, n); __syncthreads();",
        "auto f = [&] { n = t; }; f(); if (n) __syncthreads();",
        "int q = [&] { return n = t; }(); __syncthreads();",
        "static int k; __syncthreads();",
        "goto end; end: __syncthreads();",
        "again: __syncthreads(); if (n) goto again;",
        "struct S { int x; } v; v.x = t; __syncthreads();",
        "Pair<int, int> v(1, 2); __syncthreads();",
        "using T = int; T v = t; __syncthreads();",
        "decltype(n) v = t; __syncthreads();",
        "for (int x : list) s[x] = x; __syncthreads();",
        "int gpuarray_t = 1; __syncthreads();",
        "a[t] = scale; int scale = t * 2; a[t] += scale; __syncthreads();",
        "int blockDim = 1; __syncthreads();",
        "for (s[t] = 0; n > 0; --n) __syncthreads();",
        "for (f(n); n > 0; --n) __syncthreads();",
        // A lock must not be held across two loops over threads.
        "for (;;) { __syncthreads(); while (atomicCAS(a, 0, 1)) ; if (n) { *a = 0; break; } *a = 0; }",
        "s[t] = ::threadIdx.x; __syncthreads();",
        // Some threads do not assign before they read.
        "int k; if (t) k = 1; __syncthreads(); a[t] = k;",
        "int k; while (s[t]) k = 1; __syncthreads(); a[t] = k;",
        "int k; switch (t) { case 1: k = 1; } __syncthreads(); a[t] = k;",
        "int k; if (t && (k = a[t])) s[t] = 1; __syncthreads(); a[t] = k;",
        "int k; k = t ? 1 : k; __syncthreads(); a[t] = k;",
        "int k; do { if (t) break; k = t; } while (0); __syncthreads(); a[t] = k;",
        "int k; k += a[t]; __syncthreads(); a[t] = k;",
        "a[t] = table[n](t); __syncthreads();",
        "(*pointer)(t); __syncthreads();",
    ] {
        let text = kernel("__device__ int f(int x) { return x + threadIdx.x; }", body);
        assert!(!has_form(&text), "{body}");
    }
}

#[test]
fn indices_that_count_are_computed_in_front_of_rows() {
    let counts = |index: &str, body: &str| {
        let body = format!(
            "int b = blockIdx.x * 32 + t, c = n * b; float f = n; s[t] = 1; __syncthreads(); {body}"
        );
        let text = of(&kernel(
            "const int N = 3; const float F = 3;",
            &format!("{body} a[{index}] = s[0];"),
        ))
        .text;
        assert!(text.contains("gpuarray_regions_k"), "{text}");
        text.contains("const long gpuarray_i0 = ")
    };
    let counting = "n * 4 + t; threadIdx.x + n; b; (b) - n + N; (size_t)b + threadIdx.y; \
                    unsigned(t + n) + (n << 2); ((threadIdx.x - (n & 3)))";
    for index in counting.split("; ") {
        assert!(counts(index, ""), "{index}");
    }
    let others = "t; threadIdx.x; c; 2 * t; n - t; t + b; t & n; t + n & 7; t << 1; -t; ~t; \
                  s[t]; t % n; (int)(t + f); (int)(t + 0.5f); (int)(t + F); n ? t : b; \
                  min(t, n); n; (bool)b";
    for index in others.split("; ") {
        assert!(!counts(index, ""), "{index}");
    }
}

#[test]
fn threads_of_a_row_skip_statements_together() {
    let found = |condition: &str| {
        let text = of(&kernel(
            "",
            &format!("s[t] = n; if ({condition}) s[t] = 1; __syncthreads(); a[t] = s[n - t];"),
        ))
        .text;
        assert!(text.contains("gpuarray_regions_k"), "{text}");
        let methods = ["less(", "less_or_equal(", "greater(", "greater_or_equal(", "equal("];
        let all = methods.iter().map(|it| text.matches(&format!("gpuarray_met.{it}")).count());
        (all.collect::<Vec<_>>(), text.matches(")) continue;").count())
    };
    for (condition, methods, rows) in [
        ("t < n", [1, 0, 0, 0, 0], 0),
        ("n < t", [0, 0, 1, 0, 0], 0),
        ("t + n >= 3 && n * 2 >= t && a[t]", [0, 1, 0, 1, 0], 0),
        ("((0 == t)) && threadIdx.y == n", [0, 0, 0, 0, 1], 1),
        ("a[t] && t < n", [0; 5], 0),
        ("t < n || n > 3", [0; 5], 0),
        ("t != n", [0; 5], 0),
        ("t * 2 < n", [0; 5], 0),
        ("n < t == t < 3", [0; 5], 0),
        ("(t & 3) < n", [0; 5], 0),
        ("t < s[0]", [0; 5], 0),
    ] {
        assert_eq!(found(condition), (methods.to_vec(), rows), "{condition}");
    }
    // A local would outlive its loop, or threads may wait for each other.
    for body in [
        "int k = a[t]; if (t < n) s[t] = k; __syncthreads();",
        "int k = a[t], *p = &k; s[t] = *p; if (t < n) s[t] = 1; __syncthreads();",
        "atomicAdd(a, 1); if (t < n) s[t] = 1; __syncthreads();",
        "if (t < n) return; __syncthreads(); s[t] = 1;",
    ] {
        let text = of(&kernel("", body)).text;
        assert!(text.contains("gpuarray_regions_k") && !text.contains("_met.less("), "{body}");
    }
}

#[test]
fn waiting_is_found_behind_functions_and_suspected_behind_all_else() {
    let uses = "s[t] = 1; __syncthreads(); a[t] = f(s[0]);";
    for before in [
        "__device__ int f(int x) { __syncthreads(); return x; }",
        "__device__ int f(int x) { return __shfl_sync(~0u, x, 0); }",
        "__device__ int g(int x) { __syncwarp(); return x; } __device__ int f(int x) { return g(x); }",
        "__device__ int f(int x) { return g(x); } __device__ int g(int x) { __syncwarp(); return x; }",
        "template <class T> __device__ T f(T x) { return __any_sync(~0u, x); }",
        "namespace cg = cooperative_groups; __device__ int f(int x) { return cg::f(x); }",
        // Waits that no name reveals.
        "struct V { int x; __device__ V operator+(V o) { __syncthreads(); return o; } };",
        "__device__ V operator+(V a, V b) { __syncthreads(); return a; }",
        "struct V { __device__ V() { __syncthreads(); } };",
        "__device__ auto g = [] { __syncthreads(); };",
        "__device__ void (*g)() = __syncthreads;",
        "using namespace cooperative_groups;",
        "__device__ int f(int); template <int (*g)(int)> __device__ int h(int x) { return g(x); } \
         __device__ int w(int x) { __syncthreads(); return x; } __device__ int v(int x) { return h<w>(x); }",
        "__device__ int (*pointer)(int); __device__ int w(int x) { __syncthreads(); return x; } \
         __global__ void set(int *a) { pointer = w; }",
        "void __syncthreads(int);",
    ] {
        assert!(!has_form(&kernel(before, uses)), "{before}");
    }
    // The condition uses the program's own operators on a structure, or turns out to be in memory.
    for text in [
        "struct V { int *p; __device__ operator int() const { return *p; } }; \
         __global__ void k(V v) { if (v) __syncthreads(); }",
        "struct L { __device__ operator int() const { return threadIdx.x; } }; struct V { L l; }; \
         __global__ void k(V v) { if (v.l) __syncthreads(); }",
        "template <int &N> __global__ void k(int *a) { while (N < 3) __syncthreads(); }",
        "__device__ int *min(int, int); __global__ void k(int *a) { if (min(1, 2)) __syncthreads(); }",
    ] {
        assert!(!has_form(text), "{text}");
    }
    assert!(has_form("struct V { int n; }; __global__ void k(V v) { if (v.n) __syncthreads(); }"));
    // Nested more deeply than the reader supports.
    let nested = |depth: usize| {
        kernel("", &format!("{}__syncthreads();{}", "{".repeat(depth), "}".repeat(depth)))
    };
    assert!(has_form(&nested(150)) && !has_form(&nested(50_000)));
    // A specialisation has its own body.
    let special = "template <int N> __global__ void k(int *a) { __syncthreads(); } \
                   template <> __global__ void k<2>(int *a) { a[0] = 2; }";
    assert!(!has_form(special));
}

/// Checks that every function of the language that reaches a waiting function of the executor is recognised
/// by its name.
#[test]
fn every_function_of_the_language_that_waits_is_known() {
    const OF_PROGRAMS: [&str; 4] =
        ["pygpu-cub.hpp", "pygpu-host-reduction.hpp", "pygpu-reduction.hpp", "pygpu-sparse.hpp"];
    let includes: String = crate::headers::headers()
        .filter(|(name, _)| !name.contains("gpuarray_") && !name.starts_with("cuda_c/"))
        .filter(|(name, _)| !name.starts_with("hip/") && !name.starts_with("bits/"))
        // They are compiled with headers that a program brings.
        .filter(|(name, _)| !OF_PROGRAMS.contains(name))
        .map(|(name, _)| format!("#include <{name}>\n"))
        .collect();
    for hip in [false, true] {
        let language = Language { hip, ..Language::default() };
        let compiler = Compiler::find(language).expect("a C++ compiler");
        let text = if hip { "#include <hip/hip_runtime.h>\n" } else { &includes };
        let source = Source { text, name: "kernel.cu", ..Source::default() };
        let text = compiler.preprocess(&source).expect("the headers").text;
        let tokens = Tokens::of(&text);
        let mut waiting: HashSet<&str> = ["barrier", "rendezvous", "grid_barrier"].into();
        // Functions in these namespaces cannot be called without naming the namespace.
        let is_told = |it: usize| {
            ["cooperative_groups", "cuda_c", "gpuarray_abi"].contains(&tokens.at(it + 1))
                && tokens.at(it) == "namespace"
                && tokens.at(it + 2) == "{"
        };
        let told: Vec<_> = (0..tokens.len())
            .filter(|&it| is_told(it))
            .filter_map(|it| Some(it..tokens.partner(it + 2)?))
            .collect();
        let mut found = HashSet::new();
        loop {
            let mut is_more = false;
            // Functions of the language are written `static inline name(...) {`, outside of classes.
            for open in (1..tokens.len()).filter(|&it| tokens.at(it) == "{") {
                let Some(start) =
                    (tokens.at(open - 1) == ")").then(|| tokens.partner(open - 1)).flatten()
                else {
                    continue;
                };
                let end = tokens.partner(open).unwrap_or(open);
                let name = tokens.at(start - 1);
                let calls = (open..end).any(|it| {
                    tokens.at(it + 1) == "("
                        && waiting.contains(tokens.at(it))
                        && tokens.at(it - 1) != "."
                });
                let is_statement = matches!(name, "if" | "constexpr" | "for" | "while" | "switch");
                if tokens.is_of_language(open) && !is_statement && calls && waiting.insert(name) {
                    is_more = true;
                    if !told.iter().any(|it| it.contains(&open)) {
                        found.insert(name);
                    }
                }
            }
            if !is_more {
                break;
            }
        }
        assert!(found.len() > 20, "{found:?}");
        for name in found {
            assert!(waits(name), "{name} waits, and nothing tells");
        }
    }
}
