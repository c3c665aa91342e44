//! Tests of the compiler driver's output, and of the properties of a loaded library.

use crate::units::{compiler, is_zig, launch_with, load, load_in, load_source, run, shape};
use host_executor::{Compiler, Error, Kernel, Language, Optimization, Schedule, Source};

#[test]
fn headers_of_the_system_and_the_time_to_compile_are_settings() {
    let text = r#"
#include <stdlib.h>
extern "C" __global__ void allocate(int *a) {
    int *p = new int(abs(-3));
    a[threadIdx.x] = *p;
    delete p;
}
"#;
    let source = Source { text, name: "kernel.cu", ..Source::default() };
    let quick = compiler().optimizing_for(Optimization::Compilation);
    let library = load_source(&quick, &source);
    let mut array = vec![0; 2];
    run(&library, "allocate", 1, 2, &mut array);
    assert_eq!(array, [3, 3]);
    assert_ne!(quick.identity(), compiler().identity());
    if is_zig() {
        return;
    }
    let language = Language { system_headers: false, ..Language::default() };
    let alone = Compiler::find(language).expect("a C++ compiler");
    let error = alone.compile(&source).expect_err("no such header").to_string();
    assert!(error.contains("stdlib.h"), "{error}");
    assert_ne!(alone.identity(), compiler().identity());
}

/// Some editors write a byte-order mark.
#[test]
fn a_mark_of_byte_order_is_no_part_of_a_text() {
    let text = "\u{feff}#define N 3\nextern \"C\" __global__ void assign(int *a) { a[0] = N; }\n";
    let source = Source { text, name: "kernel.cu", ..Source::default() };
    let mut array = [0];
    run(&load_source(&compiler(), &source), "assign", 1, 1, &mut array);
    assert_eq!(array, [3]);
}

/// Macros of the command line are defined after the language's headers, and before the first line of the
/// program.
#[test]
fn macros_of_the_options_meet_no_names_of_the_language() {
    let text = r#"
#include <cuda_fp16.h>
extern "C" __global__ void assign(T *a) { a[0] = N + F(1) + A; assert(false); }
"#;
    let options = "-DN=3 -DT=int -D F(x)=(x+20) -DA -DU=9 -UU -DNDEBUG -DGONE -UGONE";
    let options: Vec<&str> = options.split(' ').collect();
    let source = Source { text, name: "k.cu", options: &options, ..Source::default() };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("with-macros");
    let alone = Compiler::find(Language::default()).expect("a C++ compiler");
    for compiler in [alone.clone(), alone.keeping_headers_in(&folder)] {
        let mut array = vec![0];
        run(&load_source(&compiler, &source), "assign", 1, 1, &mut array);
        assert_eq!(array, [25]);
        let wrong = Source { text: "int x = GONE;", ..source };
        let error = compiler.compile(&wrong).expect_err("an unknown name").to_string();
        assert!(error.starts_with("k.cu:1: error: "), "{error}");
    }
}

/// `memmove` has only one version, the fast one, so units use it for `memcpy`.
#[test]
fn units_copy_by_the_function_that_has_one_version() {
    use object::{Object as _, ObjectSymbol as _};
    let text = |sine: &str| {
        format!(
            "extern \"C\" __global__ void copy(int *a, int n) {{ memcpy(a + 1, a, n / 2 * 4); a[0] = {sine}; }}"
        )
    };
    // Linked without the system's libraries, and with the math library.
    for sine in ["5", "5 + (int)sin(0.1 * a[0])"] {
        let text = text(sine);
        let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
        let compiled = compiler().compile(&source).expect("a unit");
        let file = object::File::parse(&*compiled.library).expect("a library");
        let imports = |name: &str| {
            file.dynamic_symbols().any(|it| it.is_undefined() && it.name() == Ok(name))
        };
        assert!(imports("memmove") || !cfg!(all(target_arch = "x86_64", target_env = "gnu")));
        assert!(!imports("memcpy") || !cfg!(all(target_arch = "x86_64", target_env = "gnu")));
        let mut array = vec![9; 64];
        run(&load_source(&compiler(), &source), "copy", 1, 1, &mut array);
        assert_eq!((array[0], array[1], array[32]), (5, 9, 9));
    }
}

#[test]
fn headers_are_kept_for_other_compilations() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept");
    let _ = std::fs::remove_dir_all(&folder);
    let text = r#"
