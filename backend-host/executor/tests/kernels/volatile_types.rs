//! Volatile memory whose type only the compiler knows: through templates, `auto`, results of functions, members. Expected
//! values come from a model in which the lanes of a warp run in step.

use crate::units::{Random, load, load_checked, run};

/// An alias: its name, what precedes the kernel, and how the kernel gets from the array `s` of `T` to elements `E(i)`.
/// `T` is `volatile int` or `int`.
const ALIASES: [(&str, &str, &str, &str); 19] = [
    ("pointer", "", "auto p = s;", "p[i]"),
    ("moved", "", "auto p = s; auto q = p + 1;", "*(q + (i) - 1)"),
    ("reference", "", "auto &p = s;", "p[i]"),
    ("constant", "", "auto *const p = &s[0];", "p[i]"),
    ("result", "__device__ T *place(T *p, int i) { return p + i; }", "", "*place(s, i)"),
    ("referred", "__device__ T &place(T *p, int i) { return p[i]; }", "", "place(s, i)"),
    ("deduced", "__device__ auto place(T *p) { return p; }", "", "place(s)[i]"),
    ("closure", "", "auto place = [&](int i) -> T & { return s[i]; };", "place(i)"),
    ("generic", "", "auto place = [](auto *p, int i) { return p + i; };", "*place(&s[0], i)"),
    ("declared", "", "decltype(&s[0]) p = s;", "p[i]"),
    ("member", "template <class P> struct Held { P *p; };", "Held<T> h = {s};", "h.p[i]"),
    (
        "typed",
        "template <class P> struct Held { typedef P *Type; };",
        "Held<T>::Type p = s;",
        "p[i]",
    ),
    ("chained", "typedef T A; typedef A B; typedef B *C;", "C p = s;", "p[i]"),
    ("used", "using A = T; using B = A; using C = B *;", "C p = s;", "p[i]"),
    ("selected", "", "auto p = threadIdx.x < 99 ? s : 0;", "p[i]"),
    (
        "class",
        "struct View { T *p; __device__ T &operator[](int i) const { return p[i]; } };",
        "View v = {s};",
        "v[i]",
    ),
    (
        "star",
        "struct View { T *p; __device__ T &operator*() const { return *p; } };",
        "",
        "*View{s + (i)}",
    ),
    ("arrow", "struct Cell { T x; };", "auto p = (Cell *)s;", "(p + (i))->x"),
    ("cast", "typedef T A; typedef A *B;", "", "((B)s)[i]"),
];

/// Functions that add to an element whose type is a parameter.
const FUNCTIONS: &str = "
template <class P> __device__ void add_to(P *p, int i, int x) { p[i] += x; }
template <class P> __device__ void add_one(P &p, int x) { p += x; }
template <class P> struct Adder { P *p; __device__ void add(int i, int x) { p[i] += x; } };
";

/// Returns a kernel and what it needs, in a namespace, for elements of a type.
fn kernel(name: &str, of: &str, alias: (&str, &str, &str, &str), body: &str) -> String {
    let (_, before, inside, element) = alias;
    format!(
        "namespace {name}_ {{ typedef {of} T; {before}\n{FUNCTIONS}\n#undef E\n#define E(i) ({element})
extern \"C\" __global__ void {name}(int *a) {{
    __shared__ T s[64];
    const int t = threadIdx.x;
    {inside}
    s[t] = a[t]; s[t + 32] = 0;
    __syncthreads();
    {body}
}} }}\n"
    )
}

