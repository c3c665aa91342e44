//! Reads kernels' parameters from a code object: the HIP runtime cannot return them.
//!
//! Code objects since version 3 describe their kernels in notes of type `NT_AMDGPU_METADATA`, written
//! in MessagePack (LLVM's "User Guide for AMDGPU Backend").
//!
//! The bytes come from users: each read is checked, nothing recurses, and no allocation is larger
//! than the bytes that were read.
//!
//! For this reason the reader is written by hand. `rmp` (0.8.15) panics when it skips an extension
//! type (`MessageLen`), and recurses; `rmpv` builds a tree of 40 or more bytes for each value, and a
//! damaged note can have a value in every byte.

use codegen::compile::format;
use driver::vendor::KernelParameters;
use hal::Parameter;

const EM_AMDGPU: u16 = 224;
const NT_AMDGPU_METADATA: u32 = 32;

/// Returns the parameters that a caller passes to each kernel of a code object, by the kernel's name.
/// In a bundle, this reads the code that suits the device best; the device's architecture is
/// `target`.
///
/// Returns `None` for everything else: bytes that are no code object or bundle, damaged files, code
/// for other devices, compressed bundles.
pub fn parameters(image: &[u8], target: &str) -> Option<KernelParameters> {
    let object = format::code_for(image, target)?;
    let metadata = format::note(object, EM_AMDGPU, "AMDGPU", NT_AMDGPU_METADATA)?;
    let mut kernels = None;
    Reader(metadata).fields(|key, value| {
        match key {
            b"amdhsa.kernels" => kernels = Some(value.list(kernel)?),
            _ => value.skip()?,
        }
        Some(())
    })?;
    Some(kernels?.into_iter().collect())
}

fn kernel(reader: &mut Reader<'_>) -> Option<(String, Vec<Parameter>)> {
    let (mut name, mut arguments) = (None, Vec::new());
    reader.fields(|key, value| {
        match key {
            b".name" => name = Some(String::from_utf8(value.text()?.to_vec()).ok()?),
            b".args" => arguments = value.list(argument)?,
            _ => value.skip()?,
        }
        Some(())
    })?;
    Some((name?, arguments.into_iter().flatten().collect()))
}

/// Reads a parameter; the inner `None` stands for a parameter that the runtime adds.
fn argument(reader: &mut Reader<'_>) -> Option<Option<Parameter>> {
    let (mut offset, mut size, mut kind) = (None, None, None);
    reader.fields(|key, value| {
        match key {
            b".offset" => offset = Some(value.number()?),
            b".size" => size = Some(value.number()?),
            b".value_kind" => kind = Some(value.text()?),
            _ => value.skip()?,
        }
        Some(())
    })?;
    let kind = kind?;
    let is_pointer = Some(kind == b"global_buffer");
    let parameter = Parameter { offset: offset?, size: size?, is_pointer };
    Some((!kind.starts_with(b"hidden_")).then_some(parameter))
}

/// Reads MessagePack from the front of the remaining bytes.
struct Reader<'a>(&'a [u8]);

/// A value. The elements of a list or map of the given length follow it.
enum Value<'a> {
    Number(usize),
    Text(&'a [u8]),
    List(usize),
    Map(usize),
    Other,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn big_endian(&mut self, size: usize) -> Option<usize> {
        let bytes = self.take(size)?.iter();
        usize::try_from(bytes.fold(0, |all: u64, byte| all << 8 | u64::from(*byte))).ok()
    }

    fn other(&mut self, size: usize) -> Option<Value<'a>> {
        self.take(size).map(|_| Value::Other)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let kind = self.big_endian(1)?;
        // The type's number encodes the logarithm of the size of its number or length.
        let power = |first: usize| 1 << (kind - first);
        match kind {
            0x00..=0x7f => Some(Value::Number(kind)),
            0x80..=0x8f => Some(Value::Map(kind & 15)),
            0x90..=0x9f => Some(Value::List(kind & 15)),
            0xa0..=0xbf => self.take(kind & 31).map(Value::Text),
            // Nil, never used, false, true; negative numbers of one byte.
            0xc0..=0xc3 | 0xe0.. => Some(Value::Other),
            // Byte strings; extension types with a length; floats.
            0xc4..=0xc6 => self.big_endian(power(0xc4)).and_then(|size| self.other(size)),
            0xc7..=0xc9 => {
                self.big_endian(power(0xc7)).and_then(|size| self.other(size.checked_add(1)?))
            }
            0xca | 0xcb => self.other(4 * power(0xca)),
            0xcc..=0xcf => self.big_endian(power(0xcc)).map(Value::Number),
            // Negative numbers; extension types of a fixed size.
            0xd0..=0xd3 => self.other(power(0xd0)),
            0xd4..=0xd8 => self.other(1 + power(0xd4)),
            0xd9..=0xdb => {
                self.big_endian(power(0xd9)).and_then(|size| self.take(size)).map(Value::Text)
            }
            0xdc | 0xdd => self.big_endian(2 * power(0xdc)).map(Value::List),
            0xde | 0xdf => self.big_endian(2 * power(0xde)).map(Value::Map),
        }
    }

    fn number(&mut self) -> Option<usize> {
        if let Value::Number(number) = self.value()? { Some(number) } else { None }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        if let Value::Text(text) = self.value()? { Some(text) } else { None }
    }

    fn list<T>(&mut self, element: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let Value::List(length) = self.value()? else { return None };
        (0..length).map(|_| element(self)).collect()
    }

    /// Calls `field` with each key of a map; `field` must read the value.
    fn fields(&mut self, mut field: impl FnMut(&'a [u8], &mut Self) -> Option<()>) -> Option<()> {
        let Value::Map(length) = self.value()? else { return None };
        (0..length).try_for_each(|_| {
            let key = self.text()?;
            field(key, self)
        })
    }

    /// Skips a value with everything in it.
    fn skip(&mut self) -> Option<()> {
        let mut left: usize = 1;
        while left > 0 {
            left = match self.value()? {
                Value::List(length) => left.checked_add(length)?,
                Value::Map(length) => left.checked_add(length.checked_mul(2)?)?,
                _ => left,
            } - 1;
        }
        Some(())
    }
}
