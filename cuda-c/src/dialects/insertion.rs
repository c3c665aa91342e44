//! Inserts the headers of this crate in place of their `#include` lines. If the text then does not read a file, its
//! compiled code is cached for all processes.

use super::code::{code_of, definitions, directives, includes};
use super::macros::Dialect;
use super::vendor::{CUB, Vendor, may_be_of_libraries};
use crate::headers::{BUILT_IN, OF_PROGRAMS, STD, for_gpu};
use crate::tokens::edited;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Headers of C++ that are headers of C here.
const OF_C: &[(&str, &str)] = &[
    ("cassert", "assert.h"),
    ("cfloat", "float.h"),
    ("cinttypes", "inttypes.h"),
    ("climits", "limits.h"),
    ("ctime", "time.h"),
];

/// Headers of the C++ library in the folder `std`; NVIDIA's take their place where they are installed.
const OF_STD_HERE: &[&str] = &["array", "functional", "limits", "tuple", "type_traits", "utility"];

/// Headers of the C++ library that only NVIDIA has for kernels, in a namespace of its own.
const OF_STD: &[&str] =
    &["initializer_list", "iterator", "numeric", "optional", "ratio", "variant"];

/// The header of all of CUB, in whose place [`CUB`] is compiled.
const ALL_OF_CUB: &str = "cub/cub.cuh";

/// Headers of functions of the host, which programs include for code that no kernel uses.
const OF_HOST: &str = "
    algorithm ctype.h cctype cerrno chrono deque cstdarg cstdbool errno.h exception fstream
    iomanip ios iostream istream list malloc.h map memory mutex new omp.h ostream pthread.h
    queue random set signal.h sstream stack stdarg.h stdbool.h stdexcept string sys/time.h
    thread typeinfo unistd.h unordered_map unordered_set values.h vector
";

fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|it| it == name)
}

/// The headers that a compiler is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    pub(super) dialect: Dialect,
    pub(super) vendor: Vendor<'a>,
}

impl Headers<'_> {
    /// Returns true for a header of the C++ library that NVIDIA's package has.
    fn is_of_vendor(self, name: &str) -> bool {
        self.dialect == Dialect::Nvrtc
            && OF_STD_HERE.contains(&name)
            && self.vendor.folder(&format!("cuda/{STD}{name}")).is_some()
    }

    /// Returns the text of a header, in which the headers that it includes are inserted.
    pub(super) fn text(self, name: &str) -> Option<String> {
        if is_in(OF_HOST, name) {
            return Some(String::new());
        }
        if OF_STD.contains(&name) {
            return Some(format!(
                "#ifdef __HIP__\n#error \"the run-time compiler of HIP has no header {name}\"\n#else\n#include \
                 <cuda/{STD}{name}>\nnamespace std {{\nusing namespace cuda::std;\n}}\n#endif\n"
            ));
        }
        if self.is_of_vendor(name) {
            return None;
        }
        if name == ALL_OF_CUB && self.dialect == Dialect::Nvrtc {
            return self.text(CUB);
        }
        let is_amd = self.dialect == Dialect::Hiprtc;
        let found = match OF_STD_HERE.contains(&name) {
            true => for_gpu(&format!("{STD}{name}"), false),
            false => {
                let of_c = OF_C.iter().find(|it| it.0 == name).map_or(name, |it| it.1);
                for_gpu(name, is_amd).or_else(|| for_gpu(of_c, is_amd))
            }
        };
        let text = self.expanded(found?);
        // Only NVRTC takes NVIDIA's headers in place of these.
        Some(if self.dialect == Dialect::Nvrtc { text } else { closed(&text) })
    }

    fn expanded(self, text: &str) -> String {
        let places = includes(text).filter_map(|it| Some((it.range, self.text(it.name)?)));
        replaced(text, places.collect())
    }

    /// Returns a text in which the headers are inserted, except those that the program's own `folders` contain.
    /// Lines keep their numbers in the compiler's messages.
    pub(super) fn inserted(self, text: &str, file: &str, folders: &[PathBuf]) -> String {
        let code = code_of(text, false);
        let lines = Lines::of(text, &code, file);
        let mut places = Vec::new();
        for include in includes(text) {
            let Range { start, end } = include.range;
            let is_code = code[start..end].contains('#');
            let is_own = || folders.iter().any(|it| it.join(include.name).is_file());
            if !is_code || (include.name != ALL_OF_CUB && is_own()) {
                continue;
            }
            let new = match self.text(include.name) {
                // A comment may follow on the line.
                Some(own) => {
                    format!("#line 1 \"{}\"\n{own}{}\n", include.name, lines.directive(end, 0))
                }
                None => {
                    let is_built_in =
                        is_in(BUILT_IN, include.name) && self.vendor.folder(include.name).is_none();
                    match is_built_in || is_in(OF_PROGRAMS, include.name) {
                        true => String::new(),
                        false => continue,
                    }
                }
            };
            places.push((start..end, new));
        }
        places.extend(redefinitions(&code, &lines));
        with_line_numbers(text, &code, &lines, places)
    }

    /// Returns the headers of the C++ library that a text includes and that are NVIDIA's.
    pub(super) fn vendors_of_cpp(self, text: &str) -> impl Iterator<Item = &str> {
        of_cpp(text).into_iter().filter(move |it| self.is_of_vendor(it))
    }

    /// Returns the headers of the C++ library that a text includes and that are this crate's.
    pub(super) fn own_of_cpp(self, text: &str) -> impl Iterator<Item = &str> {
        of_cpp(text)
            .into_iter()
            .filter(move |it| OF_STD_HERE.contains(it) && !self.is_of_vendor(it))
    }

    /// Returns the folders of NVIDIA's headers that a text includes.
    pub(super) fn vendor_folders(self, text: &str) -> Vec<PathBuf> {
        let of_cpp: Vec<_> =
            self.vendors_of_cpp(text).map(|it| format!("cuda/{STD}{it}")).collect();
        let names = self.vendor.included(text).into_iter().chain(of_cpp.iter().map(String::as_str));
        self.vendor.folders(names)
    }
}

