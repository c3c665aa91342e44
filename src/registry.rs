//! The available backends, and the choice between them.

use crate::choice::{ALLOWED, Choice};
use crate::embedded::{self, PREFERRED};
use hal::{Backend, DeviceProperties, Error, ErrorKind, Result};
use std::env;
use std::sync::{Arc, OnceLock};

/// The environment variable that chooses a backend if the program does not.
pub const BACKEND_VARIABLE: &str = "PYGPU_BACKEND";

/// The state of a backend on this machine.
///
/// For example, each backend's devices, or the reason why the backend cannot be used:
///
/// ```
/// use gpuarray::{Choice, backends};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// for backend in backends() {
///     match &backend.state {
///         Ok(opened) => println!("{}: {} devices", backend.choice, opened.devices.len()),
///         Err(error) => println!("{}: {error}", backend.choice),
///     }
/// }
/// assert!(backends().iter().any(|it| it.choice == Choice::Host && it.state.is_ok()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct BackendInfo {
    /// The name of the backend.
    pub choice: Choice,
    /// The driver's version and the devices, or why the backend cannot be used.
    pub state: Result<Opened>,
}

/// The properties of an opened backend.
///
/// For example, the largest device of this machine, whatever its vendor:
///
/// ```
/// use gpuarray::{Opened, backends};
///
/// # fn main() -> gpuarray::Result<()> {
/// let opened: Vec<Opened> = backends().into_iter().filter_map(|it| it.state.ok()).collect();
/// let devices = opened.iter().flat_map(|it| &it.devices);
/// let largest = devices.max_by_key(|it| it.total_memory).expect("the host is a device");
/// assert!(largest.total_memory > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The version of the driver, as `1000 * major + 10 * minor`.
    pub version: i32,
    /// The devices, in the order of their numbers.
    pub devices: Vec<DeviceProperties>,
}

struct Entry {
    choice: Choice,
    open: fn() -> Result<Arc<dyn Backend>>,
    opened: OnceLock<Result<Arc<dyn Backend>>>,
}

/// Every backend, in the order of preference if the build does not prefer one.
static ENTRIES: [Entry; 3] = [
    #[cfg(feature = "cuda")]
    Entry::new(Choice::Cuda, backend_cuda::open),
    #[cfg(not(feature = "cuda"))]
    Entry::new(Choice::Cuda, || left_out(Choice::Cuda)),
    #[cfg(feature = "hip")]
    Entry::new(Choice::Hip, backend_hip::open),
    #[cfg(not(feature = "hip"))]
    Entry::new(Choice::Hip, || left_out(Choice::Hip)),
    #[cfg(feature = "host")]
    Entry::new(Choice::Host, backend_host::HostBackend::open),
    #[cfg(not(feature = "host"))]
    Entry::new(Choice::Host, || left_out(Choice::Host)),
];

/// Returns the error for a backend whose feature is off.
#[cfg(not(all(feature = "cuda", feature = "hip", feature = "host")))]
fn left_out(choice: Choice) -> Result<Arc<dyn Backend>> {
    Err(Error::unavailable(
        "open",
        format!(
            "the backend {choice} is left out of this build; enable the feature {choice} of the \
             crate gpuarray"
        ),
    ))
}

impl Entry {
    const fn new(choice: Choice, open: fn() -> Result<Arc<dyn Backend>>) -> Entry {
        Entry { choice, open, opened: OnceLock::new() }
    }

    fn get(&self) -> Result<Arc<dyn Backend>> {
        let open = || {
            embedded::register();
            (self.open)()
        };
        self.opened.get_or_init(open).clone()
    }

    fn describe(&self) -> Result<Opened> {
        let backend = self.get()?;
        let devices = (0..backend.device_count()?)
            .map(|ordinal| Ok(backend.device(ordinal)?.properties().clone()))
            .collect::<Result<_>>()?;
        Ok(Opened { version: backend.version()?, devices })
    }
}

/// Returns every backend that this library knows, with its version and devices, or with the reason
/// why it cannot be used. Opens the backends, but allocates no device memory.
pub fn backends() -> Vec<BackendInfo> {
    ENTRIES
        .iter()
        .map(|entry| BackendInfo { choice: entry.choice, state: entry.describe() })
        .collect()
}

/// Opens a backend by name. [`Choice::Auto`] opens the backend that `PYGPU_BACKEND` names, or else
/// the first available one; [`Choice::Auto`] has the order. Each backend is opened once per
/// process.
///
/// # Errors
/// `BackendUnavailable` with the reason; `InvalidArgument` if `PYGPU_BACKEND` is not the name of a
/// backend.
pub fn open(choice: Choice) -> Result<Arc<dyn Backend>> {
    let choice = match choice {
        Choice::Auto => from_environment()?,
        named => named,
    };
    open_one_of(&ENTRIES, PREFERRED, choice)
}

/// Opens the entry of a choice. [`Choice::Auto`] opens the preferred entry, else the first that can
/// be used.
fn open_one_of(entries: &[Entry], preferred: Choice, choice: Choice) -> Result<Arc<dyn Backend>> {
    let mut reasons = Vec::new();
    let is_preferred = |entry: &&Entry| entry.choice == preferred;
    let others = entries.iter().filter(|entry| !is_preferred(entry));
    for entry in entries.iter().filter(is_preferred).chain(others) {
        if choice != Choice::Auto && choice != entry.choice {
            continue;
        }
        match entry.get() {
            Ok(backend) => return Ok(backend),
            // An invalid setting is an error, not a missing backend.
            Err(error) if choice != Choice::Auto || error.kind() == ErrorKind::InvalidArgument => {
                return Err(error);
            }
            Err(error) => reasons.push(format!("{}: {}", entry.choice, error.detail())),
        }
    }
    Err(Error::unavailable("open", format!("no backend can be used ({})", reasons.join("; "))))
}

