//! Replaces `throw` in files that a program includes: `throw X();` becomes `::cuda_c::thrown() = X();`, which ends
//! the launch. Libraries throw in functions for host and device; code for a device cannot.

use crate::tokens::Tokens;

/// Returns the replacements, in order.
pub(crate) fn edits(tokens: &Tokens<'_>) -> Vec<(usize, usize, String)> {
    let is_statement = |&at: &usize| {
        tokens.at(at) == "throw"
            && tokens.at(at + 1) != ";"
            && matches!(tokens.at(at.wrapping_sub(1)), ";" | "{" | "}" | "else" | ")")
            // `throw()` after a function says that it throws nothing.
            && (tokens.at(at + 1) != "(" || tokens.at(at + 2) != ")")
            && tokens.is_included(at)
    };
    let edit = |at: usize| {
        let token = &tokens.all[at];
        (token.start, token.end, "::cuda_c::thrown() = ".to_owned())
    };
    (0..tokens.len()).filter(is_statement).map(edit).collect()
}

#[cfg(test)]
mod tests {
    use super::edits;
    use crate::tokens::Tokens;

    #[test]
    fn exceptions_of_included_files_end_the_launch() {
        let own = "# 1 \"k.cu\"\n";
        let included = "# 1 \"k.cu\"\n# 1 \"x.h\" 1\n";
        for (before, text, count) in [
            (included, "void f() { if (x) throw bad(1); else throw bad(2); throw; }", 2),
            (included, "void f() throw(); void g() { x ? throw 1 : 2; }", 0),
            (own, "void f() { throw bad(1); }", 0),
        ] {
            assert_eq!(edits(&Tokens::of(&format!("{before}{text}\n"))).len(), count, "{text}");
        }
    }
}
