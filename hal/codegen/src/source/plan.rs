//! The dispatcher: from an operation to its family's kernels and launches.

use super::kernel_spec::{Family, KernelSpec};
use super::launches::{Launch, Launches};
use super::{elementwise, indexed, nonzero, product, random, reduce, scan, sequence, sort};
use hal::error::Result;
use hal::operation::{Description, Operation};
use smallvec::SmallVec;
use std::ffi::c_void;

/// The launches that execute an operation, in order on one stream.
///
/// Making one allocates nothing for an element-wise operation of up to four axes, or a
/// reduction from or to up to two, whose indices fit 32 bits. A plan for nothing to do has no
/// launch at all.
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
        // The families fill what lies here already: to return it would copy it.
        let mut launches = Launches::default();
        let all = &mut launches;
        let family = match operation.description() {
            Description::Elementwise(it) => Family::Elementwise(elementwise::plan(it, all)?),
            Description::Reduce(it) => Family::Reduce(reduce::plan(it, all)?),
            Description::Scan(it) => Family::Scan(scan::plan(it, all)?),
            Description::Gather(it) => Family::Gather(indexed::plan_gather(it, all)?),
            Description::Scatter(it) => Family::Scatter(indexed::plan_scatter(it, all)?),
            Description::Sequence(it) => Family::Sequence(sequence::plan(it, all)),
            Description::Random(it) => Family::Random(random::plan(it, all)),
            Description::Sort(it) => Family::Sort(sort::plan(it, all)),
            Description::MatrixProduct(it) => Family::Product(product::plan(it, all)?),
            Description::Nonzero(it) => Family::Nonzero(nonzero::plan(it, all)),
        };
        Ok(Plan { spec: KernelSpec::from(family), launches })
    }

    /// Returns the specification of the kernels that the launches call.
    pub fn spec(&self) -> KernelSpec {
        self.spec
    }

    /// Returns what to launch, in order.
    pub fn launches(&self) -> &[Launch] {
        self.launches.all()
    }

    /// Returns the size in bytes of the device memory that the launches share, 0 for most
    /// operations. It is aligned to 16 bytes; its contents need not outlive the last launch.
    pub fn workspace_bytes(&self) -> usize {
        self.launches.workspace_bytes()
    }

    /// Enters the address of the workspace into the arguments of the launches.
    pub fn set_workspace(&mut self, address: u64) {
        self.launches.set_workspace(address);
    }

    /// Returns pointers to the arguments of one of this plan's launches, as `cuLaunchKernel` and
    /// `hipModuleLaunchKernel` take them. They are valid while the plan is neither moved nor
    /// changed, and kernels only read them.
    pub fn arguments(&self, launch: &Launch) -> SmallVec<[*mut c_void; 14]> {
        self.launches.arguments(launch)
    }
}

impl KernelSpec {
    /// Returns the specification of the kernels that execute an operation.
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    pub fn of(operation: &Operation) -> Result<KernelSpec> {
        Ok(Plan::new(operation)?.spec())
    }
}
