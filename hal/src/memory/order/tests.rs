//! Checks every sequence of uses of two memory objects on three streams against program order.
//!
//! The reference does not track writers and readers. It keeps every use and, for each stream, how much of
//! each other stream's work its next work is known to run after.

use super::{ALL, Access, ByteRanges, Bytes, Queue, Streams, Uses};
use std::sync::Arc;

const STREAMS: usize = 3;
const MEMORIES: usize = 2;

impl Queue for u8 {
    fn id(&self) -> u64 {
        u64::from(*self)
    }
}

impl Queue for Arc<u8> {
    fn id(&self) -> u64 {
        u64::from(**self)
    }
}

/// Work queued on a stream: its position there, and its use of a memory.
#[derive(Clone, Copy)]
struct Use {
    memory: usize,
    stream: usize,
    place: usize,
    access: Access,
}

/// Streams that only wait for each other.
#[derive(Clone)]
struct Machine {
    /// The number of operations queued on each stream.
    queued: [usize; STREAMS],
    /// For each stream, the number of operations of every other stream that its next operation runs after.
    after: [[usize; STREAMS]; STREAMS],
    uses: Vec<Use>,
}

impl Machine {
    fn new() -> Machine {
        Machine { queued: [0; STREAMS], after: [[0; STREAMS]; STREAMS], uses: Vec::new() }
    }

    /// Makes `later` wait for everything queued on `earlier`.
    fn wait(&mut self, later: usize, earlier: usize) {
        let mut known = self.after[earlier];
        known[earlier] = self.queued[earlier];
        for (mine, theirs) in self.after[later].iter_mut().zip(known) {
            *mine = (*mine).max(theirs);
        }
    }

    fn comes_after(&self, stream: usize, earlier: &Use) -> bool {
        stream == earlier.stream || self.after[stream][earlier.stream] > earlier.place
    }

    fn conflicts(&self, memory: usize, access: Access) -> impl Iterator<Item = &Use> {
        let either_writes = move |used: &&Use| {
            used.memory == memory && (access == Access::Write || used.access == Access::Write)
        };
        self.uses.iter().filter(either_writes)
    }

    /// Checks that all conflicting work runs before the use, and queues it.
    fn queue(&mut self, stream: usize, used: &[(usize, Access)]) {
        for &(memory, access) in used {
            let missed =
                self.conflicts(memory, access).find(|use_| !self.comes_after(stream, use_));
            if let Some(missed) = missed {
                panic!(
                    "{access:?} of memory {memory} on stream {stream} may overtake the {:?} \
                     at place {} of stream {}; {}",
                    missed.access,
                    missed.place,
                    missed.stream,
                    self.history()
                );
            }
        }
        let place = self.queued[stream];
        self.queued[stream] += 1;
        self.uses.extend(used.iter().map(|&(memory, access)| Use {
            memory,
            stream,
            place,
            access,
        }));
    }

    fn history(&self) -> String {
        let text = |used: &Use| format!("{:?} {} on {}", used.access, used.memory, used.stream);
        self.uses.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone)]
struct State {
    machine: Machine,
    uses: [ByteRanges<u8>; MEMORIES],
}

impl State {
    fn new(homes: [u8; MEMORIES]) -> State {
        State { machine: Machine::new(), uses: homes.map(ByteRanges::of) }
    }

    fn step(&mut self, stream: usize, used: &[(usize, Access)]) {
        let user = stream as u8;
        for &(memory, access) in used {
            let behind = self.uses[memory].behind(&ALL, &user, access);
            for (position, &earlier) in behind.iter().enumerate() {
                assert_ne!(earlier, user, "a stream does not wait for itself");
                assert!(!behind[..position].contains(&earlier), "{behind:?} names one twice");
                self.machine.wait(stream, usize::from(earlier));
            }
            self.uses[memory].add(&ALL, &user, access, |_| false, &mut Streams::new());
        }
        self.machine.queue(stream, used);
    }

    /// Checks that a free of the memory is ordered after all its uses.
    fn check_free(&self, memory: usize) {
        let (writer, readers) = self.uses[memory].clone().into_parts();
        let mut machine = self.machine.clone();
        for reader in readers {
            if reader != writer {
                machine.wait(usize::from(writer), usize::from(reader));
            }
        }
        machine.queue(usize::from(writer), &[(memory, Access::Write)]);
    }

