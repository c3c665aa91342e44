//! Reads the declarations of a text in order: finds the kernels, and the qualifiers to remove.

use super::constants::{self, Constant};
use crate::tokens::{Kind, Tokens};
use std::collections::HashMap;
use std::ops::Range;

const GLOBAL: &str = "__gpuarray_global__";
const BOUNDS: &str = "__gpuarray_bounds__";
const VARIABLE: &str = "__gpuarray_variable__";
const CONSTANT: &str = "__gpuarray_constant__";
/// The builtin for `alloca`. It allocates in the frame of the calling function, so a kernel that uses it is
/// not inlined.
const ALLOCA: &str = "__builtin_alloca";

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

/// The parts of a declaration that kernels and other declarations have in common.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The tokens of the declaration.
    pub(crate) range: Range<usize>,
    /// The opening parenthesis of a function's parameters. `body` is the opening brace of its body.
    pub(crate) parameters: Option<usize>,
    pub(crate) body: Option<usize>,
    pub(crate) is_kernel: bool,
}

/// The declarations of a text.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    pub(super) kernels: Vec<Kernel>,
    /// Numeric launch bounds of kernel templates, by name. Instantiations do not repeat them.
    pub(super) template_bounds: HashMap<String, String>,
    pub(super) constants: Vec<Constant>,
    /// True if the program calls `alloca`, so that kernels are not inlined into a loop.
    pub(super) uses_alloca: bool,
    /// All declarations outside of classes and functions.
    pub(super) all: Vec<Declared>,
    /// Bytes of the text to replace, in order.
    pub(super) edits: Vec<(usize, usize, &'static str)>,
}

/// Reads the declarations of a text.
pub(super) fn read(tokens: &Tokens<'_>) -> Declarations {
    let uses_alloca = (0..tokens.len()).any(|at| tokens.at(at) == ALLOCA);
    let found = Declarations { uses_alloca, ..Declarations::default() };
    let mut reader = Reader { tokens, scopes: Vec::new(), found };
    reader.read();
    reader.found
}

/// A scope around declarations.
enum Scope {
    Namespace(String),
    /// `extern "C"` if true, or `extern "C++"`.
    Linkage(bool),
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    scopes: Vec<Scope>,
    found: Declarations,
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
                    None if self.is_member_initialiser(begin, at) => {
                        at = tokens.partner(at).unwrap_or(at) + 1;
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
        // The first replacement of a token counts.
        self.found.edits.sort_by_key(|edit| edit.0);
        self.found.edits.dedup_by_key(|edit| edit.0);
    }

    /// Returns the scope that a brace opens, if kernels may be declared in it.
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

