//! Variables that are declared with their class: `struct S { int a; } __constant__ s`. Directly behind the class, an
//! attribute is the class's.

use crate::tokens::Tokens;

/// What the qualifier of a variable becomes.
const USED: &str = "__attribute__((__used__))";

/// Moves attributes of variables from behind a class to its front.
pub(super) fn place(tokens: &Tokens<'_>, edits: &mut Vec<(usize, usize, &'static str)>) {
    let mut moved = Vec::new();
    for edit in edits.iter_mut().filter(|edit| edit.2 == USED) {
        let at = tokens.all.partition_point(|token| token.start < edit.0);
        if let Some(class) = at.checked_sub(1).and_then(|close| class_of(tokens, close)) {
            edit.2 = "";
            let start = tokens.all[class].start;
            moved.push((start, start, "__attribute__((__used__)) "));
        }
    }
    edits.extend(moved);
}

/// The first word of a class or enumeration whose body a brace closes.
fn class_of(tokens: &Tokens<'_>, close: usize) -> Option<usize> {
    let open = tokens.partner(close).filter(|_| tokens.at(close) == "}")?;
    let heading = (0..open).rev().take_while(|&at| !matches!(tokens.at(at), ";" | "{" | "}"));
    let is_class = |&at: &usize| matches!(tokens.at(at), "struct" | "class" | "union" | "enum");
    heading.filter(is_class).last()
}

#[cfg(test)]
mod tests {
    use super::{USED, place};
    use crate::tokens::Tokens;

    #[test]
    fn an_attribute_behind_a_class_is_moved_to_its_front() {
        for (text, expected) in [
            ("int f(); static struct S { int a; } Q c;", "__attribute__((__used__)) struct S"),
            ("enum class E : int { A } Q c;", "__attribute__((__used__)) enum class E"),
        ] {
            let start = text.find('Q').expect("a qualifier");
            let mut edits = vec![(start, start + 1, USED)];
            place(&Tokens::of(text), &mut edits);
            let front = edits[1].0;
            assert_eq!(edits[0], (start, start + 1, ""), "{text}");
            assert!(format!("{}{}", edits[1].2, &text[front..]).starts_with(expected), "{text}");
        }
        let mut edits = vec![(10, 11, USED)];
        place(&Tokens::of("void f(){}Q int c;"), &mut edits);
        assert_eq!(edits, [(10, 11, USED)]);
    }
}
