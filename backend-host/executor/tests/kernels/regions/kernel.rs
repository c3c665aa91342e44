//! Generates random kernels as trees.

use super::tree::{Kind, Statement, Tree, Value};
use crate::units::Random;

/// The permitted uses of a variable.
#[derive(Clone, Copy)]
struct Variable {
    id: usize,
    is_uniform: bool,
    is_const: bool,
    is_array: bool,
    /// True for a variable that starts as a function of the thread, and is only shifted by uniform values.
    is_shifted: bool,
}

impl Variable {
    /// Returns true for a number that each thread may change independently.
    fn is_free(&self) -> bool {
        !(self.is_const || self.is_array || self.is_uniform || self.is_shifted)
    }
}

/// Generates a random kernel.
pub(crate) struct Maker<'r> {
    random: &'r mut Random,
    kinds: Vec<Kind>,
    scope: Vec<Variable>,
}

impl<'r> Maker<'r> {
    pub(crate) fn new(random: &'r mut Random) -> Maker<'r> {
        Maker { random, kinds: Vec::new(), scope: Vec::new() }
    }

    pub(crate) fn tree(mut self) -> Tree {
        let count = 3 + self.random.below(8);
        // The compiler treats memory that is never written as zero, however it is filled.
        let first = Value::Binary("^", Box::new(Value::Thread), Box::new(self.value(2, false)));
        let mut statements = vec![Statement::AssignShared("=", first)];
        statements.extend(self.statements(count, 3, true, false));
        statements.push(Statement::Barrier);
        let result = self.value(3, false);
        Tree { statements, result, kinds: self.kinds }
    }

    fn pick(&mut self, wanted: impl Fn(&Variable) -> bool) -> Option<usize> {
        let known: Vec<usize> = self.scope.iter().filter(|it| wanted(it)).map(|it| it.id).collect();
        (!known.is_empty()).then(|| known[self.random.below(known.len())])
    }

    fn value(&mut self, depth: usize, is_uniform: bool) -> Value {
        let operators = ["+", "-", "*", "&", "^", "+", "<", "=="];
        if depth > 0 && self.random.below(3) > 0 {
            let mut value = || Box::new(self.value(depth - 1, is_uniform));
            let (a, b, c) = (value(), value(), value());
            return match self.random.below(if is_uniform { 9 } else { 10 }) {
                8 => Value::Choice(a, b, c),
                9 => Value::Call(a, b),
                number => Value::Binary(operators[number], a, b),
            };
        }
        match self.random.below(if is_uniform { 5 } else { 10 }) {
            0 => Value::Number(self.random.below(20) as i32),
            1 => Value::Parameter(self.random.below(2)),
            2 => Value::Index(1 + self.random.below(3), self.random.below(3)),
            3 | 4 => match self.pick(|it| !it.is_array && it.is_uniform) {
                Some(id) => Value::Variable(id),
                None => Value::Number(3),
            },
            5 => Value::Index(0, self.random.below(3)),
            6 => Value::OwnShared,
            7 => match self.pick(|it| it.is_array) {
                Some(id) => Value::Element(id, Box::new(self.value(1, false))),
                None => Value::Thread,
            },
            _ => match self.pick(|it| !it.is_array) {
                Some(id) => Value::Variable(id),
                None => Value::Thread,
            },
        }
    }

    /// Generates the statements of a scope. `is_outer` is true outside of divergent conditions, where
    /// barriers are allowed.
    fn statements(
        &mut self,
        count: usize,
        depth: usize,
        is_outer: bool,
        in_loop: bool,
    ) -> Vec<Statement> {
        let known = self.scope.len();
        let made = (0..count).map(|_| self.statement(depth, is_outer, in_loop)).collect();
        self.scope.truncate(known);
        made
    }

    fn body(&mut self, depth: usize, is_outer: bool, in_loop: bool) -> Vec<Statement> {
        let count = 1 + self.random.below(5);
        self.statements(count, depth - 1, is_outer, in_loop)
    }

    fn declare(&mut self, is_uniform: bool, is_const: bool, is_array: bool) -> usize {
        let id = self.undeclared();
        self.scope.push(Variable { id, is_uniform, is_const, is_array, is_shifted: false });
        id
    }

    /// Returns the number of a variable that no later statement names.
    fn undeclared(&mut self) -> usize {
        self.kinds.push(Kind::default());
        self.kinds.len() - 1
    }

    /// Returns the declaration of a variable with a random type.
    fn declaration(&mut self, id: usize, is_const: bool, value: Value) -> Statement {
        let kinds = [Kind::Int, Kind::Int, Kind::Short, Kind::Byte];
        let kind = kinds[self.random.below(kinds.len())];
        self.kinds[id] = kind;
        Statement::Declare { id, kind, is_const, value: Some(value) }
    }

    /// Declares a variable that is shifted, or shifts an existing one.
    fn shifted(&mut self) -> Statement {
        let step = ["++", "--"][self.random.below(2)];
        match self.pick(|it| it.is_shifted) {
            Some(id) if self.random.below(4) == 0 => Statement::Step(id, step),
            Some(id) if self.random.below(4) > 0 => {
                let operator = ["+=", "-="][self.random.below(2)];
                Statement::Assign(id, self.kinds[id], operator, self.value(1, true))
            }
            _ => {
                let own = [Value::Thread, Value::Index(0, 0)][self.random.below(2)].clone();
                let value = Value::Binary("*", Box::new(own), Box::new(self.value(1, true)));
                let id = self.declare(false, false, false);
                if let Some(last) = self.scope.last_mut() {
                    last.is_shifted = true;
                }
                self.declaration(id, false, value)
            }
        }
    }

    fn statement(&mut self, depth: usize, is_outer: bool, in_loop: bool) -> Statement {
        match self.random.below(if depth == 0 { 12 } else { 20 }) {
            0 if is_outer => Statement::Barrier,
            0..=2 if is_outer && self.random.below(2) == 0 => self.shifted(),
            0 | 1 => {
                let is_uniform = is_outer && self.random.below(2) == 0;
                let is_const = self.random.below(3) == 0;
                let value = self.value(2, is_uniform);
                let id = self.declare(is_uniform, is_const, false);
                self.declaration(id, is_const, value)
            }
            2 => {
                let values = [self.value(1, false), self.value(1, false)];
                let id = self.declare(false, false, true);
                Statement::Array { id, values: Some(values) }
            }
            // Uniform variables are written where all threads arrive.
            3 | 4 => {
                let chosen =
                    self.pick(|it| it.is_free() || (is_outer && it.is_uniform && !it.is_const));
                let Some(id) = chosen else {
                    return Statement::AssignShared("+=", self.value(2, false));
                };
                let is_uniform = self.scope.iter().any(|it| it.id == id && it.is_uniform);
                match self.random.below(4) {
                    0 => Statement::Step(id, if self.random.below(2) == 0 { "++" } else { "--" }),
                    number => {
                        // A shift by a uniform value is a separate assignment.
                        let is_same = is_uniform || number == 1;
                        let operator = ["=", "+=", "-=", "^="][self.random.below(4)];
                        Statement::Assign(id, self.kinds[id], operator, self.value(2, is_same))
                    }
                }
            }
            5 => match self.pick(|it| it.is_array) {
                Some(id) => {
                    Statement::AssignElement(id, self.value(1, false), "+=", self.value(2, false))
                }
                None => Statement::AssignShared("^=", self.value(2, false)),
            },
            6 => Statement::AssignShared("+=", self.value(2, false)),
            7 | 8 if is_outer => match self.pick(Variable::is_free) {
                Some(id) => Statement::Exchange(id, self.value(1, true)),
                None => Statement::Barrier,
            },
            9 => match self.pick(Variable::is_free) {
                Some(id) if self.random.below(2) == 0 => {
                    Statement::CallPointer(id, self.value(1, false))
                }
                Some(id) => Statement::CallReference(id, self.value(1, false)),
                None => Statement::Barrier.only_if(is_outer),
            },
            10 => {
                let limit = self.value(1, true);
                let chosen = self.pick(Variable::is_free);
                let Some(sum) = chosen else { return Statement::AssignShared("-=", Value::Thread) };
                let id = self.undeclared();
                Statement::Strided { id, sum, limit, writes: is_outer && self.random.below(2) == 0 }
            }
            11 if in_loop && self.random.below(2) == 0 => {
                let jump = [Statement::Break, Statement::Continue][self.random.below(2)].clone();
                Statement::If(self.value(1, is_outer), vec![jump], Vec::new())
            }
            12 if self.random.below(2) == 0 => {
                let test = Value::Binary("==", Box::new(self.hash()), Box::new(Value::Number(1)));
                Statement::If(test, vec![Statement::Return(self.value(1, false))], Vec::new())
            }
            13 | 14 => {
                let outer = is_outer && self.random.below(2) == 0;
                let test = match !outer && self.random.below(2) == 0 {
                    true => self.of_neighbours(),
                    false => self.value(2, outer),
                };
                let then = self.body(depth, outer, in_loop && outer == is_outer);
                let other = match self.random.below(2) {
                    0 => Vec::new(),
                    _ => self.body(depth, outer, in_loop && outer == is_outer),
                };
                Statement::If(test, then, other)
            }
            15 | 16 => {
                let outer = is_outer && self.random.below(2) == 0;
                let (from, to) = (self.small(outer), self.small(outer));
                let known = self.scope.len();
                let id = self.declare(outer, true, false);
                let body = self.body(depth, outer, true);
                self.scope.truncate(known);
                Statement::For { id, from, to, by: 1 + self.random.below(2) as i32, body }
            }
            17 => {
                let outer = is_outer && self.random.below(2) == 0;
                let times = self.small(outer);
                let known = self.scope.len();
                let id = self.declare(outer, true, false);
                let body = self.body(depth, outer, false);
                self.scope.truncate(known);
                Statement::While { id, times, asks_last: self.random.below(2) == 0, body }
            }
            18 => Statement::Block(self.body(depth, is_outer, in_loop)),
            _ => Statement::AssignShared("+=", self.value(2, false)),
        }
    }

    /// Returns a value from 0 to 3.
    fn small(&mut self, is_uniform: bool) -> Value {
        let value = self.value(1, is_uniform);
        Value::Binary("&", Box::new(value), Box::new(Value::Number(3)))
    }

    /// Returns a comparison that neighbouring threads meet.
    fn of_neighbours(&mut self) -> Value {
        let own =
            [Value::Thread, Value::Index(0, 0), Value::Index(0, 1)][self.random.below(3)].clone();
        let (mut a, mut b) = (Box::new(own), Box::new(self.value(1, true)));
        if self.random.below(3) == 0 {
            let other = Box::new(Value::Index(0, 2));
            b = Box::new(Value::Binary("+", b, other));
        }
        if self.random.below(2) == 0 {
            std::mem::swap(&mut a, &mut b);
        }
        Value::Binary(["<", "=="][self.random.below(2)], a, b)
    }

    /// Returns a value that is 1 in some threads.
    fn hash(&mut self) -> Value {
        let number = Value::Number(1 + self.random.below(13) as i32);
        let product = Value::Binary("*", Box::new(Value::Thread), Box::new(number));
        Value::Binary("&", Box::new(product), Box::new(Value::Number(15)))
    }
}

impl Statement {
    /// Returns the statement if it is wanted, otherwise an empty one.
    fn only_if(self, is_wanted: bool) -> Statement {
        if is_wanted { self } else { Statement::Block(Vec::new()) }
    }
}
