//! Tests that the compiler accepts and refuses the same texts as NVRTC.

use crate::units::{compiler, load, load_checked, load_source, run};
use host_executor::Source;

/// Returns the compiler's log, if it refuses a text.
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

/// Returns the names of C functions in the process.
fn names_of_the_library() -> Vec<String> {
    use object::{Object as _, ObjectSymbol as _};
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the process's files");
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is_library = |file: &&str| file.contains("/libc.") || file.contains("/libm.");
    let mut names = std::collections::BTreeSet::new();
    for file in files.filter(is_library).collect::<std::collections::BTreeSet<_>>() {
        let bytes = std::fs::read(file).expect("a library");
        let library = object::File::parse(&*bytes).expect("a library");
        for symbol in library.dynamic_symbols().filter(|it| it.is_definition()) {
            let name = symbol.name().unwrap_or_default();
            if name.starts_with(|it: char| it.is_ascii_alphabetic()) && !name.contains('@') {
                names.insert(name.to_owned());
            }
        }
    }
    // Names that every program has declared, also with CUDA, which refuses or overloads them.
    let declared = [
        "abs", "clock", "free", "labs", "llabs", "malloc", "memcmp", "memcpy", "memmove", "memset",
        "printf", "vprintf",
    ];
    names.into_iter().filter(|name| !declared.contains(&name.as_str())).collect()
}

#[test]
fn kernels_and_functions_may_have_the_names_of_the_systems_library() {
    let mut names = names_of_the_library();
    assert!(names.len() > 1000, "{}", names.len());
    if std::env::var_os("PYGPU_TEST_ALL").is_none() {
        names = names.into_iter().step_by(40).collect();
    }
    // GCC knows the first of these by name, regardless of their declaration, and the others as builtin
    // functions.
    let known = "vfork _vfork setjmp _setjmp __sigsetjmp savectx getcontext longjmp alloca \
                 exit abort strlen index sqrtl ffs bcmp signbit puts fork execl calloc toupper \
                 strcmp ffsl";
    let known: Vec<&str> = known.split(' ').collect();
    names.retain(|name| !known.contains(&name.as_str()));
    names.extend(known.into_iter().map(str::to_owned));
    for names in names.chunks(100) {
        let mut text = String::from("extern \"C\" {\n");
        for (number, name) in names.iter().enumerate() {
            text += &match number % 2 {
                0 => format!("__global__ void {name}(int *a) {{ a[0] = {number}; }}\n"),
                _ => format!(
                    "__device__ int {name}(int a) {{ return a + {number}; }}\n\
                     __global__ void kernel_{number}(int *a) {{ a[0] = {name}(a[0]); }}\n"
                ),
            };
        }
        text.push_str("}\n");
        // Compilers warn about functions that differ from the builtin ones.
        let options = ["-w"];
        let source = Source { text: &text, name: "k.cu", options: &options, ..Source::default() };
        let library = load_source(&compiler(), &source);
        for (number, name) in names.iter().enumerate() {
            let mut array = vec![0];
            let kernel = if number % 2 == 0 { name.clone() } else { format!("kernel_{number}") };
            run(&library, &kernel, 1, 1, &mut array);
            assert_eq!(array, [number as i32], "{name}");
        }
    }
}

/// Messages use the program's names, not the front end's replacements.
#[test]
fn messages_on_functions_that_return_twice_by_their_names_have_these() {
    let text = "__device__ int vfork(int a) { return a; }\n__global__ void setjmp(int *a) { a[0] = vfork(a); }\n";
    let log = refused(text).expect("it is refused");
    assert!(log.contains("k.cu:2: error: ") && !log.contains("gpuarray_"), "{log}");
    let text =
        "template <class T> __global__ void vfork(T *a) { a[0] = 3; }\n__device__ int setjmp = 3;";
    let source =
        Source { text, name: "k.cu", names: &["vfork<float>", "setjmp"], ..Source::default() };
    let library = load_source(&compiler(), &source);
    assert!(library.lowered(2).iter().all(|name| name.contains("vfork") || name == "setjmp"));
}