fn from_environment() -> Result<Choice> {
    match env::var_os(BACKEND_VARIABLE) {
        None => Ok(Choice::Auto),
        Some(value) if value.is_empty() => Ok(Choice::Auto),
        Some(value) => value.to_string_lossy().trim().parse().map_err(|_: Error| {
            Error::invalid("open", format!("{BACKEND_VARIABLE} is {value:?}; {ALLOWED}"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("CUDA".parse::<Choice>().ok(), Some(Choice::Cuda));
        assert_eq!("host".parse::<Choice>().ok(), Some(Choice::Host));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_allowed_ones() {
        let error = "opencl".parse::<Choice>().map_err(|e| e.to_string());
        let text = error.expect_err("opencl is no backend");
        assert!(text.contains("\"opencl\"") && text.contains("auto, cuda, hip and host"), "{text}");
    }

    /// Returns entries of which only those in `present` can be opened.
    fn entries(present: &[Choice]) -> Vec<Entry> {
        let missing: fn() -> Result<Arc<dyn Backend>> =
            || Err(Error::unavailable("open", "no driver"));
        let entry = |choice| {
            let is_here = present.contains(&choice);
            let open = if is_here { backend_host::HostBackend::open } else { missing };
            Entry::new(choice, open)
        };
        [Choice::Cuda, Choice::Hip, Choice::Host].map(entry).into()
    }

    /// Returns the choice that is opened.
    fn opened(entries: &[Entry], preferred: Choice, choice: Choice) -> Result<Choice, String> {
        let backend = open_one_of(entries, preferred, choice).map_err(|error| error.to_string())?;
        let is_it = |entry: &&Entry| {
            let result = entry.opened.get().and_then(|it| it.as_ref().ok());
            result.is_some_and(|it| Arc::ptr_eq(it, &backend))
        };
        let of_it: Vec<_> = entries.iter().filter(is_it).map(|entry| entry.choice).collect();
        assert_eq!(of_it.len(), 1, "{of_it:?}");
        Ok(of_it[0])
    }

    #[test]
    fn the_preferred_backend_is_tried_first_and_the_next_if_it_is_not_here() {
        use Choice::{Auto, Cuda, Hip, Host};
        let first = |preferred, present: &[Choice]| opened(&entries(present), preferred, Auto);
        assert_eq!(first(Auto, &[Cuda, Hip, Host]), Ok(Cuda));
        assert_eq!(first(Cuda, &[Cuda, Hip, Host]), Ok(Cuda));
        assert_eq!(first(Hip, &[Cuda, Hip, Host]), Ok(Hip));
        assert_eq!(first(Hip, &[Cuda, Host]), Ok(Cuda));
        assert_eq!(first(Cuda, &[Hip, Host]), Ok(Hip));
        assert_eq!(first(Hip, &[Host]), Ok(Host));
        let error = first(Hip, &[]).expect_err("none is here");
        let reasons = ["hip: no driver", "cuda: no driver", "host: no driver"];
        let places: Vec<_> = reasons.iter().map(|reason| error.find(reason)).collect();
        assert!(places.is_sorted() && places[0].is_some(), "{error}");
    }

    #[test]
    fn a_backend_that_is_named_is_not_replaced() {
        let all = entries(&[Choice::Cuda, Choice::Host]);
        assert_eq!(opened(&all, Choice::Cuda, Choice::Host), Ok(Choice::Host));
        let error = opened(&all, Choice::Cuda, Choice::Hip).expect_err("hip is not here");
        assert!(error.contains("no driver"), "{error}");
    }

    /// Runs in `scripts/check-crates features`, with features turned off.
    #[test]
    fn a_backend_that_is_left_out_names_its_feature() {
        for choice in [Choice::Cuda, Choice::Hip, Choice::Host] {
            let is_left_out = match choice {
                Choice::Cuda => !cfg!(feature = "cuda"),
                Choice::Hip => !cfg!(feature = "hip"),
                _ => !cfg!(feature = "host"),
            };
            let error = open(choice).err();
            let detail = error.as_ref().map(|error| error.detail().to_owned()).unwrap_or_default();
            assert_eq!(detail.contains(&format!("enable the feature {choice}")), is_left_out);
            assert!(
                !is_left_out
                    || error.is_some_and(|it| { it.kind() == hal::ErrorKind::BackendUnavailable })
            );
        }
    }

    #[test]
    fn every_backend_is_listed_and_the_host_is_usable() {
        let all = backends();
        let names: Vec<_> = all.iter().map(|info| info.choice.name()).collect();
        assert_eq!(names, ["cuda", "hip", "host"]);
        for info in &all {
            match &info.state {
                Ok(opened) => assert!(!opened.devices.is_empty(), "{info:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), hal::ErrorKind::BackendUnavailable);
                    assert!(!error.detail().is_empty());
                }
            }
        }
        assert_eq!(all[2].state.is_ok(), cfg!(feature = "host"));
    }
}
