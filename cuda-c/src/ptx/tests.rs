//! Tests of valid and invalid inline PTX.

use super::table::{LISTS, ROWS, Row};
use super::types::Type;
use super::{edits, is_used};
use crate::tokens::Tokens;
use host_executor::{Compiler, Language, Optimization, Source};
use std::fmt::Write as _;

/// Returns the translation of a text.
fn translated(text: &str) -> Result<String, String> {
    let mut result = text.to_owned();
    for (start, end, replacement) in edits(&Tokens::of(text), false)?.into_iter().rev() {
        result.replace_range(start..end, &replacement);
    }
    Ok(result)
}

const STATEMENTS: [&str; 12] = [
    r#"asm("add.s32 %0, %1, %2;" : "=r"(x[0]) : "r"(3), "n"(4));"#,
    r#"asm volatile("{ .reg .pred p, q<3>; setp.lt.and.f32 p|q1, %1, 0f3F800000, !q2; @!p bra L%=; L%=: }" : "+l"(y) : "f"(z));"#,
    r#"__asm__ __volatile__ ("ld.global.v4.u32 {%0, _, %1, %2}, [%3+-16];\n\t" "// x\n" : "=r"(a), "=r"(b), "=r"(c) : "l"(p) : "memory");"#,
    r#"asm("mov.b64 %0, {%1, %2}; /* ... */ mov.u32 %1, (1 << 4) | ~0x0f + WARP_SZ * 0b11 - 017U;" : "=l"(w), "+r"(u) : "r"(v));"#,
    r#"if (a) asm("membar.gl;"); else asm("trap;");"#,
    r#"asm(R"(mad.lo.cc.u32 %0, %0, %0, %0; madc.hi.u32 %0, %0, %0, 1;)" : "+r"(x));"#,
    r#"asm("vadd4.u32.u32.u32.sat %0, %1.b3210, %2.b7654, %3;" : "=r"(a) : "r"(b), "r"(c), "r"(d));"#,
    r#"asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(a) : "l"(b), "r"(c), "r"(d));"#,
    r#"asm("cvt.rzi.ftz.sat.u8.f32 %0, %1;" : "=h"(a) : "f"(-1.5e-3));"#,
    r#"asm volatile("shfl.sync.up.b32 %0|p, %1, 1, 0, -1;" : "=r"(a) : "r"(b));"#,
    r#"asm volatile("mov.u32 %0, %%tid.x; mov.u64 %1, %clock64;" : "=r"(a), "=l"(b));"#,
    r#"asm volatile("cp.async.cg.shared::cta.global.L2::128B [%0], [%1], 16;" :: "r"(a), "l"(b));"#,
];

#[test]
fn statements_are_found_where_statements_are() {
    let all = [
        ("__gpuarray_variable__ void f() { asm(\"membar.gl;\"); }", true),
        ("__gpuarray_global__ void f() { if (x) asm(\"membar.gl;\"); }", true),
        (
            "namespace a { struct B { __gpuarray_variable__ void f() { while (x) __asm(\"trap;\"); } }; }",
            true,
        ),
        ("__gpuarray_variable__ void f() { g([=](int x) { l: asm(\"trap;\"); }); }", true),
        ("int f() __asm__(\"g\"); int h(int) asm(\"i\");", false),
        ("static const int x asm(\"y\") = 3; int z[3] asm(\"w\");", false),
        ("asm(\".globl x\");", false),
        ("# 1 \"/usr/include/x.h\" 1 3\nvoid f() { asm(\"nop\"); }\n# 2 \"k.cu\" 2\n", false),
        ("const char *s = \"void f() { asm(1); }\"; int asm_count;", false),
    ];
    for (text, expected) in all {
        assert_eq!(is_used(&Tokens::of(text)), expected, "{text}");
    }
}

#[test]
fn what_an_included_file_has_is_refused_where_it_is_used() {
    let function =
        "__gpuarray_variable__ void f() {\n  asm volatile(\"exit;\"\n    :: );\n  g(); }\n";
    let included = format!("# 1 \"k.cu\"\n# 1 \"lib.h\" 1\n{function}# 2 \"k.cu\" 2\nint last;\n");
    let text = translated(&included).expect("no error yet");
    let attribute = "__attribute__((error(\"inline PTX: 'exit' is not supported on the host; ";
    assert!(text.contains(attribute) && text.contains("\n# 3 \"lib.h\"\n\n  g(); }"), "{text}");
    let behind = included.replace("int last;", function);
    let message = translated(&behind).expect_err("the program's own");
    assert!(message.starts_with("k.cu:3: error: inline PTX: 'exit'"), "{message}");
}

