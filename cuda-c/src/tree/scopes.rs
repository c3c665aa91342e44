//! The names that a text declares, their types, and the tokens at which each name is known.
//!
//! A statement that may be an expression is read as a declaration only if its first name does not stand for a variable.
//! The reader leaves out declarations that it does not read with certainty.

use super::blocks::{Function, class_of};
use super::parts::{LONGEST, parts, without_value};
use super::statements::{begins_statement, last_of_statement, value_end};
use crate::tokens::{Kind as Token, Tokens, is_in};
use std::collections::HashMap;
use std::ops::Range;

/// The meaning of a declared name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A variable, or a parameter that is none of a template.
    Variable,
    /// A variable of a class, also a static one.
    Member,
    Function,
    /// The name that a `typedef` or `using` declares.
    Alias,
    /// A type that is a parameter of a template.
    TypeParameter,
}

/// A declared name.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) kind: Kind,
    /// The token of the name; `operator` for an operator.
    pub(crate) name: usize,
    /// The type and its specifiers: `const float` in `const float *x[2];`. The aliased type after `using name =`.
    pub(crate) of: Range<usize>,
    /// The declarator without a value: `*x[2]`. For a function, the tokens up to the parameters.
    pub(crate) declarator: Range<usize>,
    /// The first token after the declarator, and after the parameters of a function.
    pub(crate) end: usize,
    /// The tokens at which the name is known.
    pub(crate) known: Range<usize>,
    /// The bracket that opens the scope; 0 outside of all.
    pub(crate) block: usize,
    /// True for a name of a function's parameters or body, or of a template's parameters.
    pub(crate) is_local: bool,
}

/// The declared names of a text.
#[derive(Debug)]
pub(crate) struct Scopes<'t, 'a> {
    tokens: &'t Tokens<'a>,
    pub(crate) all: Vec<Declaration>,
    by_name: HashMap<&'a str, Vec<usize>>,
}

impl<'t, 'a> Scopes<'t, 'a> {
    /// Reads the declarations from the program's first token on, also those of headers.
    pub(crate) fn of(tokens: &'t Tokens<'a>) -> Scopes<'t, 'a> {
        let scopes = Scopes { tokens, all: Vec::new(), by_name: HashMap::new() };
        let all = Scope { is_local: false, ..Scope::local(0, usize::MAX) };
        let mut reader = Reader { tokens, scopes, blocks: vec![all] };
        let first = tokens.of_program().next().unwrap_or(tokens.len());
        (first..tokens.len()).for_each(|at| reader.token(at));
        reader.scopes
    }

    /// Returns the declarations, as indices, that the name at a token may refer to. They belong to the innermost scope
    /// that declares the name. For a member or an undeclared name, they belong to any class or namespace.
    pub(crate) fn named(&self, at: usize) -> impl Iterator<Item = usize> {
        let all = self.by_name.get(self.tokens.at(at)).map_or(&[][..], Vec::as_slice);
        let before = |back: usize| at.checked_sub(back).map_or("", |it| self.tokens.at(it));
        let is_inner = matches!(before(1), "." | "::") || (before(2), before(1)) == ("-", ">");
        let is_known = |it: &&usize| !is_inner && self.all[**it].known.contains(&at);
        let block = all.iter().filter(is_known).map(|&it| self.all[it].block).max();
        let is_one = move |it: &usize| {
            let found = &self.all[*it];
            match block {
                Some(block) => found.block == block && found.known.contains(&at),
                None => !found.is_local || found.kind == Kind::Member,
            }
        };
        all.iter().copied().filter(is_one)
    }

    fn add(&mut self, declared: Declaration) {
        let all = self.by_name.entry(self.tokens.at(declared.name)).or_default();
        all.push(self.all.len());
        self.all.push(declared);
    }
}

/// Words that begin no declaration, and no name.
const NO_NAMES: &str = "\
    return delete goto else do case default throw new sizeof if for while switch break continue \
    asm __asm__ static_assert namespace public private protected this try catch alignof true false nullptr";
const SPECIFIERS: &str = "\
    const constexpr static extern inline __inline__ volatile __volatile__ __volatile register \
    thread_local mutable virtual explicit friend typename __restrict__ __restrict restrict __extension__";
const WITH_ARGUMENTS: &str = "__attribute__ __attribute alignas __gpuarray_bounds__";
const BUILTIN: &str = "void bool char short int long signed unsigned float double auto";

/// Returns true for a word of a type of the language, or for a specifier.
pub(crate) fn is_of_language(word: &str) -> bool {
    is_in(BUILTIN, word) || is_in(SPECIFIERS, word)
}

