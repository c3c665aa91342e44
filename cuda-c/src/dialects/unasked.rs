//! Adds the headers that nvcc includes before every program, if a text uses names that they declare.

use super::Dialect;
use super::code::{after, word_set, words};
use super::insertion::{Headers, header};
use std::collections::HashMap;

/// Headers of C, in the order in which they are included.
const OF_C: &[&str] = &[
    "stdint.h",
    "limits.h",
    "float.h",
    "math.h",
    "assert.h",
    "stddef.h",
    "math_constants.h",
    "sys/types.h",
];

/// Headers of C++ that nvcc includes.
const OF_STD: &[&str] = &["cmath", "cstddef", "cstdint", "cstdlib", "cstring"];

/// Returns the headers that nvcc includes unasked and that a program's texts may use. The program's own headers, in
/// folders, may use any of `std`. A header is left out if the texts define one of its types otherwise.
pub(super) fn unasked(codes: &[String], has_folders: bool, headers: Headers<'_>) -> String {
    let code = codes.join("\n");
    let names = word_set([code.as_str()]);
    let used: Vec<_> = names.iter().filter_map(|it| header(it)).collect();
    let mut included: Vec<_> = OF_C.iter().filter(|it| used.contains(it)).copied().collect();
    let is_of_std = |at: usize| after(&code, at).starts_with("::");
    if has_folders || words(&code).any(|it| &code[it.clone()] == "std" && is_of_std(it.end)) {
        included.extend(OF_STD);
        // NVRTC has these two functions without a header.
        if headers.dialect == Dialect::Host
            && ["move", "forward"].iter().any(|it| names.contains(it))
        {
            included.push("utility");
        }
    }
    let own: HashMap<_, _> = types(&code).into_iter().collect();
    let mut lines = String::new();
    for name in included {
        let text = headers.text(name).unwrap_or_default();
        if types(&text).iter().all(|(name, is)| own.get(name).is_none_or(|own| own == is)) {
            lines += &format!("#include <{name}>\n");
        }
    }
    // A word that C++17 reserves without a meaning, and that compilers refuse.
    if names.contains("register") {
        lines += "#define register\n";
    }
    lines
}

/// The names that a text declares as types, and the words of each type.
fn types(code: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("typedef") {
        let Some((declaration, _)) = code[at..].split_once(';') else { continue };
        let is_plain = |it: char| it == '_' || it.is_alphanumeric() || it.is_whitespace();
        if !declaration.chars().all(is_plain) || code[..at].ends_with(is_word) {
            continue;
        }
        let mut all: Vec<_> = declaration.split_whitespace().skip(1).collect();
        let Some(name) = all.pop().filter(|_| !all.is_empty()) else { continue };
        // `long` and `int long` are one type.
        all.retain(|it| *it != "int");
        all.sort_unstable();
        found.push((name, all));
    }
    found
}

fn is_word(it: char) -> bool {
    it == '_' || it.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::super::code::{code_of, includes};
    use super::super::vendor::Vendor;
    use super::{Dialect, Headers, header, types, unasked};

    #[test]
    fn names_have_headers() {
        let rows = [
            ("uint32_t", Some("stdint.h")),
            ("intptr_t", Some("stdint.h")),
            ("UINT64_MAX", Some("stdint.h")),
            ("u_int8_t", Some("sys/types.h")),
            ("UINT_MAX", Some("limits.h")),
            ("UINT_MIN", None),
            ("SCHAR_MIN", Some("limits.h")),
            ("USCHAR_MAX", None),
            ("FLT_MANT_DIG", Some("float.h")),
            ("M_PI", Some("math.h")),
            ("CUDART_PI_F", Some("math_constants.h")),
            ("CUDART_", None),
            ("uint_t", None),
            ("int24_t", None),
        ];
        for (name, expected) in rows {
            assert_eq!(header(name), expected, "{name}");
        }
    }

    #[test]
    fn types_are_read_from_declarations() {
        let code =
            "typedef unsigned int u; typedef int long long l; typedef float *p; mytypedef x y;";
        assert_eq!(types(code), [("u", vec!["unsigned"]), ("l", vec!["long", "long"])]);
    }

    #[test]
    fn a_programs_own_declarations_take_the_place_of_headers() {
        let of_std = ["cmath", "cstddef", "cstdint", "cstdlib", "cstring"];
        let rows: &[(&str, &[&str])] = &[
            ("uint8_t x; size_t y = UINT_MAX;", &["stdint.h", "limits.h"]),
            ("float_t x; double_t y;", &["math.h"]),
            ("typedef unsigned long long uint64_t; uint64_t x;", &[]),
            ("typedef unsigned long uint64_t; uint64_t x;", &["stdint.h"]),
            ("#ifdef ELSEWHERE\ntypedef int int32_t;\n#endif\nint32_t x;", &["stdint.h"]),
            ("#ifndef M_PI\n#define M_PI 3.14\n#endif\ndouble x = M_PI;", &["math.h"]),
            ("using uint8_t = unsigned char; uint8_t x;", &["stdint.h"]),
            ("// assert\nint NULLS = M_PIE; // uint8_t", &[]),
            ("const char *text = \"NULL\";", &[]),
            ("float x = std::sqrt(2.f);", &of_std),
            (
                "typedef unsigned long long uint64_t; float x = std::sqrt(2.f);",
                &["cmath", "cstddef", "cstdlib", "cstring"],
            ),
        ];
        let vendor = Vendor { packages: &[] };
        let found = |text: &str, dialect| {
            let lines = unasked(&[code_of(text, false)], false, Headers { dialect, vendor });
            includes(&lines).map(|it| it.name.to_owned()).collect::<Vec<_>>()
        };
        for (text, expected) in rows {
            assert_eq!(found(text, Dialect::Nvrtc), *expected, "{text}");
        }
        let moved = found("T x = std::move(y);", Dialect::Host);
        assert_eq!(moved, [&of_std[..], &["utility"]].concat());
        assert_eq!(found("T x = std::move(y);", Dialect::Nvrtc), of_std);
        // Not every hipRTC has the type, and those that have it define it as `long long`.
        assert!(found("typedef unsigned long uint64_t; uint64_t x;", Dialect::Hiprtc).is_empty());
    }
}
