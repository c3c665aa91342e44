//! Parses PTX: register declarations, scopes, labels and instructions.

use super::constant;
use super::lexer::{Lexeme, Token};

#[derive(Debug)]
pub(super) enum Item {
    Open,
    Close,
    Label(String),
    /// The type and the names; for `name<count>`, also the number of registers.
    Registers {
        kind: String,
        names: Vec<(String, Option<u64>)>,
    },
    Instruction(Instruction),
}

/// An item, and its offset in the text.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) at: usize,
    pub(super) item: Item,
}

#[derive(Debug)]
pub(super) struct Instruction {
    /// The source text, for messages.
    pub(super) text: String,
    /// `@p` or `@!p`.
    pub(super) guard: Option<Operand>,
    /// The name, and the parts after its dots.
    pub(super) name: String,
    pub(super) modifiers: Vec<String>,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A register, a special register or a label.
    Word(String),
    /// An operand of the statement, by its number.
    Bound(usize),
    Integer(i64),
    Single(u32),
    Double(f64),
    /// `-r`, which only one instruction accepts.
    Minus(Box<Operand>),
    Vector(Vec<Operand>),
    Address {
        base: Box<Operand>,
        offset: Offset,
    },
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
}

/// The offset that is added to an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Offset {
    Constant(i64),
    /// An operand of the statement, by its number.
    Bound(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) value: Value,
    /// `!p`
    pub(super) is_negated: bool,
    /// `b0` of `r.b0`.
    pub(super) selector: Option<String>,
}

/// The offset of a problem in the text, and a message.
pub(super) type Wrong = (usize, String);

/// Parses the items of a text.
///
/// # Errors
/// The first problem.
pub(super) fn read(text: &str, tokens: &[Token]) -> Result<Vec<Placed>, Wrong> {
    let mut items = Vec::new();
    let mut at = 0;
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        let start = token.start;
        let mut place = |item| items.push(Placed { at: start, item });
        match (&token.lexeme, tokens.get(at + 1).map(|it| &it.lexeme)) {
            (Lexeme::Mark(';'), _) => at += 1,
            (Lexeme::Mark('{'), _) => {
                depth += 1;
                place(Item::Open);
                at += 1;
            }
            (Lexeme::Mark('}'), _) => {
                depth = depth.checked_sub(1).ok_or_else(|| (start, unbalanced()))?;
                place(Item::Close);
                at += 1;
            }
            (Lexeme::Word(name), Some(Lexeme::Mark(':'))) => {
                place(Item::Label(name.clone()));
                at += 2;
            }
            (Lexeme::Mark('.'), Some(Lexeme::Word(directive))) => {
                let end = statement_end(text, tokens, at)?;
                match directive.as_str() {
                    "reg" => place(registers(&tokens[at + 2..end], start)?),
                    "pragma" | "loc" | "file" => {}
                    other => {
                        return Err((
                            start,
                            format!(
                                "inline PTX: the directive .{other} is not supported on the host; allowed are .reg and .pragma"
                            ),
                        ));
                    }
                }
                at = end + 1;
            }
            (Lexeme::Mark('@') | Lexeme::Word(_), _) => {
                let end = statement_end(text, tokens, at)?;
                place(Item::Instruction(instruction(text, &tokens[at..end])?));
                at = end + 1;
            }
            _ => {
                return Err((
                    start,
                    format!("inline PTX: no instruction begins with '{}'", &text[start..token.end]),
                ));
            }
        }
    }
    match depth {
        0 => Ok(items),
        _ => Err((text.len(), unbalanced())),
    }
}

fn unbalanced() -> String {
    "inline PTX: on the host braces open and close in one asm statement".to_owned()
}

/// Returns the semicolon that ends the statement at a token.
fn statement_end(text: &str, tokens: &[Token], at: usize) -> Result<usize, Wrong> {
    let found = tokens[at..].iter().position(|it| it.lexeme == Lexeme::Mark(';'));
    found.map(|it| at + it).ok_or_else(|| {
        let start = tokens[at].start;
        (start, format!("inline PTX: a semicolon is missing behind '{}'", shown(&text[start..])))
    })
}