/// Returns the headers of the C++ library that a text includes: names without a file extension.
pub(super) fn of_cpp(text: &str) -> Vec<&str> {
    let is_identifier = |name: &str| {
        !name.starts_with(|it: char| it.is_ascii_digit())
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let mut names = Vec::new();
    for include in includes(text) {
        if is_identifier(include.name) && !names.contains(&include.name) {
            names.push(include.name);
        }
    }
    names
}

/// Returns a text and the program's own files that it includes, from `folders`.
pub(super) fn own_texts(text: &str, folders: &[PathBuf]) -> Vec<String> {
    fn read(
        text: String,
        folders: &[PathBuf],
        seen: &mut HashSet<PathBuf>,
        texts: &mut Vec<String>,
    ) {
        let at = texts.len();
        texts.push(text);
        let names: Vec<String> = includes(&texts[at]).map(|it| it.name.to_owned()).collect();
        for name in names {
            let mut paths = folders.iter().map(|it| it.join(&name));
            let Some(path) = paths.find(|it| it.is_file()) else { continue };
            if !seen.insert(path.clone()) {
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let mut inner = folders.to_vec();
            inner.extend(path.parent().map(Path::to_owned));
            read(String::from_utf8_lossy(&bytes).into_owned(), &inner, seen, texts);
        }
    }
    let mut texts = Vec::new();
    read(text.to_owned(), folders, &mut HashSet::new(), &mut texts);
    texts
}

/// Returns the headers of C++ libraries, NVIDIA's among them, that a text for the host includes.
pub(super) fn of_cpp_for_host(text: &str) -> impl Iterator<Item = &str> {
    let of_nvidia = includes(text).map(|it| it.name).filter(|it| may_be_of_libraries(it));
    of_cpp(text).into_iter().chain(of_nvidia)
}

/// Returns true if texts include headers of NVIDIA's C++ libraries.
pub(super) fn include_libraries(texts: &[String]) -> bool {
    texts.iter().flat_map(|it| includes(it)).any(|it| may_be_of_libraries(it.name))
}

/// Returns a text that includes CUB's parts for kernels in place of all of CUB.
pub(super) fn with_cub_for_kernels(text: &str) -> Cow<'_, str> {
    let of_cub = || includes(text).filter(|it| it.name == ALL_OF_CUB);
    if of_cub().next().is_none() {
        return text.into();
    }
    let code = code_of(text, false);
    let places = of_cub().filter(|it| code[it.range.clone()].contains('#'));
    replaced(text, places.map(|it| (it.range, format!("#include <{CUB}>"))).collect()).into()
}

/// Returns a text whose definitions of macros replace those in unasked headers.
pub(super) fn with_own_macros(text: &str, file: &str) -> String {
    let code = code_of(text, false);
    let lines = Lines::of(text, &code, file);
    with_line_numbers(text, &code, &lines, redefinitions(&code, &lines).collect())
}

/// The numbers of a text's lines and their files, which `#line` directives in the text may change.
struct Lines<'a> {
    /// The positions of line feeds.
    feeds: Vec<usize>,
    /// The text's own `#line` directives: the index of the next line, its number, and the file.
    own: Vec<(usize, usize, &'a str)>,
    file: &'a str,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str, code: &str, file: &'a str) -> Lines<'a> {
        let feeds: Vec<_> = text.match_indices('\n').map(|it| it.0).collect();
        let mut lines = Lines { feeds, own: Vec::new(), file };
        for directive in directives(code).filter(|it| it.name == "line") {
            let Range { start, end } = directive.range;
            let rest = text[start..end].trim_start().trim_start_matches('#').trim_start();
            let mut words = rest.trim_start_matches("line").trim().splitn(2, char::is_whitespace);
            let Some(Ok(number)) = words.next().map(str::parse) else { continue };
            let name = words.next().and_then(|it| it.split('"').nth(1));
            let file = name.unwrap_or(lines.own.last().map_or(file, |it| it.2));
            lines.own.push((lines.index(end) + 1, number, file));
        }
        lines
    }

    fn index(&self, at: usize) -> usize {
        self.feeds.partition_point(|it| *it < at)
    }

    /// Returns the directive that gives the next line the number of the line at a position, plus `later`.
    fn directive(&self, at: usize, later: usize) -> String {
        let index = self.index(at);
        let known = self.own.partition_point(|it| it.0 <= index);
        let (first, number, file) = match known.checked_sub(1) {
            Some(last) => self.own[last],
            None => (0, 1, self.file),
        };
        format!("#line {} \"{file}\"", number + index - first + later)
    }
}

