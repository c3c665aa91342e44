use super::{Number, Signatures, ValueType};
use std::fmt::Write as _;
use std::process::Command;

/// Returns the signature of a kernel as text, or an empty string if it does not have one.
fn shown(text: &str, kernel: &str) -> String {
    Signatures::of(text, &[]).kernel(kernel).map_or_else(String::new, |it| it.to_string())
}

/// Checks that the kernel `k` of each text has the expected signature.
fn each(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(shown(text, "k"), *expected, "{text}");
    }
}

/// Returns the types of the parameters of a kernel.
fn types(text: &str, kernel: &str, options: &[&str]) -> Vec<(bool, ValueType)> {
    let signature = Signatures::of(text, options).kernel(kernel).expect("it is plain to read");
    signature.parameters.iter().map(|it| (it.is_pointer, it.of)).collect()
}

const FLOAT: ValueType = ValueType::Number(Number::Float(4));
const DOUBLE: ValueType = ValueType::Number(Number::Float(8));
const INT: ValueType = ValueType::Number(Number::Signed(4));

#[test]
fn declarations_are_shown_as_written() {
    each(&[
        (
            "__global__ void k(float a,float*x, const float * y,int n){}",
            "k(float a, float *x, const float *y, int n)",
        ),
        ("__global__ void k() {}", "k()"),
        ("__global__ void k(void);", "k()"),
        (
            "extern \"C\" { void __global__ __launch_bounds__(64, 2) k(unsigned n); }",
            "k(unsigned n)",
        ),
        (
            "static __global__ __attribute__((used)) void k(int *__restrict__ p) {}",
            "k(int *__restrict__ p)",
        ),
        (
            "__global__ void k(float const *const x, char c = ',', float y[4]) {}",
            "k(const float *x, char c, float *y)",
        ),
        (
            "__global__ void k(unsigned long long int *x, float) {}",
            "k(unsigned long long int *x, float)",
        ),
        (
            "__global__ void k(struct Foo f, ns::Bar *b, A<int , 2> a) {}",
            "k(Foo f, ns::Bar *b, A<int, 2> a)",
        ),
        (
            "__global__ void k(float **x, int (*f)(int), void *v) {}",
            "k(float **x, int (*) f, void *v)",
        ),
        (
            "__global__ void k(const __grid_constant__ Big b, volatile int *v) {}",
            "k(const Big b, int *v)",
        ),
        (
            "// void k(int x)\n/* __global__ void k(int) */ __global__ void k(float /* int */ x) {} // k(",
            "k(float x)",
        ),
        ("const char *s = \"__global__ void k(int x) {\"; __global__ void k(int y) {}", "k(int y)"),
        (
            "#define KERNEL extern \"C\" __global__ void\n#define R __restrict__\nKERNEL k(float *R x) {}",
            "k(float *__restrict__ x)",
        ),
        ("__global__ void k(float *);\n__global__ void k(float *x) { }", "k(float *x)"),
        ("#define TWO(a) a \\\n  b\n__global__ void k(int \\\n n) {}", "k(int n)"),
        (
            "const char *s = R\"({ \" )\"; __global__ void k(int n) { f(u8R\"x(})\")x\"); }",
            "k(int n)",
        ),
    ]);
}

#[test]
fn macros_with_arguments_are_expanded() {
    each(&[
        ("#define ARG(t) t *x, t y\n__global__ void k(ARG(float)) {}", "k(float *x, float y)"),
        ("#define V(t, n) t ## n\n__global__ void k(V(float, 2) *x) {}", "k(float2 *x)"),
        ("#define K(n, t) __global__ void n(t x)\n#define T(t) t *\nK(k, T(int)) {}", "k(int *x)"),
        ("#define F(a) F(a) F(a)\n__global__ void k(int n) { F(F(1)); }", "k(int n)"),
        ("#define F(a) a\n__global__ void k(F) {}", ""),
        ("#define F(a) a\n__global__ void k(F(int n, int m)) {}", ""),
        ("#define F(...) __VA_ARGS__\n__global__ void k(F(int n)) {}", ""),
        ("#define S(a) #a\n__global__ void k(int n) { f(S(n)); }", "k(int n)"),
    ]);
}