#include <cuda_fp16.h>
extern "C" __global__ void assign(int *a) { a[0] = __half2int_rn(__float2half(VALUE)); assert(a[0] == 0); }
"#;
    // Also with an assertion that is disabled.
    for (value, more, passes) in [("3", "-DX", false), ("4", "-DNDEBUG", true)] {
        for _ in 0..2 {
            let value = format!("-DVALUE={value}.0f");
            let options = [value.as_str(), more];
            let source = Source { text, name: "k.cu", options: &options, ..Source::default() };
            let library = load_source(&compiler().keeping_headers_in(&folder), &source);
            let kernel = Kernel::find(&library, "assign").expect("the kernel");
            let mut array = vec![0];
            let run = launch_with(&kernel, &shape(1, 1), &Schedule::default(), &mut array);
            assert_eq!(run.is_ok(), passes);
            assert_eq!(array, [if passes { 4 } else { 3 }]);
        }
    }
    match is_zig() {
        true => std::fs::create_dir_all(&folder).expect("the folder"),
        false => assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1),
    }
    let source =
        Source { text: "#include <cuda_fp16.h>\nint x = y;", name: "k.cu", ..Source::default() };
    let error = compiler().keeping_headers_in(&folder).compile(&source).expect_err("wrong");
    let error = error.to_string();
    assert!(error.starts_with("k.cu:2: error: ") && error.contains("'y'"), "{error}");
    // If the headers cannot be kept, they are written for each compilation.
    let file = folder.join("file");
    std::fs::write(&file, "").expect("a file");
    let source = Source { text, name: "k.cu", options: &["-DVALUE=0.0f"], ..Source::default() };
    load_source(&compiler().keeping_headers_in(&file), &source);
    // Names that would have to be escaped in a C++ string.
    for name in ["it's", "a b;#$c", "\"quoted\"", "back\\slash", "new\nline"] {
        load_source(&compiler().keeping_headers_in(folder.join(name)), &source);
    }
}

/// Whatever is left of kept headers, a text compiles, and the next compilation finds them complete.
#[test]
fn damaged_headers_are_replaced() {
    use std::fs;
    use std::time::{Duration, SystemTime};
    if is_zig() {
        return;
    }
    let base = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged");
    let _ = fs::remove_dir_all(&base);
    let keeping = compiler().keeping_headers_in(&base);
    let text = "#include <cuda_fp16.h>\nextern \"C\" __global__ void assign(int *a) { a[0] = __half2int_rn(__float2half(4.0f)); }";
    let source = Source { text, name: "k.cu", ..Source::default() };
    let assign = || {
        let mut array = vec![0];
        run(&load_source(&keeping, &source), "assign", 1, 1, &mut array);
        assert_eq!(array, [4]);
    };
    assign();
    let folder = fs::read_dir(&base).expect("a folder").next().expect("one").expect("one").path();
    let whole = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
    let precompiled = whole("gpuarray_prelude.h.gch");
    let cut = |bytes: &[u8], end: usize| bytes[..bytes.len().min(end)].to_vec();
    let filled = |from: usize| {
        let mut bytes = precompiled.clone();
        if let Some(rest) = bytes.get_mut(from..) {
            rest.fill(0xa5);
        }
        bytes
    };
    for (name, damaged) in [
        ("gpuarray_prelude.h.gch", Vec::new()),
        ("gpuarray_prelude.h.gch", cut(&precompiled, 1000)),
        ("gpuarray_prelude.h.gch", cut(&precompiled, precompiled.len() - precompiled.len().min(1))),
        // With the right length, so that the compiler refuses it or crashes.
        ("gpuarray_prelude.h.gch", filled(0)),
        ("gpuarray_prelude.h.gch", filled(5000)),
        ("cuda_fp16.h", Vec::new()),
        ("whole", Vec::new()),
        ("whole", b"12x".to_vec()),
    ] {
        fs::write(folder.join(name), damaged).expect("the file");
        assign();
        assign();
        assert!(!whole("whole").is_empty() && !whole("cuda_fp16.h").is_empty(), "{name}");
    }
    // The preprocessor reads options and macros from the beginning of the file, the compiler all of it.
    let all = std::env::var_os("PYGPU_TEST_ALL").map(|_| [300, 2500, 11_000].as_slice());
    for &end in [700, 6000, 200_000].iter().chain(all.unwrap_or_default()) {
        let name = folder.join("gpuarray_prelude.h.gch");
        fs::write(&name, cut(&precompiled, end)).expect("the file");
        fs::write(folder.join("whole"), end.min(precompiled.len()).to_string()).expect("the size");
        assign();
        assign();
    }
    // Between the preprocessor and the compiler.
    let preprocessed = keeping.preprocess(&source).expect("a text");
    fs::remove_dir_all(&folder).expect("the folder");
    let unit = keeping.compile_preprocessed(&preprocessed).expect("a unit");
    assert_eq!(unit.log, "");
    assign();
    // When a folder is created, unused folders are removed, except the latest ones.
    let old = SystemTime::now() - Duration::from_secs(3 * 24 * 60 * 60);
    let others: Vec<_> = (0..12).map(|it| base.join(format!("headers-{it:016x}"))).collect();
    for (age, other) in others.iter().chain([&base.join("gpuarray-1-2-3")]).enumerate() {
        fs::create_dir_all(other).expect("a folder");
        fs::write(other.join("whole"), "0").expect("a file");
        for file in [other.join("whole"), other.clone()] {
            let file = fs::File::open(file).expect("the file");
            file.set_modified(old - Duration::from_secs(age as u64)).expect("its time");
        }
    }
    fs::remove_dir_all(&folder).expect("the folder");
    assign();
    let left: Vec<_> = others.iter().map(|it| it.exists()).collect();
    assert_eq!(left, [[true; 7].as_slice(), &[false; 5]].concat());
    assert!(folder.exists() && !base.join("gpuarray-1-2-3").exists());
}

