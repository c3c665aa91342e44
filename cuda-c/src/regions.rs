//! Generates the loop variant of a kernel: loops over the threads of a block between its barriers.
//!
//! Between two barriers the threads of a block may run in any order. A run of statements without a barrier,
//! called a *region*, therefore becomes a loop over the threads (a *thread loop*), which the compiler can
//! vectorise. A statement that contains a barrier stays around such loops and runs once per block; its
//! condition must be *uniform*, that is, have the same value in all threads of the block. The locals of the
//! kernel fall into three groups:
//!
//! - A uniform local becomes one variable of the block.
//! - A local that is a function of the thread's index is recomputed in each region.
//! - Any other local that lives across regions gets one array element per thread.
//!
//! For example, in the kernel `int t = threadIdx.x; float v = x[t]; s[t] = v; __syncthreads(); x[t] = v +
//! s[0];`, the local `t` is a function of the thread's index, and `v` lives across both regions. Its loop
//! variant consists of two loops, in simplified form:
//!
//! - `for (thread) { const int t = threadIdx.x; vs[thread] = x[t]; s[t] = vs[thread]; }`
//! - `for (thread) { const int t = threadIdx.x; x[t] = vs[thread] + s[0]; }`
//!
//! The variant is generated from the tokens of the preprocessed text and inserted after the kernel, which is
//! left unchanged:
//!
//! 1. [`statements`] parses the kernel. [`program`] has the meanings of names in the rest of the text.
//! 2. [`meetings`] inserts barriers where the kernel lets threads race.
//! 3. [`classes`] classifies the locals.
//! 4. [`layout`] divides the statements into regions.
//! 5. [`writer`] writes the variant.
//!
//! Some kernels are rewritten first, so that they can be read ([`mod@plain`]), or so that threads can meet in
//! the middle of a statement ([`mod@in_step`]).
//!
//! A kernel that is not fully understood gets no loop variant: for example if a name may stand for something
//! that waits, or if a type or a statement is not read with certainty. Values that are assumed to be uniform
//! are `const` inside the loops. If that assumption was wrong, the compiler rejects the variant, and the text
//! is compiled again without it.

mod access;
mod assigned;
mod classes;
mod expressions;
mod facts;
mod layout;
pub(crate) mod lexemes;
mod locals;
mod meetings;
mod plain;
mod program;
mod purity;
mod spins;
mod statements;
mod strides;
#[cfg(test)]
mod tests;
mod thread_rows;
mod types;
mod unread;
mod words;
mod writer;

use crate::tokens::{Tokens, edited};
use crate::tree::{Declared, Items, parts, without_value};
use classes::Context;
use lexemes::Lexemes;
use meetings::in_step;
use program::Names;
pub(crate) use program::Program;
use statements::What;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use writer::Writer;

pub(crate) use meetings::in_step::PARTED;

/// The prefix of the name of a loop variant. The name of the kernel follows it.
pub(crate) const PREFIX: &str = "gpuarray_regions_";

/// The statement inserted into a kernel at which its threads meet.
const MEETING: &str = " ::gpuarray_abi::together(); ";

/// The loop variants of a text's kernels.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// Texts to insert, each with the index of the token after which it is inserted.
    pub(crate) texts: Vec<(usize, String)>,
    names: HashSet<String>,
}

