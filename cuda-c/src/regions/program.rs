//! The meanings of a program's names, as far as loop variants depend on them: which functions wait for other
//! threads, which are pure, which names are constants, and whether threads may communicate without barriers.
//!
//! Functions that wait are found transitively: a function waits if it names a function that waits. They are
//! matched by name. If something that waits may be reached without its name, such as through a pointer to a
//! function, a class or an operator, no kernel gets a loop variant.

use super::words::{is_keyword, is_known_function};
use crate::ptx;
use crate::tokens::Tokens;
use crate::tree::{Declared, Function};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Prefixes of the language's functions in which a thread waits for other threads.
const WAITS: [&str; 17] = [
    "__syncthreads",
    "__syncwarp",
    "__barrier_sync",
    "__builtin_amdgcn_wave_barrier",
    "__shfl",
    "__ballot",
    "__any",
    "__all",
    "__uni_sync",
    "__activemask",
    "__match_",
    "__reduce_",
    "__nanosleep",
    "__mbarrier_",
    "cooperative_groups",
    "cuda_c",
    "gpuarray_",
];
/// The executor's functions in which a thread waits, by their full name.
const EXECUTOR: [&str; 3] = ["barrier", "rendezvous", "grid_barrier"];

/// Returns true for a function of the language or the executor in which a thread waits for others.
pub(super) fn waits(word: &str) -> bool {
    // `assert` and similar macros expand to `gpuarray_abi::trap`.
    word != "gpuarray_abi"
        && (WAITS.iter().any(|it| word.starts_with(it)) || EXECUTOR.contains(&word))
}

/// The names that a program declares, including its headers but without the headers of the language.
#[derive(Debug, Default)]
pub(crate) struct Program<'a> {
    /// The functions in which a thread waits for others.
    waiting: HashSet<&'a str>,
    /// The namespaces with such functions.
    namespaces: HashSet<&'a str>,
    /// True if something that waits cannot be recognised by a name. Then no kernel has a loop variant.
    pub(super) hides_waits: bool,
    /// The functions; true if all overloads of the name take only values and pointers.
    functions: HashMap<&'a str, bool>,
    /// The constants; true if the constant is an integer.
    constants: HashMap<&'a str, bool>,
    /// Names that are declared somewhere and may hide the language's names.
    names: HashSet<&'a str>,
    /// True if code outside of kernels reads the thread's index, or may do so without naming it.
    asks_for_thread: bool,
    /// True if the program defines operators.
    pub(super) has_operators: bool,
    /// True if the name of a type may stand for a reference.
    names_references: bool,
    /// True if code outside of kernels names the thread's index, or the executor, which receives the index.
    names_thread: bool,
    /// True if the program has classes or operators, whose functions are called without being named.
    calls_unseen: bool,
    /// True if code outside of kernels uses atomics, fences, volatile accesses or inline PTX.
    has_order: bool,
}

/// Returns true for a word by which threads may communicate without a barrier.
pub(super) fn orders(word: &str) -> bool {
    let part = |it: &&str| word.contains(it);
    ["atomic", "Atomic", "volatile", "fence", "asm"].iter().any(part)
}

