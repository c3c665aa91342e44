//! Builtin operations that were compiled ahead of time and are part of the program.
//!
//! The facade's build packs them ([`pack`]) and its registry makes them known ([`register`]);
//! a device uses those that [`Target::fit`] it, and only for the very source that they were
//! made from.

mod archive;
#[cfg(test)]
mod tests;

pub use archive::{PackedObject, pack};

use super::target::Target;
use archive::SourceKey;
use hal::poison::Unpoisoned as _;
use std::fmt;
use std::sync::RwLock;

/// Code for one target.
#[derive(Clone, Copy)]
pub struct EmbeddedTarget {
    name: &'static str,
    compiler: &'static str,
    archive: &'static [u8],
}

impl fmt::Debug for EmbeddedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernels, bytes) = (self.kernels(), self.bytes());
        write!(f, "EmbeddedTarget({}, {kernels} kernels, {bytes} bytes)", self.name)
    }
}

impl EmbeddedTarget {
    /// Code for the target of this name (see [`Target`]) by a compiler, as [`pack`] returned it.
    ///
    /// # Safety
    /// Each object of the archive is what the compiler made of the source that it is kept under: devices run it
    /// for that source, in operations that are safe.
    pub const unsafe fn new(
        name: &'static str,
        compiler: &'static str,
        archive: &'static [u8],
    ) -> EmbeddedTarget {
        EmbeddedTarget { name, compiler, archive }
    }

    /// What the code is for: `gfx90a:xnack-`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Name and version of the compiler.
    pub const fn compiler(&self) -> &'static str {
        self.compiler
    }

    /// The number of kernels.
    pub const fn kernels(&self) -> usize {
        archive::kernels(self.archive)
    }

    /// Bytes in the program.
    pub const fn bytes(&self) -> usize {
        self.archive.len()
    }

    /// The code with the kernels of a specification's source, unpacked, if there is any.
    pub fn code(&self, source: &str) -> Option<Vec<u8>> {
        archive::unpack(self.archive, archive::find(self.archive, SourceKey::of(source))?)
    }
}

/// Everything that was registered.
static REGISTERED: RwLock<Vec<EmbeddedTarget>> = RwLock::new(Vec::new());

/// Makes code known to every device of the process, for the operations that it has not run
/// yet. What is registered already counts once.
pub fn register(targets: &[EmbeddedTarget]) {
    let mut registered = REGISTERED.write().unpoisoned();
    for target in targets {
        let known = |it: &EmbeddedTarget| std::ptr::eq(it.archive, target.archive);
        if !registered.iter().any(known) {
            registered.push(*target);
        }
    }
}

/// The names of the targets that code was registered for.
pub(super) fn registered() -> Vec<&'static str> {
    let registered = REGISTERED.read().unpoisoned();
    registered.iter().map(EmbeddedTarget::name).collect()
}

/// An object among what was registered: its archive's address and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(usize, usize);

/// An object that has kernels of a source.
#[derive(Debug)]
pub struct EmbeddedObject {
    /// Which of the registered objects it is.
    pub id: ObjectId,
    /// What it is for.
    pub target: EmbeddedTarget,
}

impl EmbeddedObject {
    /// The object for a device that is best for it, of those with the kernels of a source.
    pub fn best(device: &str, source: &str) -> Option<EmbeddedObject> {
        let registered = REGISTERED.read().unpoisoned();
        if registered.is_empty() {
            return None;
        }
        let device: Target = device.parse().ok()?;
        let fitting = registered.iter().filter_map(|target| {
            let code: Target = target.name.parse().ok()?;
            Some((code.fit(&device)?, target))
        });
        let key = SourceKey::of(source);
        let found = fitting.filter_map(|(fit, target)| {
            let object = archive::find(target.archive, key)?;
            let id = ObjectId(target.archive.as_ptr() as usize, object);
            Some((fit, EmbeddedObject { id, target: *target }))
        });
        found.max_by_key(|(fit, _)| *fit).map(|(_, found)| found)
    }

    /// Its code; `None` if it is damaged.
    pub fn code(&self) -> Option<Vec<u8>> {
        archive::unpack(self.target.archive, self.id.1)
    }
}
