//! Loops that are run in rounds.

use super::super::classes::Class;
use super::super::statements::Node;
use super::super::strides::Strided;
use super::Writer;
use std::collections::BTreeSet;
use std::fmt::Write as _;

impl Writer<'_, '_, '_> {
    /// A loop that is run in rounds: first those of all threads, then those of some. Where a counter might
    /// wrap, each thread runs its iterations as a whole.
    pub(super) fn rounds(&mut self, number: usize, strided: &Strided) {
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
    pub(super) fn indexed_by(&self, counter: usize, nodes: &[&Node]) -> BTreeSet<usize> {
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
}
