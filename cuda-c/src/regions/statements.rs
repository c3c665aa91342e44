//! Parses the statements of a kernel, its local variables, and their uses.
//!
//! These statements are understood: expressions, declarations (also of shared memory), blocks, `if`, `while`,
//! `do`, `for` with three parts, `switch`, `return;`, `break;`, `continue;`, `__syncthreads();` and the
//! meetings that the front end has inserted. Examples of unsupported constructs are `goto`, range-based
//! `for`, lambdas and references. A statement that is not understood with certainty makes the parser return
//! `None`: the kernel then gets no loop variant.

use super::access::Access;
use super::lexemes::Lexemes;
use super::words::is_keyword;
use std::ops::Range;

/// The statement that the front end inserts where threads have to meet, because they would otherwise race.
const MEETING: [&str; 7] = ["::", "gpuarray_abi", "::", "together", "(", ")", ";"];

fn is_meeting(lexemes: &Lexemes<'_, '_>, at: usize) -> bool {
    MEETING.iter().enumerate().all(|(number, word)| lexemes.at(at + number) == *word)
}

/// The maximum nesting depth of scopes.
const DEEPEST: usize = 200;

/// A statement.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) what: What,
    /// The lexemes of the statement.
    pub(super) range: Range<usize>,
}

impl Node {
    /// Returns the number of nested statements for which `is_one` is true, including this one.
    pub(super) fn count(&self, is_one: &dyn Fn(&What) -> bool) -> usize {
        let inner = match &self.what {
            What::Block(nodes) => nodes.iter().map(|it| it.count(is_one)).sum(),
            What::If { then, other, .. } => {
                then.count(is_one) + other.as_ref().map_or(0, |it| it.count(is_one))
            }
            What::Loop(it) => it.body.count(is_one),
            What::Switch(body) => body.count(is_one),
            _ => 0,
        };
        inner + usize::from(is_one(&self.what))
    }
}

/// The kind of a statement, with the statements inside it.
#[derive(Debug)]
pub(super) enum What {
    Barrier,
    /// Inserted by the front end: threads that would otherwise race meet here.
    Meeting,
    Empty,
    Expression,
    /// The declaration of one variable. A declaration of several variables becomes several nodes.
    Declaration(usize),
    /// A declaration of shared memory, which belongs to no thread.
    Shared,
    Block(Vec<Node>),
    If {
        condition: Range<usize>,
        then: Box<Node>,
        other: Option<Box<Node>>,
    },
    Loop(Loop),
    Switch(Box<Node>),
    Return,
    Break,
    Continue,
}

/// A `while`, `do` or `for` loop.
#[derive(Debug)]
pub(super) struct Loop {
    /// True for a `do` loop, whose condition comes last.
    pub(super) is_do: bool,
    pub(super) init: Vec<Node>,
    pub(super) condition: Range<usize>,
    pub(super) step: Range<usize>,
    pub(super) body: Box<Node>,
}

/// A parameter or a local variable of a thread.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) is_parameter: bool,
    pub(super) is_shared: bool,
    /// The lexeme of the name in the declaration.
    pub(super) at: usize,
    /// The type specifiers and the declarator: `float` and `*p [4]`.
    pub(super) specifiers: Range<usize>,
    pub(super) declarator: Range<usize>,
    /// The initialiser. `is_assigned` is true if it follows `=`.
    pub(super) init: Range<usize>,
    pub(super) is_assigned: bool,
    /// True if the variable hides another variable of the same name.
    pub(super) hides: bool,
}

/// A use of a local in an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) local: usize,
    pub(super) at: usize,
    pub(super) access: Access,
}

/// The body of a kernel.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) nodes: Vec<Node>,
    pub(super) locals: Vec<Local>,
    /// The uses of locals, in source order.
    pub(super) uses: Vec<Use>,
}

impl Body {
    /// Returns the local that is used at a lexeme.
    pub(super) fn used(&self, at: usize) -> Option<usize> {
        let found = self.uses.binary_search_by_key(&at, |it| it.at).ok()?;
        Some(self.uses[found].local)
    }

    /// Returns true if a local is never changed after its declaration.
    pub(super) fn is_fixed(&self, id: usize) -> bool {
        self.uses.iter().filter(|it| it.local == id).all(|it| it.access == Access::Read)
    }
}

