//! PTX whose registers and labels are numbered relative to the latest new one, so that equal code has equal
//! text wherever it stands in a kernel. It compresses to a third of the size.
//!
//! In a function, a register that is new is written `%r+`, and an earlier one `%r` and its distance from the
//! latest of its class. Labels are written `$+` and `$` and a distance. After its definition, the function's
//! name is written as the byte [`NAME`].

use std::collections::HashMap;

/// The first byte of relative text, which no PTX begins with.
const MARK: u8 = 2;

/// The name of the function.
const NAME: char = '\u{1}';

/// The classes of registers that NVRTC declares. Special registers such as `%tid` have other names.
const CLASSES: [&str; 8] = ["p", "rs", "r", "rd", "f", "fd", "h", "hh"];

/// The form of labels that NVRTC writes, and what [`absolute`] writes for it.
const LABEL: &str = "$L__BB";

/// Returns relative text, or the text itself if [`absolute`] would not return the same code.
pub(crate) fn relative(text: &[u8]) -> Vec<u8> {
    let is_free = |it: &&str| !it.contains([NAME, '\u{2}']) && !pieces(it).any(is_taken);
    let written = std::str::from_utf8(text).ok().filter(is_free);
    let encoded = written.map(encode).filter(|encoded| {
        // Texts with the same relative text differ in the numbers of registers and labels only.
        decode(encoded).is_some_and(|it| encode(&it) == *encoded)
    });
    encoded.map_or(text.to_vec(), |it| [&[MARK], it.as_bytes()].concat())
}

/// Returns the code of [`relative`] text; other code as it is. `None` if the text is damaged.
pub(crate) fn absolute(code: Vec<u8>) -> Option<Vec<u8>> {
    match code.split_first() {
        Some((&MARK, text)) => decode(std::str::from_utf8(text).ok()?).map(String::into_bytes),
        _ => Some(code),
    }
}

/// Returns the name of the kernel or function that a line begins to define; empty if results come first.
fn defined(line: &str) -> Option<&str> {
    let (before, name) = line.split_once(".entry ").or_else(|| line.split_once(".func "))?;
    let is_head = before.is_empty() || before.starts_with('.');
    let end = name.find(|it: char| !it.is_ascii_alphanumeric() && !"_$".contains(it));
    is_head.then(|| &name[..end.unwrap_or(name.len())])
}

/// Returns true if a piece of PTX is also a register or label of relative text.
fn is_taken(piece: &str) -> bool {
    let register = piece.strip_prefix('%').and_then(class).is_some_and(|it| it.1.starts_with('+'));
    register || piece.strip_prefix('$').is_some_and(|it| it.starts_with('+') || digits(it) > 0)
}

/// Returns the length of the digits that a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Returns the class of the register that begins after a `%`, and the rest.
fn class(text: &str) -> Option<(usize, &str)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at(letters);
    Some((CLASSES.iter().position(|it| *it == name)?, rest))
}

/// Splits a text before each register and label.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = rest[1..].find(['%', '$']).map_or(rest.len(), |at| at + 1);
        let (piece, after) = rest.split_at(next);
        rest = after;
        Some(piece)
    })
}

fn encode(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut name = "";
    let mut seen: [HashMap<&str, usize>; CLASSES.len() + 1] = Default::default();
    for line in text.split_inclusive('\n') {
        let shortened = match defined(line) {
            Some(found) => {
                (name, seen) = (found, Default::default());
                result.push_str(line);
                continue;
            }
            None => line,
        };
        let start = result.len();
        for piece in pieces(shortened) {
            let register = piece.strip_prefix('%').and_then(class);
            let found = match (register, piece.strip_prefix(LABEL)) {
                (Some((class, rest)), _) => Some((class, rest, digits(rest))),
                (_, Some(rest)) => {
                    let block = digits(rest);
                    let number = rest[block..].strip_prefix('_').map_or(0, digits);
                    Some((CLASSES.len(), rest, if number > 0 { block + 1 + number } else { 0 }))
                }
                _ => None,
            };
            let Some((class, rest, length)) = found.filter(|(.., length)| *length > 0) else {
                result.push_str(piece);
                continue;
            };
            let (number, after) = rest.split_at(length);
            let count = seen[class].len();
            result.push_str(if class < CLASSES.len() { "%" } else { "$" });
            result.push_str(CLASSES.get(class).unwrap_or(&""));
            match seen[class].get(number) {
                Some(earlier) => result.push_str(&(count - 1 - earlier).to_string()),
                None => {
                    seen[class].insert(number, count);
                    result.push('+');
                }
            }
            result.push_str(after);
        }
        if !name.is_empty() && result[start..].contains(name) {
            let line = result[start..].replace(name, NAME.encode_utf8(&mut [0; 4]));
            result.truncate(start);
            result.push_str(&line);
        }
    }
    result
}

