//! Renames functions of a program whose names compilers treat as functions of the C library. GCC does not
//! inline a function that calls a `vfork` or `setjmp`. Clang evaluates a `strlen` or `ffs` as the
//! library's function, although the program's own function may do something else.

use crate::tokens::{Tokens, edited};
use crate::tree::Items;
use std::borrow::Cow;

/// Functions that return twice, without leading underscores.
const TWICE: [&str; 5] = ["setjmp", "sigsetjmp", "savectx", "vfork", "getcontext"];

/// Functions that compilers evaluate or replace at the call.
const COMPUTED: [&str; 54] = [
    "atoi", "atol", "atoll", "bcmp", "bcopy", "bzero", "calloc", "ffs", "ffsl", "ffsll", "fputs",
    "fwrite", "index", "isalnum", "isalpha", "isascii", "isblank", "isdigit", "islower", "isprint",
    "isspace", "isupper", "isxdigit", "memccpy", "memchr", "mempcpy", "memrchr", "putchar", "puts",
    "realloc", "rindex", "snprintf", "sprintf", "stpcpy", "strcat", "strchr", "strcmp", "strcpy",
    "strcspn", "strlen", "strncat", "strncmp", "strncpy", "strndup", "strnlen", "strpbrk",
    "strrchr", "strspn", "strstr", "strtol", "strtoll", "toascii", "tolower", "toupper",
];

/// The prefix of the new names.
pub(crate) const PREFIX: &str = "gpuarray_own_";

/// Returns the text with such functions renamed, and their original names. Returns `None` if the text does
/// not define any.
pub(crate) fn renamed<'a>(tokens: &Tokens<'a>) -> Option<(String, Vec<&'a str>)> {
    if !(0..tokens.len()).any(|at| is_taken(tokens.at(at))) {
        return None;
    }
    let mut own: Vec<&str> = Vec::new();
    let items = Items::of(tokens);
    for declared in &items.all {
        let name = declared.body.and_then(|_| declared.name(tokens));
        // A function in a namespace is none of the C library's.
        let is_in_namespace = items.scopes(declared).next().is_some_and(|it| it.is_namespace);
        let is_own = tokens.is_of_program(declared.range.start) && !is_in_namespace;
        own.extend(name.filter(|it| is_own && is_taken(it)));
    }
    let is_renamed = |&at: &usize| own.contains(&tokens.at(at)) && tokens.is_of_program(at);
    let starts = (0..tokens.len()).filter(is_renamed).map(|at| tokens.all[at].start);
    let edits: Vec<_> = starts.map(|start| (start, start, PREFIX)).collect();
    (!edits.is_empty()).then(|| (edited(tokens.text, edits), own))
}

/// Returns the expression that names a function or variable in a text in which these names are [`renamed`].
pub(crate) fn expression(name: &str, own: &[&str]) -> String {
    let tokens = Tokens::of(name);
    let found = (0..tokens.len()).find(|&at| own.contains(&tokens.at(at)));
    let start = found.map_or(name.len(), |at| tokens.all[at].start);
    let prefix = if found.is_some() { PREFIX } else { "" };
    format!("{}{prefix}{}", &name[..start], &name[start..])
}

/// Returns the program's own name of a renamed function.
pub(crate) fn original(name: &str) -> Cow<'_, str> {
    if name.contains(PREFIX) { Cow::Owned(name.replace(PREFIX, "")) } else { Cow::Borrowed(name) }
}

fn is_taken(word: &str) -> bool {
    TWICE.contains(&word.trim_start_matches('_')) || COMPUTED.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::renamed;
    use crate::tokens::Tokens;

    #[test]
    fn only_functions_of_the_program_are_renamed() {
        let begin = "# 1 \"/usr/include/x.h\" 1 3\nint setjmp(int); int _vfork() { return 1; }\n# 1 \"k.cu\" 2\n";
        for (text, expected) in [
            ("int vfork(int a) { return a; } int g() { return vfork(1); }", true),
            ("extern \"C\" { void __sigsetjmp(); void __sigsetjmp() {} }", true),
            ("int vfork(int a); int g() { return vfork(1); }", false),
            ("int g() { return setjmp(1) + _vfork(); }", false),
            ("struct S { int vfork() { return 1; } };", false),
            ("namespace n { int strlen(char *s) { return ::strlen(s); } }", false),
        ] {
            let text = format!("{begin}{text}\n");
            let renamed = renamed(&Tokens::of(&text));
            assert_eq!(renamed.is_some(), expected, "{text}");
            if let Some((renamed, _)) = renamed {
                assert_eq!(renamed.matches("gpuarray_own_").count(), 2, "{renamed}");
            }
        }
    }
}
