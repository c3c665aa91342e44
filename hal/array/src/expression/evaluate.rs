//! Computes expressions: as one formula, or as separate operations where the backend does not support
//! formulas.

use super::{Expression, Leaf, Node, Part, Pending, State};
use crate::Array;
use crate::elementwise::check_same_device;
use crate::layout::{Layout, Order};
use crate::promote::{Argument, check_same_kind};
use hal::ErrorKind;
use hal::dtype::Kind;
use hal::error::{Error, Result};
use hal::function::{Function, UnaryFunction};
use hal::iteration::simplify;
use hal::memory::{Access, AccessGuard, Use};
use hal::nonblocking;
use hal::operation::{
    Description, ElementMap, Formula, FormulaValues, Fused, Input, Operand, Operation, Shape, Step,
    Strides, Term,
};
use hal::poison::Unpoisoned as _;
use hal::recording::{self, Work};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The formula of some nodes, with its inputs.
pub(super) struct Build {
    shape: Shape,
    sources: SmallVec<[Leaf; 4]>,
    steps: SmallVec<[Step; 4]>,
    known: SmallVec<[(Arc<Node>, u8); 8]>,
}

impl Expression {
    /// Computes the elements, and returns them as an array. Further calls return the same array.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidHandle` if an array's memory was freed; a failure of the compiler. The expression is
    /// unchanged then.
    pub fn evaluate(&self) -> Result<Array> {
        if let Some(array) = self.0.done() {
            return Ok(array);
        }
        evaluate(std::slice::from_ref(&self.0))?;
        self.0.done().map_or_else(|| self.evaluate(), Ok)
    }

    /// Like [`Expression::evaluate`], but returns an array whose memory nothing else refers to.
    pub(crate) fn into_array(self) -> Result<Array> {
        let was_computed = self.0.is_done();
        let array = self.evaluate()?;
        if was_computed || Arc::strong_count(&self.0) > 1 { array.copy() } else { Ok(array) }
    }

    /// Computes the elements and stores them in an array, converted to its type.
    ///
    /// # Errors
    /// As for [`Array::set_binary`].
    pub fn evaluate_into(&self, target: &Array) -> Result<()> {
        check_same_kind(self.dtype(), target.dtype())?;
        self.assign_to(target)
    }

    /// Like [`Expression::evaluate_into`], but converts to any type, like [`Array::assign`].
    ///
    /// # Errors
    /// As for [`Array::assign`].
    pub fn assign_to(&self, target: &Array) -> Result<()> {
        let is_record = target.dtype().kind() == Kind::Opaque;
        let is_alike = target.shape() == self.0.layout.shape() && !is_record;
        if is_alike && !self.0.is_done() {
            check_same_device(target.device(), &self.0.device)?;
            target.check_writable()?;
            let mut build = Build::new(self.0.layout.shape());
            let Term::Step(mut last) = build.visit(&self.0)? else {
                // Another thread has computed the elements meanwhile.
                return target.assign(&self.evaluate()?);
            };
            if target.dtype() != self.dtype() {
                let function = Function::Unary(UnaryFunction::Copy);
                let (compute, arguments) = (target.dtype(), smallvec![Term::Step(last)]);
                build.steps.push(Step { function, compute, dtype: compute, arguments });
                last += 1;
            }
            // An input that partly overlaps the target would be read after it has been overwritten.
            let conflicts = |array: &Array| array.overlaps(target) && !array.is_same_view(target);
            if !build.arrays().any(conflicts)
                && build.store(&[last], std::slice::from_ref(target), false)?
            {
                return Ok(());
            }
        }
        target.assign(&self.evaluate()?)
    }
}

impl Node {
    pub(super) fn is_done(&self) -> bool {
        matches!(*self.state.lock().unpoisoned(), State::Done(_))
    }

    pub(super) fn done(&self) -> Option<Array> {
        match &*self.state.lock().unpoisoned() {
            State::Done(array) => Some(array.clone()),
            State::Pending(_) => None,
        }
    }

    /// Stores the value, unless another thread has computed it meanwhile. Returns the state that is no longer needed.
    fn finish(&self, array: Array) -> State {
        let mut state = self.state.lock().unpoisoned();
        let State::Pending(pending) = &*state else { return State::Done(array) };
        // Pending functions that take the value read this array from now on. Nothing else refers to the array yet.
        if self.is_argument.load(Ordering::Relaxed)
            && let Some(block) = pending.block.clone()
        {
            array.memory().read_later(&block.reader());
        }
        std::mem::replace(&mut *state, State::Done(array))
    }

