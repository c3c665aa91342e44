//! The specification of an operation's kernels, which is the key of a kernel cache.

use crate::source::ctype::Prelude;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::{Launch, Launches};
use crate::source::{elementwise, indexed, product, random, reduce, scan, sequence, sort};
use hal::error::Result;
use hal::operation::{Description, Formula, Operation};
use smallvec::SmallVec;
use std::ffi::c_void;

/// The properties of an operation that affect its compiled code: function, dtypes, scalar inputs,
/// the class of its layout and the width of its indices. Values are not included, and addresses and
/// extents only through the layout class that they allow.
///
/// Operations that need the same code share a specification: a copy between equal types is a copy
/// of words, and a fill converts its value before the launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSpec(Family);

/// The key of the kernels, by family.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Elementwise(elementwise::Key<elementwise::Single>),
    Fused(elementwise::Key<Formula>),
    Reduce(reduce::Key),
    Scan(scan::Key),
    Nonzero(indexed::NonzeroKey),
    Gather(indexed::GatherKey),
    Scatter(indexed::ScatterKey),
    Sequence(sequence::Key),
    Random(random::Key),
    Sort(sort::Key),
    Product(product::Key),
}

impl From<Family> for KernelSpec {
    fn from(family: Family) -> KernelSpec {
        KernelSpec(family)
    }
}

impl KernelSpec {
    /// Returns the names of the kernels in the source, which are unique to this specification.
    pub fn kernel_names(&self) -> SmallVec<[String; 3]> {
        let name = self.name();
        self.key().suffixes().iter().map(|suffix| format!("{name}{suffix}")).collect()
    }

    /// Returns the translation unit with the kernels: CUDA C without headers.
    pub fn source(&self) -> String {
        unit([self.clone()])
    }

    fn name(&self) -> String {
        format!("gpuarray_{}", self.key().name())
    }

    fn key(&self) -> &dyn KernelKey {
        match &self.0 {
            Family::Elementwise(key) => key,
            Family::Fused(key) => key,
            Family::Reduce(key) => key,
            Family::Scan(key) => key,
            Family::Nonzero(key) => key,
            Family::Gather(key) => key,
            Family::Scatter(key) => key,
            Family::Sequence(key) => key,
            Family::Random(key) => key,
            Family::Sort(key) => key,
            Family::Product(key) => key,
        }
    }
}

/// Returns one translation unit with the kernels of several different specifications.
pub fn unit(specs: impl IntoIterator<Item = KernelSpec>) -> String {
    let mut prelude = Prelude::NONE;
    let mut kernels = String::new();
    for spec in specs {
        prelude = prelude.with(spec.key().prelude());
        kernels.push('\n');
        kernels.push_str(&spec.key().kernels(&spec.name()));
    }
    prelude.enclose(&kernels)
}

// The dispatcher from an operation to its family's kernels and launches.

/// The launches that execute an operation, in order on one stream.
///
/// Planning does not allocate for an element-wise operation with up to four axes, or a reduction
/// from or to up to two axes, if indices fit in 32 bits. The plan of an operation without elements
/// has no launches.
#[derive(Clone, Debug)]
pub struct Plan {
    spec: KernelSpec,
    launches: Launches,
}

impl Plan {
    /// Returns the kernels and the launches of an operation.
    ///
    /// # Errors
    /// `Overflow` for extents whose product does not fit, `Unsupported` for an operation with more
    /// than 64 axes that cannot be merged.
    pub fn new(operation: &Operation) -> Result<Plan> {
        // The families fill this value in place, because returning it would copy it.
        let mut launches = Launches::default();
        let all = &mut launches;
        let family = match operation.description() {
            Description::Elementwise(it) => Family::Elementwise(elementwise::plan(it, all)?),
            Description::Fused(it) => Family::Fused(elementwise::plan_fused(it, all)?),
            Description::Reduce(it) => Family::Reduce(reduce::plan(it, all)?),
            Description::Scan(it) => Family::Scan(scan::plan(it, all)?),
            Description::Gather(it) => Family::Gather(indexed::plan_gather(it, all)?),
            Description::Scatter(it) => Family::Scatter(indexed::plan_scatter(it, all)?),
            Description::Sequence(it) => Family::Sequence(sequence::plan(it, all)),
            Description::Random(it) => Family::Random(random::plan(it, all)),
            Description::Sort(it) => Family::Sort(sort::plan(it, all)),
            Description::MatrixProduct(it) => Family::Product(product::plan(it, all)?),
            Description::Nonzero(it) => Family::Nonzero(indexed::plan_nonzero(it, all)),
        };
        Ok(Plan { spec: KernelSpec::from(family), launches })
    }

    /// Returns the specification of the kernels that the launches call.
    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// Returns the launches, in order.
    pub fn launches(&self) -> &[Launch] {
        self.launches.all()
    }

    /// Returns the size in bytes of the device memory that the launches share, 0 for most
    /// operations. It must be aligned to 16 bytes, and is only needed until the last launch has
    /// finished.
    pub fn workspace_bytes(&self) -> usize {
        self.launches.workspace_bytes()
    }

    /// Sets the address of the workspace in the arguments of the launches.
    pub fn set_workspace(&mut self, address: u64) {
        self.launches.set_workspace(address);
    }

    /// Returns pointers to the arguments of one of this plan's launches, in the form that
    /// `cuLaunchKernel` and `hipModuleLaunchKernel` take. They are valid until the plan is moved or
    /// changed. Kernels only read the arguments.
    pub fn arguments(&self, launch: &Launch) -> SmallVec<[*mut c_void; 14]> {
        self.launches.arguments(launch)
    }
}

impl KernelSpec {
    /// Returns the specification of the kernels that execute an operation.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn of(operation: &Operation) -> Result<KernelSpec> {
        Ok(Plan::new(operation)?.spec)
    }
}

// The interface of a family's kernels.
