//! Status values: the integers that GPU drivers return, success included.
//!
//! A [`Status`] is a vendor and a number. Every number is kept, named or not. The names of the
//! numbers are in two tables in `status/`, generated from the vendors' headers. The backends' tests
//! compare them with the bindings.

use crate::enumeration::enumeration;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

enumeration! {
    /// The interface that a status code belongs to.
    ///
    /// The same number from two vendors is two different statuses:
    ///
    /// ```
    /// use gpuarray::{Api, Status};
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// let (cuda, hip) = (Status::cuda(911), Status::hip(911));
    /// assert_eq!((cuda.api, hip.api), (Api::Cuda, Api::Hip));
    /// assert_ne!(cuda, hip);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Api {
        /// The embedded host backend and this library's own checks.
        Host,
        /// The CUDA driver.
        Cuda,
        /// The HIP runtime.
        Hip,
        /// NVIDIA's run-time compiler.
        Nvrtc,
        /// AMD's run-time compiler.
        Hiprtc,
    }
}

/// The status that a call returned: an integer that may be any code, named or not.
///
/// The numbers are the ones of `cudaError_t` and `hipError_t` where the two agree; the constants
/// here are in that common part. Two statuses are equal if vendor and number are equal; all
/// successes are equal.
///
/// ```
/// use gpuarray::Status;
///
/// let status = Status::cuda(2);
/// assert_eq!(status.name(), Some("CUDA_ERROR_OUT_OF_MEMORY"));
/// assert_eq!(status.runtime_name(), Some("cudaErrorMemoryAllocation"));
/// assert_eq!(status.to_hip(), Some(2));
/// assert!(!status.is_success());
///
/// // Numbers without a name are kept.
/// assert_eq!(Status::hip(4321).code, 4321);
/// assert_eq!(Status::hip(4321).to_string(), "status 4321 of Hip");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// The interface that the number belongs to.
    pub api: Api,
    /// The number itself.
    pub code: i32,
}

impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && (self.api == other.api || self.is_success())
    }
}

impl Eq for Status {}

