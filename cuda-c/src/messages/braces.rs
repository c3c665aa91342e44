//! Locates unmatched braces in a program.

use crate::tokens::{Kind, Tokens};

/// The qualifiers with which a kernel, or a function or variable of the device, begins in a preprocessed
/// text.
const QUALIFIERS: [&str; 2] = ["__gpuarray_global__", "__gpuarray_variable__"];

/// Returns the location of the brace that is not closed.
pub(super) fn unclosed(tokens: &Tokens<'_>) -> Option<String> {
    let mut open: Vec<usize> = Vec::new();
    let mut last = None;
    // The first opening brace whose closing brace has a different indentation than its line.
    let mut astray = None;
    // The declaration inside which another one begins, as long as nothing but closing braces follows its end.
    let mut interrupted = None;
    let mut is_ended = false;
    for at in (0..tokens.len()).filter(|&at| tokens.is_of_program(at)) {
        match brace(tokens, at) {
            Some(true) => open.push(at),
            Some(false) => {
                last = open.pop();
                astray = astray.or_else(|| last.filter(|&it| !is_aligned(tokens, it, at)));
                is_ended |= last.is_some() && last == interrupted;
                continue;
            }
            None if interrupted.is_none() && is_new_declaration(tokens, at, &open) => {
                interrupted = open.iter().copied().find(|&it| !tokens.is_of_scope(it));
            }
            None => {}
        }
        if is_ended {
            (interrupted, is_ended) = (None, false);
        }
    }
    let first = *open.first()?;
    let brace = match (interrupted, open.get(1)) {
        (Some(interrupted), _) => interrupted,
        // Only linkage blocks are open, so one of their closing braces closed the misaligned block.
        _ if astray.is_some() && open.iter().all(|&it| tokens.is_of_linkage(it)) => astray?,
        (None, Some(&inner)) if tokens.is_of_linkage(first) => inner,
        // The last brace was meant to close the wrapper.
        (None, None) if is_of_wrapper(tokens, first) => last.unwrap_or(first),
        _ => first,
    };
    Some(tokens.position(brace))
}

/// Returns the location of the first closing brace without an opening one. If the brace before it closed the
/// wrapper, returns that one.
pub(super) fn unopened(tokens: &Tokens<'_>) -> Option<String> {
    let (mut open, mut of_wrapper) = (Vec::new(), None);
    for at in (0..tokens.len()).filter(|&at| tokens.is_of_program(at)) {
        match brace(tokens, at) {
            Some(true) => open.push(at),
            Some(false) => {
                let Some(first) = open.pop() else {
                    return Some(tokens.position(of_wrapper.unwrap_or(at)));
                };
                if is_of_wrapper(tokens, first) {
                    of_wrapper = Some(at);
                }
            }
            None => {}
        }
    }
    None
}

/// Returns true for an opening brace, false for a closing one.
fn brace(tokens: &Tokens<'_>, at: usize) -> Option<bool> {
    match tokens.at(at) {
        "{" => Some(true),
        "}" => Some(false),
        _ => None,
    }
}

/// Returns false for a closing brace at the start of a line whose indentation differs from the line of its
/// opening brace.
fn is_aligned(tokens: &Tokens<'_>, open: usize, close: usize) -> bool {
    let line = |at: usize| {
        let before = &tokens.text[..tokens.all[at].start];
        &before[before.rfind('\n').map_or(0, |it| it + 1)..]
    };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let closing = line(close);
    let is_first = closing.trim_start().is_empty();
    !is_first || indent(line(open)) == indent(closing)
}

/// Returns true for a qualifier that cannot appear inside the open braces: kernels cannot be in classes or
/// functions, and device functions cannot be in functions.
fn is_new_declaration(tokens: &Tokens<'_>, at: usize, open: &[usize]) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    // A qualifier may also follow the `[]` or the parameters of a lambda.
    let begins = matches!(tokens.at(before), ";" | "{" | "}" | ">" | "static" | "inline")
        || tokens.all[before].kind == Kind::Literal;
    begins
        && QUALIFIERS.contains(&tokens.at(at))
        && (tokens.at(at) == QUALIFIERS[0]
            || open.last().is_some_and(|&it| !tokens.is_of_class(it)))
}

/// Returns true for an `extern "C" {` that encloses the whole program, whose lines are counted from there.
fn is_of_wrapper(tokens: &Tokens<'_>, brace: usize) -> bool {
    tokens.is_of_linkage(brace) && tokens.is_begun_behind(brace)
}

