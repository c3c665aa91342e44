//! Where the value of an argument lies, and what it can stand for.

use crate::module::Parameter;

/// Where the value of an argument lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its first word; zeros follow the value.
    pub(super) word: u32,
    pub(super) size: u16,
    pub(super) form: Form,
    /// The bytes of a number in it: those of a part of a complex number, 1 for a structure.
    pub(super) element: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Structures and arrays, which lie anywhere.
    Bytes,
    /// A number that is no integer, or an address.
    Number,
    Signed,
    Unsigned,
}

impl Place {
    /// What its place is a multiple of where arguments are packed one behind the other.
    pub(super) fn alignment(self) -> usize {
        if self.form == Form::Bytes { 1 } else { usize::from(self.element) }
    }

    /// True if a parameter of `wanted` bytes at `offset`, with `room` bytes before the next one, has the value of
    /// the integer `word` where arguments are packed one behind the other.
    pub(super) fn stands_for(self, word: u128, wanted: Parameter, room: usize) -> bool {
        let (size, wanted_size) = (usize::from(self.size), wanted.size);
        if !matches!(self.form, Form::Signed | Form::Unsigned)
            || !wanted.offset.is_multiple_of(size)
            || size > room
            || !(1..=8).contains(&wanted_size)
        {
            return false;
        }
        let negative = self.form == Form::Signed && word >> (8 * size - 1) != 0;
        if wanted_size > size {
            // Of short numbers, only 0 is an address that a program means.
            return !negative && (word == 0 || wanted.is_pointer != Some(true));
        }
        let (above, bits) = (word >> (8 * wanted_size), 8 * (size - wanted_size));
        match negative {
            false => above == 0,
            true => above == (1 << bits) - 1 && word >> (8 * wanted_size - 1) & 1 == 1,
        }
    }
}