impl Hash for Status {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code.hash(state);
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $code:literal, $name:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $constant: i32 = $code;)*

            /// Returns the name of a code that CUDA and HIP share, without the prefix of either.
            pub fn common_name(code: i32) -> Option<&'static str> {
                match code {
                    $($code => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// The call succeeded.
    SUCCESS = 0, "Success";
    /// An argument is out of range.
    INVALID_VALUE = 1, "InvalidValue";
    /// Not enough memory.
    OUT_OF_MEMORY = 2, "OutOfMemory";
    /// The driver is not initialised.
    NOT_INITIALIZED = 3, "NotInitialized";
    /// The driver is shutting down.
    DEINITIALIZED = 4, "Deinitialized";
    /// No device is available.
    NO_DEVICE = 100, "NoDevice";
    /// The device number is out of range.
    INVALID_DEVICE = 101, "InvalidDevice";
    /// A kernel's code or source could not be used.
    INVALID_SOURCE = 300, "InvalidSource";
    /// A file with code does not exist.
    FILE_NOT_FOUND = 301, "FileNotFound";
    /// The handle does not belong to a live object.
    INVALID_HANDLE = 400, "InvalidHandle";
    /// A symbol was not found.
    NOT_FOUND = 500, "NotFound";
    /// Work is still in progress. This is an answer, not a failure.
    NOT_READY = 600, "NotReady";
    /// A kernel accessed memory outside its allocations.
    ILLEGAL_ADDRESS = 700, "IllegalAddress";
    /// A launch requires more than the device has.
    LAUNCH_OUT_OF_RESOURCES = 701, "LaunchOutOfResources";
    /// Host memory is registered already.
    HOST_MEMORY_ALREADY_REGISTERED = 712, "HostMemoryAlreadyRegistered";
    /// Host memory is not registered.
    HOST_MEMORY_NOT_REGISTERED = 713, "HostMemoryNotRegistered";
    /// A kernel failed while it ran.
    LAUNCH_FAILED = 719, "LaunchFailed";
    /// The blocks of a cooperative launch cannot all run at the same time.
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "CooperativeLaunchTooLarge";
    /// The operation is not permitted here.
    NOT_PERMITTED = 800, "NotPermitted";
    /// The backend or the device does not support this.
    NOT_SUPPORTED = 801, "NotSupported";
    /// A failure without a number of its own.
    UNKNOWN = 999, "Unknown";
}

/// Code, `CUresult`, `cudaError_t`, `hipError_t`.
const CODES: &str = include_str!("status/codes.txt");
/// Code, `nvrtcResult`, `hiprtcResult`.
const COMPILER_CODES: &str = include_str!("status/compiler_codes.txt");

/// The codes that CUDA and HIP number differently: CUDA's number, HIP's number. All other shared
/// codes have the same number.
const DIFFERENT: [(i32, i32); 2] = [(20, 911), (18, 912)];

/// Returns the name of a code in a column of a table; columns count from 1.
fn look_up(table: &'static str, code: i32, column: usize) -> Option<&'static str> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let mut fields = rows
        .map(|line| line.split(' '))
        .find(|fields| fields.clone().next().is_some_and(|first| first.parse() == Ok(code)))?;
    fields.nth(column).filter(|name| *name != "-")
}

const DRIVER: usize = 1;
const RUNTIME: usize = 2;
const HIP: usize = 3;

impl Status {
    /// The status of a successful call.
    pub const OK: Status = Status::host(Status::SUCCESS);

    /// Returns a status of `api` with the number `code`.
    pub const fn new(api: Api, code: i32) -> Self {
        Status { api, code }
    }

    /// Returns a status of the host backend or of this library's own checks.
    pub const fn host(code: i32) -> Self {
        Status::new(Api::Host, code)
    }

    /// Returns the status of a `CUresult` or a `cudaError_t`.
    pub const fn cuda(code: i32) -> Self {
        Status::new(Api::Cuda, code)
    }

    /// Returns the status of a `hipError_t`.
    pub const fn hip(code: i32) -> Self {
        Status::new(Api::Hip, code)
    }

    /// Returns true for the status of a successful call.
    pub const fn is_success(self) -> bool {
        self.code == Self::SUCCESS
    }

    /// Returns the vendor's name of the number, such as `CUDA_ERROR_INVALID_VALUE` or
    /// `hipErrorInvalidValue`; `None` for unnamed numbers.
    ///
    /// For a number that only `cudaError_t` has, not the driver's `CUresult`, this is the name in
    /// `cudaError_t`.
    pub fn name(self) -> Option<&'static str> {
        match self.api {
            Api::Host => Status::common_name(self.code),
            Api::Cuda => look_up(CODES, self.code, DRIVER).or_else(|| self.runtime_name()),
            Api::Hip => look_up(CODES, self.code, HIP),
            Api::Nvrtc => look_up(COMPILER_CODES, self.code, 1),
            Api::Hiprtc => look_up(COMPILER_CODES, self.code, 2),
        }
    }

    /// Returns the name of the number in the vendor's runtime library, such as
    /// `cudaErrorInvalidValue` or `hipErrorInvalidValue`. The host backend uses CUDA's names.
    pub fn runtime_name(self) -> Option<&'static str> {
        match self.api {
            Api::Host | Api::Cuda => look_up(CODES, self.code, RUNTIME),
            _ => self.name(),
        }
    }

    /// Returns a short explanation of the number; empty if the name is clear enough.
    pub fn message(self) -> &'static str {
        match self.api {
            _ if self.is_success() => "no error",
            Api::Host if self.code == Status::INVALID_VALUE => {
                "an argument has a value that is not allowed"
            }
            Api::Nvrtc | Api::Hiprtc => "",
            _ => meaning(self.code),
        }
    }

    /// Returns CUDA's number for this status, if any.
    pub fn to_cuda(self) -> Option<i32> {
        self.convert(Api::Cuda)
    }

    /// Returns HIP's number for this status, if any.
    ///
    /// ```
    /// use gpuarray::Status;
    ///
    /// assert_eq!(Status::cuda(700).to_hip(), Some(700));
    /// assert_eq!(Status::cuda(20).to_hip(), Some(911)); // an invalid channel descriptor
    /// assert_eq!(Status::cuda(220).to_hip(), None); // HIP knows no NVLink
    /// ```
    pub fn to_hip(self) -> Option<i32> {
        self.convert(Api::Hip)
    }

    fn convert(self, to: Api) -> Option<i32> {
        let code = self.code;
        if self.is_success() || self.api == to {
            return Some(code);
        }
        let (column, numbers): (&[usize], _) = match (self.api, to) {
            (Api::Nvrtc | Api::Hiprtc, _) => return None,
            (_, Api::Cuda) => (&[DRIVER, RUNTIME], DIFFERENT.map(|(cuda, hip)| (hip, cuda))),
            _ => (&[HIP], DIFFERENT),
        };
        if let Some((_, number)) = numbers.iter().find(|(own, _)| *own == code) {
            return Some(*number);
        }
        // The other vendor uses this number with another meaning.
        let taken = self.api != Api::Host && numbers.iter().any(|(_, number)| *number == code);
        let named = column.iter().any(|&column| look_up(CODES, code, column).is_some());
        (named && !taken).then_some(code)
    }
}

