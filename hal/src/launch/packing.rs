//! Packing of arguments that do not correspond one to one to parameters: structures passed as components, and
//! several parameters passed as one array.
//!
//! PyCUDA packs all arguments into one buffer, each at a multiple of its alignment, and the driver reads the
//! parameters from it. This file lays out the arguments by that rule, and accepts them if they cover every
//! byte of every parameter and nothing else. It refuses probable mistakes: a number that extends past the end
//! of a parameter, or a parameter whose end is missing.

use crate::module::Parameter;
use std::ffi::c_void;

/// The position and the form of an argument's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The value's first word; zeros follow the value.
    pub(super) word: u32,
    pub(super) size: u16,
    pub(super) form: Form,
    /// The bytes of a number in the value: of one part for a complex number, 1 for a structure.
    pub(super) element: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Structures and arrays; they may be at any offset.
    Bytes,
    /// A number that is not an integer, or an address.
    Number,
    Signed,
    Unsigned,
}

impl Place {
    /// Returns the alignment of the value when arguments are packed into one buffer.
    fn alignment(self) -> usize {
        if self.form == Form::Bytes { 1 } else { usize::from(self.element) }
    }

    /// Returns true if a parameter of `wanted` bytes at `offset`, with `room` bytes before the next one, receives
    /// the value of the integer `word` when arguments are packed into one buffer.
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
            // The only short number that a program means as an address is 0.
            return !negative && (word == 0 || wanted.is_pointer != Some(true));
        }
        let (above, bits) = (word >> (8 * wanted_size), 8 * (size - wanted_size));
        match negative {
            false => above == 0,
            true => above == (1 << bits) - 1 && word >> (8 * wanted_size - 1) & 1 == 1,
        }
    }
}

/// The bytes of a kernel's parameters.
#[derive(Debug)]
pub(super) struct Packed {
    /// The bytes; zero where no argument covers them.
    words: Vec<u128>,
    offsets: Vec<usize>,
}

impl Packed {
    /// Returns the address of each parameter.
    pub(super) fn pointers(&self) -> impl Iterator<Item = *mut c_void> {
        let base = self.words.as_ptr().cast::<u8>().cast_mut();
        self.offsets.iter().map(move |&offset| base.wrapping_add(offset).cast())
    }
}

/// An argument in the buffer.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    place: Place,
    /// Its first bytes.
    word: u128,
}

/// A parameter in the buffer.
#[derive(Clone, Copy)]
struct Field {
    parameter: Parameter,
    start: usize,
    end: usize,
    /// The bytes from the parameter's start to the next parameter.
    room: usize,
}

impl Field {
    fn meets(&self, span: &Span) -> bool {
        self.start < span.end && span.start < self.end
    }

    fn holds(&self, span: &Span) -> bool {
        self.start <= span.start && span.end <= self.end
    }

    /// Returns true for an integer of another size that gives the parameter its value.
    fn has_value_of(&self, span: &Span) -> bool {
        self.start == span.start && span.place.stands_for(span.word, self.parameter, self.room)
    }

    /// Returns true if the arguments cover all bytes of the parameter, except padding between and after
    /// components.
    fn is_filled_by(&self, spans: &[Span]) -> bool {
        let inside: Vec<_> = spans.iter().filter(|span| self.meets(span)).collect();
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else { return false };
        if inside.len() == 1 && self.has_value_of(first) {
            return true;
        }
        let alignment = inside.iter().map(|span| span.place.alignment()).max().unwrap_or(1);
        let is_padded = inside.len() > 1 && last.end.next_multiple_of(alignment) == self.end;
        // A structure's size is a multiple of its components' alignment: a double cannot be part of a float3.
        first.start <= self.start
            && self.parameter.size.is_multiple_of(alignment)
            && (last.end >= self.end || is_padded)
    }
}