    #[cold]
    fn name_line(&self, error: Error) -> Error {
        match self.line.load(Ordering::Relaxed) {
            0 => error,
            line => error.asked_at(&recording::line_text(line)),
        }
    }

    /// Returns true if the node can be computed in one formula with nodes of this shape, without repeating much work.
    pub(super) fn joins(&self, shape: &[usize]) -> bool {
        let is_smaller = self.layout.shape() != shape;
        let is_worth_storing = self.is_kept.load(Ordering::Acquire) || self.size.is_long;
        !(is_worth_storing && (is_smaller || self.was_used.load(Ordering::Relaxed)))
    }
}

/// Computes nodes of one shape and stores their values, in one operation. Together they fit into one formula.
pub(super) fn evaluate(nodes: &[Arc<Node>]) -> Result<()> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let mut build = Build::new(first.layout.shape());
    let (mut steps, mut arrays) = (SmallVec::<[u8; 4]>::new(), SmallVec::<[Array; 4]>::new());
    let mut stored: SmallVec<[&Arc<Node>; 4]> = SmallVec::new();
    for node in nodes {
        if let Term::Step(step) = build.visit(node)? {
            steps.push(step);
            stored.push(node);
        }
    }
    let Some(last) = stored.last() else { return Ok(()) };
    for node in &stored {
        let layout = node.layout.clone();
        let array = Array::with_new_memory(&node.device, &node.stream, layout, node.dtype);
        arrays.push(array.map_err(|error| node.name_line(error))?);
    }
    build.store(&steps, &arrays, true).map_err(|error| last.name_line(error))?;
    if !build.is_current() {
        return evaluate(nodes);
    }
    build.note_use();
    for (node, array) in stored.into_iter().zip(arrays) {
        // Dropped without the lock, because it may be the last reference to other arrays.
        let _before = node.finish(array);
    }
    Ok(())
}

impl Build {
    pub(super) fn new(shape: &[usize]) -> Build {
        Build {
            shape: Shape::from_slice(shape),
            sources: SmallVec::new(),
            steps: SmallVec::new(),
            known: SmallVec::new(),
        }
    }

    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> + Clone {
        self.sources.iter().filter_map(|source| match source {
            Input::Array(array) => Some(array),
            Input::Scalar(_) => None,
        })
    }

    /// Returns true if no step's value has been stored by another thread. If another thread has stored a value, memory
    /// that the steps read may have been written since. Once the steps are queued, they read it before later writes.
    pub(super) fn is_current(&self) -> bool {
        self.known.iter().all(|(node, _)| !node.is_done())
    }

