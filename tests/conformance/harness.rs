//! Runs the table: every test against every backend. Each test has its own thread, so that a test that
//! hangs fails and does not block the others.

use crate::context::{Context, Others};
use gpuarray::{Backend, Device, Feature, Result};
use std::any::Any;
use std::cell::RefCell;
use std::env;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The result of a test. A panic also counts as a failure.
pub(crate) type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// A requirement of a test beyond what every backend must support: a feature of the device, or a
/// property that only tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    /// The device has the feature.
    Has(Feature),
    /// The free memory is known to the byte, and nothing else changes it.
    ExactAccounting,
    /// The device has so little memory that a test can use all of it.
    SmallMemory,
    /// The host can read and write through device addresses.
    HostAddresses,
    /// A second device is available.
    SecondDevice,
    /// Host functions of several streams run concurrently.
    ConcurrentHostFunctions,
    /// Work makes progress without waiting calls, and a query can observe it running.
    Progress,
    /// The driver contains a real PTX compiler and linker, with options and logs.
    Jit,
    /// All blocks of a cooperative launch run at the same time.
    ResidentBlocks,
    /// Calls go to a driver, which supports profilers, PCI addresses and memory of other devices.
    Driver,
    /// Two of its devices can use each other's memory.
    Peers,
    /// The backend runs on the fake driver, which can be configured to behave unusually.
    Double,
    /// An environment variable sets the device's architecture. A fake driver that forwards its calls
    /// does not have this.
    OwnTarget,
}

impl Capability {
    fn name(self) -> String {
        match self {
            Capability::Has(feature) => format!("{feature:?}"),
            other => format!("{other:?}"),
        }
    }
}

impl From<Feature> for Capability {
    fn from(feature: Feature) -> Capability {
        Capability::Has(feature)
    }
}

/// A test: one statement of behaviour.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// The capabilities that the test requires.
    pub(crate) needs: fn() -> Vec<Capability>,
    pub(crate) run: fn(&Context) -> Outcome,
}

/// One backend, as the suite describes it.
pub(crate) struct BackendUnderTest {
    pub(crate) name: &'static str,
    /// Opens the backend for one test.
    pub(crate) open: fn() -> Result<Arc<dyn Backend>>,
    /// Opens another instance, separate from every other.
    pub(crate) open_apart: fn() -> Result<Arc<dyn Backend>>,
    /// Returns a device other than the first, if the backend has one.
    pub(crate) second: fn(&dyn Backend) -> Result<Arc<dyn Device>>,
    /// Returns the backend's capabilities in this run, in addition to its device's features.
    pub(crate) capabilities: fn(&dyn Backend) -> Result<Vec<Capability>>,
    /// Tests (`module::name`) that are known to fail, each with the reason. If one passes, that is a
    /// failure.
    pub(crate) expected_failures: &'static [(&'static str, &'static str)],
    /// Tests that are left out, each with the reason.
    pub(crate) skipped: &'static [(&'static str, &'static str)],
}

/// Makes the table of a module: `tests![name, name needs [A, B], ...]`. A requirement is a variant of
/// [`Feature`] or of [`Capability`].
macro_rules! tests {
    ($($name:ident $(needs [$($capability:ident),*])?),* $(,)?) => {
        pub(crate) const TESTS: &[crate::harness::Test] = &[$(crate::harness::Test {
            name: stringify!($name),
            needs: || {
                #[allow(unused_imports, reason = "most tests need the variants of one or none")]
                use {crate::harness::Capability::*, gpuarray::Feature::*};
                vec![$($(crate::harness::Capability::from($capability)),*)?]
            },
            run: $name,
        }),*];
    };
}
pub(crate) use tests;

#[derive(Default)]
struct Arguments {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    quiet: bool,
}

impl Arguments {
    fn parse() -> Arguments {
        let mut arguments = Arguments::default();
        let mut words = env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--exact" => arguments.exact = true,
                "--list" => arguments.list = true,
                "--quiet" | "-q" => arguments.quiet = true,
                "--skip" => arguments.skipped.extend(words.next()),
                // libtest's options with a value; this suite ignores them.
                "--test-threads" | "--format" | "--color" | "--logfile" => drop(words.next()),
                flag if flag.starts_with('-') => {}
                filter => arguments.filters.push(filter.to_owned()),
            }
        }
        arguments
    }

    fn selects(&self, name: &str) -> bool {
        let fits = |text: &String| if self.exact { name == text } else { name.contains(text) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skipped.iter().any(fits)
    }
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    expected: usize,
}

enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
    ExpectedFailure(&'static str),
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs all selected tests. Their names are `backend::module::test`.
pub(crate) fn run(tables: &[(&str, &[Test])], backends: &[BackendUnderTest]) -> ExitCode {
    let arguments = Arguments::parse();
    // A panic is reported with the test that it fails. Threads that a test starts are part of the
    // test.
    std::panic::set_hook(Box::new(|panic| {
        let text = payload_text(panic.payload());
        let place = panic.location().map(|l| format!("{}:{}: ", l.file(), l.line()));
        PANIC.set(Some(format!("{}{text}", place.unwrap_or_default())));
    }));
    let mut out = io::stdout().lock();
    let result = run_selected(&arguments, tables, backends, &mut out);
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(out, "conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_selected(
    arguments: &Arguments,
    tables: &[(&str, &[Test])],
    backends: &[BackendUnderTest],
    out: &mut dyn Write,
) -> std::result::Result<bool, Box<dyn std::error::Error>> {
    let required = required(backends)?;
    let limit = time_limit()?;
    let mut total = Counts::default();
    let mut failures = Vec::new();
    for backend in backends {
        check_names(backend, tables)?;
        let opened = match arguments.list {
            true => Ok(Vec::new()),
            false => (backend.open)().and_then(|opened| capabilities(backend, opened.as_ref())),
        };
        let selected: Vec<(String, &Test)> = tables
            .iter()
            .flat_map(|(module, tests)| tests.iter().map(move |test| (module, test)))
            .map(|(module, test)| (format!("{module}::{}", test.name), test))
            .filter(|(name, _)| arguments.selects(&format!("{}::{name}", backend.name)))
            .collect();
        if arguments.list {
            for (name, _) in &selected {
                writeln!(out, "{}::{name}: test", backend.name)?;
            }
            continue;
        }
        let mut counts = Counts::default();
        let capabilities = match opened {
            Ok(capabilities) => Some(capabilities),
            Err(error) => {
                if required.iter().any(|name| name == backend.name) {
                    counts.failed = 1;
                    failures.push((format!("{} is required", backend.name), error.to_string()));
                }
                counts.skipped = selected.len();
                writeln!(out, "{}: unavailable: {}", backend.name, error.detail())?;
                None
            }
        };
        if let Some(capabilities) = capabilities {
            for (name, test) in selected {
                let name = format!("{}::{name}", backend.name);
                let limit = Duration::from_secs(limit);
                let verdict = judge(backend, &capabilities, &name, test, limit);
                let text = match &verdict {
                    Verdict::Passed => "ok".to_owned(),
                    Verdict::Failed(_) => "FAILED".to_owned(),
                    Verdict::Skipped(reason) => format!("skipped: {reason}"),
                    Verdict::ExpectedFailure(reason) => format!("fails as expected: {reason}"),
                };
                if !(arguments.quiet && matches!(verdict, Verdict::Passed)) {
                    writeln!(out, "test {name} ... {text}")?;
                }
                match verdict {
                    Verdict::Passed => counts.passed += 1,
                    Verdict::Skipped(_) => counts.skipped += 1,
                    Verdict::ExpectedFailure(_) => counts.expected += 1,
                    Verdict::Failed(why) => {
                        counts.failed += 1;
                        failures.push((name, why));
                    }
                }
            }
        }
        writeln!(
            out,
            "{}: {} passed, {} failed, {} skipped, {} failed as expected",
            backend.name, counts.passed, counts.failed, counts.skipped, counts.expected
        )?;
        total.passed += counts.passed;
        total.failed += counts.failed;
        total.skipped += counts.skipped + counts.expected;
    }
    if arguments.list {
        return Ok(true);
    }
    for (name, why) in &failures {
        writeln!(out, "\n---- {name} ----\n{why}")?;
    }
    let Counts { passed, failed, skipped, .. } = total;
    writeln!(out, "\n{passed} passed, {failed} failed, {skipped} skipped")?;
    Ok(failed == 0)
}

/// Returns the time limit of one test in seconds.
pub(crate) fn time_limit() -> std::result::Result<u64, String> {
    match env::var("GPUARRAY_TEST_SECONDS") {
        Ok(text) => text.parse().map_err(|_| format!("GPUARRAY_TEST_SECONDS is {text:?}")),
        Err(_) => Ok(60),
    }
}

/// Returns the backends that `GPUARRAY_REQUIRE` names.
fn required(backends: &[BackendUnderTest]) -> std::result::Result<Vec<String>, String> {
    let text = env::var("GPUARRAY_REQUIRE").unwrap_or_default();
    let names: Vec<String> =
        text.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    match names.iter().find(|name| backends.iter().all(|backend| backend.name != *name)) {
        None => Ok(names),
        Some(name) => Err(format!("GPUARRAY_REQUIRE names {name:?}, which is no backend")),
    }
}

/// Returns an error if a listed exception names a test that does not exist.
fn check_names(
    backend: &BackendUnderTest,
    tables: &[(&str, &[Test])],
) -> std::result::Result<(), String> {
    let exists = |name: &str| {
        tables.iter().any(|(module, tests)| {
            name == *module || tests.iter().any(|test| name == format!("{module}::{}", test.name))
        })
    };
    let mut exceptions = backend.expected_failures.iter().chain(backend.skipped);
    match exceptions.find(|(name, _)| !exists(name)) {
        None => Ok(()),
        Some((name, _)) => Err(format!("{} lists {name}, which is no test", backend.name)),
    }
}

/// Returns the device's features and the backend's other capabilities, without those that
/// `GPUARRAY_WITHOUT` (comma-separated names) lists. A driver may have a function that refuses all
/// work, which shows only when it is called.
fn capabilities(backend: &BackendUnderTest, opened: &dyn Backend) -> Result<Vec<Capability>> {
    let features = opened.device(0)?.features();
    let mut all: Vec<_> = features.iter().map(Capability::Has).collect();
    all.extend((backend.capabilities)(opened)?);
    let without = std::env::var("GPUARRAY_WITHOUT").unwrap_or_default();
    all.retain(|it| without.split(',').all(|name| name != it.name()));
    Ok(all)
}

fn judge(
    backend: &BackendUnderTest,
    capabilities: &[Capability],
    name: &str,
    test: &Test,
    limit: Duration,
) -> Verdict {
    let listed = |list: &'static [(&str, &'static str)]| {
        let is_meant = |listed: &str| {
            name.ends_with(&format!("::{listed}")) || name.contains(&format!("::{listed}::"))
        };
        list.iter().find(|(listed, _)| is_meant(listed)).map(|entry| entry.1)
    };
    if let Some(reason) = listed(backend.skipped) {
        return Verdict::Skipped(reason.to_owned());
    }
    if let Some(missing) = (test.needs)().into_iter().find(|need| !capabilities.contains(need)) {
        return Verdict::Skipped(format!("needs {}", missing.name()));
    }
    match (attempt(backend, capabilities, test, limit), listed(backend.expected_failures)) {
        (Ok(()), None) => Verdict::Passed,
        (Ok(()), Some(reason)) => Verdict::Failed(format!("passes, but is listed: {reason}")),
        (Err(_), Some(reason)) => Verdict::ExpectedFailure(reason),
        (Err(why), None) => Verdict::Failed(why),
    }
}

fn attempt(
    backend: &BackendUnderTest,
    capabilities: &[Capability],
    test: &Test,
    limit: Duration,
) -> std::result::Result<(), String> {
    let (open, run) = (backend.open, test.run);
    let others = Others { second: backend.second, open_apart: backend.open_apart };
    let capabilities = capabilities.to_vec();
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name(test.name.to_owned()).spawn(move || {
        let body = || -> Outcome { run(&Context::new(open()?, others, &capabilities)?) };
        let result = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(PANIC.take().unwrap_or_else(|| "panicked".to_owned())),
        };
        // The receiver is dropped if the time limit has passed.
        let _ = sender.send(result);
    });
    if let Err(error) = thread {
        return Err(format!("no thread for the test: {error}"));
    }
    receiver
        .recv_timeout(limit)
        .unwrap_or_else(|_| Err(format!("did not finish in {} seconds", limit.as_secs())))
}

/// Returns the message of a panic.
pub(crate) fn payload_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
