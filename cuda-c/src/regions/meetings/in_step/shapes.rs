//! Rewrites statements so that they can be split. An `else` becomes a second `if`, a `switch` becomes a chain
//! of conditions, and a loop over more elements than threads runs in rounds of all threads. Only statements
//! in which threads race are rewritten.

use super::super::super::facts::facts;
use super::super::super::statements::{Loop, Node, What};
use super::super::index::Test;
use super::Parter;
use std::fmt::Write as _;
use std::ops::Range;

/// A case of a `switch`: its labels and statements.
struct Case<'n> {
    labels: Vec<&'n Node>,
    nodes: &'n [Node],
}

impl Parter<'_, '_, '_> {
    /// Rewrites statements that all threads reach.
    pub(super) fn shapes(&mut self, nodes: &[Node]) {
        nodes.iter().for_each(|it| self.shape(it));
    }

    fn shape(&mut self, node: &Node) {
        match &node.what {
            What::Block(nodes) => self.shapes(nodes),
            What::If { condition, then, other } => {
                let test = self.walk.indices.test(condition.clone());
                if test == Test::Uniform || facts(node).waits {
                    self.shape(then);
                    other.iter().for_each(|it| self.shape(it));
                } else if let (Test::Bound { .. }, Some(other)) = (test, other) {
                    self.other(node, condition, then, other);
                }
            }
            What::Loop(it) => {
                let test = self.walk.indices.test(it.condition.clone());
                match test == Test::Uniform || facts(node).waits {
                    true => self.shape(&it.body),
                    false => self.in_rounds(node, it),
                }
            }
            What::Switch(body) => {
                let (open, close) = (node.range.start + 1, body.range.start - 1);
                let condition = open + 1..close;
                let is_uniform = self.walk.indices.test(condition.clone()) == Test::Uniform;
                if is_uniform && !facts(node).waits && self.is_repeatable(&condition, &node.range) {
                    self.switch(node, &condition, body);
                }
            }
            _ => {}
        }
    }

    /// Rewrites `if (t < k) { ... } else { ... }` as two consecutive conditions.
    fn other(&mut self, node: &Node, condition: &Range<usize>, then: &Node, other: &Node) {
        if facts(node).returns
            || facts(node).jumps()
            || !self.is_repeatable(condition, &node.range)
            || self.places_in([then, other], None).is_empty()
        {
            return;
        }
        let negated = self.negated(condition);
        self.insert(node.range.start, "{".to_owned());
        self.replace(then.range.end..then.range.end + 1, &format!("if ({negated})"));
        self.append(node.range.end, " }".to_owned());
    }

    /// Rewrites a loop of several statements whose iterations are spread over the threads.
    fn in_rounds(&mut self, node: &Node, it: &Loop) {
        if !matches!(it.body.what, What::Block(_)) || facts(node).returns || facts(&it.body).jumps()
        {
            return;
        }
        let Some(rounds) = self.rounds(node, it) else { return };
        if self.places_in([&*it.body], Some(rounds.counted())).is_empty() {
            return;
        }
        let head = rounds.head(&format!("round_of_{}_{}", rounds.name, node.range.start), "");
        self.replace(node.range.start..it.step.end + 1, &head);
        self.append(node.range.end, " }".to_owned());
    }

    /// Rewrites a `switch` on a uniform value in which each case ends with `break`.
    fn switch(&mut self, node: &Node, condition: &Range<usize>, body: &Node) {
        let What::Block(nodes) = &body.what else { return };
        let Some(cases) = self.cases(nodes) else { return };
        let is_right =
            |it: &Case<'_>| self.places_of(it.nodes).is_empty() && !self.has_race(it.nodes);
        if cases.iter().all(is_right) {
            return;
        }
        let lexemes = self.lexemes;
        let test = lexemes.text(condition.clone());
        self.replace(node.range.start..body.range.start + 1, "{");
        for (number, Case { labels, nodes }) in cases.iter().enumerate() {
            let is_default = labels.iter().any(|it| lexemes.at(it.range.start) == "default");
            let mut text = if number > 0 { "else ".to_owned() } else { String::new() };
            if !is_default {
                let values = labels.iter().map(|it| {
                    format!("({test}) == ({})", lexemes.text(it.range.start + 1..it.range.end - 1))
                });
                let _ = write!(text, "if ({})", values.collect::<Vec<_>>().join(" || "));
            }
            for (number, label) in labels.iter().enumerate() {
                let first =
                    if number + 1 == labels.len() { format!("{text} {{") } else { String::new() };
                self.replace(label.range.clone(), &first);
            }
            let end = nodes.last().map_or(labels[labels.len() - 1].range.end, |it| it.range.end);
            match nodes.last() {
                Some(Node { what: What::Break, range }) => self.replace(range.clone(), "}"),
                last => {
                    if let Some(Node { what: What::Block(inner), .. }) = last
                        && let Some(Node { what: What::Break, range }) = inner.last()
                    {
                        self.replace(range.clone(), ";");
                    }
                    self.append(end, " }".to_owned());
                }
            }
        }
    }

    /// Returns the places of meetings in statements that all threads reach.
    fn places_of(&self, nodes: &[Node]) -> Vec<usize> {
        let mut walk = super::Walk::new(self.lexemes, self.body, self.walk.meets, self.doubts);
        walk.list(nodes);
        walk.places.into_iter().collect()
    }

    /// Returns true if a statement reads an element that another thread writes in the same statement.
    fn has_race(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match &node.what {
            What::Expression => self.assignment(&node.range).is_some_and(|assignment| {
                self.race(&node.range, &assignment, None, true).is_some()
            }),
            What::Block(nodes) => self.has_race(nodes),
            What::If { then, other, .. } => {
                let arms = [Some(then), other.as_ref()];
                arms.into_iter().flatten().any(|it| self.has_race(std::slice::from_ref(it)))
            }
            What::Loop(it) => self.has_race(std::slice::from_ref(&it.body)),
            _ => false,
        })
    }

    /// Returns the cases of a `switch`. Returns `None` if a case falls through, or has a `break` inside it.
    fn cases<'n>(&self, nodes: &'n [Node]) -> Option<Vec<Case<'n>>> {
        let is_label = |it: &Node| {
            matches!(it.what, What::Empty)
                && matches!(self.lexemes.at(it.range.start), "case" | "default")
        };
        let (mut cases, mut at) = (Vec::new(), 0);
        while at < nodes.len() {
            let first = at;
            at += nodes[at..].iter().take_while(|it| is_label(it)).count();
            let labels: Vec<&Node> = nodes[first..at].iter().collect();
            let count = nodes[at..].iter().take_while(|it| !is_label(it)).count();
            let inner = &nodes[at..at + count];
            at += count;
            let (last, others) = match inner {
                [others @ .., last] => (Some(last), others),
                [] => (None, inner),
            };
            let leaves = |it: &Node| facts(it).jumps() || facts(it).returns;
            let ends = match last.map(|it| &it.what) {
                Some(What::Break) => true,
                Some(What::Block(nodes)) => match &nodes[..] {
                    [others @ .., Node { what: What::Break, .. }] => !others.iter().any(leaves),
                    _ => at == nodes.len() && !nodes.iter().any(leaves),
                },
                _ => false,
            };
            // The last case may omit `break`.
            let ends = ends || (at == nodes.len() && !last.is_some_and(leaves));
            let is_default = labels.iter().any(|it| self.lexemes.at(it.range.start) == "default");
            // Later cases can use the names declared here.
            let declares = inner.iter().any(|it| matches!(it.what, What::Declaration(_)));
            if labels.is_empty()
                || !ends
                || (declares && at < nodes.len())
                || others.iter().any(leaves)
                || (is_default && at < nodes.len())
            {
                return None;
            }
            cases.push(Case { labels, nodes: inner });
        }
        Some(cases)
    }
}