impl From<Status> for i32 {
    fn from(status: Status) -> i32 {
        status.code
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Compilers use different numbers.
        let common = !matches!(self.api, Api::Nvrtc | Api::Hiprtc) || self.is_success();
        let name = Status::common_name(self.code).filter(|_| common).or_else(|| self.name());
        match name {
            Some(name) => write!(f, "{name} ({})", self.code),
            None => write!(f, "status {} of {:?}", self.code, self.api),
        }
    }
}

// The status of an object's last call.

/// A status that any thread can read and set. Objects store the status of their last call in it.
///
/// A new one is a success.
#[derive(Debug, Default)]
pub struct AtomicStatus(AtomicU64);

impl AtomicStatus {
    /// Returns an object whose status is success.
    pub const fn new() -> AtomicStatus {
        // `Api::Host` is 0, as is the code of success.
        AtomicStatus(AtomicU64::new(0))
    }

    /// Returns the status that was set last.
    pub fn load(&self) -> Status {
        let bits = self.0.load(Ordering::Relaxed);
        // Only `store` writes the number of the interface.
        let api = Api::ALL.get((bits >> 32) as usize).copied().unwrap_or(Api::Host);
        Status::new(api, bits as u32 as i32)
    }

    /// Stores the status of a call.
    #[inline]
    pub fn store(&self, status: Status) {
        let api = if status.is_success() { Api::Host } else { status.api };
        let bits = ((api as u64) << 32) | u64::from(status.code as u32);
        // Threads that share an object mostly succeed, and then only read the shared cache line.
        if self.0.load(Ordering::Relaxed) != bits {
            self.0.store(bits, Ordering::Relaxed);
        }
    }
}

// Explanations of status numbers.

/// A kernel's failure, with advice on how to find its cause.
macro_rules! of_kernel {
    ($what:literal) => {
        concat!($what, "; PYGPU_CHECK=1 with PYGPU_BACKEND=host names the faulty access")
    };
}

