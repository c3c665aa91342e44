//! Writes strided loops that run in rounds: the loop over rounds is outside, and the loop over threads
//! inside.

use super::super::classes::Strided;
use super::{Threads, Writer};
use std::collections::BTreeSet;
use std::fmt::Write as _;

impl Writer<'_, '_, '_> {
    /// Writes a loop in rounds: first the rounds in which all threads take part, then the remaining ones. If
    /// a counter might wrap, each thread runs its iterations as an ordinary loop.
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
        let calls = self.calls(&region.nodes);
        let shifted = |it: &mut Self| make(it, " + gpuarray_rounds.shift");
        let in_rounds = Threads {
            known: &in_body,
            declares: Some((first, &shifted)),
            nodes: &region.nodes,
            guard: None,
            asks: true,
            calls,
        };
        let in_last = Threads { asks: false, ..in_rounds };
        let as_whole = Threads { declares: None, nodes: &[], ..in_last };
        let of_first = Threads { known: &in_first, ..as_whole };
        self.put("{\n");
        self.name_uniform(&used);
        let _ = write!(self.text, "::gpuarray_abi::Rounds<gpuarray_T{counter}> gpuarray_rounds(");
        self.last_token = None;
        self.slice(end.clone(), None);
        self.put(", ");
        self.slice(by.clone(), None);
        self.put(");\n");
        self.threads(&of_first, &|it| {
            make(it, "");
            let _ = writeln!(it.text, "gpuarray_rounds.add({name});");
        });
        self.put("if (gpuarray_rounds.is_plain()) {\nfor (; gpuarray_rounds.has_all(); gpuarray_rounds.next()) {\n");
        self.threads(&in_rounds, &body);
        self.put("}\nfor (; gpuarray_rounds.has_some(); gpuarray_rounds.next()) {\n");
        self.threads(&in_last, &|it| {
            let _ = writeln!(it.text, "if ({name} < gpuarray_rounds.end) {{");
            body(it);
            it.put("}\n");
        });
        self.put("}\n} else {\n");
        self.threads(&as_whole, &|it| {
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
}
