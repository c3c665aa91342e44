//! Words, functions and headers of CUDA C that AMD's compilers lack. Warp functions are in `warps`.

use super::code::{after, includes, word_set, words};
use crate::headers::header_text;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

/// Words that do not change a program's meaning, and one that AMD's compilers spell differently.
const WORDS: &[(&str, &str)] = &[
    ("__block_size__", "(...)"),
    ("__builtin_align__", "(bytes) __attribute__((aligned(bytes)))"),
    ("__cluster_dims__", "(...)"),
    ("__grid_constant__", ""),
    ("__inline_hint__", " inline"),
    ("__maxnreg__", "(count)"),
    ("__nv_pure__", ""),
];

/// Functions that return another type with AMD's compilers, or are not defined for all arguments.
const COUNTS: &[&str] = &["__popc", "__popcll", "__ffs", "__ffsll", "__fns", "__umul24"];

const PLACES: &[&str] = &["threadIdx", "blockIdx", "blockDim", "gridDim"];

/// Headers of CUDA whose text for the host is put in front of a program that includes them.
const OF_HOST: &[(&str, &str)] = &[
    ("cuComplex.h", "cuComplex.h"),
    ("cuda_bf16.h", "cuda_c/hip_bf16.h"),
    ("cuda_bf16.hpp", "cuda_c/hip_bf16.h"),
    ("curand_globals.h", "curand_globals.h"),
    ("curand_kernel.h", "curand_kernel.h"),
    ("curand_mrg32k3a.h", "curand_mrg32k3a.h"),
    ("curand_normal.h", "curand_normal.h"),
    ("curand_philox4x32_x.h", "curand_philox4x32_x.h"),
    ("curand_poisson.h", "curand_poisson.h"),
    ("curand_uniform.h", "curand_uniform.h"),
];

/// Returns true for a word that only programs for HIP have.
pub(super) fn is_of_hip(word: &str) -> bool {
    let has_capital = |start: &str| {
        word.strip_prefix(start)
            .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_uppercase()))
    };
    let known = ["hip_bfloat16", "hip_bf16", "hip_fp16", "hip_complex", "hip_runtime", "hiprtc"];
    let starts = ["HIP", "__hip", "__GFX", "__gfx", "__AMD"];
    let lower = word.to_ascii_lowercase();
    has_capital("hip")
        || has_capital("Hip")
        || known.iter().chain(&starts).any(|it| word.starts_with(it))
        || ["_HIP", "ROCM", "WAVEFRONT"].iter().any(|it| word.contains(it))
        || ["amdgcn", "amdgpu"].iter().any(|it| lower.contains(it))
}

/// True for one of a list of words that share the given ends: `a|b` and `x|y` are ax, ay, bx, by.
fn is_joined(word: &str, starts: &str, ends: &str) -> bool {
    starts.split('|').any(|start| {
        word.strip_prefix(start).is_some_and(|rest| ends.split('|').any(|end| rest == end))
    })
}

/// True for a function of `pygpu-amd-functions.hpp`.
fn is_function(word: &str) -> bool {
    is_joined(word, "__", "ldca|ldcg|ldcs|ldlu|ldcv|stwb|stcg|stcs|stwt|trap|brkpt|nanosleep|tanhf")
        || is_joined(word, "u|ull|ll", "min|max")
        || is_joined(
            word,
            "atomic",
            "Add_block|Sub_block|Exch_block|Min_block|Max_block|And_block|Or_block|Xor_block",
        )
        || is_joined(word, "atomic", "Inc_block|Dec_block|CAS_block|Inc_system|Dec_system")
        || word == "fdivide"
}

/// True for a function with a stated rounding, such as `__fadd_rn`.
fn is_rounded(word: &str) -> bool {
    let Some((function, "rn" | "rd" | "ru" | "rz")) = word.rsplit_once('_') else { return false };
    is_joined(function, "__f|__d", "add|sub|mul|div|rcp|sqrt")
        || is_joined(function, "__", "fma|fmaf|fmaf_ieee|frsqrt")
        || is_joined(function, "__", "double2float|int2float|uint2float|ll2float|ull2float")
        || is_joined(function, "__", "uint2double|ll2double|ull2double")
        || is_joined(
            function,
            "__",
            "float2ll|float2ull|double2int|double2uint|double2ll|double2ull",
        )
}