/// Returns the header that has a name which run-time compilers lack.
pub(super) fn header(name: &str) -> Option<&'static str> {
    let integer = |name: &str| matches!(name, "8" | "16" | "32" | "64");
    let sized = |end: &str| {
        let rest = name.strip_prefix('u').unwrap_or(name).strip_prefix("int")?;
        rest.strip_suffix(end)
    };
    if sized("_t").is_some_and(|it| integer(it) || it == "ptr") {
        return Some("stdint.h");
    }
    if let Some(size) = name.strip_prefix("u_int").and_then(|it| it.strip_suffix("_t"))
        && integer(size)
    {
        return Some("sys/types.h");
    }
    let (is_unsigned, rest) = name.strip_prefix('U').map_or((false, name), |it| (true, it));
    if let Some((kind, limit @ ("MIN" | "MAX"))) = rest.rsplit_once('_') {
        if kind.strip_prefix("INT").is_some_and(integer) {
            return Some("stdint.h");
        }
        let is_limit = match kind {
            "CHAR" | "SHRT" | "INT" | "LONG" | "LLONG" => !is_unsigned || limit == "MAX",
            "SCHAR" => !is_unsigned,
            _ => false,
        };
        if is_limit {
            return Some("limits.h");
        }
    }
    if let Some(("FLT" | "DBL", rest)) = name.split_once('_')
        && matches!(rest, "EPSILON" | "MIN" | "MAX" | "DIG" | "MANT_DIG")
    {
        return Some("float.h");
    }
    Some(match name {
        "M_E" | "M_LOG2E" | "M_LOG10E" | "M_LN2" | "M_LN10" | "M_PI" | "M_PI_2" | "M_PI_4"
        | "M_1_PI" | "M_2_PI" | "M_2_SQRTPI" | "M_SQRT2" | "M_SQRT1_2" | "INFINITY" | "NAN"
        | "HUGE_VAL" | "HUGE_VALF" | "float_t" | "double_t" => "math.h",
        "assert" => "assert.h",
        "NULL" | "offsetof" | "ptrdiff_t" => "stddef.h",
        "u_char" | "u_short" | "u_int" | "u_long" | "ssize_t" | "off_t" => "sys/types.h",
        _ if name.len() > 7 && name.starts_with("CUDART_") => "math_constants.h",
        _ => return None,
    })
}

