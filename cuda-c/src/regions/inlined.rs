//! Functions in the place of their calls, so that a kernel's statements are all there is to read.
//!
//! These are lambdas that a kernel declares and calls by name, and functions of the program that write to an array which
//! they, or other arguments of the call, read as well: between the two the threads are to meet.

use super::access::Access as Use;
use super::lexemes::{Edit, Lexemes, is_assignment};
use super::meetings::Walk;
use super::program::Program;
use super::statements::{Body, Node, What, lambda_at, read};
use super::words::{is_integer, is_type};
use super::{Read, facts::facts, read_as};
use crate::declarations::{Declared, name_token};
use crate::tokens::Tokens;
use std::fmt::Write as _;
use std::ops::Range;

/// The edits that put functions into a kernel, in one statement one call.
pub(super) fn edits(
    tokens: &Tokens<'_>,
    declared: &[Declared],
    program: &Program<'_>,
    kernel: &Read<'_, '_>,
) -> Vec<Edit> {
    let mut inliner = Inliner { kernel, done: Vec::new(), edits: Vec::new() };
    let mut lambdas = Vec::new();
    inliner.lambdas(&kernel.body.nodes, program, &mut lambdas);
    let ranges: Vec<_> = lambdas.iter().map(|it| it.at.clone()).collect();
    let names: Vec<_> = lambdas.iter().map(|it| it.name.clone()).collect();
    for lambda in &lambdas {
        let calls: Vec<usize> = (lambda.at.end..kernel.lexemes.len())
            .filter(|&it| inliner.names(it, &lambda.name))
            .collect();
        let is_inner = calls.iter().any(|it| ranges.iter().any(|range| range.contains(it)));
        let inlined: Option<Vec<_>> = calls.iter().map(|&it| inliner.call(lambda, it)).collect();
        let Some(inlined) = inlined.filter(|_| !is_inner) else { continue };
        if calls.is_empty() {
            inliner.edits.push(kernel.lexemes.replacement(lambda.at.clone(), ";"));
        }
        for (call, it) in calls.into_iter().zip(inlined) {
            // Calls in its arguments come first.
            let close = kernel.lexemes.partner(call + 1).unwrap_or(call);
            if !(call + 2..close).any(|at| names.iter().any(|name| inliner.names(at, name))) {
                inliner.put(it);
            }
        }
    }
    if lambdas.is_empty() {
        inliner.functions(tokens, declared, program);
    }
    inliner.edits
}

/// A function that can stand where it is called.
struct Callable<'t, 'a> {
    name: String,
    /// Where a lambda is declared, to its semicolon.
    at: Range<usize>,
    lexemes: Lexemes<'t, 'a>,
    body: Body,
    parameters: Vec<usize>,
    /// What it returns, and the words of its type where they are written.
    result: Option<Range<usize>>,
    returned: Option<String>,
}

/// What takes the place of a statement with a call.
struct Inlined {
    statement: Range<usize>,
    edits: Vec<Edit>,
}

impl<'t, 'a> Callable<'t, 'a> {
    /// `None` for a function that returns in its midst, or whose parameters are not plain.
    fn of(name: &str, at: Range<usize>, lexemes: Lexemes<'t, 'a>, body: Body) -> Option<Self> {
        let has_more = (0..lexemes.len()).any(|at| {
            lambda_at(&lexemes, at).is_some()
                || lexemes.at(at) == name
                || matches!(lexemes.at(at), "static" | "volatile" | "asm" | "goto")
        });
        let (last, others) = match &body.nodes[..] {
            [others @ .., last] => (Some(last), others),
            [] => (None, &[][..]),
        };
        let result = last.filter(|it| matches!(it.what, What::Return) && it.range.len() > 2);
        let result = result.map(|it| it.range.start + 1..it.range.end - 1);
        let returns = others.iter().any(|it| facts(it).returns)
            || (result.is_none() && last.is_some_and(|it| facts(it).returns));
        let parameters: Vec<usize> =
            (0..body.locals.len()).filter(|&it| body.locals[it].is_parameter).collect();
        let is_plain = parameters.iter().all(|&it| body.locals[it].declarator.len() == 1);
        let waits = body.nodes.iter().any(|it| facts(it).waits);
        if has_more || returns || waits || !is_plain || body.locals.iter().any(|it| it.is_shared) {
            return None;
        }
        let name = name.to_owned();
        Some(Callable { name, at, lexemes, body, parameters, result, returned: None })
    }