fn is_rounded_half(word: &str) -> bool {
    let Some(word) = word.strip_prefix("__") else { return false };
    match word.rsplit_once('_') {
        Some((function, rounding @ ("rn" | "rd" | "ru" | "rz"))) => {
            (rounding != "rn" && is_joined(function, "float|short|ushort|int|uint|ll|ull", "2half"))
                || is_joined(function, "half2", "short|ushort|int|uint|ll|ull")
        }
        _ => word == "double2half",
    }
}

/// True for a function of several numbers in a word, such as `__vadd4`.
fn is_packed(word: &str) -> bool {
    word.len() > 4 && word.starts_with("__v") && word.ends_with(['2', '4'])
}

/// True for a function of `pygpu-amd-overloads.hpp`, if a parenthesis follows.
fn is_overloaded(word: &str) -> bool {
    let word = word
        .strip_suffix("_system")
        .filter(|it| is_joined(it, "atomic", "Min|Max|CAS"))
        .unwrap_or(word);
    is_joined(word, "m|fm", "in|ax")
        || is_joined(
            word,
            "",
            "fmod|fma|fdim|pow|atan2|hypot|nextafter|remainder|exp10|sincos|sincospi",
        )
        || is_joined(word, "sin|cos", "pi")
        || is_joined(word, "r", "sqrt|cbrt")
        || is_joined(word, "j|y", "0|1|n")
        || is_joined(
            word,
            "",
            "erfinv|erfcinv|erfcx|normcdf|normcdfinv|cyl_bessel_i0|cyl_bessel_i1",
        )
        || is_joined(word, "atomic", "Min|Max|CAS")
        || word == "__hadd"
}

/// True for a vector type, a function that makes one, or a complex type.
pub(super) fn is_vector(word: &str) -> bool {
    let own = word.strip_prefix("make_").unwrap_or(word);
    is_joined(word, "cu", "FloatComplex|DoubleComplex|Complex") || is_number_vector(own)
}

/// True for a vector type.
pub(super) fn is_number_vector(word: &str) -> bool {
    let Some(number) = word.strip_suffix(['1', '2', '3', '4']) else { return false };
    let integer = number.strip_prefix('u').unwrap_or(number);
    matches!(integer, "char" | "short" | "int" | "long" | "longlong")
        || matches!(number, "float" | "double")
}

/// Returns the lines that define the functions and words that a program's texts name.
pub(super) fn in_front(texts: &[String], codes: &[String]) -> String {
    let mut headers = BTreeSet::new();
    for include in texts.iter().flat_map(|it| includes(it)) {
        headers.extend(OF_HOST.iter().find(|it| it.0 == include.name).map(|it| it.1));
    }
    let code = codes.join("\n");
    let all = word_set([code.as_str()]);
    let has = |is: fn(&str) -> bool| all.iter().any(|it| is(it));
    if has(is_packed) {
        headers.insert("cuda_c/simd.h");
    }
    if has(|it| matches!(it, "__dp4a" | "__dp2a_lo" | "__dp2a_hi")) {
        headers.insert("cuda_c/dot_products.h");
    }
    let mut lines: String = headers.iter().map(|it| of_host(it, &[])).collect();
    if has(|it| COUNTS.contains(&it)) {
        lines += &of_host("cuda_c/counts.h", COUNTS);
    }
    for (name, value) in WORDS.iter().filter(|it| all.contains(it.0)) {
        let _ = write!(lines, "#ifndef {name}\n#define {name}{value}\n#endif\n");
    }
    let is_called = || {
        words(&code)
            .any(|it| is_overloaded(&code[it.clone()]) && after(&code, it.end).starts_with('('))
    };
    let has_objects = has(|it| matches!(it, "new" | "delete" | "virtual"));
    let own_memory = || {
        words(&code).zip(words(&code).skip(1)).any(|(first, second)| {
            let is_next =
                code[first.end..second.start].trim().is_empty() && second.start > first.end;
            &code[first] == "operator" && is_next && matches!(&code[second], "new" | "delete")
        })
    };
    let needed = [
        ("functions", has(is_function)),
        ("overloads", is_called()),
        ("rounding", has(is_rounded) || pastes_rounding(&code)),
        ("half-rounding", has(is_rounded_half)),
        ("objects", has_objects && !own_memory()),
    ];
    for (name, _) in needed.iter().filter(|it| it.1) {
        let _ = writeln!(lines, "#include <pygpu-amd-{name}.hpp>");
    }
    for name in own_functions(&code) {
        lines += &next_to_own(name);
    }
    for name in ["min", "max"].into_iter().filter(|it| has_own_template(&code, it)) {
        lines += &extremes_next_to_own(name);
    }
    lines
}

