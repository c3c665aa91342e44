//! Splits the statements of a branch between which threads have to meet. Each part gets the condition again,
//! so that threads meet outside of the branch.
//!
//! For example, `if (t > 0) { float v = x[t - 1]; x[t] = v; }` becomes:
//!
//! - `float v = {}; if (t > 0) { v = x[t - 1]; }`
//! - `::gpuarray_abi::together();`
//! - `if (t > 0) { x[t] = v; }`

use super::super::super::facts::facts;
use super::super::super::lexemes::NONE;
use super::super::super::statements::{Node, What};
use super::super::super::words::{is_integer, is_type};
use super::super::index::Test;
use super::super::sums::Index;
use super::super::{Walk, Who};
use super::{MEET, Parter};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

impl Parter<'_, '_, '_> {
    /// Returns the statements of a branch or a counting loop before which threads have to meet.
    pub(super) fn places_in<'n>(
        &mut self,
        nodes: impl IntoIterator<Item = &'n Node>,
        counted: Option<(usize, Index)>,
    ) -> BTreeSet<usize> {
        let mut walk = Walk::new(self.lexemes, self.body, self.walk.meets, self.doubts);
        walk.indices.count(counted);
        walk.who = Who::Parts;
        let nodes: Vec<&Node> = nodes.into_iter().collect();
        if let (Some(first), Some(last)) = (nodes.first(), nodes.last()) {
            walk.owned = walk.owned(first.range.start..last.range.end, false);
        }
        nodes.into_iter().for_each(|it| walk.inside(it));
        self.parted.has_doubts |= walk.has_doubts;
        walk.places
    }

    /// Splits a branch into parts that each repeat the condition. Returns true if it was split.
    pub(super) fn halves(&mut self, node: &Node, condition: &Range<usize>, then: &Node) -> bool {
        let What::Block(nodes) = &then.what else { return false };
        let is_bound = matches!(self.walk.indices.test(condition.clone()), Test::Bound { .. });
        if facts(node).returns
            || facts(node).jumps()
            || !is_bound
            || !self.is_repeatable(condition, &node.range)
        {
            return false;
        }
        let places = self.places_in([then], None);
        if places.is_empty()
            || nodes.iter().filter(|it| places.contains(&it.range.start)).count() < places.len()
        {
            return false;
        }
        // Locals that a later part uses are recomputed there, or declared before all parts.
        let is_used_later = |local: usize, at: usize| {
            let next = places.range(at + 1..).next().copied().unwrap_or(NONE);
            let mut uses = self.body.uses.iter().filter(|it| it.local == local);
            uses.any(|it| (next..node.range.end).contains(&it.at))
        };
        let (mut hoisted, mut again) = (String::new(), Vec::new());
        let mut edits = Vec::new();
        for inner in nodes {
            let What::Declaration(id) = inner.what else { continue };
            let local = &self.body.locals[id];
            let group = |it: &&Node| match it.what {
                What::Declaration(other) => {
                    self.body.locals[other].specifiers.start == local.specifiers.start
                }
                _ => false,
            };
            let mut all = nodes.iter().filter(group);
            let is_alone = all.clone().count() == 1;
            if !all.any(|it| matches!(it.what, What::Declaration(it) if is_used_later(it, inner.range.start))) {
                continue;
            }
            let is_value = local.init.start != NONE && local.is_assigned;
            if is_alone
                && is_value
                && self.body.is_fixed(id)
                && self.is_repeatable(&local.init, &node.range)
            {
                let words = local.specifiers.start..local.init.end;
                again.push((inner.range.start, format!("{}; ", self.lexemes.text(words))));
                continue;
            }
            let words = local.specifiers.clone().map(|it| self.lexemes.at(it));
            let words: Vec<&str> = words.filter(|it| *it != "const").collect();
            let is_number = words.iter().all(|it| is_type(it) || is_integer(it));
            let is_plain = local.declarator.len() == 1 && (is_value || local.init.start == NONE);
            if !is_number || !is_plain || local.hides {
                return false;
            }
            let _ = write!(hoisted, "{} {} = {{ }}; ", words.join(" "), local.name);
            if self.lexemes.before(local.declarator.start) != "," {
                edits.push(local.specifiers.clone());
            }
        }
        let test = self.lexemes.text(condition.clone());
        for &place in &places {
            let known = again.iter().filter(|it| it.0 < place).map(|it| it.1.as_str());
            let text = format!("}}{MEET} if ({test}) {{ {}", known.collect::<String>());
            let local = self.body.locals.iter().find(|it| it.declarator.start == place);
            self.insert(local.map_or(place, |it| it.specifiers.start), text);
        }
        edits.into_iter().for_each(|it| self.replace(it, ""));
        self.insert(node.range.start, format!("{{ {hoisted}"));
        self.append(node.range.end, " }".to_owned());
        true
    }
}