#[test]
fn bounds_of_any_form_leave_a_kernel_its_signature() {
    let bounds = "#if X > 3\n#define B __launch_bounds__(64)\n#else\n#define B\n#endif\n";
    each(&[
        ("#define B(n) __launch_bounds__(n)\n__global__ void B(64) k(int n) {}", "k(int n)"),
        (
            "#define B(n, ...) __launch_bounds__(n)\n__global__ void B(64, 2) k(int n) {}",
            "k(int n)",
        ),
        (&format!("{bounds}__global__ B void k(int n) {{}}"), "k(int n)"),
        (&format!("{bounds}__global__ void B k(int n) {{}}"), "k(int n)"),
        ("__global__ void\n#ifdef __HIP__\n__launch_bounds__(64)\n#endif\nk(int n) {}", "k(int n)"),
        ("__global__ void\n#ifdef __HIP__\nl(float x); __global__ void\n#endif\nk(int n) {}", ""),
        (&format!("{bounds}__global__ void B(int n) {{}}"), ""),
        (&format!("{bounds}__global__ void k B(int n) {{}}"), ""),
    ]);
}

#[test]
fn what_is_not_certain_has_no_signature() {
    each(&[
        // Macros that depend on a condition.
        (
            "#ifdef __CUDA_ARCH__\n#define REST , int n\n#else\n#define REST\n#endif\n__global__ void k(int m REST) {}",
            "",
        ),
        (
            "#if __CUDACC_VER__\n__global__ void k(int n) {}\n#else\n__global__ void k(float n) {}\n#endif",
            "",
        ),
        ("__global__ void k(int n\n#ifdef __HIP__\n, int m\n#endif\n) {}", ""),
        // Overloads, references, and invalid declarations.
        ("__global__ void k(int n) {} __global__ void k(float x) {}", ""),
        ("__global__ void k(int &n) {}", ""),
        ("__global__ void k(int n, ...) {}", ""),
        ("__global__ void k(float * ALIGNED x) {}", ""),
        ("__global__ void k(int n) {", ""),
        ("__global__ void k(", ""),
        ("template <int N> __global__ void k<N>(int n);", ""),
        ("#define A A A\n#define B A B A\n__global__ void k(B) {}", ""),
    ]);
}

#[test]
fn names_of_types_stand_for_what_they_are() {
    let all = "typedef float real; typedef const real *input, word; using index = unsigned short;
        struct Point { typedef double real; float x; }; typedef struct { int a; } Pair, *Pairs;
        typedef float row[4]; typedef void (*callback)(int); namespace deep { using other = double; }
        __global__ void k(real a, input x, index *i, Point p, Pair q, Pairs r, row s, callback c) {}";
    let number = |it| ValueType::Number(it);
    assert_eq!(
        types(all, "k", &[]),
        [
            (false, FLOAT),
            (true, FLOAT),
            (true, number(Number::Unsigned(2))),
            (false, ValueType::Unknown),
            (false, ValueType::Unknown),
            (true, ValueType::Unknown),
            (false, ValueType::Unknown),
            (false, ValueType::Unknown),
        ]
    );
    let known = "__global__ void k(size_t a, std::uint8_t *b, half h, pycuda::complex<double> c,
        cuFloatComplex *d, float3 e, const uchar4 *f, __nv_bfloat16 g, long double i, bool j) {}";
    assert_eq!(
        types(known, "k", &[]),
        [
            (false, number(Number::Unsigned(8))),
            (true, number(Number::Unsigned(1))),
            (false, number(Number::Float(2))),
            (false, ValueType::Complex(8)),
            (true, ValueType::Complex(4)),
            (false, ValueType::Vector(Number::Float(4), 3)),
            (true, ValueType::Vector(Number::Unsigned(1), 4)),
            (false, number(Number::Bfloat16)),
            (false, ValueType::Unknown),
            (false, number(Number::Bool)),
        ]
    );
    // A name with two meanings has an unknown type.
    let twice = "typedef float t; namespace a { typedef double t; } __global__ void k(t x) {}";
    assert_eq!(types(twice, "k", &[]), [(false, ValueType::Unknown)]);
    let maybe = "#include \"x.h\"\n#ifdef D\ntypedef double t;\n#endif\n__global__ void k(t x) {}";
    assert_eq!(types(maybe, "k", &[]), [(false, ValueType::Unknown)]);
}

