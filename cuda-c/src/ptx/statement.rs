//! Finds `asm` statements in a text, and splits them into their parts.

use crate::tokens::{Kind, Tokens};
use std::ops::Range;

/// The qualifiers that mark functions of the device. The front end removes them from the text.
const DEVICE: [&str; 2] = ["__gpuarray_global__", "__gpuarray_variable__"];
/// All qualifiers that the front end removes.
const QUALIFIERS: [&str; 3] = [DEVICE[0], DEVICE[1], "__gpuarray_constant__"];

/// An `asm` statement of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The token `asm`.
    pub(super) at: usize,
    /// True in a device function, false in a host function.
    pub(super) is_device: bool,
    /// The enclosing braces.
    pub(super) braces: Vec<usize>,
}

/// Finds the `asm` statements in the functions of a program.
pub(super) fn find(tokens: &Tokens<'_>) -> Vec<Site> {
    struct Brace {
        at: usize,
        is_namespace: bool,
        is_device: bool,
        /// The first token of the declaration or statement that the brace belongs to.
        head: usize,
    }
    let mut found = Vec::new();
    let mut open: Vec<Brace> = Vec::new();
    // The first token of the current declaration or statement.
    let mut head = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens.at(at) {
            "{" => {
                let is_device = open.last().is_some_and(|it| it.is_device)
                    || (head..at).any(|it| DEVICE.contains(&tokens.at(it)));
                let is_namespace = (head..at).any(|it| tokens.at(it) == "namespace")
                    || (at >= 2 && tokens.at(at - 2) == "extern");
                open.push(Brace { at, is_namespace, is_device, head });
                head = at + 1;
            }
            "}" => {
                let brace = open.pop();
                // A braced value, in a parameter or before a constructor's body, does not end the
                // declaration.
                let goes_on = matches!(tokens.at(at + 1), "," | ")" | "{" | "..." | ">");
                head = brace.filter(|_| goes_on).map_or(at + 1, |it| it.head);
            }
            ";" => head = at + 1,
            _ if is_statement(tokens, at) => {
                if open.iter().any(|it| !it.is_namespace) {
                    let is_device = open.last().is_some_and(|it| it.is_device);
                    let braces = open.iter().map(|it| it.at).collect();
                    found.push(Site { at, is_device, braces });
                }
                // An operand may contain a lambda, whose statements belong to the operand.
                let parenthesis = (at + 1..tokens.len()).find(|&it| tokens.at(it) == "(");
                at = parenthesis.and_then(|it| tokens.partner(it)).unwrap_or(at);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns true for an `asm` statement of the program. In a declaration, `asm` names a symbol instead.
pub(crate) fn is_statement(tokens: &Tokens<'_>, at: usize) -> bool {
    if !matches!(tokens.at(at), "asm" | "__asm__" | "__asm") || !tokens.is_of_program(at) {
        return false;
    }
    let Some(before) = at.checked_sub(1) else { return false };
    match tokens.at(before) {
        ";" | "{" | "}" | ":" | "else" | "do" => true,
        // `if (...) asm(...)`, but not `int f(int) asm("name")`.
        ")" => tokens.partner(before).and_then(|it| it.checked_sub(1)).is_some_and(|word| {
            matches!(tokens.at(word), "if" | "while" | "for" | "switch" | "constexpr")
        }),
        // `[[likely]] asm(...)`, but not `int x[3] asm("name")`.
        "]" => tokens.partner(before).is_some_and(|it| tokens.at(it + 1) == "["),
        _ => false,
    }
}

/// The direction of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
    Both,
}

#[derive(Debug)]
pub(super) struct Operand {
    pub(super) letter: Constraint,
    pub(super) how: Use,
    /// The tokens of the expression.
    pub(super) expression: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constraint {
    /// One of `h`, `r`, `l`, `q`, `f` and `d`: a register.
    Register(char),
    /// `n`: a compile-time constant.
    Number,
}

/// The parts of a statement.
#[derive(Debug)]
pub(super) struct Statement {
    /// The tokens from `asm` to the semicolon.
    pub(super) range: Range<usize>,
    pub(super) is_volatile: bool,
    /// True for a statement directly inside a block, false for the body of an `if` or similar.
    pub(super) is_among_others: bool,
    /// The PTX text, and the offsets in it at which another line of the program begins.
    pub(super) text: String,
    pub(super) lines: Vec<(usize, usize)>,
    /// False for an `asm` with only a string, in which `%` is an ordinary character.
    pub(super) has_operands: bool,
    pub(super) operands: Vec<Operand>,
    pub(super) clobbers_memory: bool,
}

/// Reads the statement that begins at a token.
///
/// # Errors
/// The token of the problem, and a message.
pub(super) fn read(tokens: &Tokens<'_>, at: usize) -> Result<Statement, (usize, String)> {
    let mut open = at + 1;
    let mut is_volatile = false;
    loop {
        match tokens.at(open) {
            "volatile" | "__volatile__" | "__volatile" => is_volatile = true,
            "inline" | "__inline__" | "__inline" => {}
            "goto" => {
                return Err((
                    open,
                    "asm goto is not supported on the host; use a label and bra".into(),
                ));
            }
            _ => break,
        }
        open += 1;
    }
    let close = tokens.partner(open).filter(|_| tokens.at(open) == "(");
    let close = close.ok_or((at, "asm is followed by a string in parentheses".to_owned()))?;
    if tokens.at(close + 1) != ";" {
        return Err((close, "a semicolon is missing after asm(...)".into()));
    }
    let sections = sections(tokens, open + 1..close);
    let mut statement = Statement {
        range: at..close + 2,
        // Without outputs, only the side effects matter.
        is_volatile: is_volatile || sections.get(1).is_none_or(Range::is_empty),
        is_among_others: at > 0 && matches!(tokens.at(at - 1), ";" | "{" | "}"),
        text: String::new(),
        lines: Vec::new(),
        has_operands: sections.len() > 1,
        operands: Vec::new(),
        clobbers_memory: false,
    };
    for literal in sections[0].clone() {
        let start = statement.text.len();
        let line = tokens.line(literal).map_or(0, |(_, line)| line);
        statement.lines.push((start, line));
        let text = string(tokens, literal)?;
        // The lines inside a raw string.
        let own = tokens.at(literal).contains('\n');
        for (number, (newline, _)) in text.match_indices('\n').filter(|_| own).enumerate() {
            statement.lines.push((start + newline + 1, line + number + 1));
        }
        statement.text.push_str(&text);
    }
    if sections[0].is_empty() {
        return Err((open, "asm needs a string".into()));
    }
    if let Some(inner) = (open + 1..close).find(|&it| is_statement(tokens, it)) {
        return Err((
            inner,
            "an operand of asm holds another asm statement; compute it before".into(),
        ));
    }
    for (number, section) in sections.iter().enumerate().skip(1) {
        for part in parts(tokens, section.clone()) {
            match number {
                1 | 2 => {
                    let operand = operand(tokens, part, number == 1)?;
                    statement.operands.push(operand);
                }
                3 => {
                    let words: Result<Vec<_>, _> =
                        part.clone().map(|it| string(tokens, it)).collect();
                    if words?.concat() != "memory" {
                        return Err((part.start, "asm can clobber \"memory\" alone".into()));
                    }
                    statement.clobbers_memory = true;
                }
                _ => return Err((part.start, "asm has at most four parts between colons".into())),
            }
        }
    }
    Ok(statement)
}

/// Splits a range at its colons.
fn sections(tokens: &Tokens<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let (mut begin, mut at) = (range.start, range.start);
    while at < range.end {
        let is_mark = tokens.all[at].kind == Kind::Mark;
        match tokens.at(at) {
            ":" if is_mark => {
                all.push(begin..at);
                begin = at + 1;
            }
            "::" if is_mark => {
                all.extend([begin..at, at..at]);
                begin = at + 1;
            }
            "(" | "[" | "{" if is_mark => at = tokens.partner(at).unwrap_or(at),
            _ => {}
        }
        at += 1;
    }
    all.push(begin..range.end);
    all
}

/// Splits a range at its commas, and after the expression of an operand: NVIDIA's compilers need no comma there.
fn parts(tokens: &Tokens<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let (mut begin, mut at) = (range.start, range.start);
    while at < range.end {
        match tokens.at(at) {
            "," => {
                all.push(begin..at);
                begin = at + 1;
            }
            "(" | "[" | "{" => {
                at = tokens.partner(at).unwrap_or(at);
                if at + 1 < range.end && tokens.at(at + 1).starts_with('"') {
                    all.push(begin..at + 1);
                    begin = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if begin < range.end {
        all.push(begin..range.end);
    }
    all
}

/// Reads `[name] "constraint" (expression)`.
fn operand(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    is_output: bool,
) -> Result<Operand, (usize, String)> {
    let mut at = range.start;
    if tokens.at(at) == "[" {
        return Err((at, "operands of asm cannot have names; use their numbers".into()));
    }
    let mut text = String::new();
    let first = at;
    while at < range.end && tokens.at(at) != "(" {
        text.push_str(&string(tokens, at)?);
        at += 1;
    }
    let close = tokens.partner(at).filter(|&it| it + 1 == range.end && at < range.end);
    let close = close.ok_or_else(|| {
        (range.start, "an operand of asm is a constraint and an expression in parentheses".into())
    })?;
    if close == at + 1 {
        return Err((at, "an operand of asm is empty".to_owned()));
    }
    let allowed = match is_output {
        true => "\"=\" or \"+\" and one of h, r, l, q, f, d",
        false => "h, r, l, q, f, d and n",
    };
    let refused = |allowed: &str| {
        let kind = if is_output { "output" } else { "input" };
        (
            first,
            format!(
                "the constraint {text:?} of an {kind} is not supported on the host; allowed are {allowed}"
            ),
        )
    };
    let plain = text.trim().replace('&', "");
    let (how, letter) = match (plain.chars().next(), is_output) {
        (Some('='), true) => (Use::Write, &plain[1..]),
        (Some('+'), true) => (Use::Both, &plain[1..]),
        (_, true) => return Err(refused(allowed)),
        (_, false) => (Use::Read, plain.as_str()),
    };
    let letter = match letter {
        "h" | "r" | "l" | "q" | "f" | "d" => {
            Constraint::Register(letter.chars().next().unwrap_or('r'))
        }
        "n" if !is_output => Constraint::Number,
        _ => return Err(refused(allowed)),
    };
    Ok(Operand { letter, how, expression: at + 1..close })
}

/// Returns the text of an expression, without the qualifiers that the front end removes.
pub(super) fn source(tokens: &Tokens<'_>, range: Range<usize>) -> String {
    let mut text = String::new();
    let mut from = tokens.all[range.start].start;
    for at in range.clone() {
        if QUALIFIERS.contains(&tokens.at(at)) {
            text.push_str(&tokens.text[from..tokens.all[at].start]);
            from = tokens.all[at].end;
        }
    }
    text.push_str(&tokens.text[from..tokens.all[range.end - 1].end]);
    text
}

/// Returns the value of a string literal.
fn string(tokens: &Tokens<'_>, at: usize) -> Result<String, (usize, String)> {
    let literal = tokens.at(at);
    if let Some(raw) = literal.strip_prefix("R\"") {
        let body = raw.find('(').and_then(|open| {
            let end = raw.len().checked_sub(open + 2)?;
            raw.get(open + 1..end)
        });
        return body.map(str::to_owned).ok_or((at, "a raw string does not end".into()));
    }
    let inner = literal.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let inner = inner.ok_or((at, "asm needs a string without a prefix".to_owned()))?;
    unescaped(inner).ok_or((at, format!("the string {literal} has an unknown escape sequence")))
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (&escape, others) = rest.split_first()?;
        rest = others;
        let mut digits = |radix: u32, most: usize, first: Option<u8>| {
            let is_digit = |it: &&u8| (**it as char).is_digit(radix);
            let count = rest.iter().take(most).take_while(is_digit).count();
            let own: Vec<u8> = first.into_iter().chain(rest[..count].iter().copied()).collect();
            rest = &rest[count..];
            u32::from_str_radix(std::str::from_utf8(&own).ok()?, radix).ok()
        };
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'0'..=b'7' => u8::try_from(digits(8, 2, Some(escape))?).ok()?,
            b'x' => u8::try_from(digits(16, 2, None)?).ok()?,
            b'\\' | b'"' | b'\'' | b'?' => escape,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}
