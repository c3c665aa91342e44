//! Filters compiler messages down to those about the program. An error in a kernel also causes errors in the
//! text that the front end appends.

mod braces;
mod kernels;
mod undefined;

use crate::headers;
use crate::known_names;
use crate::tokens::Tokens;
use std::fmt::Write as _;

/// The prefixes of the file names of the front end's own text.
const OWN: [&str; 3] = [kernels::PREFIX, "name expression ", "constant "];
/// The message for a text that ends too early.
const EARLY_END: &str = "error: expected '}'";
/// The messages for a text that continues after its end.
const LATE_END: [&str; 2] =
    ["error: expected declaration before '}'", "error: extraneous closing brace"];

/// A message of GCC about a class that names a member as a type which its declarations have used before. CUDA's
/// compilers accept such a class.
const CHANGED: &str = "changes meaning of";
/// The end of messages that are errors without `-fpermissive`.
const PERMISSIVE: &str = " [-fpermissive]";
/// Messages that advise options of the compiler, which no program can set, and the messages that replace them.
const HOST_ONLY: [(&str, &str); 3] = [
    (
        "exception handling disabled, use '-fexceptions' to enable",
        "code for a device cannot throw or catch exceptions",
    ),
    ("cannot use 'typeid' with '-fno-rtti'", "code for a device cannot use 'typeid'"),
    (
        "'dynamic_cast' not permitted with '-fno-rtti'",
        "code for a device cannot use 'dynamic_cast'",
    ),
];

/// Returns true if a log has a message about a name that changes its meaning in a class.
pub fn has_changed_meaning(log: &str) -> bool {
    log.contains(CHANGED)
}

/// Returns a log of `-fpermissive` without the messages about names that change their meaning. Errors that the
/// option has turned into warnings are errors again; the flag is true if there are any.
pub fn without_changed_meanings(log: &str) -> (String, bool) {
    let mut has_error = false;
    let messages = parts(log).into_iter().filter(|it| !it.main.contains(CHANGED));
    let strict = messages.map(|it| {
        let is_error = it.main.trim_end().ends_with(PERMISSIVE);
        has_error |= is_error;
        let text = it.text.replacen(PERMISSIVE, "", usize::from(is_error));
        text.replacen(": warning: ", ": error: ", usize::from(is_error))
    });
    (strict.collect(), has_error)
}

/// Returns the messages of a log that are about the program, or all messages if none of those is an error.
/// `text` is the preprocessed text.
pub fn program_messages(log: &str, text: &str) -> String {
    let log = HOST_ONLY.iter().fold(refused_ptx(log), |log, (said, ours)| log.replace(said, ours));
    known_names::original(&about_program(&log, text)).into_owned()
}

/// Returns a log in which only the message of the attribute `error` reports the call of a function that has it.
fn refused_ptx(log: &str) -> String {
    let plain = |line: &str| {
        let (before, after) = line.split_once("call to '")?;
        let behind = ["declared with attribute error: ", "declared with 'error' attribute: "];
        let message = behind.iter().find_map(|it| Some(after.split_once(it)?.1))?;
        Some(format!("{before}{message}"))
    };
    log.split_inclusive('\n').map(|it| plain(it).unwrap_or_else(|| it.to_owned())).collect()
}

fn about_program(log: &str, text: &str) -> String {
    let messages = parts(log);
    let is_error = |it: &&Message| !it.is_own() && it.main.contains("error: ");
    let mut has_error = messages.iter().any(|it| is_error(&it));
    let tokens = Tokens::of(text);
    if let Some(undefined) = undefined::named(log, &tokens) {
        return undefined;
    }
    let says = |texts: &[&str]| {
        let says_one = |it: &Message| texts.iter().any(|text| it.main.contains(text));
        messages.iter().position(says_one)
    };
    let named = |at: Option<usize>, place: fn(&Tokens<'_>) -> Option<String>| {
        at.and_then(|at| Some((at, place(&tokens)?)))
    };
    let unclosed = named(says(&[EARLY_END]), braces::unclosed);
    let unopened = named(says(&LATE_END), braces::unopened);
    has_error |= unclosed.is_some() || unopened.is_some();
    let own: String = messages.iter().filter(|it| it.is_own()).map(|it| it.text).collect();
    let kernel = (!has_error).then(|| kernels::refused(&own, &tokens)).flatten();
    has_error |= kernel.is_some();
    let mut kept = String::new();
    for (number, message) in messages.iter().enumerate() {
        match (&unclosed, &unopened) {
            (Some((at, place)), _) if *at == number => {
                let _ = writeln!(kept, "{place}: error: this '{{' has no '}}'");
            }
            (_, Some((at, place))) if *at == number => {
                let _ = writeln!(kept, "{place}: error: this '}}' has no '{{'");
            }
            // The message names the first superfluous brace.
            (_, Some(_)) if LATE_END.iter().any(|it| message.main.contains(it)) => {}
            _ if has_error && message.is_own() => {}
            _ => kept.push_str(message.text),
        }
    }
    kept + &kernel.unwrap_or_default()
}

/// A message with the preceding lines that locate it, and the notes after it.
struct Message<'a> {
    text: &'a str,
    main: &'a str,
}

impl Message<'_> {
    /// Returns true for a message that the program has not caused: it is about text of the front end or of the
    /// language's headers.
    fn is_own(&self) -> bool {
        let behind = self.text.find(self.main).unwrap_or(0);
        let says_where = |line: &&str| {
            !(line.starts_with("In file included") || line.ends_with(": At global scope:"))
        };
        let before = self.text[..behind].lines().filter(says_where);
        before.chain([self.main]).all(is_of_own_text)
    }
}