/// True if a program defines a template of a name, and never uses the name with a class or namespace: AMD's headers
/// have a template of the same name.
fn has_own_template(code: &str, name: &str) -> bool {
    let all = || words(code).filter(|it| &code[it.clone()] == name);
    let is_plain = all().all(|it| {
        let before = code[..it.start].trim_end();
        !["::", ".", "->"].iter().any(|mark| before.ends_with(mark))
    });
    let is_template = |word: std::ops::Range<usize>| {
        let head = code[..word.start].rfind([';', '{', '}', '#']).map_or(0, |it| it + 1);
        words(&code[head..word.start]).next().is_some_and(|it| &code[head..][it] == "template")
            && defines(after(code, word.end))
    };
    is_plain && all().any(is_template)
}

/// The lines that rename a program's own template and add CUDA's functions for numbers, which compilers
/// prefer to a template.
fn extremes_next_to_own(name: &str) -> String {
    const INTEGERS: [&str; 6] =
        ["int", "unsigned", "long", "unsigned long", "long long", "unsigned long long"];
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for pair in INTEGERS.chunks(2) {
        pairs.extend(pair.iter().flat_map(|one| pair.iter().map(move |two| (*one, *two))));
    }
    let floats = ["float", "double"];
    pairs.extend(floats.iter().flat_map(|one| floats.iter().map(move |two| (*one, *two))));
    let mut lines = "extern \"C++\" {\n".to_owned();
    for (one, two) in pairs {
        let _ = writeln!(
            lines,
            "__device__ inline decltype(({one})0 + ({two})0) pygpu_own_{name}({one} x, {two} y) {{ return {name}(x, y); }}"
        );
    }
    format!("{lines}}}\n#define {name} pygpu_own_{name}\n")
}

/// True for a text whose macros may put together the name of a function with a stated rounding.
fn pastes_rounding(code: &str) -> bool {
    code.match_indices("##").any(|(at, _)| {
        let before = code[..at].trim_end();
        let is_part = |it: char| it == '_' || it.is_alphanumeric();
        let word = &before[before.trim_end_matches(is_part).len()..];
        let rest = after(code, at + 2);
        let next = words(rest).next().filter(|it| it.start == 0).map_or("", |it| &rest[it]);
        let is_rounding = |it: &str| matches!(it, "rn" | "rd" | "ru" | "rz");
        word.starts_with("__")
            || is_rounding(next)
            || next.rsplit_once('_').is_some_and(|it| is_rounding(it.1))
    })
}

/// The program's own functions whose names AMD's headers overload, for types that CUDA C does not have.
fn own_functions(code: &str) -> BTreeSet<&str> {
    let is_name = |it: &str| {
        is_joined(it, "atomic", "Add|Sub|Exch|Min|Max|CAS")
            || is_joined(it, "__", "lane_id|lanemask_lt|lanemask_le|lanemask_gt|lanemask_ge")
    };
    let mut found = BTreeSet::new();
    for word in words(code).filter(|it| is_name(&code[it.clone()])) {
        // A type stands before the name of a function that is declared.
        let before = &code[..word.start];
        let trimmed = before.trim_end();
        let bare = trimmed.strip_suffix(['*', '&']).unwrap_or(trimmed);
        let has_gap = |it: &str| it.ends_with(char::is_whitespace);
        let is_type = |it: &str| {
            it.trim_end()
                .ends_with(|it: char| it == '_' || it.is_alphanumeric() || "*&>".contains(it))
        };
        let is_declared = (has_gap(before) && is_type(before)) || (has_gap(bare) && is_type(bare));
        let name = &code[word.clone()];
        if is_declared && defines(after(code, word.end)) {
            found.insert(name);
        }
    }
    found
}

