//! NVRTC, found at run time.
