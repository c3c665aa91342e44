//! Bits, bytes and shifts: computed bit by bit, as described in the instruction set.

use super::table::{Case, INTS, Int, case};

fn bit(value: u64, at: u32) -> bool {
    at < 64 && value >> at & 1 == 1
}

/// Returns the number with the bits that a function selects.
fn of_bits(bits: u32, chosen: impl Fn(u32) -> bool) -> u64 {
    (0..bits).filter(|&at| chosen(at)).map(|at| 1 << at).sum()
}

/// Returns the field of `a` with `c` bits, starting at `b`.
fn bfe(bits: u32, is_signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let (position, length) = ((b & 0xff) as u32, (c & 0xff) as u32);
    let last = (position + length).saturating_sub(1).min(bits - 1);
    let sign = is_signed && length > 0 && bit(a, last);
    of_bits(
        bits,
        |at| {
            if at < length && position + at < bits { bit(a, position + at) } else { sign }
        },
    )
}

fn bfi(bits: u32, a: u64, b: u64, c: u64, d: u64) -> u64 {
    let (position, length) = ((c & 0xff) as u32, (d & 0xff) as u32);
    of_bits(bits, |at| {
        if at >= position && at < position + length { bit(a, at - position) } else { bit(b, at) }
    })
}

fn bfind(bits: u32, is_signed: bool, a: u64, counts_shift: bool) -> u64 {
    let sought = !(is_signed && bit(a, bits - 1));
    match (0..bits).rev().find(|&at| bit(a, at) == sought) {
        Some(at) if counts_shift => u64::from(bits - 1 - at),
        Some(at) => u64::from(at),
        None => 0xffff_ffff,
    }
}

fn shift_right(it: Int, a: u64, by: u64) -> u64 {
    let by = by.min(u64::from(it.bits)) as u32;
    let fill = it.signed && bit(a, it.bits - 1);
    of_bits(it.bits, |at| if at + by < it.bits { bit(a, at + by) } else { fill })
}

fn shift_left(bits: u32, a: u64, by: u64) -> u64 {
    of_bits(bits, |at| u64::from(at) >= by && bit(a, at - by as u32))
}

fn funnel(x: &[u64], is_left: bool, is_wrapped: bool) -> u64 {
    let by = if is_wrapped { x[2] % 32 } else { x[2].min(32) } as u32;
    let both = u128::from(x[1]) << 32 | u128::from(x[0]);
    let result = if is_left { both << by >> 32 } else { both >> by };
    result as u64 & 0xffff_ffff
}

fn bmsk(clamps: bool, a: u64, b: u64) -> u64 {
    let (first, width) = if clamps { (a, b) } else { (a % 32, b % 32) };
    of_bits(32, |at| u64::from(at) >= first && u64::from(at) < first.saturating_add(width))
}

fn szext(clamps: bool, is_signed: bool, a: u64, b: u64) -> u64 {
    let width = if clamps { b.min(32) } else { b % 32 } as u32;
    let sign = is_signed && width > 0 && bit(a, width - 1);
    of_bits(32, |at| if at < width { bit(a, at) } else { sign })
}

/// Returns the digits of the bytes that `prmt` selects, lowest first.
fn permuted(x: &[u64], digits: [u64; 4]) -> u64 {
    let bytes = x[1] << 32 | x[0];
    let byte = |digit: u64| {
        let byte = bytes >> (8 * (digit & 7)) & 0xff;
        if digit & 8 == 0 { byte } else { (byte >> 7) * 0xff }
    };
    (0..4).map(|at| byte(digits[at]) << (8 * at)).sum()
}

