//! A value of any dtype, in the form that kernels take.

use crate::dtype::narrow::Narrow;
use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};
use crate::{Complex, dtypes};

/// One value of an element type, of at most [`Scalar::MAX_BYTES`] bytes.
///
/// A number whose type is known only at run time, for an untyped array:
///
/// ```
/// use gpuarray::{Array, DType, Order, Scalar};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let value = Scalar::new(2.75f64).cast(DType::Int16)?;
/// let array = Array::full(&device, &[3], value, Order::C)?;
/// assert_eq!(array.dtype(), DType::Int16);
/// assert_eq!(value.get(), Some(2i16));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar {
    dtype: DType,
    bits: [u8; Scalar::MAX_BYTES],
}

impl Scalar {
    /// The number of bytes of the largest scalar, a `Complex128`.
    pub const MAX_BYTES: usize = 16;

    /// Returns the value of a Rust number.
    ///
    /// Elements with more than [`Scalar::MAX_BYTES`] bytes do not compile:
    ///
    /// ```compile_fail
    /// use gpuarray::{DType, Element, Scalar};
    ///
    /// #[derive(Clone, Copy, Debug, PartialEq)]
    /// struct Wide([u64; 4]);
    ///
    /// // SAFETY: four integers, of which every value is valid.
    /// unsafe impl Element for Wide {
    ///     const DTYPE: DType = DType::Opaque(32);
    ///     const ZERO: Wide = Wide([0; 4]);
    ///     const ONE: Wide = Wide([1; 4]);
    /// }
    ///
    /// let value = Scalar::new(Wide([7; 4]));
    /// ```
    ///
    /// An element whose dtype has another size does not compile either:
    ///
    /// ```compile_fail
    /// use gpuarray::{DType, Element, Scalar};
    ///
    /// #[derive(Clone, Copy, Debug, PartialEq)]
    /// struct Pair([u32; 2]);
    ///
    /// // SAFETY: wrong on purpose.
    /// unsafe impl Element for Pair {
    ///     const DTYPE: DType = DType::Opaque(4);
    ///     const ZERO: Pair = Pair([0; 2]);
    ///     const ONE: Pair = Pair([1; 2]);
    /// }
    ///
    /// let value = Scalar::new(Pair([7; 2]));
    /// ```
    ///
    /// An element whose dtype has the right size compiles:
    ///
    /// ```
    /// use gpuarray::{DType, Element, Scalar};
    ///
    /// #[derive(Clone, Copy, Debug, PartialEq)]
    /// struct Pair([u32; 2]);
    ///
    /// // SAFETY: two integers, of which every value is valid.
    /// unsafe impl Element for Pair {
    ///     const DTYPE: DType = DType::Opaque(8);
    ///     const ZERO: Pair = Pair([0; 2]);
    ///     const ONE: Pair = Pair([1; 2]);
    /// }
    ///
    /// assert_eq!(Scalar::new(Pair([7, 8])).get(), Some(Pair([7, 8])));
    /// ```
    pub fn new<T: Element>(value: T) -> Self {
        const {
            assert!(size_of::<T>() <= Scalar::MAX_BYTES, "an element too large for a scalar");
            assert!(size_of::<T>() == T::DTYPE.size(), "Element::DTYPE has another size");
        }
        let mut bits = [0; Scalar::MAX_BYTES];
        // SAFETY: an element is plain data, and its bytes fit.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const value).cast::<u8>(),
                bits.as_mut_ptr(),
                size_of::<T>(),
            );
        }
        Scalar { dtype: T::DTYPE, bits }
    }

    /// Returns the value with the given bytes, in this machine's byte order.
    ///
    /// # Errors
    /// `InvalidArgument` if the length of `bytes` differs from the dtype's size or exceeds
    /// [`Scalar::MAX_BYTES`].
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Result<Self> {
        if bytes.len() != dtype.size() || bytes.len() > Self::MAX_BYTES {
            return Err(Error::invalid(
                "scalar",
                format!(
                    "a {dtype} has size {} (at most {}), not {}",
                    dtype.size(),
                    Self::MAX_BYTES,
                    bytes.len()
                ),
            ));
        }
        let mut bits = [0; Self::MAX_BYTES];
        bits[..bytes.len()].copy_from_slice(bytes);
        if dtype == DType::Bool {
            bits[0] = u8::from(bits[0] != 0);
        }
        Ok(Scalar { dtype, bits })
    }

    /// Returns the type of the value.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the bytes of the value in this machine's byte order. Their number is the dtype's
    /// size.
    pub fn bytes(&self) -> &[u8] {
        &self.bits[..self.dtype.size()]
    }

    /// Returns the bytes of the value, padded with zeros.
    #[inline]
    pub(crate) fn word(&self) -> u128 {
        u128::from_ne_bytes(self.bits)
    }

    /// Returns the value as `T`, if `T` is the type of the value.
    pub fn get<T: Element>(&self) -> Option<T> {
        const { assert!(size_of::<T>() == T::DTYPE.size(), "Element::DTYPE has another size") };
        // SAFETY: if the dtype is `T`'s, the bytes are a valid `T`, which is not larger than a
        // scalar.
        (self.dtype == T::DTYPE).then(|| unsafe { self.bits.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Returns the value converted to another type: integers wrap, floating-point numbers round, a
    /// complex number loses its imaginary part when it becomes real.
    ///
    /// # Errors
    /// `InvalidType` between a record and anything else.
    #[inline]
    pub fn cast(&self, dtype: DType) -> Result<Scalar> {
        if dtype == self.dtype {
            return Ok(*self);
        }
        if dtype.kind() == Kind::Opaque || self.dtype.kind() == Kind::Opaque {
            return Err(Error::invalid_type(
                "cast",
                format!("a {} cannot become a {dtype}", self.dtype),
            ));
        }
        let (real, imaginary) = self.parts();
        Ok(Self::of_parts(dtype, real, imaginary).unwrap_or(*self))
    }

    /// Returns the value as a 64-bit float, without its imaginary part.
    pub fn as_f64(&self) -> f64 {
        self.parts().0.float()
    }

    /// Returns true unless every part of the value is zero.
    pub fn is_true(&self) -> bool {
        let (real, imaginary) = self.parts();
        real.is_true() || imaginary != 0.0
    }
}

/// A number type that converts to and from others through its real and imaginary parts.
trait Parts: Element {
    fn of(real: Real, imaginary: f64) -> Self;
    fn parts(self) -> (Real, f64);
}

macro_rules! parts {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $name:literal $kind:ident $rust:ty [$zero:expr, $one:expr]
            c($value:literal, $stored:literal, $functions:literal) $working:ident $use:ident;
    )*) => {
        $(parts!(@ $kind $rust);)*

        impl Scalar {
            /// Returns the number of a type with these parts; `None` for records.
            fn of_parts(dtype: DType, real: Real, imaginary: f64) -> Option<Scalar> {
                match dtype {
                    $(DType::$variant => {
                        Some(Scalar::new(<$rust as Parts>::of(real, imaginary)))
                    })*
                    DType::Opaque(_) => None,
                }
            }

            /// Returns the real and the imaginary part; zeros for records.
            fn parts(&self) -> (Real, f64) {
                match self.dtype {
                    // SAFETY: the bytes are a valid value of the type.
                    $(DType::$variant => unsafe {
                        self.bits.as_ptr().cast::<$rust>().read_unaligned().parts()
                    },)*
                    DType::Opaque(_) => (Real::Integer(0), 0.0),
                }
            }
        }
    };
    (@ Bool $rust:ty) => {
        impl Parts for $rust {
            fn of(real: Real, imaginary: f64) -> Self {
                real.is_true() || imaginary != 0.0
            }
            fn parts(self) -> (Real, f64) {
                (Real::Integer(self.into()), 0.0)
            }
        }
    };
    (@ Float $rust:ty) => {
        impl Parts for $rust {
            fn of(real: Real, _imaginary: f64) -> Self {
                <$rust>::nearest(real.float())
            }
            fn parts(self) -> (Real, f64) {
                (Real::Float(self.into()), 0.0)
            }
        }
    };
    (@ Complex $rust:ty) => {
        impl Parts for $rust {
            fn of(real: Real, imaginary: f64) -> Self {
                Complex::new(Nearest::nearest(real.float()), Nearest::nearest(imaginary))
            }
            fn parts(self) -> (Real, f64) {
                (Real::Float(self.re.into()), self.im.into())
            }
        }
    };
    (@ $integer:ident $rust:ty) => {
        impl Parts for $rust {
            fn of(real: Real, _imaginary: f64) -> Self {
                real.integer() as $rust
            }
            fn parts(self) -> (Real, f64) {
                (Real::Integer(self.into()), 0.0)
            }
        }
    };
}
dtypes!(parts);

/// A floating-point type that can round a double-precision number to the nearest of its own.
trait Nearest: Into<f64> {
    fn nearest(value: f64) -> Self;
}

impl<T: Narrow + Into<f64>> Nearest for T {
    fn nearest(value: f64) -> Self {
        T::narrow_double(value)
    }
}

impl Nearest for f32 {
    fn nearest(value: f64) -> Self {
        value as f32
    }
}

impl Nearest for f64 {
    fn nearest(value: f64) -> Self {
        value
    }
}

#[derive(Clone, Copy)]
enum Real {
    Integer(i128),
    Float(f64),
}

impl Real {
    fn integer(&self) -> i128 {
        match *self {
            Real::Integer(value) => value,
            Real::Float(value) => value as i128,
        }
    }

    fn float(&self) -> f64 {
        match *self {
            Real::Integer(value) => value as f64,
            Real::Float(value) => value,
        }
    }

    fn is_true(&self) -> bool {
        match *self {
            Real::Integer(value) => value != 0,
            Real::Float(value) => value != 0.0,
        }
    }
}
