//! Detects threads of a block that wait at different barriers, which is undefined behaviour on a GPU.

use crate::block::{Place, text_of};

/// A barrier in the history of a block: the place where the first thread arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: u32,
    place: Place,
    thread: u32,
}

/// The barriers at which the threads of a block have arrived.
#[derive(Debug)]
pub(crate) struct Barriers {
    /// For each thread, the number of block-wide barriers at which it has arrived.
    counts: Vec<u32>,
    /// The last even-numbered and the last odd-numbered barrier. Two are enough, because a thread that waits
    /// for the others is never more than one barrier ahead.
    arrivals: [Option<Arrival>; 2],
}

impl Barriers {
    pub(crate) fn new(threads: u32) -> Barriers {
        Barriers { counts: vec![0; threads as usize], arrivals: [None; 2] }
    }

    /// Begins another block.
    pub(crate) fn begin(&mut self) {
        self.counts.fill(0);
        self.arrivals = [None; 2];
    }

    /// Records that a thread arrives at a barrier of all threads.
    ///
    /// # Errors
    /// The thread that arrived first and its source location, if that location differs.
    pub(crate) fn arrive(&mut self, thread: u32, place: Place) -> Result<(), (u32, String)> {
        let count = &mut self.counts[thread as usize];
        *count += 1;
        let number = *count;
        let arrival = &mut self.arrivals[number as usize % 2];
        match arrival {
            // A place is a pointer to a literal and a line. Few files have more than one literal.
            Some(known) if known.number == number && known.place == place => Ok(()),
            Some(known) if known.number == number => {
                let (own, other) = (text_of(place), text_of(known.place));
                if own == other { Ok(()) } else { Err((known.thread, other)) }
            }
            _ => {
                *arrival = Some(Arrival { number, place, thread });
                Ok(())
            }
        }
    }
}