/// The indices of threads are constant, however they are accessed.
#[test]
fn indices_of_threads_are_read_only() {
    let begin = "template <class T> __device__ int read(T t) { t.x++; return t.x; }\n\
                 template <class T> __device__ int look(T &t) { return t.x; }\n\
                 template <class T> __device__ int pass(T &&t) { return t.x; }\n\
                 __device__ void change(unsigned &r) { r = 1; }\n\
                 __device__ void change(uint3 &r) { r.x = 1; }\n\
                 __device__ int own(const unsigned &r, const dim3 &d) { return r + d.x; }\n";
    for body in [
        "const auto &t = threadIdx; auto &u = blockDim; auto &&v = blockIdx; a[t.x + u.x] = v.x;",
        "auto t = threadIdx; t.x++; auto x = blockIdx.x; ++x; a[t.x] = x;",
        "uint3 t = threadIdx; dim3 d = blockDim; t.x++; d.y++; t = blockIdx; a[t.x] = d.y;",
        "decltype(threadIdx) t = threadIdx; decltype(threadIdx.x) x = threadIdx.x; x = 3; a[x] = t.x;",
        "a[0] = read(threadIdx) + read(blockDim) + look(threadIdx) + look(gridDim) + pass(threadIdx);",
        "a[0] = own(threadIdx.x, blockDim) + own(blockIdx.y, gridDim);",
        "auto [x, y, z] = threadIdx; a[x] = y + z;",
        "auto l = [](uint3 t) { return t.x; }; auto m = [=] { return threadIdx.y; }; a[0] = l(threadIdx) + m();",
        "auto m = [t = threadIdx]() mutable { return t.x++; }; a[0] = m() + sizeof(threadIdx) + sizeof(blockDim.x);",
        "static_assert(sizeof(threadIdx) == 12, \"\"); const unsigned &r = threadIdx.x; a[0] = r;",
        "uint3 n = a[0] ? threadIdx : blockIdx; change(n); change(n.y); dim3 g(threadIdx); a[n.x] = g.x;",
        "uint3 threadIdx = {1, 2, 3}; threadIdx.x = 2; change(threadIdx); a[0] = threadIdx.x;",
        "struct S { uint3 blockIdx; } s = {blockIdx}; s.blockIdx.x = 3; a[0] = s.blockIdx.x;",
        "auto f = [threadIdx = threadIdx]() mutable { threadIdx.x += 1; return threadIdx.x; }; a[0] = f();",
    ] {
        let text = format!("{begin}__global__ void k(int *a) {{\n{body}\n}}");
        assert_eq!(refused(&text), None, "{body}");
    }
    for body in [
        "threadIdx.x = 3;",
        "++threadIdx.x;",
        "blockIdx.y--;",
        "blockDim.x *= 2;",
        "threadIdx = make_uint3(1, 2, 3);",
        "change(threadIdx.x);",
        "change(blockIdx);",
        "unsigned &r = threadIdx.x; r = 2;",
        "uint3 *p = &threadIdx; p->x = 1;",
        "atomicAdd(&threadIdx.x, 1);",
        "const auto &t = threadIdx; threadIdx.y = t.x;",
        "auto &t = threadIdx; t.x = 3;",
        "auto l = [](auto &t) { t.x = 1; }; l(gridDim);",
        "(threadIdx.x)++;",
    ] {
        let text = format!("{begin}__global__ void k(int *a) {{\n{body}\n}}");
        let log = refused(&text).unwrap_or_else(|| panic!("{body} is taken"));
        assert!(log.contains("k.cu:8: error: ") && !log.contains("gpuarray_constant"), "{log}");
    }
}

/// A variable that only one lane writes, and that all lanes pass to a shuffle.
#[test]
fn lanes_may_hand_on_what_they_have_not_written() {
    let text = r#"
__device__ int slot(int *count) {
    unsigned m = __activemask();
    int leader = __ffs(m) - 1, lane = threadIdx.x & 31, base;
    if (lane == leader) base = atomicAdd(count, __popc(m));
    base = __shfl_sync(m, base, leader);
    return base + __popc(m & ((1u << lane) - 1));
}
extern "C" __global__ void pack(int *a, int n) {
    if (threadIdx.x % 3 == 0) a[1 + slot(a)] = threadIdx.x;
}
"#;
    let mut array = vec![0; 64];
    run(&load(text), "pack", 1, 64, &mut array);
    assert_eq!(array[0], 22);
    array[1..23].sort_unstable();
    assert!(array[1..23].iter().copied().eq((0..64).step_by(3)), "{array:?}");
}
