//! Makes the lanes of a warp wait for each other at assignments to volatile shared and global memory.
//!
//! Programs written before `__syncwarp` exchange values between the lanes of a warp through volatile memory
//! without a barrier: `s[t] += s[t + 16]; s[t] += s[t + 8];`.
//!
//! On a GPU all lanes read, then all write. If a statement assigns to an element of a volatile array or
//! pointer, the element is therefore wrapped in a call (`include/cuda_c/volatile_writes.h`):
//! `::cuda_c::together(s[t]) += s[t + 16];`. The result of the call waits for the other lanes when it is
//! assigned to, if the element is in shared memory. In global memory they wait if the text also reads volatile
//! elements there, and so not in `volatile float *out`, which is only written. If the element turns out not to be volatile, the
//! assignment works as before. If the assigned value is a constant, the lanes only meet after the write
//! (`at_once`), because other lanes may be waiting for it.
//!
//! After a branch with such a write, the lanes meet again ([`branches`]). A loop that waits for another
//! thread's write lets that thread run ([`loops`]). Statements that are not understood with certainty stay
//! unchanged.

mod branches;
mod loop_parts;
mod loops;
mod names;
mod questions;
mod waits;

use crate::tokens::{Kind, Tokens};
use names::Names;
pub(crate) use questions::Edits;
pub use questions::VolatileLines;

/// The call around an element whose write waits until all lanes have read.
const TOGETHER: &str = "::cuda_c::together(";
/// The call around an element to which a constant is assigned. It is written without waiting for other lanes.
const AT_ONCE: &str = "::cuda_c::at_once(";
/// The argument of these calls in texts whose lanes may exchange values in global memory, too.
const IN_GLOBAL_MEMORY: &str = "<true>";

/// Returns the edits for all such assignments. `lines` holds what the compiler has said about them.
pub(crate) fn edits(tokens: &Tokens<'_>, lines: &VolatileLines) -> Edits {
    let names = Names::of(tokens);
    let mut reader = Reader { tokens, names, lines, edits: Edits::default(), writes: Vec::new() };
    // For each enclosing brace or parenthesis: true if it contains statements.
    let mut around = Vec::new();
    // The end of the enclosing `constexpr` function, which may run in the compiler and has no volatile variables.
    let mut constant = 0;
    for at in 0..tokens.len() {
        let is_place = around.last().is_none_or(|it| *it) && begins_statement(tokens, at);
        if is_place && at >= constant && tokens.is_of_program(at) {
            reader.statement(at);
        }
        match tokens.at(at) {
            "{" if at >= constant && is_of_constant(tokens, at) => {
                constant = tokens.partner(at).unwrap_or(at);
                around.push(true);
            }
            // The initialisation and the step of a `for` are statements.
            "(" if at > 0 && tokens.at(at - 1) == "for" => around.push(true),
            "(" | "[" => around.push(false),
            "{" => around.push(true),
            ")" | "]" | "}" => drop(around.pop()),
            _ => {}
        }
    }
    reader.writes.sort_unstable();
    let Reader { names, mut edits, writes, .. } = reader;
    let is_exchanged = branches::is_exchanged(tokens, &names, &writes);
    for (_, _, text) in edits.meetings.iter_mut().filter(|it| is_exchanged && it.2.ends_with('(')) {
        text.insert_str(text.len() - 1, IN_GLOBAL_MEMORY);
    }
    let ends = branches::ends(tokens, &writes, is_exchanged);
    let meets = !edits.meetings.is_empty();
    edits.meetings.extend(ends.into_iter().map(|(at, text)| (at, at, text)));
    loops::edits(tokens, &names, lines, meets, &mut edits);
    edits.meetings.sort_by_key(|it| it.0);
    edits.questions.sort_by_key(|it| it.0);
    edits
}

/// Returns true for the brace of a `constexpr` function.
fn is_of_constant(tokens: &Tokens<'_>, brace: usize) -> bool {
    let words: Vec<_> = tokens.heading(brace).collect();
    (0..words.len()).any(|at| words[at] == "constexpr" && words.get(at + 1) != Some(&"if"))
}

