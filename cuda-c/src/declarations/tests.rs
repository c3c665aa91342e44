//! Tests of the entries and messages that texts lead to.

use super::{Choices, unit};

/// Returns the appended lines of a text, without the parts that are always the same.
fn entries(text: &str) -> Vec<String> {
    let text = unit(text, &[], &Choices::all(), false).expect("a unit").text;
    let begin = "__attribute__((used)) = ";
    text.lines()
        .filter(|line| line.contains("gpuarray_entry"))
        .map(|line| {
            let (before, after) = line.split_once(begin).expect("an entry");
            let (namespaces, _) = before.split_once("static const").expect("an entry");
            format!("{namespaces}{}", after.trim_start_matches("::gpuarray_abi::"))
        })
        .collect()
}

#[test]
fn kernels_are_found_wherever_they_are_defined() {
    let text = r#"
extern "C" { __gpuarray_global__ void a(float *x, int n) { if (n) { x[0] = 1; } } }
extern "C" __gpuarray_global__ void __gpuarray_bounds__(256, 2) b() {}
static __gpuarray_bounds__(sizeof(float) * 8) __gpuarray_global__ void c(int (*f)(int), char) {}
namespace n { namespace { __gpuarray_global__ void d(int); __gpuarray_global__ void d(int) {} } }
namespace m::o { extern "C" { __gpuarray_global__ void e(int) noexcept {} } }
void __gpuarray_global__ n::f(int) {}
"#;
    assert_eq!(
        entries(text),
        [
            r#"entry<(static_cast<void (*)(float * x , int n)>(&a))>({}, "a");"#,
            r#"entry<(static_cast<void (*)()>(&b))>({256, 2}, "b");"#,
            "entry<(static_cast<void (*)(int ( * f ) ( int ) , char)>(&c))>({sizeof(float) * 8});",
            "namespace n { namespace { entry<(static_cast<void (*)(int)>(&d))>({}); } }",
            r#"namespace m :: o { entry<(static_cast<void (*)(int)>(&e))>({}, "e"); }"#,
            "entry<(&n::f)>({});",
        ]
    );
}

#[test]
fn every_kernel_of_many_is_inlined() {
    let text = "struct S { __gpuarray_variable__ int f(); __gpuarray_variable__ int g(); };
        __gpuarray_variable__ __gpuarray_global__ void k() {}\n";
    let text = unit(&text.repeat(60), &[], &Choices::default(), false).expect("a unit").text;
    assert_eq!(text.matches("inline __attribute__((__always_inline__)) void k").count(), 60);
}

#[test]
fn overloads_and_instances_are_told_by_their_parameters() {
    let text = "
__gpuarray_global__ void f(int a = 3, float *b = g(1, 2)) {}
__gpuarray_global__ void f(float) {}
template <class T, int N = (3 > 2)> __gpuarray_global__ void __gpuarray_bounds__(64) h(T *x) {}
template __gpuarray_global__ void h<int, 3>(int *);
template <> __gpuarray_global__ void h<char>(char *x) {}
";
    assert_eq!(
        entries(text),
        [
            "entry<(static_cast<void (*)(int a , float * b)>(&f))>({});",
            "entry<(static_cast<void (*)(float)>(&f))>({});",
            "entry<(static_cast<void (*)(int *)>(&h<int, 3>))>({});",
            "entry<(static_cast<void (*)(char * x)>(&h<char>))>({});",
        ]
    );
    let named = unit(text, &["h<float>", "&counter"], &Choices::all(), false).expect("a unit").text;
    assert!(
        named.contains(
            "gpuarray_entry_4\") __attribute__((used)) = ::gpuarray_abi::entry<(&h<float>)>({64});"
        ),
        "{named}"
    );
    assert!(named.contains("::gpuarray_abi::entry<(&counter)>({});"), "{named}");
}

#[test]
fn a_kernel_behind_a_constructor_is_found() {
    for constructor in [
        "B::B(int x) : a{x} { a += 1; }",
        "B::B(int x) noexcept : A<int>{x}, a(x), b{x} { init(a); }",
        "template <class T> B<T>::B(T x) : B{x, (x ? 1 : 2)} { if (x) {} }",
        "template <class... T> B::B(T... x) : A{x...}... {}",
        "B::B() : a(1) {}",
        "struct C : A { int a{3}; };",
    ] {
        let text = format!("{constructor} __gpuarray_global__ void k(int *o) {{}}");
        let expected = "entry<(static_cast<void (*)(int * o)>(&k))>({});";
        assert_eq!(entries(&text), [expected], "{constructor}");
    }
}