#[test]
fn a_module_says_what_is_in_it() {
    let source = Source {
        text: r#"
__constant__ float table[3] = {1, 2, 3};
static __device__ int counter;
namespace n { __device__ double inside; }
template <class T, int N> __global__ void __launch_bounds__(64) fill(T *a) { a[threadIdx.x] = N; }
extern "C" __global__ void __launch_bounds__(128, 2) bounded(char c, double d, short s, Triple *p) {
    __shared__ double t[10];
    if (p) t[threadIdx.x] = c + d + s;
    __syncthreads();
    counter += t[0] + table[1];
}
static __global__ void hidden(int *a) { *a = counter; }
"#,
        name: "kernel.cu",
        names: &["fill<int, 3>", "&n::inside", "hidden"],
        options: &["-I.", "-DUNUSED=1"],
        ..Source::default()
    };
    let text = format!("struct Triple {{ float x, y, z; }};\n{}", source.text);
    let library = load_source(&compiler(), &Source { text: &text, ..source });
    let lowered = library.lowered(3);
    assert_eq!(lowered, ["_Z4fillIiLi3EEvPT_", "_ZN1n6insideE", "_ZL6hiddenPi"]);
    let kernel = Kernel::find(&library, "bounded").expect("the kernel");
    let parameters: Vec<_> = kernel.parameters().iter().map(|it| (it.offset, it.bytes)).collect();
    assert_eq!(parameters, [(0, 1), (8, 8), (16, 2), (24, 8)]);
    assert_eq!((kernel.most_threads(), kernel.least_blocks()), (128, 2));
    assert_eq!(kernel.static_shared_bytes(), 80);
    let fill = Kernel::find(&library, &lowered[0]).expect("the kernel");
    assert_eq!((fill.most_threads(), fill.static_shared_bytes()), (64, 0));
    let (table, bytes) = library.variable("table").expect("the variable");
    // SAFETY: the variable consists of three numbers.
    assert_eq!((unsafe { *(table as *const [f32; 3]) }, bytes), ([1.0, 2.0, 3.0], 12));
    assert_eq!(library.variable("counter").map(|it| it.1), Some(4));
    assert_eq!(library.variable("_ZN1n6insideE").map(|it| it.1), Some(8));
    assert_eq!(library.variable("absent"), None);
    assert!(Kernel::find(&library, "absent").is_none());
    // The host writes to a variable that kernels only read.
    let (counter, _) = library.variable("counter").expect("the variable");
    // SAFETY: the variable is a number, and no kernel runs.
    unsafe { *(counter as *mut i32) = 42 };
    let mut array = vec![0; 1];
    run(&library, "_ZL6hiddenPi", 1, 1, &mut array);
    assert_eq!(array, [42]);
}