/// Parses `.type a, b<4>`.
fn registers(tokens: &[Token], start: usize) -> Result<Item, Wrong> {
    let wrong = |token: Option<&Token>| {
        let at = token.map_or(start, |it| it.start);
        (at, "inline PTX: registers are declared as .reg .type name, name<count>".to_owned())
    };
    let [dot, kind, rest @ ..] = tokens else { return Err(wrong(None)) };
    let (Lexeme::Mark('.'), Lexeme::Word(kind)) = (&dot.lexeme, &kind.lexeme) else {
        return Err(wrong(Some(dot)));
    };
    let mut names = Vec::new();
    for part in rest.split(|it| it.lexeme == Lexeme::Mark(',')) {
        let lexemes: Vec<&Lexeme> = part.iter().map(|it| &it.lexeme).collect();
        match lexemes.as_slice() {
            [Lexeme::Word(name)] => names.push((name.clone(), None)),
            [Lexeme::Word(name), Lexeme::Mark('<'), Lexeme::Integer(count), Lexeme::Mark('>')] => {
                names.push((name.clone(), Some(*count)));
            }
            _ => return Err(wrong(part.first())),
        }
    }
    Ok(Item::Registers { kind: kind.clone(), names })
}

/// The maximum length of an instruction in a message, in characters.
const SHOWN: usize = 80;

/// Returns a part of the text on one line, for messages.
fn shown(text: &str) -> String {
    let whole: Vec<&str> = text.split_whitespace().collect();
    let mut shown: String = whole.join(" ");
    if let Some((cut, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(cut);
        shown.push_str("...");
    }
    shown
}

fn instruction(text: &str, tokens: &[Token]) -> Result<Instruction, Wrong> {
    let start = tokens[0].start;
    let end = tokens.last().map_or(start, |it| it.end);
    let shown = shown(&text[start..end]);
    let wrong = |what: &str| (start, format!("inline PTX: '{shown}' {what}"));
    let mut rest = tokens;
    let mut guard = None;
    if rest[0].lexeme == Lexeme::Mark('@') {
        let is_negated = rest.get(1).is_some_and(|it| it.lexeme == Lexeme::Mark('!'));
        let at = 1 + usize::from(is_negated);
        let value = match rest.get(at).map(|it| &it.lexeme) {
            Some(Lexeme::Word(name)) => Value::Word(name.clone()),
            _ => return Err(wrong("has no predicate behind @")),
        };
        guard = Some(Operand { value, is_negated, selector: None });
        rest = &rest[at + 1..];
    }
    let Some(Lexeme::Word(name)) = rest.first().map(|it| &it.lexeme) else {
        return Err(wrong("has no name"));
    };
    rest = &rest[1..];
    let mut modifiers: Vec<String> = Vec::new();
    while let [dot, word, others @ ..] = rest {
        let (Lexeme::Mark('.'), Lexeme::Word(word)) = (&dot.lexeme, &word.lexeme) else { break };
        let mut modifier = word.clone();
        rest = others;
        // A qualified modifier such as `shared::cta`.
        while let [first, second, part, others @ ..] = rest
            && let Lexeme::Word(part) = &part.lexeme
            && [first, second].iter().all(|it| it.lexeme == Lexeme::Mark(':'))
        {
            modifier = format!("{modifier}::{part}");
            rest = others;
        }
        modifiers.push(modifier);
    }
    if rest.first().is_some_and(|it| it.lexeme == Lexeme::Mark('.')) {
        return Err(wrong("is not an instruction that the host has"));
    }
    let (name, tokens) = (name.clone(), rest.to_vec());
    Ok(Instruction { text: shown.clone(), guard, name, modifiers, tokens })
}

impl Instruction {
    /// Parses the operands.
    ///
    /// # Errors
    /// A message that describes the problem.
    pub(super) fn operands(&self) -> Result<Vec<Operand>, String> {
        let mut reader = Operands { left: &self.tokens };
        let mut all = Vec::new();
        if reader.left.is_empty() {
            return Ok(all);
        }
        loop {
            all.push(reader.operand()?);
            if reader.left.is_empty() {
                return Ok(all);
            }
            reader.expect(',')?;
        }
    }
}

struct Operands<'t> {
    left: &'t [Token],
}

