//! The CUDA backend: the driver's functions, found at run time, as the table of
//! [`hal::driver`].

mod nvrtc;
