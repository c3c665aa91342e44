//! Writes the code that comes before the loop over a row of threads. It computes the indices that increase
//! along the row, and which threads of the row fulfil a condition.

use super::super::classes::{Class, Clip, Guard};
use super::super::lexemes::is_assignment;
use super::{Threads, Writer};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

impl<'w, 't, 'a> Writer<'w, 't, 'a> {
    /// Begins the loop over a row of threads. Returns false, and writes nothing, if nothing is known about
    /// the row. If an index wraps within a row, its threads run one by one.
    pub(super) fn row(&mut self, of: &Threads<'_, 'w, 't, 'a>) -> bool {
        let counting = self.counting_in(of);
        let none = Guard::default();
        let guard = of.guard.unwrap_or(&none);
        if counting.is_empty() && of.guard.is_none() {
            return false;
        }
        let texts = counting.iter().map(|it| self.text_of(it));
        let numbers: HashMap<String, usize> = texts.zip(0..).collect();
        let mut used = BTreeSet::new();
        let conditions = guard.rows.iter().chain(guard.clips.iter().map(|it| &it.range));
        let declared = of.declares.map(|it| it.0);
        conditions.chain(&counting).chain(declared).for_each(|it| self.add_used(it, &mut used));
        self.put(
            "for (unsigned gpuarray_begin = 0, gpuarray_end; gpuarray_begin < blockDim.x; \
             gpuarray_begin = gpuarray_end) {\ngpuarray_end = blockDim.x;\n",
        );
        self.in_front("gpuarray_begin", of, &used);
        for condition in &guard.rows {
            self.put(if guard.returns { "if ((" } else { "if (!(" });
            self.slice(condition.clone(), None);
            self.put(")) continue;\n");
        }
        // A single thread computes its own indices.
        let equation = guard.equation();
        let in_row = if equation.is_some() { &[][..] } else { &counting[..] };
        self.indices_from("gpuarray_begin", in_row);
        for (number, clip) in guard.clips.iter().enumerate() {
            let _ = write!(self.text, "const auto gpuarray_c{number} = ");
            self.compared(&clip.counting, &clip.bound);
            self.put(";\n");
        }
        if !in_row.is_empty() || guard.clips.iter().any(|it| !it.is_own) {
            self.wraps(of, in_row, guard, &used);
        }
        self.put("::gpuarray_abi::Row gpuarray_met(gpuarray_begin, gpuarray_end);\n");
        for (number, clip) in guard.clips.iter().enumerate() {
            let _ = write!(self.text, "gpuarray_met.{}(gpuarray_c{number}, ", clip.method());
            self.compared(&clip.bound, &clip.counting);
            self.put(");\n");
        }
        if let Some(number) = equation {
            self.put("if (gpuarray_met.begin >= gpuarray_met.end) continue;\n");
            if of.asks {
                self.put("{\n");
                self.in_front("gpuarray_met.begin", of, &used);
                self.indices_from("gpuarray_met.begin", &counting);
                self.ask(of, &numbers);
                self.put("}\n");
            }
            // The compiler can see that at most one thread runs.
            let _ = writeln!(
                self.text,
                "for (unsigned gpuarray_x = gpuarray_met.begin; gpuarray_x < gpuarray_met.end; gpuarray_x = \
                 ::gpuarray_abi::is_clipped(gpuarray_c{number}) ? gpuarray_met.end : gpuarray_x + 1) {{"
            );
            return true;
        }
        if of.asks {
            self.ask(of, &numbers);
        }
        self.put(
            "for (unsigned gpuarray_x = gpuarray_met.begin; gpuarray_x < gpuarray_met.end; \
             ++gpuarray_x) {\n",
        );
        let all = self.classes.counting.iter().filter(|it| is_in(it, of));
        let indices =
            all.filter_map(|it| Some((it.start, (it.end, *numbers.get(&self.text_of(it))?))));
        self.indices = indices.collect();
        true
    }

    /// Computes indices that increase along the row, minus the number of the thread for which they are
    /// computed. The loop over the row adds each thread's number.
    fn indices_from(&mut self, x: &str, counting: &[Range<usize>]) {
        for (number, index) in counting.iter().enumerate() {
            let _ = write!(self.text, "const long gpuarray_i{number} = (long)(");
            self.last_token = None;
            self.slice(index.clone(), None);
            self.put(") - ");
            self.put(x);
            self.put(";\n");
        }
    }