/// Returns the definitions of macros with names of headers, and texts that take their place.
fn redefinitions(code: &str, lines: &Lines<'_>) -> impl Iterator<Item = (Range<usize>, String)> {
    definitions(code).filter(|it| header(it.1).is_some()).map(move |(directive, name, value)| {
        let Range { start, end } = directive.range;
        let range = start..end - value.len();
        let (own, line) = (&code[range.clone()], lines.directive(start, 0));
        (range, format!("#undef {name}\n{line}\n{own}"))
    })
}

/// Replaces parts of a text that do not overlap.
fn replaced(text: &str, places: Vec<(Range<usize>, String)>) -> String {
    edited(text, places.into_iter().map(|(range, new)| (range.start, range.end, new)).collect())
}

/// Replaces parts of a text. Its lines keep their numbers.
fn with_line_numbers(
    text: &str,
    code: &str,
    lines: &Lines<'_>,
    mut places: Vec<(Range<usize>, String)>,
) -> String {
    let changed = places.iter().filter(|it| it.1 != text[it.0.clone()]).map(|it| it.0.end).min();
    if let Some(first) = changed {
        for directive in directives(text) {
            let Range { start, end } = directive.range;
            let is_condition = matches!(directive.name, "endif" | "else" | "elif");
            // A #line in a part that was left out no longer applies. A comment may follow the word, if it ends on
            // the line.
            let (line, is_code) = (&text[start..end], code[start..end].contains('#'));
            let is_whole = line.rfind("/*") <= line.rfind("*/");
            if is_condition && start >= first && is_code && is_whole {
                places.push((start..end, format!("{line}\n{}", lines.directive(end, 1))));
            }
        }
    }
    replaced(text, places)
}

/// Returns a text without its lines for programs that include NVIDIA's headers.
pub(super) fn closed(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = |index: usize| lines.get(index).copied().unwrap_or("");
    let mut result = String::with_capacity(text.len());
    let mut index = 0;
    while index < lines.len() {
        if at(index).starts_with("#elif ") && at(index + 1) == "#include \"pygpu-hip-integers.h\"\n"
        {
            index += 2;
        } else if let Some((after, rest)) = for_vendors(index, &at) {
            result += "#if";
            result += if rest.is_empty() { " 1\n" } else { rest };
            index = after;
        } else {
            result += at(index);
            index += 1;
        }
    }
    result
}

/// Reads a header's branch that includes NVIDIA's header in its place: returns the line after it, and the condition
/// of the next branch, which is empty for `#else`.
fn for_vendors<'t>(start: usize, at: &impl Fn(usize) -> &'t str) -> Option<(usize, &'t str)> {
    let mut index = start;
    index += usize::from(at(index).starts_with("#define PYGPU_NVIDIAS_"));
    let is_branch = at(index).starts_with("#if defined(PYGPU_NVIDIAS_HEADERS) && ")
        && at(index + 1).starts_with("#include ");
    if !is_branch {
        return None;
    }
    index += 2;
    if at(index) == "namespace std {\n" && at(index + 2) == "}\n" {
        index += 3;
    }
    let rest = at(index).strip_prefix("#el")?;
    match rest.strip_prefix("if") {
        Some(condition) => Some((index + 1, condition)),
        None => (rest == "se\n").then_some((index + 1, "")),
    }
}