/// Reads the parameters between two parentheses and the body between two braces. If `is_plain` is false,
/// references and `auto` are accepted.
pub(super) fn read(
    lexemes: &Lexemes<'_, '_>,
    parameters: Range<usize>,
    body: Range<usize>,
    takes_values: &dyn Fn(&str) -> bool,
    is_plain: bool,
) -> Option<Body> {
    let (locals, uses, scopes) = (Vec::new(), Vec::new(), vec![Vec::new()]);
    let mut parser = Parser { lexemes, takes_values, locals, uses, scopes, is_plain };
    for part in lexemes.parts(parameters) {
        parser.parameter(part)?;
    }
    parser.scopes.push(Vec::new());
    let nodes = parser.list(body)?;
    let mut uses = parser.uses;
    uses.sort_by_key(|it| it.at);
    Some(Body { nodes, locals: parser.locals, uses })
}

/// A recursive-descent parser of statements, with the scopes at the current place.
pub(super) struct Parser<'p, 't, 'a> {
    pub(super) lexemes: &'p Lexemes<'t, 'a>,
    pub(super) takes_values: &'p dyn Fn(&str) -> bool,
    pub(super) locals: Vec<Local>,
    pub(super) uses: Vec<Use>,
    scopes: Vec<Vec<usize>>,
    pub(super) is_plain: bool,
}