    /// A range of it, in which its own names end with `end`.
    fn text(&self, range: Range<usize>, end: &str) -> String {
        let is_own = |at: usize| {
            self.body.uses.binary_search_by_key(&at, |it| it.at).is_ok()
                || self.body.locals.iter().any(|it| it.at == at)
        };
        let word = |at: usize| match is_own(at) {
            true => format!("{}{end}", self.lexemes.at(at)),
            false => self.lexemes.at(at).to_owned(),
        };
        range.map(word).collect::<Vec<_>>().join(" ")
    }

    /// Names in it that are not its own.
    fn free(&self) -> impl Iterator<Item = &'a str> {
        let own = |at: usize| {
            self.body.uses.binary_search_by_key(&at, |it| it.at).is_ok()
                || self.body.locals.iter().any(|it| it.at == at)
        };
        let is_free = move |at: &usize| {
            self.lexemes.is_word(*at)
                && !own(*at)
                && !matches!(self.lexemes.before(*at), "." | "->" | "::")
        };
        (0..self.lexemes.len()).filter(is_free).map(|it| self.lexemes.at(it))
    }

    /// How often a parameter is used.
    fn uses(&self, parameter: usize) -> usize {
        self.body.uses.iter().filter(|it| it.local == parameter).count()
    }

    fn result(&self, end: &str) -> String {
        let text = self.result.clone().map_or(String::new(), |it| self.text(it, end));
        match &self.returned {
            Some(kind) => format!("({kind})({text})"),
            None => format!("({text})"),
        }
    }
}

struct Inliner<'k, 't, 'a> {
    kernel: &'k Read<'t, 'a>,
    /// Statements that change already.
    done: Vec<Range<usize>>,
    edits: Vec<Edit>,
}