    /// Ends a row after its first thread if an index wraps in it.
    fn wraps(
        &mut self,
        of: &Threads<'_, 'w, 't, 'a>,
        counting: &[Range<usize>],
        guard: &Guard,
        used: &BTreeSet<usize>,
    ) {
        self.put("{\n");
        self.in_front("gpuarray_end - 1", of, used);
        self.put("const unsigned gpuarray_last = gpuarray_end - 1;\nif (!(true");
        for (number, index) in counting.iter().enumerate() {
            let _ = write!(self.text, " & (gpuarray_i{number} + gpuarray_last == (long)(");
            self.last_token = None;
            self.slice(index.clone(), None);
            self.put("))");
        }
        for (number, clip) in guard.clips.iter().enumerate().filter(|it| !it.1.is_own) {
            let _ = write!(self.text, " & ::gpuarray_abi::counts(gpuarray_c{number}, ");
            self.compared(&clip.counting, &clip.bound);
            self.put(", gpuarray_last - gpuarray_begin)");
        }
        self.put(")) gpuarray_end = gpuarray_begin + 1;\n}\n");
    }

    /// Prefetches elements that will be accessed through pointers which are the same in all threads.
    fn ask(&mut self, of: &Threads<'_, 'w, 't, 'a>, numbers: &HashMap<String, usize>) {
        let mut asked = BTreeSet::new();
        for index in self.classes.counting.iter().filter(|it| is_in(it, of)) {
            let Some(pointer) = self.pointer(index.start - 2) else { continue };
            let Some(number) = numbers.get(&self.text_of(index)) else { continue };
            if asked.insert((pointer, *number)) {
                let is_written = is_assignment(self.lexemes.at(index.end + 1));
                let (name, ahead) = (&self.body.locals[pointer].name, self.aheads);
                let _ = writeln!(
                    self.text,
                    "{{ const auto &{name} = gpuarray_u{pointer};\n\
                     gpuarray_a{ahead}.see(gpuarray_row + gpuarray_begin, gpuarray_i{number});\n\
                     gpuarray_a{ahead}.ask<sizeof *{name}, {is_written}>((unsigned long){name}, gpuarray_i{number}, gpuarray_met); }}"
                );
                self.aheads += 1;
            }
        }
    }

    /// Returns the pointer named at `at`, if it is the same in all threads.
    fn pointer(&self, at: usize) -> Option<usize> {
        let id = self.body.used(at)?;
        let local = &self.body.locals[id];
        let mut words = local.specifiers.clone().chain(local.declarator.clone());
        let is_pointer = words.any(|it| self.lexemes.at(it) == "*");
        (is_pointer && self.classes.of[id] == Class::Uniform).then_some(id)
    }

    /// Returns the distinct indices that increase along the row, in the statements of a loop.
    fn counting_in(&self, of: &Threads<'_, 'w, 't, 'a>) -> Vec<Range<usize>> {
        let mut texts = BTreeSet::new();
        let all = self.classes.counting.iter().filter(|it| is_in(it, of));
        all.filter(|it| texts.insert(self.text_of(it))).cloned().collect()
    }

    fn text_of(&self, range: &Range<usize>) -> String {
        range.clone().map(|it| self.lexemes.at(it)).collect::<Vec<_>>().join(" ")
    }

    /// Declares the locals that are used before a row, with their values in the thread at `x`.
    fn in_front(&mut self, x: &str, of: &Threads<'_, 'w, 't, 'a>, used: &BTreeSet<usize>) {
        self.thread(x);
        for &id in used {
            self.view(id);
        }
        if let Some((_, declare)) = of.declares {
            declare(self);
        }
    }

    /// Writes an operand of a comparison, converted to the common type with the other operand.
    fn compared(&mut self, operand: &Range<usize>, other: &Range<usize>) {
        self.put("::gpuarray_abi::compared(+(");
        self.slice(operand.clone(), None);
        self.put("), +(");
        self.slice(other.clone(), None);
        self.put("))");
    }

    /// Writes the check that each thread of a clipped row still has to make.
    pub(super) fn met(&mut self, guard: &Guard) {
        let not = if guard.returns { "!" } else { "" };
        self.put("if (true");
        for Clip { counting, bound, range, .. } in &guard.clips {
            self.put(" && (::gpuarray_abi::is_clipped(");
            self.compared(counting, bound);
            self.put(") || ");
            self.put(not);
            self.put("(");
            self.slice(range.clone(), None);
            self.put("))");
        }
        for other in &guard.others {
            self.put(" && ");
            self.put(not);
            self.put("(");
            self.slice(other.clone(), None);
            self.put(")");
        }
        self.put(") ");
    }
}

fn is_in(range: &Range<usize>, of: &Threads<'_, '_, '_, '_>) -> bool {
    of.nodes.iter().any(|it| it.range.start <= range.start && range.end <= it.range.end)
}
