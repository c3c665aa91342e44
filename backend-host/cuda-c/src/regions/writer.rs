//! The text of a kernel's second form.

use super::classes::{Class, Classes, Write, facts};
use super::layout::{Item, Layout, is_number};
use super::lexemes::{Lexemes, NONE};
use super::statements::{Body, Local, Loop, Node, What};
use super::strides::Strided;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

/// What is written of a kernel.
pub(super) struct Writer<'w, 't, 'a> {
    pub(super) lexemes: &'w Lexemes<'t, 'a>,
    pub(super) body: &'w Body,
    pub(super) classes: &'w Classes,
    pub(super) layout: &'w Layout<'w>,
    /// True for a function that reads no index of a thread.
    pub(super) knows_no_thread: &'w dyn Fn(&str) -> bool,
    /// True if functions that ask for a thread's index are called without their names being written.
    pub(super) asks_unseen: bool,
    pub(super) text: String,
    /// The file and line that the compiler takes the next character for, and the token before it.
    place: String,
    last_token: Option<usize>,
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
        Writer {
            lexemes,
            body,
            classes,
            layout,
            knows_no_thread,
            asks_unseen,
            text,
            place,
            last_token,
        }
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.last_token = None;
    }

    fn loses_threads(&self) -> bool {
        self.layout.regions.iter().any(|it| it.loses_threads)
    }

    /// The body of the function.
    pub(super) fn body(&mut self) {
        // As for the kernel itself: where this index does not wrap, accesses by it are to neighbours.
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
        self.items(&self.layout.items);
        self.put("return true;\n");
    }

    fn has_type(&self, id: usize) -> bool {
        matches!(self.classes.of[id], Class::Computed | Class::Shifted | Class::Counter)
    }

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
                Item::Loop { node, body } => self.outer_loop(node, body),
                Item::Block(inner) => {
                    self.put("{\n");
                    self.items(inner);
                    self.put("}\n");
                }
                Item::Jump(node) => self.slice(node.range.clone(), None),
            }
        }
    }

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

    /// A variable that is none of a thread's.
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

    /// An assignment to a variable that is none of a thread's.
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

    fn region(&mut self, number: usize) {
        let region = &self.layout.regions[number];
        let (used, declared) = self.locals_of(&region.nodes);
        self.put("{\n");
        self.name_uniform(&used);
        self.threads(number, &used.union(&declared).copied().collect(), &|it| {
            it.put("{\n");
            for node in &region.nodes {
                it.statement(node, number);
            }
            it.put("}\n");
            if region.nodes.iter().any(|it| facts(it).returns) {
                let _ = writeln!(it.text, "gpuarray_next_{number}:;");
            }
        });
        self.put("}\n");
        if region.loses_threads {
            self.put("if (!gpuarray_left) return true;\n");
        }
    }

    /// A loop that is run in rounds: first those of all threads, then those of some. Where a counter might
    /// wrap, each thread runs its iterations as a whole.
    fn rounds(&mut self, number: usize, strided: &Strided) {
        let region = &self.layout.regions[number];
        let Strided { counter, first, end, by, .. } = strided;
        let (mut used, declared) = self.locals_of(&region.nodes);
        for range in [first, end, by] {
            self.add_used(range, &mut used);
        }
        used.remove(counter);
        let in_body = used.union(&declared).copied().collect();
        let mut in_first = BTreeSet::new();
        self.add_used(first, &mut in_first);
        let name = self.body.locals[*counter].name.clone();
        let make = |it: &mut Self, shift: &str| {
            let _ = write!(it.text, "const gpuarray_T{counter} {name} = (gpuarray_T{counter})(");
            it.last_token = None;
            it.slice(first.clone(), None);
            it.put(")");
            it.put(shift);
            it.put(";\n");
        };
        let body = |it: &mut Self| region.nodes.iter().for_each(|node| it.statement(node, number));
        self.put("{\n");
        self.name_uniform(&used);
        let _ = write!(self.text, "::gpuarray_abi::Rounds<gpuarray_T{counter}> gpuarray_rounds(");
        self.last_token = None;
        self.slice(end.clone(), None);
        self.put(", ");
        self.slice(by.clone(), None);
        self.put(");\n");
        self.threads(number, &in_first, &|it| {
            make(it, "");
            let _ = writeln!(it.text, "gpuarray_rounds.add({name});");
        });
        self.put("if (gpuarray_rounds.is_plain()) {\nfor (; gpuarray_rounds.has_all(); gpuarray_rounds.next()) {\n");
        for pointer in self.indexed_by(*counter, &region.nodes) {
            let name = &self.body.locals[pointer].name;
            let _ = writeln!(self.text, "gpuarray_rounds.ask({name}, gpuarray_threads);");
        }
        self.threads(number, &in_body, &|it| {
            make(it, " + gpuarray_rounds.shift");
            body(it);
        });
        self.put("}\nfor (; gpuarray_rounds.has_some(); gpuarray_rounds.next()) {\n");
        self.threads(number, &in_body, &|it| {
            make(it, " + gpuarray_rounds.shift");
            let _ = writeln!(it.text, "if ({name} < gpuarray_rounds.end) {{");
            body(it);
            it.put("}\n");
        });
        self.put("}\n} else {\n");
        self.threads(number, &in_body, &|it| {
            let _ = write!(it.text, "for (gpuarray_T{counter} gpuarray_i = (gpuarray_T{counter})(");
            it.last_token = None;
            it.slice(first.clone(), None);
            it.put("); gpuarray_i < ");
            it.slice(end.clone(), None);
            it.put("; gpuarray_i += ");
            it.slice(by.clone(), None);
            let _ = writeln!(it.text, ") {{\nconst gpuarray_T{counter} {name} = gpuarray_i;");
            body(it);
            it.put("}\n");
        });
        self.put("}\n}\n");
    }

    /// Pointers that are the same in all threads, and indexed by nothing but a counter.
    fn indexed_by(&self, counter: usize, nodes: &[&Node]) -> BTreeSet<usize> {
        let lexemes = self.lexemes;
        let local_at = |at: usize| {
            self.body
                .uses
                .binary_search_by_key(&at, |it| it.at)
                .ok()
                .map(|it| self.body.uses[it].local)
        };
        let is_pointer = |id: &usize| {
            let local = &self.body.locals[*id];
            let mut words = local.specifiers.clone().chain(local.declarator.clone());
            self.classes.of[*id] == Class::Uniform && words.any(|it| lexemes.at(it) == "*")
        };
        let ats = nodes.iter().flat_map(|it| it.range.clone());
        let indexed = ats.filter(|&at| {
            lexemes.at(at + 1) == "["
                && local_at(at + 2) == Some(counter)
                && lexemes.at(at + 3) == "]"
        });
        indexed.filter_map(local_at).filter(is_pointer).collect()
    }

    /// Gives variables other names, under which loops over threads find them.
    fn name_uniform(&mut self, used: &BTreeSet<usize>) {
        for &id in used {
            if self.classes.of[id] == Class::Uniform {
                let name = &self.body.locals[id].name;
                let _ = writeln!(self.text, "const auto &gpuarray_u{id} = {name};");
            }
        }
    }

    /// A loop over the threads that are left, in which they know some locals.
    fn threads(&mut self, number: usize, known: &BTreeSet<usize>, inside: &dyn Fn(&mut Self)) {
        self.put(
            "{\nunsigned long gpuarray_row = 0;\n\
             for (unsigned gpuarray_z = 0; gpuarray_z < blockDim.z; ++gpuarray_z)\n\
             for (unsigned gpuarray_y = 0; gpuarray_y < blockDim.y; ++gpuarray_y, gpuarray_row += blockDim.x)\n\
             for (unsigned gpuarray_x = 0; gpuarray_x < blockDim.x; ++gpuarray_x) {\n\
             const unsigned long gpuarray_t = gpuarray_row + gpuarray_x;\n\
             const ::uint3 threadIdx = {gpuarray_x, gpuarray_y, gpuarray_z};\n",
        );
        if self.loses_threads() {
            // While all are left, nothing is asked of each.
            self.put(
                "if (gpuarray_left < gpuarray_threads && !gpuarray_live[gpuarray_t]) continue;\n",
            );
        }
        if self.calls(&self.layout.regions[number].nodes) {
            self.put("::gpuarray_abi::set_thread(gpuarray_x, gpuarray_y, gpuarray_z);\n");
        }
        for &id in known {
            self.view(id);
        }
        inside(self);
        self.put("}\n}\n");
    }

    /// The locals that statements use and declare between loops over threads.
    fn locals_of(&self, nodes: &[&Node]) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let holds = |at: usize| nodes.iter().any(|it| it.range.contains(&at));
        let uses = self.body.uses.iter();
        let mut used: BTreeSet<usize> = uses.filter(|it| holds(it.at)).map(|it| it.local).collect();
        let ranges: Vec<_> = used.iter().map(|&id| self.body.locals[id].init.clone()).collect();
        for (id, range) in used.clone().into_iter().zip(ranges) {
            if self.has_type(id) {
                self.add_used(&range, &mut used);
            }
        }
        let locals = self.body.locals.iter().enumerate();
        let declared = locals
            .filter(|(id, it)| !it.is_parameter && self.layout.kept.contains(id) && holds(it.at));
        (used, declared.map(|(id, _)| id).collect())
    }

    /// Adds the locals of an expression, and those that they are computed of.
    fn add_used(&self, range: &Range<usize>, used: &mut BTreeSet<usize>) {
        for it in self.body.uses.iter().filter(|it| range.contains(&it.at)) {
            used.insert(it.local);
            if self.has_type(it.local) {
                self.add_used(&self.body.locals[it.local].init, used);
            }
        }
    }

    /// True if statements call a function that may ask for the thread's index.
    fn calls(&self, nodes: &[&Node]) -> bool {
        let lexemes = self.lexemes;
        // `name<...>(` is a call, too, unless a local is compared.
        let is_template = |at: usize| {
            let end = lexemes.find(at, lexemes.len(), &[";"]).unwrap_or(lexemes.len());
            let is_end = |it: usize| lexemes.at(it).ends_with('>') && lexemes.at(it + 1) == "(";
            lexemes.at(at + 1) == "<"
                && self.body.uses.binary_search_by_key(&at, |it| it.at).is_err()
                && (at + 2..end).any(is_end)
        };
        self.asks_unseen
            || nodes.iter().flat_map(|it| it.range.clone()).any(|at| {
                lexemes.is_word(at)
                    && (lexemes.at(at + 1) == "(" || is_template(at))
                    && !(self.knows_no_thread)(lexemes.at(at))
            })
    }

    /// What a loop over threads knows of a local.
    fn view(&mut self, id: usize) {
        let local = &self.body.locals[id];
        let name = local.name.clone();
        if self.layout.kept.contains(&id) {
            let _ = writeln!(self.text, "gpuarray_T{id} &{name} = gpuarray_p{id}[gpuarray_t];");
            return;
        }
        match self.classes.of[id] {
            Class::Uniform => {
                let _ = writeln!(self.text, "const auto &{name} = gpuarray_u{id};");
            }
            Class::Computed | Class::Shifted => {
                let _ = write!(self.text, "const gpuarray_T{id} {name} = ");
                let is_shifted = self.classes.of[id] == Class::Shifted;
                if is_shifted {
                    let _ =
                        write!(self.text, "(gpuarray_T{id})(::gpuarray_abi::same<gpuarray_T{id}>(");
                }
                self.last_token = None;
                self.slice(local.init.clone(), None);
                if is_shifted {
                    let _ = write!(self.text, ") + gpuarray_o{id})");
                }
                self.put(";\n");
            }
            Class::Counter | Class::Own | Class::Shared => {}
        }
    }

    /// A statement of a loop over threads.
    fn statement(&mut self, node: &Node, number: usize) {
        if let What::Declaration(id) = node.what {
            let local = &self.body.locals[id];
            if !self.layout.kept.contains(&id) {
                return self.local(local, None);
            }
            // A class may set its members without being told.
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
            // Its semicolon is replaced, too.
            at = end + 2;
        }
        self.slice(at..node.range.end, None);
        self.put("\n");
    }

    /// The program's own text, on its own lines, with another name in place of one lexeme.
    fn slice(&mut self, range: Range<usize>, renamed: Option<(usize, &str)>) {
        let tokens = self.lexemes.tokens;
        for index in range {
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

    /// Lets the compiler take what follows for a line of the program.
    fn go_to(&mut self, place: String) {
        if self.place == place && !self.text.ends_with('\n') && self.last_token.is_some() {
            self.text.push(' ');
            return;
        }
        if let Some((file, line)) = place.rsplit_once(':') {
            // As a line of a system's header, so that its warnings come once.
            let _ = write!(self.text, "\n# {line} \"{file}\" 3\n");
        }
        self.place = place;
    }
}
