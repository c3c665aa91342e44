//! Writes loops over the threads of a block, and makes locals available in them.

use super::super::classes::Class;
use super::super::statements::Node;
use super::{Threads, Writer};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

impl<'w, 't, 'a> Writer<'w, 't, 'a> {
    /// Declares constant references to uniform variables, by which loops over threads access them.
    pub(super) fn name_uniform(&mut self, used: &BTreeSet<usize>) {
        for &id in used {
            if self.classes.of[id] == Class::Uniform {
                let name = &self.body.locals[id].name;
                let _ = writeln!(self.text, "const auto &gpuarray_u{id} = {name};");
            }
        }
    }

    /// Writes a loop over the threads that have not returned.
    pub(super) fn threads(
        &mut self,
        of: &Threads<'_, 'w, 't, 'a>,
        inside: &dyn Fn(&mut Writer<'w, 't, 'a>),
    ) {
        if self.is_flat(of) {
            self.put(
                "{\nfor (unsigned long gpuarray_t = 0; gpuarray_t < gpuarray_threads; ++gpuarray_t) {\n",
            );
            self.asks_left();
            for &id in of.known {
                self.view(id);
            }
            inside(self);
            return self.put("}\n}\n");
        }
        self.put(
            "{\nunsigned long gpuarray_row = 0;\n\
             for (unsigned gpuarray_z = 0; gpuarray_z < blockDim.z; ++gpuarray_z)\n\
             for (unsigned gpuarray_y = 0; gpuarray_y < blockDim.y; ++gpuarray_y, gpuarray_row += blockDim.x)\n",
        );
        let is_parted = self.row(of);
        if !is_parted {
            self.put("for (unsigned gpuarray_x = 0; gpuarray_x < blockDim.x; ++gpuarray_x) {\n");
        }
        self.put("const unsigned long gpuarray_t = gpuarray_row + gpuarray_x;\n");
        self.thread("gpuarray_x");
        self.asks_left();
        if of.calls {
            self.put("::gpuarray_abi::set_thread(gpuarray_x, gpuarray_y, gpuarray_z);\n");
        }
        for &id in of.known {
            self.view(id);
        }
        if let Some((_, declare)) = of.declares {
            declare(self);
        }
        inside(self);
        self.indices.clear();
        self.put(if is_parted { "}\n}\n}\n" } else { "}\n}\n" });
    }

    /// Writes a check that skips threads which have returned.
    fn asks_left(&mut self) {
        if self.loses_threads() {
            // While no thread has returned, the array is not read.
            self.put(
                "if (gpuarray_left < gpuarray_threads && !gpuarray_live[gpuarray_t]) continue;\n",
            );
        }
    }

    /// Returns true if the statements do not depend on the thread's index, except through locals kept in
    /// memory. The rows of a block are then merged into one.
    fn is_flat(&self, of: &Threads<'_, 'w, 't, 'a>) -> bool {
        let mut lexemes = of.nodes.iter().flat_map(|it| it.range.clone());
        !of.nodes.is_empty()
            && of.guard.is_none()
            && of.declares.is_none()
            && !of.calls
            && of.known.iter().all(|&id| self.layout.kept.contains(&id) || !self.has_type(id))
            && !lexemes.any(|it| self.lexemes.at(it) == "threadIdx")
    }

    pub(super) fn thread(&mut self, x: &str) {
        let _ = writeln!(self.text, "const ::uint3 threadIdx = {{{x}, gpuarray_y, gpuarray_z}};");
        self.last_token = None;
    }

    /// Adds the locals of an expression, and the locals from which they are computed.
    pub(super) fn add_used(&self, range: &Range<usize>, used: &mut BTreeSet<usize>) {
        for it in self.body.uses.iter().filter(|it| range.contains(&it.at)) {
            used.insert(it.local);
            if self.has_type(it.local) {
                self.add_used(&self.body.locals[it.local].init, used);
            }
        }
    }

    /// Returns the locals that statements use, and those that they declare inside the loop.
    pub(super) fn locals_of(&self, nodes: &[&Node]) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let holds = |at: usize| nodes.iter().any(|it| it.range.contains(&at));
        let mut used = BTreeSet::new();
        nodes.iter().for_each(|it| self.add_used(&it.range, &mut used));
        let locals = self.body.locals.iter().enumerate();
        let declared = locals
            .filter(|(id, it)| !it.is_parameter && self.layout.kept.contains(id) && holds(it.at));
        (used, declared.map(|(id, _)| id).collect())
    }

    /// Returns true if statements call a function that may read the thread's index.
    pub(super) fn calls(&self, nodes: &[&Node]) -> bool {
        let lexemes = self.lexemes;
        // `name<...>(` is also a call, unless a local is compared.
        let is_template = |at: usize| {
            let end = lexemes.find(at, lexemes.len(), &[";"]).unwrap_or(lexemes.len());
            let is_end = |it: usize| lexemes.at(it).ends_with('>') && lexemes.at(it + 1) == "(";
            lexemes.at(at + 1) == "<" && self.body.used(at).is_none() && (at + 2..end).any(is_end)
        };
        self.asks_unseen
            || nodes.iter().flat_map(|it| it.range.clone()).any(|at| {
                lexemes.is_word(at)
                    && (lexemes.at(at + 1) == "(" || is_template(at))
                    && !(self.knows_no_thread)(lexemes.at(at))
            })
    }

    /// Declares a local as the current thread sees it.
    pub(super) fn view(&mut self, id: usize) {
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
}
