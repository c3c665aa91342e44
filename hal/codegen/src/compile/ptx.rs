//! Splits PTX of many kernels into one module for each specification, because a driver compiles the
//! whole module before the first of its kernels runs.

use std::collections::HashMap;

/// The oldest version of PTX that NVRTC's output for builtin kernels is valid in (CUDA 11.0): a
/// driver refuses text of a version later than its own, whatever the text has in it.
const VERSION: (u32, u32) = (7, 0);

/// PTX in the parts that modules are made of.
#[derive(Debug)]
pub(super) struct PtxUnit<'a> {
    /// Version, target, size of addresses.
    head: String,
    items: Vec<Item<'a>>,
}

/// A kernel, a function or a variable.
#[derive(Debug)]
struct Item<'a> {
    name: &'a str,
    is_kernel: bool,
    text: &'a str,
}

impl<'a> PtxUnit<'a> {
    /// Takes NVRTC's PTX apart; `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<PtxUnit<'a>> {
        let mut head = String::new();
        let mut items = Vec::new();
        let mut rest = text.trim_end_matches('\0').trim();
        while !rest.is_empty() {
            let line = rest.lines().next()?;
            let length = if line.starts_with("//") {
                line.len()
            } else if let Some(version) = line.strip_prefix(".version ") {
                let (major, minor) = version.split_once('.')?;
                let (major, minor) = (major.parse().ok()?, minor.trim().parse().ok()?);
                let (major, minor) = VERSION.min((major, minor));
                head.push_str(&format!(".version {major}.{minor}\n"));
                line.len()
            } else if line.starts_with(".target ") || line.starts_with(".address_size ") {
                head.push_str(line);
                head.push('\n');
                line.len()
            } else {
                let item = item(rest)?;
                items.push(item);
                items.last()?.text.len()
            };
            rest = rest[length..].trim_start();
        }
        (!head.is_empty()).then_some(PtxUnit { head, items })
    }

    /// Returns the module with these kernels, their functions and variables, and the closing zero that
    /// drivers require; `None` if a kernel is missing.
    pub(super) fn module(&self, kernels: &[impl AsRef<str>]) -> Option<Vec<u8>> {
        let wanted =
            |item: &Item| item.is_kernel && kernels.iter().any(|it| it.as_ref() == item.name);
        if self.items.iter().filter(|it| wanted(it)).count() != kernels.len() {
            return None;
        }
        let mut chosen: Vec<bool> = self.items.iter().map(wanted).collect();
        // A function may be declared before its use and defined after it.
        while let Some(used) = (0..self.items.len()).find(|&at| {
            let item = &self.items[at];
            let mut users = self.items.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
            !chosen[at] && !item.is_kernel && users.any(|(user, _)| user.text.contains(item.name))
        }) {
            chosen[used] = true;
        }
        let mut module = self.head.clone();
        for (item, _) in self.items.iter().zip(&chosen).filter(|(_, chosen)| **chosen) {
            let lines = item.text.lines().map(str::trim);
            for line in lines.filter(|it| !it.is_empty() && !it.starts_with("//")) {
                module.push_str(line);
                module.push('\n');
            }
        }
        module.push('\0');
        Some(module.into_bytes())
    }
}

/// The definition or declaration that a text begins with.
fn item(text: &str) -> Option<Item<'_>> {
    let mut depth = 0;
    let mut end = None;
    let mut is_comment = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' if text[at..].starts_with("//") => is_comment = true,
            b'\n' => is_comment = false,
            _ if is_comment => {}
            b'{' | b'(' => depth += 1,
            b')' => depth -= 1,
            b'}' => {
                depth -= 1;
                // Values of a variable are followed by a semicolon.
                if depth == 0 && !text[at + 1..].trim_start().starts_with(';') {
                    end = Some(at + 1);
                }
            }
            b';' if depth == 0 => end = Some(at + 1),
            _ => {}
        }
        if end.is_some() {
            break;
        }
    }
    let text = text.get(..end?)?;
    // The results of a function come before its name.
    let declared = match text.find(".func") {
        Some(at) if text[at + 5..].trim_start().starts_with('(') => {
            &text[at + text[at..].find(')')? + 1..]
        }
        _ => text,
    };
    let is_name = |it: &&str| {
        it.starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
    };
    let name =
        declared.split(|it: char| it.is_whitespace() || "([=;".contains(it)).find(is_name)?;
    Some(Item {
        name,
        is_kernel: text.starts_with(".visible .entry") || text.starts_with(".entry"),
        text,
    })
}