#[test]
fn conditions_that_the_text_decides_are_followed() {
    let text = "#ifdef D\ntypedef double real;\n#elif 0\n#else\ntypedef float real;\n#endif
        #ifndef N\n#define N 1\n#endif\n#if N\n#define T real\n#else\n#define T int\n#endif
        __global__ void k(T x) {}";
    assert_eq!(types(text, "k", &[]), [(false, FLOAT)]);
    assert_eq!(types(text, "k", &["-DD"]), [(false, DOUBLE)]);
    assert_eq!(types(text, "k", &["-D", "D", "-DN=0"]), [(false, INT)]);
    assert_eq!(types("__global__ void k(T *x);", "k", &["-DT=double"]), [(true, DOUBLE)]);
}

#[test]
fn names_of_object_code_are_read() {
    let text = "template <typename T, int N> __global__ void k(T *x, const T y, int n, T **z) {}
        namespace a { namespace b { __global__ void two(int n) {} } } static __global__ void own(int) {}";
    let address = (true, ValueType::Number(Number::Unsigned(8)));
    for (symbol, of) in [
        ("_Z1kIfLi128EEvPT_S0_iPS1_", FLOAT),
        ("_Z1kIdLi128EEvPT_S0_iPS1_", DOUBLE),
        ("_Z1kI6float2Li1EEvPT_S1_iPS2_", ValueType::Vector(Number::Float(4), 2)),
        ("_Z1kIN1a1bELi1EEvPT_", ValueType::Unknown),
        ("k", ValueType::Unknown),
    ] {
        assert_eq!(types(text, symbol, &[]), [(true, of), (false, of), (false, INT), address]);
    }
    assert_eq!(shown(text, "_ZN1a1b3twoEi"), "two(int n)");
    assert_eq!(shown(text, "_ZL3owni"), "own(int)");
    for wrong in ["_Z", "_Z9k", "_ZN", "_Zk", "_Z99999999999999999999k", "_ZN1a", "", "_Z0", "none"]
    {
        assert_eq!(shown(text, wrong), "", "{wrong}");
    }
}

#[test]
fn any_text_ends() {
    let text = "#if 1\n#define A(b) __global__ void k(B<int>::c *x[2], f = {1}) { @ ` \x01\n#endif\nR\"(\" '";
    for start in 0..text.len() {
        for end in start..=text.len() {
            let part = format!("{} __global__ {}", &text[start..end], &text[..start]);
            Signatures::of(&part, &["-D", "-D=", "-DX(y)=z", ""]).kernel("k");
        }
    }
}

#[test]
fn long_texts_end() {
    for part in [
        "A<",
        "(",
        "{",
        "[",
        "#if A\n",
        "#define A A A\nA A\n",
        "struct ",
        "typedef ",
        "__global__ a < ",
        "é'\\",
        "x::",
        "*",
    ] {
        let text = format!("__global__ void k({}", part.repeat(10_000));
        assert!(Signatures::of(&text, &[]).kernel("k").is_none(), "{part}");
    }
    let deep = format!("__global__ void k({} x{}) {{}}", "A<".repeat(200), ">".repeat(200));
    let kernel = Signatures::of(&deep.replace(" x", " int"), &[]).kernel("k");
    assert!(kernel.is_none_or(|it| it.parameters[0].of == ValueType::Unknown));
}

