//! What C++ cannot say of a text of CUDA C: its kernels and the device's variables.
//!
//! The qualifiers of CUDA are macros for reserved words (`gpuarray_abi.h`). Here they are found in the
//! preprocessed text, taken out of it, and answered by declarations behind it.

use crate::tokens::Tokens;
use std::collections::HashMap;
use std::fmt::Write as _;

const GLOBAL: &str = "__gpuarray_global__";
const BOUNDS: &str = "__gpuarray_bounds__";
const VARIABLE: &str = "__gpuarray_variable__";

/// A kernel that a text defines.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    /// The namespaces to open, from the outside: `namespace a`, `inline namespace b`, `namespace`.
    namespaces: Vec<String>,
    /// The name, qualified and with template arguments as far as they are written.
    name: String,
    /// The parameters without default values, as they are written.
    parameters: String,
    is_extern_c: bool,
    /// An explicit instantiation or specialisation of a template.
    is_instance: bool,
    bounds: String,
}

/// A text that a C++ compiler takes, and the names of its entries.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The preprocessed text without CUDA's qualifiers, and the entries behind it.
    pub(crate) text: String,
}

/// Where a declaration is.
enum Scope {
    Namespace(String),
    /// `extern "C"`, or `extern "C++"`.
    Linkage(bool),
}

/// Reads a preprocessed text. `names` are expressions that name kernels and variables; their entries
/// follow those of the text's own kernels.
///
/// # Errors
/// A message with file and line for what no unit can have.
pub(crate) fn unit(preprocessed: &str, names: &[&str]) -> Result<Unit, String> {
    let tokens = Tokens::of(preprocessed);
    check(&tokens)?;
    let mut reader = Reader {
        tokens: &tokens,
        scopes: Vec::new(),
        kernels: Vec::new(),
        template_bounds: HashMap::new(),
        edits: Vec::new(),
    };
    reader.read();
    let Reader { kernels, template_bounds, edits, .. } = reader;
    let mut text = String::with_capacity(preprocessed.len() + 256 * (kernels.len() + names.len()));
    let mut done = 0;
    for (start, end, replacement) in edits {
        text.push_str(&preprocessed[done..start]);
        text.push_str(replacement);
        done = end;
    }
    text.push_str(&preprocessed[done..]);
    let mut counts: HashMap<(&[String], &str), usize> = HashMap::new();
    for kernel in &kernels {
        *counts.entry((&kernel.namespaces, &kernel.name)).or_default() += 1;
    }
    for (number, kernel) in kernels.iter().enumerate() {
        let is_overloaded = counts[&(&kernel.namespaces[..], kernel.name.as_str())] > 1;
        append(&mut text, number, kernel, is_overloaded || kernel.is_instance);
    }
    for (number, name) in names.iter().enumerate() {
        let template = name.split('<').next().unwrap_or(name).trim();
        let template = template.rsplit("::").next().unwrap_or(template);
        let bounds = template_bounds.get(template).map_or("", String::as_str);
        let number = kernels.len() + number;
        let address = name.trim().trim_start_matches('&');
        // Writing to a String cannot fail.
        let _ = write!(text, "\n# 1 \"name expression {}\"\n{}", escaped(name), entry(number));
        let _ = writeln!(text, "::gpuarray_abi::entry<(&{address})>({{{bounds}}});");
    }
    Ok(Unit { text })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
}

/// The declaration of an entry up to its value.
fn entry(number: usize) -> String {
    format!(
        "static const ::gpuarray_abi::Entry gpuarray_entry_{number} \
         __asm__(\"gpuarray_entry_{number}\") __attribute__((used)) = "
    )
}

fn append(text: &mut String, number: usize, kernel: &Kernel, needs_type: bool) {
    let Kernel { namespaces, name, parameters, bounds, .. } = kernel;
    let _ = writeln!(text, "\n# 1 \"kernel {}\"", escaped(name));
    for namespace in namespaces {
        let _ = write!(text, "{namespace} {{ ");
    }
    let _ = write!(text, "{}::gpuarray_abi::entry<(", entry(number));
    let _ = match needs_type {
        true => write!(text, "static_cast<void (*)({parameters})>(&{name})"),
        false => write!(text, "&{name}"),
    };
    let _ = write!(text, ")>({{{bounds}}}");
    if kernel.is_extern_c {
        let plain = name.rsplit("::").next().unwrap_or(name).trim();
        let _ = write!(text, ", \"{}\"", escaped(plain));
    }
    let _ = writeln!(text, ");{}", " }".repeat(namespaces.len()));
}

