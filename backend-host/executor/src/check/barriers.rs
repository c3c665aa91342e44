//! Threads of a block that wait at different barriers, which is undefined on a GPU.

use crate::block::{Place, text_of};

/// A time that the threads of a block meet: where the first of them is.
#[derive(Clone, Copy, Debug)]
struct Meeting {
    number: u32,
    place: Place,
    thread: u32,
}

/// What is known of the barriers of a block.
#[derive(Debug)]
pub(super) struct Barriers {
    /// How many barriers of all threads each thread has come to.
    counts: Vec<u32>,
    /// The last meeting of even and of odd number: no thread is two behind another one.
    meetings: [Option<Meeting>; 2],
}

impl Barriers {
    pub(super) fn new(threads: u32) -> Barriers {
        Barriers { counts: vec![0; threads as usize], meetings: [None; 2] }
    }

    /// Another block begins.
    pub(super) fn begin(&mut self) {
        self.counts.fill(0);
        self.meetings = [None; 2];
    }

    /// A thread comes to a barrier of all threads.
    ///
    /// # Errors
    /// Where another thread is, and which, if that is not there.
    pub(super) fn arrive(&mut self, thread: u32, place: Place) -> Result<(), (u32, String)> {
        let count = &mut self.counts[thread as usize];
        *count += 1;
        let number = *count;
        let meeting = &mut self.meetings[number as usize % 2];
        match meeting {
            // A place is one literal and a line, and few files have two literals.
            Some(known) if known.number == number && known.place == place => Ok(()),
            Some(known) if known.number == number => {
                let (own, other) = (text_of(place), text_of(known.place));
                if own == other { Ok(()) } else { Err((known.thread, other)) }
            }
            _ => {
                *meeting = Some(Meeting { number, place, thread });
                Ok(())
            }
        }
    }
}