#[test]
fn the_compiler_says_where_it_stumbles() {
    let refused = |text: &str, options: &[&str]| {
        let source = Source { text, name: "mine.cu", options, ..Source::default() };
        match compiler().compile(&source).expect_err("refused") {
            Error::Refused(log) => log,
            other => panic!("{other}"),
        }
    };
    let log = refused("__global__ void f(int *a)\n{\n    a[0] = nowhere;\n}\n", &[]);
    // GCC reports "was not declared", clang "use of undeclared identifier".
    assert!(log.contains("mine.cu:3: error: ") && log.contains("'nowhere'"), "{log}");
    // Messages do not mention the code generated next to the program's text.
    let log = refused("__global__ void f(int *a) {\n__syncthreads();\na[0] = nowhere;\n}\n", &[]);
    assert_eq!(log.matches("mine.cu:3: error: ").count(), 1, "{log}");
    assert!(!log.contains("gpuarray"), "{log}");
    let log = refused("\n#include \"absent.h\"\n", &[]);
    assert!(log.contains("mine.cu:2") && log.contains("absent.h"), "{log}");
    let log = refused("__device__ int g(); __global__ void f(int *a) { a[0] = g(); }", &[]);
    // "undefined reference to `g()'", or "undefined symbol: g()".
    assert!(log.contains("undefined") && log.contains("g()"), "{log}");
    let log = refused("__global__ void f() { f<<<1, 1>>>(); }", &[]);
    assert!(log.contains("mine.cu:1: error: a kernel cannot launch kernels"), "{log}");
    assert!(refused("", &["-nonsense"]).contains("\"-nonsense\" is unknown"));
    let header = ("inner/a.h", "#define VALUE 3\n");
    let source = Source {
        text: "#include <inner/a.h>\nint x = VALUE;",
        headers: &[header],
        ..Source::default()
    };
    assert!(compiler().compile(&source).is_ok());
    let outside = Source { headers: &[("../a.h", "")], ..source };
    assert!(compiler().compile(&outside).is_err());
    let warned = Source { text: "#warning look here\n", name: "mine.cu", ..Source::default() };
    let log = compiler().compile(&warned).expect("a unit").log;
    assert!(log.contains("mine.cu:1: warning: ") && log.contains("look here"), "{log}");
}

#[test]
fn static_shared_memory_is_counted_for_the_kernels_that_reach_it() {
    let text = r#"
namespace n { static __device__ __noinline__ float inner(float x) {
    __shared__ float part[8];
    part[threadIdx.x] = x;
    __syncthreads();
    return part[7 - threadIdx.x];
} }
template <int N> __device__ float of_template(float x) {
    __shared__ float part[N];
    part[threadIdx.x] = x;
    __syncthreads();
    return part[N - 1 - threadIdx.x];
}
static __device__ __noinline__ float outer(float x) {
    __shared__ double other[2];
    other[threadIdx.x & 1] = x;
    __syncthreads();
    return n::inner(x) + (float)other[0];
}
extern "C" {
__global__ void plain(float *x) { x[threadIdx.x] = 1; }
__global__ void direct(float *x) { __shared__ float own[4]; own[threadIdx.x] = *x; __syncthreads(); *x = own[1]; }
__global__ void likened(float *x) { __shared__ float blockDim_x[4]; blockDim_x[threadIdx.x] = *x; __syncthreads(); *x = blockDim_x[1]; }
__global__ void called(float *x) { x[threadIdx.x] = n::inner(x[threadIdx.x]); }
__global__ void through(float *x) { x[threadIdx.x] = outer(x[threadIdx.x]); }
__global__ void instance(float *x) { x[threadIdx.x] = of_template<16>(of_template<4>(x[threadIdx.x])); }
__global__ void dynamic(float *x) { extern __shared__ float all[]; all[threadIdx.x] = 1; __syncthreads(); *x = all[0]; }
}
"#;
    let expected = [
        ("plain", 0),
        ("direct", 16),
        ("likened", 16),
        ("called", 32),
        ("through", 48),
        ("instance", 80),
        ("dynamic", 0),
    ];
    let table = "typedef float (*Function)(float);\n\
        __device__ Function functions[] = {n::inner, outer};\n\
        extern \"C\" __global__ void pointer(float *x, int n) { *x = functions[n](*x); }";
    // Without optimisation, clang's variables share a section, so every function counts the targets of the
    // table.
    for (options, more) in [(&[][..], table), (&["-G"], "")] {
        let text = format!("{text}{more}");
        let source = Source { text: &text, options, ..Source::default() };
        let library = load_source(&compiler(), &source);
        let pointer = (!more.is_empty()).then_some(("pointer", 48));
        for (name, bytes) in expected.into_iter().chain(pointer) {
            let kernel = Kernel::find(&library, name).expect("the kernel");
            assert_eq!((name, kernel.static_shared_bytes()), (name, bytes), "{options:?}");
        }
    }
}