    /// Notes that the values of all steps have been computed.
    pub(super) fn note_use(&self) {
        for (known, _) in &self.known {
            known.was_used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the formula with these outputs.
    fn formula(&self, outputs: &[u8]) -> Result<Formula> {
        let types = |source: &Leaf| match source {
            Input::Array(array) => Input::Array(array.dtype()),
            Input::Scalar(scalar) => Input::Scalar(scalar.dtype()),
        };
        let types: SmallVec<[Input<_, _>; 4]> = self.sources.iter().map(types).collect();
        Formula::new(&types, &self.steps, outputs)
    }

    /// Returns the values of a step in the order in which a dense layout stores them. Their own strides are empty.
    pub(super) fn values(
        &self,
        step: u8,
        map: ElementMap,
        layout: &Layout,
    ) -> Result<FormulaValues> {
        let formula = self.formula(&[step])?;
        let mut axes: SmallVec<[usize; 4]> =
            (0..self.shape.len()).filter(|&axis| self.shape[axis] != 1).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis]));
        let along = |strides: &[isize]| axes.iter().map(|&axis| strides[axis]).collect::<Strides>();
        let mut strides: SmallVec<[Strides; 5]> = smallvec![along(layout.strides())];
        for array in self.arrays() {
            strides.push(along(array.layout().broadcast_to(&self.shape)?.strides()));
        }
        let shape: Shape = axes.iter().map(|&axis| self.shape[axis]).collect();
        // The layout's own strides come first and are positive, so no axis changes its place or direction.
        let (shape, _) = simplify(&shape, &mut strides);
        let mut strides = strides.into_iter().skip(1);
        let input = |source: &Leaf| match source {
            Input::Scalar(scalar) => Input::Scalar(*scalar),
            Input::Array(array) => {
                Input::Array(array.operand(strides.next().unwrap_or_default(), 0))
            }
        };
        let inputs = self.sources.iter().map(input).collect();
        let dtype = self.steps[usize::from(step)].dtype;
        let values = Operand { address: 0, dtype, strides: Strides::new() };
        Ok(FormulaValues { formula, map, values, shape, inputs })
    }

    /// Adds the steps of a node. Returns its value: a step, or an input if it has been computed before.
    pub(super) fn visit(&mut self, node: &Arc<Node>) -> Result<Term> {
        if let Some((_, step)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, node)) {
            return Ok(Term::Step(*step));
        }
        let (mut arguments, mut others) = (SmallVec::new(), SmallVec::<[_; 2]>::new());
        let (function, compute) = match &*node.state.lock().unpoisoned() {
            State::Done(array) => return Ok(self.input(array)),
            State::Pending(Pending { function, compute, parts, .. }) => {
                for part in parts {
                    arguments.push(match part {
                        Part::Leaf(Input::Array(array)) => self.input(array),
                        Part::Leaf(Input::Scalar(scalar)) => {
                            self.sources.push(Input::Scalar(*scalar));
                            Term::Input(self.sources.len() as u8 - 1)
                        }
                        Part::Node(other) => {
                            others.push((arguments.len(), other.clone()));
                            Term::Step(0)
                        }
                    });
                }
                (*function, *compute)
            }
        };
        // Without the lock: the evaluation of a node may compute all nodes of the block.
        for (position, other) in others {
            arguments[position] = match other.joins(&self.shape) {
                true => self.visit(&other)?,
                false => self.input(&Expression(other).evaluate()?),
            };
        }
        let step = self.steps.len() as u8;
        self.steps.push(Step { function, compute, dtype: node.dtype, arguments });
        self.known.push((node.clone(), step));
        Ok(Term::Step(step))
    }

    /// Returns the input for an array, and adds it unless an input for the same elements exists.
    fn input(&mut self, array: &Array) -> Term {
        let is_same = |source: &Leaf| match source {
            Input::Array(known) => {
                known.dtype() == array.dtype()
                    && known.address() == array.address()
                    && known.layout() == array.layout()
                    && Arc::ptr_eq(known.memory(), array.memory())
            }
            Input::Scalar(_) => false,
        };
        let position = self.sources.iter().position(is_same).unwrap_or_else(|| {
            self.sources.push(Input::Array(array.clone()));
            self.sources.len() - 1
        });
        Term::Input(position as u8)
    }

    /// Queues the steps, and stores the values of some of them. `are_new` is true if nothing else refers to the arrays.
    /// Returns false if the arrays are not new and their values have to be computed separately: if the steps were not
    /// current, or cannot be one operation.
    fn store(&self, outputs: &[u8], arrays: &[Array], are_new: bool) -> Result<bool> {
        if arrays[0].size() == 0 {
            return Ok(true);
        }
        if let ([step], [array]) = (&self.steps[..], arrays) {
            let arguments: SmallVec<[Argument<'_>; 4]> =
                step.arguments.iter().map(|&term| self.argument(term, &[])).collect();
            array.apply_first_of(step.function, step.compute, &arguments, are_new)?;
            // If the array is also an input, the write to it has stored the step's value first.
            let is_read = || self.arrays().any(|input| input.is_same_view(array));
            return Ok(are_new || is_read() || self.is_current());
        }
        match self.queue(outputs, arrays, are_new) {
            // Without a compiler, or with too many axes for a kernel.
            Err(error) if is_refused(error.kind()) => {
                nonblocking::before_waiting()?;
                if are_new {
                    self.one_by_one(outputs, arrays)?;
                }
                Ok(are_new)
            }
            queued => queued,
        }
    }

    /// Queues the steps as one operation. Returns false, and queues nothing, if neither the arrays are new nor the
    /// steps current.
    fn queue(&self, outputs: &[u8], arrays: &[Array], are_new: bool) -> Result<bool> {
        let formula = self.formula(outputs)?;
        let all = || arrays.iter().chain(self.arrays());
        let is_flat =
            all().all(|array| array.shape() == &self.shape[..] && array.layout().is_c_contiguous());
        let (shape, operands): (Shape, SmallVec<[Operand; 4]>) = if is_flat {
            let flat = |array: &Array| array.operand(smallvec![array.dtype().size() as isize], 0);
            (smallvec![arrays[0].size()], all().map(flat).collect())
        } else {
            let mut strides: SmallVec<[Strides; 5]> = SmallVec::new();
            for array in all() {
                let layout = array.layout().broadcast_to(&self.shape)?;
                strides.push(Strides::from_slice(layout.strides()));
            }
            let (shape, moved) = simplify(&self.shape, &mut strides);
            let ways = strides.into_iter().zip(moved);
            let moved = |(array, (strides, moved)): (&Array, _)| array.operand(strides, moved);
            (shape, all().zip(ways).map(moved).collect())
        };
        let mut operands = operands.into_iter();
        let stored = operands.by_ref().take(arrays.len()).collect();
        let inputs = self.sources.iter().map(|source| match source {
            Input::Scalar(scalar) => Input::Scalar(*scalar),
            // There is an operand for each array.
            Input::Array(array) => {
                let operand = operands.next();
                Input::Array(operand.unwrap_or_else(|| array.operand(Strides::new(), 0)))
            }
        });
        let inputs = inputs.collect();
        let mut description = Description::Fused(Fused { formula, shape, inputs, outputs: stored });
        let operation = Operation::seal(&mut description)?;
        let stream = arrays[0].stream();
        let mut uses: SmallVec<[Use<'_>; 5]> = SmallVec::new();
        for array in arrays {
            if !are_new || array.memory().stream().id() != stream.id() {
                uses.push((array.memory(), Access::Write));
            }
        }
        for array in self.arrays() {
            if !uses.iter().any(|(memory, _)| Arc::ptr_eq(memory, array.memory())) {
                uses.push((array.memory(), Access::Read));
            }
        }
        stream.wait_for_room();
        let guard = AccessGuard::acquire(stream, &uses)?;
        if are_new {
            for array in arrays {
                guard.keep_new(stream, array.memory())?;
            }
        } else if !self.is_current() {
            return Ok(false);
        }
        // SAFETY: layouts are inside their memory, shapes agree after broadcasting, the outputs do not repeat elements,
        // and overlap an input only as the same view; the guard has ordered this work after all conflicting work.
        let execute = || unsafe { stream.execute(operation) };
        recording::queued(stream.as_ref(), || Work::operation(operation), execute)?;
        Ok(true)
    }

    /// Queues an operation for each step, with memory for intermediate values. The arrays are new.
    #[cold]
    fn one_by_one(&self, outputs: &[u8], arrays: &[Array]) -> Result<()> {
        let like = &arrays[0];
        let mut values: Vec<Option<Array>> = Vec::new();
        for (position, step) in self.steps.iter().enumerate() {
            let output = outputs.iter().position(|&output| usize::from(output) == position);
            let value = match output {
                Some(output) => arrays[output].clone(),
                None => {
                    let layout = Layout::contiguous(&self.shape, step.dtype.size(), Order::C)?;
                    let (device, stream) = (like.device(), like.stream());
                    Array::with_new_memory(device, stream, layout, step.dtype)?
                }
            };
            {
                let argument = |&term| self.argument(term, &values);
                let arguments: SmallVec<[Argument<'_>; 4]> =
                    step.arguments.iter().map(argument).collect();
                value.apply_first_of(step.function, step.compute, &arguments, true)?;
            }
            values.push(Some(value));
            for (earlier, value) in values.iter_mut().enumerate() {
                let term = Term::Step(earlier as u8);
                if !self.steps[position + 1..].iter().any(|step| step.arguments.contains(&term)) {
                    *value = None;
                }
            }
        }
        Ok(())
    }

    fn argument<'a>(&'a self, term: Term, values: &'a [Option<Array>]) -> Argument<'a> {
        match term {
            Term::Input(input) => match &self.sources[usize::from(input)] {
                Input::Array(array) => array.into(),
                Input::Scalar(scalar) => (*scalar).into(),
            },
            Term::Step(step) => match &values[usize::from(step)] {
                Some(array) => array.into(),
                // A value is kept until its last use.
                None => unreachable!("step {step} is used after its last use"),
            },
        }
    }
}

pub(super) fn is_refused(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unsupported | ErrorKind::BackendUnavailable)
}
