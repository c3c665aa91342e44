//! A pass of the radix sort (`radix_pass`): for each digit, a tile publishes how many of its
//! elements have it, and then the count for all tiles up to this one. A single digit is modelled,
//! because digits are independent.

use crate::memory::{Explored, Fault, Memory, Order, Protocol, View, explore};

const TICKET: usize = 0;

/// Marks of a word: a count of one tile alone, or including all tiles before it.
const ALONE: u32 = 1 << 8;
const COMPLETE: u32 = 2 << 8;
const COUNT: u32 = ALONE - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// Blocks use their own numbers as tile numbers.
    TileByIndex,
    /// The mark is a separate word.
    MarkApart(Order),
    /// A tile marks its own count as complete.
    CompleteTooEarly,
    /// The state of the next pass is not cleared.
    NextStateKept,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    tiles: usize,
    planted: Planted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Take,
    PublishAlone,
    LookBack,
    PublishComplete,
    ClearNext,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    index: usize,
    view: View,
    tile: usize,
    step: Step,
    /// The block next reads the tile before this one.
    behind: usize,
    before: u32,
    /// The mark that was read or written, if it is a separate word.
    mark: Option<u32>,
}

/// The count of a single tile, a distinct bit, so that a sum shows which tiles it includes, and
/// that it includes each once.
fn count(tile: usize) -> u32 {
    1 << tile
}

impl Pass {
    fn words(self) -> usize {
        if matches!(self.planted, Planted::MarkApart(_)) { 2 } else { 1 }
    }

    fn state(self, tile: usize) -> usize {
        1 + tile * self.words()
    }

    fn next_state(self, tile: usize) -> usize {
        1 + self.tiles * self.words() + tile
    }

    /// Returns memory with the cleared state, and the state of the previous pass.
    fn memory(self) -> Memory {
        let cleared = 1 + self.tiles * self.words();
        Memory::new((0..cleared + self.tiles).map(|at| if at < cleared { 0 } else { COMPLETE | 7 }))
    }

    fn explore(self, resident: usize) -> Result<Explored, Fault> {
        explore(&self, self.memory(), self.tiles, resident)
    }

    /// Publishes a count and its mark, and continues with `then`.
    fn publish(self, block: &mut Block, memory: &mut Memory, word: u32, then: Step) {
        let place = self.state(block.tile);
        match (self.planted, block.mark) {
            (Planted::MarkApart(_), None) => {
                memory.write(&mut block.view, place, word & COUNT, Order::Relaxed);
                block.mark = Some(word & !COUNT);
                return;
            }
            (Planted::MarkApart(order), Some(mark)) => {
                memory.write(&mut block.view, place + 1, mark, order);
            }
            _ => memory.write(&mut block.view, place, word, Order::Relaxed),
        }
        block.mark = None;
        block.step = then;
    }

    /// Reads the word of the previous tile, or its mark and then its count.
    fn look_back(self, block: &Block, memory: &Memory) -> Vec<Block> {
        let place = self.state(block.behind - 1);
        let (place, order) = match (self.planted, block.mark) {
            (Planted::MarkApart(order), None) => (place + 1, order),
            _ => (place, Order::Relaxed),
        };
        let reads = memory.read(&block.view, place, order).into_iter();
        reads
            .map(|(word, view)| {
                let mut next = Block { view, ..block.clone() };
                if matches!(self.planted, Planted::MarkApart(_)) && block.mark.is_none() {
                    next.mark = (word != 0).then_some(word);
                    return next;
                }
                let word = word | block.mark.unwrap_or(0);
                next.mark = None;
                if word >= ALONE {
                    next.before += word & COUNT;
                    next.behind -= 1;
                    if word >= COMPLETE {
                        next.step = Step::PublishComplete;
                    }
                }
                next
            })
            .collect()
    }
}

impl Protocol for Pass {
    type Block = Block;

    fn starts_in_any_order(&self) -> bool {
        self.planted == Planted::TileByIndex
    }

