//! The single-pass scan (`scan_tiles` and `take_tile`). Tiles publish totals, and teams of tiles publish
//! prefixes, in words that contain a mark. A block may postpone a tile until it has published the total
//! of its next one.

use crate::memory::{Explored, Fault, Memory, Order, Protocol, View, explore};

/// The number of tiles per team.
const TEAM: usize = 2;

/// The word with the number of the next tile.
const TICKET: usize = 0;

/// A value: the first tile that it covers, and the tile after the last. Each is a word, so that values in
/// a wrong order, or mixed words, are detected.
type Value = [u32; 2];

/// A mark in each word of a published value.
const MARK: u32 = 1 << 8;

/// The way in which a value is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Each word contains its part and a mark.
    Marked,
    /// A separate word after the others is a flag that they are complete, and is read before them.
    Flag(Order),
}

#[derive(Clone, Copy, Debug)]
struct Scan {
    tiles: usize,
    /// The number of blocks. If it is less than the number of tiles, blocks take tiles until none is
    /// left.
    blocks: usize,
    words: Words,
    by_index: bool,
    keeps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Take,
    PublishTotal,
    ReadTotal(usize),
    ReadPrefix,
    PublishPrefix,
    Finish,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    index: usize,
    view: View,
    /// The tile that was taken, the postponed tile, and the tile whose predecessors are being read.
    taken: Option<usize>,
    kept: Option<usize>,
    tile: usize,
    step: Step,
    /// The words read or written in this step so far.
    words: Vec<u32>,
    earlier: Option<Value>,
    carry: Option<Value>,
}

/// Combines two neighbouring values; fails if they are not adjacent in this order.
fn combine(earlier: Option<Value>, later: Value) -> Result<Value, String> {
    match earlier {
        Some(earlier) if earlier[1] != later[0] => Err(format!("{earlier:?} then {later:?}")),
        Some(earlier) => Ok([earlier[0], later[1]]),
        None => Ok(later),
    }
}

impl Scan {
    fn new(tiles: usize) -> Scan {
        Scan { tiles, blocks: tiles, words: Words::Marked, by_index: false, keeps: true }
    }

    fn words_of_value(self) -> usize {
        if self.words == Words::Marked { 2 } else { 3 }
    }

    fn teams(self) -> usize {
        self.tiles.div_ceil(TEAM)
    }

    /// Returns memory as `clear_state` leaves it.
    fn memory(self) -> Memory {
        Memory::new(vec![0; 1 + (self.teams() + self.tiles) * self.words_of_value()])
    }

    fn prefix(self, team: usize) -> usize {
        1 + team * self.words_of_value()
    }

    fn total(self, tile: usize) -> usize {
        1 + (self.teams() + tile) * self.words_of_value()
    }

    fn explore(self, resident: usize) -> Result<Explored, Fault> {
        explore(&self, self.memory(), self.blocks, resident)
    }

    /// Publishes the next word of a value, and continues with `then` after the last.
    fn publish(self, block: &mut Block, memory: &mut Memory, at: usize, value: Value, then: Step) {
        let number = block.words.len();
        let (word, order) = match self.words {
            Words::Marked => (MARK | value[number], Order::Relaxed),
            Words::Flag(order) if number == 2 => (MARK, order),
            Words::Flag(_) => (value[number], Order::Relaxed),
        };
        memory.write(&mut block.view, at + number, word, order);
        block.words.push(word);
        if block.words.len() == self.words_of_value() {
            block.enter(then);
        }
    }

