//! Inserts meetings where a program lets threads race, relying on how a GPU runs them together.
//!
//! Programs omit barriers where all lanes of a warp read before one of them writes, or where the warps of a
//! GPU never drift far enough apart. In `float v = s[t + 1]; s[t] = v;`, for example, a thread reads the
//! element of its neighbour before the neighbour writes it.
//!
//! If threads ran one after another, they would read values that a later statement has written. A *meeting*
//! of the block is therefore inserted before a statement that conflicts with an earlier one since the last
//! barrier: both access an element, in different threads, and at least one of them writes. All threads that
//! can arrive do so before any continues. An additional barrier does not change the results of a correct
//! program.
//!
//! The pass walks over the statements and collects the accesses since the last barrier or meeting. The
//! branches of an `if` are read one after the other from the same state, and their accesses are joined. The
//! body of a loop is read twice, because the end of one iteration may conflict with the start of the next.
//!
//! Two accesses are to the same array if they name it, directly or through a pointer that is known to point
//! into it ([`aliases`]). Their indices tell which threads they share the element with ([`index`]). These
//! accesses count as shared between threads:
//!
//! - In shared memory, all accesses except those to the thread's own elements in both statements.
//! - In global memory, elements that several threads share, such as `x[0]`, or `x[row]` with `row = thread /
//!   32`.
//! - In global memory, if a meeting is cheap, elements that may belong to another thread, such as `x[n - 1 -
//!   thread]`.
//!
//! Work that one thread does alone, such as after `if (thread == 0)`, is treated as one statement. So is a
//! statement under a condition that reads memory.

mod aliases;
mod element;
pub(super) mod in_step;
mod index;
mod sums;
#[cfg(test)]
mod tests;

use super::access::{Access, Kind};
use super::facts::facts;
use super::lexemes::{Lexemes, NONE, is_assignment};
use super::statements::{Body, Node, What};
use super::words::{is_keyword, is_known_function};
use aliases::{Array, Arrays, may_be_one};
use index::{Indices, Test, may_differ};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use sums::{Index, Sum, are_ordered};

/// The certainty that threads access elements of other threads, from low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Race {
    /// The accessed elements may be different ones.
    Doubtful,
    /// Each thread has an element, and apparently reads the element of another thread.
    Sure,
    /// All threads read the same element.
    Common,
}

/// An access to an element of an array, or to a shared variable.
#[derive(Clone, Debug)]
struct ElementAccess {
    /// The lexeme of the name, and the range of the whole element.
    at: usize,
    range: Range<usize>,
    name: String,
    /// The array into which a pointer points, and the indices in that array.
    root: String,
    whole: Vec<Index>,
    is_shared: bool,
    kind: Kind,
    /// The indices between the brackets, and the members that are accessed.
    indices: Vec<Index>,
    members: String,
    /// The condition under which only one thread of the block, or of each warp, makes the access.
    alone: Option<String>,
}

/// The threads that run the statements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// All threads of the block.
    All,
    /// The threads whose index is within a bound.
    Some,
    /// Some lanes of the first warp.
    Lanes,
    /// The threads whose index is within a bound, in a list that may be split.
    Parts,
}

/// Inserts meetings before statements. Returns the first lexeme of each such statement, and true if a meeting
/// may be unnecessary.
///
/// Without `doubts`, only meetings that are certainly needed are inserted. `meets` returns true for functions
/// at which the threads of a block or a warp meet.
pub(super) fn place(
    lexemes: &Lexemes<'_, '_>,
    body: &mut Body,
    meets: &dyn Fn(&str) -> bool,
    doubts: bool,
) -> (Vec<usize>, bool) {
    let mut walk = Walk::new(lexemes, body, meets, doubts);
    walk.list(&body.nodes);
    let Walk { places, has_doubts, .. } = walk;
    if !places.is_empty() {
        insert(&mut body.nodes, &places);
    }
    (places.into_iter().collect(), has_doubts)
}

