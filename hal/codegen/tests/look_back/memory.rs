//! Global memory as blocks see it: a read returns any write to the word that is no older than what
//! its block has seen of that word. Nothing orders different words, but what a write releases and a
//! read acquires.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// For each word, the oldest write that a block may still read.
pub(crate) type View = Vec<u8>;

/// Whether an access orders those of other words: a write those before it, a read those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    Relaxed,
    Ordered,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Write {
    word: u32,
    /// What its block had seen, if the write is ordered.
    released: Option<View>,
}

/// All writes to each word, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    writes: Vec<Vec<Write>>,
}

impl Memory {
    /// Memory that an earlier launch has left.
    pub(crate) fn new(words: impl IntoIterator<Item = u32>) -> Memory {
        let first = |word| vec![Write { word, released: None }];
        Memory { writes: words.into_iter().map(first).collect() }
    }

    /// The view of a block that starts.
    pub(crate) fn view(&self) -> View {
        vec![0; self.writes.len()]
    }

    /// The words, once all blocks have ended.
    pub(crate) fn newest(&self) -> Vec<u32> {
        self.writes.iter().map(|all| all[all.len() - 1].word).collect()
    }

    /// Everything that a read may return, and what its block has seen after it.
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

    /// Adds one to a word, the newest, and returns what it was.
    pub(crate) fn count(&mut self, view: &mut View, place: usize) -> u32 {
        let word = self.newest()[place];
        self.write(view, place, word + 1, Order::Relaxed);
        word
    }
}

// Every interleaving of the blocks of a launch.

/// What the blocks of a launch do.
pub(crate) trait Protocol {
    type Block: Clone + Debug + Eq + Hash;

    /// Whether a device may start the blocks in any order. If they do not know their numbers, one
    /// order is as good as another.
    fn starts_in_any_order(&self) -> bool;

    fn start(&self, index: usize, memory: &Memory) -> Self::Block;

    fn has_ended(&self, block: &Self::Block) -> bool;

    /// What the next step of a block can lead to, which accesses one word at most; an error if it is
    /// a wrong result.
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

/// How many states there are, and the memory in which a launch can end.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) ends: Vec<Memory>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<B> {
    memory: Memory,
    /// None for a block that has not started.
    blocks: Vec<Option<B>>,
}

/// Tries every interleaving of so many blocks, of which `resident` run at once.
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

/// The states after one step of a block, or the start of one.
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