#[test]
fn what_cpp_leaves_undefined_fails_where_that_is_asked() {
    const TEXT: &str = "extern \"C\" __global__ void k(int *a, int n) { a[0] = n + 2147483647; }";
    let source = Source { text: TEXT, name: "kernel.cu", ..Source::default() };
    let defined = load_source(&compiler(), &source);
    let mut array = [0; 2];
    run(&defined, "k", 1, 1, &mut array);
    assert_eq!(array[0], i32::MIN + 1);
    let trapping = load_source(&compiler().trapping_undefined_behavior(), &source);
    let kernel = Kernel::find(&trapping, "k").expect("the kernel");
    let result = launch_with(&kernel, &shape(1, 1), &Schedule::default(), &mut array);
    assert!(matches!(result, Err(Error::Kernel(_))), "{result:?}");
}

#[test]
fn objects_are_created_in_memory_of_the_program() {
    let text = r#"
struct Pair { int first, second; __device__ Pair(int n) : first(n), second(n + 1) {} };
extern "C" __global__ void create(int *a) {
    __shared__ int bytes[2];
    Pair *pair = new (bytes) Pair(threadIdx.x);
    a[threadIdx.x] = pair->first + pair->second;
    new (&a[threadIdx.x]) int[1];
}
"#;
    let own = "inline __device__ void *operator new(size_t, void *at) noexcept { return at; }
        inline __device__ void *operator new[](size_t, void *at) noexcept { return at; }";
    for before in ["", "#include <new>", own] {
        let library = load(&format!("{before}\n{text}"));
        let mut array = [0; 3];
        run(&library, "create", 1, 3, &mut array);
        assert_eq!(array, [1, 3, 5], "{before}");
    }
    // The run-time compilers of GPUs do not have system headers.
    let language = Language { system_headers: false, ..Language::default() };
    load_in(language, text);
}

#[test]
fn memory_of_a_threads_stack_ends_with_the_thread() {
    for include in ["", "#include <alloca.h>", "#include <stdlib.h>"] {
        let text = format!(
            r#"{include}
__device__ __forceinline__ int *rows(int n) {{ return (int *)alloca(n * sizeof(int)); }}
extern "C" __global__ void reverse(int *a, int n) {{
    int *own = (int *)alloca(1024), *more = rows(threadIdx.x + 1);
    for (int i = 0; i < 256; ++i) own[i] = a[threadIdx.x] + i;
    more[threadIdx.x] = own[255];
    a[threadIdx.x] = more[threadIdx.x] + own[1];
}}
"#
        );
        let library = load(&text);
        let mut array = vec![1; 1024];
        run(&library, "reverse", 1, 1024, &mut array);
        assert!(array.iter().all(|it| *it == 258), "{include}");
    }
}

#[test]
fn a_program_has_functions_of_its_own_beside_those_of_the_language() {
    let alloca = r#"
__device__ void *alloca(int n) { static __shared__ int own[1]; own[0] = n; return own; }
extern "C" __global__ void own(int *a) { a[threadIdx.x] = *(int *)alloca(7); }
"#;
    let operators = r#"
struct Pool { int free; };
struct Own {
    int value;
    static __device__ void *operator new(size_t, void *place) { return (Own *)place + 1; }
};
__device__ void *operator new(size_t, void *place, Pool *pool) {
    return (int *)place + pool->free++;
}
extern "C" __global__ void own(int *a) {
    Pool pool = {1};
    new (a) int(1);
    new (a, &pool) int(2);
    new (a + 1) Own{4};
}
"#;
    let in_linkage = format!("extern \"C\" {{{alloca}}}");
    for (text, expected) in [(alloca, [7, 0, 0]), (&in_linkage, [7, 0, 0]), (operators, [1, 2, 4])]
    {
        let mut array = vec![0; 3];
        run(&load(text), "own", 1, 1, &mut array);
        assert_eq!(array, expected, "{text}");
    }
}
