//! The names in the bindings, read from their text.

use std::collections::BTreeMap;

pub(crate) const BINDINGS: &str = include_str!("../../src/bindings.rs");

/// Returns the values of macros and enumerators, by name.
pub(crate) fn numbers() -> BTreeMap<&'static str, u32> {
    let constants = BINDINGS.lines().filter_map(|line| line.trim().strip_prefix("pub const "));
    constants
        .map(|it| {
            let (name, rest) = it.split_once(": ").expect("a type");
            let number = rest.split_once("= ").expect("a value").1.trim_end_matches(';');
            (name, number.parse().expect("a number"))
        })
        .collect()
}
