//! Functions for the host in a program's text. nvcc leaves them out of the code for a device; run-time compilers
//! cannot, so this module removes them from the text.
//!
//! A function without a qualifier may be for the device as well. A text therefore keeps each one that something else
//! in the program mentions: code of the device, a class, a template, a macro, or a function that stays. The text is
//! changed only if one of the other functions uses something that exists only on the host; then all these
//! other functions are removed.

use super::code::{definitions, directives, without_directives, words};
use crate::tokens::{Kind, Tokens};
use crate::tree::{Declared, Items};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Words that a function without a qualifier may have in front of its name, and types of C++ after `std::`. A text may
/// define more types. Another word may be a macro that stands for a qualifier.
const PLAIN: &str = "
    FILE __attribute__ __forceinline__ __host__ __inline__ __noinline__ __restrict__ bool char const cudaError_t
    cudaEvent_t cudaStream_t dim3 double extern float inline int int16_t int32_t int64_t int8_t long short signed
    size_t static std uint uint16_t uint32_t uint64_t uint8_t unsigned void
";

/// A function without a qualifier, at the level of a namespace.
struct Function<'a> {
    name: &'a str,
    range: Range<usize>,
}

/// Returns a text with spaces in place of functions for the host alone; `None` if there is none, if the text's braces
/// do not match, or if it pastes names together. `code` is the text without comments and literals, `others` are the
/// codes of the headers that the program includes, and of its options.
pub(super) fn left_out(text: &str, code: &str, others: &[String]) -> Option<String> {
    if !is_for_host(code) && !words(code).any(|it| &code[it] == "extern") {
        return None;
    }
    let codes = || [code].into_iter().chain(others.iter().map(String::as_str));
    if codes().any(|it| it.contains("##")) {
        return None;
    }
    let macros: HashMap<&str, &str> =
        codes().flat_map(definitions).map(|(_, name, value)| (name, value)).collect();
    let types: HashSet<&str> =
        codes().flat_map(types).filter(|it| !macros.contains_key(it)).collect();
    let directives: Vec<_> = directives(code).map(|it| (it.range, it.name)).collect();
    let (functions, names) = functions(code, &types)?;
    let is_inside = |at: usize| {
        let before = functions.partition_point(|of| of.range.start <= at);
        before > 0 && functions[before - 1].range.contains(&at)
    };
    // A function that a macro names counts as mentioned only where the macro is used.
    let is_defined = |at: usize| {
        let before = directives.partition_point(|of| of.0.start <= at);
        before > 0 && directives[before - 1].1 == "define" && directives[before - 1].0.contains(&at)
    };
    let outside = words(code)
        .filter(|it| !is_inside(it.start) && !is_defined(it.start) && !names.contains(&it.start));
    let mut new: Vec<&str> = outside.map(|it| &code[it]).collect();
    new.extend(others.iter().flat_map(|it| {
        let defined: Vec<_> = definitions(it).map(|(of, ..)| of.range).collect();
        let declared = self::functions(it, &types).map_or_else(HashSet::new, |it| it.1);
        words(it)
            .filter(move |word| !defined.iter().any(|of| of.contains(&word.start)))
            .filter(move |word| !declared.contains(&word.start))
            .map(|word| &it[word])
    }));
    let (mut mentioned, mut rest) = (HashSet::new(), functions.iter().collect::<Vec<_>>());
    while !new.is_empty() {
        while let Some(word) = new.pop() {
            if mentioned.insert(word) {
                new.extend(macros.get(word).into_iter().flat_map(|it| words_of(it)));
            }
        }
        let (stay, leave): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|it| mentioned.contains(it.name));
        rest = leave;
        new.extend(stay.iter().flat_map(|it| words_of(&code[it.range.clone()])));
    }
    // Other files may define these.
    let mut unknown: HashSet<&str> =
        names.iter().filter_map(|&at| words_of(&code[at..]).next()).collect();
    unknown.retain(|name| functions.iter().all(|it| it.name != *name));
    let needs_host =
        |body: &str| is_for_host(body) || words_of(body).any(|it| unknown.contains(it));
    if !rest.iter().any(|it| needs_host(&code[it.range.clone()])) {
        return None;
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut leave = |range: Range<usize>| {
        bytes[range].iter_mut().filter(|it| **it != b'\n').for_each(|it| *it = b' ');
    };
    for function in rest {
        let mut start = function.range.start;
        // A macro may be used further on, and a condition needs its end.
        let inside = directives.iter().filter(|it| function.range.contains(&it.0.start));
        for (directive, _) in inside.filter(|it| it.1 != "include") {
            leave(start..directive.start);
            start = directive.end;
        }
        leave(start..function.range.end.max(start));
    }
    String::from_utf8(bytes).ok()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    words(text).map(|it| &text[it])
}

