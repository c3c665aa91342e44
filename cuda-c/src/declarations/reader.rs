//! Finds the kernels and constants among the declarations of a text, and the qualifiers to remove.

use super::constants::{self, Constant};
use crate::tokens::Tokens;
use crate::tree::{CONSTANT, Declared, GLOBAL, Items, VARIABLE, class_of, parts, without_value};
use std::collections::HashMap;
use std::ops::Range;

const BOUNDS: &str = "__gpuarray_bounds__";
/// The builtin for `alloca`. It allocates in the frame of the calling function, so a kernel that uses it is
/// not inlined.
const ALLOCA: &str = "__builtin_alloca";

/// The attribute that replaces the qualifier of a variable.
const USED: &str = "__attribute__((__used__))";

/// A kernel that a text defines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// The namespaces to open, outermost first: `namespace a`, `inline namespace b`, `namespace`.
    pub(super) namespaces: Vec<String>,
    /// The name as written, with its qualification and template arguments.
    pub(super) name: String,
    /// The parameters as written, without default values.
    pub(super) parameters: String,
    pub(super) is_extern_c: bool,
    /// True for an explicit instantiation or specialisation of a template.
    pub(super) is_instance: bool,
    pub(super) bounds: String,
}

/// The declarations that a unit needs, and the edits for them.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    pub(super) kernels: Vec<Kernel>,
    /// Numeric launch bounds of kernel templates, by name. Instantiations do not repeat them.
    pub(super) template_bounds: HashMap<String, String>,
    pub(super) constants: Vec<Constant>,
    /// True if the program calls `alloca`, so that kernels are not inlined into a loop.
    pub(super) uses_alloca: bool,
    /// Bytes of the text to replace, in order.
    pub(super) edits: Vec<(usize, usize, &'static str)>,
}

/// Reads the declarations that a unit needs.
pub(super) fn read(tokens: &Tokens<'_>, items: &Items) -> Declarations {
    let uses_alloca = (0..tokens.len()).any(|at| tokens.at(at) == ALLOCA);
    let found = Declarations { uses_alloca, ..Declarations::default() };
    let mut reader = Reader { tokens, items, found };
    for declared in &items.all {
        reader.declaration(declared);
    }
    for at in 0..tokens.len() {
        match tokens.at(at) {
            GLOBAL | VARIABLE | CONSTANT => reader.replace(at, at, ""),
            BOUNDS => reader.replace(at, tokens.partner(at + 1).unwrap_or(at), ""),
            _ => {}
        }
    }
    // The first replacement of a token counts.
    reader.found.edits.sort_by_key(|edit| edit.0);
    reader.found.edits.dedup_by_key(|edit| edit.0);
    place_before_classes(tokens, &mut reader.found.edits);
    reader.found
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    items: &'t Items,
    found: Declarations,
}

impl Reader<'_, '_> {
    fn replace(&mut self, first: usize, last: usize, replacement: &'static str) {
        let all = &self.tokens.all;
        self.found.edits.push((all[first].start, all[last].end, replacement));
    }

    /// Adds the kernels, constants and qualifiers of a declaration to the result.
    fn declaration(&mut self, declared: &Declared) {
        let tokens = self.tokens;
        let (begin, end, parameters) = (declared.range.start, declared.end(), declared.parameters);
        let has_body = declared.body.is_some();
        let has = |word: &str| (begin..end).any(|index| tokens.at(index) == word);
        // `extern template`: the instantiation is in another unit.
        let is_extern = tokens.at(begin) == "extern" && tokens.at(begin + 1) == "template";
        let is_template = tokens.at(begin) == "template";
        if declared.is_kernel {
            let is_primary =
                is_template && tokens.at(begin + 1) == "<" && tokens.at(begin + 2) != ">";
            let is_instantiation = is_template && tokens.at(begin + 1) != "<";
            let is_inline = ["inline", "__inline__", "__inline"].into_iter().any(has);
            for index in begin..end {
                if tokens.at(index) == GLOBAL {
                    let inline = match (is_instantiation || is_extern, is_inline) {
                        (true, _) => "",
                        _ if self.found.uses_alloca => "__attribute__((__noinline__))",
                        (false, true) => "__attribute__((__always_inline__))",
                        (false, false) => "inline __attribute__((__always_inline__))",
                    };
                    self.replace(index, index, inline);
                    break;
                }
            }
            self.drop_attributes(begin, parameters.unwrap_or(end));
            if let Some(open) = parameters.filter(|_| !is_extern)
                && (has_body || is_instantiation)
            {
                let kernel = self.kernel(declared, open);
                if is_primary {
                    let numbers = |byte: u8| byte.is_ascii_digit() || b" ,*+-".contains(&byte);
                    if kernel.bounds.bytes().all(numbers) {
                        self.found.template_bounds.insert(kernel.name, kernel.bounds);
                    }
                } else {
                    self.found.kernels.push(kernel);
                }
            }
        } else if parameters.is_none() && !has("extern") {
            // The attribute keeps a variable that no function uses, because the host may access it.
            let Some((index, is_constant)) = declared.variable else { return };
            self.replace(index, index, USED);
            if is_constant {
                let namespaces = self.namespaces(declared);
                self.found.constants.extend(
                    constants::names(tokens, begin, end).into_iter().map(|name| Constant {
                        namespaces: namespaces.clone(),
                        name,
                        is_template,
                    }),
                );
            }
        }
    }

