//! Warp functions for AMD's compilers, whose wavefronts may have 64 lanes.
//!
//! The type of a mask tells the header on how many lanes a call works. `warpSize` and `__activemask` do not
//! have a mask. In a text for CUDA only, they have CUDA's meaning; in other texts they have the device's
//! meaning, so that a program for HIP works as before.

use super::amd::{is_number_vector, is_of_hip};
use super::code::{after, closing, definitions, includes, word_set, words};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

const HEADER: &str = "pygpu-cuda-warps.hpp";
/// The start of the names of headers with CUDA's groups.
const GROUPS: &str = "cooperative_groups";

/// True for an exchange between lanes, which CUDA has with a mask, as `__shfl_sync`, and HIP without, as `__shfl`.
fn is_exchange(name: &str) -> bool {
    matches!(
        name,
        "shfl"
            | "shfl_up"
            | "shfl_down"
            | "shfl_xor"
            | "ballot"
            | "any"
            | "all"
            | "match_any"
            | "match_all"
    )
}

fn is_warp_function(word: &str) -> bool {
    let Some(name) = word.strip_prefix("__") else { return false };
    let Some(name) = name.strip_suffix("_sync") else {
        return matches!(name, "syncwarp" | "activemask");
    };
    let reduction = name.strip_prefix("reduce_").unwrap_or("");
    is_exchange(name) || matches!(reduction, "add" | "min" | "max" | "and" | "or" | "xor")
}

/// True for a function that only programs for HIP call: lanes without masks.
fn is_lane_function(word: &str) -> bool {
    let Some(name) = word.strip_prefix("__") else { return false };
    is_exchange(name) || matches!(name, "ballot64" | "lane_id" | "lanemask_lt" | "lanemask_gt")
}

/// Returns the lines for the warp functions that a program's texts call.
pub(super) fn in_front(texts: &[String], codes: &[String]) -> String {
    let code = codes.join("\n");
    let all = word_set([code.as_str()]);
    let mut included = texts.iter().flat_map(|it| includes(it)).map(|it| it.name);
    let has_groups = texts.iter().flat_map(|it| includes(it)).any(|it| it.name.starts_with(GROUPS));
    let needs_width = all.contains("warpSize") || all.contains("__activemask");
    let has_warps = all.iter().any(|it| is_warp_function(it)) || (has_groups && needs_width);
    if !has_warps {
        return String::new();
    }
    let mut lines = String::new();
    let is_of_hip =
        included.any(|name| name.starts_with("hip/") || words(name).any(|it| is_of_hip(&name[it])));
    if needs_width && !is_of_hip && is_of_cuda(&code, &all, has_groups) {
        lines += "#define PYGPU_WARPS_OF_32\n";
    }
    lines += &format!("#include <{HEADER}>\n");
    if definitions(&code).any(|it| is_warp_function(it.1) || it.1 == "warpSize") {
        lines += "#pragma clang diagnostic ignored \"-Wmacro-redefined\"\n";
    }
    for name in own_functions(&code) {
        lines += &format!("#undef {name}\n");
    }
    lines
}

/// The functions that a text defines itself, except those for structures.
fn own_functions(code: &str) -> BTreeSet<&str> {
    let mut own = BTreeSet::new();
    for word in words(code).filter(|it| is_warp_function(&code[it.clone()])) {
        let open = code.len() - after(code, word.end).len();
        if !code[open..].starts_with('(') {
            continue;
        }
        let close = closing(code, open);
        let parameters = &code[open + 1..close.max(open + 2) - 1];
        if parameters.contains([';', '{', '}', '(', ')']) || !after(code, close).starts_with('{') {
            continue;
        }
        let head = code[..word.start].rfind([';', '{', '}', '#']).map_or(0, |it| it + 1);
        let value = parameters.split(',').nth(1).unwrap_or("");
        let is_template = code[head..word.start].contains("template");
        let is_plain = || {
            let is_known =
                value.contains(['<', ':']) || words(value).any(|it| is_number_vector(&value[it]));
            !is_known && !is_structure(code, value)
        };
        if is_template || is_plain() {
            own.insert(&code[word]);
        }
    }
    own
}

/// True if the text defines a structure of the name that a parameter has as its type.
fn is_structure(code: &str, parameter: &str) -> bool {
    let mut types: Vec<&str> = words(parameter).map(|it| &parameter[it]).collect();
    types.pop();
    let is_one = |word: Range<usize>| types.contains(&&code[word]);
    let all: Vec<_> = words(code).collect();
    for (index, word) in all.iter().enumerate() {
        if matches!(&code[word.clone()], "struct" | "class" | "union") {
            // Attributes may stand between.
            let end = code[word.end..].find([':', '{', ';']).map_or(code.len(), |it| word.end + it);
            let mut head = all[index + 1..].iter().take_while(|it| it.end <= end);
            if head.any(|it| is_one(it.clone())) {
                return true;
            }
        }
        let is_named = is_one(word.clone())
            && code[..word.start].trim_end().ends_with('}')
            && after(code, word.end).starts_with(';');
        if is_named {
            return true;
        }
    }
    false
}