impl<'t, 'a> Inliner<'_, 't, 'a> {
    fn names(&self, at: usize, name: &str) -> bool {
        let lexemes = &self.kernel.lexemes;
        lexemes.at(at) == name && !matches!(lexemes.before(at), "." | "->" | "::")
    }

    fn put(&mut self, inlined: Inlined) {
        let overlaps = |it: &Range<usize>| {
            it.start < inlined.statement.end && inlined.statement.start < it.end
        };
        if !self.done.iter().any(overlaps) {
            self.done.push(inlined.statement);
            self.edits.extend(inlined.edits);
        }
    }

    /// Finds the lambdas whose names mean the same everywhere in the kernel.
    fn lambdas(&self, nodes: &[Node], program: &Program<'a>, found: &mut Vec<Callable<'t, 'a>>) {
        for node in nodes {
            match &node.what {
                What::Block(nodes) => self.lambdas(nodes, program, found),
                What::If { then, other, .. } => {
                    self.lambdas(std::slice::from_ref(then), program, found);
                    if let Some(other) = other {
                        self.lambdas(std::slice::from_ref(other), program, found);
                    }
                }
                What::Loop(it) => self.lambdas(std::slice::from_ref(&it.body), program, found),
                What::Switch(body) => self.lambdas(std::slice::from_ref(body), program, found),
                What::Empty => found.extend(self.lambda(node, program)),
                _ => {}
            }
        }
    }

    fn lambda(&self, node: &Node, program: &Program<'a>) -> Option<Callable<'t, 'a>> {
        let (lexemes, tokens) = (&self.kernel.lexemes, self.kernel.lexemes.tokens);
        let open = lambda_at(lexemes, node.range.start)?;
        let captures = open + 1..lexemes.partner(open)?;
        let name = lexemes.at(open - 2);
        let parameters = captures.end + 1;
        let close = lexemes.partner(parameters).filter(|_| lexemes.at(parameters) == "(")?;
        let brace = lexemes.find(close + 1, node.range.end, &["{"])?;
        if lexemes.partner(brace)? + 2 != node.range.end
            || lexemes.find(captures.start, captures.end, &["=", "*"]).is_some_and(|it| {
                // `[=]` alone is no value with a name.
                lexemes.at(it) == "*" || captures.len() > 1
            })
        {
            return None;
        }
        let returned = match lexemes.at(close + 1) {
            "{" => None,
            "->" => Some(lexemes.text(close + 2..brace)),
            _ => return None,
        };
        let inner =
            lexemes.tokens_of(parameters).start..lexemes.tokens_of(lexemes.partner(brace)?).end;
        let inner = Lexemes::of(tokens, inner)?;
        let takes_values = |it: &str| program.takes_values(it);
        let body = inner.partner(0)? + 1 + (brace - close - 1);
        let read =
            read(&inner, 1..inner.partner(0)?, body + 1..inner.len() - 1, &takes_values, false)?;
        let mut lambda = Callable::of(name, node.range.clone(), inner, read)?;
        lambda.returned = returned;
        let by_value = lexemes.text(captures) != "&";
        let body = &self.kernel.body;
        let is_clear = lambda.free().all(|word| {
            let named: Vec<usize> =
                (0..body.locals.len()).filter(|&it| body.locals[it].name == word).collect();
            let changes = |id: usize| {
                let mut uses = body.uses.iter().filter(|it| it.local == id);
                uses.any(|it| it.at > node.range.start && it.access != Use::Read)
            };
            match named[..] {
                [] => true,
                [id] => !by_value || body.locals[id].is_shared || !changes(id),
                _ => false,
            }
        });
        let declared =
            (0..lexemes.len()).filter(|&it| self.names(it, name) && lexemes.at(it + 1) != "(");
        (is_clear && declared.count() == 1).then_some(lambda)
    }

    /// What takes the place of a call in its statement; `None` where it cannot stand there.
    fn call(&self, callable: &Callable<'_, '_>, at: usize) -> Option<Inlined> {
        let lexemes = &self.kernel.lexemes;
        let close = lexemes.partner(at + 1).filter(|_| lexemes.at(at + 1) == "(")?;
        let arguments = lexemes.parts(at + 2..close);
        if arguments.len() != callable.parameters.len() {
            return None;
        }
        let (node, is_listed) = statement_of(&self.kernel.body.nodes, at, true)?;
        let end = format!("_of_{}_{at}", callable.name);
        match (callable.result.is_some(), callable.body.nodes.len()) {
            (true, 1) => {
                self.in_expression(callable, at..close + 1, &arguments, node, is_listed, &end)
            }
            _ => self.as_statement(callable, at..close + 1, &arguments, node, is_listed, &end),
        }
    }

    /// The declarations of a call's parameters.
    fn declarations(
        &self,
        callable: &Callable<'_, '_>,
        arguments: &[Range<usize>],
        end: &str,
    ) -> String {
        let mut text = String::new();
        for (&id, argument) in callable.parameters.iter().zip(arguments) {
            let local = &callable.body.locals[id];
            let kind = callable.lexemes.text(local.specifiers.clone());
            let value = self.kernel.lexemes.text(argument.clone());
            let _ = write!(text, "{kind} {}{end} = {value}; ", local.name);
        }
        text
    }

    /// `f(...);`, `v = f(...);`, `int v = f(...);`
    fn as_statement(
        &self,
        callable: &Callable<'_, '_>,
        call: Range<usize>,
        arguments: &[Range<usize>],
        node: &Node,
        is_listed: bool,
        end: &str,
    ) -> Option<Inlined> {
        let lexemes = &self.kernel.lexemes;
        let parameters = self.declarations(callable, arguments, end);
        let body = match (callable.body.nodes.first(), &callable.result) {
            (None, _) => String::new(),
            (Some(first), result) => {
                let last = callable.body.nodes.last()?;
                let behind = if result.is_some() { last.range.start } else { last.range.end };
                let first =
                    callable.body.locals.iter().find(|it| it.declarator.start == first.range.start);
                let start =
                    first.map_or(callable.body.nodes[0].range.start, |it| it.specifiers.start);
                // Of a declaration the last lexeme is a semicolon.
                let is_declaration = matches!(last.what, What::Declaration(_));
                callable.text(start..behind + usize::from(is_declaration && result.is_none()), end)
            }
        };
        let result = callable.result(end);
        let mut edits = Vec::new();
        match node.what {
            What::Expression if node.range == (call.start..call.end + 1) => {
                let last = if callable.result.is_some() {
                    format!(" (void){result};")
                } else {
                    String::new()
                };
                let text = format!("{{ {parameters}{{ {body}{last} }} }}");
                edits.push(lexemes.replacement(node.range.clone(), &text));
            }
            What::Expression if call.end + 1 == node.range.end && callable.result.is_some() => {
                let assigned =
                    (node.range.start..call.start).find(|&it| is_assignment(lexemes.at(it)))?;
                (assigned + 1 == call.start).then_some(())?;
                let left = lexemes.text(node.range.start..call.start);
                let text = format!("{{ {parameters}{{ {body} {left} {result}; }} }}");
                edits.push(lexemes.replacement(node.range.clone(), &text));
            }
            What::Declaration(id) if callable.result.is_some() && is_listed => {
                let local = &self.kernel.body.locals[id];
                let same =
                    self.kernel.body.locals.iter().filter(|it| it.specifiers == local.specifiers);
                let words = local.specifiers.clone().map(|it| lexemes.at(it));
                let words: Vec<&str> = words.filter(|it| *it != "const").collect();
                let is_number = words.iter().all(|it| is_type(it) || is_integer(it));
                let is_whole =
                    local.init == call && local.is_assigned && local.declarator.len() == 1;
                (same.count() == 1 && is_number && is_whole).then_some(())?;
                let (kind, name) = (words.join(" "), &local.name);
                let text =
                    format!("{kind} {name}; {{ {parameters}{{ {body} {name} = {result}; }} }}");
                let range = local.specifiers.start..node.range.end + 1;
                edits.push(lexemes.replacement(range, &text));
            }
            _ => return None,
        }
        Some(Inlined { statement: node.range.clone(), edits })
    }

    /// A function that returns an expression, in another one.
    fn in_expression(
        &self,
        callable: &Callable<'_, '_>,
        call: Range<usize>,
        arguments: &[Range<usize>],
        node: &Node,
        is_listed: bool,
        end: &str,
    ) -> Option<Inlined> {
        let lexemes = &self.kernel.lexemes;
        let (start, is_expression) = match node.what {
            What::Declaration(id) if is_listed => {
                (Some(self.kernel.body.locals[id].specifiers.start), false)
            }
            What::Expression if is_listed => (Some(node.range.start), true),
            _ => (None, false),
        };
        let statement = node.range.clone();
        let mut edits = Vec::new();
        let mut result = callable.result(end);
        let are_early = arguments.iter().all(|it| self.is_early(it, &statement));
        match start.filter(|_| are_early) {
            Some(start) => {
                let begin = if is_expression { "{ " } else { "" };
                let parameters = self.declarations(callable, arguments, end);
                edits.push(lexemes.insertion(start, &format!("{begin}{parameters}")));
                if is_expression {
                    edits.push(lexemes.addition(node.range.end, " }"));
                }
            }
            // Each parameter is its argument.
            None => {
                for (&id, argument) in callable.parameters.iter().zip(arguments) {
                    let local = &callable.body.locals[id];
                    let is_set = callable
                        .body
                        .uses
                        .iter()
                        .any(|it| it.local == id && it.access != Use::Read);
                    if is_set || (callable.uses(id) != 1 && !self.is_pure(argument)) {
                        return None;
                    }
                    let words = callable.lexemes.text(local.specifiers.clone());
                    let value = lexemes.text(argument.clone());
                    let value = match words.contains("auto") {
                        true => format!("({value})"),
                        false => format!("(({words})({value}))"),
                    };
                    let name = format!("{}{end}", local.name);
                    result = result
                        .split(' ')
                        .map(|it| if it == name { &value } else { it })
                        .collect::<Vec<_>>()
                        .join(" ");
                    result = result.replace(&format!("({name}"), &format!("({value}"));
                    result = result.replace(&format!("{name})"), &format!("{value})"));
                }
            }
        }
        edits.push(lexemes.replacement(call, &result));
        Some(Inlined { statement, edits })
    }

    /// True for an expression of values that may be asked more than once.
    fn is_pure(&self, range: &Range<usize>) -> bool {
        let lexemes = &self.kernel.lexemes;
        range.clone().all(|at| {
            let is_call = lexemes.at(at) == "("
                && at > range.start
                && lexemes.is_word(at - 1)
                && !is_type(lexemes.at(at - 1));
            !(is_call
                || matches!(lexemes.at(at), "++" | "--" | "{")
                || is_assignment(lexemes.at(at)))
        })
    }

    /// True for an expression that has the same value in front of its statement, and can be asked for there.
    fn is_early(&self, range: &Range<usize>, statement: &Range<usize>) -> bool {
        let (lexemes, body) = (&self.kernel.lexemes, &self.kernel.body);
        let is_plain = |at: usize| {
            let is_star =
                lexemes.at(at) == "*" && !(at > range.start && lexemes.ends_operand(at - 1));
            !(is_star || matches!(lexemes.at(at), "[" | "->"))
        };
        let may_fault = range.clone().any(|it| matches!(lexemes.at(it), "/" | "%"))
            && statement.clone().any(|it| matches!(lexemes.at(it), "?" | "&&" | "||"));
        let stays = body.uses.iter().filter(|it| range.contains(&it.at)).all(|used| {
            let mut others = body.uses.iter().filter(|it| it.local == used.local);
            !others.any(|it| {
                // What the function gets it does not change.
                let is_other = statement.contains(&it.at) && !range.contains(&it.at);
                is_other && it.access != Use::Read && it.at != statement.start
            })
        });
        self.is_pure(range) && range.clone().all(is_plain) && !may_fault && stays
    }

    /// Calls of functions that write to an array of which they, or other arguments, read as well.
    fn functions(&mut self, tokens: &'t Tokens<'a>, declared: &[Declared], program: &Program<'a>) {
        let lexemes = &self.kernel.lexemes;
        for at in 0..lexemes.len() {
            let is_call = lexemes.is_word(at)
                && lexemes.at(at + 1) == "("
                && !matches!(lexemes.before(at), "." | "->" | "::");
            if !is_call || program.waits(lexemes.at(at)) {
                continue;
            }
            let mut named =
                declared.iter().filter(|it| name_token(tokens, it) == Some(lexemes.at(at)));
            let (Some(function), None) = (named.next(), named.next()) else { continue };
            let is_known = function.body.is_some()
                && !function.is_kernel
                && tokens.at(function.range.start) != "template"
                && !tokens.is_of_language(function.range.start);
            if !is_known {
                continue;
            }
            let Some(read) = read_as(tokens, function, program, false) else { continue };
            let Some(returned) = self.returned(tokens, function) else { continue };
            let Some(mut callable) = Callable::of(lexemes.at(at), 0..0, read.lexemes, read.body)
            else {
                continue;
            };
            callable.returned = returned;
            let is_clear = callable
                .free()
                .all(|it| self.kernel.body.locals.iter().all(|local| local.name != it));
            if !is_clear || !self.races(&callable, at) {
                continue;
            }
            let Some(close) = lexemes.partner(at + 1) else { continue };
            let arguments = lexemes.parts(at + 2..close);
            let end = format!("_of_{}_{at}", callable.name);
            let Some((node, is_listed)) = statement_of(&self.kernel.body.nodes, at, true) else {
                continue;
            };
            if arguments.len() == callable.parameters.len()
                && let Some(it) =
                    self.as_statement(&callable, at..close + 1, &arguments, node, is_listed, &end)
            {
                self.put(it);
            }
        }
    }

    /// The words of the type that a function returns, if they name a number, and none for `void`; nothing for other types.
    fn returned(&self, tokens: &Tokens<'_>, function: &Declared) -> Option<Option<String>> {
        let open = function.parameters?;
        let words = (function.range.start..open - 1).map(|it| tokens.at(it));
        let (mut kind, mut is_void) = (Vec::new(), false);
        for word in words {
            is_void |= word == "void";
            match is_type(word) || is_integer(word) {
                true => kind.push(word),
                false if matches!(word, "*" | "&" | "<" | "::" | "decltype" | "auto") => {
                    return None;
                }
                false => {}
            }
        }
        match is_void {
            true => Some(None),
            false => (!kind.is_empty()).then(|| Some(kind.join(" "))),
        }
    }

    /// True if a function writes to what an argument of the call points to, and it or another argument reads there.
    fn races(&self, callable: &Callable<'_, '_>, at: usize) -> bool {
        let lexemes = &self.kernel.lexemes;
        let Some(close) = lexemes.partner(at + 1) else { return false };
        let arguments = lexemes.parts(at + 2..close);
        // In a loop threads may meet for nothing too often.
        let loops = |it: &Node| it.count(&|it| matches!(it, What::Loop(_) | What::Switch(_)));
        if callable.body.nodes.iter().any(|it| loops(it) > 0) {
            return false;
        }
        let meets = |_: &str| false;
        let walk = Walk::new(&callable.lexemes, &callable.body, &meets, false);
        let written = walk.written();
        callable.parameters.iter().zip(&arguments).any(|(&id, argument)| {
            let Some(&reads) = written.get(&callable.body.locals[id].name) else { return false };
            let names =
                || argument.clone().filter(|&it| lexemes.is_word(it)).map(|it| lexemes.at(it));
            let is_read = |range: &Range<usize>| {
                range != argument
                    && range.clone().any(|it| {
                        names().any(|name| name == lexemes.at(it)) && {
                            // An array, and no index.
                            matches!(lexemes.at(it + 1), "[" | "," | ")" | "+")
                                && self.is_pointer(it)
                        }
                    })
            };
            reads || arguments.iter().any(is_read)
        })
    }

    fn is_pointer(&self, at: usize) -> bool {
        let (lexemes, body) = (&self.kernel.lexemes, &self.kernel.body);
        let Ok(found) = body.uses.binary_search_by_key(&at, |it| it.at) else { return false };
        let local = &body.locals[body.uses[found].local];
        let mut words = local.specifiers.clone().chain(local.declarator.clone());
        local.is_shared || words.any(|it| matches!(lexemes.at(it), "*" | "["))
    }
}

/// The statement that a lexeme is in, and whether it stands in a list.
fn statement_of(nodes: &[Node], at: usize, is_listed: bool) -> Option<(&Node, bool)> {
    let node = nodes.iter().find(|it| it.range.contains(&at))?;
    match &node.what {
        What::Block(nodes) => statement_of(nodes, at, true),
        What::If { condition, .. } if condition.contains(&at) => Some((node, false)),
        What::If { then, other, .. } => {
            let both = [Some(then), other.as_ref()];
            let mut both = both.into_iter().flatten().filter(|it| it.range.contains(&at));
            statement_of(std::slice::from_ref(both.next()?), at, true)
        }
        What::Loop(it) if it.body.range.contains(&at) => {
            statement_of(std::slice::from_ref(&it.body), at, true)
        }
        What::Switch(body) if body.range.contains(&at) => {
            statement_of(std::slice::from_ref(body), at, true)
        }
        What::Loop(_) | What::Switch(_) => None,
        _ => Some((node, is_listed)),
    }
}