#[test]
fn only_functions_of_the_device_must_be_ptx() {
    let host = "void pause() { asm volatile(\"rdtsc\" : \"=a\"(x)); }";
    assert_eq!(translated(host).expect("it stays"), host);
    let device = format!("__gpuarray_variable__ {host}");
    assert!(translated(&device).is_err());
    for head in ["A(int x) : a{x}, b{x} ", "void f(A a = {}) ", "void f(A a = {1}, int b = 2) "] {
        let text = format!("struct A {{ __gpuarray_variable__ {head}{{ asm(\"ret;\"); }} }};");
        assert!(translated(&text).is_err(), "{text}");
    }
    let plain = "void f() { asm(\"membar.gl;\"); }";
    assert!(translated(plain).expect("it is PTX").contains("cuda_c::ptx::membar"));
}

#[test]
fn operands_need_no_comma_between_them() {
    let text = |comma: &str| {
        format!(
            "__gpuarray_variable__ void f() {{ asm(\"st.u8 [%1], %0;\" :: \"r\"(x){comma} \"l\" \"\"(y[2]) : \"memory\"); }}"
        )
    };
    let expected = translated(&text(",")).expect("it is PTX");
    assert_eq!(translated(&text("")).expect("it is PTX"), expected);
}

#[test]
fn lines_stay_those_of_the_program() {
    let text = "# 7 \"a.cu\"\n__gpuarray_variable__ void f() {\nasm(\"membar.gl;\\n\"\n\"trap;\"\n: : \"r\"(\n1));\nx;\n}\n";
    let found = translated(text).expect("it is PTX");
    let tokens = Tokens::of(&found);
    let places = |word: &str| {
        let at = (0..tokens.len()).find(|&it| tokens.at(it) == word).expect("the word");
        tokens.place(at)
    };
    let expected = [
        ("f", "a.cu:7"),
        ("1", "a.cu:11"),
        ("membar", "a.cu:8"),
        ("trap", "a.cu:9"),
        ("x", "a.cu:12"),
    ];
    for (word, place) in expected {
        assert_eq!(places(word), place, "{word} in\n{found}");
    }
}

#[test]
fn registers_are_those_of_the_blocks_around() {
    let text =
        "__gpuarray_variable__ void f() { { asm(\".reg .u32 t;\"); { asm(\"mov.u32 t, 1;\"); } } }";
    assert!(translated(text).is_ok());
    for wrong in [
        "__gpuarray_variable__ void f() { { asm(\".reg .u32 t;\"); } { asm(\"mov.u32 t, 1;\"); } }",
        "__gpuarray_variable__ void f() { if (x) asm(\".reg .u32 t;\"); asm(\"mov.u32 t, 1;\"); }",
        "__gpuarray_variable__ void f() { asm(\"{ .reg .u32 t; }\"); asm(\"mov.u32 t, 1;\"); }",
        "__gpuarray_variable__ void f() { asm(\"mov.u32 t, 1;\"); asm(\".reg .u32 t;\"); }",
        "__gpuarray_variable__ void f() { asm(\".reg .u32 t<70000>;\"); }",
    ] {
        assert!(translated(wrong).is_err(), "{wrong}");
    }
}

/// Checks that any text gives a translation or a message, using texts close to valid ones.
#[test]
fn wrong_texts_are_refused_or_translated() {
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let parts = "% %% %0 %9 %[ ] { } [ ( ) | @ ! - + ; : :: , . .reg 0f 0x 0d \
                 18446744073709551616 \\ \" R\"( é \n <";
    let parts: Vec<&str> = parts.split(' ').collect();
    let mut refused = 0;
    for round in 0..20_000 {
        let mut text: Vec<char> = STATEMENTS[round % STATEMENTS.len()].chars().collect();
        for _ in 0..=random(4) {
            let at = random(text.len());
            match random(4) {
                0 => drop(text.remove(at)),
                1 => {
                    let end = (at + random(12)).min(text.len());
                    let part: Vec<char> = text.drain(at..end).collect();
                    let to = random(text.len() + 1);
                    text.splice(to..to, part);
                }
                2 => {
                    let end = (at + random(12)).min(text.len());
                    let part = text[at..end].to_vec();
                    text.splice(at..at, part);
                }
                _ => {
                    text.splice(at..at, parts[random(parts.len())].chars());
                }
            }
            if text.is_empty() {
                text.push(';');
            }
        }
        let text: String = text.into_iter().collect();
        let whole = format!("# 1 \"k.cu\"\n__gpuarray_variable__ void f() {{ {text} }}\n");
        if let Err(message) = translated(&whole) {
            refused += 1;
            assert!(message.starts_with("k.cu:") && message.ends_with('\n'), "{message}");
        }
    }
    // Most of the texts are invalid, but not all.
    assert!((4_000..19_000).contains(&refused), "{refused}");
}