    /// Removes two kinds of attributes from a kernel. Those about calls would apply to the loop over threads,
    /// which calls or inlines the kernel. C++ attributes may follow `__global__`, but not the specifier that
    /// replaces it.
    fn drop_attributes(&mut self, begin: usize, end: usize) {
        let tokens = self.tokens;
        let mut at = begin;
        while at < end {
            let behind = tokens.partner(at).unwrap_or(at);
            match tokens.at(at) {
                "[" if tokens.at(at + 1) == "[" => {
                    self.replace(at, behind, "");
                    at = behind;
                }
                "noinline" | "__noinline__" | "deprecated" | "__deprecated__"
                    if at > begin && matches!(tokens.at(at - 1), "(" | ",") =>
                {
                    let text = tokens.partner(at + 1).filter(|_| tokens.at(at + 1) == "(");
                    self.replace(at, text.unwrap_or(at), "unused");
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn kernel(&self, declared: &Declared, open: usize) -> Kernel {
        let tokens = self.tokens;
        let (begin, end) = (declared.range.start, declared.end());
        let is_template = tokens.at(begin) == "template";
        let close = tokens.partner(open).unwrap_or(open);
        let mut first = open - 1;
        if tokens.at(first) == ">" {
            let is_of_name =
                |&at: &usize| tokens.at(at) == "<" && tokens.behind_angles(at, open) == Some(open);
            first = (begin + 1..open).find(is_of_name).unwrap_or(first) - 1;
        }
        while first >= begin + 2 && tokens.at(first - 1) == "::" && tokens.is_word(first - 2) {
            first -= 2;
        }
        let text = |first: usize, last: usize| match first > last {
            true => "",
            false => &tokens.text[tokens.all[first].start..tokens.all[last].end],
        };
        let is_c = |mut range: Range<usize>| {
            range.any(|at| tokens.at(at) == "extern" && tokens.at(at + 1) == "\"C\"")
        };
        let linkage = self.items.scopes(declared).find(|it| !it.is_namespace);
        let is_extern_c =
            !is_template && (linkage.is_some_and(|it| is_c(it.head.clone())) || is_c(begin..end));
        let bounds = (begin..end).find(|&index| tokens.at(index) == BOUNDS).and_then(|index| {
            let close = tokens.partner(index + 1)?;
            Some(text(index + 2, close - 1).to_owned())
        });
        Kernel {
            namespaces: self.namespaces(declared),
            name: text(first, open - 1).replace('\n', " "),
            parameters: self.without_defaults(open + 1..close),
            is_extern_c,
            is_instance: is_template,
            bounds: bounds.unwrap_or_default(),
        }
    }

    /// Returns the namespaces around a declaration, the outermost one first.
    fn namespaces(&self, declared: &Declared) -> Vec<String> {
        let namespaces = self.items.scopes(declared).filter(|it| it.is_namespace);
        let words = |head: Range<usize>| head.map(|at| self.tokens.at(at)).collect::<Vec<_>>();
        let mut namespaces: Vec<_> =
            namespaces.map(|it| words(it.head.clone()).join(" ")).collect();
        namespaces.reverse();
        namespaces
    }

    /// Returns the parameters between two parentheses, without default values.
    fn without_defaults(&self, all: Range<usize>) -> String {
        let tokens = self.tokens;
        let parameter = |part| {
            let words = without_value(tokens, part).map(|at| tokens.at(at));
            words.filter(|it| !matches!(*it, VARIABLE | CONSTANT)).collect::<Vec<_>>().join(" ")
        };
        parts(tokens, all).into_iter().map(parameter).collect::<Vec<_>>().join(" , ")
    }
}

/// Moves the attributes of variables that are declared together with their class to the front of the declaration:
/// `struct S { int a; } __constant__ s`. An attribute directly after the class would apply to the class.
fn place_before_classes(tokens: &Tokens<'_>, edits: &mut Vec<(usize, usize, &'static str)>) {
    let mut moved = Vec::new();
    for edit in edits.iter_mut().filter(|edit| edit.2 == USED) {
        let at = tokens.all.partition_point(|token| token.start < edit.0);
        if let Some(class) = at.checked_sub(1).and_then(|close| class_of(tokens, close)) {
            edit.2 = "";
            let start = tokens.all[class].start;
            moved.push((start, start, "__attribute__((__used__)) "));
        }
    }
    edits.extend(moved);
}

#[cfg(test)]
mod tests {
    use super::{USED, place_before_classes};
    use crate::tokens::Tokens;

    #[test]
    fn an_attribute_behind_a_class_is_moved_to_its_front() {
        for (text, expected) in [
            ("int f(); static struct S { int a; } Q c;", "__attribute__((__used__)) struct S"),
            (
                "struct alignas(8) S : B<(3 > 2)> { int a; } Q c;",
                "__attribute__((__used__)) struct alignas",
            ),
            ("enum class E : int { A } Q c;", "__attribute__((__used__)) enum class E"),
        ] {
            let start = text.find('Q').expect("a qualifier");
            let mut edits = vec![(start, start + 1, USED)];
            place_before_classes(&Tokens::of(text), &mut edits);
            let front = edits[1].0;
            assert_eq!(edits[0], (start, start + 1, ""), "{text}");
            assert!(format!("{}{}", edits[1].2, &text[front..]).starts_with(expected), "{text}");
        }
        for text in [
            "void f(){}Q int c;",
            "template <class T> void f(T *p) { *p = 1; } Q int c;",
            "struct S f() { return {}; } Q int c;",
            "struct S operator()() { return {}; } Q int c;",
        ] {
            let start = text.find('Q').expect("a qualifier");
            let mut edits = vec![(start, start + 1, USED)];
            place_before_classes(&Tokens::of(text), &mut edits);
            assert_eq!(edits, [(start, start + 1, USED)], "{text}");
        }
    }
}
