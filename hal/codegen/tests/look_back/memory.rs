//! A model of global memory: a read may return any write to the word, except writes older than the
//! block has already seen. Accesses to different words are only ordered by a released write and an
//! acquiring read.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// For each word, the oldest write that a block may still read.
pub(crate) type View = Vec<u8>;

/// The ordering of an access: an ordered write comes after the block's earlier accesses, and an
/// ordered read before its later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    Relaxed,
    Ordered,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Write {
    word: u32,
    /// The view of the writing block, if the write is ordered.
    released: Option<View>,
}

/// All writes to each word, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    writes: Vec<Vec<Write>>,
}

impl Memory {
    /// Returns memory with the contents that an earlier launch has left.
    pub(crate) fn new(words: impl IntoIterator<Item = u32>) -> Memory {
        let first = |word| vec![Write { word, released: None }];
        Memory { writes: words.into_iter().map(first).collect() }
    }

    /// Returns the view of a block that starts.
    pub(crate) fn view(&self) -> View {
        vec![0; self.writes.len()]
    }

    /// Returns the words after all blocks have ended.
    pub(crate) fn newest(&self) -> Vec<u32> {
        self.writes.iter().map(|all| all[all.len() - 1].word).collect()
    }

    /// Returns every value that a read may return, with the block's view after it.
    pub(crate) fn read(&self, view: &View, place: usize, order: Order) -> Vec<(u32, View)> {
        let all = self.writes[place].iter().enumerate().skip(view[place].into());
        all.map(|(index, write)| {
            let mut view = view.clone();
            view[place] = index as u8;
            if let (Order::Ordered, Some(released)) = (order, &write.released) {
                for (own, other) in view.iter_mut().zip(released) {
                    *own = (*own).max(*other);
                }
            }
            (write.word, view)
        })
        .collect()
    }

    pub(crate) fn write(&mut self, view: &mut View, place: usize, word: u32, order: Order) {
        view[place] = self.writes[place].len() as u8;
        let released = (order == Order::Ordered).then(|| view.clone());
        self.writes[place].push(Write { word, released });
    }

    /// Atomically increments the newest value of a word, and returns the previous value.
    pub(crate) fn count(&mut self, view: &mut View, place: usize) -> u32 {
        let word = self.newest()[place];
        self.write(view, place, word + 1, Order::Relaxed);
        word
    }
}

// Exploration of every interleaving of the blocks of a launch.

/// The program of the blocks of a launch.
pub(crate) trait Protocol {
    type Block: Clone + Debug + Eq + Hash;

    /// Returns true if a device may start the blocks in any order. If blocks do not know their
    /// numbers, all orders are equivalent.
    fn starts_in_any_order(&self) -> bool;

    fn start(&self, index: usize, memory: &Memory) -> Self::Block;

    fn has_ended(&self, block: &Self::Block) -> bool;

    /// Returns all possible outcomes of a block's next step, which accesses at most one word; an
    /// error if a result is wrong.
    fn step(
        &self,
        block: &Self::Block,
        memory: &Memory,
    ) -> Result<Vec<(Self::Block, Memory)>, String>;
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A state from which the launch can never end.
    Stuck,
    Wrong(String),
}

/// The number of states, and every final memory of the launch.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) ends: Vec<Memory>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<B> {
    memory: Memory,
    /// The state of each block; `None` if it has not started.
    blocks: Vec<Option<B>>,
}

/// Tries every interleaving of `blocks` blocks, of which `resident` run concurrently.
pub(crate) fn explore<P: Protocol>(
    protocol: &P,
    memory: Memory,
    blocks: usize,
    resident: usize,
) -> Result<Explored, Fault> {
    let first = State { memory, blocks: vec![None; blocks] };
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let mut states = vec![first];
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut ends = Vec::new();
    let mut number = 0;
    while number < states.len() {
        let state = states[number].clone();
        if state.blocks.iter().flatten().filter(|it| protocol.has_ended(it)).count() == blocks {
            ends.push(number);
        }
        for next in following(protocol, &state, resident)? {
            let known = *numbers.entry(next).or_insert_with_key(|next| {
                states.push(next.clone());
                before.push(Vec::new());
                states.len() - 1
            });
            before[known].push(number);
        }
        number += 1;
    }
    let mut can_end = vec![false; states.len()];
    let mut open = ends.clone();
    while let Some(number) = open.pop() {
        if !std::mem::replace(&mut can_end[number], true) {
            open.extend(&before[number]);
        }
    }
    if can_end.contains(&false) {
        return Err(Fault::Stuck);
    }
    let mut ends: Vec<Memory> = ends.into_iter().map(|it| states[it].memory.clone()).collect();
    ends.dedup();
    Ok(Explored { states: states.len(), ends })
}

/// Returns the states after one step of a block, or after a block's start.
fn following<P: Protocol>(
    protocol: &P,
    state: &State<P::Block>,
    resident: usize,
) -> Result<Vec<State<P::Block>>, Fault> {
    let mut all = Vec::new();
    let running = state.blocks.iter().flatten().filter(|it| !protocol.has_ended(it)).count();
    let waiting = (0..state.blocks.len()).filter(|index| state.blocks[*index].is_none());
    let most = if protocol.starts_in_any_order() { usize::MAX } else { 1 };
    if running < resident {
        for index in waiting.take(most) {
            let mut next = state.clone();
            next.blocks[index] = Some(protocol.start(index, &state.memory));
            all.push(next);
        }
    }
    for (index, block) in state.blocks.iter().enumerate() {
        let Some(block) = block.as_ref().filter(|it| !protocol.has_ended(it)) else { continue };
        for (block, memory) in protocol.step(block, &state.memory).map_err(Fault::Wrong)? {
            let mut next = State { memory, blocks: state.blocks.clone() };
            next.blocks[index] = Some(block);
            all.push(next);
        }
    }
    all.retain(|next| next != state);
    Ok(all)
}
