//! Loading, describing and launching modules, kernels and textures.

pub(crate) mod attributes;
pub(crate) mod launches;
pub(crate) mod modules;
pub(crate) mod nvcc;
pub(crate) mod textures;
