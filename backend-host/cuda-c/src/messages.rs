//! Messages of the compiler, as far as they are about the program: what the driver has put behind its text is
//! refused, too, where a kernel is.

use crate::headers;
use crate::tokens::{Kind, Tokens};
use std::fmt::Write as _;

/// What file names of the driver's own texts begin with.
const OWN: [&str; 3] = ["kernel ", "name expression ", "constant "];
/// What compilers say of a text that ends too early.
const EARLY_END: &str = "error: expected '}'";
/// And of one that goes on behind its end.
const LATE_END: [&str; 2] =
    ["error: expected declaration before '}'", "error: extraneous closing brace"];

/// Returns the messages of a log that are about the program, or all if none is an error. `text` is the
/// preprocessed text.
pub(crate) fn of_program(log: &str, text: &str) -> String {
    let messages = parts(log);
    let is_error = |it: &&Message| !it.is_own() && it.main.contains("error: ");
    let has_error = messages.iter().any(|it| is_error(&it));
    let mut kept = String::new();
    let mut is_unclosed = false;
    for message in &messages {
        if message.main.contains(EARLY_END) && !is_unclosed {
            is_unclosed = true;
            if let Some(place) = unclosed(&Tokens::of(text)) {
                let _ = writeln!(kept, "{place}: error: this '{{' has no '}}'");
                continue;
            }
        }
        if LATE_END.iter().any(|it| message.main.contains(it))
            && let Some(place) = unopened(&Tokens::of(text))
        {
            let _ = writeln!(kept, "{place}: error: this '}}' has no '{{'");
            continue;
        }
        if !(has_error && message.is_own()) {
            kept.push_str(message.text);
        }
    }
    kept
}

/// A message with the lines before it that say where it is, and the notes behind it.
struct Message<'a> {
    text: &'a str,
    main: &'a str,
}

impl Message<'_> {
    /// True for one about a text of the driver or the language, which nothing in the program has led to.
    fn is_own(&self) -> bool {
        let behind = self.text.find(self.main).unwrap_or(0);
        let before =
            self.text[..behind].lines().filter(|line| !line.starts_with("In file included"));
        before.chain([self.main]).all(is_of_own_text)
    }
}

/// True for a line about a text of the driver or the language.
fn is_of_own_text(line: &str) -> bool {
    let file = line.split(':').next().unwrap_or_default();
    OWN.iter().any(|prefix| file.starts_with(prefix))
        || headers::HEADERS.iter().any(|(name, _)| file == *name)
        || file.starts_with(headers::PREFIX)
}

/// The messages of a log. One without an error or a warning is a part of the one before.
fn parts(log: &str) -> Vec<Message<'_>> {
    let mut parts: Vec<Message<'_>> = Vec::new();
    // Where the next message begins, and whether its lines before the main one have.
    let (mut start, mut at, mut heading) = (0, 0, None);
    let mut main: Option<&str> = None;
    for line in log.split_inclusive('\n') {
        let is_main =
            [": error: ", ": warning: ", ": fatal error: "].iter().any(|it| line.contains(it));
        let is_note = line.contains(": note: ") || line.starts_with(' ');
        if is_main || (!is_note && heading.is_none()) {
            let begin = heading.unwrap_or(at);
            if let Some(main) = main.take_if(|_| is_main || heading.is_none()) {
                parts.push(Message { text: &log[start..begin], main });
                start = begin;
            }
            heading = if is_main { None } else { Some(begin) };
            if is_main {
                main = Some(line);
            }
        }
        at += line.len();
    }
    parts.push(Message { text: &log[start..], main: main.unwrap_or(&log[start..]) });
    parts
}

