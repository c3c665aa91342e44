//! The reasons for which calls are refused while streams capture.

use hal::{Error, ErrorKind, Status};

/// The reason for a refusal, with the status number that CUDA and HIP share.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// The call waits for a capturing stream.
    Unsupported = 900,
    Invalidated = 901,
    /// One capture would depend on another one.
    Merge = 902,
    /// The stream takes part in a capture that began on another stream.
    Unmatched = 903,
    Unjoined = 904,
    /// Captured work would wait for work outside of the capture.
    Isolation = 905,
    /// The default stream would wait for a capturing stream.
    Implicit = 906,
    CapturedEvent = 907,
    WrongThread = 908,
}

impl Refusal {
    pub(crate) fn of(self, call: &'static str) -> Error {
        let detail = match self {
            Refusal::Unsupported => {
                "a stream captures, and captured work does not run: nothing can wait for it before \
                 the capture ends"
            }
            Refusal::Invalidated => "the capture became invalid through an earlier call",
            Refusal::Merge => {
                "the event was recorded in another capture, not in the capture of the stream"
            }
            Refusal::Unmatched => "the stream takes part in a capture that began on another stream",
            Refusal::Unjoined => {
                "a stream that took part in the capture was not joined: the stream that ends the \
                 capture must first wait for an event recorded after the other stream's work"
            }
            Refusal::Isolation => {
                "the stream captures, and captured work cannot wait for an event of other work"
            }
            Refusal::Implicit => {
                "the default stream cannot be used while a stream that it waits for captures; use a \
                 non-blocking stream for the capture"
            }
            Refusal::CapturedEvent => {
                "the event was recorded in a capture, and captured work does not run"
            }
            Refusal::WrongThread => "another thread began the capture, and not in relaxed mode",
        };
        let status = Status::host(self as i32);
        Error::new(ErrorKind::InvalidArgument, status, call, detail)
    }
}