impl<'a> Program<'a> {
    pub(crate) fn of(tokens: &Tokens<'a>, declared: &[Declared]) -> Program<'a> {
        let own: Vec<&Declared> =
            declared.iter().filter(|it| !tokens.is_of_language(it.range.start)).collect();
        let mut program = Program::default();
        for declaration in &own {
            program.add(tokens, declaration);
        }
        let mut left = own.clone();
        loop {
            let (waiting, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|it| program.has_waiting(tokens, it.range.clone()));
            for declaration in &waiting {
                program.add_waiting(tokens, declaration);
            }
            left = others;
            if waiting.is_empty() {
                break;
            }
        }
        // A function that is named without being called, such as by a pointer to it, may be called anywhere.
        let mut words = own.iter().flat_map(|it| it.range.clone()).filter(|&it| tokens.is_word(it));
        program.hides_waits |= words.any(|at| {
            let word = tokens.at(at);
            let is_function =
                program.waiting.contains(word) || (waits(word) && word.starts_with("__"));
            is_function && !is_called(tokens, at)
        });
        program
    }

    /// Records the names, functions and constants of a declaration.
    fn add(&mut self, tokens: &Tokens<'a>, declared: &Declared) {
        let words =
            || declared.range.clone().filter(|&it| tokens.is_word(it)).map(|it| tokens.at(it));
        for at in declared.range.clone().skip(1).filter(|&it| tokens.is_word(it)) {
            let before = tokens.at(at - 1);
            if before == ">"
                || super::words::is_type(before)
                || (tokens.is_word(at - 1) && !is_keyword(before))
            {
                self.names.insert(tokens.at(at));
            }
        }
        if !declared.is_kernel {
            self.asks_for_thread |= words().any(|it| it == "threadIdx" || it == "operator");
            self.has_order |= words().any(orders);
            self.names_thread |=
                words().any(|it| matches!(it, "threadIdx" | "gpuarray_abi" | "__trap"));
            self.has_operators |= words().any(|it| it == "operator");
            self.calls_unseen |=
                words().any(|it| matches!(it, "operator" | "struct" | "class" | "union"));
        }
        self.names_references |= declared.range.clone().any(|it| {
            matches!(tokens.at(it), "using" | "typedef")
                && (it..declared.range.end).take_while(|&at| tokens.at(at) != ";").any(|at| {
                    matches!(tokens.at(at), "&" | "decltype" | "type" | "add_lvalue_reference")
                })
        });
        match name(tokens, declared) {
            Some((name, open)) => {
                let close = tokens.partner(open).unwrap_or(open);
                let takes_values = (open..close).all(|it| tokens.at(it) != "&");
                *self.functions.entry(name).or_insert(true) &= takes_values;
                self.hides_waits |= waits(name);
            }
            None => self.add_constant(tokens, declared.range.clone()),
        }
    }

    /// Records a constant, `static const int name = ...;`.
    fn add_constant(&mut self, tokens: &Tokens<'a>, range: Range<usize>) {
        let qualifiers = ["static", "inline", "const", "constexpr"];
        let of_device = ["__gpuarray_variable__", "__gpuarray_constant__"];
        let is_whole = |word: &str| {
            qualifiers.contains(&word)
                || of_device.contains(&word)
                || super::words::is_integer(word)
        };
        let is_number = |word: &str| is_whole(word) || is_keyword(word);
        let Some(equals) = range.clone().find(|&it| tokens.at(it) == "=") else { return };
        let Some(at) = equals.checked_sub(1).filter(|it| range.contains(it)) else { return };
        let mut specifiers = range.start..at;
        let is_const = specifiers.clone().any(|it| matches!(tokens.at(it), "const" | "constexpr"));
        let has_more = (equals..range.end).any(|it| tokens.at(it) == ",");
        if is_const && !has_more && specifiers.clone().all(|it| is_number(tokens.at(it))) {
            let is_whole = specifiers.all(|it| is_whole(tokens.at(it)));
            self.constants.insert(tokens.at(at), is_whole);
        }
    }

    /// Returns true if a declaration names something that waits, or uses inline PTX.
    fn has_waiting(&self, tokens: &Tokens<'a>, mut range: Range<usize>) -> bool {
        // Inline PTX may contain barriers and read the thread's index.
        range.any(|it| {
            tokens.is_word(it) && (self.waits(tokens.at(it)) || ptx::is_statement(tokens, it))
        })
    }

    /// Records a declaration that contains something that waits.
    fn add_waiting(&mut self, tokens: &Tokens<'a>, declared: &Declared) {
        let first = declared.range.start;
        match name(tokens, declared) {
            // Kernels are not called by other functions.
            Some(_) if declared.is_kernel => {}
            Some((name, _)) => {
                self.waiting.insert(name);
            }
            // A namespace alias.
            None if tokens.at(first) == "namespace" && tokens.at(first + 2) == "=" => {
                self.namespaces.insert(tokens.at(first + 1));
            }
            // Classes, operators, and variables whose initialiser contains functions.
            None => self.hides_waits = true,
        }
    }

    /// Returns true for a name by which a thread may wait for others.
    pub(super) fn waits(&self, word: &str) -> bool {
        waits(word) || self.waiting.contains(word) || self.namespaces.contains(word)
    }

    pub(super) fn is_constant(&self, word: &str) -> bool {
        self.constants.contains_key(word)
    }

    pub(super) fn is_whole_constant(&self, word: &str) -> bool {
        self.constants.get(word).is_some_and(|&it| it)
    }

    /// Returns true for functions of the language whose result depends only on their arguments.
    pub(super) fn is_pure_function(&self, word: &str) -> bool {
        is_known_function(word) && !self.names.contains(word) && !self.functions.contains_key(word)
    }

    /// Returns true for functions whose parameters are never references.
    pub(super) fn takes_values(&self, word: &str) -> bool {
        let of_language = || self.is_pure_function(word);
        self.functions.get(word).map_or_else(of_language, |&it| it && !self.names_references)
    }

    /// Returns true if the name of a type may stand for a reference.
    pub(super) fn names_references(&self) -> bool {
        self.names_references
    }

    /// Returns true for functions that do not read the thread's index.
    pub(super) fn knows_no_thread(&self, word: &str) -> bool {
        !self.asks_for_thread
            && (is_keyword(word) || super::words::is_integer(word) || self.is_pure_function(word))
    }

    /// Returns true if a statement may read the thread's index even though it names no function.
    pub(super) fn asks_unseen(&self) -> bool {
        self.names_thread && self.calls_unseen
    }

    /// Returns true if the words of a kernel, or the functions that it may call, use atomics, fences or
    /// volatile accesses.
    pub(super) fn has_order<'w>(&self, mut words: impl Iterator<Item = &'w str>) -> bool {
        self.has_order || words.any(orders)
    }
}

