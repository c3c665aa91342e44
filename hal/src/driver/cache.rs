//! An on-disk cache of compiled code.