/// Returns true for the first token of an expression or declaration statement: in a body, or after a
/// condition or a `switch` label.
fn begins_statement(tokens: &Tokens<'_>, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    let is_control = |at: usize| {
        matches!(
            tokens.at(at),
            "if" | "else" | "for" | "while" | "do" | "switch" | "case" | "default" | "return"
        )
    };
    if is_control(at) {
        return false;
    }
    match tokens.at(before) {
        ";" | "{" | "}" | "else" | "do" => true,
        "(" => before > 0 && tokens.at(before - 1) == "for",
        ")" => tokens
            .partner(before)
            .and_then(|open| open.checked_sub(1))
            .is_some_and(|it| matches!(tokens.at(it), "if" | "for" | "while" | "constexpr")),
        ":" => (0..before)
            .rev()
            .take_while(|&it| !matches!(tokens.at(it), ";" | "{" | "}" | "?"))
            .any(|it| matches!(tokens.at(it), "case" | "default")),
        _ => false,
    }
}

/// The left side of an assignment.
struct Left {
    end: usize,
    /// True if the element has a volatile name.
    is_volatile: bool,
    /// True for other elements that can be referenced. Only the compiler knows their types.
    is_open: bool,
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    names: Names<'a>,
    lines: &'t VolatileLines,
    edits: Edits,
    /// The tokens at which volatile elements are assigned.
    writes: Vec<usize>,
}

