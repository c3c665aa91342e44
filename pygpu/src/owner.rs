//! Python objects that Rust objects keep alive.
//!
//! Python's garbage collector finds a cycle only if it sees every reference in it. A Rust object that several
//! Python objects share cannot show its reference to the collector. So each of these Python objects holds its
//! own reference to the owner, and shows it in `__traverse__`. One of them also shows the reference of the
//! Rust object, while nothing else uses the Rust object. As long as one of the Python objects is reachable,
//! so is the owner.

use gpuarray::memory::GraphObject;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A Python object that a Rust object keeps alive: the owner of its memory or stream.
pub(crate) struct OwnerObject {
    object: Py<PyAny>,
    counts: Arc<Counts>,
}

/// Counts of the Python objects over one Rust object.
#[derive(Default)]
struct Counts {
    /// The number of them that are alive.
    alive: AtomicUsize,
    /// The number of them that were ever made.
    made: AtomicUsize,
    /// The number of the object that shows the Rust object's reference; 0 means the next one that the
    /// collector visits.
    shows_shared: AtomicUsize,
}

/// A flag that classes with program-defined attributes check first in `__traverse__`. CPython 3.11 and 3.12
/// create the dictionary of attributes while the object's memory is still full of zeros. This can start the
/// garbage collector, which then already visits the object.
pub(crate) struct Filled(AtomicBool);

impl Filled {
    /// Returns the flag of an object that has been initialised.
    pub(crate) fn new() -> Filled {
        Filled(AtomicBool::new(true))
    }

    /// Returns false while the object's memory is full of zeros.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl OwnerObject {
    pub(crate) fn new(object: Py<PyAny>) -> OwnerObject {
        OwnerObject { object, counts: Arc::default() }
    }

    /// Returns a reference for one more Python object over the Rust object.
    pub(crate) fn reference(&self) -> OwnerReference {
        let object = Python::attach(|py| self.object.clone_ref(py));
        self.counts.alive.fetch_add(1, Ordering::Relaxed);
        let number = self.counts.made.fetch_add(1, Ordering::Relaxed) + 1;
        OwnerReference { object, number, counts: self.counts.clone() }
    }
}

/// The reference of one Python object to the owner. It is dropped before the Rust object, which keeps its own
/// reference as long as necessary.
pub(crate) struct OwnerReference {
    object: Py<PyAny>,
    number: usize,
    counts: Arc<Counts>,
}

impl OwnerReference {
    /// Returns a reference to the owner of memory or of a stream, if that is a Python object.
    pub(crate) fn of(owner: Option<&(dyn Any + Send + Sync)>) -> Option<OwnerReference> {
        Some(owner?.downcast_ref::<OwnerObject>()?.reference())
    }

    /// Returns the owner.
    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    /// Shows the references to the garbage collector. `uses` is the number of references to the Rust
    /// object; each Python object over it holds one of them.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>, uses: usize) -> Result<(), PyTraverseError> {
        visit.call(&self.object)?;
        // If something else uses the Rust object, it outlives all these Python objects.
        if uses == self.counts.alive.load(Ordering::Relaxed) && self.shows_shared() {
            visit.call(&self.object)?;
        }
        Ok(())
    }

    fn shows_shared(&self) -> bool {
        let shown_by = &self.counts.shows_shared;
        match shown_by.compare_exchange(0, self.number, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(number) => number == self.number,
        }
    }
}

impl Drop for OwnerReference {
    fn drop(&mut self) {
        self.counts.alive.fetch_sub(1, Ordering::Relaxed);
        let shown_by = &self.counts.shows_shared;
        let _ = shown_by.compare_exchange(self.number, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns the object through which the graph of a captured copy keeps Python's objects; `None` for a copy that
/// is waited for, which cannot be captured.
pub(crate) fn kept<const N: usize>(
    objects: [&Bound<'_, PyAny>; N],
    wait: bool,
) -> Option<GraphObject> {
    (!wait).then(|| Arc::new(objects.map(|object| object.clone().unbind())) as GraphObject)
}