fn decode(text: &str) -> Option<String> {
    let mut result = String::with_capacity(2 * text.len());
    let mut name = "";
    let mut counts = [0_usize; CLASSES.len() + 1];
    for line in text.split_inclusive('\n') {
        if let Some(found) = defined(line) {
            (name, counts) = (found, Default::default());
        }
        for piece in pieces(line) {
            let register = piece.strip_prefix('%').and_then(class);
            let label = piece.strip_prefix('$').map(|rest| (CLASSES.len(), rest));
            let length = |rest: &str| if rest.starts_with('+') { 1 } else { digits(rest) };
            let found = register.or(label).filter(|(_, rest)| length(rest) > 0);
            let Some((class, rest)) = found else {
                push_named(&mut result, piece, name);
                continue;
            };
            let (number, after) = rest.split_at(length(rest));
            let count = &mut counts[class];
            let distance = if number == "+" {
                *count += 1;
                0
            } else {
                number.parse::<usize>().ok()?
            };
            let absolute = count.checked_sub(distance).filter(|it| *it > 0)?;
            match CLASSES.get(class) {
                Some(class) => result.push_str(&format!("%{class}{absolute}")),
                None => result.push_str(&format!("{LABEL}0_{absolute}")),
            }
            push_named(&mut result, after, name);
        }
    }
    Some(result)
}

/// Adds a text in which [`NAME`] stands for a name.
fn push_named(result: &mut String, text: &str, name: &str) {
    for (number, part) in text.split(NAME).enumerate() {
        if number > 0 {
            result.push_str(name);
        }
        result.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.0\n.target sm_75\n.visible .entry first(\n.param .u64 first_param_0\n)\n{\n\
        .reg .pred %p<3>;\n.reg .b32 %r<9>;\nld.param.u64 %rd7, [first_param_0];\nmov.u32 %r5, %tid.x;\n\
        mov.u64 %rd2, %clock64;\n@%p2 bra $L__BB0_3;\nadd.s32 %r1, %r5, %r5;\n$L__BB0_3:\n\
        st.global.u32 [%rd7+8], %r1;\nret;\n}\n.visible .entry second()\n{\nmov.u32 %r8, %laneid;\nret;\n}\n\0";

    #[test]
    fn code_is_the_same_but_for_the_numbers_of_registers_and_labels() {
        let packed = relative(TEXT.as_bytes());
        assert_eq!(packed[0], MARK);
        let text = absolute(packed).and_then(|it| String::from_utf8(it).ok()).expect("text");
        for line in [
            ".reg .pred %p<3>;",
            "ld.param.u64 %rd1, [first_param_0];",
            "mov.u32 %r1, %tid.x;",
            "mov.u64 %rd2, %clock64;",
            "@%p1 bra $L__BB0_1;",
            "add.s32 %r2, %r1, %r1;",
            "$L__BB0_1:",
            "st.global.u32 [%rd1+8], %r2;",
            ".visible .entry second()",
            "mov.u32 %r1, %laneid;",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(text.ends_with('\0'));
        assert_eq!(relative(text.as_bytes()), relative(TEXT.as_bytes()));
    }

    #[test]
    fn equal_code_has_equal_text_wherever_it_stands() {
        let other = TEXT.replace("%r5", "%r7").replace("%rd7", "%rd3").replace("BB0_3", "BB4_12");
        assert_ne!(other, TEXT);
        assert_eq!(relative(other.as_bytes()), relative(TEXT.as_bytes()));
        let swapped = TEXT.replace("%r5, %r5", "%r5, %r1");
        assert_ne!(relative(swapped.as_bytes()), relative(TEXT.as_bytes()));
    }

    #[test]
    fn what_would_not_come_back_is_left_as_it_is() {
        // A dollar sign before a number would be read as a label.
        for text in ["bra $L__BB0_1;\n.b8 $0;\n", "add %r1, %r+;\n", ".entry a\u{1}()\n{\n}\n"] {
            assert_eq!(relative(text.as_bytes()), text.as_bytes());
            assert_eq!(absolute(text.into()), Some(text.into()));
        }
        for damaged in ["\u{2}add %r0;\n", "\u{2}bra $4;\n", "\u{2}%r99999999999999999999999"] {
            assert_eq!(absolute(damaged.into()), None, "{damaged:?}");
        }
    }
}
