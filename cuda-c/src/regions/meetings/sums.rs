//! Array indices as sums of terms: terms with the thread's index, other terms, and a constant offset.
//!
//! For example, `s[n * row + threadIdx.x - 1]` has the thread's term `threadIdx.x`, the other term `n * row`,
//! and the offset -1. Indices with the same thread's terms are compared by the rest: the same rest is the
//! same element of the same thread, and a larger one belongs to a thread with a higher number.

/// The axes of `threadIdx` that an expression depends on, as bits.
pub(super) type Axes = u8;

/// A token of an expression whose locals have been replaced by their initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) axes: Axes,
    /// True for a value that may change between uses, is in memory, or is returned by a function: two uses of
    /// the token may have different values.
    pub(super) is_open: bool,
    /// True for such a value if it may also differ between threads.
    pub(super) is_free: bool,
}

/// The value of an index, as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) tokens: Vec<Token>,
}

impl Index {
    fn of(text: &str, axes: Axes, is_open: bool, is_free: bool) -> Index {
        Index { tokens: vec![Token { text: text.to_owned(), axes, is_open, is_free }] }
    }

    pub(super) fn unknown() -> Index {
        Index::of("", 0, true, true)
    }

    /// Returns the index that stands for the place a pointer points to when that place is not known.
    pub(super) fn of_pointer(name: &str, id: usize) -> Index {
        Index::of(&format!("&{name}#{id}"), 0, true, true)
    }

    /// Returns the locals in the index whose value may change between uses.
    pub(super) fn open_locals(&self) -> impl Iterator<Item = usize> {
        let open = self.tokens.iter().filter(|it| it.is_open);
        open.filter_map(|it| it.text.split_once('#')?.1.parse().ok())
    }

    /// Returns the index for a number or an operator.
    pub(super) fn of_text(text: &str) -> Index {
        Index::of(text, 0, false, false)
    }

    /// Returns the index `threadIdx.x`.
    pub(super) fn of_thread() -> Index {
        Index::of("threadIdx.x", 1, false, false)
    }

    /// Returns the text of the offset if the index is `threadIdx.x` plus an offset.
    pub(super) fn without_thread(&self) -> Option<String> {
        let sum = Sum::of(self);
        let is_fixed = !self.is_free() && self.open_locals().next().is_none();
        (sum.own == ["threadIdx.x"] && is_fixed).then_some(())?;
        let offset = sum.offset.to_string();
        let words = sum.others.iter().map(String::as_str).chain([offset.as_str()]);
        let text = words.collect::<Vec<_>>().join(" + ");
        // Removes the numbers of locals.
        let names = text.split(' ').map(|it| it.split('#').next().unwrap_or(it));
        Some(names.collect::<Vec<_>>().join(" "))
    }

    /// Returns a value that is the same in all threads but changes over time.
    pub(super) fn of_round() -> Index {
        Index::of("round", 0, true, false)
    }

    pub(super) fn grouped(&self) -> Vec<Token> {
        let [open, close] = ["(", ")"].map(|it| Index::of_text(it).tokens);
        match self.tokens.len() {
            1 => self.tokens.clone(),
            _ => [open, self.tokens.clone(), close].concat(),
        }
    }

    /// Returns the sum of two indices.
    pub(super) fn plus(&self, other: &Index) -> Index {
        let part = |index: &Index| {
            let binds_less = |it: &Token| {
                matches!(it.text.as_str(), "?" | "<<" | ">>" | "&" | "|" | "^" | "<" | ">" | "==")
            };
            if index.tokens.iter().any(binds_less) { index.grouped() } else { index.tokens.clone() }
        };
        Index { tokens: [part(self), Index::of_text("+").tokens, part(other)].concat() }
    }

    /// Returns true if the index is known to differ between threads.
    pub(super) fn is_of_thread(&self) -> bool {
        self.axes() != 0 && !self.is_free()
    }

    /// Returns true if the index is the same in all threads and is not a number.
    pub(super) fn is_offset(&self) -> bool {
        self.axes() == 0 && !self.is_free() && !self.is_number()
    }

    fn is_number(&self) -> bool {
        let sum = Sum::of(self);
        sum.own.is_empty() && sum.others.is_empty()
    }

    pub(super) fn axes(&self) -> Axes {
        self.tokens.iter().fold(0, |axes, it| axes | it.axes)
    }

    pub(super) fn is_free(&self) -> bool {
        self.tokens.iter().any(|it| it.is_free)
    }