/// Refuses by name what a C++ compiler would only stumble over.
fn check(tokens: &Tokens<'_>) -> Result<(), String> {
    for index in 0..tokens.len() {
        let refused = match tokens.at(index) {
            "<" => {
                let is_adjacent = |a: usize| {
                    tokens.at(a + 1) == "<" && tokens.all[a].end == tokens.all[a + 1].start
                };
                let is_launch = is_adjacent(index) && is_adjacent(index + 1);
                let is_operator = index > 0 && matches!(tokens.at(index - 1), "operator" | "<");
                (is_launch && !is_operator).then_some(
                    "a kernel cannot launch kernels (<<<...>>>): dynamic parallelism is not \
                     supported on the host, and programs launch through their own API",
                )
            }
            "asm" | "__asm__" | "__asm" => {
                let starts = index > 0 && matches!(tokens.at(index - 1), ";" | "{" | "}" | "else");
                (starts && tokens.is_of_program(index)).then_some(
                    "inline PTX (asm) is not supported on the host; use the intrinsic functions of \
                     CUDA C, or other code where __GPUARRAY_HOST__ is defined",
                )
            }
            _ => None,
        };
        if let Some(what) = refused {
            return Err(format!("{}: error: {what}\n", tokens.place(index)));
        }
    }
    Ok(())
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    scopes: Vec<Scope>,
    kernels: Vec<Kernel>,
    /// The bounds of templates of kernels that are numbers: names of templates do not tell them.
    template_bounds: HashMap<String, String>,
    /// Bytes of the text to replace, in order.
    edits: Vec<(usize, usize, &'static str)>,
}

impl Reader<'_, '_> {
    fn read(&mut self) {
        let tokens = self.tokens;
        let (mut at, mut begin) = (0, 0);
        while at < tokens.len() {
            match tokens.at(at) {
                ";" => {
                    self.declaration(begin, at, false);
                    at += 1;
                    begin = at;
                }
                "{" => match self.scope(begin, at) {
                    Some(scope) => {
                        self.scopes.push(scope);
                        at += 1;
                        begin = at;
                    }
                    None => {
                        let end = tokens.partner(at).unwrap_or(tokens.len() - 1);
                        let is_function = self.parameters(begin, at).is_some();
                        if is_function {
                            self.declaration(begin, at, true);
                        }
                        self.blank(at, end);
                        at = end + 1;
                        if is_function {
                            begin = at;
                        }
                    }
                },
                "}" => {
                    self.scopes.pop();
                    at += 1;
                    begin = at;
                }
                "(" | "[" => {
                    let end = tokens.partner(at).unwrap_or(at);
                    at = end + 1;
                }
                _ => at += 1,
            }
        }
        self.blank(begin, tokens.len());
        self.edits.sort_unstable_by_key(|edit| edit.0);
        self.edits.dedup_by_key(|edit| edit.0);
    }

    /// The scope that a brace opens, if declarations of kernels may be in it.
    fn scope(&self, begin: usize, brace: usize) -> Option<Scope> {
        let tokens = self.tokens;
        if brace == begin + 2 && tokens.at(begin) == "extern" {
            return Some(Scope::Linkage(tokens.at(begin + 1) == "\"C\""));
        }
        let first = begin + usize::from(tokens.at(begin) == "inline");
        if tokens.at(first) != "namespace" {
            return None;
        }
        let words: Vec<&str> = (begin..brace).map(|index| tokens.at(index)).collect();
        Some(Scope::Namespace(words.join(" ")))
    }

    /// Takes the qualifiers out of a range.
    fn blank(&mut self, begin: usize, end: usize) {
        for index in begin..end {
            match self.tokens.at(index) {
                GLOBAL | VARIABLE => self.replace(index, index, ""),
                BOUNDS => self.replace(index, self.tokens.partner(index + 1).unwrap_or(index), ""),
                _ => {}
            }
        }
    }

    fn replace(&mut self, first: usize, last: usize, replacement: &'static str) {
        let all = &self.tokens.all;
        self.edits.push((all[first].start, all[last].end, replacement));
    }

    /// Reads the declaration from `begin` to the `;` or the body's `{` at `end`.
    fn declaration(&mut self, begin: usize, end: usize, has_body: bool) {
        let tokens = self.tokens;
        let has = |word: &str| (begin..end).any(|index| tokens.at(index) == word);
        let is_template = tokens.at(begin) == "template";
        let parameters = self.parameters(begin, end);
        if has(GLOBAL) {
            let is_primary =
                is_template && tokens.at(begin + 1) == "<" && tokens.at(begin + 2) != ">";
            let is_instantiation = is_template && tokens.at(begin + 1) != "<";
            let is_inline = ["inline", "__inline__", "__inline"].into_iter().any(has);
            for index in begin..end {
                if tokens.at(index) == GLOBAL {
                    let inline = match (is_instantiation, is_inline) {
                        (true, _) => "",
                        (false, true) => "__attribute__((__always_inline__))",
                        (false, false) => "inline __attribute__((__always_inline__))",
                    };
                    self.replace(index, index, inline);
                    break;
                }
            }
            if let Some(open) = parameters
                && (has_body || is_instantiation)
            {
                let kernel = self.kernel(begin, open, end, is_template);
                if is_primary {
                    let numbers = |byte: u8| byte.is_ascii_digit() || b" ,*+-".contains(&byte);
                    if kernel.bounds.bytes().all(numbers) {
                        self.template_bounds.insert(kernel.name, kernel.bounds);
                    }
                } else {
                    self.kernels.push(kernel);
                }
            }
        } else if parameters.is_none() && !has("extern") {
            // Kept although no function may read or write it: the host does.
            for index in begin..end {
                if tokens.at(index) == VARIABLE {
                    self.replace(index, index, "__attribute__((__used__))");
                    break;
                }
            }
        }
        self.blank(begin, end);
    }

    fn kernel(&self, begin: usize, open: usize, end: usize, is_template: bool) -> Kernel {
        let tokens = self.tokens;
        let close = tokens.partner(open).unwrap_or(open);
        let mut first = open - 1;
        if tokens.at(first) == ">" {
            let mut depth = 0;
            loop {
                match tokens.at(first) {
                    ">" => depth += 1,
                    "<" => depth -= 1,
                    _ => {}
                }
                if depth == 0 || first == begin {
                    break;
                }
                first -= 1;
            }
            first = first.saturating_sub(1).max(begin);
        }
        while first >= begin + 2 && tokens.at(first - 1) == "::" && tokens.is_word(first - 2) {
            first -= 2;
        }
        let text = |first: usize, last: usize| match first > last {
            true => "",
            false => &tokens.text[tokens.all[first].start..tokens.all[last].end],
        };
        let is_extern_c = !is_template
            && (self.scopes.iter().rev().find_map(|scope| match scope {
                Scope::Linkage(is_c) => Some(*is_c),
                Scope::Namespace(_) => None,
            }) == Some(true)
                || (begin..end)
                    .any(|index| tokens.at(index) == "extern" && tokens.at(index + 1) == "\"C\""));
        let bounds = (begin..end).find(|&index| tokens.at(index) == BOUNDS).and_then(|index| {
            let close = tokens.partner(index + 1)?;
            Some(text(index + 2, close - 1).to_owned())
        });
        Kernel {
            namespaces: self
                .scopes
                .iter()
                .filter_map(|scope| match scope {
                    Scope::Namespace(opening) => Some(opening.clone()),
                    Scope::Linkage(_) => None,
                })
                .collect(),
            name: text(first, open - 1).replace('\n', " "),
            parameters: self.without_defaults(open + 1, close),
            is_extern_c,
            is_instance: is_template,
            bounds: bounds.unwrap_or_default(),
        }
    }

    /// The opening parenthesis of a function's parameters; `None` for another declaration.
    fn parameters(&self, begin: usize, end: usize) -> Option<usize> {
        let tokens = self.tokens;
        let mut at = self.behind_template(begin, end);
        while at < end {
            match tokens.at(at) {
                "(" => {
                    let before = at.checked_sub(1).filter(|&it| it >= begin)?;
                    let word = tokens.at(before);
                    let is_other = matches!(
                        word,
                        "__attribute__"
                            | "__attribute"
                            | "alignas"
                            | "decltype"
                            | "__typeof__"
                            | BOUNDS
                            | "noexcept"
                            | "requires"
                            | "explicit"
                            | "__asm__"
                            | "asm"
                    );
                    if !is_other && (tokens.is_word(before) || word == ">") {
                        return Some(at);
                    }
                    at = tokens.partner(at)? + 1;
                }
                "[" => at = tokens.partner(at)? + 1,
                "=" if tokens.at(at.wrapping_sub(1)) != "operator" => return None,
                "operator" => {
                    return tokens.all[at..end]
                        .iter()
                        .zip(at..)
                        .find_map(|(_, index)| {
                            (tokens.at(index) == "(" && tokens.at(index + 1) != ")")
                                .then_some(index)
                        })
                        .or_else(|| (at..end).rev().find(|&index| tokens.at(index) == "("));
                }
                _ => at += 1,
            }
        }
        None
    }

    /// The token behind `template <...>`, where a declaration begins with it.
    fn behind_template(&self, begin: usize, end: usize) -> usize {
        let tokens = self.tokens;
        let mut at = begin;
        while at < end && tokens.at(at) == "template" && tokens.at(at + 1) == "<" {
            let mut depth = 0;
            at += 1;
            while at < end {
                match tokens.at(at) {
                    "<" => depth += 1,
                    ">" => depth -= 1,
                    "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(at),
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
        }
        at
    }

    /// The parameters between two parentheses, without default values.
    fn without_defaults(&self, begin: usize, end: usize) -> String {
        let tokens = self.tokens;
        let mut text = String::new();
        let (mut at, mut is_default) = (begin, false);
        while at < end {
            let last = match tokens.at(at) {
                "(" | "[" | "{" => tokens.partner(at).unwrap_or(at).min(end - 1),
                "=" => {
                    is_default = true;
                    at
                }
                "," => {
                    is_default = false;
                    at
                }
                _ => at,
            };
            if !is_default {
                for index in at..=last {
                    if tokens.at(index) != VARIABLE {
                        text.push_str(tokens.at(index));
                        text.push(' ');
                    }
                }
            }
            at = last + 1;
        }
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::unit;

    /// The appended lines of a text, without what is the same in all.
    fn entries(text: &str) -> Vec<String> {
        let text = unit(text, &[]).expect("a unit").text;
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
                r#"entry<(&a)>({}, "a");"#,
                r#"entry<(&b)>({256, 2}, "b");"#,
                "entry<(&c)>({sizeof(float) * 8});",
                "namespace n { namespace { entry<(&d)>({}); } }",
                r#"namespace m :: o { entry<(&e)>({}, "e"); }"#,
                "entry<(&n::f)>({});",
            ]
        );
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
        let named = unit(text, &["h<float>", "&counter"]).expect("a unit").text;
        assert!(named.contains("gpuarray_entry_4\") __attribute__((used)) = ::gpuarray_abi::entry<(&h<float>)>({64});"), "{named}");
        assert!(named.contains("::gpuarray_abi::entry<(&counter)>({});"), "{named}");
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
        let made = unit(text, &[]).expect("a unit").text;
        assert_eq!(made, text);
    }

    #[test]
    fn what_no_unit_can_have_is_refused_by_name() {
        let refused = |text: &str| unit(text, &[]).expect_err("refused");
        let launch = refused("# 1 \"k.cu\"\nvoid f() {\n k<<<1, 2>>>(); }");
        assert!(launch.starts_with("k.cu:2: error: a kernel cannot launch kernels"), "{launch}");
        let ptx = refused("# 1 \"k.cu\"\nvoid f() { asm volatile (\"x\"); }");
        assert!(ptx.starts_with("k.cu:1: error: inline PTX"), "{ptx}");
        assert!(unit("int f() __asm__(\"g\"); void h() { a << b; }", &[]).is_ok());
        assert!(unit("X& operator<<<int>(X&);", &[]).is_ok());
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
            let _ = unit(text, &[]);
        }
    }
}
