//! Python objects that Rust objects keep alive.
//!
//! Python's garbage collector finds a cycle only if every reference in it can be seen, and a
//! Rust object that several Python objects share cannot show it one. So the Python object over
//! such a Rust object borrows the reference: it shows it to the collector in `__traverse__`, and
//! hands it back when it goes.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// The reference, unless a [`Loan`] has it.
type Slot = Mutex<Option<Py<PyAny>>>;

/// A Python object that a Rust object keeps alive.
pub(crate) struct KeptObject(Arc<Slot>);

impl KeptObject {
    pub(crate) fn new(object: Py<PyAny>) -> KeptObject {
        KeptObject(Arc::new(Mutex::new(Some(object))))
    }

    /// The reference for the Python object that uses the Rust object; `None` if another has it.
    pub(crate) fn lend(&self) -> Option<Loan> {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        object.map(|object| Loan { object: Some(object), slot: self.0.clone() })
    }
}

/// The reference of a [`KeptObject`], which goes back when this is dropped.
///
/// A Python object drops it before the Rust object, whose owner is then let go when, and only
/// when, the Rust object allows it.
pub(crate) struct Loan {
    object: Option<Py<PyAny>>,
    slot: Arc<Slot>,
}

impl Loan {
    /// What the owner of foreign memory keeps, if it is a Python object and not lent out.
    pub(crate) fn of(owner: Option<&(dyn Any + Send + Sync)>) -> Option<Loan> {
        owner?.downcast_ref::<KeptObject>()?.lend()
    }

    /// The object.
    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.as_ref().map_or_else(|| py.None(), |object| object.clone_ref(py))
    }

    /// Shows the reference to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.object.take();
    }
}