/// True for a text for CUDA alone: it uses lanes through CUDA's functions or groups, and has nothing of HIP and no
/// mask of more than 32 bits.
fn is_of_cuda(code: &str, all: &HashSet<&str>, has_groups: bool) -> bool {
    let is_called = |word: &Range<usize>| after(code, word.end).starts_with('(');
    let calls_lanes =
        || words(code).any(|it| is_lane_function(&code[it.clone()]) && is_called(&it));
    if all.iter().any(|it| is_of_hip(it)) || calls_lanes() || compares_with_64(code) {
        return false;
    }
    let active = active_masks(code);
    let counts_64 = words(code).filter(|it| is_called(it)).any(|it| {
        let is_counted =
            matches!(&code[it.clone()], "__popcll" | "__ffsll" | "__clzll" | "__brevll");
        let argument = after(&after(code, it.end)[1..], 0);
        let word = words(argument).next().filter(|it| it.start == 0).map_or("", |it| &argument[it]);
        is_counted && (word == "__activemask" || active.iter().any(|it| it.1 == word))
    });
    if counts_64 {
        return false;
    }
    let calls = words(code).filter_map(|it| Some((it.start, mask(code, &it)?)));
    let masks: Vec<(usize, &str)> = calls.collect();
    if masks.is_empty() && !all.contains("__activemask") {
        return has_groups;
    }
    let names = masks.iter().flat_map(|&(at, mask)| words(mask).map(move |it| (at, &mask[it])));
    let names = names.filter(|it| !it.1.starts_with(|it: char| it.is_ascii_digit()));
    let scopes = Scopes::of(code);
    !masks.iter().any(|it| has_wide(it.1)) && !names.chain(active).any(|it| scopes.is_wide(it))
}

/// A text's functions, in which names are declared.
struct Scopes<'t> {
    code: &'t str,
    functions: Vec<Range<usize>>,
    /// The text with spaces in place of the functions.
    outside: String,
}

impl<'t> Scopes<'t> {
    fn of(code: &'t str) -> Scopes<'t> {
        let mut functions: Vec<Range<usize>> = Vec::new();
        // The starts of open blocks, if they are functions; the number of these; and the end of the last declaration.
        let (mut open, mut depth, mut last) = (Vec::new(), 0_usize, 0);
        for (at, byte) in code.bytes().enumerate() {
            match byte {
                b'{' => {
                    let start = follows_parameters(&code[..at]).then_some(last);
                    depth += usize::from(start.is_some());
                    open.push(start);
                }
                b'}' => {
                    if let Some(start) = open.pop().flatten() {
                        depth -= 1;
                        // The outermost function includes the inner ones.
                        if depth == 0 {
                            functions.push(start..at + 1);
                        }
                    }
                }
                _ => {}
            }
            if matches!(byte, b'{' | b'}' | b';') && depth == 0 {
                last = at + 1;
            }
        }
        let mut outside = code.as_bytes().to_vec();
        for range in &functions {
            outside[range.clone()].fill(b' ');
        }
        let outside = String::from_utf8_lossy(&outside).into_owned();
        Scopes { code, functions, outside }
    }

    /// True if a name at a position has a type or a value of more than 32 bits.
    fn is_wide(&self, (at, name): (usize, &str)) -> bool {
        let inside = self.functions.iter().find(|it| it.contains(&at));
        is_wide(&self.outside, name)
            || inside.is_some_and(|it| is_wide(&self.code[it.clone()], name))
            || definitions(self.code).any(|it| it.1 == name && has_wide(line_of(it.2)))
    }
}

/// True for the text before the body of a function.
fn follows_parameters(before: &str) -> bool {
    let mut before = before.trim_end();
    while let Some(rest) =
        ["const", "noexcept", "override", "final"].iter().find_map(|it| before.strip_suffix(it))
    {
        before = rest.trim_end();
    }
    before.ends_with(')')
}

/// True for a comparison of the width with 64, which only programs for HIP make.
fn compares_with_64(code: &str) -> bool {
    let all: Vec<_> = words(code).collect();
    all.windows(2).any(|pair| {
        let between = code[pair[0].end..pair[1].start].trim();
        let is_comparison = matches!(between, "=" | "!" | "<" | ">" | "==" | "!=" | "<=" | ">=");
        let both = (&code[pair[0].clone()], &code[pair[1].clone()]);
        is_comparison && matches!(both, ("warpSize", "64") | ("64", "warpSize"))
    })
}

/// The variables that have the value of `__activemask()`, and where they get it.
fn active_masks(code: &str) -> Vec<(usize, &str)> {
    let all: Vec<_> = words(code).collect();
    let pairs = all.windows(2).filter(|pair| {
        let between = code[pair[0].end..pair[1].start].trim();
        matches!(between, "=" | "(" | "{") && &code[pair[1].clone()] == "__activemask"
    });
    pairs.map(|pair| (pair[0].start, &code[pair[0].clone()])).collect()
}

/// The mask of a call: its first argument.
fn mask<'t>(code: &'t str, word: &Range<usize>) -> Option<&'t str> {
    let name = &code[word.clone()];
    let is_masked = name.starts_with("__") && (name.ends_with("_sync") || name == "__syncwarp");
    let open = code.len() - after(code, word.end).len();
    if !is_masked || !code[open..].starts_with('(') {
        return None;
    }
    let (mut depth, mut end) = (0_usize, open + 1);
    for byte in code[end..].bytes() {
        match byte {
            b'(' => depth += 1,
            b',' | b')' if depth == 0 => break,
            b')' => depth -= 1,
            _ => {}
        }
        end += 1;
    }
    Some(code[open + 1..end].trim()).filter(|it| !it.is_empty())
}