/// Returns true for a line about text of the front end or of the language's headers.
pub(crate) fn is_of_own_text(line: &str) -> bool {
    let file = line.split(':').next().unwrap_or_default();
    OWN.iter().any(|prefix| file.starts_with(prefix))
        || headers::headers().any(|(name, _)| file == name)
        || file.starts_with(headers::PREFIX)
}

/// Splits a log into messages. Text without an error or a warning belongs to the preceding message.
fn parts(log: &str) -> Vec<Message<'_>> {
    let mut parts: Vec<Message<'_>> = Vec::new();
    // `start` is the beginning of the current message. `heading` is the first line that may belong to the
    // next one.
    let (mut start, mut at, mut heading) = (0, 0, None);
    let mut main: Option<&str> = None;
    for line in log.split_inclusive('\n') {
        if [": error: ", ": warning: ", ": fatal error: "].iter().any(|it| line.contains(it)) {
            let begin = heading.take().unwrap_or(at);
            if let Some(main) = main.replace(line) {
                parts.push(Message { text: &log[start..begin], main });
                start = begin;
            }
        } else if line.contains(": note: ") {
            // Those lines belonged to the note.
            heading = None;
        } else if !line.starts_with(' ') {
            heading.get_or_insert(at);
        }
        at += line.len();
    }
    parts.push(Message { text: &log[start..], main: main.unwrap_or(&log[start..]) });
    parts
}

#[cfg(test)]
mod tests {
    use super::{has_changed_meaning, program_messages, without_changed_meanings};

    #[test]
    fn refused_instructions_are_named_without_the_function_that_refuses_them() {
        let end = "inline PTX: 'exit' is not there\n";
        for said in ["declared with attribute error: ", "declared with 'error' attribute: "] {
            let log = format!("lib.h:3:9: error: call to 'gpuarray_refused_0' {said}{end}");
            assert_eq!(program_messages(&log, ""), format!("lib.h:3:9: error: {end}"));
        }
    }

    #[test]
    fn exceptions_are_refused_without_advice() {
        let log = "k.cu:3:9: error: exception handling disabled, use '-fexceptions' to enable\n";
        let expected = "k.cu:3:9: error: code for a device cannot throw or catch exceptions\n";
        assert_eq!(program_messages(log, ""), expected);
    }

    #[test]
    fn names_may_change_their_meaning_and_nothing_else_is_permitted() {
        let changed = "k.cu:3:9: warning: declaration of 'using T = int' changes meaning of 'T' [-fpermissive]\n\
                       k.cu:2:5: note: used here to mean 'T'\n";
        let other = "k.cu:7:2: warning: unused variable 'x' [-Wunused]\n";
        let error = "k.cu:9:1: warning: invalid conversion from 'int' to 'int*' [-fpermissive]\n";
        assert!(has_changed_meaning(changed) && !has_changed_meaning(other));
        let both = format!("{changed}{other}");
        assert_eq!(without_changed_meanings(&both), (other.to_owned(), false));
        let strict = format!("{other}k.cu:9:1: error: invalid conversion from 'int' to 'int*'\n");
        assert_eq!(without_changed_meanings(&format!("{both}{error}")), (strict, true));
        assert_eq!(without_changed_meanings(""), (String::new(), false));
    }

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
        assert_eq!(program_messages(own, ""), own);
        let global = "# 1 \"k.cu\"\n__gpuarray_global__ void k(auto p) {}\n";
        let expected = "k.cu:1:26: error: kernel k: a parameter has a type, and not 'auto'\n";
        assert_eq!(program_messages(own, global), expected);
        assert_eq!(program_messages(&format!("{program}{own}"), ""), program);
        assert_eq!(program_messages(&format!("{own}{program}"), ""), program);
        let behind = format!("{program}k.cu: At global scope:\n{own}");
        assert_eq!(program_messages(&behind, ""), program);
        let led_to = "cuda_c/atomics.h: In instantiation of 'f':\nk.cu:7:   required from here\n\
                      cuda_c/atomics.h:9: error: no\n";
        assert_eq!(
            program_messages(&format!("{led_to}{program}"), ""),
            format!("{led_to}{program}")
        );
        assert_eq!(program_messages("cannot link\n", ""), "cannot link\n");
    }

    #[test]
    fn a_brace_that_is_not_closed_is_named() {
        let log =
            "kernel k:1: error: expected '}' at end of input\nk.cu:1: note: to match this '{'\n";
        let expected = "k.cu:3:10: error: this '{' has no '}'\n";
        let text = "# 1 \"k.cu\"\n\n\nvoid k() { if (1) { }\n";
        assert_eq!(program_messages(log, text), expected);
        let own = "kernel k:1: error: 'constexpr' needed\n";
        assert_eq!(program_messages(&format!("{own}{log}{own}"), text), expected);
    }

    #[test]
    fn a_brace_too_many_is_named() {
        let log = "k.cu:5: error: expected declaration before '}' token\n";
        let expected = "k.cu:2:1: error: this '}' has no '{'\n";
        let text = "# 1 \"k.cu\"\nvoid k() {}\n}\n";
        assert_eq!(program_messages(log, text), expected);
        assert_eq!(program_messages(&format!("{log}{log}"), text), expected);
    }
}
