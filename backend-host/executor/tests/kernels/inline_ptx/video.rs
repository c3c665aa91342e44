//! Video instructions: parts of words, by the formulas of the instruction set.

use super::table::{Case, case};

/// Returns part `number` of a word, with `size` bits.
fn part(word: u64, size: u32, number: u32, is_signed: bool) -> i128 {
    let bits = i128::from(word >> (size * number)) & ((1 << size) - 1);
    if is_signed && bits >> (size - 1) & 1 == 1 { bits - (1 << size) } else { bits }
}

fn clamp(value: i128, size: u32, is_signed: bool) -> i128 {
    let highest = (1 << (size - u32::from(is_signed))) - 1;
    value.clamp(if is_signed { -highest - 1 } else { 0 }, highest)
}

fn word(value: i128) -> u64 {
    (value & 0xffff_ffff) as u64
}

type Operation = fn(i128, i128) -> i128;
const OPERATIONS: [(&str, Operation); 5] = [
    ("vadd", |a, b| a + b),
    ("vsub", |a, b| a - b),
    ("vabsdiff", |a, b| (a - b).abs()),
    ("vmin", i128::min),
    ("vmax", i128::max),
];

fn scalars() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, operation) in OPERATIONS {
        for (kind, is_signed) in [("u32", false), ("s32", true)] {
            let of = move |x: &[u64], a: (u32, u32), b: (u32, u32)| {
                operation(part(x[0], a.0, a.1, is_signed), part(x[1], b.0, b.1, is_signed))
            };
            let types = format!("{kind}.{kind}.{kind}");
            all.push(case(format!("{name}.{types} %0, %1, %2;"), 'r', "rr", move |x| {
                word(of(x, (32, 0), (32, 0)))
            }));
            all.push(case(format!("{name}.{types}.sat %0, %1, %2.b3;"), 'r', "rr", move |x| {
                word(clamp(of(x, (32, 0), (8, 3)), 32, is_signed))
            }));
            all.push(case(
                format!("{name}.{types}.add %0, %1.h1, %2.b0, %3;"),
                'r',
                "rrr",
                move |x| word(of(x, (16, 1), (8, 0)) + i128::from(x[2])),
            ));
            all.push(case(
                format!("{name}.{types}.max %0, %1.b2, %2.h0, %3;"),
                'r',
                "rrr",
                move |x| {
                    let value = part(word(of(x, (8, 2), (16, 0))), 32, 0, is_signed);
                    word(value.max(part(x[2], 32, 0, is_signed)))
                },
            ));
            all.push(case(format!("{{.reg .u32 t; mov.u32 t, 0; {name}.{types}.sat t.b1, %1, %2, %3; mov.b32 %0, t;}}"), 'r', "rrr", move |x| {
                let byte = clamp(of(x, (32, 0), (32, 0)), 8, is_signed);
                x[2] & 0xffff_00ff | word(byte << 8) & 0xff00
            }));
        }
    }
    all.push(case("vset.u32.s32.lt %0, %1.b0, %2.b1;", 'r', "rr", |x| {
        u64::from(part(x[0], 8, 0, false) < part(x[1], 8, 1, true))
    }));
    all.push(case("vset.s32.s32.ge.add %0, %1, %2, %3;", 'r', "rrr", |x| {
        word(i128::from(part(x[0], 32, 0, true) >= part(x[1], 32, 0, true)) + i128::from(x[2]))
    }));
    all.push(case("vshl.u32.u32.u32.wrap %0, %1, %2;", 'r', "rr", |x| {
        word(i128::from(x[0]) << (x[1] % 32))
    }));
    all.push(case("vshr.s32.s32.u32.clamp %0, %1, %2;", 'r', "rr", |x| {
        word(part(x[0], 32, 0, true) >> x[1].min(32))
    }));
    all.push(case("vmad.u32.u32.u32 %0, %1.h0, %2.h1, %3;", 'r', "rrr", |x| {
        word(part(x[0], 16, 0, false) * part(x[1], 16, 1, false) + i128::from(x[2]))
    }));
    all.push(case("vmad.s32.s32.s32.sat %0, %1, %2, %3;", 'r', "rrr", |x| {
        word(clamp(
            part(x[0], 32, 0, true) * part(x[1], 32, 0, true) + part(x[2], 32, 0, true),
            32,
            true,
        ))
    }));
    all.extend(signed_sums());
    all
}