fn of_two_sizes() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, letter, bits, one) in [("32", 'r', 32, "r"), ("64", 'l', 64, "l")] {
        let field = if bits == 32 { "rrr" } else { "lrr" };
        let insert = if bits == 32 { "rrrr" } else { "llrr" };
        all.push(case(format!("popc.b{name} %0, %1;"), 'r', one, |x| x[0].count_ones().into()));
        all.push(case(format!("clz.b{name} %0, %1;"), 'r', one, move |x| {
            (0..bits).rev().position(|at| bit(x[0], at)).unwrap_or(bits as usize) as u64
        }));
        all.push(case(format!("brev.b{name} %0, %1;"), letter, one, move |x| {
            of_bits(bits, |at| bit(x[0], bits - 1 - at))
        }));
        all.push(case(format!("bfi.b{name} %0, %1, %2, %3, %4;"), letter, insert, move |x| {
            bfi(bits, x[0], x[1], x[2], x[3])
        }));
        for (kind, is_signed) in [("u", false), ("s", true)] {
            all.push(case(format!("bfe.{kind}{name} %0, %1, %2, %3;"), letter, field, move |x| {
                bfe(bits, is_signed, x[0], x[1], x[2])
            }));
            all.push(case(format!("bfind.{kind}{name} %0, %1;"), 'r', one, move |x| {
                bfind(bits, is_signed, x[0], false)
            }));
            all.push(case(format!("bfind.shiftamt.{kind}{name} %0, %1;"), 'r', one, move |x| {
                bfind(bits, is_signed, x[0], true)
            }));
        }
    }
    for (name, letter, bits, one, two) in
        [("16", 'h', 16, "h", "hh"), ("32", 'r', 32, "r", "rr"), ("64", 'l', 64, "l", "ll")]
    {
        let by = match bits {
            16 => "hr",
            32 => "rr",
            _ => "lr",
        };
        all.push(case(format!("and.b{name} %0, %1, %2;"), letter, two, |x| x[0] & x[1]));
        all.push(case(format!("or.b{name} %0, %1, %2;"), letter, two, |x| x[0] | x[1]));
        all.push(case(format!("xor.b{name} %0, %1, %2;"), letter, two, |x| x[0] ^ x[1]));
        all.push(case(format!("not.b{name} %0, %1;"), letter, one, move |x| {
            of_bits(bits, |at| !bit(x[0], at))
        }));
        all.push(case(format!("cnot.b{name} %0, %1;"), letter, one, |x| u64::from(x[0] == 0)));
        all.push(case(format!("shl.b{name} %0, %1, %2;"), letter, by, move |x| {
            shift_left(bits, x[0], x[1])
        }));
    }
    for it in INTS {
        let by = match it.bits {
            16 => "hr",
            32 => "rr",
            _ => "lr",
        };
        all.push(case(format!("shr.{} %0, %1, %2;", it.name), it.letter, by, move |x| {
            shift_right(it, x[0], x[1])
        }));
    }
    all
}