    /// Returns true for the brace in a constructor's member initialiser list: `: member{1}`.
    fn is_member_initialiser(&self, begin: usize, brace: usize) -> bool {
        let tokens = self.tokens;
        let is_name = brace > begin && (tokens.is_word(brace - 1) || tokens.at(brace - 1) == ">");
        let close = self.parameters(begin, brace).and_then(|open| tokens.partner(open));
        let Some(mut at) = close.filter(|_| is_name) else { return false };
        while at < brace {
            match tokens.at(at) {
                ":" => return true,
                "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(at),
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// Removes the qualifiers in a range.
    fn blank(&mut self, begin: usize, end: usize) {
        for index in begin..end {
            match self.tokens.at(index) {
                GLOBAL | VARIABLE | CONSTANT => self.replace(index, index, ""),
                BOUNDS => self.replace(index, self.tokens.partner(index + 1).unwrap_or(index), ""),
                _ => {}
            }
        }
    }

    fn replace(&mut self, first: usize, last: usize, replacement: &'static str) {
        let all = &self.tokens.all;
        self.found.edits.push((all[first].start, all[last].end, replacement));
    }

    /// Reads the declaration from `begin` to the `;`, or to the body's `{`, at `end`.
    fn declaration(&mut self, begin: usize, end: usize, has_body: bool) {
        let tokens = self.tokens;
        let has = |word: &str| (begin..end).any(|index| tokens.at(index) == word);
        // `extern template`: the instantiation is in another unit.
        let is_extern = tokens.at(begin) == "extern" && tokens.at(begin + 1) == "template";
        let is_template = tokens.at(begin) == "template";
        // Declarations inside member functions do not count.
        let mut braces = 0_usize;
        let of_variable = (begin..end).find(|&index| {
            match tokens.at(index) {
                "{" => braces += 1,
                "}" => braces = braces.saturating_sub(1),
                _ => {}
            }
            braces == 0 && matches!(tokens.at(index), VARIABLE | CONSTANT)
        });
        let is_constant = of_variable.is_some_and(|first| {
            (first..end).take_while(|&it| tokens.at(it) != "{").any(|it| tokens.at(it) == CONSTANT)
        });
        // Constant memory is never a function; the parentheses may contain its initial value.
        let parameters = self.parameters(begin, end).filter(|_| !is_constant);
        let last = if has_body { tokens.partner(end).unwrap_or(end) } else { end };
        self.found.all.push(Declared {
            range: begin..last + 1,
            parameters,
            body: has_body.then_some(end),
            is_kernel: has(GLOBAL),
        });
        if has(GLOBAL) {
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
                let kernel = self.kernel(begin, open, end, is_template);
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
            if let Some(index) = of_variable {
                self.replace(index, index, "__attribute__((__used__))");
            }
            if is_constant {
                let names = constants::names(tokens, begin, end);
                let own = names.into_iter().map(|name| Constant {
                    namespaces: self.namespaces(),
                    name,
                    is_template,
                });
                let own: Vec<_> = own.collect();
                self.found.constants.extend(own);
            }
        }
        self.blank(begin, end);
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

    fn kernel(&self, begin: usize, open: usize, end: usize, is_template: bool) -> Kernel {
        let tokens = self.tokens;
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
            namespaces: self.namespaces(),
            name: text(first, open - 1).replace('\n', " "),
            parameters: self.without_defaults(open + 1, close),
            is_extern_c,
            is_instance: is_template,
            bounds: bounds.unwrap_or_default(),
        }
    }

    /// Returns the namespaces around the current declaration.
    fn namespaces(&self) -> Vec<String> {
        let opening = |scope: &Scope| match scope {
            Scope::Namespace(opening) => Some(opening.clone()),
            Scope::Linkage(_) => None,
        };
        self.scopes.iter().filter_map(opening).collect()
    }

    /// Returns the opening parenthesis of a function's parameters, or `None` for other declarations.
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
                "<" if at > begin && tokens.is_word(at - 1) => {
                    at = tokens.behind_angles(at, end).unwrap_or(at + 1);
                }
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

    /// Returns the token after `template <...>`, if the declaration begins with it.
    fn behind_template(&self, begin: usize, end: usize) -> usize {
        let tokens = self.tokens;
        let mut at = begin;
        while at < end && tokens.at(at) == "template" && tokens.at(at + 1) == "<" {
            at = tokens.behind_angles(at + 1, end).unwrap_or(end);
        }
        at
    }

    /// Returns the parameters between two parentheses, without default values.
    fn without_defaults(&self, begin: usize, end: usize) -> String {
        let tokens = self.tokens;
        let mut text = String::new();
        let (mut at, mut is_default) = (begin, false);
        while at < end {
            let last = match tokens.at(at) {
                "(" | "[" | "{" => tokens.partner(at).unwrap_or(at).min(end - 1),
                // A default value cannot start after template arguments.
                "<" if is_default && tokens.is_word(at - 1) => {
                    let behind = tokens.behind_angles(at, end);
                    let is_template = |&it: &usize| it == end || tokens.all[it].kind == Kind::Mark;
                    behind.filter(is_template).map_or(at, |it| it - 1)
                }
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
                    if !matches!(tokens.at(index), VARIABLE | CONSTANT) {
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
