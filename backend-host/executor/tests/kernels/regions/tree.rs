//! The statements and values of a random kernel.

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(i32),
    /// A parameter of the kernel: 0 or 1.
    Parameter(usize),
    /// `threadIdx`, `blockIdx`, `blockDim` and `gridDim` along an axis.
    Index(usize, usize),
    /// The number of the thread in its block.
    Thread,
    Variable(usize),
    Element(usize, Box<Value>),
    /// The thread's own element in shared memory.
    OwnShared,
    Binary(&'static str, Box<Value>, Box<Value>),
    Choice(Box<Value>, Box<Value>, Box<Value>),
    /// A call of a device function that takes values.
    Call(Box<Value>, Box<Value>),
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Barrier,
    /// A variable, with or without `const`, and its initial value.
    Declare {
        id: usize,
        kind: Kind,
        is_const: bool,
        value: Option<Value>,
    },
    /// An array of four elements.
    Array {
        id: usize,
        values: Option<[Value; 2]>,
    },
    Assign(usize, Kind, &'static str, Value),
    /// `++` or `--`.
    Step(usize, &'static str),
    AssignElement(usize, Value, &'static str, Value),
    AssignShared(&'static str, Value),
    /// All threads write to shared memory, and read a value that another one wrote.
    Exchange(usize, Value),
    If(Value, Vec<Statement>, Vec<Statement>),
    /// From one value to another, with a step.
    For {
        id: usize,
        from: Value,
        to: Value,
        by: i32,
        body: Vec<Statement>,
    },
    /// At most this many iterations, while the value is not zero. The condition comes first or last.
    While {
        id: usize,
        times: Value,
        asks_last: bool,
        body: Vec<Statement>,
    },
    /// `for (i = ...; i < limit; i += all threads of the grid)` adds elements of the data to a variable, or
    /// writes them.
    Strided {
        id: usize,
        sum: usize,
        limit: Value,
        writes: bool,
    },
    Break,
    Continue,
    Return(Value),
    /// Functions that write through a pointer, and through a reference.
    CallPointer(usize, Value),
    CallReference(usize, Value),
    Block(Vec<Statement>),
}

/// The type of a variable: an `int`, or a narrower type that is promoted to `int`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Int,
    Short,
    Byte,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Short => "short",
            Kind::Byte => "unsigned char",
        }
    }

    /// Returns the value after it is stored.
    pub(crate) fn stored(self, value: i32) -> i32 {
        match self {
            Kind::Int => value,
            Kind::Short => i32::from(value as i16),
            Kind::Byte => i32::from(value as u8),
        }
    }
}

/// A kernel: its statements, and the value that each thread writes at the end.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) statements: Vec<Statement>,
    pub(crate) result: Value,
    /// The types of all variables; counters and arrays have type `int`.
    pub(crate) kinds: Vec<Kind>,
}