/// True for parameters and the brace of a body.
fn defines(text: &str) -> bool {
    if !text.starts_with('(') {
        return false;
    }
    let mut depth = 0_usize;
    let end = text.find(|it| {
        depth += usize::from(it == '(');
        depth -= usize::from(it == ')');
        depth == 0
    });
    let Some(end) = end else { return false };
    let mut rest = text[end + 1..].trim_start();
    rest = rest.strip_prefix("noexcept").unwrap_or(rest).trim_start();
    if let Some(result) = rest.strip_prefix("->") {
        let result = result.trim_start();
        let Some(word) = words(result).next().filter(|it| it.start == 0) else { return false };
        rest = result[word.end..].trim_start();
    }
    rest = rest.strip_prefix("\\\n").unwrap_or(rest).trim_start();
    rest.starts_with('{')
}

/// The lines that rename a program's own function, so that AMD's functions for other types stay visible.
fn next_to_own(name: &str) -> String {
    let other = match name {
        _ if name.starts_with("__") => String::new(),
        "atomicCAS" => format!(
            "extern \"C++\" template <class T, class U, class V>\n__device__ inline T pygpu_own_{name}(T* place, U \
             expected, V value) {{\n    return {name}(place, (T)expected, (T)value);\n}}\n"
        ),
        _ => format!(
            "extern \"C++\" template <class T, class U>\n__device__ inline T pygpu_own_{name}(T* place, U value) {{ \
             return {name}(place, (T)value); }}\n"
        ),
    };
    format!("{other}#define {name} pygpu_own_{name}\n")
}

/// Returns the lines that make a program's vector types plain structures, if it has any and is not for HIP.
pub(super) fn vectors(codes: &[String], has_textures: bool, texture_header: &str) -> String {
    let all: HashSet<_> = word_set(codes.iter().map(String::as_str));
    let code = codes.join("\n");
    let is_whole = |word: &std::ops::Range<usize>| {
        PLACES.contains(&&code[word.clone()]) && !after(&code, word.end).starts_with('.')
    };
    let has_whole = words(&code).any(|it| is_whole(&it));
    if all.iter().any(|it| is_of_hip(it)) || !(has_whole || all.iter().any(|it| is_vector(it))) {
        return String::new();
    }
    let mut lines = String::new();
    if has_textures {
        let _ = writeln!(lines, "#include <{texture_header}>");
    }
    if has_whole && !declares_place(&code) {
        lines += "#define PYGPU_WHOLE_PLACES\n";
    }
    lines + "#include <pygpu-cuda-vectors.hpp>\n"
}

/// True for a text that declares something with the name of an index, such as `const dim3 threadIdx`.
fn declares_place(code: &str) -> bool {
    words(code).filter(|it| matches!(&code[it.clone()], "uint3" | "int3" | "dim3")).any(|of| {
        let is_mark = |it: char| it.is_whitespace() || it == '&' || it == '*';
        let mut rest = code[of.end..].trim_start_matches(is_mark);
        while let Some(word) = words(rest).next().filter(|it| it.start == 0) {
            if PLACES.contains(&&rest[word.clone()]) {
                return rest.len() < code.len() - of.end;
            }
            let Some(next) = rest[word.end..].trim_start().strip_prefix(',') else { return false };
            rest = next.trim_start();
        }
        false
    })
}