    /// Reads the next word of a value. The value is complete when all of its words were present in one
    /// attempt.
    fn read(self, block: &Block, memory: &Memory, at: usize) -> Vec<(Block, Option<Value>)> {
        let (place, order) = match (self.words, block.words.len()) {
            (Words::Marked, number) => (at + number, Order::Relaxed),
            (Words::Flag(order), 0) => (at + 2, order),
            (Words::Flag(_), number) => (at + number - 1, Order::Relaxed),
        };
        let reads = memory.read(&block.view, place, order).into_iter();
        reads
            .map(|(word, view)| {
                let mut next = Block { view, ..block.clone() };
                let needs_mark = self.words == Words::Marked || block.words.is_empty();
                if needs_mark && word & MARK == 0 {
                    // A failed attempt does not change the view, because the same words could be read
                    // again.
                    next = Block { words: Vec::new(), ..block.clone() };
                    return (next, None);
                }
                next.words.push(word & !MARK);
                let value = (next.words.len() == self.words_of_value())
                    .then(|| [next.words[next.words.len() - 2], next.words[next.words.len() - 1]]);
                (next, value)
            })
            .collect()
    }

    /// Continues after the block has taken a tile, or has found that none is left.
    fn after_take(self, block: &mut Block, tile: usize) {
        block.taken = (tile < self.tiles).then_some(tile);
        match block.taken {
            Some(tile) if tile + 1 < self.tiles => block.enter(Step::PublishTotal),
            _ => self.after_publication(block),
        }
    }

    /// Continues after the total of the taken tile has been published, with the tile to be finished.
    fn after_publication(self, block: &mut Block) {
        let ending = if self.keeps { block.kept } else { block.taken };
        let Some(tile) = ending else {
            return self.after_end(block);
        };
        (block.tile, block.earlier, block.carry) = (tile, None, None);
        match tile % TEAM {
            0 => self.after_totals(block),
            _ => block.enter(Step::ReadTotal(0)),
        }
    }

    /// Continues after a tile has been finished, or if there was none to finish.
    fn after_end(self, block: &mut Block) {
        let taken = block.taken.take();
        block.kept = taken.filter(|_| self.keeps);
        match taken {
            None => block.enter(Step::Ended),
            Some(_) if self.tiles > self.blocks => block.enter(Step::Take),
            // There is one tile per block.
            Some(_) => self.after_take(block, self.tiles),
        }
    }

    /// Continues after the totals of the earlier tiles of the team are known.
    fn after_totals(self, block: &mut Block) {
        block.enter(Step::ReadPrefix);
        if block.tile < TEAM {
            block.carry = block.earlier;
            self.after_prefix(block);
        }
    }

    /// If the tile is the last of its team, publishes the prefix of the next team, if there is one.
    fn after_prefix(self, block: &mut Block) {
        let is_last = block.tile % TEAM + 1 == TEAM && block.tile + 1 < self.tiles;
        block.enter(if is_last { Step::PublishPrefix } else { Step::Finish });
    }
}

impl Block {
    fn enter(&mut self, step: Step) {
        self.words.clear();
        self.step = step;
    }

    fn own(&self) -> Value {
        [self.tile as u32, self.tile as u32 + 1]
    }
}

impl Protocol for Scan {
    type Block = Block;

    fn starts_in_any_order(&self) -> bool {
        self.by_index
    }

    fn start(&self, index: usize, memory: &Memory) -> Block {
        let (view, words) = (memory.view(), Vec::new());
        let (taken, kept) = (None, None);
        Block {
            index,
            view,
            taken,
            kept,
            tile: 0,
            step: Step::Take,
            words,
            earlier: None,
            carry: None,
        }
    }

    fn has_ended(&self, block: &Block) -> bool {
        block.step == Step::Ended
    }

