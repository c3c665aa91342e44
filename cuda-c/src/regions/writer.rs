//! Writes the text of a kernel's loop variant.
//!
//! The variant is a function that runs all threads of a block, and returns false if the block has to run in
//! another way, for example because its kept locals need too much memory. Names that begin with `gpuarray_`
//! are its own:
//!
//! - Thread loops are nested loops over `gpuarray_z`, `gpuarray_y` and `gpuarray_x`. Inside them, `threadIdx`
//!   is a constant, and `gpuarray_t` is the number of the thread in the block.
//! - `gpuarray_p3` is the array of the kept local 3, with one element per thread. In a thread loop, the
//!   local's name is a reference to the thread's element.
//! - `gpuarray_u3` is a constant reference to the uniform local 3, and `gpuarray_o3` the offset of the
//!   shifted local 3.
//! - `gpuarray_live` says which threads have not returned, and `gpuarray_left` counts them. Later thread
//!   loops skip the other threads.

mod rounds;
mod thread_rows;
mod threads;

use super::classes::{Class, Classes, Guard, Write};
use super::facts::facts;
use super::layout::{Item, Layout, is_number};
use super::lexemes::{Lexemes, NONE};
use super::statements::{Body, Local, Loop, Node, What};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

/// The state of writing one loop variant.
pub(super) struct Writer<'w, 't, 'a> {
    pub(super) lexemes: &'w Lexemes<'t, 'a>,
    pub(super) body: &'w Body,
    pub(super) classes: &'w Classes,
    pub(super) layout: &'w Layout<'w>,
    /// Returns true for a function that does not read the thread's index.
    pub(super) knows_no_thread: &'w dyn Fn(&str) -> bool,
    /// True if functions that read the thread's index may be called without being named.
    pub(super) asks_unseen: bool,
    pub(super) text: String,
    /// Indices that are computed before the row: the first lexeme, the end, and the number.
    indices: HashMap<usize, (usize, usize)>,
    /// The number of enclosing loops with barriers.
    depth: usize,
    /// The number of prefetches written so far.
    aheads: usize,
    /// The file and line to which the compiler attributes the next character.
    place: String,
    last_token: Option<usize>,
}

/// A function that writes declarations.
type Declare<'l, 'w, 't, 'a> = dyn Fn(&mut Writer<'w, 't, 'a>) + 'l;

/// A loop over threads, apart from its statements.
pub(super) struct Threads<'l, 'w, 't, 'a> {
    /// The locals that are available in the loop.
    known: &'l BTreeSet<usize>,
    /// Writes declarations before the statements and before the indices; the range is the expression that
    /// they depend on.
    declares: Option<(&'l Range<usize>, &'l Declare<'l, 'w, 't, 'a>)>,
    /// The statements whose increasing indices are computed before each row.
    nodes: &'l [&'l Node],
    guard: Option<&'l Guard>,
    /// True inside a loop for whose later iterations memory is prefetched.
    asks: bool,
    /// True if a called function may read the thread's index.
    calls: bool,
}