/// The text of a header for the host. Functions without a qualifier are compiled for the device also. `renamed`
/// functions get other names, so that AMD's functions of their names remain.
fn of_host(name: &str, renamed: &[&str]) -> String {
    let mut text: String = renamed.iter().map(|it| format!("#define {it} pygpu{it}\n")).collect();
    let own = header_text(name).unwrap_or_default();
    let _ = write!(
        text,
        "#pragma clang force_cuda_host_device begin\n{own}#pragma clang force_cuda_host_device end\n"
    );
    match name.starts_with("cuda_c/") {
        true => format!("#ifndef __GPUARRAY_HOST__\n{text}#endif\n"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::code::code_of;

    #[test]
    fn names_are_of_lists() {
        for name in [
            "__fadd_rn",
            "__dsqrt_ru",
            "__fmaf_ieee_rz",
            "__ll2double_rd",
            "__float2ull_rn",
            "__double2uint_rz",
        ] {
            assert!(is_rounded(name), "{name}");
        }
        assert!(
            !is_rounded("__int2double_rn") && !is_rounded("fadd_rn") && !is_rounded("__fadd_rx")
        );
        assert!(is_rounded_half("__float2half_rd") && !is_rounded_half("__float2half_rn"));
        assert!(is_rounded_half("__half2int_rn") && is_rounded_half("__double2half"));
        assert!(
            is_overloaded("atomicMin_system")
                && is_overloaded("fmax")
                && !is_overloaded("atomicAdd_system")
        );
        assert!(is_vector("make_float4") && is_vector("ulonglong2") && is_vector("cuComplex"));
        assert!(!is_vector("float5") && !is_vector("ufloat2") && !is_vector("make_cuComplex"));
        for name in ["hip", "hip_angle", "hippo", "left_hip", "wavefront", "rocm", "Hippocampus"] {
            assert!(!is_of_hip(name), "{name}");
        }
        assert!(
            is_of_hip("hipError_t")
                && is_of_hip("is_HIP")
                && is_of_hip("__builtin_amdgcn_x")
                && !is_of_hip("ship")
        );
    }

    #[test]
    fn headers_stand_in_front_of_programs_that_name_their_functions() {
        let rows: &[(&str, &[&str])] = &[
            ("x = __fadd_rz(x, y);", &["rounding"]),
            ("x = __fmaf_ieee_rn(x, y, z) + __frsqrt_rn(x);", &["rounding"]),
            ("#define OF(name, to) __##name##_##to", &["rounding"]),
            ("#define DIVIDED(p) __##p##div_rd(x, y)", &["rounding"]),
            ("i = __double2uint_rn(y); x = __ull2float_ru(i);", &["rounding"]),
            ("h = __short2half_rd(i); i = __half2int_rn(h);", &["half-rounding"]),
            ("i = __float2int_rn(x) + __float2uint_rz(x); h = __float2half_rn(x);", &[]),
            ("// __fadd_rz", &[]),
        ];
        for (text, names) in rows {
            let lines = in_front(&[(*text).to_owned()], &[code_of(text, false)]);
            let expected: String =
                names.iter().map(|it| format!("#include <pygpu-amd-{it}.hpp>\n")).collect();
            assert_eq!(lines, expected, "{text}");
        }
    }

    #[test]
    fn templates_of_extremes_are_those_of_programs_for_cuda() {
        let own = "template <class T> __device__ T max(T a, T b) { return a; }\n";
        for (text, expected) in [
            (own.to_owned(), true),
            (format!("int f(int a) {{ return max(a, 2); }} {own}"), true),
            (format!("{own} int f() {{ return n::max(1, 2); }}"), false),
            (format!("{own} int f() {{ return limits<int>::max() + a.max; }}"), false),
            ("template <class T> T max(T a, T b); int f() { return max(1, 2); }".to_owned(), false),
            ("template <class T> T f(T a) { return max(a, 2); }".to_owned(), false),
            ("int max(int a, int b) { return a; }".to_owned(), false),
        ] {
            let code = code_of(&text, false);
            let lines = in_front(&[text], &[code]);
            assert_eq!(lines.contains("#define max pygpu_own_max"), expected, "{lines}");
        }
    }

    #[test]
    fn own_functions_are_definitions() {
        let code = "__device__ float atomicMax(float *p, float v) { return atomicMin(p, v); }\nint atomicAdd(int*, int);";
        assert_eq!(own_functions(code).into_iter().collect::<Vec<_>>(), ["atomicMax"]);
        assert!(
            declares_place("void f(dim3 a, threadIdx)") && !declares_place("dim3 a = threadIdx;")
        );
    }
}