impl Forms {
    /// Returns the loop variants of the kernels in a text, and the places where threads meet because a kernel
    /// lets them race.
    ///
    /// Kernels named in `without` get no loop variant; if it is `None`, no kernel gets one.
    pub(crate) fn of<'a>(
        tokens: &Tokens<'a>,
        declared: &[Declared],
        program: &Program<'a>,
        without: Option<&HashSet<String>>,
    ) -> Forms {
        let mut forms = Forms::default();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let kernels = || declared.iter().filter(|it| it.is_kernel && it.body.is_some());
        for kernel in kernels() {
            *counts.entry(name(tokens, kernel)).or_default() += 1;
        }
        let has_form = |name: &str| {
            counts[name] == 1
                && !program.hides_waits
                && without.is_some_and(|names| !names.contains(name))
        };
        // If a thread may spin until another thread does something, a meeting could keep that other thread
        // from doing it.
        let names = (!spins::may_spin(tokens, declared)).then(|| Names::of(tokens, declared));
        let unread = |it: &Declared| {
            names.as_ref().map_or(Vec::new(), |names| unread::places(names, tokens, it))
        };
        let is_helper = |it: &&Declared| !it.is_kernel && !tokens.is_of_language(it.range.start);
        for helper in declared.iter().filter(is_helper) {
            forms.meet(&unread(helper));
        }
        for kernel in kernels() {
            let name = name(tokens, kernel);
            let Some(mut read) = read(tokens, kernel, program) else {
                forms.meet(&unread(kernel));
                continue;
            };
            let read_places = names.as_ref().and_then(|_| read.meet(program, true));
            let calls = names.as_ref().is_some_and(|names| read.words().any(|it| names.calls(it)));
            let others = if read_places.is_some() && !calls { Vec::new() } else { unread(kernel) };
            let form_of = |read: &Read<'_, '_>, places: &[usize]| {
                let is_known = others.iter().all(|it| places.contains(it));
                (has_form(name) && is_known).then(|| form(tokens, kernel, program, read)).flatten()
            };
            let (mut places, has_doubts) = read_places.unwrap_or_default();
            let mut text = form_of(&read, &places);
            // A doubtful meeting may be unnecessary. It is kept only if it costs no more than another loop,
            // or one more fibre switch.
            if has_doubts
                && text.is_none()
                && !read.words().any(|it| program.waits(it))
                && let Some(mut plain) = self::read(tokens, kernel, program)
            {
                places = plain.meet(program, false).unwrap_or_default().0;
                text = form_of(&plain, &places);
            }
            let new = others.into_iter().filter(|it| !places.contains(it));
            places.extend(new.collect::<Vec<_>>());
            forms.meet(&places);
            if let Some(text) = text {
                forms.texts.push((kernel.range.end - 1, text));
                forms.names.insert(name.to_owned());
            }
        }
        forms
    }

    fn meet(&mut self, places: &[usize]) {
        self.texts.extend(places.iter().map(|it| (it - 1, MEETING.to_owned())));
    }

    /// Returns true if every kernel of this name has a loop variant.
    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the expression that names the loop variant, given an expression that names the kernel.
    pub(crate) fn name_of(&self, kernel: &str) -> Option<String> {
        let template = kernel.find('<').unwrap_or(kernel.len());
        let qualified = kernel[..template].trim_end();
        let start = qualified.rfind("::").map_or(0, |it| it + 2);
        let own = qualified[start..].trim_start();
        let is_known = !own.is_empty() && self.names.contains(own);
        is_known.then(|| format!("{}{PREFIX}{own}{}", &kernel[..start], &kernel[template..]))
    }
}