/// A pseudo-random number generator (Knuth's linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Returns the C++ type for a type that was read.
fn cpp(of: ValueType) -> Option<&'static str> {
    Some(match of {
        ValueType::Void => "void",
        ValueType::Number(number) => match number {
            Number::Bool => "bool",
            Number::Signed(1) => "signed char",
            Number::Signed(2) => "short",
            Number::Signed(4) => "int",
            Number::Signed(8) => "long",
            Number::Unsigned(1) => "unsigned char",
            Number::Unsigned(2) => "unsigned short",
            Number::Unsigned(4) => "unsigned int",
            Number::Unsigned(8) => "unsigned long",
            Number::Float(4) => "float",
            Number::Float(8) => "double",
            _ => return None,
        },
        _ => return None,
    })
}

/// Checks random declarations: a C++ compiler has to find the same types.
#[test]
fn a_compiler_reads_the_same_types() {
    let types = "float, double, int, unsigned, unsigned int, int unsigned, short, short int, \
                 unsigned short, char, signed char, unsigned char, long, unsigned long, \
                 long long, long unsigned int, unsigned long long, bool, size_t, std::int64_t, \
                 uint8_t, Record, ns::Record, int16_t";
    let types: Vec<&str> = types.split(", ").collect();
    let mut random = Random(46);
    let (mut text, mut checks) = (String::new(), String::new());
    let (mut known, mut counts) = (0, Vec::new());
    for kernel in 0..400 {
        let mut local = types.clone();
        let names = [format!("t{kernel}"), format!("p{kernel}"), format!("M{kernel}")];
        let base = random.of(&types);
        _ = match random.below(4) {
            0 => writeln!(text, "typedef {base} {};", names[0]),
            1 => writeln!(text, "using {} = {base};", names[0]),
            2 => writeln!(text, "typedef {base} unused{kernel}, {}; // typedef int x;", names[0]),
            _ => writeln!(
                text,
                "namespace n{kernel} {{ typedef {base} x; }} typedef const {base} {};",
                names[0]
            ),
        };
        _ = writeln!(
            text,
            "typedef {} *{};\n#define {} {}",
            names[0],
            names[1],
            names[2],
            random.of(&types)
        );
        local.extend(names.iter().map(String::as_str).cycle().take(12));
        let gap =
            |random: &mut Random| random.of(&[" ", "  ", "\n", " /* , ) */ ", " // ( *\n", "\t"]);
        let mut parameters = Vec::new();
        for parameter in 0..random.below(6) {
            let mut one = String::new();
            let words = [
                random.of(&["", "const", "volatile", ""]),
                random.of(&local),
                random.of(&["", "", "const"]),
                random.of(&["", "*", "*", "* const", "*__restrict__", "**"]),
            ];
            if words[0] == "const" && words[2] == "const" {
                continue;
            }
            for word in words {
                one += word;
                one += gap(&mut random);
            }
            let name = format!("a{parameter}");
            one += random.of(&[&name, &name, &name, ""]);
            parameters.push(one);
        }
        let head = random.of(&[
            "__global__ void",
            "void __global__",
            "extern \"C\" __global__ void",
            "static __global__ void",
        ]);
        _ = writeln!(
            text,
            "{head} k{kernel}({}) {{ if (1) {{ typedef int t; }} }}",
            parameters.join(",")
        );
        counts.push(parameters.len());
    }
    let signatures = Signatures::of(&text, &[]);
    for (kernel, count) in counts.into_iter().enumerate() {
        let signature = signatures.kernel(&format!("k{kernel}")).expect("it is plain to read");
        assert_eq!(signature.parameters.len(), count, "{signature}");
        for (position, parameter) in signature.parameters.iter().enumerate() {
            let pointer = if parameter.is_pointer { "true" } else { "false" };
            let place = format!("decltype(type_of<{position}>(k{kernel}))");
            _ = writeln!(checks, "static_assert(std::is_pointer<{place}>::value == {pointer});");
            if let Some(of) = cpp(parameter.of) {
                known += 1;
                // The compiler treats all eight-byte integers and all addresses alike.
                _ = writeln!(
                    checks,
                    "static_assert(is_same_kind<{place}, {of}>(), \"{signature}\");"
                );
            }
            if parameter.is_pointer && parameter.of != ValueType::Number(Number::Unsigned(8)) {
                let constant = if parameter.is_const { "true" } else { "false" };
                _ = writeln!(
                    checks,
                    "static_assert(std::is_const<std::remove_pointer_t<{place}>>::value == {constant});"
                );
            }
        }
    }
    assert!(known > 700, "{known}");
    let program = format!(
        "#include <cstddef>\n#include <cstdint>\n#include <tuple>\n#include <type_traits>
        #define __global__
        using std::size_t; using std::uint8_t; using std::int16_t;
        struct Record {{ int x; }}; namespace ns {{ struct Record {{ double x; }}; }}
        template <int N, class... A> std::tuple_element_t<N, std::tuple<A...>> type_of(void (*)(A...));
        template <class A, class B> constexpr bool is_same_kind() {{
            using T = std::remove_cv_t<std::remove_pointer_t<A>>;
            if constexpr (std::is_pointer<T>::value) return std::is_same<B, unsigned long>::value;
            else return sizeof(T) == sizeof(B) && std::is_integral<T>::value == std::is_integral<B>::value
                && std::is_unsigned<T>::value == std::is_unsigned<B>::value
                && std::is_same<T, bool>::value == std::is_same<B, bool>::value;
        }}\n{text}\n{checks}"
    );
    let file = std::env::temp_dir().join(format!("signatures-{}.cpp", std::process::id()));
    std::fs::write(&file, program).expect("a writable folder");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut words = compiler.split_whitespace();
    let done = Command::new(words.next().unwrap_or("c++"))
        .args(words)
        .args(["-std=c++17", "-fsyntax-only", "-w"])
        .arg(&file)
        .output()
        .expect("a C++ compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::remove_file(file).expect("the file was written");
}

#[test]
fn values_of_templates_may_have_any_letters_in_their_types() {
    let text = "enum class Edge { None, Clamp };
        template <Edge M, class T> __global__ void k(double *o, T *p, T x) {}";
    for symbol in ["_Z1kIL4Edge1EfEvPdPT0_S2_", "_Z1kILi3EfEvPdPT0_S2_"] {
        assert_eq!(types(text, symbol, &[])[1..], [(true, FLOAT), (false, FLOAT)], "{symbol}");
    }
}

#[test]
fn what_an_option_undefines_is_not_known() {
    let text = "#ifdef WIDE
        typedef double real;
        #else
        typedef float real;
        #endif
        extern \"C\" __global__ void k(real *p) {}";
    assert_eq!(types(text, "k", &["-DWIDE"]), [(true, DOUBLE)]);
    for options in [&["-DWIDE", "-UWIDE"][..], &["-U", "WIDE", "-D", "WIDE"][..1]] {
        let known = Signatures::of(text, options).kernel("k");
        assert!(known.is_none_or(|it| it.parameters[0].of != DOUBLE), "{options:?}");
    }
}

#[test]
fn names_of_a_namespace_are_known_in_it_alone() {
    let text = "#include <types.h>
        namespace S { typedef float real; __global__ void inside(real *p, real x) {} }
        extern \"C\" { typedef float own; __global__ void k(real *p, real x, own y) {} }";
    assert_eq!(types(text, "inside", &[]), [(true, FLOAT), (false, FLOAT)]);
    let unknown = ValueType::Unknown;
    assert_eq!(types(text, "k", &[]), [(true, unknown), (false, unknown), (false, FLOAT)]);
}

#[test]
fn what_a_header_may_define_anew_is_not_known() {
    for between in ["#include \"own.h\"", "#pragma pop_macro(\"REAL\")"] {
        let text = format!("#define REAL float\n{between}\n__global__ void k(REAL *p) {{}}");
        assert_eq!(shown(&text, "k"), "", "{between}");
    }
    let text = "#define REAL float\n#include <math.h>\n__global__ void k(REAL *p) {}";
    assert_eq!(shown(text, "k"), "k(float *p)");
}
