//! The names of the backends.

use hal::Error;
use std::fmt;
use std::str::FromStr;

/// The name of a backend.
///
/// For example, a program whose user names the backend:
///
/// ```
/// use gpuarray::Choice;
///
/// # fn main() -> gpuarray::Result<()> {
/// let choice: Choice = "host".parse()?;
/// let backend = gpuarray::open(choice)?;
/// assert_eq!(backend.name(), choice.name());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The backend that `PYGPU_BACKEND` names. If that variable is unset, the first available
    /// backend of this list: the one that this library was built for
    /// ([`BuildInfo::default_backend`](crate::BuildInfo::default_backend)), CUDA, HIP, the host.
    Auto,
    /// NVIDIA GPUs.
    Cuda,
    /// AMD GPUs.
    Hip,
    /// The machine's processor.
    Host,
}

impl Choice {
    /// Returns the name that programs and users write.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Cuda => "cuda",
            Choice::Hip => "hip",
            Choice::Host => "host",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) const ALLOWED: &str = "allowed are auto, cuda, hip and host";

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Choice, Error> {
        let all = [Choice::Auto, Choice::Cuda, Choice::Hip, Choice::Host];
        all.into_iter()
            .find(|choice| choice.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::invalid("backend", format!("backend is {text:?}; {ALLOWED}")))
    }
}
