//! What to launch for an operation: kernels, grids and packed arguments.

use super::kernel_spec::{self, Spec};
use crate::error::Result;
use crate::module::LaunchConfig;
use crate::operation::Operation;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::ffi::c_void;

/// One launch of a plan.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Which of [`Spec::kernel_names`].
    pub kernel: usize,
    /// Grid, block and shared memory.
    pub config: LaunchConfig,
    /// Which of the plan's offsets are those of its arguments.
    arguments: (u16, u16),
    /// The word that is the address of the workspace.
    workspace: Option<u16>,
}

/// The launches that execute an operation, in order on one stream.
///
/// Making one allocates nothing for an element-wise operation of up to four axes, or a
/// reduction from or to up to two, whose indices fit 32 bits. No launch at all is a plan for
/// nothing to do.
#[derive(Clone, Debug)]
pub struct Plan {
    spec: Spec,
    words: SmallVec<[u64; 24]>,
    /// Where each argument begins, in words.
    offsets: SmallVec<[u16; 24]>,
    launches: SmallVec<[Launch; 2]>,
    workspace_bytes: usize,
}

impl Plan {
    /// The plan of an operation.
    ///
    /// # Errors
    /// `InvalidArgument` or `InvalidType` for an operation that contradicts its own
    /// description, `Overflow` for extents whose product does not fit, `Unsupported` for one
    /// with more than 64 axes that cannot be merged.
    pub fn new(operation: &Operation) -> Result<Plan> {
        kernel_spec::plan(operation)
    }

    /// The kernels' specification.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// What to launch, in order.
    pub fn launches(&self) -> &[Launch] {
        &self.launches
    }

    /// Bytes of device memory, aligned to 16, that the launches share; their contents need not
    /// outlive the last one. 0 for most operations.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Enters the address of the workspace into the arguments.
    pub fn set_workspace(&mut self, address: u64) {
        for launch in &self.launches {
            if let Some(offset) = launch.workspace {
                self.words[usize::from(offset)] = address;
            }
        }
    }

    /// Pointers to the arguments of one of this plan's launches, as a driver takes them. They
    /// are valid while the plan is neither moved nor changed, and kernels only read them.
    pub fn arguments(&self, launch: &Launch) -> SmallVec<[*mut c_void; 14]> {
        let base = self.words.as_ptr();
        let (first, end) = launch.arguments;
        self.offsets[usize::from(first)..usize::from(end)]
            .iter()
            .map(|&offset| base.wrapping_add(usize::from(offset)).cast_mut().cast())
            .collect()
    }

    /// A plan without launches.
    pub(super) fn begin(spec: Spec) -> Plan {
        Plan {
            spec,
            words: SmallVec::new(),
            offsets: SmallVec::new(),
            launches: SmallVec::new(),
            workspace_bytes: 0,
        }
    }

    pub(super) fn need_workspace(&mut self, bytes: usize) {
        self.workspace_bytes = self.workspace_bytes.max(bytes);
    }

    /// Adds a launch of `blocks` blocks, whose arguments follow through the builder.
    pub(super) fn launch(&mut self, kernel: usize, blocks: u32) -> Builder<'_> {
        Builder { kernel, blocks, first: self.offsets.len() as u16, workspace: None, plan: self }
    }
}

/// Packs the arguments of a launch, each aligned to eight bytes, and adds it to the plan when
/// dropped.
pub(super) struct Builder<'a> {
    plan: &'a mut Plan,
    kernel: usize,
    blocks: u32,
    first: u16,
    workspace: Option<u16>,
}

impl Builder<'_> {
    /// At most `(2 + 64 * 4) + (2 + 64 * 3)` words and a few more for each of three launches:
    /// offsets fit 16 bits.
    fn begin(&mut self) {
        self.plan.offsets.push(self.plan.words.len() as u16);
    }

    /// An address.
    pub(super) fn address(&mut self, address: u64) -> &mut Self {
        self.begin();
        self.plan.words.push(address);
        self
    }

    /// The address of the workspace, not known yet.
    pub(super) fn workspace(&mut self) -> &mut Self {
        self.workspace = Some(self.plan.words.len() as u16);
        self.address(0)
    }

    /// An integer of 64 bits.
    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.address(value as u64)
    }

    /// An integer of the index type.
    pub(super) fn index(&mut self, value: u64, wide: bool) -> &mut Self {
        self.address(if wide { value } else { pair(value, 0) })
    }

    /// An integer of 32 bits.
    pub(super) fn word(&mut self, value: u32) -> &mut Self {
        self.address(pair(value.into(), 0))
    }

    /// One argument made of several integers of the index type.
    pub(super) fn indices(
        &mut self,
        values: impl IntoIterator<Item = u64>,
        wide: bool,
    ) -> &mut Self {
        self.begin();
        let words = &mut self.plan.words;
        if wide {
            words.extend(values);
            return self;
        }
        let mut values = values.into_iter();
        while let Some(low) = values.next() {
            words.push(pair(low, values.next().unwrap_or(0)));
        }
        self
    }

    /// A value as it is stored in memory.
    pub(super) fn scalar(&mut self, scalar: &Scalar) -> &mut Self {
        self.begin();
        for part in scalar.bytes().chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.plan.words.push(u64::from_ne_bytes(word));
        }
        self
    }
}

/// Two integers of 32 bits, one after the other in memory.
fn pair(low: u64, high: u64) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(low as u32).to_ne_bytes());
    bytes[4..].copy_from_slice(&(high as u32).to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        let config = LaunchConfig {
            grid: [self.blocks, 1, 1],
            block: [super::iteration_space::THREADS, 1, 1],
            shared_bytes: 0,
        };
        let arguments = (self.first, self.plan.offsets.len() as u16);
        let Builder { kernel, workspace, .. } = *self;
        self.plan.launches.push(Launch { kernel, config, arguments, workspace });
    }
}