impl Span {
    /// Returns true if the argument covers parameters in a way that looks intended.
    fn fits(&self, fields: &[Field]) -> bool {
        let Some(last) = fields.last() else { return false };
        let met: Vec<_> = fields.iter().filter(|field| field.meets(self)).collect();
        if let [only] = met[..]
            && (only.holds(self) || only.has_value_of(self))
        {
            return true;
        }
        let element = usize::from(self.place.element);
        match (self.place.form, element) {
            // Bytes may include padding. After the last parameter, this is the padding of a structure with
            // several parameters.
            (Form::Bytes, 1) => {
                let padded = last.end.checked_next_multiple_of(16);
                let most = padded.filter(|_| self.start < last.start).unwrap_or(last.end);
                self.start < last.end && self.end <= most
            }
            // An array of numbers, one for each parameter.
            (Form::Bytes, _) => {
                met.iter().all(|field| {
                    field.parameter.size == element
                        && self.start <= field.start
                        && field.end <= self.end
                }) && met.len() * element == self.end - self.start
            }
            _ => false,
        }
    }
}

/// Packs the arguments whose values begin at `words`, by the rule of this module.
#[cold]
pub(super) fn pack(words: &[u128], places: &[Place], parameters: &[Parameter]) -> Option<Packed> {
    let spans = lay_out(words, places)?;
    let fields = fields(parameters)?;
    if !spans.iter().all(|span| span.fits(&fields))
        || !fields.iter().all(|field| field.is_filled_by(&spans))
    {
        return None;
    }
    // Every field overlaps an argument, so its end is at most 16 bytes after the end of one.
    let ends = spans.iter().map(|span| span.end).chain(fields.iter().map(|field| field.end));
    let mut bytes = vec![0; ends.max()?.next_multiple_of(16)];
    for span in &spans {
        let first = span.place.word as usize;
        let value = words.get(first..)?.iter().flat_map(|word| word.to_ne_bytes());
        bytes[span.start..span.end].iter_mut().zip(value).for_each(|(to, from)| *to = from);
    }
    let words = bytes.chunks(16).map(|part| {
        let mut word = [0; 16];
        word[..part.len()].copy_from_slice(part);
        u128::from_ne_bytes(word)
    });
    Some(Packed {
        words: words.collect(),
        offsets: fields.iter().map(|field| field.start).collect(),
    })
}

/// Places each argument after the previous one.
fn lay_out(words: &[u128], places: &[Place]) -> Option<Vec<Span>> {
    let mut end = 0usize;
    let span = |place: &Place| {
        let start = end.next_multiple_of(place.alignment());
        end = start + usize::from(place.size);
        let word = *words.get(place.word as usize)?;
        (start < end).then_some(Span { start, end, place: *place, word })
    };
    places.iter().map(span).collect()
}

