//! Launches of generated kernels: configurations and packed arguments.

use hal::module::LaunchConfig;
use hal::scalar::Scalar;
use smallvec::SmallVec;
use std::ffi::c_void;

/// The number of threads per block.
pub(super) const THREADS: u32 = 256;

/// The maximum number of blocks per launch. Kernels loop, so this only limits the grid: HIP requires fewer than
/// 2^32 threads.
const MAX_BLOCKS: u64 = 1 << 20;

/// The number of tiles whose blocks form a team: `TEAM` in scan.cuh.
pub(super) const TEAM: u64 = 256;

/// The maximum number of blocks that share the tiles of an array: slightly more than a device runs concurrently.
/// Each block takes one tile after the other, so late blocks find none left.
pub(super) const TILE_BLOCKS: u64 = 1024;

/// Returns the number of blocks for `work` units of work: one each, up to [`MAX_BLOCKS`].
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
    /// The range of its arguments in the offsets of all launches.
    arguments: (u16, u16),
    /// The position of the word that holds the address of the workspace.
    workspace: Option<u16>,
}

/// Launches in the order of their execution on one stream, with their arguments and the size of their shared
/// workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Launches {
    words: SmallVec<[u64; 24]>,
    /// The start of each argument, in words.
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

    /// Sets the address of the workspace in the arguments.
    pub(super) fn set_workspace(&mut self, address: u64) {
        for launch in &self.launches {
            if let Some(offset) = launch.workspace {
                self.words[usize::from(offset)] = address;
            }
        }
    }

    /// Returns pointers to the arguments of one of these launches, valid until `self` is moved or changed.
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

    /// Adds a launch of `blocks` blocks; the builder adds its arguments.
    pub(super) fn launch(&mut self, kernel: usize, blocks: u32) -> LaunchBuilder<'_> {
        let first = self.offsets.len() as u16;
        LaunchBuilder { launches: self, kernel, blocks, first, workspace: None }
    }
}

/// Packs the arguments of a launch, each aligned to eight bytes, and adds the launch when dropped.
pub(super) struct LaunchBuilder<'a> {
    launches: &'a mut Launches,
    kernel: usize,
    blocks: u32,
    first: u16,
    workspace: Option<u16>,
}

impl LaunchBuilder<'_> {
    /// Begins an argument. Offsets fit in 16 bits: three launches have at most three times `(2 + 64 * 4) + (2 + 64
    /// * 3)` words and a few more, and sorts have ten launches of few words.
    fn begin(&mut self) {
        self.launches.offsets.push(self.launches.words.len() as u16);
    }

    /// Adds an address.
    pub(super) fn address(&mut self, address: u64) -> &mut Self {
        self.begin();
        self.launches.words.push(address);
        self
    }

    /// Adds the address of the workspace, which [`Launches::set_workspace`] sets later.
    pub(super) fn workspace(&mut self) -> &mut Self {
        self.workspace = Some(self.launches.words.len() as u16);
        self.address(0)
    }

    /// Adds a 64-bit integer.
    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.address(value as u64)
    }

    /// Adds a double-precision number.
    pub(super) fn double(&mut self, value: f64) -> &mut Self {
        self.address(value.to_bits())
    }

    /// Adds an integer of the index type: 64 bits if `wide`, else 32.
    pub(super) fn index(&mut self, value: u64, wide: bool) -> &mut Self {
        self.address(if wide { value } else { pair(value, 0) })
    }

    /// Adds a 32-bit integer.
    pub(super) fn word(&mut self, value: u32) -> &mut Self {
        self.address(pair(value.into(), 0))
    }

    /// Adds one argument that consists of several integers of the index type.
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

    /// Adds a value in its memory representation.
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

/// Returns two 32-bit integers in one word, in memory order.
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