/// Splits statements that both read and write elements which other threads write or read
/// (`meetings/in_step.rs`). On a GPU all threads execute such a statement in step.
///
/// Returns `None` if no statement is split. In a kernel without a loop variant, a doubtful statement
/// is left as it is.
pub(crate) fn in_step<'a>(
    tokens: &Tokens<'a>,
    declared: &[Declared],
    program: &Program<'a>,
    without: Option<&HashSet<String>>,
) -> Option<String> {
    if spins::may_spin(tokens, declared) {
        return None;
    }
    let is_pure = |it: &str| program.is_pure_function(it);
    let kernels = || declared.iter().filter(|it| it.is_kernel && it.body.is_some());
    let meets = |it: &str| meets(program, it);
    let shaped = kernels().filter_map(|kernel| {
        let read = read(tokens, kernel, program).filter(Read::may_meet)?;
        Some(in_step::shape(&read.lexemes, &read.body, &meets, &is_pure))
    });
    let shaped: Vec<_> = shaped.flatten().collect();
    if !shaped.is_empty() {
        return Some(edited(tokens.text, shaped));
    }
    let mut plain: HashSet<&str> = HashSet::new();
    loop {
        let (mut edits, mut doubts) = (Vec::new(), Vec::new());
        for kernel in kernels() {
            let name = name(tokens, kernel);
            let Some(read) = read(tokens, kernel, program) else { continue };
            if read.may_meet() {
                let doubted = !plain.contains(name);
                let Read { lexemes, body, .. } = &read;
                let parted = in_step::part(lexemes, body, &meets, &is_pure, doubted);
                edits.extend(parted.edits);
                doubts.extend(parted.has_doubts.then_some(name));
            }
        }
        if edits.is_empty() {
            return None;
        }
        let text = edited(tokens.text, edits);
        if doubts.is_empty() {
            return Some(text);
        }
        let parted = Tokens::of(&text);
        let declared = Items::of(&parted).all;
        let forms = Forms::of(&parted, &declared, &Program::of(&parted, &declared), without);
        let known = plain.len();
        plain.extend(doubts.into_iter().filter(|it| !forms.has(it)));
        if plain.len() == known {
            return Some(text);
        }
    }
}

/// Returns the text with its kernels simplified, so that more of them can be read, or `None` if nothing had to change.
pub(crate) fn plain<'a>(
    tokens: &Tokens<'a>,
    declared: &[Declared],
    program: &Program<'a>,
) -> Option<String> {
    let is_operator = |at: usize| tokens.at(at) == "," && tokens.at(at - 1) == "operator";
    let splits_commas = !(1..tokens.len()).any(is_operator);
    let by_name = !program.names_references();
    let kernels = declared.iter().filter(|it| it.is_kernel && it.body.is_some());
    let read = kernels.filter_map(|it| read_as(tokens, it, program, false)).filter(Read::may_meet);
    let edits = read.flat_map(|it| plain::edits(&it.lexemes, &it.body, by_name, splits_commas));
    let edits: Vec<_> = edits.collect();
    (!edits.is_empty()).then(|| edited(tokens.text, edits))
}

/// Returns the names of kernels whose loop variants a compiler's messages are about.
pub fn refused_variants(messages: &str) -> HashSet<String> {
    let is_end = |it: char| !(it.is_alphanumeric() || matches!(it, '_' | '$'));
    let names = messages.split(PREFIX).skip(1);
    names.map(|it| it.split(is_end).next().unwrap_or_default().to_owned()).collect()
}

/// Returns the word before a kernel's parameters. For a specialisation this is another token.
fn name<'a>(tokens: &Tokens<'a>, kernel: &Declared) -> &'a str {
    let Some(open) = kernel.parameters else { return "" };
    let mut at = open - 1;
    // For a specialisation, `name<...>`, use the name of the template.
    if tokens.at(at) == ">" {
        while at > kernel.range.start && tokens.at(at) != "<" {
            at -= 1;
        }
        at = at.saturating_sub(1);
    }
    tokens.at(at)
}

/// The statements of a kernel.
struct Read<'t, 'a> {
    lexemes: Lexemes<'t, 'a>,
    parameters: Range<usize>,
    body: statements::Body,
}

/// Reads a kernel. Returns `None` if any part of it is not read with certainty.
fn read<'t, 'a>(
    tokens: &'t Tokens<'a>,
    kernel: &Declared,
    program: &Program<'a>,
) -> Option<Read<'t, 'a>> {
    read_as(tokens, kernel, program, true)
}

