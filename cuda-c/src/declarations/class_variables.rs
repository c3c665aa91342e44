//! Variables that are declared together with their class: `struct S { int a; } __constant__ s`. An attribute
//! directly after the class would apply to the class.

use crate::tokens::Tokens;
use crate::tree::class_of;

/// The attribute that replaces the qualifier of a variable.
const USED: &str = "__attribute__((__used__))";

/// Moves the attributes of variables that are declared with their class to the front of the declaration.
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

#[cfg(test)]
mod tests {
    use super::{USED, place};
    use crate::tokens::Tokens;

    #[test]
    fn an_attribute_behind_a_class_is_moved_to_its_front() {
        for (text, expected) in [
            ("int f(); static struct S { int a; } Q c;", "__attribute__((__used__)) struct S"),
            (
                "struct alignas(8) S : B<(3 > 2)> { int a; } Q c;",
                "__attribute__((__used__)) struct alignas",
            ),
            ("enum class E : int { A } Q c;", "__attribute__((__used__)) enum class E"),
        ] {
            let start = text.find('Q').expect("a qualifier");
            let mut edits = vec![(start, start + 1, USED)];
            place(&Tokens::of(text), &mut edits);
            let front = edits[1].0;
            assert_eq!(edits[0], (start, start + 1, ""), "{text}");
            assert!(format!("{}{}", edits[1].2, &text[front..]).starts_with(expected), "{text}");
        }
        for text in [
            "void f(){}Q int c;",
            "template <class T> void f(T *p) { *p = 1; } Q int c;",
            "struct S f() { return {}; } Q int c;",
            "struct S operator()() { return {}; } Q int c;",
        ] {
            let start = text.find('Q').expect("a qualifier");
            let mut edits = vec![(start, start + 1, USED)];
            place(&Tokens::of(text), &mut edits);
            assert_eq!(edits, [(start, start + 1, USED)], "{text}");
        }
    }
}