// PTX whose registers and labels are numbered relative to the latest new one, so that equal code has equal
// text wherever it stands in a kernel. It compresses to a third of the size.
//
// In a function, a register that is new is written `%r+`, and an earlier one `%r` and its distance from the
// latest of its class. Labels are written `$+` and `$` and a distance. After its definition, the function's
// name is written as the byte [`NAME`].

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

    const TEXT: &str = "//\n// Generated\n//\n\n.version 8.8\n.target sm_75\n.address_size 64\n\n\
        \t// .globl\tfirst\n.global .align 4 .u32 unused;\n\
        .const .align 4 .b8 table[4] = {1, 2, 3, 4};\n\
        .func (.param .b32 result) helper(\n\t.param .b32 x\n)\n;\n\
        .visible .entry first(\n\t.param .u32 first_param_0\n)\n.maxntid 256, 1, 1\n{\n\
        \t{ // } inline\n\tcall helper;\n\t}\n\tret;\n}\n\
        .visible .entry second()\n{\n\t// nothing\n\tret;\n\n}\n\
        .func (.param .b32 result) helper(\n\t.param .b32 x\n)\n{\n\tld.const.u32 %r1, [table];\n\tret;\n}\n\0";

    #[test]
    fn each_kernel_has_a_module_of_what_it_uses() {
        let unit = PtxUnit::parse(TEXT).expect("PTX");
        let module =
            |names: &[&str]| unit.module(names).map(|it| String::from_utf8(it).expect("text"));
        let head = ".version 7.0\n.target sm_75\n.address_size 64\n";
        assert_eq!(
            module(&["second"]),
            Some(format!("{head}.visible .entry second()\n{{\nret;\n}}\n\0"))
        );
        let first = module(&["first"]).expect("it is there");
        for part in [
            ".const .align 4 .b8 table[4]",
            "ld.const.u32 %r1, [table]",
            "call helper;",
            "first_param_0",
        ] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert!(!first.contains("unused") && !first.contains("second"), "{first}");
        assert!(module(&["first", "second"]).is_some_and(|it| it.contains("entry second")));
        assert_eq!(module(&["third"]), None);
        assert_eq!(module(&["helper"]), None);
    }

    #[test]
    fn older_text_keeps_its_version_and_other_text_is_none() {
        let old = TEXT.replace("8.8", "6.4");
        let unit = PtxUnit::parse(&old).expect("PTX");
        assert!(unit.module(&["first"]).is_some_and(|it| it.starts_with(b".version 6.4\n")));
        for text in ["", "\x7fELF", ".version x.y\n", "int main() {}", ".version 7.0\n.entry f() {"]
        {
            assert!(PtxUnit::parse(text).is_none(), "{text}");
        }
    }

    const FUNCTION: &str = ".version 7.0\n.target sm_75\n.visible .entry first(\n.param .u64 first_param_0\n)\n{\n\
        .reg .pred %p<3>;\n.reg .b32 %r<9>;\nld.param.u64 %rd7, [first_param_0];\nmov.u32 %r5, %tid.x;\n\
        mov.u64 %rd2, %clock64;\n@%p2 bra $L__BB0_3;\nadd.s32 %r1, %r5, %r5;\n$L__BB0_3:\n\
        st.global.u32 [%rd7+8], %r1;\nret;\n}\n.visible .entry second()\n{\nmov.u32 %r8, %laneid;\nret;\n}\n\0";

    #[test]
    fn code_is_the_same_but_for_the_numbers_of_registers_and_labels() {
        let packed = relative(FUNCTION.as_bytes());
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
        assert_eq!(relative(text.as_bytes()), relative(FUNCTION.as_bytes()));
    }

    #[test]
    fn equal_code_has_equal_text_wherever_it_stands() {
        let other =
            FUNCTION.replace("%r5", "%r7").replace("%rd7", "%rd3").replace("BB0_3", "BB4_12");
        assert_ne!(other, FUNCTION);
        assert_eq!(relative(other.as_bytes()), relative(FUNCTION.as_bytes()));
        let swapped = FUNCTION.replace("%r5, %r5", "%r5, %r1");
        assert_ne!(relative(swapped.as_bytes()), relative(FUNCTION.as_bytes()));
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