    /// Runs all sequences of `steps` more steps.
    fn explore(&self, choices: &[Vec<(usize, Access)>], steps: usize) -> usize {
        (0..MEMORIES).for_each(|memory| self.check_free(memory));
        if steps == 0 {
            return 1;
        }
        let mut sequences = 0;
        for stream in 0..STREAMS {
            for used in choices {
                let mut next = self.clone();
                next.step(stream, used);
                sequences += next.explore(choices, steps - 1);
            }
        }
        sequences
    }
}

const HOMES: [[u8; MEMORIES]; 2] = [[0, 0], [0, 1]];

#[test]
fn every_short_sequence_of_uses_keeps_program_order() {
    let single: Vec<_> = (0..MEMORIES)
        .flat_map(|memory| [vec![(memory, Access::Read)], vec![(memory, Access::Write)]])
        .collect();
    // Shorter sequences are checked on the way.
    let steps = match std::env::var_os("PYGPU_TEST_ALL") {
        _ if cfg!(miri) => 2,
        None => 5,
        Some(_) => 6,
    };
    for homes in HOMES {
        let sequences = State::new(homes).explore(&single, steps);
        assert_eq!(sequences, (STREAMS * single.len()).pow(steps as u32));
    }
}

#[test]
fn every_sequence_of_four_uses_of_several_memories_at_once_keeps_program_order() {
    let kinds = [None, Some(Access::Read), Some(Access::Write)];
    let mut choices = Vec::new();
    for first in kinds {
        for second in kinds {
            let used = [first, second].into_iter().enumerate();
            let used: Vec<_> = used.filter_map(|(memory, kind)| Some((memory, kind?))).collect();
            if !used.is_empty() {
                choices.push(used);
            }
        }
    }
    let steps = if cfg!(miri) { 2 } else { 4 };
    for homes in HOMES {
        let sequences = State::new(homes).explore(&choices, steps);
        assert_eq!(sequences, (STREAMS * choices.len()).pow(steps as u32));
    }
}

#[test]
fn readers_of_one_write_do_not_wait_for_each_other() {
    let mut uses = Uses::of(0u8);
    for reader in [1, 2, 0, 1] {
        let behind = uses.behind(&reader, Access::Read);
        assert!(behind.iter().all(|&earlier| earlier == 0), "{reader} waits for {behind:?}");
        uses.add(&reader, Access::Read, &mut Streams::new());
    }
    assert!(uses.behind(&1, Access::Read).is_empty(), "it has waited for the write before");
}

#[test]
fn what_is_forgotten_is_handed_over() {
    let mut uses = Uses::of(0u8);
    let mut forgotten = Streams::new();
    uses.add(&1, Access::Read, &mut forgotten);
    uses.add(&2, Access::Read, &mut forgotten);
    assert!(forgotten.is_empty());
    uses.forget_readers(|&reader| reader == 1, &mut forgotten);
    assert_eq!(forgotten.as_slice(), [1]);
    uses.add(&3, Access::Write, &mut forgotten);
    assert_eq!(forgotten.as_slice(), [1, 0, 2]);
}

/// A memory of a few bytes in two forms: as ranges, and with separate uses for each byte.
#[derive(Clone)]
struct Parts {
    ranges: ByteRanges<u8>,
    bytes: Vec<Uses<u8>>,
}

impl Parts {
    fn new(bytes: usize) -> Parts {
        Parts { ranges: ByteRanges::of(0), bytes: vec![Uses::of(0); bytes] }
    }

    /// Uses a range on a stream, and checks that it waits for exactly the streams that its bytes have to
    /// wait for.
    fn step(&mut self, range: &Bytes, stream: u8, access: Access, is_capturing: bool) {
        let ranges = sorted(self.ranges.behind(range, &stream, access));
        let uses = &mut self.bytes[range.clone()];
        let mut expected: Vec<_> =
            uses.iter().flat_map(|uses| uses.behind(&stream, access)).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(ranges, expected, "{access:?} of {range:?} on {stream}");
        for uses in uses {
            let mut forgotten = Streams::new();
            uses.add(&stream, access, &mut forgotten);
            uses.keep_captured(&forgotten, |_| is_capturing);
        }
        self.ranges.add(range, &stream, access, |_| is_capturing, &mut Streams::new());
        self.check();
    }