/// Reads a function. If `is_plain` is false, it may still contain references and `auto` (see `plain`).
fn read_as<'t, 'a>(
    tokens: &'t Tokens<'a>,
    kernel: &Declared,
    program: &Program<'a>,
    is_plain: bool,
) -> Option<Read<'t, 'a>> {
    let (open, brace) = (kernel.parameters?, kernel.body?);
    let (close, end) = (tokens.partner(open)?, kernel.range.end);
    let lexemes = Lexemes::of(tokens, open..end)?;
    let (parameters, body) = (1..lexemes.partner(0)?, Lexemes::of(tokens, open..brace)?.len());
    let body = body + 1..lexemes.len() - 1;
    if close > brace {
        return None;
    }
    let takes_values = |it: &str| program.takes_values(it);
    let body = statements::read(&lexemes, parameters.clone(), body, &takes_values, is_plain)?;
    Some(Read { lexemes, parameters, body })
}

impl Read<'_, '_> {
    fn words(&self) -> impl Iterator<Item = &str> + Clone {
        let words = (0..self.lexemes.len()).filter(|&it| self.lexemes.is_word(it));
        words.map(|it| self.lexemes.at(it))
    }

    /// Returns false if the statements alone do not determine the kernel's accesses, as with `volatile` or
    /// inline PTX.
    fn may_meet(&self) -> bool {
        !self.words().any(|it| it.contains("volatile") || it.contains("asm"))
    }

    /// Inserts meetings where the kernel lets threads race; with `doubts`, also where it only may do so.
    ///
    /// Returns the tokens before which threads meet, and true if some meetings are doubtful. Returns `None`
    /// if the kernel's accesses cannot be read from its statements.
    fn meet(&mut self, program: &Program<'_>, doubts: bool) -> Option<(Vec<usize>, bool)> {
        if !self.may_meet() {
            return None;
        }
        let meets = |word: &str| meets(program, word);
        let (places, has_doubts) = meetings::place(&self.lexemes, &mut self.body, &meets, doubts);
        let lexemes = &self.lexemes;
        let first = |at: usize| {
            let declared = self.body.locals.iter().find(|it| it.declarator.start == at);
            let is_later = declared.is_some() && lexemes.before(at) == ",";
            (!is_later).then(|| declared.map_or(at, |it| it.specifiers.start))
        };
        let tokens = places.into_iter().filter_map(first).map(|it| lexemes.tokens_of(it).start);
        Some((tokens.collect(), has_doubts))
    }
}

/// Returns true for a function at which the threads of a block or a warp meet. Shuffles and votes do not
/// count: they order only the lanes of one warp.
fn meets(program: &Program<'_>, word: &str) -> bool {
    let is_of_lanes = |it| word.starts_with(it);
    let is_plain = !word.starts_with("__");
    word == "sync"
        || (program.waits(word)
            && (is_plain || ["__sync", "__barrier_sync"].into_iter().any(is_of_lanes)))
}