/// A scope of names, and how its declarations are read.
#[derive(Clone, Copy)]
struct Scope {
    /// The bracket that opens the scope, and its end.
    block: usize,
    end: usize,
    kind: Kind,
    /// True in the body of a function, where parentheses after a name contain a value.
    is_body: bool,
    is_local: bool,
}

impl Scope {
    /// The scope of parameters.
    fn local(block: usize, end: usize) -> Scope {
        Scope { block, end, kind: Kind::Variable, is_body: false, is_local: true }
    }
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    scopes: Scopes<'t, 'a>,
    /// The blocks around the current token, the innermost one last.
    blocks: Vec<Scope>,
}

impl Reader<'_, '_> {
    fn token(&mut self, at: usize) {
        let tokens = self.tokens;
        self.blocks.pop_if(|it| it.end <= at);
        let mut scope = *self.blocks.last().expect("the text is around all");
        if begins_statement(tokens, at) {
            if at > 1 && tokens.at(at - 1) == "(" {
                let word = at - if tokens.at(at - 2) == "constexpr" { 3 } else { 2 };
                let last = last_of_statement(tokens, word).unwrap_or(scope.end);
                self.statement(at, Scope { block: at - 1, end: last.min(scope.end), ..scope });
            } else {
                self.statement(at, scope);
            }
        }
        if tokens.at(at) != "{" {
            return;
        }
        let close = tokens.partner(at).unwrap_or(tokens.len());
        let is_class = class_of(tokens, close).is_some();
        scope.kind = if is_class { Kind::Member } else { Kind::Variable };
        scope.is_body = !is_class && !tokens.is_of_scope(at);
        scope.is_local |= scope.is_body;
        self.blocks.push(Scope { block: at, end: close, ..scope });
        // The parameters of a lambda.
        let open = Function::of(tokens, at).and_then(|it| it.parameters);
        if let Some(open) = open.filter(|&it| it > 0 && tokens.at(it - 1) == "]") {
            self.parameters(open, close);
        }
    }

    fn add(
        &mut self,
        scope: Scope,
        kind: Kind,
        name: usize,
        of: Range<usize>,
        declarator: Range<usize>,
        end: usize,
    ) {
        let first = if scope.kind == Kind::Member { scope.block } else { name };
        let known = first..scope.end;
        let Scope { block, is_local, .. } = scope;
        self.scopes.add(Declaration { kind, name, of, declarator, end, known, block, is_local });
    }

    /// Reads a statement if it is a declaration.
    fn statement(&mut self, first: usize, scope: Scope) -> Option<()> {
        let tokens = self.tokens;
        let mut at = first;
        while tokens.at(at) == "template" && tokens.at(at + 1) == "<" {
            let behind = tokens.behind_angles(at + 1, tokens.len().min(at + LONGEST))?;
            let scope = Scope::local(at + 1, end_of_item(tokens, behind));
            for part in parts(tokens, at + 2..behind - 1) {
                self.template_parameter(part, scope);
            }
            at = behind;
        }
        match tokens.at(at) {
            "using" if tokens.at(at + 2) == "=" => {
                let end = (at..tokens.len()).find(|&it| tokens.at(it) == ";")?;
                self.add(scope, Kind::Alias, at + 1, at + 3..end, at + 1..at + 2, end);
                None
            }
            "using" => None,
            "typedef" => self.declarators(at + 1, Scope { is_body: false, ..scope }, true),
            _ => self.declarators(at, scope, false),
        }
    }

    fn template_parameter(&mut self, part: Range<usize>, scope: Scope) {
        let tokens = self.tokens;
        let part = without_value(tokens, part);
        let Some(last) = part.clone().next_back() else { return };
        if part.len() > 1 && matches!(tokens.at(part.start), "typename" | "class" | "template") {
            self.add(scope, Kind::TypeParameter, last, part.clone(), last..last + 1, part.end);
        } else {
            self.parameter(part, scope);
        }
    }

    /// Reads the parameters of a function, which are known up to `end`.
    fn parameters(&mut self, open: usize, end: usize) {
        let Some(close) = self.tokens.partner(open) else { return };
        let scope = Scope::local(open, end);
        for part in parts(self.tokens, open + 1..close) {
            self.parameter(without_value(self.tokens, part), scope);
        }
    }

    fn parameter(&mut self, part: Range<usize>, scope: Scope) -> Option<()> {
        let behind = specifiers(self.tokens, part.start)?;
        let found = declarator(self.tokens, behind, scope.is_body)?;
        (found.end <= part.end).then(|| {
            let declarator = behind..found.end;
            self.add(scope, Kind::Variable, found.name, part.start..behind, declarator, found.end);
        })
    }

