//! Reads the declarations of types and kernels in a text without directives and macros.

use super::macros::{BEGIN, END, UNSURE};
use super::types::{SignatureParameter, ValueType, builtin, is_builtin, named};
use crate::tokens::Tokens;
use crate::tree::{LONGEST, parts, without_value};
use std::collections::HashMap;
use std::ops::Range;

/// A kernel. Its parameters are `None` if they are not certain.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) parameters: Option<Vec<Declared>>,
}

/// A parameter, whose type may be a template parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    parameter: SignatureParameter,
    /// The position of the type among the template parameters.
    of_template: Option<usize>,
}

impl Declared {
    /// Returns the parameter after the template parameters are substituted.
    pub(super) fn instantiated(&self, types: &[Option<ValueType>]) -> SignatureParameter {
        let mut parameter = self.parameter.clone();
        if let Some(of) = self.of_template.and_then(|it| *types.get(it)?) {
            parameter.of = of;
        }
        parameter
    }
}

/// A type: `pointers` levels of pointers to a value type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Type {
    of: ValueType,
    pointers: usize,
    is_const: bool,
    of_template: Option<usize>,
}

const UNKNOWN: Type =
    Type { of: ValueType::Unknown, pointers: 0, is_const: false, of_template: None };

/// The maximum nesting depth of types.
const DEEPEST: usize = 16;

/// A declared name and its type.
struct Declarator {
    of: Type,
    name: String,
    is_restrict: bool,
    written: String,
}

struct Reader<'a> {
    tokens: &'a Tokens<'a>,
    /// The types that the program declares, and the namespace of each.
    types: HashMap<&'a str, (Option<usize>, Type)>,
    /// The braces of the open namespaces; `None` for a linkage block.
    scopes: Vec<Option<usize>>,
    /// The parameters of the current template.
    template: Option<Vec<&'a str>>,
    /// The number of enclosing `#if` whose result is not known from the text.
    conditions: usize,
    kernels: Vec<Kernel>,
}