#[test]
fn types_and_functions_may_stand_beside_volatile_reads() {
    for (number, condition) in [
        "i < p[0] / (int)sizeof(int)",
        "i < p[0] / (int)sizeof(V<int>)",
        "Less{}(i, p[0])",
        "Less<int>{}(i, p[0])",
        "i < p[0] + A{3}.a",
        "i < ap(id, p[0])",
        "i < p[0] && i < b.template f<40>()",
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!(
            "template <class T> struct V {{ T x; }};
struct A {{ int a; template <int N> __device__ int f() const {{ return N; }} }};
template <class T = int> struct Less {{ __device__ bool operator()(T a, T b) const {{ return a < b; }} }};
__device__ int id(int x) {{ return x; }}
__device__ float id(float x) {{ return x; }}
__device__ int ap(int (*f)(int), int x) {{ return f(x); }}
struct __attribute__((packed)) Packed {{ char c; int a[2]; }};
template <class P, class B> __device__ int f(P p, B b) {{ int i = 0; while ({condition}) i++; return i; }}
template <class P> __device__ void w(P p, int t) {{ Packed x; x.a[1] = t; p[t] = x.a[1] + 1; }}
extern \"C\" __global__ void k(int *a) {{
    const int found = f((volatile int *)a, A()) + (threadIdx.x == 99 ? {number} : 0);
    w((volatile int *)a, threadIdx.x);
    a[threadIdx.x] += found;
}}
"
        )
        .replace("Less{}", "Less<>{}");
        load(&text);
    }
}