impl Reader<'_, '_> {
    /// Adds the edits of a statement: of each assignment between commas, and of chained assignments.
    fn statement(&mut self, first: usize) {
        let tokens = self.tokens;
        if tokens.at(first - 1) == "{" && tokens.heading(first - 1).any(|it| it == "enum") {
            return;
        }
        let mut at = first;
        // In a declaration, commas separate declarators rather than expressions.
        let mut is_expression = false;
        loop {
            let counts = is_doubled(tokens, at);
            let begin = at + if counts { 2 } else { 0 };
            let left = self.left(begin);
            let sign = left.as_ref().and_then(|it| Some((it, operation(tokens, it.end)?)));
            match (left.as_ref(), sign) {
                (Some(left), _) if counts => {
                    is_expression = true;
                    self.wrap(begin, left, TOGETHER);
                    at = left.end;
                }
                (Some(left), Some((_, behind))) => {
                    let right = left.end + behind;
                    let is_list = tokens.at(right) == "{"
                        || tokens.at(right).starts_with('"')
                        // A constructor or operator: `T(const T &) = default;`
                        || matches!(tokens.at(right), "default" | "delete");
                    if is_list {
                        return;
                    }
                    is_expression |= at == first;
                    let is_plain = behind == 1 && self.is_constant(right);
                    self.wrap(begin, left, if is_plain { AT_ONCE } else { TOGETHER });
                    at = right;
                    if !is_doubled(tokens, left.end) {
                        continue;
                    }
                }
                _ => {}
            }
            match self.next(at, is_expression) {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// Wraps the left side of an assignment in a call, if it may be a volatile element.
    fn wrap(&mut self, begin: usize, left: &Left, function: &str) {
        let line = || questions::line(self.tokens, begin);
        if left.is_volatile || (left.is_open && self.lines.has(line())) {
            let (start, end) = (self.tokens.all[begin].start, self.tokens.all[left.end - 1].end);
            self.writes.push(begin);
            self.edits.meetings.push((start, start, function.to_owned()));
            self.edits.meetings.push((end, end, ")".to_owned()));
        } else if left.is_open && self.lines.asks(&self.names) {
            let question = format!("written<decltype(({{}})), {}>", line());
            self.edits.questions.extend(questions::before(self.tokens, begin..left.end, &question));
        }
    }

    /// Returns the place where the next assignment of a statement may begin: after a comma, or after a
    /// variable's initialiser.
    fn next(&self, from: usize, is_expression: bool) -> Option<usize> {
        let tokens = self.tokens;
        let mut at = from;
        loop {
            match tokens.at(at) {
                "" | ";" | "{" | "}" | ")" | "]" => return None,
                "," if is_expression => return Some(at + 1),
                "=" if at > from && tokens.at(at + 1) != "=" => {
                    let before = tokens.at(at - 1);
                    if tokens.is_word(at - 1) || before == "]" {
                        return Some(at + 1);
                    }
                }
                "(" | "[" => at = tokens.partner(at)?,
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns true if the assigned value is a constant.
    fn is_constant(&self, right: usize) -> bool {
        let tokens = self.tokens;
        let end = (right..tokens.len()).find(|&it| matches!(tokens.at(it), ";" | ","));
        let is_value = |at: usize| {
            !tokens.is_word(at) || matches!(tokens.at(at), "true" | "false" | "nullptr")
        };
        end.is_some_and(|end| (right..end).all(is_value))
    }

    /// Reads a possible left side: `*` and casts, a name or parentheses, elements and members.
    fn left(&self, first: usize) -> Option<Left> {
        let tokens = self.tokens;
        let mut at = first;
        while tokens.at(at) == "*" || (at > first && tokens.at(at) == "&") {
            at += 1;
        }
        let is_read = at > first;
        let (mut is_volatile, mut has_element) = (false, is_read);
        let mentions = |open: usize, close: usize| {
            let is_one = |word: &str| self.names.has(word) || names::is_word(word);
            (open..close).any(|it| is_one(tokens.at(it)))
        };
        // A cast precedes another operand.
        while tokens.at(at) == "(" && is_read {
            let close = tokens.partner(at)?;
            let is_cast = tokens.is_word(close + 1) || tokens.at(close + 1) == "(";
            if !is_cast {
                break;
            }
            is_volatile |= mentions(at, close);
            at = close + 1;
        }
        if tokens.at(at) == "(" {
            let close = tokens.partner(at)?;
            is_volatile |= mentions(at, close);
            has_element |= (at..close).any(|it| matches!(tokens.at(it), "*" | "["));
            at = close + 1;
        } else {
            if !tokens.is_word(at) || tokens.at(at) == "auto" {
                return None;
            }
            is_volatile |= self.names.has(tokens.at(at));
            at += 1;
        }
        let is_other = tokens.at(at - 1) == ")" || self.names.is_reference(tokens.at(at - 1));
        // The last part: a member, which may be a bit-field that cannot be referenced, or a call.
        let (mut member, mut is_call) = (None, false);
        loop {
            let is_arrow = tokens.at(at) == "-" && tokens.at(at + 1) == ">";
            let name = at + if is_arrow { 2 } else { 1 };
            match tokens.at(at) {
                "[" => {
                    at = tokens.partner(at)? + 1;
                    // An array in a packed structure cannot be referenced either.
                    member = member.filter(|_| self.names.has_packed);
                    (has_element, is_call) = (true, false);
                }
                "." | "::" | "-" if tokens.is_word(name) && (is_arrow || tokens.at(at) != "-") => {
                    is_volatile |= self.names.has(tokens.at(name));
                    has_element |= is_arrow;
                    at = name + 1;
                    (member, is_call) = (Some(tokens.at(name)), false);
                }
                // Excludes `type (*name)[8]`.
                "(" if !matches!(tokens.at(at + 1), "*" | "&") => {
                    at = tokens.partner(at)? + 1;
                    (member, is_call) = (None, true);
                }
                // `reinterpret_cast<volatile int *>(p)[i]`
                "<" => match tokens.behind_angles(at, tokens.len()) {
                    Some(behind) if matches!(tokens.at(behind), "(" | "::") => {
                        is_volatile |= mentions(at, behind);
                        at = behind;
                    }
                    _ => break,
                },
                // `*View{p}`
                "{" if is_read => (at, is_call) = (tokens.partner(at)? + 1, true),
                "+" | "-" if is_read && is_doubled(tokens, at) => at += 2,
                _ => break,
            }
        }
        let can_be_referred_to = member.is_none_or(|it| self.names.is_plain_member(it));
        is_volatile &= has_element && can_be_referred_to && (is_read || !is_call);
        let is_open = (has_element || is_other || is_call) && can_be_referred_to;
        Some(Left { end: at, is_volatile, is_open })
    }
}

/// Returns true for `++` and `--`.
fn is_doubled(tokens: &Tokens<'_>, at: usize) -> bool {
    matches!(tokens.at(at), "+" | "-")
        && tokens.at(at) == tokens.at(at + 1)
        && tokens.all[at].end == tokens.all[at + 1].start
}

/// Returns the number of tokens of the assignment operator at a place, if there is one.
fn operation(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    let [first, second, third] = [0, 1, 2].map(|it| tokens.at(at + it));
    if tokens.all.get(at).is_none_or(|it| it.kind != Kind::Mark) {
        return None;
    }
    match first {
        "=" => (second != "=").then_some(1),
        "+" | "-" if is_doubled(tokens, at) => matches!(third, ";" | "," | ")").then_some(2),
        "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" => (second == "=").then_some(2),
        "<" | ">" => (second == first && third == "=").then_some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{VolatileLines, edits};
    use crate::tokens::Tokens;

    fn rewritten(text: &str) -> String {
        let (mut result, mut done) = (String::new(), 0);
        let edits = edits(&Tokens::of(text), &VolatileLines::default());
        for (start, end, replacement) in edits.meetings {
            result.push_str(&text[done..start]);
            result.push_str(&replacement);
            done = end;
        }
        (result + &text[done..]).replace("::cuda_c::", "").replace("<true>", "")
    }

    #[test]
    fn lanes_meet_in_global_memory_that_the_text_reads() {
        for (text, is_exchanged) in [
            ("void f(volatile int *s) { s[t] += s[t + 1]; }", true),
            ("void f(volatile int *s) { a = s[t]; s[t] = a; }", true),
            ("void f(volatile int *s) { *s = *(s + 1); }", true),
            ("void f(int *q) { *(volatile int *)q = t; }", true),
            ("volatile int s[8]; void f() { s[t] = s[1]; }", true),
            ("void f(volatile int *s) { s[t] = t; }", false),
            ("void f(volatile int *s) { s[t] += t; *s = 1; }", false),
            ("void f() { volatile int s[8]; s[t] += s[1]; }", false),
        ] {
            let edits = edits(&Tokens::of(text), &VolatileLines::default()).meetings;
            assert_eq!(edits.iter().any(|it| it.2.ends_with("<true>(")), is_exchanged, "{text}");
        }
    }

    #[test]
    fn the_compiler_is_asked_for_other_types() {
        for (body, expected) in [
            ("p[t] += t;", "written p[t]"),
            ("x = *p++ = t, r = t;", "written *p++, written r"),
            ("f<int>(p)[t] = g(t) = t;", "written f<int>(p)[t], written g(t)"),
            ("(*p).x = t; p->b++; *View{p} = 1;", "written (*p).x, written p->b, written *View{p}"),
            ("while (p[t] && !q) {}", "awaited p[t], awaited t, awaited q"),
            ("do v = h.p[t]; while (!v);", "awaited h.p[t], awaited t, awaited v"),
            ("while (*(V *)p < (int)q * 2) {}", "awaited (V *)p, awaited p, awaited q"),
            ("for (;;) if (g<T>(p) > N::n) break;", "awaited g<T>(p), awaited p, awaited N::n"),
            ("x = t; a.f = t; if (p[t]) x = p[t]; int i = p[t]; enum { r = 1 };", ""),
            ("for (int i = 0; i < n; i++) x += p[i]; while (int v = p[t]) {}", ""),
        ] {
            let text = format!("volatile struct {{ int f : 3; }} a; int &r; void f() {{ {body} }}");
            let questions = edits(&Tokens::of(&text), &VolatileLines::default()).questions;
            let asked = questions.iter().filter_map(|(_, _, text)| {
                let (function, expression) =
                    text.strip_prefix("(::cuda_c::")?.split_once("<decltype((")?;
                Some(format!("{function} {}", expression.split(")), ").next()?))
            });
            assert_eq!(asked.collect::<Vec<_>>().join(", "), expected, "{body}");
        }
    }

    #[test]
    fn elements_that_are_assigned_to_meet() {
        for (body, expected) in [
            ("s[t] += s[t + 1];", "together(s[t]) += s[t + 1];"),
            (
                "if (t < 4) s[t] = a = s[t];",
                "if (t < 4) together(s[t]) = a = s[t]; meet_behind(0);",
            ),
            ("s[t][2].x |= f(a, b);", "together(s[t][2].x) |= f(a, b);"),
            ("s[t] = 0; s[f(t)] = -1.5f;", "at_once(s[t]) = 0; at_once(s[f(t)]) = -1.5f;"),
            ("for (;;) s[t]++; --s[0];", "for (;turn();) together(s[t])++; --together(s[0]);"),
            ("s[t] <<= 1, b = s[1] = t;", "together(s[t]) <<= 1, b = together(s[1]) = t;"),
            ("int b = s[t] = t, *c = s;", "int b = together(s[t]) = t, *c = s;"),
            (
                "*s = t; *(s + t) -= t; *s++ = t;",
                "together(*s) = t; together(*(s + t)) -= t; together(*s++) = t;",
            ),
            ("((volatile int *)q)[t] = t;", "together(((volatile int *)q)[t]) = t;"),
            ("*(volatile int *)(q + t) = t;", "together(*(volatile int *)(q + t)) = t;"),
            ("this->s[t] = a.s[t] = t;", "together(this->s[t]) = together(a.s[t]) = t;"),
            ("switch (t) { case 1: s[t] += 1; }", "switch (t) { case 1: together(s[t]) += 1; }"),
            ("if (a) for (;;) b = s[t] = t;", "if (a) for (;turn();) b = together(s[t]) = t;"),
            (
                "for (s[0] = t; t; t = s[0] += t, s[1]++) {}",
                "for (together(s[0]) = t; (t) && turn(); t = together(s[0]) += t, together(s[1])++) {}",
            ),
            ("f([=] { s[t] = t; });", "f([=] { together(s[t]) = t; });"),
            ("if constexpr (a) { s[t] = t; }", "if constexpr (a) { together(s[t]) = t; }"),
        ] {
            let text = rewritten(&format!("void f(volatile float *s) {{ {body} }}"));
            assert_eq!(text, format!("void f(volatile float *s) {{ {expected} }}"));
        }
    }

    #[test]
    fn loops_that_wait_take_turns() {
        for (text, expected) in [
            ("volatile int s; void f() { while (s == 0) {} }", "while ((s == 0) && turn()) {}"),
            (
                "void f(int *s) { while (*(volatile int *)s); }",
                "while ((*(volatile int *)s) && turn());",
            ),
            ("volatile int s; void f() { for (; s;) {} }", "for (; (s) && turn();) {}"),
            (
                "volatile int s; void f() { while (true) { if (s) break; } }",
                "while ((true) && turn()) { if (s) break; }",
            ),
            (
                "void f() { while (atomicAdd(&s, 0) == 0); }",
                "while ((atomicAdd(&s, 0) == 0) && turn());",
            ),
            (
                "void f(int *s) { do { asm(\"ld.acquire.gpu.s32 %0, [%1];\" : \"=r\"(v) : \"l\"(s)); } while (!v); }",
                "while ((!v) && turn());",
            ),
            (
                "void f(int *s) { asm(\"\"); while (read(s) != 1) {} do { } while (read(s)); }",
                "while ((read(s) != 1) && turn()) {} do { } while (read(s));",
            ),
            (
                "void f(volatile int *s) { s[0] = 1; for (;;) { if (!atomicExch(q, 1)) break; } }",
                "for (;turn();) { if (!atomicExch(q, 1)) break; }",
            ),
        ] {
            let text = rewritten(text);
            assert!(text.contains(expected), "{text}");
        }
        for (text, expected) in [
            ("while (*p == 0) {}", "while ((*p == 0) && turn()) {}"),
            ("for (; *(volatile int *)s == 0;);", "for (; (*(volatile int *)s == 0) && turn(););"),
            ("do {} while (*p == 0);", "do {} while ((*p == 0) && turn());"),
            ("do v = *p; while (v == 0);", "do v = *p; while ((v == 0) && turn());"),
            ("while (!v) { v = *(volatile int *)s; }", "while ((!v) && turn()) {"),
            ("while (!v) v |= *p & 1;", "while ((!v) && turn()) v"),
            ("for (n = 0; n < 9; n++) if (*p) break;", "for (n = 0; (n < 9) && turn(); n++) if"),
            ("for (v = 0; !v; v = atomicOr(s, 0)) {}", "for (v = 0; (!v) && turn(); v ="),
            ("do { v = atomicAdd(s, 0); } while (v == 0);", "while ((v == 0) && turn());"),
            ("while (true) { if (atomicAdd(s, 0)) break; }", "while ((true) && turn()) {"),
            (
                "while (true) { if (!atomicAdd(s, 0)) c++; else break; }",
                "while ((true) && turn()) {",
            ),
            ("for (;;) { int v = atomicAdd(s, 0); if (v) return; }", "for (;;turn()"),
            ("while (atomicAdd(s, 0) == 0) { c++; }", "while ((atomicAdd(s, 0) == 0) && turn()) {"),
            ("cuda::atomic<int, A> &q = r; while (q == 0) {}", "while ((q == 0) && turn()) {}"),
            ("while (lock->exchange(1)) c++;", "while ((lock->exchange(1)) && turn()) c"),
            ("while (v == 0) v = atomicCAS(s, 1, 1);", "while ((v == 0) && turn()) v"),
            ("while (atomicCAS(s, 1u, 2) != 1) { f(s); }", "!= 1) && turn()) { f(s); }"),
            ("if (a) { for (;;) if (atomicExch(s, 0)) break; else c++; }", "for (;turn();) if"),
        ] {
            let expected = expected.replace(";;turn()", ";turn();");
            let text = rewritten(&format!("void f(int *s, volatile int *p) {{ {text} }}"));
            assert!(text.contains(&expected), "{text}");
        }
        for text in [
            "void f(int *s) { while (i < n) { atomicAdd(&s[x[i]], 1); i += m; } }",
            "void f(int *s) { for (i = 0; i < n; i++) { if (x[i]) break; atomicMax(s, x[i]); } }",
            "void f(int *s) { while (i < n) { while (j < n) { j = x[j]; } i += m; atomicAdd(s, 1); } }",
            "void f(int *s) { for (;;) { old = atomicCAS(s, seen, key); if (old == seen) break; } }",
            "void f(int *s) { while (atomicCAS(s, old, old + 1) != old) { old = s[0]; } }",
            "void f(int *s) { do { v = atomicCAS(s, v, v + 1); } while (v != s); }",
            "volatile int n; void f() { for (; n; ++i) {} for (int i = 0; i < n; ++i) {} while (int x = n) {} }",
            "void f(int *s) { while (s[0] == 0) {} for (;;) { if (!s[1]) break; } }",
            "volatile",
            "typedef volatile",
            "volatile int (*",
            "auto x = (volatile int *",
            "volatile int s[4]; void f() { *",
        ] {
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn lanes_meet_behind_branches() {
        for (body, expected) in [
            (
                "if (t) s[0] = t; else x = 1; x = 2;",
                "if (t) together(s[0]) = t; else x = 1; meet_behind(0); x = 2;",
            ),
            (
                "do { if (t) { s[0] = t; } } while (u); x = 1;",
                "do { if (t) { together(s[0]) = t; } meet_behind(0); } while (u); meet_behind(1); x = 1;",
            ),
            (
                "if (a) for (;;) s[0]++; else if (b) x = 1; else while (c) {} while (c) {}",
                "if (a) for (;turn();) together(s[0])++; else if (b) x = 1; else while (c) {} meet_behind(0); while (c) {}",
            ),
            (
                "auto g = [&](int i) { s[i] = t; }; if (t) g(0); if (u) h(0);",
                "auto g = [&](int i) { together(s[i]) = t; }; if (t) g(0); meet_behind(0); if (u) h(0);",
            ),
            (
                "if (t) s[0] = t; } void g() { if (t) f<1>(s); if (t) x = 1;",
                "if (t) together(s[0]) = t; meet_behind(0); } void g() { if (t) f<1>(s); meet_behind(1); if (t) x = 1;",
            ),
            (
                "if (t) { if (u) s[0] = t; }",
                "if (t) { if (u) together(s[0]) = t; meet_behind(0); } meet_behind(1);",
            ),
            ("do s[0] = t; while (t)", "do together(s[0]) = t; while (t)"),
        ] {
            let text = rewritten(&format!("thread_local volatile int s[8]; void f() {{ {body} }}"));
            assert_eq!(text, format!("thread_local volatile int s[8]; void f() {{ {expected} }}"));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "void f(volatile float *s) { a[s[t]] = 1; x = s[t]; s[t] == 2; s[t]; g(s[t] = 1); }",
            "void f(volatile float *s) { s[t] = {1}; s = q; s[t] + +1; s[t] <= 1; s(t) = 1; }",
            "void f(volatile float *s) { return s[t] = 1; }",
            "void f(float *s) { asm volatile (\"\" : : : \"memory\"); s[t] = 1; }",
            "void f(volatile float *s) { float (*p)[4] = s; float a, *s = q; char *s = \"\"; }",
            "struct A { int b : 3, c; }; void f(volatile A *s) { s[t].b = 1; s->b++; }",
            "struct __attribute__((packed)) A { int b; }; void f(volatile A *s) { s[t].b = 1; }",
            "struct A { int s[2]; constexpr A() { s[0] = t; { s[1] = t; } } }; void f(volatile float *s);",
            "volatile float *s = {, ( [ }; void f() { s[",
            "volatile",
        ] {
            assert_eq!(rewritten(text), text);
        }
    }
}
