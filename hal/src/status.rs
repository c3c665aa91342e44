//! Status values: the integers that GPU drivers return, success included.

use std::fmt;

/// The interface that a status code belongs to.
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

/// What a call returned: a transparent integer, open to codes nobody has named yet.
///
/// The numbers are those of `cudaError_t` and `hipError_t` where the two agree; the named
/// constants here are in that common part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// Whose number it is.
    pub api: Api,
    /// The number itself.
    pub code: i32,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $code:literal, $name:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $constant: i32 = $code;)*

            /// The name of a code that CUDA and HIP number alike, without either's prefix.
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
    /// The call did what was asked.
    SUCCESS = 0, "Success";
    /// An argument is out of its range.
    INVALID_VALUE = 1, "InvalidValue";
    /// Not enough memory.
    OUT_OF_MEMORY = 2, "OutOfMemory";
    /// The driver is not initialised.
    NOT_INITIALIZED = 3, "NotInitialized";
    /// The driver is shutting down.
    DEINITIALIZED = 4, "Deinitialized";
    /// There is no device.
    NO_DEVICE = 100, "NoDevice";
    /// The device number is out of range.
    INVALID_DEVICE = 101, "InvalidDevice";
    /// A kernel's code or source could not be used.
    INVALID_SOURCE = 300, "InvalidSource";
    /// The handle is not, or no longer, one of a live object.
    INVALID_HANDLE = 400, "InvalidHandle";
    /// A symbol was not found.
    NOT_FOUND = 500, "NotFound";
    /// Work is still under way: an answer, not a failure.
    NOT_READY = 600, "NotReady";
    /// A kernel touched memory that is not its own.
    ILLEGAL_ADDRESS = 700, "IllegalAddress";
    /// A launch asked for more than the device has.
    LAUNCH_OUT_OF_RESOURCES = 701, "LaunchOutOfResources";
    /// Host memory is registered already.
    HOST_MEMORY_ALREADY_REGISTERED = 712, "HostMemoryAlreadyRegistered";
    /// Host memory is not registered.
    HOST_MEMORY_NOT_REGISTERED = 713, "HostMemoryNotRegistered";
    /// A kernel failed while it ran.
    LAUNCH_FAILED = 719, "LaunchFailed";
    /// The operation is not permitted here.
    NOT_PERMITTED = 800, "NotPermitted";
    /// The backend or the device cannot do this.
    NOT_SUPPORTED = 801, "NotSupported";
    /// A failure without a number of its own.
    UNKNOWN = 999, "Unknown";
}

impl Status {
    /// A status of `api` with the number `code`.
    pub const fn new(api: Api, code: i32) -> Self {
        Status { api, code }
    }

    /// A status of the host backend or of this library's own checks.
    pub const fn host(code: i32) -> Self {
        Status::new(Api::Host, code)
    }

    /// True if the call did what was asked.
    pub const fn is_success(self) -> bool {
        self.code == Self::SUCCESS
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Compilers have numbers of their own.
        let common = !matches!(self.api, Api::Nvrtc | Api::Hiprtc) || self.is_success();
        match Status::common_name(self.code).filter(|_| common) {
            Some(name) => write!(f, "{name} ({})", self.code),
            None => write!(f, "status {} of {:?}", self.code, self.api),
        }
    }
}
