//! Python objects that Rust objects keep alive.
//!
//! Python's garbage collector finds a cycle only if every reference in it can be seen, and a
//! Rust object that several Python objects share cannot show it one. So each Python object over
//! such a Rust object has a reference of its own, which it shows in `__traverse__`, and one of them
//! shows that of the Rust object, too, while nobody else uses the Rust object. As long as a Python
//! object over it can be reached, so can what is kept.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A Python object that a Rust object keeps alive.
pub(crate) struct KeptObject {
    object: Py<PyAny>,
    loans: Arc<Loans>,
}

/// The Python objects over one Rust object.
#[derive(Default)]
struct Loans {
    /// How many there are.
    count: AtomicUsize,
    /// How many there have been.
    made: AtomicUsize,
    /// The number of the one that shows the Rust object's reference; 0: the next one that is asked.
    first: AtomicUsize,
}

impl KeptObject {
    pub(crate) fn new(object: Py<PyAny>) -> KeptObject {
        KeptObject { object, loans: Arc::default() }
    }

    /// A reference for a Python object that is made over the Rust object.
    pub(crate) fn lend(&self) -> Loan {
        let object = Python::attach(|py| self.object.clone_ref(py));
        self.loans.count.fetch_add(1, Ordering::Relaxed);
        let number = self.loans.made.fetch_add(1, Ordering::Relaxed) + 1;
        Loan { object, number, loans: self.loans.clone() }
    }
}

/// What a Python object over a Rust object has of the [`KeptObject`]. It is dropped before the Rust
/// object, which keeps its own reference as long as it needs that.
pub(crate) struct Loan {
    object: Py<PyAny>,
    number: usize,
    loans: Arc<Loans>,
}

impl Loan {
    /// A loan of what the owner of foreign memory or of a stream keeps, if it is a Python object.
    pub(crate) fn of(owner: Option<&(dyn Any + Send + Sync)>) -> Option<Loan> {
        Some(owner?.downcast_ref::<KeptObject>()?.lend())
    }

    /// The object.
    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    /// Shows the references to the garbage collector. `uses` is how many references there are to the
    /// Rust object, of which each Python object over it has one.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>, uses: usize) -> Result<(), PyTraverseError> {
        visit.call(&self.object)?;
        // With somebody else's use, the Rust object outlives all these Python objects.
        if uses == self.loans.count.load(Ordering::Relaxed) && self.is_first() {
            visit.call(&self.object)?;
        }
        Ok(())
    }

    fn is_first(&self) -> bool {
        let first = &self.loans.first;
        match first.compare_exchange(0, self.number, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(number) => number == self.number,
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.loans.count.fetch_sub(1, Ordering::Relaxed);
        let first = &self.loans.first;
        let _ = first.compare_exchange(self.number, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}
