//! The structure of a text, which one reader finds in its tokens for all passes.
//!
//! Passes get ranges of tokens, never copies of text. A declaration that is not read with certainty stays a range of
//! tokens without parts, and passes leave it as it is.

mod blocks;
mod items;
mod parts;
mod statements;

pub(crate) use blocks::{Function, class_of};
pub(crate) use items::{CONSTANT, Declared, GLOBAL, Items, VARIABLE};
pub(crate) use parts::{LONGEST, parts, without_value};
pub(crate) use statements::{last_of_statement, value_end};
