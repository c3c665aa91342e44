//! Reports symbols that a program declares and uses but does not define. Linkers report them with locations
//! in the object file.

use crate::tokens::Tokens;
use crate::tree::Items;
use std::fmt::Write as _;

/// The text before the name in a linker's message.
const TEXTS: [&str; 2] = ["undefined reference to ", "undefined symbol: "];
/// The text in other lines of a linker's message.
const DETAILS: [&str; 4] = [": in function ", "ld returned ", ">>> ", "error: linker "];

/// Returns messages at the declarations of undefined symbols. Returns `None` for any other log.
pub(super) fn named(log: &str, tokens: &Tokens<'_>) -> Option<String> {
    let (mut names, mut others): (Vec<&str>, String) = (Vec::new(), String::new());
    for line in log.lines() {
        let found = TEXTS.iter().find_map(|text| Some(line.split_once(text)?.1));
        if let Some(name) = found {
            let name = name.trim_matches(['`', '\'', '"', ' ']);
            if !names.contains(&name) {
                names.push(name);
            }
        } else if !DETAILS.iter().any(|it| line.contains(it)) {
            let _ = writeln!(others, "{line}");
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut text = String::new();
    for name in names {
        if let Some(place) = declaration(tokens, name) {
            let _ = write!(text, "{place}: ");
        }
        let _ = writeln!(text, "error: undefined reference to '{name}'");
    }
    Some(text + &others)
}

/// Returns the location at which the program declares a symbol, or else the program's file.
fn declaration(tokens: &Tokens<'_>, name: &str) -> Option<String> {
    // `int n::f<int>(float)`, `f`
    let name = name.split(['(', '<', '[']).next().unwrap_or(name).trim_end();
    let plain = name.rsplit([':', ' ']).next().unwrap_or(name);
    let declared = Items::of(tokens).all.into_iter().find_map(|it| {
        let is_own = it.body.is_none() && tokens.is_of_program(it.range.start);
        let mut range = it.range;
        range.find(|&at| is_own && tokens.at(at) == plain)
    });
    let mut own = (0..tokens.len()).filter(|&at| tokens.is_of_program(at));
    let last = own.next_back();
    let word = || own.find(|&at| tokens.at(at) == plain);
    match declared.or_else(word) {
        Some(at) => Some(tokens.position(at)),
        None => Some(tokens.line(last?)?.0.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::tokens::Tokens;

    #[test]
    fn what_is_not_defined_is_named_at_its_declaration() {
        let text = "# 1 \"k.cu\"\nvoid g() {}\nint f(int, float);\nnamespace n { extern int v; }\n\
                    struct S { int f(); };\nvoid k() { f(1, 2.f); n::v = 1; }\n";
        for (name, expected) in [
            ("f(int, float)", "k.cu:2:5"),
            ("f", "k.cu:2:5"),
            ("n::v", "k.cu:3:26"),
            ("int f<int>(int)", "k.cu:2:5"),
            ("log9", "k.cu"),
        ] {
            for log in [
                format!(
                    "/usr/bin/ld: unit.o: in function `k':\n<stdin>:(.text+0x1): undefined \
                         reference to `{name}'\n<stdin>:(.text+0x9): undefined reference to \
                         `{name}'\ncollect2: error: ld returned 1 exit status\n"
                ),
                format!("ld.lld: error: undefined symbol: {name}\n>>> referenced by unit.o\n"),
            ] {
                let expected = format!("{expected}: error: undefined reference to '{name}'\n");
                assert_eq!(named(&log, &Tokens::of(text)), Some(expected));
            }
        }
        assert_eq!(named("cannot link\n", &Tokens::of(text)), None);
    }
}
