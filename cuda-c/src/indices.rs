//! Rejects programs that write to `threadIdx` and the other indices.
//!
//! The indices are constants for the program, but variables for the loop over threads that increments them. A
//! text that may write to one is compiled a second time with constants in their place, only to get the
//! compiler's errors. Few texts need this, and it takes a fraction of the time of a full compilation.

use crate::tokens::{Kind, Tokens, edited};

const INDICES: [&str; 4] = ["threadIdx", "blockIdx", "blockDim", "gridDim"];

/// The prefix of the names of the constants.
const PREFIX: &str = "gpuarray_constant_index_";

/// Returns a unit's text with constants in place of the indices, for the compiler to check. Returns `None` if
/// all uses are plain reads.
pub fn constant_indices(unit: &str) -> Option<String> {
    if !INDICES.iter().any(|index| unit.contains(index)) {
        return None;
    }
    let tokens = Tokens::of(unit);
    let uses: Vec<usize> = (0..tokens.len()).filter(|&at| is_index(&tokens, at)).collect();
    let binds = has_references(&tokens);
    if !uses.iter().any(|&at| may_be_written(&tokens, at, binds)) {
        return None;
    }
    let first = (0..tokens.len()).find(|&at| tokens.is_of_program(at))?;
    let kinds = INDICES.iter().zip(["uint3", "uint3", "dim3", "dim3"]);
    let declared = kinds.map(|(index, kind)| format!("extern const {kind} {PREFIX}{index}; "));
    let declared = format!("extern \"C++\" {{ {}}} ", declared.collect::<String>());
    let insert = |at: usize, text: String| (tokens.all[at].start, tokens.all[at].start, text);
    let renamed = uses.into_iter().map(|at| insert(at, PREFIX.to_owned()));
    Some(edited(unit, [insert(first, declared)].into_iter().chain(renamed).collect()))
}

/// Returns the compiler's messages about the text of [`constant_indices`], with the program's names.
pub fn constant_indices_message(log: &str) -> String {
    log.replace(PREFIX, "")
        + "note: threadIdx, blockIdx, blockDim and gridDim are constant; a copy, uint3 t = threadIdx, can be written\n"
}

fn is_index(tokens: &Tokens<'_>, at: usize) -> bool {
    INDICES.contains(&tokens.at(at)) && tokens.is_of_program(at)
}

/// Returns true if the program may declare a reference, `type &name`. A binary `&` can look the same.
fn has_references(tokens: &Tokens<'_>) -> bool {
    (1..tokens.len()).any(|at| {
        tokens.at(at) == "&"
            && tokens.is_word(at + 1)
            && (tokens.is_word(at - 1) || matches!(tokens.at(at - 1), ">" | "&"))
            && tokens.is_of_program(at)
    })
}

/// Returns true for a use of an index that may be more than a read. `binds` is true if arguments may be bound
/// to references.
fn may_be_written(tokens: &Tokens<'_>, at: usize, binds: bool) -> bool {
    let mark = |index: usize| match tokens.all.get(index) {
        Some(token) if token.kind == Kind::Mark => tokens.at(index),
        _ => "",
    };
    let is_part = mark(at + 1) == "." && tokens.is_word(at + 2);
    let behind = if is_part { at + 3 } else { at + 1 };
    let next = if tokens.is_adjacent(behind) { mark(behind + 1) } else { "" };
    let is_assigned = match mark(behind) {
        "=" => next != "=",
        "+" | "-" => next == "=" || next == mark(behind),
        "*" | "/" | "%" | "&" | "|" | "^" => next == "=",
        "<" | ">" => next == mark(behind) && mark(behind + 2) == "=",
        _ => false,
    };
    let before = at.checked_sub(1).map_or("", mark);
    let second = at.checked_sub(2).filter(|&it| tokens.is_adjacent(it)).map_or("", mark);
    let is_stepped = matches!(before, "+" | "-") && second == before;
    // After a value, `&` is a binary operator.
    let is_behind_value = at >= 2 && (mark(at - 2).is_empty() || matches!(mark(at - 2), ")" | "]"));
    let is_addressed = before == "&" && !is_behind_value;
    let ends = matches!(mark(behind), "," | ")" | "}" | ";");
    let is_argument = binds
        && ends
        && (matches!(before, "(" | "," | "{") || tokens.at(at.saturating_sub(1)) == "return");
    let is_bound = before == "=" && ends && at >= 3 && mark(at - 3) == "&";
    let is_wrapped = before == "(" && mark(behind) == ")" && at >= 2 && !tokens.is_word(at - 2);
    is_assigned || is_stepped || is_addressed || is_argument || is_bound || is_wrapped
}

#[cfg(test)]
mod tests {
    use super::constant_indices;

    #[test]
    fn plain_reads_are_looked_through_once() {
        for (body, is_twice) in [
            ("a[threadIdx.x + blockIdx.x * blockDim.x] = threadIdx.x == 3;", false),
            (
                "int i = threadIdx.x, j = -threadIdx.y - -threadIdx.z; f(threadIdx.x, blockIdx);",
                false,
            ),
            (
                "uint3 t = threadIdx; dim3 d(blockDim); if (threadIdx.x & 1) a[0] = 3 & threadIdx.x;",
                false,
            ),
            ("const auto n = threadIdx.x; ++a[threadIdx.x]; b = a++ + threadIdx.x;", false),
            ("threadIdx.x = 3;", true),
            ("threadIdx = {1, 2, 3};", true),
            ("blockDim.y <<= 1;", true),
            ("++threadIdx.x;", true),
            ("gridDim.z--;", true),
            ("f(&threadIdx.x);", true),
            ("(threadIdx.x)++;", true),
            ("auto &t = threadIdx;", true),
            ("unsigned &x = threadIdx.x;", true),
            ("auto f = [](unsigned &x) { x = 3; }; f(threadIdx.x);", true),
        ] {
            let text = format!("# 1 \"k.cu\"\nvoid k(int *a) {{ {body} }}\n");
            assert_eq!(constant_indices(&text).is_some(), is_twice, "{body}");
        }
    }
}
