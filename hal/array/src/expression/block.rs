//! Parts of a program in which operations are computed together.

use super::evaluate::evaluate;
use super::{Expression, Node};
use hal::error::Result;
use hal::memory::{Deferred, DeviceMemory};
use hal::operation::Formula;
use hal::poison::Unpoisoned as _;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

/// The expressions of a part of a program. Values that the program still refers to are computed together when the
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
pub(super) struct Content(Mutex<Vec<Weak<Node>>>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} expressions", self.0.lock().unpoisoned().len())
    }
}

impl FusedBlock {
    /// Returns an empty block.
    pub fn new() -> FusedBlock {
        FusedBlock::default()
    }

    /// Adds an expression. Returns false if it has to be computed now: if other code may write, without notice, memory
    /// that the expression reads; if another thread is using that memory; or if the expression is a function of
    /// another one that is not in the block.
    pub fn add(&self, expression: &Expression) -> bool {
        if !expression.0.enter_block(&self.0) {
            return false;
        }
        let mut nodes = self.0.0.lock().unpoisoned();
        if nodes.len() == nodes.capacity() {
            nodes.retain(|known| known.strong_count() > 0);
            let live = nodes.len();
            nodes.reserve(live.max(16));
        }
        nodes.push(Arc::downgrade(&expression.0));
        drop(nodes);
        // The node is in the list before a writer of its arrays looks for it there.
        let reader = self.0.reader();
        let mut is_later = true;
        expression.0.for_each_array(|array| is_later &= array.memory().read_later(&reader));
        is_later
    }

    /// Computes the expressions that the program still refers to.
    ///
    /// # Errors
    /// As for [`Expression::evaluate`]. The expressions that were not computed stay in the block.
    pub fn compute(&self) -> Result<()> {
        self.0.compute()
    }
}

impl Deferred for Content {
    fn queue(&self, memory: &DeviceMemory) -> Result<()> {
        let Err(error) = self.compute() else { return Ok(()) };
        let nodes = self.0.lock().unpoisoned().clone();
        let mut is_read = false;
        for node in nodes.iter().filter_map(Weak::upgrade) {
            node.for_each_array(|array| is_read |= array.memory().is_with(memory));
        }
        if is_read { Err(error) } else { Ok(()) }
    }

    fn is_pending(&self) -> bool {
        !self.0.lock().unpoisoned().is_empty()
    }
}

impl Content {
    /// Returns the object to register with the memory that a node reads.
    pub(super) fn reader(self: &Arc<Self>) -> Weak<dyn Deferred> {
        Arc::downgrade(self) as Weak<dyn Deferred>
    }

    fn compute(&self) -> Result<()> {
        // The nodes stay in the block until they are computed. A thread that finds them here computes them as well.
        // The first result is kept; it has been queued before either thread goes on.
        let nodes = self.0.lock().unpoisoned().clone();
        let wanted = |node: &Arc<Node>| node.is_kept.load(Ordering::Acquire) && !node.is_done();
        let live: SmallVec<[Arc<Node>; 4]> =
            nodes.iter().filter_map(Weak::upgrade).filter(wanted).collect();
        let mut result = Ok(());
        let mut rest = &live[..];
        while !rest.is_empty() {
            let joining = (1..rest.len()).take_while(|&count| joins(&rest[..count], &rest[count]));
            let (group, others) = rest.split_at(1 + joining.count());
            rest = others;
            let computed = match evaluate(group) {
                Err(_) if group.len() > 1 => {
                    let each = group.iter().map(|node| evaluate(std::slice::from_ref(node)));
                    each.fold(Ok(()), Result::and)
                }
                computed => computed,
            };
            result = result.and(computed);
        }
        let is_over = |node: &&Weak<Node>| node.upgrade().is_none_or(|it| it.is_done());
        let over = nodes.iter().filter(is_over).map(Weak::as_ptr);
        let mut over: SmallVec<[*const Node; 16]> = over.collect();
        over.sort_unstable();
        self.0.lock().unpoisoned().retain(|node| over.binary_search(&node.as_ptr()).is_err());
        result
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