impl<'w, 't, 'a> Writer<'w, 't, 'a> {
    pub(super) fn new(
        lexemes: &'w Lexemes<'t, 'a>,
        body: &'w Body,
        classes: &'w Classes,
        layout: &'w Layout<'w>,
        knows_no_thread: &'w dyn Fn(&str) -> bool,
        asks_unseen: bool,
    ) -> Writer<'w, 't, 'a> {
        let (text, place, last_token) = (String::new(), String::new(), None);
        let indices = HashMap::new();
        Writer {
            lexemes,
            body,
            classes,
            layout,
            knows_no_thread,
            asks_unseen,
            text,
            indices,
            depth: 0,
            aheads: 0,
            place,
            last_token,
        }
    }

    fn loses_threads(&self) -> bool {
        self.layout.regions.iter().any(|it| it.loses_threads)
    }

    /// Writes the body of the function.
    pub(super) fn body(&mut self) {
        // If this index does not wrap, neighbouring threads access neighbouring elements. The kernel itself
        // has the same branch.
        self.put(
            "if (blockIdx.x * blockDim.x > 0x7fffffffu - ::gpuarray_abi::MOST_THREADS || \
             blockDim.x > ::gpuarray_abi::MOST_THREADS) return false;\n\
             const unsigned gpuarray_threads = blockDim.x * blockDim.y * blockDim.z;\n",
        );
        let kept: Vec<usize> = self.layout.kept.iter().copied().collect();
        for (id, local) in self.body.locals.iter().enumerate() {
            if self.layout.kept.contains(&id) || self.has_type(id) {
                self.typedef(id, local);
            }
        }
        let mut sizes = String::from("0ul");
        for id in &kept {
            let _ = write!(sizes, " + sizeof(gpuarray_T{id})");
        }
        if self.loses_threads() {
            sizes.push_str(" + 1");
        }
        let _ = writeln!(
            self.text,
            "if (gpuarray_threads * ({sizes}) > ::gpuarray_abi::MOST_KEPT) return false;"
        );
        for id in &kept {
            let _ = writeln!(
                self.text,
                "gpuarray_T{id} *const gpuarray_p{id} = static_cast<gpuarray_T{id} *>(\
                 __builtin_alloca_with_align(sizeof(gpuarray_T{id}) * gpuarray_threads, 512));"
            );
        }
        if self.loses_threads() {
            self.put(
                "unsigned char *const gpuarray_live = static_cast<unsigned char *>(\
                 __builtin_alloca_with_align(gpuarray_threads, 512));\n\
                 __builtin_memset(gpuarray_live, 1, gpuarray_threads);\n\
                 unsigned gpuarray_left = gpuarray_threads;\n",
            );
        }
        for id in kept.into_iter().filter(|&id| self.body.locals[id].is_parameter) {
            let name = &self.body.locals[id].name;
            let _ = writeln!(
                self.text,
                "for (unsigned gpuarray_t = 0; gpuarray_t < gpuarray_threads; ++gpuarray_t) \
                 ::gpuarray_abi::keep(gpuarray_p{id}[gpuarray_t], {name});"
            );
        }
        let begin = self.text.len();
        self.items(&self.layout.items);
        self.put("return true;\n");
        let aheads = (0..self.aheads).map(|it| format!("::gpuarray_abi::Ahead gpuarray_a{it};\n"));
        self.text.insert_str(begin, &aheads.collect::<String>());
    }

    fn has_type(&self, id: usize) -> bool {
        matches!(self.classes.of[id], Class::Computed | Class::Shifted | Class::Counter)
    }

    /// Writes the type of a local, and the type in which thread loops keep it, without `const`.
    fn typedef(&mut self, id: usize, local: &Local) {
        if local.is_parameter {
            let _ = writeln!(self.text, "typedef decltype({}) gpuarray_t{id};", local.name);
        } else {
            self.put("typedef ");
            self.slice(local.specifiers.clone(), None);
            self.put(" ");
            self.slice(local.declarator.clone(), Some((local.at, &format!("gpuarray_t{id}"))));
            self.put(";\n");
        }
        let _ = writeln!(self.text, "typedef ::gpuarray_abi::Kept<gpuarray_t{id}> gpuarray_T{id};");
    }

    /// Writes regions, and the statements outside of their loops.
    fn items(&mut self, items: &[Item<'_>]) {
        for item in items {
            match item {
                Item::Region(number) => self.region(*number),
                Item::Rounds(number, strided) => {
                    self.rounds(*number, &self.classes.strided[*strided]);
                }
                Item::Barrier => self.put("::gpuarray_abi::apart();\n"),
                Item::Declaration(node) => self.declaration(node),
                Item::Write(number) => {
                    self.write(*number);
                    self.put(";\n");
                }
                Item::If { condition, then, other } => {
                    self.put("if (");
                    self.slice(condition.clone(), None);
                    self.put(") {\n");
                    self.items(then);
                    self.put("} else {\n");
                    self.items(other);
                    self.put("}\n");
                }
                Item::Loop { node, body } => {
                    self.depth += 1;
                    self.outer_loop(node, body);
                    self.depth -= 1;
                }
                Item::Block(inner) => {
                    self.put("{\n");
                    self.items(inner);
                    self.put("}\n");
                }
                Item::Jump(node) => self.slice(node.range.clone(), None),
            }
        }
    }

    /// Writes a loop with barriers. It runs once per block.
    fn outer_loop(&mut self, node: &Loop, body: &[Item<'_>]) {
        self.put("{\n");
        for init in &node.init {
            match init.what {
                What::Declaration(id) if self.classes.of[id] == Class::Computed => {}
                What::Declaration(_) => self.declaration(init),
                What::Expression => {
                    let start = init.range.start;
                    if let Some(number) = self.number_of(start) {
                        self.write(number);
                        self.put(";\n");
                    }
                }
                _ => {}
            }
        }
        if node.is_do {
            self.put("do {\n");
            self.items(body);
            self.put("} while (");
            self.slice(node.condition.clone(), None);
            self.put(");\n}\n");
            return;
        }
        self.put("for (; ");
        self.slice(node.condition.clone(), None);
        self.put("; ");
        for (index, part) in self.lexemes.parts(node.step.clone()).into_iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            if let Some(number) = self.number_of(part.start) {
                self.write(number);
            }
        }
        self.put(") {\n");
        self.items(body);
        self.put("}\n}\n");
    }

    fn number_of(&self, start: usize) -> Option<usize> {
        self.classes.writes.iter().position(|it| it.range.start == start)
    }

    /// Writes the declaration of a variable that the loops over threads share.
    fn declaration(&mut self, node: &Node) {
        let What::Declaration(id) = node.what else {
            return self.slice(node.range.clone(), None);
        };
        let local = &self.body.locals[id];
        if self.classes.of[id] == Class::Shifted {
            let _ =
                writeln!(self.text, "::gpuarray_abi::Offset<gpuarray_T{id}> gpuarray_o{id} = 0;");
            return self.put("");
        }
        self.local(local, None);
    }

    fn local(&mut self, local: &Local, name: Option<&str>) {
        self.slice(local.specifiers.clone(), None);
        self.put(" ");
        self.slice(local.declarator.clone(), name.map(|it| (local.at, it)));
        if local.init.start != NONE {
            let start = local.init.start - usize::from(local.is_assigned);
            self.slice(start..local.init.end, None);
        }
        self.put(";\n");
    }

    /// Writes an assignment to a variable that the loops over threads share.
    fn write(&mut self, number: usize) {
        let Write { local, operator, value, range, .. } = self.classes.writes[number].clone();
        if self.classes.of[local] != Class::Shifted {
            return self.slice(range, None);
        }
        match operator.as_str() {
            "++" | "--" => {
                let _ = write!(self.text, "{operator}gpuarray_o{local}");
            }
            _ => {
                let by = if operator == "+=" { "add" } else { "subtract" };
                let _ = write!(self.text, "::gpuarray_abi::{by}(gpuarray_o{local}, ");
                self.slice(value, None);
                self.put(")");
            }
        }
        self.last_token = None;
    }

    /// Writes the thread loops of a region, and leaves the variant early if all threads have returned.
    fn region(&mut self, number: usize) {
        let layout = self.layout;
        let region = &layout.regions[number];
        for part in &region.parts {
            let nodes = &region.nodes[part.nodes.clone()];
            let guard = part.guard.map(|it| &self.classes.guards[it]);
            self.part(number, nodes, guard);
        }
        if region.loses_threads {
            self.put("if (!gpuarray_left) return true;\n");
        }
    }

    /// Writes a loop over threads for some statements.
    fn part(&mut self, number: usize, nodes: &[&Node], guard: Option<&Guard>) {
        let (used, declared) = self.locals_of(nodes);
        let known = used.union(&declared).copied().collect();
        let calls = self.calls(nodes);
        self.put("{\n");
        self.name_uniform(&used);
        let asks = self.depth > 0;
        let threads = Threads { known: &known, declares: None, nodes, guard, asks, calls };
        self.threads(&threads, &|it| {
            it.put("{\n");
            let left = if guard.is_some() { &nodes[1..] } else { nodes };
            match guard {
                Some(guard) if guard.returns => {
                    it.met(guard);
                    it.put("{\n");
                    left.iter().for_each(|node| it.statement(node, number));
                    it.put("}\n");
                }
                Some(guard) => {
                    it.met(guard);
                    it.slice(guard.then.clone(), None);
                    it.put("\n");
                }
                None => left.iter().for_each(|node| it.statement(node, number)),
            }
            it.put("}\n");
            if left.iter().any(|it| facts(it).returns) {
                let _ = writeln!(it.text, "gpuarray_next_{number}:;");
            }
        });
        self.put("}\n");
    }

    /// Writes a statement inside a loop over threads.
    fn statement(&mut self, node: &Node, number: usize) {
        if let What::Declaration(id) = node.what {
            let local = &self.body.locals[id];
            if !self.layout.kept.contains(&id) {
                return self.local(local, None);
            }
            // A default constructor may initialise members, so it has to run.
            if local.init.start != NONE || !is_number(self.lexemes, local) {
                let _ = write!(
                    self.text,
                    "{{ static_assert(::gpuarray_abi::may_move<gpuarray_T{id}>); "
                );
                self.last_token = None;
                self.local(local, Some("gpuarray_value"));
                let _ =
                    writeln!(self.text, "::gpuarray_abi::keep({}, gpuarray_value); }}", local.name);
                self.last_token = None;
            }
            return;
        }
        let mark = match self.layout.regions[number].loses_threads {
            true => "gpuarray_live[gpuarray_t] = 0; --gpuarray_left; ",
            false => "",
        };
        let leave = format!("{{ {mark}goto gpuarray_next_{number}; }}");
        let mut at = node.range.start;
        while let Some(end) = (at..node.range.end).find(|&it| self.lexemes.at(it) == "return") {
            self.slice(at..end, None);
            self.put(&leave);
            // The semicolon is replaced together with the initialiser.
            at = end + 2;
        }
        self.slice(at..node.range.end, None);
        self.put("\n");
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.last_token = None;
    }

    /// Writes a range of the program's text on its original lines. Indices that are already computed are
    /// replaced, and one lexeme may be renamed.
    fn slice(&mut self, range: Range<usize>, renamed: Option<(usize, &str)>) {
        let tokens = self.lexemes.tokens;
        let mut next = range.start;
        for index in range {
            if index < next {
                continue;
            }
            if let Some(&(end, number)) = self.indices.get(&index) {
                let _ = write!(self.text, "gpuarray_i{number} + gpuarray_x");
                (next, self.last_token) = (end, None);
                continue;
            }
            let own = renamed.filter(|(at, _)| *at == index).map(|(_, name)| name);
            for token in self.lexemes.tokens_of(index) {
                let is_behind = self.last_token.is_some_and(|it| {
                    it + 1 == token && tokens.all[it].end == tokens.all[token].start
                });
                if !is_behind {
                    self.go_to(tokens.place(token));
                }
                self.text.push_str(own.unwrap_or(tokens.at(token)));
                self.last_token = Some(token);
            }
        }
    }

    /// Makes the compiler attribute the following text to a line of the program.
    fn go_to(&mut self, place: String) {
        if self.place == place && !self.text.ends_with('\n') && self.last_token.is_some() {
            self.text.push(' ');
            return;
        }
        if let Some((file, line)) = place.rsplit_once(':') {
            // The flag 3 marks it as a line of a system header, so that its warnings are not repeated.
            let _ = write!(self.text, "\n# {line} \"{file}\" 3\n");
        }
        self.place = place;
    }
}