    /// Reads a type, and the declarators after it.
    fn declarators(&mut self, first: usize, scope: Scope, is_alias: bool) -> Option<()> {
        let tokens = self.tokens;
        let behind = specifiers(tokens, first)?;
        let is_variable = |it: usize| {
            tokens.is_word(it) && !is_of_language(tokens.at(it)) && {
                let mut all = self.scopes.named(it).map(|it| &self.scopes.all[it]);
                all.any(|it| matches!(it.kind, Kind::Variable | Kind::Member | Kind::Function))
            }
        };
        // `a * b;` multiplies if `a` is a variable. Constructors have the name of a class.
        let is_doubtful = behind == first + 1 && matches!(tokens.at(behind), "*" | "&" | "(");
        if is_doubtful && is_variable(first) {
            return None;
        }
        let is_constructor = |open: usize| {
            let is_type = tokens.is_word(open - 1) && !is_of_language(tokens.at(open - 1));
            let is_pointer = matches!(tokens.at(open + 1), "*" | "&");
            tokens.at(open) == "(" && !scope.is_body && is_type && !is_pointer
        };
        let of = first..behind;
        let mut at = behind;
        loop {
            let found = match behind {
                // A constructor.
                open if at == open && is_constructor(open) => {
                    let end = tokens.partner(open)? + 1;
                    Declarator { name: open - 1, parameters: Some(open), end }
                }
                _ => declarator(tokens, at, scope.is_body)?,
            };
            let is_end = match tokens.at(found.end) {
                "=" => tokens.at(found.end + 1) != "=" || !tokens.is_adjacent(found.end),
                ";" | "," | "{" | ":" => true,
                other => other == "(" && found.parameters.is_none(),
            };
            if !is_end && found.parameters.is_none() {
                return None;
            }
            let kind = match found.parameters {
                _ if is_alias => Kind::Alias,
                Some(_) => Kind::Function,
                None => scope.kind,
            };
            let last = found.parameters.unwrap_or(found.end);
            self.add(scope, kind, found.name, of.clone(), at..last, found.end);
            if let Some(open) = found.parameters.filter(|_| !is_alias) {
                self.parameters(open, end_of_item(tokens, found.end));
            }
            let is_function = kind == Kind::Function;
            at = if is_function { found.end } else { value_end(tokens, found.end) };
            if tokens.at(at) != "," || tokens.at(found.end) == ":" && scope.kind != Kind::Member {
                return Some(());
            }
            at += 1;
        }
    }
}

/// Returns the name of a declarator, which a type precedes if `has_type` is true, and the token after it. Parentheses
/// after the name contain a value.
pub(crate) fn declared(
    tokens: &Tokens<'_>,
    first: usize,
    has_type: bool,
) -> Option<(usize, usize)> {
    let typed = specifiers(tokens, first).filter(|_| has_type);
    let found = typed.and_then(|it| declarator(tokens, it, true));
    // The type may precede `first`.
    let may_be_bare = typed.is_none_or(|it| tokens.at(it) != "(");
    let bare = || may_be_bare.then(|| declarator(tokens, first, true)).flatten();
    found.or_else(bare).map(|it| (it.name, it.end))
}

/// Returns the token after a type and its specifiers, if one begins here.
fn specifiers(tokens: &Tokens<'_>, first: usize) -> Option<usize> {
    let (mut at, mut has_type) = (first, false);
    loop {
        let word = tokens.at(at);
        match word {
            "[" if tokens.at(at + 1) == "[" => at = tokens.partner(at)? + 1,
            "decltype" | "__typeof__" | "typeof" => {
                (at, has_type) = (tokens.partner(at + 1)? + 1, true)
            }
            "struct" | "class" | "union" | "enum" => {
                (at, has_type) = (behind_class(tokens, at)?, true)
            }
            "operator" => return Some(at),
            "::" if !has_type => at += 1,
            // The language after `extern`.
            _ if tokens.all.get(at)?.kind == Token::Literal => at += 1,
            _ if !tokens.is_word(at) => return has_type.then_some(at),
            _ if is_in(WITH_ARGUMENTS, word) => at = tokens.partner(at + 1)? + 1,
            _ if is_in(SPECIFIERS, word) || word.starts_with("__gpuarray_") => at += 1,
            _ if is_in(BUILTIN, word) => (at, has_type) = (at + 1, true),
            _ if is_in(NO_NAMES, word) => return None,
            _ if !has_type => (at, has_type) = (behind_path(tokens, at), true),
            _ => return has_type.then_some(at),
        }
    }
}