/// Returns a short explanation of a status number for which the vendors agree; empty if the name is
/// clear enough.
pub fn meaning(code: i32) -> &'static str {
    match code {
        Status::INVALID_VALUE => "an argument has a value that the driver does not allow",
        Status::OUT_OF_MEMORY => "out of memory",
        Status::NOT_INITIALIZED => "the driver is not initialised in this process",
        Status::DEINITIALIZED => "the driver is shutting down",
        Status::NO_DEVICE => "the driver has no device that it can use",
        Status::INVALID_DEVICE => "no device has this number",
        200 => "the bytes are not code that the driver can load",
        201 => "the context no longer exists, or belongs to another device",
        209 => "the code has no version for this device's architecture",
        214 => "the device's memory has an error that cannot be corrected; reset the device",
        217 => "the device cannot access the other device's memory directly",
        218 => "the PTX text does not compile",
        222 => {
            "the PTX text is newer than the driver; install a newer driver or use an older compiler"
        }
        Status::INVALID_SOURCE => "the source of the kernel cannot be used",
        302 | 303 => "a library that the driver needs could not be loaded",
        Status::INVALID_HANDLE => "the object no longer exists, or belongs to another context",
        Status::NOT_FOUND => "no symbol has this name",
        Status::NOT_READY => "work is still in progress",
        Status::ILLEGAL_ADDRESS => of_kernel!("a kernel accessed memory outside its allocations"),
        Status::LAUNCH_OUT_OF_RESOURCES => {
            "the launch needs more registers or shared memory than the device has"
        }
        702 => "a kernel ran longer than the device allows",
        703 => "the launch configuration does not fit the compiled kernel",
        705 => "peer access was not enabled",
        709 => "the context was destroyed or lost",
        710 => of_kernel!("an assertion in a kernel failed"),
        Status::HOST_MEMORY_ALREADY_REGISTERED => "the host memory is registered already",
        Status::HOST_MEMORY_NOT_REGISTERED => "the host memory is not registered",
        714 => of_kernel!("a kernel's stack was damaged"),
        715 => of_kernel!("a kernel ran an illegal instruction"),
        716 => of_kernel!("a kernel used an address that is not aligned"),
        717 => of_kernel!("a kernel used an address in the wrong memory space"),
        718 => of_kernel!("a kernel jumped to an address outside its code"),
        Status::LAUNCH_FAILED => of_kernel!("a kernel failed while it ran"),
        720 => "the blocks of a cooperative launch cannot all run at the same time",
        Status::NOT_PERMITTED => "the driver does not permit this here",
        Status::NOT_SUPPORTED => "the driver or the device does not support this",
        900 => "the call is not allowed while the stream captures",
        901 => "the capture became invalid through an earlier call",
        902..=905 => "the capture cannot have this dependency",
        906 => "the default stream cannot be used while a stream that it waits for captures",
        907 => "the event was recorded in a capture",
        908 => "the capture was begun by another thread",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_tables_have_a_row_for_each_number_in_order() {
        for (table, columns) in [(CODES, 4), (COMPILER_CODES, 3)] {
            let rows: Vec<Vec<&str>> =
                table.lines().skip(1).map(|l| l.split(' ').collect()).collect();
            assert!(rows.iter().all(|row| row.len() == columns));
            let codes: Vec<i32> =
                rows.iter().map(|row| row[0].parse().expect("a number")).collect();
            assert!(codes.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn numbers_convert_there_and_back() {
        for code in 0..2000 {
            let cuda = Status::cuda(code);
            if let (Some(_), Some(hip)) = (cuda.name(), cuda.to_hip()) {
                assert_eq!(Status::hip(hip).to_cuda(), Some(code));
            }
        }
        // 911 is an external device in CUDA and a channel descriptor in HIP.
        assert_eq!(Status::cuda(911).to_hip(), None);
        assert_eq!(Status::hip(911).to_cuda(), Some(20));
        assert_eq!(Status::host(Status::OUT_OF_MEMORY).to_hip(), Some(2));
        assert_eq!(Status::new(Api::Nvrtc, 6).to_cuda(), None);
    }

    #[test]
    fn successes_are_equal_whoever_reports_them() {
        let all: HashSet<Status> = Api::ALL.iter().map(|&api| Status::new(api, 0)).collect();
        assert_eq!(all.len(), 1);
        assert_ne!(Status::cuda(1), Status::hip(1));
    }

    #[test]
    fn vendor_and_number_are_kept() {
        let last = AtomicStatus::new();
        assert_eq!(last.load(), Status::OK);
        for &api in &Api::ALL {
            for code in [1, 999, -1, i32::MIN, i32::MAX] {
                last.store(Status::new(api, code));
                assert_eq!(last.load(), Status::new(api, code));
            }
        }
    }
}