    fn step(&self, block: &Block, memory: &Memory) -> Result<Vec<(Block, Memory)>, String> {
        let (mut next, mut changed) = (block.clone(), memory.clone());
        let (team, rank) = (block.tile / TEAM, block.tile % TEAM);
        match block.step {
            Step::Take => {
                let ticket = changed.count(&mut next.view, TICKET) as usize;
                self.after_take(&mut next, if self.by_index { block.index } else { ticket });
            }
            Step::PublishTotal => {
                let tile = block.taken.ok_or("no tile has been taken")?;
                let value = [tile as u32, tile as u32 + 1];
                // The following step is entered below.
                self.publish(&mut next, &mut changed, self.total(tile), value, Step::Take);
                if next.step == Step::Take {
                    self.after_publication(&mut next);
                }
            }
            Step::ReadTotal(from) => {
                let mut all = Vec::new();
                for (mut next, total) in self.read(block, memory, self.total(team * TEAM + from)) {
                    if let Some(total) = total {
                        next.earlier = Some(combine(next.earlier, total)?);
                        next.enter(Step::ReadTotal(from + 1));
                        if from + 1 == rank {
                            self.after_totals(&mut next);
                        }
                    }
                    all.push((next, memory.clone()));
                }
                return Ok(all);
            }
            Step::ReadPrefix => {
                let mut all = Vec::new();
                for (mut next, prefix) in self.read(block, memory, self.prefix(team)) {
                    if let Some(prefix) = prefix {
                        let carry = next.earlier.map_or(Ok(prefix), |it| combine(Some(prefix), it));
                        next.carry = Some(carry?);
                        self.after_prefix(&mut next);
                    }
                    all.push((next, memory.clone()));
                }
                return Ok(all);
            }
            Step::PublishPrefix => {
                let value = combine(block.carry, block.own())?;
                self.publish(&mut next, &mut changed, self.prefix(team + 1), value, Step::Finish);
            }
            Step::Finish => {
                let expected = (block.tile > 0).then_some([0, block.tile as u32]);
                if block.carry != expected {
                    return Err(format!("{:?} precedes tile {}", block.carry, block.tile));
                }
                self.after_end(&mut next);
            }
            Step::Ended => {}
        }
        Ok(vec![(next, changed)])
    }
}

#[test]
fn every_interleaving_ends_with_what_precedes_each_tile() {
    for tiles in 1..=5 {
        for resident in 1..=tiles.min(3) {
            for keeps in [false, true] {
                let found = Scan { keeps, ..Scan::new(tiles) }.explore(resident).expect("no fault");
                assert!(found.states >= 4 * tiles, "{tiles} tiles");
            }
        }
    }
    let one = Scan::new(4).explore(1).expect("no fault").states;
    let four = Scan::new(4).explore(4).expect("no fault").states;
    assert!(four > 10 * one, "one block at a time has one way, several have many");
}

#[test]
fn blocks_that_are_fewer_than_tiles_take_them_all() {
    for (tiles, blocks) in [(3, 2), (5, 2), (4, 3)] {
        for resident in 1..=blocks {
            for keeps in [false, true] {
                let scan = Scan { blocks, keeps, ..Scan::new(tiles) };
                scan.explore(resident).expect("no fault");
            }
        }
    }
}

#[test]
fn blocks_that_take_tiles_by_their_own_number_may_wait_forever() {
    let fault = Scan { by_index: true, ..Scan::new(3) };
    assert_eq!(fault.explore(2).err(), Some(Fault::Stuck));
    // If all blocks are resident, they cannot deadlock.
    fault.explore(3).expect("no fault");
}

#[test]
fn state_that_is_not_cleared_gives_wrong_results() {
    let scan = Scan::new(3);
    for place in 1..scan.memory().newest().len() {
        let mut words = scan.memory().newest();
        words[place] = MARK | 7;
        // The prefix of the first team, and the totals of each team's last tile, are never read.
        let is_read = place >= scan.prefix(1) && place < scan.total(1);
        let found = explore(&scan, Memory::new(words), 3, 3);
        assert_eq!(matches!(found, Err(Fault::Wrong(_))), is_read, "word {place}: {found:?}");
    }
    let mut words = scan.memory().newest();
    words[TICKET] = 1;
    assert_eq!(explore(&scan, Memory::new(words), 3, 3).err(), Some(Fault::Stuck));
}

#[test]
fn a_flag_beside_a_value_needs_an_order_that_marked_words_do_not() {
    let flag = |order| Scan { words: Words::Flag(order), ..Scan::new(3) }.explore(2);
    assert!(matches!(flag(Order::Relaxed), Err(Fault::Wrong(_))));
    flag(Order::Ordered).expect("no fault");
}
