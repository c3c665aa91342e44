//! Finds how the statements of a generated kernel use its arrays. The kernel runs them for each element `i`.

use crate::dialects::code::{code_of, directives, words};
use crate::regions::lexemes::{Lexemes, is_assignment};
use crate::tokens::{Tokens, edited};
use std::collections::HashSet;

/// Stands for the `#` of directives, which [`Tokens`] does not keep.
const DIRECTIVE: &str = "@";
const INDICES: [&str; 5] = ["threadIdx", "blockIdx", "blockDim", "gridDim", "asm"];
const OF_LOOP: [&str; 6] = ["tid", "total_threads", "cta_start", "break", "return", "goto"];
/// The beginnings, after `__`, of the names of functions whose effects depend on the other threads.
const COOPERATION: &str = "shared sync shfl ballot match reduce activemask all any";

fn read<T>(text: &str, act: impl FnOnce(&Lexemes<'_, '_>) -> T) -> T {
    let code = code_of(text, false).replace('#', DIRECTIVE);
    let tokens = Tokens::of(&code);
    act(&Lexemes::of_any(&tokens, 0..tokens.len()))
}

/// Returns true if each use of an array's name in a text reads an element of it, or a member of one.
pub fn is_only_read(text: &str, name: &str) -> bool {
    read(text, |code| {
        (0..code.len()).filter(|&at| code.at(at) == name && !is_member(code, at)).all(|at| {
            let mut end = at + 1;
            while let Some(next) = match code.at(end) {
                "[" => code.partner(end).map(|it| it + 1),
                "." | "->" if code.is_word(end + 1) => Some(end + 2),
                _ => None,
            } {
                end = next;
            }
            let is_bound = at >= 3 && code.before(at) == "=" && code.at(at - 3) == "&";
            let escapes = is_bound || code.before(at) == "&" || matches!(code.at(end), "(" | "[");
            end > at + 1 && !escapes && !is_changed(code, at, end)
        })
    })
}

/// For an array: true if it is accessed as `name[i]`; true if it has other uses; and, if the statements allow
/// transfers of several neighbours at a time, whether they are loaded and whether they are stored.
pub type ArrayUses = (bool, bool, Option<(bool, bool)>);

/// Returns the uses of arrays. Each array is a pair: its name, and true if it is only read. The texts `others` are the
/// kernel's other statements and the compiler's options.
///
/// The first result is true if `i` and the indexed arrays are not used otherwise, so that elements may be visited in any
/// order. The second one is true if a store may come before another access. The last one has the statements with
/// `pygpu_name[pygpu_item]` in place of `name[i]`.
pub fn element_uses(
    arrays: &[(String, bool)],
    operation: &str,
    preamble: &str,
    others: &[String],
) -> (bool, bool, Vec<ArrayUses>, String) {
    let preamble = code_of(preamble, false);
    read(operation, |code| {
        let all: Vec<_> = arrays.iter().map(|(name, _)| accesses(code, name)).collect();
        let each = || all.iter().flatten().copied();
        let taken: HashSet<usize> = each().flat_map(|at| at..at + 4).collect();
        let rest = (0..code.len()).filter(|at| !taken.contains(at)).map(|at| code.at(at));
        let rest: HashSet<&str> = rest.collect();
        let names: HashSet<&str> = each().map(|at| code.at(at)).chain(["i"]).collect();
        let has = |text: &str, is: &dyn Fn(&str) -> bool| words(text).any(|it| is(&text[it]));
        // Raw strings, continued lines, and other spellings of marks.
        let unread = ["R\"", "\\\n", "\\\r", "%:", "<:", "??=", "??(", "??/"];
        let order_free = !unread.iter().any(|it| operation.contains(it))
            && !rest.contains(DIRECTIVE)
            && names.is_disjoint(&rest)
            && !defines_macros(&preamble)
            && !others.iter().any(|it| it.contains('#') || has(it, &|word| names.contains(word)));
        let cooperates = |word: &str| {
            let has_begin = |it: &str| COOPERATION.split(' ').any(|begin| it.starts_with(begin));
            INDICES.contains(&word) || word.strip_prefix("__").is_some_and(has_begin)
        };
        let is_of_grid = |word: &&str| {
            let is_builtin = ["__", "atomic", "const_cast"].iter().any(|it| word.starts_with(it));
            is_builtin || INDICES.contains(word) || OF_LOOP.contains(word)
        };
        let may_pack = order_free
            && code.tokens.text.len() <= 400
            && !rest.iter().any(is_of_grid)
            && !has(&preamble, &cooperates)
            && !(0..code.len()).any(|at| code.at(at).ends_with('&') && code.at(at + 1) == ")")
            && !each().any(|at| is_addressed(code, at));
        let uses = arrays.iter().zip(&all).map(|((name, is_constant), accesses)| {
            let is_indexed = !accesses.is_empty();
            let packed = || transfers(code, accesses, *is_constant);
            (is_indexed, rest.contains(name.as_str()), (may_pack && is_indexed).then(packed))
        });
        let uses: Vec<ArrayUses> = uses.collect();
        let stores = uses.iter().filter(|it| it.2.is_some_and(|(_, stores)| stores)).count();
        // A single assignment reads everything before it stores.
        let last = (0..code.len()).rev().find(|&at| code.at(at) != ";").unwrap_or(0);
        let is_sequence = stores > 1 || (0..last).any(|at| matches!(code.at(at), ";" | "{"));
        let item = |at| code.replacement(at..at + 4, &format!("pygpu_{}[pygpu_item]", code.at(at)));
        (order_free, is_sequence, uses, edited(operation, each().map(item).collect()))
    })
}

