//! A model of the scan in one pass (`scan_tile` in scan.cuh), whose every interleaving is tried: blocks
//! that start at any time, of which so many run at once, read and write single words.

use std::collections::HashSet;

/// Tiles of a team.
const TEAM: usize = 2;

/// What a value is in the model: the first tile that it covers, and the one behind the last. Each is
/// a word.
type Value = [u8; 2];

/// The words of a value that have been published.
type Words = [Option<u8>; 2];

/// Combines the values of neighbours, in their order only.
fn combine(earlier: Value, later: Value) -> Value {
    assert_eq!(earlier[1], later[0], "{earlier:?} then {later:?}");
    [earlier[0], later[1]]
}

/// Where a block is: the tile, the step, words read or written in that step, and the values that it
/// has so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    tile: usize,
    step: Step,
    words: Vec<u8>,
    earlier: Option<Value>,
    carry: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    PublishTotal,
    ReadTotal(usize),
    ReadPrefix,
    PublishPrefix,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    taken: usize,
    totals: Vec<Words>,
    prefixes: Vec<Words>,
    blocks: Vec<Block>,
}

impl State {
    /// A state without blocks.
    fn new(tiles: usize) -> State {
        let (totals, prefixes) = (vec![[None; 2]; tiles], vec![[None; 2]; tiles.div_ceil(TEAM)]);
        State { taken: 0, totals, prefixes, blocks: Vec::new() }
    }

    fn running(&self) -> usize {
        self.blocks.iter().filter(|block| block.step != Step::Done).count()
    }

    /// A block starts and takes the next tile.
    fn start(&mut self) {
        let (words, tile) = (Vec::new(), self.taken);
        self.taken += 1;
        let step = Step::PublishTotal;
        self.blocks.push(Block { tile, step, words, earlier: None, carry: None });
    }

    /// A block reads or writes one word.
    fn advance(&mut self, index: usize) {
        let mut block = self.blocks[index].clone();
        let (team, rank) = (block.tile / TEAM, block.tile % TEAM);
        let own = [block.tile as u8, block.tile as u8 + 1];
        match block.step {
            Step::PublishTotal => {
                let word = block.words.len();
                self.totals[block.tile][word] = Some(own[word]);
                block.words.push(own[word]);
                if block.words.len() == 2 {
                    block.enter(if rank > 0 { Step::ReadTotal(0) } else { Step::ReadPrefix }, team);
                }
            }
            Step::ReadTotal(from) => {
                if let Some(total) = block.read(self.totals[team * TEAM + from]) {
                    block.earlier = Some(block.earlier.map_or(total, |it| combine(it, total)));
                    let next = from + 1;
                    let is_last = next == rank;
                    let next = if is_last { Step::ReadPrefix } else { Step::ReadTotal(next) };
                    block.enter(next, team);
                }
            }
            Step::ReadPrefix => {
                if let Some(prefix) = block.read(self.prefixes[team]) {
                    block.carry = Some(block.earlier.map_or(prefix, |it| combine(prefix, it)));
                    block.enter(Step::PublishPrefix, team);
                }
            }
            Step::PublishPrefix => {
                let word = block.words.len();
                let value = block.carry.map_or(own, |carry| combine(carry, own))[word];
                self.prefixes[team + 1][word] = Some(value);
                block.words.push(value);
                if block.words.len() == 2 {
                    block.enter(Step::Done, team);
                }
            }
            Step::Done => {}
        }
        let is_publishing = block.step == Step::PublishPrefix;
        if is_publishing && (rank + 1 < TEAM || team + 1 == self.prefixes.len()) {
            block.step = Step::Done;
        }
        self.blocks[index] = block;
    }
}

impl Block {
    /// Goes to a step; nothing precedes the first team.
    fn enter(&mut self, step: Step, team: usize) {
        self.words.clear();
        self.step = step;
        if step == Step::ReadPrefix && team == 0 {
            self.carry = self.earlier;
            self.step = Step::PublishPrefix;
        }
    }

    /// Reads the next word; returns the value when all of its words have been there in one turn.
    fn read(&mut self, words: Words) -> Option<Value> {
        match words[self.words.len()] {
            Some(word) => self.words.push(word),
            None => self.words.clear(),
        }
        <Value>::try_from(&self.words[..]).ok()
    }
}

/// Tries every interleaving of so many tiles, of whose blocks `resident` run at once.
fn explore(tiles: usize, resident: usize) -> usize {
    let mut seen = HashSet::new();
    let mut open = vec![State::new(tiles)];
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        if state.taken < tiles && state.running() < resident {
            let mut other = state.clone();
            other.start();
            next.push(other);
        }
        for index in 0..state.blocks.len() {
            let mut other = state.clone();
            other.advance(index);
            if other != state {
                next.push(other);
            }
        }
        if next.is_empty() {
            assert_eq!(
                (state.taken, state.running()),
                (tiles, 0),
                "blocks wait forever: {state:?}"
            );
            for block in &state.blocks {
                let expected = (block.tile > 0).then_some([0, block.tile as u8]);
                assert_eq!(block.carry, expected, "what precedes tile {}", block.tile);
            }
        }
        open.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
    }
    seen.len()
}

#[test]
fn every_interleaving_of_blocks_ends_with_what_precedes_each_tile() {
    for tiles in 1..=5 {
        for resident in 1..=tiles.min(3) {
            assert!(explore(tiles, resident) >= tiles, "{tiles} tiles");
        }
    }
    // A block after the other has one way, several have many.
    assert!(explore(5, 5) > 4 * explore(5, 1), "the model branches");
}
