//! What status numbers mean.

use super::Status;

/// What a kernel failed with, and what finds the reason.
macro_rules! of_kernel {
    ($what:literal) => {
        concat!($what, "; PYGPU_CHECK=1 with PYGPU_BACKEND=host names the faulty access")
    };
}

/// What a status number means for the program where the vendors agree; empty where the name
/// says it all.
pub fn meaning(code: i32) -> &'static str {
    match code {
        Status::INVALID_VALUE => "the driver refused an argument",
        Status::OUT_OF_MEMORY => "there is not enough memory",
        Status::NOT_INITIALIZED => "the driver is not initialised in this process",
        Status::DEINITIALIZED => "the driver is shutting down",
        Status::NO_DEVICE => "there is no device that the driver can use",
        Status::INVALID_DEVICE => "there is no device with this number",
        200 => "the bytes are no code that the driver can load",
        201 => "the context is gone or belongs to another device",
        209 => "the code has no version for this device's architecture",
        214 => "the device's memory failed beyond repair; the device must be reset",
        217 => "the device cannot access the other one's memory directly",
        218 => "the PTX text does not compile",
        222 => "the PTX text is for a newer driver: its compiler is newer than the driver",
        Status::INVALID_SOURCE => "the source of the kernel cannot be used",
        302 | 303 => "a library that the driver needs could not be loaded",
        Status::INVALID_HANDLE => "the object is gone, or belongs to another context",
        Status::NOT_FOUND => "there is no symbol with this name",
        Status::NOT_READY => "work is still under way",
        Status::ILLEGAL_ADDRESS => of_kernel!("a kernel touched memory that is not its own"),
        Status::LAUNCH_OUT_OF_RESOURCES => {
            "the launch needs more registers or shared memory than the device has"
        }
        702 => "a kernel ran longer than the device allows",
        703 => "the launch does not fit how the kernel was compiled",
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
        720 => "the blocks of a cooperative launch do not fit on the device at once",
        Status::NOT_PERMITTED => "the driver does not permit this here",
        Status::NOT_SUPPORTED => "the driver or the device cannot do this",
        900 => "the call is not allowed while the stream captures",
        901 => "the capture became invalid through an earlier call",
        902..=905 => "the capture cannot have this dependency",
        906 => "the default stream cannot be used while a stream that it waits for captures",
        907 => "the event was recorded in a capture",
        908 => "the capture was begun by another thread",
        _ => "",
    }
}