/// Returns the places of `name[i]`, each four lexemes, except for members of structures.
fn accesses(code: &Lexemes<'_, '_>, name: &str) -> Vec<usize> {
    let lexemes = [name, "[", "i", "]"];
    let is_access = |at: &usize| (0..4).all(|step| code.at(at + step) == lexemes[step]);
    (0..code.len()).filter(is_access).filter(|&at| !is_member(code, at)).collect()
}

fn is_member(code: &Lexemes<'_, '_>, at: usize) -> bool {
    matches!(code.before(at), "." | "->" | "::")
}

fn is_changed(code: &Lexemes<'_, '_>, start: usize, end: usize) -> bool {
    let steps = |it: &str| matches!(it, "++" | "--");
    steps(code.before(start)) || steps(code.at(end)) || is_assignment(code.at(end))
}

/// Returns true if directives may define macros, which may stand for `i` and arrays.
fn defines_macros(code: &str) -> bool {
    let plain = ["pragma", "if", "el", "endif", "line", "error"];
    let mut unknown = directives(code).filter(|it| !plain.iter().any(|is| it.name.starts_with(is)));
    let is_file = |rest: &str| rest.trim_start().starts_with('<');
    code.contains("%:") || unknown.any(|it| it.name != "include" || !is_file(it.rest))
}

/// Returns true if the address of an element is taken, by which its neighbours can be accessed.
fn is_addressed(code: &Lexemes<'_, '_>, access: usize) -> bool {
    let outside = (0..access).rev().find(|&at| code.at(at) != "(");
    let operand = |at: usize| code.is_word(at) || code.is_literal(at) || code.at(at) == "]";
    outside.is_some_and(|at| code.at(at) == "&" && (at == 0 || !operand(at - 1)))
}

/// Returns whether an array is loaded, and whether it is stored.
fn transfers(code: &Lexemes<'_, '_>, accesses: &[usize], is_constant: bool) -> (bool, bool) {
    let is_part = |at: usize| matches!(code.at(at), "." | "->" | "[");
    let changes = |&at: &usize| is_changed(code, at, at + 4) || is_part(at + 4);
    if is_constant || !accesses.iter().any(changes) {
        return (true, false);
    }
    // An array is not loaded if its first statement always assigns it.
    let first = accesses[0];
    let is_skipped = (0..first).any(|at| code.at(at) == "continue");
    let is_statement = code.opener(first).is_none() && matches!(code.before(first), "" | ";");
    let end = code.find(first, code.len(), &[";"]).unwrap_or(code.len());
    let is_alone = accesses.get(1).is_none_or(|&next| next > end);
    let is_assigned = is_statement && is_alone && code.at(first + 4) == "=";
    (is_skipped || !is_assigned, true)
}
