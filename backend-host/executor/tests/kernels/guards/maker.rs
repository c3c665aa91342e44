//! Generates random kernels without barriers, as text.

use crate::units::Random;
use std::fmt::Write as _;

/// Declarations for the kernels; `OWN` is an element that no other thread writes.
pub(crate) const HEAD: &str = r"
struct Bits { unsigned low : 5; int high : 4; unsigned rest : 23; };
#define OWN(k) out[(k) * total + t]
#define MIX(k, value) OWN(k) = OWN(k) * 31u + (unsigned)(value)
__constant__ int few = 5;
static const int five = 5;
constexpr unsigned char top = 250;
template <class T> static __device__ T twice(T value) { return value + value; }
static __device__ int index_of() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ void add_to(unsigned &to, int value) { to = to * 31u + value; }
";

const TYPES: [&str; 10] = [
    "int",
    "unsigned",
    "long long",
    "unsigned long long",
    "unsigned char",
    "signed char",
    "short",
    "unsigned short",
    "float",
    "bool",
];
const COMPARISONS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];

/// Generates one kernel.
pub(crate) struct Maker<'r> {
    random: &'r mut Random,
    /// The names of locals that can be read.
    locals: Vec<String>,
    made: usize,
}

impl<'r> Maker<'r> {
    pub(crate) fn new(random: &'r mut Random) -> Maker<'r> {
        Maker { random, locals: Vec::new(), made: 0 }
    }

    pub(crate) fn kernel(mut self, number: usize) -> String {
        let mut text = format!(
            "extern \"C\" __global__ void kernel_{number}(int n, unsigned u, long long l, float f, \
             double d, unsigned char c, Bits b, __int128 w, int total, unsigned *out, const int *in) {{\n\
             const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * (threadIdx.z + \
             blockDim.z * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z))));\n"
        );
        let count = 3 + self.random.below(6);
        self.statements(&mut text, count, 1);
        text.push_str("}\n");
        text
    }

    fn one<'s>(&mut self, of: &[&'s str]) -> &'s str {
        of[self.random.below(of.len())]
    }

    fn local(&mut self) -> Option<String> {
        let count = self.locals.len();
        (count > 0).then(|| self.locals[self.random.below(count)].clone())
    }

    /// Returns a number that is the same in all threads, or in all threads of a row.
    fn bound(&mut self) -> String {
        let texts = "n; u; l; f; d; c; b.low; b.high; w; 5; 3u; -2; 40ll; 2.5f; n - 3; u + 1; \
             (short)n; (unsigned)l; five; top; few; blockDim.x - 2; n * 2; -n; (n + 1) / 2; \
             n > 3; threadIdx.y; twice(n); (unsigned char)n; 'a'; min(n, 9); in[3]; n & 15; \
             ~n; (n ? 3 : 7); gridDim.x * blockDim.x; blockIdx.y * 9";
        match self.random.below(2) {
            0 => self.one(&["n", "u", "l", "f", "c", "b.low", "w", "9", "threadIdx.y + 3"]).into(),
            _ => self.one(&texts.split("; ").collect::<Vec<_>>()).into(),
        }
    }

    /// Returns an expression that may increase from thread to thread; `@` stands for an index.
    fn counting(&mut self) -> String {
        let texts = "threadIdx.x; @; threadIdx.x - 3u; (int)threadIdx.x - 5; @ + n; n + @; @ - u; \
             (unsigned char)threadIdx.x; (signed char)(@ + 100); (long long)@ + l; @ * 2; \
             n - @; -@; @ + @; (short)(@ + n); ~@; @ / 2; @ % 7; (threadIdx.x); index_of(); \
             blockIdx.x * blockDim.x + threadIdx.x; @ + threadIdx.y; \
             threadIdx.y + threadIdx.x; @ ^ 1; unsigned(@) - 7u; (@ > 3) + @; @ + f; \
             (bool)threadIdx.x; @ << 1; +@; 5 - -@; (__int128)@ + w; char(threadIdx.x); \
             @ + b.low; @ + c; (unsigned char)(@ + c)";
        let simple =
            ["threadIdx.x", "@", "@ + n", "threadIdx.x - 3u", "u + (@)", "(unsigned char)(@)"];
        let text = match self.random.below(2) {
            0 => self.one(&simple).to_owned(),
            _ => self.one(&texts.split("; ").collect::<Vec<_>>()).to_owned(),
        };
        let index = match self.local() {
            Some(name) if self.random.below(4) > 0 => name,
            _ => "int(threadIdx.x)".into(),
        };
        text.replace('@', &index)
    }

    /// Returns a part of a condition. Half of the parts compare an increasing value with a constant one.
    fn part(&mut self) -> String {
        let operator = self.one(&COMPARISONS);
        let (own, bound) = (self.counting(), self.bound());
        match self.random.below(14) {
            0..4 => format!("{own} {operator} {bound}"),
            4..7 => format!("{bound} {operator} {own}"),
            7 => format!("({own} {operator} {bound})"),
            8 => format!("!({own} {operator} {bound})"),
            9 => format!("{bound} {operator} {}", self.bound()),
            10 => format!("({own} {operator} {bound} || {})", self.part()),
            11 => format!("({own} {operator} {bound} && {})", self.part()),
            12 => "OWN(1) % 3 != 0".into(),
            _ => format!("({own}) {operator} ({bound})"),
        }
    }

    fn condition(&mut self) -> String {
        let mut text = self.part();
        for _ in 0..self.random.below(3) {
            let operator = self.one(&["&&", "&&", "||"]);
            let _ = write!(text, " {operator} {}", self.part());
        }
        text
    }

    fn work(&mut self) -> String {
        let (k, value) = (self.random.below(4), self.counting());
        match self.random.below(24) {
            0 => format!("add_to(OWN({k}), (int)({}));", self.bound_of_own()),
            1 => format!(
                "{{ unsigned *const mine = out + t; mine[{k} * total] += {}; MIX({k}, 3); }}",
                self.bound_of_own()
            ),
            2 => format!("out[{k} * total + t] += in[(unsigned)({}) % 64];", self.bound_of_own()),
            3 => format!("MIX({k}, in[threadIdx.x & 63]);"),
            4 => format!("OWN({k})++, OWN(0) ^= OWN({k});"),
            _ if value.contains(" f") => format!("MIX({k}, 9);"),
            _ => format!("MIX({k}, {value});"),
        }
    }

    /// Returns an integer.
    fn bound_of_own(&mut self) -> String {
        let text = self.bound();
        if ["f", "d", "2.5f"].contains(&&*text) { "t".into() } else { text }
    }

    fn statements(&mut self, text: &mut String, count: usize, depth: usize) {
        let known = self.locals.len();
        for _ in 0..count {
            let condition = self.condition();
            match self.random.below(if depth > 0 { 12 } else { 8 }) {
                0 | 1 => {
                    let kind = self.one(&TYPES);
                    let (name, value) = (format!("v{}", self.made), self.counting());
                    self.made += 1;
                    let qualifier = self.one(&["const ", "const ", ""]);
                    let value = if value.contains(" f") { "threadIdx.x".into() } else { value };
                    let _ = writeln!(text, "{qualifier}{kind} {name} = {value};");
                    if kind != "float" {
                        self.locals.push(name);
                    }
                }
                2..6 => {
                    let work = self.work();
                    let _ = writeln!(text, "if ({condition}) {work}");
                }
                6 => {
                    let work = self.work();
                    let _ = writeln!(text, "{work}");
                }
                7 => {
                    let leave = self.one(&[
                        "return;",
                        "{ return; }",
                        "return;",
                        "{ return; }",
                        "{ OWN(2) += 5; return; }",
                    ]);
                    let _ = writeln!(text, "if ({condition}) {leave}");
                }
                8 => {
                    let _ = writeln!(text, "if ({condition}) {{");
                    self.statements(text, 2, depth - 1);
                    let _ = writeln!(text, "}}");
                    if self.random.below(3) == 0 {
                        let _ = writeln!(text, "else {{ {} }}", self.work());
                    }
                }
                9 => {
                    let name = format!("k{}", self.made);
                    self.made += 1;
                    let end = self.one(&["3", "few", "(n & 3)", "threadIdx.y", "c % 4"]);
                    let _ = writeln!(text, "for (int {name} = 0; {name} < {end}; ++{name}) {{");
                    self.statements(text, 2, depth - 1);
                    if self.random.below(12) == 0 {
                        let leave = self.one(&["break;", "continue;"]);
                        let _ = writeln!(text, "if ({}) {leave}", self.condition());
                    }
                    let _ = writeln!(text, "}}");
                }
                10 => {
                    let name = format!("g{}", self.made);
                    self.made += 1;
                    let kind = self.one(&["int", "unsigned", "long long"]);
                    let step = self.one(&["blockDim.x", "gridDim.x * blockDim.x", "17"]);
                    let _ = writeln!(
                        text,
                        "for ({kind} {name} = threadIdx.x; {name} < (n & 127); {name} += {step}) {{"
                    );
                    self.locals.push(name);
                    self.statements(text, 1, depth - 1);
                    self.locals.pop();
                    let _ = writeln!(text, "}}");
                }
                _ => {
                    let _ = writeln!(text, "{{");
                    self.statements(text, 2, depth - 1);
                    let _ = writeln!(text, "}}");
                }
            }
        }
        self.locals.truncate(known);
    }
}