fn of_words() -> Vec<Case> {
    let mut all = Vec::new();
    for (mode, is_wrapped) in [("wrap", true), ("clamp", false)] {
        for (side, is_left) in [("l", true), ("r", false)] {
            all.push(case(
                format!("shf.{side}.{mode}.b32 %0, %1, %2, %3;"),
                'r',
                "rrr",
                move |x| funnel(x, is_left, is_wrapped),
            ));
        }
        all.push(case(format!("bmsk.{mode}.b32 %0, %1, %2;"), 'r', "rr", move |x| {
            bmsk(!is_wrapped, x[0], x[1])
        }));
        for (kind, is_signed) in [("u32", false), ("s32", true)] {
            all.push(case(format!("szext.{mode}.{kind} %0, %1, %2;"), 'r', "rr", move |x| {
                szext(!is_wrapped, is_signed, x[0], x[1])
            }));
        }
    }
    for table in [0, 0x96, 0xca, 0xe8, 0x1b, 0x80, 0xff] {
        all.push(case(format!("lop3.b32 %0, %1, %2, %3, {table:#x};"), 'r', "rrr", move |x| {
            of_bits(32, |at| {
                let row = u32::from(bit(x[0], at)) << 2
                    | u32::from(bit(x[1], at)) << 1
                    | u32::from(bit(x[2], at));
                table >> row & 1 == 1
            })
        }));
    }
    all.push(case("prmt.b32 %0, %1, %2, %3;", 'r', "rrr", |x| {
        permuted(x, [x[2] & 15, x[2] >> 4 & 15, x[2] >> 8 & 15, x[2] >> 12 & 15])
    }));
    // The selected bytes for each value of the control, lowest first.
    let modes: [(&str, [[u64; 4]; 4]); 6] = [
        ("f4e", [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]),
        ("b4e", [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]]),
        ("rc8", [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecl", [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]]),
        ("ecr", [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]]),
        ("rc16", [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]]),
    ];
    for (mode, rows) in modes {
        all.push(case(format!("prmt.b32.{mode} %0, %1, %2, %3;"), 'r', "rrr", move |x| {
            permuted(x, rows[(x[2] & 3) as usize])
        }));
    }
    all.push(case("fns.b32 %0, %1, 5, 3;", 'r', "r", |x| {
        (5..32).filter(|&at| bit(x[0], at)).nth(2).map_or(0xffff_ffff, u64::from)
    }));
    all.push(case("fns.b32 %0, %1, 20, -2;", 'r', "r", |x| {
        (0..=20).rev().filter(|&at| bit(x[0], at)).nth(1).map_or(0xffff_ffff, u64::from)
    }));
    all
}

/// Parts of registers, and registers made of parts.
fn of_parts() -> Vec<Case> {
    vec![
        case("mov.b64 %0, {%1, %2};", 'l', "rr", |x| x[1] << 32 | x[0]),
        case("mov.b32 %0, {%1, %2};", 'r', "hh", |x| x[1] << 16 | x[0]),
        case("mov.b64 %0, {%1, %2, %1, %2};", 'l', "hh", |x| (x[1] << 16 | x[0]) * 0x1_0000_0001),
        case("{.reg .b32 a, b; mov.b64 {a, b}, %1; sub.u32 %0, b, a;}", 'r', "l", |x| {
            (x[0] >> 32).wrapping_sub(x[0]) & 0xffff_ffff
        }),
        case("{.reg .b32 a; mov.b64 {_, a}, %1; mov.b32 %0, a;}", 'r', "l", |x| x[0] >> 32),
        case("{.reg .b16 a, b; mov.b32 {a, b}, %1; mov.b32 %0, {b, a};}", 'r', "r", |x| {
            (x[0] << 16 | x[0] >> 16) & 0xffff_ffff
        }),
        case(
            "{.reg .b128 q; .reg .b64 t; mov.b128 q, {%1, %2}; mov.b128 {_, t}, q; mov.b64 %0, t;}",
            'l',
            "ll",
            |x| x[1],
        ),
        case(
            "{.reg .pred p, q, s; setp.ne.b32 p, %1, 0; setp.gt.s32 q, %2, 4; and.pred s, p, q; xor.pred s, s, q; not.pred s, s; selp.b32 %0, 7, 9, s;}",
            'r',
            "rr",
            |x| {
                let (p, q) = (x[0] != 0, x[1] as i32 > 4);
                if (p && q) ^ q { 9 } else { 7 }
            },
        ),
        case(
            "{.reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;}",
            'r',
            "rr",
            |x| {
                if (x[0] as i32) < x[1] as i32 { 1 } else { 2 }
            },
        ),
        case(
            "{.reg .pred p, c; setp.eq.u32 c, %3, 0; setp.ge.xor.u32 p, %1, %2, !c; selp.u32 %0, 1, 0, p;}",
            'r',
            "rrr",
            |x| u64::from((x[0] >= x[1]) ^ (x[2] != 0)),
        ),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = of_two_sizes();
    all.extend(of_words());
    all.extend(of_parts());
    all
}