fn insert(nodes: &mut Vec<Node>, places: &BTreeSet<usize>) {
    for at in (0..nodes.len()).rev() {
        let start = nodes[at].range.start;
        inner(&mut nodes[at], places);
        if places.contains(&start) {
            nodes.insert(at, Node { what: What::Meeting, range: start..start });
        }
    }
}

fn inner(node: &mut Node, places: &BTreeSet<usize>) {
    match &mut node.what {
        What::Block(nodes) => insert(nodes, places),
        What::If { then, other, .. } => {
            inner(then, places);
            other.iter_mut().for_each(|it| inner(it, places));
        }
        What::Loop(it) => inner(&mut it.body, places),
        _ => {}
    }
}

/// The walk over the statements of a kernel, which finds the places of meetings.
pub(super) struct Walk<'w, 't, 'a> {
    pub(super) lexemes: &'w Lexemes<'t, 'a>,
    meets: &'w dyn Fn(&str) -> bool,
    body: &'w Body,
    indices: Indices<'w, 't, 'a>,
    /// The accesses since the last barrier or meeting.
    since: Vec<ElementAccess>,
    places: BTreeSet<usize>,
    /// `doubts` is true if doubtful races count; `has_doubts` is true if there were any.
    doubts: bool,
    has_doubts: bool,
    /// Arrays of which a thread writes exactly the elements that it reads. These elements are its own, like
    /// the pairs of a sorting network.
    owned: BTreeSet<String>,
    alone: Option<(String, Test)>,
    who: Who,
    /// The number of enclosing loops.
    loops: usize,
}

/// The loop depth up to which bodies are read twice. Deeper loops are read once.
const DEEPEST: usize = 4;
/// The maximum number of accesses that are compared between two barriers.
const MOST: usize = 100;