#[test]
fn lanes_meet_whatever_says_that_memory_is_volatile() {
    let distances = [16, 8, 4, 2, 1];
    let steps = distances.map(|d| format!("E(t) += E(t + {d});")).concat();
    let sum = format!("{steps} a[t] = s[t];");
    // The number of lanes that are here while one of them writes.
    let count =
        "int before = atomicAdd(&count, 1); E(t) += t; a[t] = atomicAdd(&count, 1) - before;";
    let mut wrong = Vec::new();
    for (number, alias) in ALIASES.into_iter().enumerate() {
        let text = "volatile int other; __device__ int count;".to_owned()
            + &kernel("sum", "volatile int", alias, &sum)
            + &kernel("all", "volatile int", alias, count)
            + &kernel("one", "int", alias, count);
        let begin: Vec<i32> = (0..32).map(|it| it * it).collect();
        let mut expected = [&begin[..], &[0; 32]].concat();
        for d in distances {
            (0..32).for_each(|t| expected[t] += expected[t + d]);
        }
        let library = if number % 5 == 4 { load_checked(&text) } else { load(&text) };
        for (name, expected) in [("sum", &expected[..32]), ("all", &[32; 32]), ("one", &[1; 32])] {
            let mut array = begin.clone();
            run(&library, name, 1, 32, &mut array);
            if array != expected {
                wrong.push((alias.0, name));
            }
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn lanes_meet_in_functions_and_behind_branches() {
    let alias = ("", "", "auto p = s; auto &r = s[40]; Adder<T> adder{s};", "p[i]");
    for (name, write, place) in [
        ("element", "p[40] += t + 1;", "p[40]"),
        ("reference", "r += t + 1;", "r"),
        ("function", "add_to(p, 40, t + 1);", "p[40]"),
        ("parameter", "add_one(p[40], t + 1);", "p[40]"),
        ("method", "adder.add(40, t + 1);", "p[40]"),
        ("block", "{ auto *q = p + 40; *q = *q + t + 1; }", "p[40]"),
    ] {
        let body = format!(
            "for (int k = 0; k < 32; ++k) {{ if (t == 31 - k) {write} a[t] = a[t] * 3 + {place}; }}"
        );
        let text = "volatile int other;".to_owned() + &kernel("k", "volatile int", alias, &body);
        let (mut array, mut expected, mut written) = ([0; 32], [0_i32; 32], 0);
        for k in 0..32 {
            written += 32 - k;
            expected.iter_mut().for_each(|it| *it = it.wrapping_mul(3).wrapping_add(written));
        }
        run(&load(&text), "k", 1, 32, &mut array);
        assert_eq!(array, expected, "{name}");
    }
}

#[test]
fn loops_that_wait_let_the_others_run() {
    let alias = ("", "", "auto p = s + 40; auto &r = s[40]; Adder<T> h{s + 40};", "p[i]");
    let text = "volatile int other;
        template <class P> __device__ bool is_set(P &p) { return p != 0; }
        template <class P> __device__ P *same(P *p) { return p; }
        template <class P> __device__ int waited(P *p) { int n = 0; while (p[0] == 0 && ++n < 1000000) {} return n; }
        "
    .to_owned();
    for (name, wait) in [
        ("element", "while (p[0] == 0 && ++n < 1000000) {}"),
        ("star", "do {} while (!*p && ++n < 1000000);"),
        ("reference", "for (; r == 0 && n < 1000000;) n++;"),
        ("member", "while (h.p[0] == 0 && ++n < 1000000) {}"),
        ("function", "while (same(p)[0] == 0 && ++n < 1000000) {}"),
        ("asked", "while (!is_set(r) && ++n < 1000000) {}"),
        ("left", "for (;;) { if (*p || ++n == 1000000) break; }"),
        ("assigned", "int v = 0; while (!v && ++n < 1000000) v = *p;"),
        ("inside", "for (;;) { auto v = p[0]; if (v || ++n == 1000000) break; }"),
        ("template", "n = waited(p);"),
        ("cast", "typedef T A; while (*(A *)p == 0 && ++n < 1000000) {}"),
    ] {
        let body =
            format!("int n = 0; if (t == 31) p[0] = t; else {{ {wait} }} a[t] = n < 1000000;");
        let text = text.clone() + &kernel("k", "volatile int", alias, &body);
        let mut array = [0; 32];
        run(&load(&text), "k", 1, 32, &mut array);
        assert_eq!(array, [1; 32], "{name}");
    }
}

/// Lanes count in the same bins, and repeat until their own write has lasted.
#[test]
fn lanes_look_at_what_they_wrote_before_others_write() {
    let text = r#"
template <class V> __device__ void add(V *bins, unsigned bin, unsigned tag) {
    unsigned count;
    do {
        count = tag | ((bins[bin] & 0x7ffffff) + 1);
        bins[bin] = count;
    } while (bins[bin] != count);
}
extern "C" __global__ void k(int *a) {
    __shared__ unsigned bins[8];
    const int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) add<volatile unsigned>(bins, t * i % 7, t << 27);
    __syncthreads();
    if (t < 8) a[t] = bins[t] & 0x7ffffff;
}
"#;
    let (mut array, mut expected) = ([0; 8], [0; 8]);
    (0..32).for_each(|t| (0..16).for_each(|i| expected[t * i % 7] += 1));
    run(&load(text), "k", 1, 32, &mut array);
    assert_eq!(array, expected);
}

/// A random statement that the lanes of a warp run in step. Elements are those of the lanes' numbers, moved or reversed.
enum Step {
    /// Form of the element, its index, and the index of another element that is added.
    Add(usize, usize, usize),
    Read(usize),
    If(usize, Vec<Step>),
    Repeat(usize, Vec<Step>),
}

fn index(kind: usize, lane: usize) -> usize {
    if kind < 16 { (lane + kind) % 32 } else { lane ^ (kind - 16) }
}

fn is_active(kind: usize, lane: usize) -> bool {
    lane % (kind % 5 + 2) <= kind / 5
}

impl Step {
    fn random(random: &mut Random, depth: usize) -> Step {
        match random.below(if depth == 0 { 6 } else { 9 }) {
            0..5 => Step::Add(random.below(7), random.below(32), random.below(32)),
            5 => Step::Read(random.below(32)),
            6 => Step::Repeat(random.below(3) + 1, Step::list(random, depth - 1)),
            _ => Step::If(random.below(20), Step::list(random, depth - 1)),
        }
    }

    fn list(random: &mut Random, depth: usize) -> Vec<Step> {
        (0..random.below(3) + 1).map(|_| Step::random(random, depth)).collect()
    }

    fn text(&self) -> String {
        let at = |kind: usize| match kind {
            0..16 => format!("(t + {kind}) % 32"),
            _ => format!("t ^ {}", kind - 16),
        };
        let list = |steps: &[Step]| steps.iter().map(Step::text).collect::<String>();
        match self {
            Step::Add(form, to, from) => {
                let (to, value) = (at(*to), format!("(s[{}] * 3 + x) % 1000", at(*from)));
                match form {
                    0 => format!("add_to(s, {to}, {value});\n"),
                    1 => format!("add_one(s[{to}], {value});\n"),
                    2 => format!("adder.add({to}, {value});\n"),
                    3 => format!("{{ auto &q = w[{to}]; q = q + {value}; }}\n"),
                    4 => format!("(*(w + ({to}))) += {value};\n"),
                    5 => format!("put({to}, {value});\n"),
                    _ => format!("E({to}) += {value};\n"),
                }
            }
            Step::Read(from) => format!("x = (x * 5 + w[{}]) % 1000;\n", at(*from)),
            Step::If(kind, steps) => {
                format!("if (t % {} <= {}) {{\n{}}}\n", kind % 5 + 2, kind / 5, list(steps))
            }
            Step::Repeat(count, steps) => {
                format!(
                    "for (int i{count} = 0; i{count} < {count}; ++i{count}) {{\n{}}}\n",
                    list(steps)
                )
            }
        }
    }

    fn run(&self, lanes: &[usize], s: &mut [i32], x: &mut [i32]) {
        match self {
            Step::Add(_, to, from) => {
                let sum = |&lane: &usize| {
                    let value = s[index(*from, lane)].wrapping_mul(3).wrapping_add(x[lane]) % 1000;
                    s[index(*to, lane)] + value
                };
                let sums: Vec<i32> = lanes.iter().map(sum).collect();
                lanes.iter().zip(sums).for_each(|(&lane, sum)| s[index(*to, lane)] = sum);
            }
            Step::Read(from) => {
                lanes.iter().for_each(|&it| x[it] = (x[it] * 5 + s[index(*from, it)]) % 1000);
            }
            Step::If(kind, steps) => {
                let lanes: Vec<usize> =
                    lanes.iter().copied().filter(|&lane| is_active(*kind, lane)).collect();
                steps.iter().for_each(|it| it.run(&lanes, s, x));
            }
            Step::Repeat(count, steps) => (0..*count).for_each(|_| {
                steps.iter().for_each(|it| it.run(lanes, s, x));
            }),
        }
    }
}

#[test]
fn random_kernels_run_in_step() {
    let seeds = std::env::var("VOLATILE_SEEDS")
        .map_or(1..9, |count| 100..100 + count.parse::<u64>().expect("a number"));
    for seed in seeds {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (name, before, inside, element) = ALIASES[random.below(ALIASES.len())];
        let inside = format!(
            "{inside} {{ auto w = &s[0]; Adder<T> adder{{w}}; auto put = [&](int i, int x) {{ w[i] += x; }}; int x = t;"
        );
        let steps: Vec<Step> = (0..8).map(|_| Step::random(&mut random, 2)).collect();
        let body: String = steps.iter().map(Step::text).collect();
        let body = format!("{body} a[t] = s[t]; a[t + 32] = x; }}");
        let alias = (name, before, &*inside, element);
        let text = "volatile int other;\n".to_owned() + &kernel("k", "volatile int", alias, &body);
        let mut array: Vec<i32> = (0..64).map(|it| it * 7 % 32).collect();
        let mut s = array[..32].to_vec();
        let mut x: Vec<i32> = (0..32).collect();
        let lanes: Vec<usize> = (0..32).collect();
        steps.iter().for_each(|it| it.run(&lanes, &mut s, &mut x));
        run(&load(&text), "k", 1, 32, &mut array);
        assert_eq!(array, [s, x].concat(), "seed {seed}\n{text}");
    }
}