/// `vmad` with signs before its operands. The sign of one factor makes the product negative, and any sign
/// makes the sum signed.
fn signed_sums() -> Vec<Case> {
    let mut all = Vec::new();
    for (kind, is_signed) in [("u32", false), ("s32", true)] {
        for (a, b, c) in
            [("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-"), ("-", "-", "-")]
        {
            for (end, shift) in [("", 0), (".shr7", 7), (".sat", 0), (".sat.shr15", 15)] {
                let text = format!("vmad.s32.{kind}.{kind}{end} %0, {a}%1.h1, {b}%2.b2, {c}%3;");
                all.push(case(text, 'r', "rrr", move |x| {
                    let has_sign = is_signed || a != b || c == "-";
                    let product = part(x[0], 16, 1, is_signed) * part(x[1], 8, 2, is_signed);
                    let added = part(x[2], 32, 0, has_sign);
                    let sum = if a == b { product } else { -product }
                        + if c == "-" { -added } else { added };
                    let sum = sum >> shift;
                    word(if end.contains("sat") { clamp(sum, 32, has_sign) } else { sum })
                }));
            }
        }
    }
    all
}

fn vectors() -> Vec<Case> {
    // Rounds to nearest, ties away from zero.
    let average: Operation = |a, b| if a + b >= 0 { (a + b + 1) / 2 } else { -((1 - a - b) / 2) };
    let mut all = Vec::new();
    for (name, operation) in OPERATIONS.into_iter().chain([("vavrg", average)]) {
        for (lanes, kind, is_signed) in
            [(2, "u32", false), (2, "s32", true), (4, "u32", false), (4, "s32", true)]
        {
            let size = 32 / lanes;
            let types = format!("{kind}.{kind}.{kind}");
            let of = move |x: &[u64], at: u32| {
                operation(part(x[0], size, at, is_signed), part(x[1], size, at, is_signed))
            };
            let mask = (1_i128 << size) - 1;
            let merged = move |x: &[u64], is_saturated: bool| {
                (0..lanes)
                    .map(|at| {
                        let value = of(x, at);
                        let value =
                            if is_saturated { clamp(value, size, is_signed) } else { value };
                        ((value & mask) << (size * at)) as u64
                    })
                    .sum()
            };
            all.push(case(
                format!("{name}{lanes}.{types} %0, %1, %2, %3;"),
                'r',
                "rrr",
                move |x| merged(x, false),
            ));
            all.push(case(
                format!("{name}{lanes}.{types}.sat %0, %1, %2, %3;"),
                'r',
                "rrr",
                move |x| merged(x, true),
            ));
            all.push(case(
                format!("{name}{lanes}.{types}.add %0, %1, %2, %3;"),
                'r',
                "rrr",
                move |x| word((0..lanes).map(|at| of(x, at)).sum::<i128>() + i128::from(x[2])),
            ));
        }
    }
    // Selected parts, and some of the results.
    all.push(case(
        "{.reg .u32 t; vadd4.u32.u32.u32 t.b20, %1.b7310, %2.b0123, %3; mov.b32 %0, t;}",
        'r',
        "rrr",
        |x| {
            let bytes = x[1] << 32 | x[0];
            let byte = |at: u32| bytes >> (8 * at) & 0xff;
            let (first, third) = (byte(0) + byte(3), byte(3) + byte(1));
            x[2] & 0xff00_ff00 | first & 0xff | (third & 0xff) << 16
        },
    ));
    all.push(case(
        "{.reg .u32 t; vset2.s32.s32.gt t.h1, %1.h01, %2.h23, %3; mov.b32 %0, t;}",
        'r',
        "rrr",
        |x| {
            // The upper results use the lower half of the first operand, and the lower results the other one.
            let holds = part(x[0], 16, 0, true) > part(x[1], 16, 0, true);
            x[2] & 0xffff | u64::from(holds) << 16
        },
    ));
    all
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = scalars();
    all.extend(vectors());
    all
}