    pub(super) fn text(&self) -> String {
        self.tokens.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// Returns true if the first access to an element apparently comes before another thread's second access to
/// it, both if all threads finish the first before the second, and if threads run in order.
pub(super) fn are_ordered(first: &[Index], second: &[Index]) -> bool {
    is_ahead(first, second) || are_of_parts(first, second) || is_of_later_row(first, second)
}

/// Returns true if a thread reads an element after the one that it writes. The element belongs to a thread
/// with a higher number, which has not written it yet if threads run in order: `s[t] = s[t + 1];`.
fn is_ahead(read: &[Index], write: &[Index]) -> bool {
    let differs = |(read, write): &(&Index, &Index)| read != write;
    let mut pairs = read.iter().zip(write).filter(differs);
    let (Some((read, write)), None) = (pairs.next(), pairs.next()) else { return false };
    let (first, second) = (Sum::of(read), Sum::of(write));
    let (mut more, mut less) = (first.others.clone(), second.others.clone());
    more.retain(|it| less.iter().position(|other| it == other).map(|at| less.remove(at)).is_none());
    let is_other_block = !(more.is_empty() && less.is_empty())
        && first.offset == second.offset
        && more.iter().chain(&less).all(|it| is_of_blocks(it, false));
    // These terms increase with the number of the thread.
    let counts_up = |it: &String| {
        !it.split(' ').any(|word| matches!(word, "-" | "~" | "%" | "&" | "^" | "|" | "?" | "!"))
    };
    let is_known = !(read.is_free() || write.is_free() || first.own.is_empty());
    let is_later = first.own.iter().all(counts_up)
        && less.is_empty()
        && first.offset >= second.offset
        && more.iter().all(|it| !it.split(' ').any(|word| word == "-" || word == "~"));
    let is_row = first.own == second.own && (is_other_block || is_later);
    is_known && is_row || is_of_pointer(&first, &second)
}

/// Returns true for targets of an unknown pointer, which apparently points to the thread's own
/// structure.
fn is_of_pointer(first: &Sum, second: &Sum) -> bool {
    matches!(&first.others[..], [pointer] if pointer.starts_with('&'))
        && first.others == second.others
        && first.own.is_empty()
        && second.own.is_empty()
        && first.offset.min(second.offset) >= 0
}

/// Returns true for elements of a row that all threads read and of later rows: `a[n * k + j]` and `a[n * (i +
/// 1 + k) + j]`.
fn is_of_later_row(read: &[Index], write: &[Index]) -> bool {
    let ([read], [write]) = (read, write) else { return false };
    if read.is_free() || write.is_free() {
        return false;
    }
    let (mut from, mut to) = (terms(&read.tokens), terms(&write.tokens));
    from.retain(|it| to.iter().position(|other| it == other).map(|at| to.remove(at)).is_none());
    let ([(false, from)], [(false, to)]) = (&from[..], &to[..]) else { return false };
    let (from, to) = (split(from, "*"), split(to, "*"));
    let ([a, b], [c, d]) = (&from[..], &to[..]) else { return false };
    [(a, b, c, d), (b, a, c, d), (a, b, d, c), (b, a, d, c)].into_iter().any(
        |(common, row, other, later)| {
            let mut more = terms(inside(later));
            let is_added = terms(inside(row)).iter().all(|it| {
                let at = more.iter().position(|other| it == other);
                at.map(|at| more.remove(at)).is_some()
            });
            let is_less = |(is_less, term): &(bool, &[Token])| {
                *is_less || term.iter().any(|it| matches!(it.text.as_str(), "-" | "~"))
            };
            let is_number = |(_, term): &(bool, &[Token])| {
                matches!(term, [it] if it.text.parse().is_ok_and(|it: u64| it > 0))
            };
            common == other && is_added && !more.iter().any(is_less) && more.iter().any(is_number)
        },
    )
}

/// Removes the parentheses around an expression.
pub(super) fn inside(mut tokens: &[Token]) -> &[Token] {
    while let [first, inner @ .., last] = tokens
        && first.text == "("
        && last.text == ")"
        && is_one_group(tokens)
    {
        tokens = inner;
    }
    tokens
}

/// Returns true for elements of two parts of an array with different offsets, which are the same in all
/// threads: `s[from * n + t]` and `s[to * n + t]`.
fn are_of_parts(old: &[Index], new: &[Index]) -> bool {
    let has_more = |first: &Sum, second: &Sum| {
        first.others.iter().any(|it| !it.starts_with('-') && !second.others.contains(it))
    };
    old.len() == new.len()
        && old.iter().zip(new).any(|(old, new)| {
            let (first, second) = (Sum::of(old), Sum::of(new));
            let is_known = !old.is_free() && !new.is_free() && first.own == second.own;
            is_known
                && !first.own.is_empty()
                && has_more(&first, &second)
                && has_more(&second, &first)
        })
}

/// Returns true for two different numbers, or for the same uniform value plus two different numbers.
pub(super) fn are_apart(old: &Index, new: &Index) -> bool {
    if old.is_free() || new.is_free() || old.axes() != 0 || new.axes() != 0 {
        return false;
    }
    let (first, second) = (Sum::of(old), Sum::of(new));
    !first.is_open && first.others == second.others && first.offset != second.offset
}

/// Splits an expression at an operator, ignoring nested parentheses.
pub(super) fn split<'t>(tokens: &'t [Token], operator: &str) -> Vec<&'t [Token]> {
    let mut depth = 0_usize;
    tokens
        .split(|it| {
            match it.text.as_str() {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && it.text == operator
        })
        .collect()
}

/// Returns the terms of a sum, each with true if it is subtracted.
fn terms(tokens: &[Token]) -> Vec<(bool, &[Token])> {
    let (mut found, mut depth, mut start, mut is_less) = (Vec::new(), 0_usize, 0, false);
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            sign @ ("+" | "-") if depth == 0 => {
                // After an operator, this is a unary sign.
                let is_term = at > start
                    && !matches!(
                        tokens[at - 1].text.as_str(),
                        "*" | "/" | "%" | "<<" | ">>" | "&" | "|" | "^" | "<" | ">" | "?" | ":"
                    );
                if is_term {
                    found.push((is_less, &tokens[start..at]));
                }
                if is_term || at == start {
                    is_less =
                        sign == "-" && (is_term || !is_less) || sign == "+" && !is_term && is_less;
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    found.push((is_less, &tokens[start..]));
    found
}

/// Returns true for a term that is apparently a multiple of the block size. In global memory, any multiple of
/// a variable counts.
pub(super) fn is_of_blocks(term: &str, is_shared: bool) -> bool {
    let is_large =
        |it: &str| it.trim_end_matches(['u', 'U', 'l', 'L']).parse().is_ok_and(|it: u64| it >= 32);
    let is_name = |it: &str| it.starts_with(|it: char| it.is_alphabetic() || it == '_');
    let names = term.split(' ').filter(|it| is_name(it)).count();
    term.contains("blockDim")
        || (term.contains('*') && (term.split(' ').any(is_large) || (!is_shared && names > 1)))
}

/// An index as a sum: terms with the thread's index, other terms, and a constant offset.
pub(super) struct Sum {
    pub(super) own: Vec<String>,
    pub(super) others: Vec<String>,
    pub(super) offset: i64,
    pub(super) is_open: bool,
}

impl Sum {
    pub(super) fn of(index: &Index) -> Sum {
        let mut sum = Sum { own: Vec::new(), others: Vec::new(), offset: 0, is_open: false };
        sum.add(&index.tokens, false);
        sum.own.sort();
        sum.others.sort();
        sum
    }

    /// Adds the terms of an expression, or subtracts them if `is_taken` is true.
    fn add(&mut self, tokens: &[Token], is_taken: bool) {
        let tokens = inside(tokens);
        for (is_less, term) in terms(tokens) {
            let is_less = is_less != is_taken;
            if inside(term).len() < term.len() {
                self.add(term, is_less);
                continue;
            }
            let text = term.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
            let number = text.trim_end_matches(['u', 'U', 'l', 'L']).parse::<i64>();
            let sign = if is_less { "- " } else { "" };
            if term.iter().any(|it| it.axes != 0) {
                self.own.push(format!("{sign}{text}"));
            } else if let Ok(number) = number {
                let by = if is_less { -number } else { number };
                self.offset = self.offset.saturating_add(by);
                continue;
            } else {
                self.others.push(format!("{sign}{text}"));
            }
            self.is_open |= term.iter().any(|it| it.is_open);
        }
    }

    /// Returns true if the thread's index is multiplied or divided.
    pub(super) fn is_spread(&self) -> bool {
        let spreads = |it: &str| matches!(it, "*" | "/" | "%" | "&" | "<<" | ">>");
        self.own.iter().any(|it| it.split(' ').any(spreads))
    }

    /// Returns the number by which the thread's index is multiplied, or 0 if the index is not a single term.
    pub(super) fn factor(&self) -> i64 {
        let [term] = &self.own[..] else { return 0 };
        let words: Vec<&str> = term.split(' ').collect();
        let number = |it: &str| it.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok();
        match words[..] {
            [first, "*", ..] if number(first).is_some() => number(first).unwrap_or_default(),
            [.., "*", last] => number(last).unwrap_or_default(),
            [.., "<<", last] => number(last).map_or(0, |it: i64| 1 << it.clamp(0, 62)),
            _ => 0,
        }
    }
}

/// Returns true if the first parenthesis closes at the end.
fn is_one_group(tokens: &[Token]) -> bool {
    let mut depth = 0_usize;
    tokens.iter().enumerate().all(|(at, it)| {
        match it.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0 || at + 1 == tokens.len()
    })
}