/// Returns the text of a kernel's loop variant.
fn form(
    tokens: &Tokens<'_>,
    kernel: &Declared,
    program: &Program<'_>,
    read: &Read<'_, '_>,
) -> Option<String> {
    let (open, end) = (kernel.parameters?, kernel.range.end);
    let name = tokens.at(open - 1);
    let header = kernel.range.start..open - 1;
    let has_class = header.clone().any(|it| matches!(tokens.at(it), "requires" | "operator"));
    if !tokens.is_word(open - 1) || tokens.at(open - 2) == "::" || has_class {
        return None;
    }
    let Read { lexemes, parameters, body: statements } = read;
    let (parameters, words) = (parameters.clone(), read.words());
    if words.clone().any(|it| it != "__syncthreads" && program.waits(it)) {
        return None;
    }
    let values = template_values(tokens, header.clone())?;
    let count = |of: fn(&What) -> bool| -> usize {
        statements.nodes.iter().map(|node| node.count(&of)).sum()
    };
    let barriers = words.clone().filter(|it| *it == "__syncthreads").count();
    if barriers != count(|it| matches!(it, What::Barrier)) {
        return None;
    }
    let keeps_order = program.has_order(words);
    let is_value = |name: &str, whole: bool| {
        values.iter().any(|it| it.name == name && (it.is_whole || !whole))
    };
    let context = Context {
        is_constant: &|it| is_value(it, false) || program.is_constant(it),
        is_whole_constant: &|it| is_value(it, true) || program.is_whole_constant(it),
        is_pure_function: &|it| program.is_pure_function(it),
        keeps_order,
        has_operators: program.has_operators,
    };
    let classes = classes::classes(lexemes, statements, &context)?;
    let layout = layout::layout(lexemes, statements, &classes)?;
    // Without barriers and rounds, the only gain is that threads skip statements together.
    let is_plain = barriers + count(|it| matches!(it, What::Meeting)) == 0;
    if is_plain && classes.strided.is_empty() && !layout.has_guards_alone() {
        return None;
    }
    let knows_no_thread = |it: &str| program.knows_no_thread(it);
    let mut writer = Writer::new(
        lexemes,
        statements,
        &classes,
        &layout,
        &knows_no_thread,
        program.asks_unseen(),
    );
    writer.body();
    let body = writer.text;
    let place = tokens.place(end - 1);
    let (file, line) = place.rsplit_once(':')?;
    // The line marker makes the compiler report messages about the loop variant as messages about an included
    // file.
    let mut text = format!("\n# 1 \"{PREFIX}{name}\" 1 3\n");
    for token in template_head(tokens, header) {
        let _ = write!(text, "{} ", tokens.at(token));
    }
    let _ = write!(
        text,
        "static __attribute__((__noinline__)) bool {PREFIX}{name}(const ::dim3 gridDim, \
         const ::dim3 blockDim, const ::uint3 blockIdx"
    );
    for part in lexemes.parts(parameters) {
        let end = lexemes.find(part.start, part.end, &["="]).unwrap_or(part.end);
        let words: Vec<&str> = (part.start..end).map(|it| lexemes.at(it)).collect();
        if words != ["void"] {
            let _ = write!(text, ", {}", words.join(" "));
        }
    }
    let _ = write!(text, ") {{\n# {line} \"{file}\" 1 3\n{body}}}\n");
    let _ = writeln!(text, "# 2 \"{PREFIX}{name}\" 2 3\n# {line} \"{file}\" 2");
    Some(text)
}

/// Returns the tokens `template <...>` at the head of a kernel. The range is empty if the kernel is not a
/// template.
fn template_head(tokens: &Tokens<'_>, header: Range<usize>) -> Range<usize> {
    let start = header.start;
    if tokens.at(start) != "template" {
        return start..start;
    }
    let behind = tokens.behind_angles(start + 1, header.end);
    start..behind.unwrap_or(start)
}

/// A non-type parameter of a template.
struct TemplateValue<'a> {
    name: &'a str,
    is_whole: bool,
}

/// Returns the non-type parameters of the template, or `None` if the template has parameters that are not
/// understood.
fn template_values<'a>(
    tokens: &Tokens<'a>,
    header: Range<usize>,
) -> Option<Vec<TemplateValue<'a>>> {
    let head = template_head(tokens, header);
    let mut values = Vec::new();
    if head.is_empty() {
        return Some(values);
    }
    let inner = head.start + 2..head.end - 1;
    let is_refused =
        |it: usize| matches!(tokens.at(it), "(" | "<" | ">" | "." | "&" | "template" | "{");
    if inner.is_empty() || inner.clone().any(is_refused) {
        return None;
    }
    for part in parts(tokens, inner) {
        let mut specifiers = without_value(tokens, part);
        let (first, last) = (specifiers.start, specifiers.next_back()?);
        if !matches!(tokens.at(first), "typename" | "class") {
            let is_whole = specifiers.all(|it| words::is_integer(tokens.at(it)));
            values.push(TemplateValue { name: tokens.at(last), is_whole });
        }
    }
    Some(values)
}