#[cfg(test)]
mod tests {
    use super::{unclosed, unopened};
    use crate::tokens::Tokens;

    const BEGIN: &str = "# 1 \"k.cu\"\n";
    const WRAPPER: &str = "# 1 \"k.cu\"\n\nextern \"C\" {\n# 1 \"k.cu\"\n";
    const HEADER: &str = "# 1 \"language/x.h\" 1 3\nextern \"C++\" { int a(); }\n# 1 \"k.cu\" 2\n";
    const KERNEL: &str = "__gpuarray_global__ void k(int *o) {\n if (o[0]) {\n o[0] = 1;\n}\n";
    const LAST: &str = "__gpuarray_global__ void k(int *o) {\n  if (o[0]) {\n    o[0] = 1;\n}\n";
    const FUNCTION: &str = "__gpuarray_variable__ int f() {\n return 1;\n}\n";

    #[test]
    fn the_brace_too_many_is_the_programs() {
        for (begin, text, line) in [
            (BEGIN, "void k() {}\n}\n", 2),
            (BEGIN, "extern \"C\" { void k() {}\n}\n\n}\n", 4),
            (BEGIN, "extern \"C\" {\nint f();\n}\nvoid k() {\n}\n}\n", 6),
            (WRAPPER, "void k() {}\n}\n\n}\n", 2),
            (WRAPPER, "extern \"C\" {\nint f();\n}\nvoid k() {\n}\n}\nint g();\n}\n", 6),
        ] {
            for header in ["", HEADER] {
                let text = format!("{header}{begin}{text}");
                let expected = format!("k.cu:{line}:");
                let found = unopened(&Tokens::of(&text)).unwrap_or_default();
                assert!(found.starts_with(&expected), "{text}: {found}");
            }
        }
        let of_header = format!("{BEGIN}# 1 \"/x.h\" 1 3\n}}\n");
        assert_eq!(unopened(&Tokens::of(&of_header)), None);
    }

    #[test]
    fn the_brace_without_an_end_is_that_of_a_declaration_in_which_another_one_begins() {
        let class = "struct S {\n__gpuarray_variable__ int f() { return 1; }\n";
        let lambda = "void l() {\nauto f = [] __gpuarray_variable__ (int) {};\n}\n";
        for (begin, text, line) in [
            (BEGIN, "\n\nvoid k() { if (1) { }\n".to_owned(), 3),
            (BEGIN, format!("{KERNEL}{FUNCTION}"), 1),
            (BEGIN, format!("extern \"C\" {{\n{KERNEL}{FUNCTION}}}\n"), 2),
            (BEGIN, format!("extern \"C\" {{\n{KERNEL}}}\n{FUNCTION}"), 3),
            (BEGIN, format!("namespace n {{\n{KERNEL}{FUNCTION}}}\n"), 2),
            (BEGIN, format!("{FUNCTION}{KERNEL}"), 4),
            (BEGIN, format!("{class}{FUNCTION}"), 1),
            (BEGIN, format!("{class}{KERNEL}}}\n{FUNCTION}"), 1),
            (BEGIN, format!("extern \"C\" {{\n{LAST}}}\n"), 3),
            (WRAPPER, format!("extern \"C\" {{\n{LAST}}}\n"), 3),
            (WRAPPER, format!("{LAST}}}\n"), 2),
            (BEGIN, format!("extern \"C\" {{\n{FUNCTION}{FUNCTION}"), 1),
            (WRAPPER, "\n\nvoid k() { if (1) { }\n}\n".to_owned(), 3),
            (WRAPPER, "void f() {}\n\nvoid k() { if (1) { { \"{\"; }\n}\n".to_owned(), 3),
            (WRAPPER, format!("{KERNEL}{FUNCTION}}}\n"), 1),
            (WRAPPER, format!("{KERNEL}}}\n{KERNEL}{FUNCTION}}}\n"), 6),
            (WRAPPER, format!("extern \"C\" {{\n{KERNEL}}}\n{FUNCTION}\n}}\n"), 3),
            (WRAPPER, format!("{lambda}{KERNEL}\n}}\n"), 5),
        ] {
            for header in ["", HEADER] {
                let text = format!("{header}{begin}{text}");
                let expected = format!("k.cu:{line}:");
                let found = unclosed(&Tokens::of(&text)).unwrap_or_default();
                assert!(found.starts_with(&expected), "{text}: {found}");
            }
        }
        assert_eq!(unclosed(&Tokens::of(&format!("{BEGIN}{FUNCTION}"))), None);
    }
}