/// Returns the parameters, if each begins after the previous one.
fn fields(parameters: &[Parameter]) -> Option<Vec<Field>> {
    let mut previous = 0;
    let mut fields = Vec::with_capacity(parameters.len());
    for (position, &parameter) in parameters.iter().enumerate() {
        let start = parameter.offset;
        let end = start.checked_add(parameter.size)?;
        let next = parameters.get(position + 1).map_or(end, |next| next.offset);
        if start < previous || start == end {
            return None;
        }
        fields.push(Field { parameter, start, end, room: next.saturating_sub(start) });
        previous = end;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::ArgumentList;

    /// Returns arguments by the codes of Python's `struct`: letters are numbers, `P` is an address, `A` an
    /// array of two floats, and a number is a count of bytes.
    fn list(codes: &str) -> ArgumentList<'static> {
        let mut list = ArgumentList::new();
        for (number, code) in codes.split(' ').zip(1u8..) {
            let value = [code; 64];
            let pushed = match number {
                "b" => list.integer(&value[..1], true),
                "h" => list.integer(&value[..2], true),
                "i" => list.integer(&u32::from(code).to_ne_bytes(), true),
                "q" => list.integer(&u64::from(code).to_ne_bytes(), true),
                "f" => list.number(&value[..4], 4),
                "d" => list.number(&value[..8], 8),
                "F" => list.number(&value[..8], 4),
                "A" => list.elements(&value[..8], 4),
                "P" => {
                    list.address(u64::from_ne_bytes([code; 8]));
                    Ok(())
                }
                bytes => list.bytes(&value[..bytes.parse().expect("a number of bytes")]),
            };
            pushed.expect("a short argument");
        }
        list
    }

    /// Returns the bytes of the parameters with the given offsets and sizes.
    fn packed(codes: &str, parameters: &[(usize, usize)]) -> Option<Vec<Vec<u8>>> {
        let wanted: Vec<_> = parameters
            .iter()
            .map(|&(offset, size)| Parameter { offset, size, is_pointer: None })
            .collect();
        let list = list(codes);
        let packed = pack(&list.words, &list.places, &wanted)?;
        assert_eq!(packed.pointers().count(), wanted.len());
        let bytes: Vec<u8> = packed.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Some(wanted.iter().map(|it| bytes[it.offset..it.offset + it.size].to_vec()).collect())
    }

    #[test]
    fn structures_are_given_by_their_components() {
        let all = packed("P f f f i", &[(0, 8), (8, 12), (20, 4)]).expect("it fits");
        assert_eq!(all[0], [1; 8]);
        assert_eq!(all[1], [[2; 4], [3; 4], [4; 4]].concat());
        assert_eq!(all[2], [5, 0, 0, 0]);
        // With padding between components and after them.
        let all = packed("b d h P", &[(0, 24), (24, 8)]).expect("it fits");
        assert_eq!(
            all[0],
            [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[2; 8], &[3, 3, 0, 0, 0, 0, 0, 0]].concat()
        );
        assert_eq!(all[1], [4; 8]);
        for (codes, parameters) in [
            ("F f i", &[(0, 12), (12, 4)][..]),
            ("A f i", &[(0, 12), (12, 4)]),
            ("d i", &[(0, 16)]),
            // An integer with enough room for its bytes.
            ("f f q P", &[(0, 8), (8, 4), (16, 8)]),
            ("f f i P", &[(0, 8), (8, 8), (16, 8)]),
        ] {
            assert!(packed(codes, parameters).is_some(), "{codes}");
        }
    }

    #[test]
    fn arrays_are_several_parameters() {
        let whole = &[(0, 4), (8, 8), (16, 1)];
        let all = packed("17", whole).expect("it fits");
        assert_eq!(all, [vec![1; 4], vec![1; 8], vec![1]]);
        // With the structure's padding, split in other ways, and as padding alone.
        for codes in ["24", "i 12 b", "8 P b", "i 4 P b", "2 2 12 1", "12 5", "i 4 4 4 b"] {
            assert!(packed(codes, whole).is_some(), "{codes}");
        }
        assert!(packed("P A i", &[(0, 8), (8, 4), (12, 4), (16, 4)]).is_some());
    }

    #[test]
    fn plain_mistakes_are_none() {
        let axpy = &[(0, 4), (8, 8), (16, 8), (24, 4)];
        for codes in ["f P P", "f P P i i", "d P P i", "f P P q", "f i P i", "f 9 P i"] {
            assert!(packed(codes, axpy).is_none(), "{codes}");
        }
        for (codes, parameters) in [
            ("P f f i", &[(0, 8), (8, 12), (20, 4)][..]),
            ("P f f f f i", &[(0, 8), (8, 12), (20, 4)]),
            ("P f f f", &[(0, 8), (8, 12), (20, 4)]),
            ("P d f i", &[(0, 8), (8, 12), (20, 4)]),
            // A double for two floats, and floats for two addresses.
            ("d i", &[(0, 4), (4, 4), (8, 4)]),
            ("A A", &[(0, 8), (8, 8)][..1]),
            // A float4 whose start differs from its components'.
            ("i f f f f", &[(0, 4), (16, 16)]),
            // Bytes after a structure, and bytes missing from it.
            ("32", &[(0, 24)]),
            ("20", &[(0, 24)]),
            ("i 19", &[(0, 4), (8, 16)]),
            ("f 0 f", &[(0, 4), (4, 4)]),
            ("f", &[]),
            // Parameters that no driver reports.
            ("f f", &[(0, 4), (2, 4)]),
            ("f f", &[(0, 4), (4, usize::MAX)]),
            ("f f", &[(usize::MAX, 4)]),
            ("4 4 4", &[(0, 4), (4, usize::MAX - 4)]),
        ] {
            assert!(packed(codes, parameters).is_none(), "{codes}");
        }
    }
}
