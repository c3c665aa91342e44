//! Backends, devices and contexts: their properties, and the calls that they refuse.

pub(crate) mod contexts;
pub(crate) mod devices;
pub(crate) mod errors;
pub(crate) mod hostile_programs;
pub(crate) mod isolated;
pub(crate) mod other_devices;