    fn check(&self) {
        let ends: Vec<_> = self.ranges.all.iter().map(|(end, _)| *end).collect();
        assert!(ends.is_sorted_by(|a, b| a < b) && ends.last() == Some(&ALL.end), "{ends:?}");
        let (writer, mut streams) = self.ranges.clone().into_parts();
        streams.push(writer);
        let freed_behind = sorted(streams);
        let mut used = self.bytes.iter().flat_map(|uses| uses.all().copied());
        let missed = used.find(|it| !freed_behind.contains(it));
        assert_eq!(missed, None, "the memory is freed behind all uses");
    }
}

fn sorted(streams: Streams<u8>) -> Vec<u8> {
    let mut sorted = streams.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

const ACCESSES: [Access; 2] = [Access::Read, Access::Write];

#[test]
fn every_short_sequence_of_uses_of_parts_is_ordered_byte_by_byte() {
    fn explore(parts: &Parts, steps: usize) -> usize {
        if steps == 0 {
            return 1;
        }
        let mut sequences = 0;
        for range in [0..1, 1..2, 2..3, 0..2, 1..3, 0..3] {
            for (stream, access) in [0, 1, 2].into_iter().flat_map(|it| ACCESSES.map(|a| (it, a))) {
                let mut next = parts.clone();
                next.step(&range, stream, access, false);
                sequences += explore(&next, steps - 1);
            }
        }
        sequences
    }
    let steps = if cfg!(miri) { 1 } else { 3 };
    assert_eq!(explore(&Parts::new(3), steps), 36_usize.pow(steps as u32));
}

#[test]
fn long_sequences_of_uses_of_parts_are_ordered_byte_by_byte() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for _ in 0..if cfg!(miri) { 4 } else { 500 } {
        let mut parts = Parts::new(8);
        for _ in 0..40 {
            let start = below(8);
            let range = start..start + 1 + below(8 - start);
            match below(9) {
                0 => {
                    let gone = below(4) as u8;
                    parts.ranges.forget_readers(&range, |it, _| *it == gone, &mut Streams::new());
                    for uses in &mut parts.bytes[range] {
                        uses.forget_readers(|it| *it == gone, &mut Streams::new());
                    }
                }
                1 => {
                    parts.ranges.forget_captured(&range, |it| *it == 1, &mut Streams::new());
                    for uses in &mut parts.bytes[range.clone()] {
                        uses.forget_captured(|it| *it == 1, &mut Streams::new());
                    }
                    let expected = parts.bytes[range.clone()].iter();
                    let expected = expected.flat_map(|uses| uses.captured.clone()).collect();
                    assert_eq!(sorted(parts.ranges.captured(&range)), sorted(expected));
                }
                kind => {
                    let access = ACCESSES[usize::from(kind > 5)];
                    parts.step(&range, below(4) as u8, access, below(5) == 0);
                }
            }
        }
        for (stream, access) in [(0, Access::Read), (3, Access::Write)] {
            parts.step(&(0..8), stream, access, false);
        }
        parts.ranges.add(&ALL, &3, Access::Write, |_| false, &mut Streams::new());
        let left = parts.ranges.all.len();
        let captured = parts.ranges.captured(&ALL).len();
        assert!(left == 1 || captured > 0, "a use of all bytes leaves one range, not {left}");
    }
}

#[test]
fn parts_do_not_wait_for_each_other() {
    let mut ranges = ByteRanges::of(0);
    for (range, stream) in [(0..4, 1), (4..8, 2), (0..4, 1), (4..8, 2)] {
        let behind = ranges.behind(&range, &stream, Access::Write);
        assert!(behind.iter().all(|&it| it == 0), "{range:?} waits for {behind:?}");
        ranges.add(&range, &stream, Access::Write, |_| false, &mut Streams::new());
    }
    assert_eq!(sorted(ranges.behind(&ALL, &3, Access::Read)), [0, 1, 2]);
    assert_eq!(ranges.behind(&(8..8), &3, Access::Write).as_slice(), []);
}

#[test]
fn regions_keep_each_reference_or_hand_it_over() {
    let stream: Arc<u8> = Arc::new(1);
    let mut ranges = ByteRanges::of(stream.clone());
    for range in [0..4, 2..6, 0..8, 1..2] {
        for access in ACCESSES {
            let mut forgotten = Streams::new();
            ranges.add(&range, &stream, access, |_| false, &mut forgotten);
            let references = ranges.references(1) + forgotten.len() + 1;
            assert_eq!(Arc::strong_count(&stream), references, "{access:?} {range:?}");
        }
    }
}
