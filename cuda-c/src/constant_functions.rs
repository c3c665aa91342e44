//! `constexpr` functions that call a function which is not `constexpr`. NVIDIA's compiler accepts them where
//! no constant is required; GCC rejects them. Once GCC has named them, they are compiled without `constexpr`.

use crate::tokens::Tokens;

const REFUSED: &str = ": error: call to non-'constexpr' function ";
const WORD: &str = "constexpr";

/// Returns a preprocessed text in which spaces replace the `constexpr` of the functions that a compiler's log
/// complains about. Returns `None` if the log contains no such complaint.
pub fn without_constexpr(text: &str, log: &str) -> Option<String> {
    let refused: Vec<(&str, usize)> = log.lines().filter_map(place).collect();
    if refused.is_empty() {
        return None;
    }
    let tokens = Tokens::of(text);
    let mut relaxed = text.to_owned();
    for index in (0..tokens.len()).filter(|&it| tokens.at(it) == WORD) {
        let Some(body) = body(&tokens, index) else { continue };
        let end = tokens.partner(body).and_then(|it| tokens.line(it));
        let (Some((file, first)), Some((_, last))) = (tokens.line(index), end) else { continue };
        if refused.iter().any(|&(of, line)| of == file && (first..=last).contains(&line)) {
            let token = tokens.all[index];
            relaxed.replace_range(token.start..token.end, &" ".repeat(WORD.len()));
        }
    }
    (relaxed != text).then_some(relaxed)
}

/// Returns the file and line of a message about a call of a function that is not `constexpr`.
fn place(message: &str) -> Option<(&str, usize)> {
    let (place, _) = message.split_once(REFUSED)?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

/// Returns the opening brace of the function that a `constexpr` declares.
fn body(tokens: &Tokens<'_>, word: usize) -> Option<usize> {
    let mut index = word + 1;
    loop {
        match tokens.at(index) {
            "{" => return Some(index),
            "" | ";" | "}" | "=" => return None,
            "(" | "[" => index = tokens.partner(index)? + 1,
            _ => index += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_constexpr;

    #[test]
    fn only_the_functions_that_are_named_lose_the_word() {
        let text = "# 1 \"a.cu\"\nconstexpr int n = 1;\nint one();\nconstexpr int two() {\n  return one();\n}\n\
                    constexpr int three() { return 3; }\n";
        let log = "a.cu: In function 'constexpr int two()':\n\
                   a.cu:4: error: call to non-'constexpr' function 'int one()'\n";
        let expected = text.replace("constexpr int two", "          int two");
        assert_eq!(without_constexpr(text, log), Some(expected));
        assert_eq!(without_constexpr(text, "a.cu:4: error: expected ';'\n"), None);
        assert_eq!(without_constexpr(text, &log.replace("a.cu:4", "b.cu:4")), None);
    }
}
