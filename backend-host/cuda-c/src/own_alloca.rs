//! A program's own function `alloca`, which the macro of that name makes another one.

use crate::declarations;
use crate::tokens::Tokens;

/// What the macro has become.
const BUILTIN: &str = "__builtin_alloca";
/// What no compiler knows as a function of its own.
const RENAMED: &str = "gpuarray_alloca";

/// Returns a text in which a function `alloca` that the program defines or declares has a name of its own; `None`
/// where it does neither.
pub(crate) fn renamed(tokens: &Tokens<'_>) -> Option<String> {
    if !tokens.text.contains(BUILTIN) {
        return None;
    }
    let is_own = |name: Option<&str>| name == Some(BUILTIN);
    let mut all = declarations::of(tokens).into_iter();
    all.find(|it| {
        tokens.is_of_program(it.range.start) && is_own(declarations::name_token(tokens, it))
    })?;
    let (mut text, mut done) = (String::with_capacity(tokens.text.len()), 0);
    for (at, token) in tokens.all.iter().enumerate() {
        if matches!(tokens.at(at), BUILTIN | "alloca") && tokens.is_of_program(at) {
            text.push_str(&tokens.text[done..token.start]);
            text.push_str(RENAMED);
            done = token.end;
        }
    }
    Some(text + &tokens.text[done..])
}

#[cfg(test)]
mod tests {
    use super::renamed;
    use crate::tokens::Tokens;

    #[test]
    fn only_a_function_of_the_program_is_renamed() {
        let own = "void *__builtin_alloca(int n) { return 0; }\nvoid k() { __builtin_alloca(3); \
                   auto f = &alloca; \"alloca\"; }\n";
        let expected = "void *gpuarray_alloca(int n) { return 0; }\nvoid k() { gpuarray_alloca(3); \
                        auto f = &gpuarray_alloca; \"alloca\"; }\n";
        assert_eq!(renamed(&Tokens::of(own)).as_deref(), Some(expected));
        let header = format!("# 1 \"/x.h\" 1 3\n{own}");
        for text in ["void k() { __builtin_alloca(3); }", "void alloca();", &header] {
            assert_eq!(renamed(&Tokens::of(text)), None, "{text}");
        }
    }
}
