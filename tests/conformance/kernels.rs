//! Modules, kernels and textures: loaded, described and launched.

pub(crate) mod attributes;
pub(crate) mod launches;
pub(crate) mod modules;
pub(crate) mod nvcc;
pub(crate) mod textures;
