//! The context of a test: an open backend, its first device, and small helpers.

use crate::gates;
pub(crate) use crate::gates::Gate;
use crate::harness::{Capability, Outcome};
use gpuarray::{
    Backend, Device, DeviceArray, Element, Error, ErrorKind, Result, Stream, StreamOptions,
};
use std::sync::Arc;
use std::time::Duration;

/// Functions that return devices other than the first.
#[derive(Clone, Copy)]
pub(crate) struct Others {
    pub(crate) second: fn(&dyn Backend) -> Result<Arc<dyn Device>>,
    pub(crate) open_apart: fn() -> Result<Arc<dyn Backend>>,
}

/// An open backend and its first device.
pub(crate) struct Context {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) device: Arc<dyn Device>,
    second: fn(&dyn Backend) -> Result<Arc<dyn Device>>,
    open_apart: fn() -> Result<Arc<dyn Backend>>,
    capabilities: Vec<Capability>,
    takes_all: bool,
}

impl Context {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        Others { second, open_apart }: Others,
        capabilities: &[Capability],
    ) -> Result<Context> {
        let device = backend.device(0)?;
        gates::prepare(&device, capabilities.contains(&Capability::ConcurrentHostFunctions))?;
        let is_double = capabilities.contains(&Capability::Double);
        let takes_all = !is_double || std::env::var_os("PYGPU_TEST_ALL").is_some();
        let capabilities = capabilities.to_vec();
        Ok(Context { backend, device, second, open_apart, capabilities, takes_all })
    }

    /// Returns true if the backend has a capability on which only part of a test depends.
    pub(crate) fn can(&self, capability: impl Into<Capability>) -> bool {
        self.capabilities.contains(&capability.into())
    }

    /// Returns true if a test should run the case with this number. A fake driver runs the C++
    /// compiler for each case, so it takes one in four unless `PYGPU_TEST_ALL` is set; other backends
    /// take all.
    pub(crate) fn takes(&self, number: usize) -> bool {
        self.takes_all || number.is_multiple_of(4)
    }

    /// Returns false on a fake driver if `PYGPU_TEST_ALL` is not set.
    pub(crate) fn takes_all(&self) -> bool {
        self.takes_all
    }

    /// Returns a device other than the first.
    pub(crate) fn second_device(&self) -> Result<Arc<dyn Device>> {
        (self.second)(self.backend.as_ref())
    }

    /// Returns the first device of a separate instance of the backend.
    pub(crate) fn device_apart(&self) -> Result<Arc<dyn Device>> {
        (self.open_apart)()?.device(0)
    }

    /// Returns every other device: the second one, if supported, and the first one of a separate instance.
    pub(crate) fn other_devices(&self) -> Result<Vec<Arc<dyn Device>>> {
        let second = self.can(Capability::SecondDevice).then(|| self.second_device());
        second.into_iter().chain([self.device_apart()]).collect()
    }

    /// Creates a stream that does not wait for the default stream, nor the default stream for it.
    pub(crate) fn stream(&self) -> Result<Arc<dyn Stream>> {
        self.device.create_stream(StreamOptions::default().non_blocking(true))
    }

    /// Creates a stream that waits for the default stream, and the default stream for it.
    pub(crate) fn blocking_stream(&self) -> Result<Arc<dyn Stream>> {
        self.device.create_stream(StreamOptions::default())
    }

    pub(crate) fn free_memory(&self) -> Result<usize> {
        Ok(self.device.memory_info()?.free)
    }

    pub(crate) fn array<T: Element>(
        &self,
        shape: &[usize],
        values: &[T],
    ) -> Result<DeviceArray<T>> {
        DeviceArray::from_shaped(&self.device, shape, values)
    }

    /// Returns `0, 1, 2, ...` in the given shape.
    pub(crate) fn counting(&self, shape: &[usize]) -> Result<DeviceArray<i32>> {
        self.array(shape, &counting(shape.iter().product()))
    }
}

/// Returns the numbers from zero up to, but not including, `count`.
pub(crate) fn counting(count: usize) -> Vec<i32> {
    (0..count as i32).collect()
}

/// Returns the error of a call that must fail.
pub(crate) fn error_of<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("the call succeeded; an error was expected"),
        Err(error) => error,
    }
}

/// Checks an error's kind, and that its call, text or status contains every string in `named`.
#[track_caller]
pub(crate) fn expect_error<T>(result: Result<T>, kind: ErrorKind, named: &[&str]) -> Outcome {
    let error = error_of(result);
    let (text, status) = (error.to_string(), error.status());
    assert_eq!(error.kind(), kind, "{text}");
    assert!(!status.is_success(), "an error has a status: {text}");
    let fields = [Some(error.call()), status.name()];
    for word in named {
        let is_named = text.contains(word) || fields.contains(&Some(*word));
        assert!(is_named, "the text does not name {word}: {text}");
    }
    check_sentence(&text);
    let shown = [status.to_string(), status.name().unwrap_or("[status").to_owned()];
    assert!(!shown.iter().any(|it| text.contains(it)), "the text shows the status: {text}");
    Ok(())
}

/// Checks that an error's text is a sentence that is read once.
fn check_sentence(text: &str) {
    let (first, rest) = text.split_once(": ").unwrap_or((text, ""));
    assert!(first.contains(' ') || !rest.starts_with(first), "it names {first} twice: {text}");
    assert!(!text.ends_with(['.', ':', ';', ',']), "it ends with a mark: {text}");
    assert!(!text.contains("there are 1 "), "a plural for one: {text}");
    for pair in text.split_whitespace().collect::<Vec<_>>().windows(2) {
        let unit = pair[1].trim_end_matches([',', ';', ')']);
        let is_plural = ["bytes", "elements", "axes", "arguments", "devices"].contains(&unit);
        assert!(pair[0] != "1" || !is_plural, "a plural for one: {text}");
    }
    let sentences = text.replace(['(', ')', '\n'], "; ").replace(": ", "; ").replace(". ", "; ");
    for sentence in sentences.split("; ") {
        assert!(sentence.split_whitespace().count() <= 25, "it is too long: {text}");
    }
}

/// Sleeps long enough that work which does not wait would have run.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(30));
}
