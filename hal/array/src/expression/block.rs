//! Parts of a program in which operations are computed together.

use super::evaluate::evaluate;
use super::{Expression, Node};
use hal::error::Result;
use hal::memory::{Deferred, DeviceMemory};
use hal::operation::Formula;
use hal::poison::Unpoisoned as _;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

/// The expressions of a part of a program. Those that the program still refers to are computed together when the
/// block ends, or earlier if memory that they read is about to be written, freed or lent.
///
/// ```
/// use gpuarray::{DeviceArray, Expression, FusedBlock, Number, function::BinaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut x = DeviceArray::from_slice(&device, &[1i32, 2])?;
/// let block = FusedBlock::new();
/// let array = x.untyped().clone();
/// let double =
///     Expression::binary(BinaryFunction::Add, (&array).into(), (&array).into())?;
/// double.keep(true);
/// assert!(block.add(&double));
/// x.fill(0)?;
/// assert_eq!(DeviceArray::<i32>::from_untyped(double.evaluate()?)?.to_vec()?, [2, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FusedBlock(Arc<Content>);

#[derive(Default)]
struct Content(Mutex<Pending>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} expressions", self.0.lock().unpoisoned().nodes.len())
    }
}

#[derive(Default)]
struct Pending {
    nodes: Vec<Weak<Node>>,
    /// The memory objects that tell this block before they are written. A weak reference keeps the address from
    /// being used again.
    watched: Vec<Weak<DeviceMemory>>,
}

impl FusedBlock {
    /// Returns an empty block.
    pub fn new() -> FusedBlock {
        FusedBlock::default()
    }

    /// Adds an expression. Returns false, and does not add it, if it has to be computed now: if other code may write
    /// memory that it reads without telling, or if it is a function of an expression of another block.
    pub fn add(&self, expression: &Expression) -> bool {
        let arrays = expression.arrays();
        let own = Arc::as_ptr(&self.0).addr();
        if !expression.0.enter_block(own) {
            return false;
        }
        if !arrays.iter().all(|array| array.memory().can_be_read_later()) {
            return false;
        }
        let mut pending = self.0.0.lock().unpoisoned();
        for array in &arrays {
            let memory = array.memory();
            let is_watched = |known: &Weak<_>| known.as_ptr() == Arc::as_ptr(memory);
            if !pending.watched.iter().any(is_watched) {
                pending.watched.push(Arc::downgrade(memory));
                let content: Weak<Content> = Arc::downgrade(&self.0);
                memory.read_later(content);
            }
        }
        pending.nodes.push(Arc::downgrade(&expression.0));
        true
    }

    /// Computes the expressions that the program still refers to.
    ///
    /// # Errors
    /// As for [`Expression::evaluate`]. The expressions that were not computed stay in the block.
    pub fn compute(&self) -> Result<()> {
        self.0.queue()
    }
}

impl Deferred for Content {
    fn queue(&self) -> Result<()> {
        let Pending { nodes, .. } = mem::take(&mut *self.0.lock().unpoisoned());
        let wanted =
            |node: &Arc<Node>| node.is_kept.load(Ordering::Acquire) && node.done().is_none();
        let live: Vec<Arc<Node>> = nodes.iter().filter_map(Weak::upgrade).filter(wanted).collect();
        let mut groups: Vec<Vec<Arc<Node>>> = Vec::new();
        for node in &live {
            match groups.last_mut() {
                Some(group) if joins(group, node) => group.push(node.clone()),
                _ => groups.push(vec![node.clone()]),
            }
        }
        for group in groups {
            if let Err(error) = evaluate(&group) {
                let rest = live.iter().filter(|node| node.done().is_none()).map(Arc::downgrade);
                self.0.lock().unpoisoned().nodes.extend(rest);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Returns true if the node and the group fit into one formula.
fn joins(group: &[Arc<Node>], node: &Arc<Node>) -> bool {
    let all = || group.iter().chain([node]);
    let is_alike = |other: &Arc<Node>| {
        other.layout.shape() == node.layout.shape() && other.stream.id() == node.stream.id()
    };
    group.len() < Formula::MOST_OUTPUTS
        && group.iter().all(is_alike)
        && all().map(|node| node.size.steps).sum::<usize>() <= Formula::MOST_STEPS
        && all().map(|node| node.size.inputs).sum::<usize>() <= Formula::MOST_INPUTS
}