impl Operands<'_> {
    fn next_is(&self, mark: char) -> bool {
        self.left.first().is_some_and(|it| it.lexeme == Lexeme::Mark(mark))
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.next_is(mark);
        if found {
            self.left = &self.left[1..];
        }
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(format!("is missing a '{mark}'")) }
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.take('{') {
            let mut parts = Vec::new();
            while !self.take('}') {
                if !parts.is_empty() {
                    self.expect(',')?;
                }
                parts.push(self.single()?);
            }
            return Ok(Operand { value: Value::Vector(parts), is_negated: false, selector: None });
        }
        if self.take('[') {
            return self.address();
        }
        let first = self.single()?;
        let is_name = matches!(first.value, Value::Word(_) | Value::Bound(_));
        if is_name && self.take('|') {
            let second = self.single()?;
            let value = Value::Pair(Box::new(first), Box::new(second));
            return Ok(Operand { value, is_negated: false, selector: None });
        }
        Ok(first)
    }

    /// Parses `base`, `base+offset` or `base-offset` up to the bracket.
    fn address(&mut self) -> Result<Operand, String> {
        let base = Box::new(self.single()?);
        let offset = match self.left.first().map(|it| &it.lexeme) {
            Some(Lexeme::Mark('+')) => {
                self.left = &self.left[1..];
                match self.left.first().map(|it| &it.lexeme) {
                    Some(Lexeme::Bound(number)) => {
                        let number = *number;
                        self.left = &self.left[1..];
                        Offset::Bound(number)
                    }
                    _ => Offset::Constant(constant::read(&mut self.left)?),
                }
            }
            Some(Lexeme::Mark('-')) => Offset::Constant(constant::read(&mut self.left)?),
            _ => Offset::Constant(0),
        };
        self.expect(']')?;
        Ok(Operand { value: Value::Address { base, offset }, is_negated: false, selector: None })
    }

    /// Parses a name, a number, or a constant expression.
    fn single(&mut self) -> Result<Operand, String> {
        let is_negated = match self.left {
            [mark, next, ..] => {
                mark.lexeme == Lexeme::Mark('!')
                    && matches!(next.lexeme, Lexeme::Word(_) | Lexeme::Bound(_))
            }
            _ => false,
        };
        if is_negated {
            self.left = &self.left[1..];
        }
        let Some(first) = self.left.first() else { return Err("is missing an operand".into()) };
        let is_minus = first.lexeme == Lexeme::Mark('-');
        if let [_, next, ..] = self.left
            && is_minus
            && matches!(&next.lexeme, Lexeme::Word(name) if name != constant::WARP_SIZE)
                | matches!(next.lexeme, Lexeme::Bound(_))
        {
            self.left = &self.left[1..];
            let value = Value::Minus(Box::new(self.single()?));
            return Ok(Operand { value, is_negated, selector: None });
        }
        let number = self.left.get(usize::from(is_minus)).map(|it| &it.lexeme);
        let value = match (&first.lexeme, number) {
            (Lexeme::Word(name), _) if name != constant::WARP_SIZE => Value::Word(name.clone()),
            (Lexeme::Bound(number), _) => Value::Bound(*number),
            (_, Some(Lexeme::Single(bits))) => {
                Value::Single(if is_minus { bits ^ 0x8000_0000 } else { *bits })
            }
            (_, Some(Lexeme::Double(value))) => {
                Value::Double(if is_minus { -*value } else { *value })
            }
            _ => {
                let value = Value::Integer(constant::read(&mut self.left)?);
                return Ok(Operand { value, is_negated, selector: None });
            }
        };
        let taken = 1 + usize::from(is_minus);
        self.left = &self.left[taken..];
        let mut selector = None;
        if let [dot, part, others @ ..] = self.left
            && let (Lexeme::Mark('.'), Lexeme::Word(part)) = (&dot.lexeme, &part.lexeme)
        {
            selector = Some(part.clone());
            self.left = others;
        }
        Ok(Operand { value, is_negated, selector })
    }
}