impl<'w, 't, 'a> Walk<'w, 't, 'a> {
    pub(super) fn new(
        lexemes: &'w Lexemes<'t, 'a>,
        body: &'w Body,
        meets: &'w dyn Fn(&str) -> bool,
        doubts: bool,
    ) -> Walk<'w, 't, 'a> {
        let mut walk = Walk {
            lexemes,
            meets,
            body,
            indices: Indices::of(lexemes, body),
            since: Vec::new(),
            places: BTreeSet::new(),
            doubts,
            has_doubts: false,
            owned: BTreeSet::new(),
            alone: None,
            who: Who::All,
            loops: 0,
        };
        walk.owned = walk.owned(0..lexemes.len(), true);
        walk
    }

    /// Returns the arrays whose elements a thread owns in a range. If all threads run it, only indices that
    /// are `spread` count: with `x[t]` and `x[n - 1 - t]`, each element belongs to two threads.
    fn owned(&self, range: Range<usize>, spread: bool) -> BTreeSet<String> {
        let mut arrays: HashMap<String, [BTreeSet<Vec<String>>; 2]> = HashMap::new();
        for it in self.accesses(range).into_iter().filter(|it| !(spread && it.is_shared)) {
            let is_spread = it.whole.iter().any(|it| it.is_free() || Sum::of(it).is_spread());
            // The index may have changed between two uses.
            let changes =
                it.whole.iter().any(|it| it.is_free() && it.open_locals().next().is_some());
            let element = it.whole.iter().map(Index::text).collect();
            let known = arrays.entry(it.root).or_default();
            if it.kind != Kind::Atomic && !changes && (is_spread || !spread) {
                known[usize::from(it.kind == Kind::Write)].insert(element);
            } else {
                known[0].insert(Vec::new());
            }
        }
        arrays.into_iter().filter(|(_, [read, write])| read == write).map(|it| it.0).collect()
    }

    fn list(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node, true);
        }
    }

    /// Reads the statements of a branch or a loop.
    fn inside(&mut self, node: &Node) {
        match &node.what {
            What::Block(nodes) => self.list(nodes),
            _ => self.node(node, false),
        }
    }

    /// Reads a statement. If `may_part` is true, a meeting can be inserted before it.
    fn node(&mut self, node: &Node, may_part: bool) {
        let whole = node.range.clone();
        match &node.what {
            What::Barrier | What::Meeting => self.since.clear(),
            What::Return | What::Break | What::Continue | What::Empty | What::Shared => {}
            What::Expression | What::Declaration(_) => {
                self.statement(whole.clone(), whole.start, may_part);
            }
            What::Block(nodes) => self.list(nodes),
            What::If { condition, then, other } => {
                let test = self.indices.test(condition.clone());
                let who = match test {
                    Test::Uniform => Some(self.who),
                    Test::Bound { is_of_lanes: true } => Some(Who::Lanes),
                    Test::Bound { .. } if self.who == Who::All => Some(Who::Some),
                    Test::Bound { .. } => Some(self.who),
                    _ if facts(node).waits => Some(self.who),
                    _ => None,
                };
                let Some(who) = who else {
                    return self.opaque(node, test, condition, may_part);
                };
                if !facts(node).waits {
                    self.part(whole.clone(), whole.start, may_part);
                }
                self.statement(condition.clone(), whole.start, may_part);
                let before = self.since.clone();
                let outer = std::mem::replace(&mut self.who, who);
                self.inside(then);
                let then = std::mem::replace(&mut self.since, before);
                if let Some(other) = other {
                    self.inside(other);
                }
                self.who = outer;
                self.add(then);
            }
            What::Loop(it) => {
                let is_common = self.indices.test(it.condition.clone()) == Test::Uniform;
                if !is_common && !facts(node).waits {
                    return self.statement(whole.clone(), whole.start, may_part);
                }
                if !facts(node).waits {
                    self.part(whole.clone(), whole.start, may_part);
                }
                for init in &it.init {
                    self.statement(init.range.clone(), whole.start, may_part);
                }
                self.statement(it.condition.clone(), whole.start, may_part);
                let before = self.since.clone();
                // Reads the body twice, so that accesses at the end of one iteration are compared with the
                // start of the next.
                self.loops += 1;
                for _ in 0..if self.loops > DEEPEST { 1 } else { 2 } {
                    self.inside(&it.body);
                    self.statement(it.step.clone(), whole.start, false);
                }
                self.loops -= 1;
                self.add(before);
            }
            What::Switch(_) => self.statement(whole.clone(), whole.start, may_part),
        }
    }

    /// Reads a branch as one statement.
    fn opaque(&mut self, node: &Node, test: Test, condition: &Range<usize>, may_part: bool) {
        let alone = (test == Test::One).then(|| self.indices.text(condition.clone()));
        let outer = self.alone.clone();
        if let Some(text) = alone {
            self.alone = Some((text, test));
        }
        self.statement(node.range.clone(), node.range.start, may_part);
        self.alone = outer;
    }

    /// Reads a part of the statement that begins at `start`.
    fn statement(&mut self, range: Range<usize>, start: usize, may_part: bool) {
        let accesses = self.part(range.clone(), start, may_part);
        let is_call = |it: &usize| self.lexemes.is_word(*it) && self.lexemes.at(it + 1) == "(";
        if range.filter(is_call).any(|it| (self.meets)(self.lexemes.at(it))) {
            return self.since.clear();
        }
        self.add(accesses);
    }

    /// Adds accesses to those since the last barrier.
    fn add(&mut self, accesses: Vec<ElementAccess>) {
        for access in accesses {
            let is_known = |it: &ElementAccess| (it.at, it.kind) == (access.at, access.kind);
            if self.since.len() < MOST && !self.since.iter().any(is_known) {
                self.since.push(access);
            }
        }
    }

    /// Inserts a meeting before a statement if it conflicts with an earlier one.
    fn part(&mut self, range: Range<usize>, start: usize, may_part: bool) -> Vec<ElementAccess> {
        let accesses = self.accesses(range);
        let pairs = accesses.iter().flat_map(|new| self.since.iter().map(move |old| (old, new)));
        let race = pairs.filter_map(|(old, new)| self.conflict(old, new)).max();
        if may_part && race.is_some_and(|it| self.doubts || it > Race::Doubtful) {
            self.has_doubts |= race == Some(Race::Doubtful);
            self.places.insert(start);
            self.since.clear();
        }
        accesses
    }

    /// Returns the kind of race if two threads may make these accesses to one element and one of them writes.
    ///
    /// Two accesses do not race if both read, or both are atomic; if the same single thread makes both; if
    /// they are to different members; or if the indices show that each thread has its own element, or its own
    /// slice of the array. In global memory, accesses to elements that are not common to several threads also
    /// do not race if both write, or if the element apparently belongs to one thread.
    fn conflict(&self, old: &ElementAccess, new: &ElementAccess) -> Option<Race> {
        let is_alike = matches!(old.kind, Kind::Read | Kind::Atomic) && old.kind == new.kind;
        let is_alone = old.alone.is_some()
            && old.alone == new.alone
            && (!self.indices.is_of_lanes(old.alone.as_deref()) || old.indices == new.indices);
        let [longer, shorter] = match old.members.len() < new.members.len() {
            true => [&new.members, &old.members],
            false => [&old.members, &new.members],
        };
        if !may_be_one(&old.name, &new.name)
            || !longer.starts_with(shorter.as_str())
            || is_alike
            || is_alone
            || self.indices.are_own(&old.indices, &new.indices, old.is_shared)
            || self.indices.are_of_slices(&old.indices, &new.indices)
        {
            return None;
        }
        let are_common = |it: &ElementAccess| self.indices.are_common(&it.indices);
        let is_free = |it: &ElementAccess| it.indices.iter().any(Index::is_free);
        let are_free = is_free(old) || is_free(new);
        let are_others = !are_free && may_differ(&old.indices, &new.indices);
        let is_unknown = !old.is_shared && (are_free || are_others);
        let both_write = old.kind != Kind::Read && new.kind != Kind::Read;
        if (are_common(old) || are_common(new)) && !is_unknown {
            return Some(Race::Common);
        }
        if !old.is_shared {
            let is_apart = both_write || are_others || self.is_own(old, new);
            let is_owned = self.owned.contains(&new.root);
            let counts = matches!(self.who, Who::All | Who::Parts) && !is_apart && !is_owned;
            return counts.then_some(Race::Doubtful);
        }
        let counts = match self.who {
            Who::Parts if self.owned.contains(&new.root) || self.is_own(old, new) => false,
            Who::All | Who::Parts => !both_write || old.kind != new.kind,
            // Otherwise each thread may own the elements that it reads and writes, like the pairs of a
            // sorting network.
            Who::Some => false,
            Who::Lanes => old.kind == Kind::Write && new.kind == Kind::Read,
        };
        counts.then_some(Race::Sure)
    }

    /// Returns true for accesses to global memory that apparently belong to one thread: the index is the same
    /// and has not changed, the element belongs to a thread with a higher number, or it is in another row.
    fn is_own(&self, old: &ElementAccess, new: &ElementAccess) -> bool {
        let stays = |id: usize| {
            let mut uses = self.body.uses.iter().filter(|it| it.local == id);
            // In a loop, a statement may run both before and after another one.
            let between = if old.at < new.at { old.at..new.at } else { 0..NONE };
            !uses.any(|it| it.access != Access::Read && between.contains(&it.at))
        };
        let is_one = old.indices == new.indices
            && old.indices.iter().flat_map(Index::open_locals).all(stays);
        is_one || are_ordered(&old.indices, &new.indices)
    }

    /// Returns the accesses to arrays and shared variables in a range.
    fn accesses(&self, range: Range<usize>) -> Vec<ElementAccess> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            if let Some(array) = self.array_at(at) {
                match self.is_passed(at) {
                    true if !array.is_shared || array.is_common() => {
                        self.any_element(at, array, &mut found);
                    }
                    true => {}
                    false => self.access(at, array, &mut found),
                }
            }
            at += 1;
        }
        found
    }

    /// Returns true if an array, or the address of an element, is passed to a function of the program.
    fn is_passed(&self, at: usize) -> bool {
        let lexemes = self.lexemes;
        let begins = |it: usize| matches!(lexemes.before(it), "," | "(");
        let is_bare = matches!(lexemes.at(at + 1), "," | ")" | "+") && begins(at);
        let is_address = lexemes.before(at) == "&" && begins(at - 1);
        let is_function = |open: usize| {
            let name = lexemes.before(open);
            lexemes.at(open) == "("
                && lexemes.is_word(open - 1)
                && !(is_keyword(name) || is_known_function(name) || name.starts_with("atomic"))
                && !(self.meets)(name)
        };
        (is_bare || is_address) && lexemes.opener(at).is_some_and(|it| it > 0 && is_function(it))
    }

    /// Adds the accesses of a function that may access any element. It is assumed only to read shared memory.
    fn any_element(&self, at: usize, array: Array, found: &mut Vec<ElementAccess>) {
        let Array { name, root, is_shared, .. } = array;
        let writes = !is_shared && self.may_write(at);
        let read = ElementAccess {
            at,
            range: at..at + 1,
            name,
            root,
            whole: vec![Index::unknown()],
            is_shared,
            kind: Kind::Read,
            indices: vec![Index::unknown()],
            members: String::new(),
            alone: self.alone.as_ref().map(|it| it.0.clone()),
        };
        let write = writes.then(|| ElementAccess { kind: Kind::Write, ..read.clone() });
        found.extend([read].into_iter().chain(write));
    }

    /// Returns true if the function may write to the array that it is passed: its parameter is not a pointer
    /// to `const`.
    fn may_write(&self, at: usize) -> bool {
        let (lexemes, tokens) = (self.lexemes, self.lexemes.tokens);
        let Some((open, close)) =
            lexemes.opener(at).and_then(|open| Some((open, lexemes.partner(open)?)))
        else {
            return true;
        };
        let arguments = lexemes.parts(open + 1..close);
        let number = arguments.iter().position(|it| it.contains(&at));
        let is_constant = |name: usize| -> Option<bool> {
            let close = tokens.partner(name + 1)?;
            let parameters = Lexemes::of(tokens, name + 1..close + 1)?;
            let parameter = parameters.parts(1..parameters.len() - 1).into_iter().nth(number?)?;
            Some(
                tokens.at(close + 1) == "{"
                    && parameter.clone().any(|it| parameters.at(it) == "const"),
            )
        };
        let is_function =
            |it: &usize| tokens.at(*it) == lexemes.before(open) && tokens.at(it + 1) == "(";
        let mut functions = (0..tokens.len()).filter(is_function);
        !functions.any(|it| is_constant(it).unwrap_or(false))
    }

    /// Adds the access to the element that is named at `at`: `x[i]`, `x[i].y`, `x->y`, `*x` or `*(x + i)`. A
    /// compound assignment, `++` or `--` adds a read and a write.
    fn access(&self, at: usize, array: Array, found: &mut Vec<ElementAccess>) {
        let lexemes = self.lexemes;
        let (mut behind, mut before, mut indices) = (at + 1, at, Vec::new());
        let mut name = array.name.clone();
        let Array { is_shared, is_pointer, .. } = array;
        while lexemes.at(behind) == "." && indices.is_empty() && lexemes.at(behind + 2) == "[" {
            name = format!("{name}.{}", lexemes.at(behind + 1));
            behind += 2;
        }
        while lexemes.at(behind) == "[" {
            let Some(close) = lexemes.partner(behind) else { return };
            indices.push(self.indices.index(behind + 1..close));
            behind = close + 1;
        }
        if indices.is_empty() && is_pointer && lexemes.at(behind) == "->" {
            indices.push(self.indices.zero());
        }
        let mut members = String::new();
        while matches!(lexemes.at(behind), "." | "->") && !indices.is_empty() {
            members = format!("{members}.{}", lexemes.at(behind + 1));
            behind += 2;
        }
        let is_behind_test = |close: usize| {
            let open = lexemes.partner(close).filter(|_| lexemes.at(close) == ")");
            open.is_some_and(|open| matches!(lexemes.before(open), "if" | "for" | "while"))
        };
        let is_value = |it: usize| self.is_local(it);
        let is_prefixed = |at: usize, operator: &str| {
            let has_operand = at > 1
                && lexemes.ends_operand(at - 2)
                && !is_behind_test(at - 2)
                && !lexemes.is_cast(at - 2, is_value);
            lexemes.before(at) == operator && !has_operand
        };
        let atomic = self.is_atomic_argument(at);
        if indices.is_empty() && is_pointer {
            // Handles `*p`, `*(p + i)`, and `p + i` as an argument of an atomic operation.
            let open = (lexemes.before(at) == "(").then(|| at - 1);
            let close = open.and_then(|it| lexemes.partner(it));
            if atomic {
                indices.push(Index::unknown());
            } else if is_prefixed(at, "*") && !matches!(lexemes.at(behind), "+" | "-") {
                before -= 1;
                indices.push(self.indices.zero());
            } else if let (Some(open), Some(close)) = (open, close)
                && is_prefixed(open, "*")
                && matches!(lexemes.at(behind), "+" | "-")
            {
                let is_sum = lexemes.at(behind) == "+";
                indices.push(self.indices.index(behind + usize::from(is_sum)..close));
                (before, behind) = (open - 1, close + 1);
            } else {
                return;
            }
        }
        if let Some((_, Test::One)) = &self.alone {
            indices.iter_mut().for_each(|it| self.indices.rename(it, self.alone.as_ref()));
        }
        let steps = |it: &str| matches!(it, "++" | "--");
        // `*p++` also changes the pointer.
        let is_walk = lexemes.at(before) == "*" && before + 1 == at && steps(lexemes.at(behind));
        let operator = lexemes.at(behind + usize::from(is_walk));
        let (whole, is_known) = array.whole(&indices);
        let root = if name == array.name { array.root } else { name.clone() };
        if is_known {
            (name, indices) = (root.clone(), whole.clone());
        }
        let access = ElementAccess {
            at,
            range: before..behind,
            name,
            root,
            whole,
            is_shared,
            kind: Kind::Read,
            indices,
            members,
            alone: self.alone.as_ref().map(|it| it.0.clone()),
        };
        let mut add = |kind| found.push(ElementAccess { kind, ..access.clone() });
        if atomic {
            return add(Kind::Atomic);
        }
        if is_prefixed(before, "&") {
            // A function may read and write the element.
            return;
        }
        let writes = is_assignment(operator) || steps(operator) || steps(lexemes.before(before));
        if !writes || operator != "=" {
            add(Kind::Read);
        }
        if writes {
            add(Kind::Write);
        }
    }

    pub(super) fn is_local(&self, at: usize) -> bool {
        self.body.used(at).is_some()
    }

    fn array_at(&self, at: usize) -> Option<Array> {
        let Walk { lexemes, body, indices, .. } = self;
        Arrays { lexemes, body, indices }.at(at)
    }

    /// Returns true inside the first argument of an atomic operation.
    fn is_atomic_argument(&self, at: usize) -> bool {
        let lexemes = self.lexemes;
        let mut inner = at;
        while let Some(open) = lexemes.opener(inner) {
            if lexemes.at(open) == "(" && lexemes.before(open).starts_with("atomic") {
                return lexemes.find(open + 1, at, &[","]).is_none();
            }
            inner = open;
        }
        false
    }
}
