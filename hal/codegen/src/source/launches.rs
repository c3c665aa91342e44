//! Launches of generated kernels: configurations and packed arguments.

use hal::module::LaunchConfig;
use hal::scalar::Scalar;
use smallvec::SmallVec;
use std::ffi::c_void;

/// Threads of every block.
pub(super) const THREADS: u32 = 256;

/// The most blocks of a launch. Kernels loop, so that this bounds only the grid: threads
/// must number less than 2^32 on HIP.
const MAX_BLOCKS: u64 = 1 << 20;

/// Tiles whose blocks are a team: `TEAM` in scan.cuh.
pub(super) const TEAM: u64 = 256;

/// The most blocks that share the tiles of an array: a few more than a device runs at once, for each takes one tile
/// after the other, and those that come late find none.
pub(super) const TILE_BLOCKS: u64 = 1024;

/// Returns the number of blocks for `work` pieces of work: one each, up to [`MAX_BLOCKS`].
pub(super) fn blocks(work: u64) -> u32 {
    work.clamp(1, MAX_BLOCKS) as u32
}

/// One launch of a [`Plan`](super::Plan).
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel, as an index into [`KernelSpec::kernel_names`](super::KernelSpec::kernel_names).
    pub kernel: usize,
    /// Grid, block and shared memory.
    pub config: LaunchConfig,
    /// The range of its arguments' offsets among those of all launches.
    arguments: (u16, u16),
    /// The word that is the address of the workspace.
    workspace: Option<u16>,
}

/// Launches in the order of their execution on one stream, with their arguments and the size of
/// the workspace that they share.
#[derive(Clone, Debug, Default)]
pub(super) struct Launches {
    words: SmallVec<[u64; 24]>,
    /// Where each argument begins, in words.
    offsets: SmallVec<[u16; 24]>,
    launches: SmallVec<[Launch; 2]>,
    workspace_bytes: usize,
}

impl Launches {
    /// Returns the launches, in order.
    pub(super) fn all(&self) -> &[Launch] {
        &self.launches
    }

    /// Returns the size of the workspace in bytes.
    pub(super) fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Enters the address of the workspace into the arguments.
    pub(super) fn set_workspace(&mut self, address: u64) {
        for launch in &self.launches {
            if let Some(offset) = launch.workspace {
                self.words[usize::from(offset)] = address;
            }
        }
    }

    /// Returns pointers to the arguments of one of these launches, valid while `self` is neither
    /// moved nor changed.
    pub(super) fn arguments(&self, launch: &Launch) -> SmallVec<[*mut c_void; 14]> {
        let base = self.words.as_ptr();
        let (first, end) = launch.arguments;
        self.offsets[usize::from(first)..usize::from(end)]
            .iter()
            .map(|&offset| base.wrapping_add(usize::from(offset)).cast_mut().cast())
            .collect()
    }

    /// Enlarges the workspace to `bytes` bytes if it is smaller.
    pub(super) fn need_workspace(&mut self, bytes: usize) {
        self.workspace_bytes = self.workspace_bytes.max(bytes);
    }

    /// Adds a launch of `blocks` blocks, whose arguments follow through the builder.
    pub(super) fn launch(&mut self, kernel: usize, blocks: u32) -> LaunchBuilder<'_> {
        let first = self.offsets.len() as u16;
        LaunchBuilder { launches: self, kernel, blocks, first, workspace: None }
    }
}

/// Packs the arguments of a launch, each aligned to eight bytes, and adds it to the launches
/// when dropped.
pub(super) struct LaunchBuilder<'a> {
    launches: &'a mut Launches,
    kernel: usize,
    blocks: u32,
    first: u16,
    workspace: Option<u16>,
}

impl LaunchBuilder<'_> {
    /// Begins an argument. Three launches have at most three times `(2 + 64 * 4) + (2 + 64 * 3)`
    /// words and a few more; sorts have ten launches of few words: offsets fit 16 bits.
    fn begin(&mut self) {
        self.launches.offsets.push(self.launches.words.len() as u16);
    }

    /// Adds an address.
    pub(super) fn address(&mut self, address: u64) -> &mut Self {
        self.begin();
        self.launches.words.push(address);
        self
    }

    /// Adds the address of the workspace, which [`Launches::set_workspace`] enters.
    pub(super) fn workspace(&mut self) -> &mut Self {
        self.workspace = Some(self.launches.words.len() as u16);
        self.address(0)
    }

    /// Adds an integer of 64 bits.
    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.address(value as u64)
    }

    /// Adds a number of type double.
    pub(super) fn double(&mut self, value: f64) -> &mut Self {
        self.address(value.to_bits())
    }

    /// Adds an integer of the index type: 64 bits if `wide`, else 32.
    pub(super) fn index(&mut self, value: u64, wide: bool) -> &mut Self {
        self.address(if wide { value } else { pair(value, 0) })
    }

    /// Adds an integer of 32 bits.
    pub(super) fn word(&mut self, value: u32) -> &mut Self {
        self.address(pair(value.into(), 0))
    }

    /// Adds one argument made of several integers of the index type.
    pub(super) fn indices(
        &mut self,
        values: impl IntoIterator<Item = u64>,
        wide: bool,
    ) -> &mut Self {
        self.begin();
        let words = &mut self.launches.words;
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

    /// Adds a value as it is stored in memory.
    pub(super) fn scalar(&mut self, scalar: &Scalar) -> &mut Self {
        self.begin();
        for part in scalar.bytes().chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.launches.words.push(u64::from_ne_bytes(word));
        }
        self
    }
}

/// Returns two integers of 32 bits as they follow one another in memory.
fn pair(low: u64, high: u64) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(low as u32).to_ne_bytes());
    bytes[4..].copy_from_slice(&(high as u32).to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

impl Drop for LaunchBuilder<'_> {
    fn drop(&mut self) {
        let config = LaunchConfig::new([self.blocks, 1, 1], [THREADS, 1, 1]);
        let arguments = (self.first, self.launches.offsets.len() as u16);
        let LaunchBuilder { kernel, workspace, .. } = *self;
        self.launches.launches.push(Launch { kernel, config, arguments, workspace });
    }
}
