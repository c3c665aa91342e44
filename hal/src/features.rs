//! The optional features of a device.

use crate::enumeration::enumeration;
use std::fmt;

enumeration! {
/// A feature that only some devices support. If a device lacks it, the calls that need it return
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// A program that uses a graph if graphs are supported, and else queues each step:
///
/// ```
/// use gpuarray::Feature;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let steps = if device.features().contains(Feature::Graphs) { "a graph" } else { "single steps" };
/// assert_eq!(steps, "a graph");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// Kernels written in CUDA C: [`Device::load_module`](crate::Device::load_module).
    Kernels,
    /// Kernels are compiled by the system's C++ compiler; it needs the headers of the system and of C++. Kernels run on
    /// the processor's cores, and are fastest with many elements per thread.
    HostKernels,
    /// PTX text as the image of a module; the driver compiles the text.
    Ptx,
    /// Linking of code from several inputs: [`Device::link`](crate::Device::link).
    Linker,
    /// Attributes of kernels can be set: [`Kernel::set_attribute`](crate::Kernel::set_attribute).
    KernelAttributes,
    /// The driver reports the parameters of a kernel: [`Kernel::parameters`](crate::Kernel::parameters). Without this,
    /// they may be read from the code.
    ParameterInfo,
    /// Launches of kernels whose blocks may wait for each other:
    /// [`Kernel::launch_cooperative`](crate::Kernel::launch_cooperative).
    CooperativeLaunch,
    /// Work can be captured and launched repeatedly:
    /// [`Stream::begin_capture`](crate::stream::StreamCapture::begin_capture).
    Graphs,
    /// The driver's graphs can own objects of a program: memory used in another library's capture lives as long as its
    /// graphs.
    GraphObjects,
    /// Memory that host and device share: [`Managed`](crate::memory::Managed).
    ManagedMemory,
    /// Freed memory serves later work of its stream until it is trimmed.
    StreamOrderedReuse,
    /// The driver has pools of memory with a release threshold:
    /// [`Device::set_release_threshold`](crate::Device::set_release_threshold).
    DriverPool,
    /// Limits of the context can be read and set: [`Device::set_limit`](crate::Device::set_limit).
    Limits,
    /// Memory and events can be shared with other processes:
    /// [`Device::export_memory`](crate::Device::export_memory).
    Sharing,
    /// Streams of other libraries: [`Device::stream_from_handle`](crate::Device::stream_from_handle).
    ExternalStreams,
    /// Contexts of other libraries: a call restores the calling thread's context.
    ExternalContexts,
    /// [`Device::reset`](crate::Device::reset).
    Reset,
    /// Arrays, and texture objects over them and over memory:
    /// [`Device::create_texture`](crate::Device::create_texture).
    Textures,
    /// Surface objects over arrays: [`Device::create_surface`](crate::Device::create_surface).
    Surfaces,
}
}

/// A set of features: what [`Device::features`](crate::Device::features) returns.
///
/// The needed features that the host lacks:
///
/// ```
/// use gpuarray::{Feature, Features};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let needed: Features = [Feature::Kernels, Feature::Linker].into_iter().collect();
/// let missing: Vec<_> = needed.iter().filter(|it| !device.features().contains(*it)).collect();
/// assert_eq!(missing, [Feature::Linker]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features(u64);

impl Features {
    /// The empty set.
    pub const NONE: Features = Features(0);

    /// Returns true if the feature is in the set.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    /// Returns the set with this feature if `present`, else without it.
    #[must_use]
    pub const fn with(self, feature: Feature, present: bool) -> Features {
        let bit = 1 << feature as u32;
        Features(if present { self.0 | bit } else { self.0 & !bit })
    }

    /// Returns the features of the set, in the order of [`Feature::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.contains(*feature))
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<T: IntoIterator<Item = Feature>>(features: T) -> Features {
        features.into_iter().fold(Features::NONE, |all, feature| all.with(feature, true))
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Feature, Features};

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: Features = [Feature::Graphs, Feature::Reset].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Feature::Graphs, Feature::Reset]);
        assert!(!set.with(Feature::Reset, false).contains(Feature::Reset));
        assert_eq!(format!("{set:?}"), "{Graphs, Reset}");
        assert_eq!(
            Feature::ALL.into_iter().collect::<Features>().iter().count(),
            Feature::ALL.len()
        );
    }
}