/// Returns the names of types that a text defines.
fn types(code: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    let mut in_typedef = false;
    words(code).filter_map(move |it| {
        let word = &code[it.clone()];
        in_typedef |= word == "typedef";
        let is_last = in_typedef && code[it.end..].trim_start().starts_with(';');
        in_typedef &= !is_last;
        let is_named = matches!(before, "struct" | "class" | "union" | "enum" | "using");
        before = word;
        (is_named || is_last).then_some(word)
    })
}

/// Returns true for code that launches a kernel, calls CUDA's API or the standard library, uses exceptions or types at
/// run time, or is a program's `main`.
fn is_for_host(body: &str) -> bool {
    let of_api = |name: &str| {
        let rest = ["cuda", "cu"].iter().find_map(|it| name.strip_prefix(it));
        name == "main"
            || rest.is_some_and(|it| it.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    let is_call = |end: usize| body[end..].trim_start().starts_with('(');
    body.contains("<<<")
        || body.contains("std::")
        || words(body).any(|it| match &body[it.clone()] {
            "throw" | "try" | "typeid" | "dynamic_cast" => true,
            name => of_api(name) && is_call(it.end),
        })
}

/// Returns the functions without a qualifier, and the positions of the names of functions that are only declared.
fn functions<'a>(
    code: &'a str,
    types: &HashSet<&str>,
) -> Option<(Vec<Function<'a>>, HashSet<usize>)> {
    let without_directives = without_directives(code);
    let tokens = Tokens::of(&without_directives);
    let is_brace = |at: &usize| matches!(tokens.at(*at), "{" | "}");
    if !(0..tokens.len()).filter(is_brace).all(|at| tokens.partner(at).is_some()) {
        return None;
    }
    let (mut functions, mut names) = (Vec::new(), HashSet::new());
    for declared in Items::of(&tokens).all {
        let Some(name) = named(&tokens, &declared) else { continue };
        let (first, last) = (declared.range.start, declared.range.end - 1);
        let bytes = tokens.all[name].start..tokens.all[name].end;
        if declared.body.is_none() {
            names.insert(bytes.start);
        } else if (first..name).all(|it| is_plain(&tokens, it, types)) {
            let range = tokens.all[first].start..tokens.all[last].end;
            functions.push(Function { name: &code[bytes], range });
        }
    }
    Some((functions, names))
}

/// Returns the name in front of a function's parameters; `None` for other declarations.
fn named(tokens: &Tokens<'_>, declared: &Declared) -> Option<usize> {
    let open = declared.parameters?;
    let is_end = |at| matches!(tokens.at(at), "const" | "noexcept" | "override");
    // Something precedes the name: a type. No initialisers of members follow.
    let has_type = (declared.range.start..open - 1).any(|it| tokens.is_word(it));
    let is_function = has_type && (tokens.partner(open)? + 1..declared.end()).all(is_end);
    (is_function && tokens.is_word(open - 1)).then_some(open - 1)
}

/// Returns true for a token before a function's name that cannot be a qualifier, or a macro that stands for one.
fn is_plain(tokens: &Tokens<'_>, at: usize, types: &HashSet<&str>) -> bool {
    let word = tokens.at(at);
    tokens.all[at].kind == Kind::Mark
        || PLAIN.split_ascii_whitespace().any(|plain| plain == word)
        || types.contains(word)
        || (at >= 2 && tokens.at(at - 1) == "::" && tokens.at(at - 2) == "std")
}

#[cfg(test)]
mod tests {
    use super::left_out;
    use crate::dialects::code_of;

    fn kept(text: &str, others: &[&str]) -> String {
        let others: Vec<String> = others.iter().map(|it| (*it).to_owned()).collect();
        let kept = left_out(text, &code_of(text, false), &others);
        assert!(kept.as_ref().is_none_or(|it| it.len() == text.len()));
        kept.map_or_else(|| "all".into(), |it| it.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn functions_of_the_host_alone_are_left_out() {
        let kernel = "__global__ void k(float *x) { *x = twice(*x); }";
        let twice = "static float twice(float x) { return 2 * x; }";
        let host = "void run(float *x);\nvoid helper(int n) { puts(\"}\"); }\nint main(int argc, char **argv)\n\
                    {\n  float *d; cudaMalloc(&d, 4); run(d);\n  helper(1);\n}\n\
                    void run(float *x) { k<<<1, dim3(1)>>>(x); }\n";
        let all = format!("{twice}\n{kernel}\n{host}");
        assert_eq!(kept(&all, &[]), format!("{twice} {kernel} void run(float *x);"));
        assert_eq!(
            kept(&format!("namespace a {{\n{all}}}"), &[]),
            format!("namespace a {{ {twice} {kernel} void run(float *x); }}")
        );
        let defined = "int main() {\n#define N 4\n  cudaFree(0); }\n__device__ int n = N;";
        assert_eq!(kept(defined, &[]), "#define N 4 __device__ int n = N;");
        let defaults = "template <class T> void f(T x, int n = 1) {}";
        assert_eq!(kept(&format!("{defaults}\nint main() {{ cudaFree(0); }}"), &[]), defaults);
        for host in [
            "void f(int x) { if (x) throw 1; }",
            "int f(int x) { try { return x; } catch (int e) { return e; } }",
            "bool f(int x) { return typeid(x) == typeid(int); }",
        ] {
            assert_eq!(kept(&format!("{kernel}\n{host}"), &["void f(int x);"]), kernel);
        }
        let elsewhere = "extern \"C\" int other(int);";
        assert_eq!(
            kept(&format!("{elsewhere}\nint f(int x) {{ return other(x); }}"), &[]),
            elsewhere
        );
        // Nothing in these needs the host.
        assert_eq!(kept(&format!("{twice}\nint unused(int x) {{ return x; }}"), &[]), "all");
    }

    #[test]
    fn what_may_be_for_the_device_stays() {
        let host = "void run(float *x) { k<<<1, 1>>>(x); }";
        for device in [
            "__device__ void f() { g(std::max(1, 2)); }",
            "template <class T> void f(T x) { std::swap(x, x); }",
            "KERNEL void f(float *x) { std::max(1, 2); }",
            "#define entry __global__\nentry void f(float *x) { std::max(1, 2); }",
            "struct S { void f() { cudaFree(0); } };",
            "constexpr int f() { return std::max(1, 2); }",
            "int values[] = {1, 2};",
            "S::S(int x) : y(x) { cudaFree(0); }",
            "float f(float x) { return std::max(x, 1.f); }\n__device__ float g() { return f(1); }",
            "float f(float x) { return std::max(x, 1.f); }\n#define g f\n__device__ float h() { return g(1); }",
        ] {
            let expected = device.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(kept(&format!("{device}\n{host}"), &[]), expected, "{device}");
        }
        // An unknown word may be a macro from a file that is not read.
        assert_eq!(kept("kernel void f() { g(std::max(1, 2)); }", &[]), "all");
        let joined = "#define E(n) f_##n\nint f_a() { return std::max(1, 2); } int g = E(a)();";
        assert_eq!(kept(joined, &[]), "all");
        let macros = "#define CHECK(x) check(x)\ninline void check(cudaError_t e) { cudaGetErrorString(e); }\n\
                      int main() { CHECK(cudaFree(0));\n#include \"part.inc\"\n }";
        assert_eq!(kept(macros, &[]), "#define CHECK(x) check(x)");
        let types = "struct P { int n; };\ntypedef unsigned char byte;\nP make(byte b) { return std::max(P(), P()); }";
        assert_eq!(kept(types, &[]), "struct P { int n; }; typedef unsigned char byte;");
        let used = "float f(float x) { return std::max(x, 1.f); }";
        assert_eq!(kept(used, &["__device__ float g() { return f(1); }"]), "all");
        assert_eq!(kept(used, &["#define h f\n__device__ float g() { return h(1); }"]), "all");
        assert_eq!(kept(used, &[]), "");
        assert_eq!(kept(&format!("{used} }}"), &[]), "all");
        assert_eq!(kept(&format!("{used} {{"), &[]), "all");
        assert_eq!(kept("", &[]), "all");
    }
}
