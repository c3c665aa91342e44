//! The types of a prepared kernel's arguments, in the format codes of Python's `struct` and of
//! PyCUDA.

use hal::poison::Unpoisoned as _;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Address,
    Bool,
    /// An integer with this many bytes.
    Signed(u8),
    Unsigned(u8),
    Half,
    Float,
    Double,
    /// Two floats.
    Complex,
    /// Two doubles.
    DoubleComplex,
    /// A structure with this many bytes.
    Bytes(usize),
}

impl Display for Code {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Code::Address => "a pointer",
            Code::Bool => "a bool",
            Code::Signed(bytes) => {
                let most = i64::MAX >> (64 - 8 * u32::from(*bytes));
                return write!(f, "an integer of {bytes} bytes, from {} to {most}", -most - 1);
            }
            Code::Unsigned(bytes) => {
                let most = u64::MAX >> (64 - 8 * u32::from(*bytes));
                return write!(f, "an integer of {bytes} bytes, from 0 to {most}");
            }
            Code::Half => "a half",
            Code::Float => "a float",
            Code::Double => "a double",
            Code::Complex => "a complex number of floats",
            Code::DoubleComplex => "a complex number of doubles",
            Code::Bytes(size) => return write!(f, "a structure of {size} bytes"),
        })
    }
}

/// The arguments of a kernel.
#[derive(Debug, Default)]
pub(super) struct Format {
    /// The codes as text.
    pub(super) text: String,
    pub(super) codes: Vec<Code>,
}

/// The formats of a kernel. The current one, set by the last call of `prepare`, is read without a
/// lock.
pub(super) struct Formats {
    current: AtomicPtr<Format>,
    /// Every format so far, so that a launch on another thread can continue with an earlier one.
    all: Mutex<Vec<Arc<Format>>>,
}

impl Formats {
    pub(super) fn new() -> Formats {
        let first = Arc::<Format>::default();
        let current = AtomicPtr::new(Arc::as_ptr(&first).cast_mut());
        Formats { current, all: Mutex::new(vec![first]) }
    }

    pub(super) fn current(&self) -> &Format {
        // SAFETY: the pointer is to a format in `all`, from which none is ever removed, and which
        // never changes.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    pub(super) fn set(&self, format: Format) {
        let mut all = self.all.lock().unpoisoned();
        let position = all.iter().position(|known| known.text == format.text);
        let position = position.unwrap_or_else(|| {
            all.push(Arc::new(format));
            all.len() - 1
        });
        self.current.store(Arc::as_ptr(&all[position]).cast_mut(), Ordering::Release);
    }
}

/// Returns the exception for a failure to pack by a format.
pub(super) fn struct_error(py: Python<'_>, text: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "struct", "error") {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(error) => error,
    }
}

impl Format {
    /// Parses a sequence of types: dtypes, numpy scalar types and texts of format codes, or one
    /// such text. Any other object stands for an address.
    pub(super) fn parse(types: &Bound<'_, PyAny>) -> PyResult<Format> {
        let mut text = String::new();
        for item in types.try_iter()? {
            text.push_str(&code_of(&item?)?);
        }
        let codes = parse_codes(&text).map_err(|what| struct_error(types.py(), what))?;
        Ok(Format { text, codes })
    }
}

/// Returns the format code of one type.
fn code_of(item: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = item.cast::<PyString>() {
        return text.extract();
    }
    let py = item.py();
    let descr = match (item.cast::<PyArrayDescr>(), item.cast::<PyType>()) {
        (Ok(descr), _) => descr.clone(),
        (_, Ok(class)) if is_number(class)? => PyArrayDescr::new(py, class)?,
        // The code of `numpy.uintp`.
        _ => return Ok("P".into()),
    };
    if descr.has_object() {
        return Err(PyTypeError::new_err(format!("a kernel cannot take arguments of {descr}")));
    }
    Ok(match descr.char() {
        b'V' => format!("{}s", descr.itemsize()),
        code => char::from(code).to_string(),
    })
}

fn is_number(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let numpy = class.py().import("numpy")?;
    Ok(class.is_subclass(&numpy.getattr("number")?)? || class.is(&numpy.getattr("bool_")?))
}

/// Parses the format code of one argument.
pub(super) fn code(text: &str) -> Result<Code, String> {
    match parse_codes(text)?[..] {
        [code] => Ok(code),
        _ => Err(format!("format {text:?} has another number of arguments than one")),
    }
}

fn parse_codes(text: &str) -> Result<Vec<Code>, String> {
    const WORD: u8 = size_of::<usize>() as u8;
    // The platform's `long`, which numpy's codes follow.
    const LONG: u8 = size_of::<std::ffi::c_long>() as u8;
    // A kernel takes at most 32 KiB of arguments.
    const MOST: usize = 1 << 15;
    let mut codes = Vec::new();
    let mut characters = text.strip_prefix('@').unwrap_or(text).chars().peekable();
    while let Some(&next) = characters.peek() {
        if next.is_whitespace() {
            characters.next();
            continue;
        }
        let mut count = None;
        while let Some(digit) = characters.peek().and_then(|c| c.to_digit(10)) {
            characters.next();
            let more = count.unwrap_or(0usize).checked_mul(10);
            let more = more.and_then(|more| more.checked_add(digit as usize));
            count = Some(more.ok_or_else(|| format!("a count of format {text:?} is too large"))?);
        }
        let Some(character) = characters.next() else {
            return Err("repeat count given without format specifier".into());
        };
        let most = count.unwrap_or(1).max(codes.len() + 1);
        if most > MOST {
            return Err(format!(
                "format {text:?} needs {most}; at most {MOST} arguments or bytes of one fit"
            ));
        }
        let code = match character {
            's' => {
                codes.push(Code::Bytes(count.unwrap_or(1)));
                continue;
            }
            'P' => Code::Address,
            '?' => Code::Bool,
            'b' => Code::Signed(1),
            'B' => Code::Unsigned(1),
            'h' => Code::Signed(2),
            'H' => Code::Unsigned(2),
            'i' => Code::Signed(4),
            'I' => Code::Unsigned(4),
            'l' => Code::Signed(LONG),
            'L' => Code::Unsigned(LONG),
            'q' => Code::Signed(8),
            'Q' => Code::Unsigned(8),
            'n' | 'p' => Code::Signed(WORD),
            'N' => Code::Unsigned(WORD),
            'e' => Code::Half,
            'f' => Code::Float,
            'd' => Code::Double,
            'F' => Code::Complex,
            'D' => Code::DoubleComplex,
            other => {
                return Err(format!("bad char in struct format: {other:?} in {text:?}"));
            }
        };
        codes.extend(std::iter::repeat_n(code, count.unwrap_or(1)));
    }
    Ok(codes)
}