/// True for a type or a number of more than 32 bits.
fn is_wide_word(word: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_hexdigit() || it == b'\'');
    if let Some(hex) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        let bare = hex.trim_end_matches(['u', 'U', 'l', 'L']);
        return digits(bare) && (bare.len() >= 9 || hex[bare.len()..].contains(['l', 'L']));
    }
    if word.starts_with(|it: char| it.is_ascii_digit()) {
        return word.ends_with(['l', 'L'])
            || word.trim_end_matches(['u', 'U']).ends_with(['l', 'L']);
    }
    matches!(word, "long" | "ulong" | "size_t" | "int64_t" | "uint64_t" | "intptr_t" | "uintptr_t")
}

fn has_wide(text: &str) -> bool {
    words(text).any(|it| is_wide_word(&text[it]))
}

/// True if a text gives a name a type or a value of more than 32 bits.
fn is_wide(code: &str, name: &str) -> bool {
    let is_declared = words(code).filter(|it| is_wide_word(&code[it.clone()])).any(|of| {
        let (mut rest, mut last, mut is_first) = (&code[of.end..], "", true);
        loop {
            rest = match is_first {
                true => {
                    rest.trim_start_matches(|it: char| it.is_whitespace() || it == '&' || it == '*')
                }
                false => rest.trim_start(),
            };
            // Words of the type stand before the first name; a comma and two words are another parameter.
            if let Some(word) =
                words(rest).next().filter(|it| it.start == 0 && (is_first || last.is_empty()))
            {
                last = &rest[word.clone()];
                rest = &rest[word.end..];
                continue;
            }
            let Some(mark) = rest.chars().next() else { return false };
            if last == name && "=;,){(".contains(mark) {
                return true;
            }
            // The next name of the same declaration.
            rest = match mark {
                ',' => &rest[1..],
                '=' => match rest.find([',', ';']) {
                    Some(at) if rest[at..].starts_with(',') => &rest[at + 1..],
                    _ => return false,
                },
                _ => return false,
            };
            (last, is_first) = ("", false);
        }
    });
    let line = |at: usize| code[at..].split([';', '\n']).next().unwrap_or("");
    let is_assigned = || {
        words(code).filter(|it| &code[it.clone()] == name).any(|it| {
            let rest = after(code, it.end);
            rest.starts_with(['=', '{']) && has_wide(line(code.len() - rest.len() + 1))
        })
    };
    is_declared || is_assigned()
}