#[test]
fn constants_are_found_by_their_names() {
    let names = |text: &str| {
        let made = unit(text, &[], &Choices::all(), false).expect("a unit").text;
        let name = |line: &str| Some(line.split_once("{sizeof(")?.1.split_once("),")?.0.to_owned());
        made.lines().filter_map(name).collect::<Vec<_>>()
    };
    let constant = |text: &str| names(&format!("__gpuarray_constant__ {text};"));
    assert_eq!(constant("int a, *b = 0, c[3] = {1, 2}"), ["a", "b", "c"]);
    assert_eq!(constant("dim3 a(1, 2, 3), b{4}"), ["a", "b"]);
    assert_eq!(constant("int (*a)(int), (*const b[2])(int) = {f, g}"), ["a", "b"]);
    assert_eq!(constant("int a = 3 < 4, b = 4"), ["a", "b"]);
    assert_eq!(constant("P<int, (3 > 2)> a = f<1, 2>(3)"), ["a"]);
    assert_eq!(constant("__attribute__((aligned(8))) int q::r::a = 3"), ["q::r::a"]);
    assert_eq!(constant("int a = f < 1, b = c > 2"), ["a", "b"]);
    // A name that is not certain is left out.
    assert_eq!(constant("P < int a, b"), [""; 0]);
    assert_eq!(names("template <class T> __gpuarray_constant__ T a = 3;"), [""; 0]);
}

#[test]
fn arguments_of_templates_may_be_any() {
    for arguments in
        ["sizeof(int)", "void(int)", "int (*)(int)", "X<int (*)(int)>", "(3>2),(1<2)", "N<=4"]
    {
        let text = format!("template __gpuarray_global__ void g<{arguments}>(int *);");
        let expected = format!("entry<(static_cast<void (*)(int *)>(&g<{arguments}>))>({{}});");
        assert_eq!(entries(&text), [expected], "{arguments}");
    }
    let text = "extern template __gpuarray_global__ void g<int>(int *);
        __gpuarray_global__ void h(P<int, float> x = P<int, float>{1, 2}, bool b = 1 < 2, int c = 3 > 2) {}";
    assert_eq!(
        entries(text),
        ["entry<(static_cast<void (*)(P < int , float > x , bool b , int c)>(&h))>({});"]
    );
}

