//! Global memory as blocks see it: a read returns any write to the word that is no older than what
//! its block has seen of that word. Nothing orders different words, but what a write releases and a
//! read acquires.

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