#[test]
fn what_nests_deeply_is_refused() {
    for (open, close) in [("(", ")"), ("-", ""), ("{", "}")] {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        let text = format!(
            "__gpuarray_variable__ void f() {{ asm(\"mov.u32 %0, {open}1{close};\" : \"=r\"(x)); }}"
        );
        assert!(translated(&text).is_err());
    }
    let scopes = format!("{}{}", "{".repeat(100_000), "}".repeat(100_000));
    let text = format!("__gpuarray_variable__ void f() {{ asm(\"{scopes}\"); }}");
    assert!(translated(&text).is_ok());
}

/// Returns the alternatives of a part of a pattern. The empty string is one of them if the part is optional.
fn alternatives(part: &str) -> Vec<&str> {
    let names = part.trim_end_matches('?').split('|');
    let of_list = |name| LISTS.iter().find(|it| it.0 == name).map_or(name, |it| it.1);
    let mut all: Vec<&str> = names.flat_map(|it| of_list(it).split('|')).collect();
    if part.ends_with('?') {
        all.push("");
    }
    all
}

/// Returns an instruction with registers of the required types.
fn statement(row: &Row, parts: &[&str]) -> String {
    let modifiers: Vec<&str> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    let types: Vec<Type> = modifiers.iter().filter_map(|it| Type::named(it)).collect();
    let combines = modifiers.iter().any(|it| matches!(*it, "and" | "or" | "xor"));
    let mut declared = String::new();
    let mut register = |name: &str| {
        let kind = match name.trim_end_matches('?') {
            "T" | "[]" => types[0],
            "U" => types[1],
            "W" => types[0].doubled().expect("twice the bits"),
            "p" | "&p" => Type::named("pred").expect("a type"),
            name => Type::named(name).expect("a type"),
        };
        let number = declared.matches(".reg").count();
        let _ = write!(declared, ".reg .{} r{number}; ", kind.register().name);
        if name == "[]" { format!("[r{number}]") } else { format!("r{number}") }
    };
    let (results, arguments) = row.operands.split_once('=').expect("results");
    let results: Vec<String> =
        results.trim().split('|').filter(|it| !it.is_empty()).map(&mut register).collect();
    let mut operands = vec![results.join("|")];
    operands.retain(|it| !it.is_empty());
    let taken = arguments.split_whitespace().filter(|it| *it != "cc" && (*it != "&p" || combines));
    operands.extend(taken.map(register));
    let name = match row.name {
        "bar_sync" => "bar.sync".into(),
        "bar_red" => "bar.red".into(),
        "cp_async_mbarrier_arrive" => "cp.async.mbarrier.arrive".into(),
        name => name.replace("_parity", "_wait.parity").replace("mbarrier_", "mbarrier."),
    };
    let whole: Vec<&str> = [name.as_str()].into_iter().chain(modifiers).collect();
    format!("asm volatile(\"{{ {declared}{} {}; }}\");\n", whole.join("."), operands.join(", "))
}

/// Checks that the headers implement each alternative of each row, combined with the first alternatives of
/// the other parts.
#[test]
fn what_the_table_has_the_headers_have() {
    let mut body = String::new();
    for row in ROWS {
        let parts: Vec<Vec<&str>> =
            row.pattern.split('.').filter(|it| !it.is_empty()).map(alternatives).collect();
        let first: Vec<&str> = parts.iter().map(|it| it[0]).collect();
        body.push_str(&statement(row, &first));
        for (at, part) in parts.iter().enumerate() {
            for other in &part[1..] {
                let mut chosen = first.clone();
                chosen[at] = other;
                body.push_str(&statement(row, &chosen));
            }
        }
    }
    let text = format!("extern \"C\" __global__ void k() {{\n{body}}}\n");
    let compiler = Compiler::find(Language::default()).expect("a C++ compiler");
    let compiler = compiler.optimizing_for(Optimization::Compilation);
    let source =
        Source { text: &text, name: "k.cu", options: &["-Wall", "-Wextra"], ..Source::default() };
    let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compiled.log, "");
}
