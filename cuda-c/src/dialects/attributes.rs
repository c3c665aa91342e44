//! Moves attributes that stand after the body of a structure: other compilers read them differently from
//! nvcc.
//!
//! NVRTC gives the alignment in `struct { ... } __align__(16) pair;` to the name alone, so `sizeof` of that type is
//! wrong. Clang gives the attribute in `struct pair { ... } __constant__ first;` to the structure, where it has no
//! effect.

use super::code::{code_of, definitions, without_directives, words};
use super::macros::Dialect;
use crate::tokens::Tokens;
use crate::tree::class_of;
use std::collections::HashSet;
use std::ops::Range;

const OF_TYPES: &[&str] = &["__align__", "__attribute__"];
const OF_VARIABLES: &[&str] = &["__constant__", "__device__", "__shared__", "__managed__"];

/// Returns a text with the attributes of structures where the compiler reads them as nvcc does. Lines keep
/// their numbers.
pub(super) fn in_front(text: &str, dialect: Dialect) -> String {
    let of_types = dialect == Dialect::Nvrtc;
    let attributes = if of_types { OF_TYPES } else { OF_VARIABLES };
    let code = code_of(text, false);
    if !attributes.iter().any(|it| code.contains(it)) {
        return text.to_owned();
    }
    let names = names(&code, attributes);
    let with_literals = code_of(text, true);
    // Braces in macros open and close nothing.
    let without_directives = without_directives(&code);
    let tokens = Tokens::of(&without_directives);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for brace in (0..tokens.len()).filter(|&it| tokens.at(it) == "}") {
        let mut behind = brace + 1;
        while names.contains(tokens.at(behind)) {
            behind += 1;
            if tokens.at(behind) == "(" {
                behind = tokens.partner(behind).map_or(tokens.len(), |it| it + 1);
            }
        }
        let is_followed = behind > brace + 1;
        let Some(first) = is_followed.then(|| class_of(&tokens, brace)).flatten() else { continue };
        let range = tokens.all[brace].end..tokens.all.get(behind).map_or(code.len(), |it| it.start);
        // A directive between the brace and the attribute decides what is compiled.
        if with_literals[range.clone()].contains('#') {
            continue;
        }
        // `enum class` is one keyword.
        let last = first + usize::from(matches!(tokens.at(first + 1), "class" | "struct"));
        let keyword = tokens.all[first].start..tokens.all[last].end;
        let moved = with_literals[range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let spaces = text[range.clone()].chars().map(|it| if it == '\n' { it } else { ' ' });
        edits.push((range, spaces.collect()));
        edits.push(match of_types {
            true => (keyword.end..keyword.end, format!(" {moved}")),
            false => (keyword.start..keyword.start, format!("{moved} ")),
        });
    }
    edits.sort_by_key(|it| std::cmp::Reverse((it.0.start, it.0.end)));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// The words that stand for attributes, including macros for them, and macros for such macros.
fn names<'t>(code: &'t str, attributes: &[&'t str]) -> HashSet<&'t str> {
    let mut names: HashSet<&str> = attributes.iter().copied().collect();
    let definitions: Vec<_> = definitions(code).map(|it| (it.1, it.2)).collect();
    loop {
        let count = names.len();
        for (name, value) in &definitions {
            if words(value).any(|it| names.contains(&value[it])) {
                names.insert(name);
            }
        }
        if names.len() == count {
            return names;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, in_front};

    /// A text and the expected result, which is empty if the text does not change.
    const OF_TYPES: &[(&str, &str)] = &[
        (
            "typedef struct { int a; } __align__(16) pair;",
            "typedef struct __align__(16) { int a; } pair;",
        ),
        (
            "struct pair { int a; } __attribute__((packed)) __align__(8);",
            "struct __attribute__((packed)) __align__(8) pair { int a; } ;",
        ),
        (
            "#define ALIGN(n) __align__(n)\n#define WIDE ALIGN(32)\ntypedef union u { int a; } WIDE v;",
            "#define ALIGN(n) __align__(n)\n#define WIDE ALIGN(32)\ntypedef union WIDE u { int a; } v;",
        ),
        (
            "typedef struct { struct { int a; } __align__(8) b; /* } */ } __align__(16) c;",
            "typedef struct __align__(16) { struct __align__(8) { int a; } b; /* } */ } c;",
        ),
        (
            "template <class T> struct s : base<T> { T a; } __align__(8);",
            "template <class T> struct __align__(8) s : base<T> { T a; } ;",
        ),
        ("struct __align__(8) pair { int a; };", ""),
        ("__device__ int f() { return 1; }\n__attribute__((noinline)) __device__ int g();", ""),
        ("// struct { int a; } __align__(8) b;", ""),
        ("int a[] = {1, 2}; __align__(8) int b;", ""),
        ("} __align__(8) x; {", ""),
        ("struct { int a; } b; // __align__", ""),
        ("struct s { int a; } __constant__ c;", ""),
        (
            "struct __align__(8) s { char a; } __align__(16);",
            "struct __align__(16) __align__(8) s { char a; } ;",
        ),
        (
            "typedef struct alignas(4) { char a; } __align__(16) s;",
            "typedef struct __align__(16) alignas(4) { char a; } s;",
        ),
        (
            "template <class T, int n = 3> struct s { T a[n]; } __align__(16);",
            "template <class T, int n = 3> struct __align__(16) s { T a[n]; } ;",
        ),
        (
            "struct s { char a; } // aligned\n__align__(16);",
            "struct __align__(16) s { char a; } \n;",
        ),
        ("typedef struct { char a; }\n#ifdef A\n__align__(16)\n#endif\ns;", ""),
    ];
    const OF_VARIABLES: &[(&str, &str)] = &[
        ("struct s { int a; } __constant__ c;", "__constant__ struct s { int a; } c;"),
        (
            "static struct { int a; } __device__ d = {7};",
            "static __device__ struct { int a; } d = {7};",
        ),
        (
            "#define FAST __constant__\nunion u { int a; } FAST c[3];",
            "#define FAST __constant__\nFAST union u { int a; } c[3];",
        ),
        (
            "__global__ void k() { struct : base { int a; } __shared__ s; }",
            "__global__ void k() { __shared__ struct : base { int a; } s; }",
        ),
        ("enum class e { a } __device__ v;", "__device__ enum class e { a } v;"),
        ("enum e { a } __constant__ v;", "__constant__ enum e { a } v;"),
        ("struct s { int a; __device__ int f() { return a; } __device__ int g(); };", ""),
        ("struct s { int a; }; __constant__ s c;", ""),
        ("template <class T> __global__ void g(T *p) { } __device__ int v;", ""),
        ("namespace n { int a; } __device__ int v;", ""),
        ("typedef struct { int a; } __align__(16) pair;", ""),
    ];

    #[test]
    fn attributes_come_first() {
        let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (dialect, rows) in [(Dialect::Nvrtc, OF_TYPES), (Dialect::Hiprtc, OF_VARIABLES)] {
            for (text, expected) in rows {
                let found = in_front(text, dialect);
                let expected = if expected.is_empty() { text } else { expected };
                assert_eq!(bare(&found), bare(expected));
                assert_eq!(found.matches('\n').count(), text.matches('\n').count());
            }
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "typedef struct\n{\n  int a;\n}\n__attribute__((\n  aligned(16)))\nb;\nint c;";
        let found = in_front(text, Dialect::Nvrtc);
        let lines: Vec<_> = found.lines().collect();
        assert_eq!(lines[0].trim_end(), "typedef struct __attribute__(( aligned(16)))");
        assert_eq!(lines[6..], ["b;", "int c;"]);
    }

    #[test]
    fn many_braces_take_no_time() {
        let text = "struct { int a; } __align__(8) b;\n".repeat(2000);
        let found = in_front(&text, Dialect::Nvrtc);
        assert_eq!(found.matches("struct __align__(8) {").count(), 2000);
    }
}