fn line_of(text: &str) -> &str {
    text.split([';', '\n']).next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::{HEADER, in_front};
    use crate::dialects::code::code_of;

    fn lines(text: &str) -> String {
        in_front(&[text.to_owned()], &[code_of(text, false)])
    }

    const OF_CUDA: &[&str] = &[
        "__shfl_sync(0xffffffff, x, warpSize - 1)",
        "const unsigned m = __activemask(); x = warpSize;",
        "#define FULL 0xffffffffu\n__any_sync(FULL, x) * warpSize",
        "unsigned m = __ballot_sync(~0u, x); __shfl_sync(m, x, 0) + warpSize; unsigned long long y;",
        "long long ship(long long a, unsigned m) { return __shfl_sync(m, a, warpSize); }",
        "__syncwarp(0xff); warpSize // hip",
        "auto t = \"hipMalloc\"; __all_sync(-1, warpSize)",
        "void f(unsigned long long m) { m = 1; } void g(unsigned m) { __any_sync(m, warpSize); }",
        "void f() { long m = 1; } struct S { void g() const { auto m = __activemask(); warpSize; } };",
        "namespace n { void f() { auto m = ~0ull; if (m) { } } void g(int m) { __any_sync(m, warpSize); } }",
    ];
    const OF_BOTH: &[&str] = &[
        "__shfl_sync(~0ull, x, warpSize - 1)",
        "__shfl_sync(0xffffffffffffffff, x, warpSize - 1)",
        "__shfl_sync((unsigned long long)m, x, warpSize - 1)",
        "unsigned long long m = f(); __shfl_sync(m, x, warpSize - 1)",
        "f(int a, const uint64_t m) { __shfl_sync(m, x, warpSize - 1)",
        "unsigned long a, m; __shfl_sync(m, x, warpSize - 1)",
        "#define FULL 0xffffffffffffffffull\n__any_sync(FULL, x) * warpSize",
        "constexpr auto m{~0ull}; __any_sync(m, x) * warpSize",
        "unsigned long long m = __activemask(); x = warpSize;",
        "auto m = __activemask(); __popcll(m) + warpSize",
        "__ffsll(__activemask())",
        "__shfl_sync(0xffffffff, x, 0) + __shfl_down(x, warpSize / 2)",
        "__any_sync(0xffffffff, x) + __ballot(x) + warpSize",
        "__any_sync(0xffffffff, x); if (warpSize == 64) {}",
        "__any_sync(0xffffffff, x) + hipThreadIdx_x + warpSize",
        "#ifdef __HIP_PLATFORM_AMD__\n#endif\n__any_sync(0xffffffff, x) + warpSize",
        "#ifdef USE_ROCM\n#endif\n__any_sync(0xffffffff, x) + warpSize",
        "#include <hip/hip_runtime.h>\n__any_sync(0xffffffff, x) + warpSize",
        "#include \"hip/hip_runtime.h\"\n__any_sync(0xffffffff, x) + warpSize",
        "__builtin_amdgcn_readfirstlane(x) + __any_sync(0xffffffff, x) + warpSize",
        "__syncwarp(); warpSize",
        "void f(unsigned m) { m = 1; } void g(unsigned long long m) { __any_sync(m, warpSize); }",
        "__constant__ long long m; void f(unsigned n) { __any_sync(m, warpSize); }",
        "struct S { long long m; void f() const { if (m) { __any_sync(m, warpSize); } } };",
        "void f() { auto g = [](uint64_t m) { return __any_sync(m, warpSize); }; }",
        "void f() {\n#define FULL ~0ull\n} void g() { __any_sync(FULL, warpSize); }",
    ];
    /// Texts, and whether they define a warp function for numbers.
    const OWN_DEFINITIONS: &[(&str, bool)] = &[
        ("template <class T> T __shfl_sync(unsigned mask, T x, int lane) { return x; }", true),
        ("__device__ float __shfl_sync(int mask, float x, int lane) { return x; }", true),
        (
            "typedef float real; real __shfl_sync(int mask, const real x, int lane) { return x; }",
            true,
        ),
        ("template <class T> struct S; int __any_sync(unsigned mask, int x) { return x; }", true),
        ("__device__ unsigned __activemask() { return 1; }", true),
        ("__device__ void __syncwarp(unsigned mask) {}", true),
        ("__device__ float2 __shfl_sync(unsigned mask, float2 x, int lane) { return x; }", false),
        ("C __shfl_sync(int mask, pycuda::complex<float> x, int lane) { return x; }", false),
        ("struct S { int x; }; S __shfl_sync(unsigned mask, S x, int lane) { return x; }", false),
        (
            "typedef struct { int x; } S; S __shfl_sync(int mask, const S &x, int) { return x; }",
            false,
        ),
        ("x = __shfl_sync(mask, x, 0); if (__any_sync(mask, x)) { y = f(); }", false),
        ("float __shfl_sync(int mask, float x, int lane);", false),
    ];

    #[test]
    fn the_width_is_cudas_in_texts_for_cuda_alone() {
        for (texts, is_of_cuda) in [(OF_CUDA, true), (OF_BOTH, false)] {
            for text in texts {
                let lines = lines(text);
                assert!(lines.contains(HEADER), "{text}");
                assert_eq!(lines.contains("PYGPU_WARPS_OF_32"), is_of_cuda, "{text}");
            }
        }
        assert!(
            lines("#include <cooperative_groups.h>\nx = warpSize;").contains("PYGPU_WARPS_OF_32")
        );
        for text in ["x = warpSize;", "__shfl(x, 0)", "// __shfl_sync(-1, x, 0)", ""] {
            assert_eq!(lines(text), "", "{text}");
        }
    }

    #[test]
    fn a_programs_own_functions_take_the_place_of_the_headers() {
        for (text, is_own) in OWN_DEFINITIONS {
            assert_eq!(lines(text).contains("#undef"), *is_own, "{text}");
        }
    }
}
