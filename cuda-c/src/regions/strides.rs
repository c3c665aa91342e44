//! Recognises strided loops, whose iterations are spread over the threads: `for (i = own; i < end; i +=
//! threads)`. Grid-stride loops are of this kind.
//!
//! One thread alone would walk through memory in large steps, while its neighbours visit the elements
//! between. Such a loop therefore runs in *rounds*: one iteration of all threads, then the next, so that the
//! block accesses memory in order. Each thread still runs its own iterations in their original order.
//!
//! The conditions for this are:
//!
//! - The counter is an integer of at least 32 bits that is used only by the loop and assigned only in its
//!   header.
//! - Its initial value is a pure function of the thread's index; the bound and the step are uniform.
//! - The body accesses an array, and contains neither a `return` nor a `break` or `continue` of this loop.
//! - Threads do not communicate through atomics, fences or volatile accesses: rounds change the order in
//!   which iterations of different threads run.

use super::access::Access;
use super::classes::{Class, Sorter, Strided};
use super::facts::{facts, may_fault};
use super::statements::{Loop, What};
use super::words::{is_integer, is_specifier};
use std::ops::Range;

impl Sorter<'_, '_, '_> {
    /// Returns the parts of a loop that can run in rounds.
    pub(super) fn strided(&self, range: &Range<usize>, it: &Loop) -> Option<Strided> {
        let lexemes = self.lexemes;
        let [init] = &it.init[..] else { return None };
        let (counter, first) = match init.what {
            What::Declaration(id) => (id, self.body.locals[id].init.clone()),
            What::Expression if lexemes.at(init.range.start + 1) == "=" => {
                (self.body.used(init.range.start)?, init.range.start + 2..init.range.end - 1)
            }
            _ => return None,
        };
        let (condition, step) = (it.condition.clone(), it.step.clone());
        let is_counter = |at: usize| self.body.used(at) == Some(counter);
        let lowest = ["<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", "?", ",", "="];
        let (end, by) = (condition.start + 2..condition.end, step.start + 2..step.end);
        let is_read = is_counter(condition.start)
            && lexemes.at(condition.start + 1) == "<"
            && lexemes.find(end.start, end.end, &lowest).is_none()
            && is_counter(step.start)
            && lexemes.at(step.start + 1) == "+="
            && lexemes.find(by.start, by.end, &[","]).is_none();
        let inside = facts(&it.body);
        let accesses_memory = it.body.range.clone().any(|at| lexemes.at(at) == "[");
        let is_known = |id: usize| {
            matches!(self.found.of[id], Class::Uniform | Class::Computed | Class::Shifted)
        };
        let is_apt = is_read
            && !(self.context.keeps_order || it.is_do || inside.returns || inside.jumps())
            && accesses_memory
            && self.is_counter(counter, range, [init.range.start, step.start])
            && self.is_pure(first.clone(), true, &is_known)
            && self.depends_on_thread(first.clone())
            && [&end, &by].into_iter().all(|it| !it.is_empty() && self.is_uniform(it.clone()))
            && ![&first, &end, &by].into_iter().any(|it| may_fault(lexemes, it));
        is_apt.then_some(Strided { at: range.start, counter, first, end, by })
    }

    /// Returns true for an integer variable that is used only by the loop and assigned only in its header.
    fn is_counter(&self, id: usize, range: &Range<usize>, writes: [usize; 2]) -> bool {
        let lexemes = self.lexemes;
        let local = &self.body.locals[id];
        let is_wide = |it: usize| {
            let word = lexemes.at(it);
            let is_small = word.contains("8") || word.contains("16");
            let is_other =
                matches!(word, "bool" | "char" | "short" | "uchar" | "const" | "volatile");
            (is_integer(word) || is_specifier(word)) && !is_small && !is_other
        };
        let mut uses = self.body.uses.iter().filter(|it| it.local == id);
        !local.is_parameter
            && local.specifiers.clone().all(is_wide)
            && local.declarator.clone().count() == 1
            && uses.all(|it| {
                range.contains(&it.at)
                    && match it.access {
                        Access::Read => true,
                        Access::Write => writes.contains(&it.at),
                        Access::Unknown => false,
                    }
            })
    }

    /// Returns true if an expression contains `threadIdx`, or a local that is computed from it.
    fn depends_on_thread(&self, mut range: Range<usize>) -> bool {
        range.any(|at| {
            let class = self.body.used(at).map(|id| self.found.of[id]);
            self.lexemes.at(at) == "threadIdx"
                || matches!(class, Some(Class::Computed | Class::Shifted))
        })
    }
}
