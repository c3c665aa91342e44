//! Compares instructions with random operands, all in one kernel, with functions of the same operands.

use crate::units;
use host_executor::{Kernel, Optimization, Schedule, Source};
use std::fmt::Write as _;

/// The number of threads in a block, and of blocks in the kernel. Each thread has its own operands.
const THREADS: usize = 256;
const BLOCKS: usize = 32;
const ROWS: usize = THREADS * BLOCKS;
/// The number of operands in a row.
const OPERANDS: usize = 4;

/// Computes a result from its operands.
type Expected = dyn Fn(&[u64]) -> u64;

/// An instruction: its text, the constraints of its result and arguments, and the expected result.
pub(crate) struct Case {
    text: String,
    to: char,
    from: &'static str,
    expected: Box<Expected>,
    /// Maps results that count as equal to the same value: NaNs of this format.
    same: fn(u64) -> u64,
}

/// Returns one value for all NaNs.
fn merged(is_nan: bool, value: u64) -> u64 {
    if is_nan { u64::MAX } else { value }
}

/// Creates a case whose result is a 16-bit, 32-bit or 64-bit number. All NaNs are equal.
pub(crate) fn float_case(
    text: impl Into<String>,
    bits: u32,
    from: &'static str,
    expected: impl Fn(&[u64]) -> u64 + 'static,
) -> Case {
    let (to, same): (char, fn(u64) -> u64) = match bits {
        16 => ('h', |it| merged(it & 0x7fff > 0x7c00, it)),
        32 => ('r', |it| merged(f32::from_bits(it as u32).is_nan(), it)),
        _ => ('l', |it| merged(f64::from_bits(it).is_nan(), it)),
    };
    Case { same, ..case(text, to, from, expected) }
}

pub(crate) fn case(
    text: impl Into<String>,
    to: char,
    from: &'static str,
    expected: impl Fn(&[u64]) -> u64 + 'static,
) -> Case {
    Case { text: text.into(), to, from, expected: Box::new(expected), same: |it| it }
}

/// An integer type: its name, size, signedness and constraint.
#[derive(Clone, Copy)]
pub(crate) struct Int {
    pub(crate) name: &'static str,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) letter: char,
    /// The constraints for two and for three arguments.
    pub(crate) two: &'static str,
    pub(crate) three: &'static str,
}

const fn int(
    name: &'static str,
    bits: u32,
    signed: bool,
    two: &'static str,
    three: &'static str,
) -> Int {
    let letter = two.as_bytes()[0] as char;
    Int { name, bits, signed, letter, two, three }
}

pub(crate) const INTS: [Int; 6] = [
    int("u16", 16, false, "hh", "hhh"),
    int("u32", 32, false, "rr", "rrr"),
    int("u64", 64, false, "ll", "lll"),
    int("s16", 16, true, "hh", "hhh"),
    int("s32", 32, true, "rr", "rrr"),
    int("s64", 64, true, "ll", "lll"),
];

impl Int {
    /// Returns the value of a bit pattern.
    pub(crate) fn value(self, bits: u64) -> i128 {
        let kept = self.wrap(i128::from(bits));
        let is_negative = self.signed && kept >> (self.bits - 1) & 1 == 1;
        i128::from(kept) - if is_negative { 1 << self.bits } else { 0 }
    }

    /// Returns the lowest bits of a number.
    pub(crate) fn wrap(self, value: i128) -> u64 {
        (value & ((1 << self.bits) - 1)) as u64
    }

    /// Returns the full product, with twice the size.
    pub(crate) fn product(self, a: u64, b: u64) -> u128 {
        match self.signed {
            true => (self.value(a) * self.value(b)) as u128,
            false => (self.value(a) as u128) * (self.value(b) as u128),
        }
    }

    pub(crate) fn clamp(self, value: i128) -> u64 {
        let highest = (1_i128 << (self.bits - u32::from(self.signed))) - 1;
        let lowest = if self.signed { -highest - 1 } else { 0 };
        self.wrap(value.clamp(lowest, highest))
    }
}

/// A pseudo-random sequence (Knuth's MMIX generator) that favours edge values.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }

    fn operand(&mut self) -> u64 {
        const SPECIAL: [u64; 24] = [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            0xffff_ffff_ffff_ffff,
            0xffff_ffff_8000_0000,
            // For float and half: infinity, NaN, the smallest normal and subnormal number, -0, 1, 1.5.
            0x7f80_0000,
            0x7fc0_0000,
            0x0080_0000,
            0x8000_0001,
            0x3f80_0000,
            0xbfc0_0000,
            0x7c00_3c00,
            0x7e00_0001,
        ];
        match self.next() % 4 {
            0 => self.next() % 80,
            1 => SPECIAL[(self.next() % 24) as usize],
            2 => u64::MAX << (self.next() % 64),
            _ => self.next(),
        }
    }
}

fn type_of(letter: char) -> &'static str {
    match letter {
        'h' => "unsigned short",
        'r' => "unsigned int",
        _ => "unsigned long long",
    }
}

fn truncated(letter: char, value: u64) -> u64 {
    match letter {
        'h' => value & 0xffff,
        'r' => value & 0xffff_ffff,
        _ => value,
    }
}

/// Runs all cases in one kernel, and compares the results.
pub(crate) fn check(cases: &[Case]) {
    let mut text = String::from(
        "extern \"C\" __global__ void k(unsigned long long *out, const unsigned long long *in) {\n\
         const int row = blockIdx.x * blockDim.x + threadIdx.x;\nin += 4 * row;\nout += row;\n",
    );
    for (number, case) in cases.iter().enumerate() {
        let operands: Vec<String> = (case.from.chars().enumerate())
            .map(|(at, letter)| format!("\"{letter}\"(({})in[{at}])", type_of(letter)))
            .collect();
        let _ = writeln!(
            text,
            "{{ {} d; asm(\"{}\" : \"={}\"(d) : {}); out[{} * blockDim.x * gridDim.x] = d; }}",
            type_of(case.to),
            case.text,
            case.to,
            operands.join(", "),
            number,
        );
    }
    text.push_str("}\n");
    let mut random = Random(cases.len() as u64);
    let operands: Vec<u64> = (0..ROWS * OPERANDS).map(|_| random.operand()).collect();
    let compiler = units::compiler().optimizing_for(Optimization::Compilation);
    let source = Source { text: &text, name: "kernel.cu", ..Source::default() };
    let library = units::load_source(&compiler, &source);
    let kernel = Kernel::find(&library, "k").expect("the kernel");
    let mut results = vec![0_u64; cases.len() * ROWS];
    let (mut out, mut input) = (results.as_mut_ptr(), operands.as_ptr());
    let arguments = [units::pointer(&mut out), units::pointer(&mut input)];
    let shape = units::shape(BLOCKS as u32, THREADS as u32);
    // SAFETY: the kernel stays inside the arrays.
    unsafe { kernel.launch(&shape, &Schedule::default(), &arguments, &units::pool) }
        .expect("it runs");
    for (number, case) in cases.iter().enumerate() {
        for row in 0..ROWS {
            let own: Vec<u64> = (case.from.chars().enumerate())
                .map(|(at, letter)| truncated(letter, operands[row * OPERANDS + at]))
                .collect();
            let (found, expected) = (results[number * ROWS + row], (case.expected)(&own));
            assert_eq!(
                (case.same)(found),
                (case.same)(expected),
                "{} of {own:x?}: {found:x} for {expected:x}",
                case.text
            );
        }
    }
}