/// Returns true if a function name is followed by a call, possibly after template arguments.
fn is_called(tokens: &Tokens<'_>, at: usize) -> bool {
    let mut behind = at + 1;
    if tokens.at(behind) == "<" {
        while !matches!(tokens.at(behind), ">" | ";" | "{" | "(" | "") {
            behind += 1;
        }
        behind += 1;
    }
    tokens.at(behind) == "("
}

/// Returns the name of a function that is neither a member nor an operator, and the index of its parameter
/// list.
fn name<'a>(tokens: &Tokens<'a>, declared: &Declared) -> Option<(&'a str, usize)> {
    let open = declared.parameters?;
    let mut before = declared.range.start..open;
    let is_plain = open > declared.range.start
        && tokens.is_word(open - 1)
        && !is_keyword(tokens.at(open - 1))
        && (open < 2 || tokens.at(open - 2) != "::")
        && before.all(|it| !matches!(tokens.at(it), "operator" | "=" | "{"));
    is_plain.then(|| (tokens.at(open - 1), open))
}

/// The functions in which the threads of a block meet, and the shared memory declared outside of functions.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    meeting: HashSet<&'a str>,
    /// Shared memory by name; true for a single variable.
    pub(super) shared: HashMap<&'a str, bool>,
}

/// Returns true for functions of the language at which the threads of a block meet.
pub(super) fn meets_block(word: &str) -> bool {
    word == "sync" || ["__syncthreads", "__barrier_sync"].into_iter().any(|it| word.starts_with(it))
}

/// Returns the parameter list and body of each function in a declaration, including member functions and
/// lambdas.
pub(super) fn functions(tokens: &Tokens<'_>, declared: &Declared) -> Vec<(usize, usize)> {
    if let (Some(open), Some(brace)) = (declared.parameters, declared.body) {
        return vec![(open, brace)];
    }
    let (mut found, mut at) = (Vec::new(), declared.range.start);
    while at < declared.range.end {
        if tokens.at(at) == "{"
            && let Some(open) = Function::of(tokens, at).and_then(|it| it.parameters)
        {
            found.push((open, at));
            at = tokens.partner(at).unwrap_or(at);
        }
        at += 1;
    }
    found
}

impl<'a> Names<'a> {
    pub(super) fn of(tokens: &Tokens<'a>, declared: &[Declared]) -> Names<'a> {
        let own = || declared.iter().filter(|it| !tokens.is_of_language(it.range.start));
        let mut names = Names::default();
        for it in own().filter(|it| it.body.is_none()) {
            let mut range = it.range.clone();
            if range.any(|at| tokens.at(at) == "thread_local") {
                let end = range.find(|&at| matches!(tokens.at(at), "[" | ";"));
                names.shared.extend(end.map(|at| (tokens.at(at - 1), tokens.at(at) == ";")));
            }
        }
        let of_functions = own()
            .filter(|it| !it.is_kernel)
            .flat_map(|it| functions(tokens, it))
            .map(|(open, brace)| (tokens.at(open - 1), brace));
        // Finds lambdas such as `auto name = [...](...) {`.
        let all = own().flat_map(|it| it.range.clone()).filter(|&at| tokens.at(at) == "=");
        let of_lambdas = all.filter(|at| tokens.at(at + 1) == "[").filter_map(|at| {
            let brace = (tokens.partner(at + 1)?..tokens.len()).find(|&it| tokens.at(it) == "{")?;
            Some((tokens.at(at - 1), brace))
        });
        let bodies: Vec<(&str, usize)> = of_functions.chain(of_lambdas).collect();
        loop {
            let before = names.meeting.len();
            for &(name, brace) in &bodies {
                let mut inner = brace..tokens.partner(brace).unwrap_or(brace);
                if !names.meeting.contains(name) && inner.any(|at| names.meets(tokens.at(at))) {
                    names.meeting.insert(name);
                }
            }
            if names.meeting.len() == before {
                return names;
            }
        }
    }

    pub(super) fn meets(&self, word: &str) -> bool {
        meets_block(word) || self.meeting.contains(word)
    }

    /// Returns true for functions of the program in which the threads of a block meet.
    pub(super) fn calls(&self, word: &str) -> bool {
        self.meeting.contains(word)
    }
}