    fn start(&self, index: usize, memory: &Memory) -> Block {
        let (view, step) = (memory.view(), Step::Take);
        Block { index, view, tile: 0, step, behind: 0, before: 0, mark: None }
    }

    fn has_ended(&self, block: &Block) -> bool {
        block.step == Step::Ended
    }

    fn step(&self, block: &Block, memory: &Memory) -> Result<Vec<(Block, Memory)>, String> {
        let (mut next, mut changed) = (block.clone(), memory.clone());
        match block.step {
            Step::Take => {
                let ticket = changed.count(&mut next.view, TICKET) as usize;
                next.tile = if self.planted == Planted::TileByIndex { block.index } else { ticket };
                next.behind = next.tile;
                next.step = match next.tile {
                    0 => Step::PublishComplete,
                    tile if tile < self.tiles => Step::PublishAlone,
                    _ => Step::Ended,
                };
            }
            Step::PublishAlone => {
                let is_early = self.planted == Planted::CompleteTooEarly;
                let mark = if is_early { COMPLETE } else { ALONE };
                self.publish(&mut next, &mut changed, mark | count(block.tile), Step::LookBack);
            }
            // The first tile is complete, so a search must not continue past it.
            Step::LookBack if block.behind == 0 => return Err("no tile is complete".into()),
            Step::LookBack => {
                let all = self.look_back(block, memory).into_iter();
                return Ok(all.map(|next| (next, memory.clone())).collect());
            }
            Step::PublishComplete => {
                if block.before != count(block.tile) - 1 {
                    return Err(format!("tiles {:b} precede {}", block.before, block.tile));
                }
                let word = COMPLETE | (block.before + count(block.tile));
                self.publish(&mut next, &mut changed, word, Step::ClearNext);
            }
            Step::ClearNext => {
                if self.planted != Planted::NextStateKept {
                    let place = self.next_state(block.tile);
                    changed.write(&mut next.view, place, 0, Order::Relaxed);
                }
                next.step = Step::Ended;
            }
            Step::Ended => {}
        }
        Ok(vec![(next, changed)])
    }
}

/// Returns true if the next pass finds its state cleared after this end.
fn is_cleared(pass: Pass, end: &Memory) -> bool {
    end.newest()[pass.next_state(0)..].iter().all(|word| *word == 0)
}

#[test]
fn every_interleaving_ends_with_what_precedes_each_tile() {
    for tiles in 1..=4 {
        for resident in 1..=tiles.min(3) {
            let pass = Pass { tiles, planted: Planted::Nothing };
            let found = pass.explore(resident).expect("no fault");
            assert!(!found.ends.is_empty() && found.ends.iter().all(|end| is_cleared(pass, end)));
        }
    }
}

#[test]
fn planted_faults_are_found() {
    let pass = |planted| Pass { tiles: 3, planted };
    assert_eq!(pass(Planted::TileByIndex).explore(2).err(), Some(Fault::Stuck));
    for planted in [Planted::MarkApart(Order::Relaxed), Planted::CompleteTooEarly] {
        assert!(matches!(pass(planted).explore(3), Err(Fault::Wrong(_))), "{planted:?}");
    }
    // With ordering, a mark could be a separate word, but not if the same words are written twice:
    // a count that has become complete could be read with the older mark.
    let ordered = pass(Planted::MarkApart(Order::Ordered)).explore(3);
    assert!(matches!(ordered, Err(Fault::Wrong(_))), "{ordered:?}");
    let kept = pass(Planted::NextStateKept);
    let found = kept.explore(2).expect("no fault in this pass");
    assert!(found.ends.iter().all(|end| !is_cleared(kept, end)));
    // The next pass begins with that state.
    let next = pass(Planted::Nothing);
    let mut words = next.memory().newest();
    words[next.state(0)] = COMPLETE | 7;
    let found = explore(&next, Memory::new(words), 3, 3);
    assert!(matches!(found, Err(Fault::Wrong(_))), "{found:?}");
}
