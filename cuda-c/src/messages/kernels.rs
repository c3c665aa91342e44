//! Reports kernels that the front end cannot name or describe in the text that it appends.

use crate::tokens::Tokens;
use crate::tree::{Declared, Items, parts};

/// The prefix of the file names of that text.
pub(super) const PREFIX: &str = "kernel ";
const BOUNDS: &str = "__gpuarray_bounds__";
/// Substrings of messages about the front end's own names.
const OWN: [&str; 5] =
    ["gpuarray_abi", "entry<", "static_cast", "template argument", "<unresolved"];

/// Returns a message at the kernel that caused the errors in a log. Returns `None` if the log has other
/// errors, or the kernel cannot be determined.
pub(super) fn refused(log: &str, tokens: &Tokens<'_>) -> Option<String> {
    let mut errors = log.lines().filter_map(|line| {
        let (place, text) = line.split_once(": error: ")?;
        Some((place.strip_prefix(PREFIX)?.rsplit_once(':')?.0, text))
    });
    let (name, first) = errors.next()?;
    let declarations = Items::of(tokens).all;
    let plain = name.rsplit("::").next().unwrap_or(name).trim();
    let is_it =
        |it: &&Declared| it.is_kernel && it.body.is_some() && it.name(tokens) == Some(plain);
    let mut found = declarations.iter().filter(is_it);
    let (kernel, None) = (found.next()?, found.next()) else { return None };
    let place = tokens.position(kernel.parameters? - 1);
    let is_own = |text: &str| OWN.iter().any(|own| text.contains(own));
    Some(match wrong(tokens, kernel) {
        Some(what) => format!("{place}: error: kernel {plain}: {what}\n"),
        None if is_own(first) => {
            format!("{place}: error: the compiler refuses kernel {plain}\n{log}")
        }
        None => format!("{place}: error: kernel {plain}: {first}\n"),
    })
}

/// Returns the reason why a function cannot be a kernel.
fn wrong(tokens: &Tokens<'_>, kernel: &Declared) -> Option<&'static str> {
    let open = kernel.parameters?;
    let close = tokens.partner(open)?;
    let has = |word: &str| (open..close).any(|at| tokens.at(at) == word);
    let is_twice = |mark: &str, at: usize| tokens.at(at) == mark && tokens.at(at + 1) == mark;
    if close > open + 3 && (close - 3..close).all(|at| tokens.at(at) == ".") {
        return Some("a kernel has as many parameters as it says, and no '...'");
    }
    if (open..close).any(|at| is_twice("&", at)) {
        return Some("a parameter cannot be a reference by '&&'");
    }
    if has("auto") {
        return Some("a parameter has a type, and not 'auto'");
    }
    let bounds = kernel.range.clone().take_while(|&at| at < open);
    let bounds = bounds.into_iter().find(|&at| tokens.at(at) == BOUNDS)? + 1;
    let numbers = parts(tokens, bounds + 1..tokens.partner(bounds)?);
    (numbers.len() > 3).then_some("__launch_bounds__ takes up to three numbers")
}

#[cfg(test)]
mod tests {
    use super::refused;
    use crate::tokens::Tokens;

    #[test]
    fn a_message_on_the_drivers_text_is_about_the_kernel() {
        let own = "kernel k:1: error: no matching function for call to 'entry<k>(int)'\n";
        let unknown = "kernel k:1: error: 'n' was not declared\nkernel k:1: error: parse error\n";
        let global = "__gpuarray_global__ void";
        for (text, log, expected) in [
            ("__gpuarray_bounds__(n) k(int *o) {}", unknown, "'n' was not declared\n"),
            (
                "__gpuarray_bounds__(1, 2, f(3, 4), 5) k(int *o) {}",
                own,
                "__launch_bounds__ takes up to three numbers\n",
            ),
            (
                "k(int *o, ...) {}",
                own,
                "a kernel has as many parameters as it says, and no '...'\n",
            ),
            ("k(int &&o) {}", own, "a parameter cannot be a reference by '&&'\n"),
            ("k(int a, auto b) {}", own, "a parameter has a type, and not 'auto'\n"),
        ] {
            let column = text.find("k(").expect("the kernel's name") + 1;
            let text = format!("# 1 \"k.cu\"\nint k;\n{global} l() {{}}\n{global}\n{text}");
            let expected = format!("k.cu:4:{column}: error: kernel k: {expected}");
            assert_eq!(refused(log, &Tokens::of(&text)), Some(expected), "{text}");
        }
        let plain = format!("# 1 \"k.cu\"\n{global} k() {{}}\n");
        let expected = format!("k.cu:1:26: error: the compiler refuses kernel k\n{own}");
        assert_eq!(refused(own, &Tokens::of(&plain)), Some(expected));
        let two = format!("{plain}{global} k(int a) {{}}\n");
        assert_eq!(refused(own, &Tokens::of(&two)), None);
        assert_eq!(refused("cannot link\n", &Tokens::of(&plain)), None);
    }
}
