//! The specification of an operation's kernels, which is the key of a kernel cache.

use crate::source::launches::{Launch, Launches};
use crate::source::prelude::Prelude;
use crate::source::{elementwise, indexed, nonzero, product, random, reduce, scan, sequence, sort};
use hal::dtype::DType;
use hal::error::Result;
use hal::operation::{Description, Input, Operation};
use smallvec::SmallVec;
use std::ffi::c_void;

/// What of an operation changes its compiled code: function, dtypes, scalar inputs, the
/// class of its layout and the width of its indices; never values, nor addresses and extents
/// but for the class that they make possible.
///
/// Operations that differ only in how they are written share one: a copy between equal types
/// is a copy of words, a fill converts its value before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelSpec(Family);

/// The key of the kernels, by the family that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Elementwise(elementwise::Key),
    Reduce(reduce::Key),
    Scan(scan::Key),
    Nonzero(nonzero::Key),
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
    /// Returns the names of the kernels in the source, which no other specification has.
    pub fn kernel_names(&self) -> SmallVec<[String; 3]> {
        let name = self.name();
        self.key().suffixes().iter().map(|suffix| format!("{name}{suffix}")).collect()
    }

    /// Returns the translation unit with the kernels: CUDA C without any header.
    pub fn source(&self) -> String {
        unit([*self])
    }

    fn name(&self) -> String {
        format!("gpuarray_{}", self.key().name())
    }

    fn key(&self) -> &dyn KernelKey {
        match &self.0 {
            Family::Elementwise(key) => key,
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

/// Returns one translation unit with the kernels of several specifications, which must differ.
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

// What the kernels of a family are generated from.

/// The key of a family's kernels: everything that changes their code, and the code itself.
pub(super) trait KernelKey {
    /// Returns the name that the names of the kernels begin with. No other key of any family
    /// has it.
    fn name(&self) -> String;

    /// Returns what follows the name in the name of each kernel.
    fn suffixes(&self) -> &'static [&'static str] {
        &[""]
    }

    /// Returns the parts of the prelude that the kernels use.
    fn prelude(&self) -> Prelude;

    /// Returns the definitions of the kernels, whose names are `name` and a suffix each.
    fn kernels(&self, name: &str) -> String;
}

/// What a kernel takes as one of its inputs: the address of elements of a type, or a value of one.
pub(super) type InputType = Input<DType, DType>;

// The dispatcher: from an operation to its family's kernels and launches.

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