/// Reads all kernels. Returns `None` if the braces of the text do not match.
pub(super) fn kernels(text: &str) -> Option<Vec<Kernel>> {
    let tokens = Tokens::of(text);
    let mut reader = Reader {
        tokens: &tokens,
        types: HashMap::new(),
        scopes: Vec::new(),
        template: None,
        conditions: 0,
        kernels: Vec::new(),
    };
    reader.read()?;
    Some(reader.kernels)
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Option<()> {
        let mut at = 0;
        while at < self.tokens.len() {
            at = self.step(at)?;
        }
        Some(())
    }

    /// Reads a declaration, and returns the token after it.
    fn step(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        match tokens.at(at) {
            BEGIN => self.conditions += 1,
            END => self.conditions = self.conditions.saturating_sub(1),
            "{" if !tokens.is_of_scope(at) => {
                let end = tokens.partner(at)?;
                self.template = None;
                // Conditions may begin and end anywhere.
                for inside in at..end {
                    match tokens.at(inside) {
                        BEGIN => self.conditions += 1,
                        END => self.conditions = self.conditions.saturating_sub(1),
                        _ => {}
                    }
                }
                return Some(end + 1);
            }
            "{" => {
                tokens.partner(at)?;
                self.scopes.push((!tokens.is_of_linkage(at)).then_some(at));
            }
            "}" => {
                self.template = None;
                self.scopes.pop();
            }
            ";" => self.template = None,
            "template" => return Some(self.read_template(at + 1)),
            "typedef" => return Some(self.read_typedef(at + 1)),
            "using" => return Some(self.read_using(at + 1)),
            "struct" | "class" | "union" | "enum" => self.read_class(at + 1),
            "__global__" => return Some(self.read_kernel(at + 1)),
            _ => {}
        }
        Some(at + 1)
    }

    /// Like [`Tokens::behind_angles`], but limits the length.
    fn behind_angles(&self, open: usize, end: usize) -> Option<usize> {
        self.tokens.behind_angles(open, end.min(open + LONGEST))
    }

    fn end_of_statement(&self, from: usize) -> usize {
        let mut at = from;
        while at < self.tokens.len() && self.tokens.at(at) != ";" {
            at = self.tokens.partner(at).filter(|it| *it > at).unwrap_or(at) + 1;
        }
        at
    }

    fn declare(&mut self, name: &'a str, of: Type) {
        let of = if self.conditions > 0 { UNKNOWN } else { of };
        let namespace = self.scopes.iter().rev().find_map(|it| *it);
        let known = self.types.entry(name).or_insert((namespace, of));
        if *known != (namespace, of) {
            *known = (None, UNKNOWN);
        }
    }

    fn read_template(&mut self, open: usize) -> usize {
        let Some(end) = self.behind_angles(open, self.tokens.len()) else { return open };
        let parts = parts(self.tokens, open + 1..end - 1);
        let name = |part: Range<usize>| {
            let last = without_value(self.tokens, part).last();
            last.map_or("", |last| self.tokens.at(last))
        };
        self.template = Some(parts.into_iter().map(name).collect());
        end
    }

    fn read_typedef(&mut self, start: usize) -> usize {
        let end = self.end_of_statement(start);
        let mut base: Option<Type> = None;
        for part in parts(self.tokens, start..end) {
            let declared = match base {
                None => self.declarator(part.clone(), 0),
                // After a comma, only stars and a name follow.
                Some(of) => {
                    let stars = part.clone().filter(|&it| self.tokens.at(it) == "*").count();
                    Some(Declarator {
                        of: Type { pointers: stars, ..of },
                        name: String::new(),
                        is_restrict: false,
                        written: String::new(),
                    })
                }
            };
            let is_plain =
                |it: usize| !matches!(self.tokens.at(it), "(" | "[" | "{" | UNSURE | BEGIN | END);
            let of = declared.filter(|_| part.clone().all(is_plain)).map_or(UNKNOWN, |it| it.of);
            // The `const` of the type also applies to the following names.
            base = Some(Type { pointers: 0, ..of });
            if let Some(name) = self.names_in(part) {
                self.declare(name, of);
            }
        }
        end
    }

    /// Returns the name that a part of a `typedef` declares: the last word, or the first one in
    /// `(*name)(...)`.
    fn names_in(&self, part: Range<usize>) -> Option<&'a str> {
        let open = part.clone().find(|&it| self.tokens.at(it) == "(");
        match open {
            Some(open) => (open..part.end).find(|&it| self.tokens.is_word(it)),
            None => {
                let last = |it: &usize| self.tokens.is_word(*it);
                let bracket = part.clone().find(|&it| self.tokens.at(it) == "[" && it > part.start);
                (part.start..bracket.unwrap_or(part.end)).rev().find(last)
            }
        }
        .map(|it| self.tokens.at(it))
    }

    fn read_using(&mut self, start: usize) -> usize {
        let end = self.end_of_statement(start);
        let tokens = self.tokens;
        if tokens.at(start) == "namespace" {
            return end;
        }
        let name = tokens.at(start);
        let of = match tokens.at(start + 1) {
            "=" if self.template.is_none() => {
                self.declarator(start + 2..end, 0).filter(|it| it.name.is_empty()).map(|it| it.of)
            }
            _ => None,
        };
        let name =
            if tokens.at(start + 1) == "=" { name } else { tokens.at(end.saturating_sub(1)) };
        self.declare(name, of.unwrap_or(UNKNOWN));
        end
    }

    fn read_class(&mut self, start: usize) {
        let mut at = start;
        while at < self.tokens.len().min(start + 64) {
            match self.tokens.at(at) {
                "class" | "struct" => at += 1,
                "[" => at = self.tokens.partner(at).unwrap_or(at) + 1,
                word if word.starts_with("__") || word == "alignas" => {
                    at += 1;
                    if self.tokens.at(at) == "(" {
                        at = self.tokens.partner(at).unwrap_or(at) + 1;
                    }
                }
                _ => break,
            }
        }
        // A mere use also refers to a class of this name.
        if self.tokens.is_word(at) {
            self.declare(self.tokens.at(at), UNKNOWN);
        }
    }

    /// Reads the kernel after `__global__`, and returns the token of its body or its end.
    fn read_kernel(&mut self, start: usize) -> usize {
        let tokens = self.tokens;
        // Before the name, an unknown macro is an attribute, such as launch bounds. So is a word reserved for
        // compilers under a condition.
        let (mut at, mut name, mut is_certain, mut conditions) = (start, "", true, 0_usize);
        while at < tokens.len() {
            match tokens.at(at) {
                BEGIN => conditions += 1,
                END if conditions > 0 => conditions -= 1,
                END => is_certain = false,
                UNSURE => {
                    at += 1;
                    if tokens.at(at + 1) == "(" {
                        at = tokens.partner(at + 1).unwrap_or(at);
                    }
                }
                word if conditions > 0 && tokens.is_word(at) && !word.starts_with("__") => {
                    (name, is_certain) = (word, false);
                }
                "(" if name.starts_with("__") || name.is_empty() || name == "alignas" => {
                    at = tokens.partner(at).unwrap_or(at);
                    name = "";
                }
                "(" => {
                    let Some(end) = tokens.partner(at) else { return at + 1 };
                    let parameters = self.parameters(at + 1..end).filter(|_| is_certain);
                    self.add(name, parameters);
                    self.conditions += conditions;
                    return end + 1;
                }
                "[" => at = tokens.partner(at).unwrap_or(at),
                // A specialisation or instantiation has the parameters of the template.
                "<" => match self.behind_angles(at, tokens.len()) {
                    Some(behind) if tokens.at(behind) == "(" => return behind,
                    Some(behind) => at = behind - 1,
                    None => return at,
                },
                ";" | "{" | "}" | "=" => return at,
                word if tokens.is_word(at) => name = word,
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn add(&mut self, name: &str, parameters: Option<Vec<Declared>>) {
        let same = |a: &Declared, b: &Declared| {
            let (a, b) = (&a.parameter, &b.parameter);
            (a.of, a.is_pointer, &a.written) == (b.of, b.is_pointer, &b.written)
        };
        let Some(known) = self.kernels.iter_mut().find(|it| it.name == name) else {
            self.kernels.push(Kernel { name: name.into(), parameters });
            return;
        };
        let is_same = match (&known.parameters, &parameters) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            _ => false,
        };
        // The later declaration has the body, and its names count.
        known.parameters = parameters.filter(|_| is_same);
    }

    fn parameters(&self, all: Range<usize>) -> Option<Vec<Declared>> {
        if all.clone().any(|it| matches!(self.tokens.at(it), UNSURE | BEGIN | END)) {
            return None;
        }
        if all.is_empty() || (all.len() == 1 && self.tokens.at(all.start) == "void") {
            return Some(Vec::new());
        }
        let parameter = |part: Range<usize>| {
            let declared = self.declarator(without_value(self.tokens, part), 0)?;
            let Type { of, pointers, is_const, of_template } = declared.of;
            let of = match pointers {
                0 | 1 => of,
                // A pointer to a pointer: its elements are addresses.
                _ => ValueType::Number(super::Number::Unsigned(8)),
            };
            if pointers == 0 && of == ValueType::Void {
                return None;
            }
            let parameter = SignatureParameter {
                name: declared.name,
                of,
                is_pointer: pointers > 0,
                is_const,
                is_restrict: declared.is_restrict,
                written: declared.written,
            };
            Some(Declared { parameter, of_template: of_template.filter(|_| pointers < 2) })
        };
        parts(self.tokens, all).into_iter().map(parameter).collect()
    }

    /// Reads a type and an optional name. Returns `None` for a declaration that is not supported.
    fn declarator(&self, part: Range<usize>, depth: usize) -> Option<Declarator> {
        if depth > DEEPEST {
            return None;
        }
        let tokens = self.tokens;
        let mut words: Vec<&str> = Vec::new();
        let (mut base, mut written) = (None::<Type>, String::new());
        let (mut name, mut stars, mut is_const, mut is_restrict) = (String::new(), 0, false, false);
        let mut is_class = false;
        let mut at = part.start;
        while at < part.end {
            let word = tokens.at(at);
            let ends_builtin = !words.is_empty() && !is_builtin(word) && base.is_none();
            if ends_builtin && !matches!(word, "const" | "volatile") {
                written = words.join(" ");
                base = Some(Type { of: builtin(&words), ..UNKNOWN });
            }
            match word {
                "const" => is_const |= stars == 0,
                "volatile" | "register" | "__grid_constant__" | "typename" | "static" => {}
                "struct" | "class" | "union" | "enum" => is_class = true,
                "__restrict__" | "__restrict" | "restrict" => is_restrict = true,
                "__align__" | "alignas" | "__attribute__" => {
                    at = tokens.partner(at + 1)?;
                }
                "[" if tokens.at(at + 1) == "[" => at = tokens.partner(at)?,
                "[" if base.is_some() => {
                    // An array of arrays decays to a pointer to an array.
                    stars += 1;
                    at = tokens.partner(at)?;
                    if tokens.at(at + 1) == "[" && at + 1 < part.end {
                        base = Some(UNKNOWN);
                        at = part.end;
                    }
                }
                "*" if base.is_some() && name.is_empty() => stars += 1,
                // A function, or a pointer to a function or an array.
                "(" if base.is_some() => {
                    let end = tokens.partner(at)?;
                    let found = (at..end).rev().find(|&it| tokens.is_word(it));
                    name = found.map_or("", |it| tokens.at(it)).into();
                    let of = Type { pointers: 1, ..UNKNOWN };
                    let written = format!("{written} (*)");
                    return Some(Declarator { of, name, is_restrict, written });
                }
                _ if is_builtin(word) && base.is_none() => words.push(word),
                _ if (tokens.is_word(at) || word == "::") && base.is_none() => {
                    let end;
                    (base, end) = self.named_type(at, part.end, depth);
                    written = self.text(at..end);
                    if is_class {
                        base = Some(UNKNOWN);
                    }
                    at = end - 1;
                }
                _ if tokens.is_word(at) && name.is_empty() => name = word.into(),
                _ => return None,
            }
            at += 1;
        }
        if base.is_none() && !words.is_empty() {
            written = words.join(" ");
            base = Some(Type { of: builtin(&words), ..UNKNOWN });
        }
        let base = base?;
        let pointers = base.pointers + stars;
        if stars > 0 {
            written = format!("{written} {}", "*".repeat(stars));
        }
        // A `const` on the pointer itself does not matter to callers.
        let is_const = base.is_const || (is_const && base.pointers == 0);
        let of = Type { pointers, is_const, ..base };
        Some(Declarator { of, name, is_restrict, written })
    }

    /// Returns the type of a name with optional template arguments, and the token after it.
    fn named_type(&self, start: usize, end: usize, depth: usize) -> (Option<Type>, usize) {
        let tokens = self.tokens;
        let (mut path, mut at) = (Vec::new(), start);
        let mut argument = None;
        while at < end {
            match tokens.at(at) {
                "::" => at += 1,
                "<" if !path.is_empty() => {
                    let Some(behind) = self.behind_angles(at, end) else { break };
                    let inside = self.declarator(at + 1..behind - 1, depth + 1);
                    argument =
                        Some(inside.filter(|it| it.of.pointers == 0).map_or(UNKNOWN, |it| it.of));
                    at = behind;
                }
                word if tokens.is_word(at) && (path.is_empty() || tokens.at(at - 1) == "::") => {
                    path.push(word);
                    at += 1;
                }
                _ => break,
            }
        }
        // A member of a template instance is unknown.
        let is_member = argument.is_some() && tokens.at(at - 1) != ">";
        let template =
            self.template.as_ref().and_then(|names| names.iter().position(|it| path[..] == [*it]));
        let own = path.first().filter(|_| path.len() == 1).and_then(|it| self.types.get(it));
        let of = match (template, own) {
            _ if is_member => UNKNOWN,
            (of_template @ Some(_), _) if argument.is_none() => Type { of_template, ..UNKNOWN },
            (_, Some(_)) if argument.is_some() => UNKNOWN,
            (_, Some((Some(namespace), _))) if !self.scopes.contains(&Some(*namespace)) => UNKNOWN,
            (_, Some(&(_, own))) => own,
            _ => Type { of: named(&path, argument.map(|it| it.of)), ..UNKNOWN },
        };
        (Some(of), at)
    }

    /// Returns tokens in the usual spelling.
    fn text(&self, all: Range<usize>) -> String {
        let mut text = String::new();
        for at in all {
            let word = self.tokens.at(at);
            let is_word = |it: char| it.is_alphanumeric() || it == '_';
            let parts = text.ends_with(is_word) && word.starts_with(is_word) || text.ends_with(',');
            if parts {
                text.push(' ');
            }
            text.push_str(word);
        }
        text
    }
}