#[test]
fn qualifiers_are_taken_out() {
    let text = unit(
        "__gpuarray_variable__ static int a[3] = {1};\n\
         __gpuarray_variable__ __gpuarray_variable__ float b;\n\
         extern __gpuarray_variable__ int c;\n\
         __gpuarray_variable__ int d(int x) { auto f = [] __gpuarray_variable__ (int) {}; return x; }\n\
         struct S { __gpuarray_variable__ S() {} friend __gpuarray_global__ void k(S); };\n\
         inline __gpuarray_global__ void k(S) {}\n\
         template <class F> __gpuarray_variable__ T e{3};\n",
        &[],
        &Choices::all(),
        false,
    );
    let text = text.expect("a unit").text;
    assert!(!text.contains("__gpuarray_"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "__attribute__((__used__)) static int a[3] = {1};");
    assert_eq!(lines[1], "__attribute__((__used__))  float b;");
    assert_eq!(lines[2], "extern  int c;");
    assert_eq!(lines[3], " int d(int x) { auto f = []  (int) {}; return x; }");
    assert_eq!(lines[4], "struct S {  S() {} friend  void k(S); };");
    assert_eq!(lines[5], "inline __attribute__((__always_inline__)) void k(S) {}");
    assert_eq!(lines.iter().filter(|line| line.contains("gpuarray_entry")).count(), 1);
}

#[test]
fn words_in_strings_are_nothing() {
    let text = "const char *s = \"__gpuarray_global__ void f() {}\"; int x = 'a';";
    let made = unit(text, &[], &Choices::all(), false).expect("a unit").text;
    assert_eq!(made, text);
}

#[test]
fn what_no_unit_can_have_is_refused_by_name() {
    let refused = |text: &str| unit(text, &[], &Choices::all(), false).expect_err("refused");
    let launch =
        refused("# 1 \"k.cu\"\n__gpuarray_variable__ void f() { if (1) {\n k<<<1, 2>>>(); } }");
    assert!(launch.starts_with("k.cu:2:3: error: a kernel cannot launch kernels"), "{launch}");
    for text in [
        "void f(int n) { if (n) { k<<<1, 2>>>(); } }",
        "namespace n { struct S { void f() { k<<<1, 2>>>(); } }; }",
        "template <int N> void f() { k<<<N, (2 > 1 ? 1 : 2)>>>(); }",
        "template <class T> void f(T x) noexcept { k<<<1, 2>>>(); }",
        "struct __attribute__((aligned(8))) S { struct A *f() const { k<<<1, 2>>>(); } };",
    ] {
        let host = unit(text, &[], &Choices { meets: true, ..Choices::default() }, false)
            .expect("only the host launches");
        assert!(host.text.contains("k();") && !host.text.contains("<<<"), "{}", host.text);
    }
    let ptx = refused("# 1 \"k.cu\"\n__gpuarray_variable__ void f() { asm volatile (\"x\"); }");
    assert!(ptx.starts_with("k.cu:1: error: inline PTX"), "{ptx}");
    assert!(
        unit("int f() __asm__(\"g\"); void h() { a << b; }", &[], &Choices::all(), false).is_ok()
    );
    assert!(unit("X& operator<<<int>(X&);", &[], &Choices::all(), false).is_ok());
}

#[test]
fn what_only_other_compilers_take_is_refused_by_name() {
    let shared = "__attribute__(()) thread_local";
    let refused = |body: &str| {
        let body = body.replace("__shared__", shared);
        unit(&format!("# 1 \"k.cu\"\n{body}"), &[], &Choices::all(), false).err()
    };
    for (body, message) in [
        ("__gpuarray_global__ int k(int *a) {}", "k.cu:1: error: kernel k returns a value"),
        ("template <class T>\n__gpuarray_global__ float k(T *a) {}", "k.cu:2: error: kernel k"),
        ("void k() { __shared__ int s = 3; }", "k.cu:1: error: a __shared__ variable has no"),
        ("void k() { __shared__ int s[2] = {1}; }", "k.cu:1: error: a __shared__ variable has no"),
        ("void k() { __shared__ int s[2]{}; }", "k.cu:1: error: a __shared__ variable has no"),
        ("void k() { __shared__ int s{}; }", "k.cu:1: error: a __shared__ variable has no"),
        ("void k() { __shared__ int s(0); }", "k.cu:1: error: a __shared__ variable has no"),
        (
            "void k() { __shared__ int r, s(f(0)), *t; }",
            "k.cu:1: error: a __shared__ variable has no",
        ),
        ("void k() { __shared__ A<int> s(0); }", "k.cu:1: error: a __shared__ variable has no"),
    ] {
        let found = refused(body).unwrap_or_default();
        let (place, said) = message.split_once(" error").expect("a message");
        let is_there = found.starts_with(place) && found.contains(&format!(": error{said}"));
        assert!(is_there, "{body}\n{found}");
    }
    for body in [
        "typedef void none; __gpuarray_global__ none k(int *a) {}",
        "template <int N> __gpuarray_global__ void k(int *a) {}",
        "void k() { __shared__ int s[sizeof(int)]; s[0] = 1; }",
        "void k() { __shared__ struct { int a; } s; s.a = 1; }",
        "void k() { extern __shared__ char s[]; }",
        "void k() { thread_local int s = 3; }",
        "void k() { __shared__ float (*p)[4]; __shared__ int (*f)(int), (*g)(); __shared__ T (s); }",
        "void k() { __shared__ alignas(16) float s[4]; __shared__ const T (t); __shared__ decltype(a) u; }",
        "void k() { __shared__ __attribute__((aligned(8))) int s; f(0); }",
        "void k() { __shared__ typename cond<sizeof(T) <= 4, int, long>::type s[64]; }",
        "void k() { __shared__ A<N == 64> s; __shared__ A<N != 64, int> t; __shared__ A<(N >= 64)> u; }",
        "void k() { __shared__ int s[N == 2 ? 1 : 3]; }",
    ] {
        assert_eq!(refused(body), None, "{body}");
    }
}

#[test]
fn a_wrong_text_is_left_to_the_compiler() {
    for text in [
        "__gpuarray_global__",
        "__gpuarray_global__ void f(",
        "}}} (",
        "template",
        "f(){",
        "__gpuarray_bounds__ ;",
        "operator",
        "> ( ) {}",
    ] {
        let _ = unit(text, &[], &Choices::all(), false);
    }
}