/// Returns the token after a name with its qualification and template arguments.
fn behind_path(tokens: &Tokens<'_>, first: usize) -> usize {
    let mut at = first + 1;
    loop {
        if let Some(behind) = tokens.behind_angles(at, tokens.len().min(at + LONGEST)) {
            at = behind;
        }
        let word = at + if tokens.at(at + 1) == "template" { 2 } else { 1 };
        if tokens.at(at) != "::" || !tokens.is_word(word) || tokens.at(word) == "operator" {
            return at;
        }
        at = word + 1;
    }
}

/// Returns the token after a class with its name and body.
fn behind_class(tokens: &Tokens<'_>, first: usize) -> Option<usize> {
    let mut at = first + 1;
    while is_in(WITH_ARGUMENTS, tokens.at(at)) || tokens.at(at) == "class" {
        at = if tokens.at(at) == "class" { at } else { tokens.partner(at + 1)? } + 1;
    }
    at = if tokens.is_word(at) { behind_path(tokens, at) } else { at };
    let bases = matches!(tokens.at(at), ":" | "final")
        .then(|| (at..tokens.len()).find(|&it| matches!(tokens.at(it), "{" | ";" | ")")));
    let brace = bases.flatten().unwrap_or(at);
    if tokens.at(brace) == "{" { Some(tokens.partner(brace)? + 1) } else { Some(at) }
}

/// A declarator without its value.
struct Declarator {
    name: usize,
    /// The parenthesis of a function's parameters.
    parameters: Option<usize>,
    end: usize,
}

/// Reads a declarator. In a function's body, parentheses after the name contain a value.
fn declarator(tokens: &Tokens<'_>, first: usize, is_body: bool) -> Option<Declarator> {
    let mut at = first;
    let is_mark =
        |at: usize| matches!(tokens.at(at), "*" | "&") || is_in(SPECIFIERS, tokens.at(at));
    let behind_marks = |mut at: usize| {
        loop {
            match tokens.at(at) {
                _ if is_mark(at) => at += 1,
                word if is_in(WITH_ARGUMENTS, word) => at = tokens.partner(at + 1)? + 1,
                _ => return Some(at),
            }
        }
    };
    at = behind_marks(at)?;
    let is_name = |at: usize| {
        tokens.is_word(at) && !is_of_language(tokens.at(at)) && !is_in(NO_NAMES, tokens.at(at))
    };
    let name;
    if tokens.at(at) == "(" && matches!(tokens.at(at + 1), "*" | "&") {
        // `(*name)[4]`, `(&name)[4]` or `(*name)(int)`
        name = behind_marks(at + 1)?;
        at = tokens.partner(at)? + 1;
        let is_one = matches!(tokens.at(name + 1), ")" | "[") && matches!(tokens.at(at), "[" | "(");
        at = if tokens.at(at) == "(" { tokens.partner(at)? + 1 } else { at };
        if !is_one {
            return None;
        }
    } else {
        while is_name(at) && tokens.at(behind_path(tokens, at)) == "::" || tokens.at(at) == "::" {
            at += 1;
        }
        let behind = if tokens.at(at) == "operator" { at + 1 } else { behind_path(tokens, at) };
        name = (at..behind)
            .rev()
            .find(|&it| tokens.is_word(it) && (it == at || tokens.at(it - 1) == "::"))?;
        at = behind;
        if tokens.at(name) == "operator" {
            at = (at..tokens.len()).find(|&it| tokens.at(it) == "(" && it > at)?;
        }
    }
    if !is_name(name) {
        return None;
    }
    let mut parameters = None;
    loop {
        match tokens.at(at) {
            "[" => at = tokens.partner(at)? + 1,
            "(" if !is_body && parameters.is_none() => {
                parameters = Some(at);
                at = tokens.partner(at)? + 1;
            }
            word if is_in(WITH_ARGUMENTS, word) => at = tokens.partner(at + 1)? + 1,
            _ => return Some(Declarator { name, parameters, end: at }),
        }
    }
}

/// Returns the `;` or the closing brace that ends a declaration.
fn end_of_item(tokens: &Tokens<'_>, from: usize) -> usize {
    let mut at = from;
    while at < tokens.len() {
        match tokens.at(at) {
            ";" | "}" => return at,
            "(" | "[" => at = tokens.partner(at).unwrap_or(at),
            "{" => {
                at = tokens.partner(at).unwrap_or(at);
                // The brace of a member initialiser.
                if !matches!(tokens.at(at + 1), "," | "{") {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}