impl Parser<'_, '_, '_> {
    /// Returns the local that a name stands for at the current place.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let known = |scope: &Vec<usize>| {
            scope.iter().rev().copied().find(|&it| self.locals[it].name == name)
        };
        self.scopes.iter().rev().find_map(known)
    }

    /// Adds a local to the innermost scope and returns its index.
    pub(super) fn declare(&mut self, mut local: Local) -> usize {
        local.hides = self.find(&local.name).is_some();
        self.locals.push(local);
        let id = self.locals.len() - 1;
        self.scopes.last_mut().expect("a scope").push(id);
        id
    }

    fn list(&mut self, range: Range<usize>) -> Option<Vec<Node>> {
        let (mut nodes, mut at) = (Vec::new(), range.start);
        while at < range.end {
            at = self.statement(at, range.end, &mut nodes)?;
        }
        Some(nodes)
    }

    /// Begins a scope. Returns `None` if scopes are nested so deeply that the stack might overflow.
    fn enter(&mut self) -> Option<()> {
        self.scopes.push(Vec::new());
        (self.scopes.len() <= DEEPEST).then_some(())
    }

    /// Reads one statement in a scope of its own.
    fn only(&mut self, at: usize, end: usize) -> Option<(Node, usize)> {
        let mut nodes = Vec::new();
        self.enter()?;
        let next = self.statement(at, end, &mut nodes)?;
        self.scopes.pop();
        let node = match nodes.len() {
            1 => nodes.pop()?,
            _ => Node { what: What::Block(nodes), range: at..next },
        };
        Some((node, next))
    }

    /// Reads the statement at `at` and returns the index of the next one.
    fn statement(&mut self, at: usize, end: usize, nodes: &mut Vec<Node>) -> Option<usize> {
        let lexemes = self.lexemes;
        let mut add = |what, next| {
            nodes.push(Node { what, range: at..next });
            Some(next)
        };
        let jump = |what| (lexemes.at(at + 1) == ";").then_some(what);
        match lexemes.at(at) {
            ";" => add(What::Empty, at + 1),
            "{" => {
                let close = lexemes.partner(at)?;
                self.enter()?;
                let inner = self.list(at + 1..close)?;
                self.scopes.pop();
                add(What::Block(inner), close + 1)
            }
            "if" => {
                let condition = self.condition(at + 1)?;
                let (then, mut next) = self.only(condition.end + 1, end)?;
                let mut other = None;
                if lexemes.at(next) == "else" && next < end {
                    let (node, behind) = self.only(next + 1, end)?;
                    (other, next) = (Some(Box::new(node)), behind);
                }
                add(What::If { condition, then: Box::new(then), other }, next)
            }
            "while" => {
                let condition = self.condition(at + 1)?;
                let (body, next) = self.only(condition.end + 1, end)?;
                let body = Box::new(body);
                let step = next..next;
                let read = Loop { is_do: false, init: Vec::new(), condition, step, body };
                add(What::Loop(read), next)
            }
            "do" => {
                let (body, next) = self.only(at + 1, end)?;
                let condition =
                    (lexemes.at(next) == "while").then(|| self.condition(next + 1))??;
                let next = condition.end + 1;
                let (body, step) = (Box::new(body), next..next);
                let read = Loop { is_do: true, init: Vec::new(), condition, step, body };
                (lexemes.at(next) == ";").then(|| add(What::Loop(read), next + 1))?
            }
            "for" => {
                let (read, next) = self.for_loop(at, end)?;
                add(What::Loop(read), next)
            }
            "switch" => {
                let condition = self.condition(at + 1)?;
                let (body, next) = self.only(condition.end + 1, end)?;
                add(What::Switch(Box::new(body)), next)
            }
            "case" => {
                let colon = lexemes.find(at, end, &[":", "?"])?;
                (lexemes.at(colon) == ":").then(|| self.expression(at + 1..colon))??;
                add(What::Empty, colon + 1)
            }
            "default" => (lexemes.at(at + 1) == ":").then(|| add(What::Empty, at + 2))?,
            "return" => add(jump(What::Return)?, at + 2),
            "break" => add(jump(What::Break)?, at + 2),
            "continue" => add(jump(What::Continue)?, at + 2),
            "__syncthreads" => {
                let is_plain = (1..4).map(|it| lexemes.at(at + it)).eq(["(", ")", ";"]);
                is_plain.then(|| add(What::Barrier, at + 4))?
            }
            "::" if is_meeting(lexemes, at) => add(What::Meeting, at + MEETING.len()),
            _ => self.simple(at, end, nodes),
        }
    }

    /// Reads the expression between parentheses.
    fn condition(&mut self, open: usize) -> Option<Range<usize>> {
        let close = self.lexemes.partner(open).filter(|_| self.lexemes.at(open) == "(")?;
        let has_more = self.lexemes.find(open + 1, close, &[";"]).is_some();
        (!has_more && close > open + 1).then(|| self.expression(open + 1..close))??;
        Some(open + 1..close)
    }

    fn for_loop(&mut self, at: usize, end: usize) -> Option<(Loop, usize)> {
        let lexemes = self.lexemes;
        let close = lexemes.partner(at + 1).filter(|_| lexemes.at(at + 1) == "(")?;
        self.scopes.push(Vec::new());
        let mut init = Vec::new();
        // A range-based `for` has a colon and no semicolons.
        let condition = self.statement(at + 2, close, &mut init)?;
        let is_simple = |node: &Node| {
            matches!(node.what, What::Empty | What::Expression | What::Declaration(_))
        };
        if !init.iter().all(is_simple) || lexemes.before(condition) != ";" {
            return None;
        }
        let semicolon = lexemes.find(condition, close, &[";"])?;
        self.expression(condition..semicolon)?;
        self.expression(semicolon + 1..close)?;
        let (body, next) = self.only(close + 1, end)?;
        self.scopes.pop();
        let (condition, step) = (condition..semicolon, semicolon + 1..close);
        Some((Loop { is_do: false, init, condition, step, body: Box::new(body) }, next))
    }

    /// Reads a declaration or an expression statement.
    fn simple(&mut self, at: usize, end: usize, nodes: &mut Vec<Node>) -> Option<usize> {
        let lexemes = self.lexemes;
        let semicolon = lexemes.find(at, end, &[";"])?;
        let range = at..semicolon + 1;
        if (at..semicolon).any(|it| lexemes.at(it) == "thread_local") {
            self.shared(at..semicolon)?;
            nodes.push(Node { what: What::Shared, range });
            return Some(semicolon + 1);
        }
        match self.specifiers(at) {
            Some(behind) if behind > at => {
                for part in lexemes.parts(behind..semicolon) {
                    let id = self.declarator(at..behind, part.clone())?;
                    nodes.push(Node { what: What::Declaration(id), range: part });
                }
            }
            _ => {
                self.is_expression(at).then(|| self.expression(at..semicolon))??;
                nodes.push(Node { what: What::Expression, range });
            }
        }
        Some(semicolon + 1)
    }

    /// Returns false for what may be a label or another kind of declaration.
    fn is_expression(&self, at: usize) -> bool {
        let lexemes = self.lexemes;
        if !lexemes.is_word(at) {
            return lexemes.at(at) != "::" && lexemes.at(at) != "[";
        }
        let mut behind = at + 1;
        while lexemes.at(behind) == "::" {
            behind += 2;
        }
        let is_local = self.find(lexemes.at(at)).is_some();
        !is_keyword(lexemes.at(at))
            && (is_local || !matches!(lexemes.at(behind), "<" | "&" | "&&" | "*"))
            && lexemes.at(behind) != ":"
    }
}