/// The place of the brace that is not closed; of those about it that of a declaration, not of `extern "C"`.
fn unclosed(tokens: &Tokens<'_>) -> Option<String> {
    let (mut open, mut last) = (Vec::new(), None);
    for (at, is_open) in braces(tokens) {
        if is_open {
            open.push(at);
        } else {
            last = open.pop();
        }
    }
    let first = *open.first()?;
    // The last brace was meant for that of `extern "C"`.
    let inner = || open.get(1).copied().or(last);
    let brace = if is_of_linkage(tokens, first) { inner().unwrap_or(first) } else { first };
    Some(tokens.place(brace))
}

/// The place of the first brace that closes nothing, or closes `extern "C"` in front of such a one.
fn unopened(tokens: &Tokens<'_>) -> Option<String> {
    let (mut open, mut of_linkage) = (Vec::new(), None);
    for (at, is_open) in braces(tokens) {
        if is_open {
            open.push(at);
            continue;
        }
        let Some(first) = open.pop() else { return Some(tokens.place(of_linkage.unwrap_or(at))) };
        if is_of_linkage(tokens, first) {
            of_linkage = Some(at);
        }
    }
    None
}

/// Braces, and whether they open.
fn braces(tokens: &Tokens<'_>) -> impl Iterator<Item = (usize, bool)> {
    let marks = (0..tokens.len()).filter(|&at| tokens.all[at].kind == Kind::Mark);
    let braces = marks.filter(|&at| matches!(tokens.at(at), "{" | "}"));
    braces.map(|at| (at, tokens.at(at) == "{"))
}

/// True for the brace behind `extern "C"`.
fn is_of_linkage(tokens: &Tokens<'_>, brace: usize) -> bool {
    brace > 0 && tokens.all[brace - 1].kind == Kind::Literal
}

#[cfg(test)]
mod tests {
    use super::of_program;

    #[test]
    fn what_is_about_the_drivers_text_is_left_out() {
        let own = "kernel k:1: error: parse error in template argument list\n\
                   In file included from gpuarray_prelude.h:10:\n\
                   gpuarray_abi.h:355: note: candidate: 'entry'\n\
                   gpuarray_abi.h: In instantiation of 'call':\n\
                   gpuarray_abi.h:309:   required from here\n\
                   gpuarray_abi.h:299: error: no\n";
        let program = "k.cu: In function 'void k(int*)':\nk.cu:3: error: 'x' was not declared\n\
                       k.cu:2: note: here\nk.cu: At global scope:\nk.cu:4: warning: unused\n";
        assert_eq!(of_program(own, ""), own);
        assert_eq!(of_program(&format!("{program}{own}"), ""), program);
        assert_eq!(of_program(&format!("{own}{program}"), ""), program);
        let led_to = "cuda_c/atomics.h: In instantiation of 'f':\nk.cu:7:   required from here\n\
                      cuda_c/atomics.h:9: error: no\n";
        assert_eq!(of_program(&format!("{led_to}{program}"), ""), format!("{led_to}{program}"));
        assert_eq!(of_program("cannot link\n", ""), "cannot link\n");
    }

    #[test]
    fn a_brace_that_is_not_closed_is_named() {
        let log =
            "kernel k:1: error: expected '}' at end of input\nk.cu:1: note: to match this '{'\n";
        let expected = "k.cu:3: error: this '{' has no '}'\n";
        for text in [
            "\n\nvoid k() { if (1) { }\n",
            "extern \"C\" {\n\nvoid k() { if (1) { }\n}\n",
            "extern \"C\" {\n void f() {}\nvoid k() { if (1) { { \"{\"; }\n}\n",
        ] {
            assert_eq!(of_program(log, &format!("# 1 \"k.cu\"\n{text}")), expected, "{text}");
        }
    }

    #[test]
    fn a_brace_too_many_is_named() {
        let log = "k.cu:5: error: expected declaration before '}' token\n";
        let expected = "k.cu:2: error: this '}' has no '{'\n";
        for text in ["void k() {}\n}\n", "extern \"C\" { void k() {}\n}\n\n}\n"] {
            assert_eq!(of_program(log, &format!("# 1 \"k.cu\"\n{text}")), expected, "{text}");
        }
    }
}
