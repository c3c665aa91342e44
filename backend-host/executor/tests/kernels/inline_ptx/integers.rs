//! Integer arithmetic, by the formulas of the instruction set.

use super::table::{Case, INTS, Int, case};

/// Returns the signed value of the lowest bits.
fn signed(value: u64, bits: u32) -> i128 {
    let kept = i128::from(value) & ((1 << bits) - 1);
    if kept >> (bits - 1) & 1 == 1 { kept - (1 << bits) } else { kept }
}

/// Instructions for all integer types.
fn of_all_types(it: Int) -> Vec<Case> {
    let Int { name, letter, two, three, bits, .. } = it;
    let high =
        move |a: u64, b: u64| it.wrap((it.product(a, b) >> bits) as i128 & ((1 << bits) - 1));
    let low = move |a: u64, b: u64| it.wrap((it.product(a, b) & ((1 << bits) - 1)) as i128);
    let mut all = vec![
        case(format!("add.{name} %0, %1, %2;"), letter, two, move |x| {
            it.wrap(it.value(x[0]) + it.value(x[1]))
        }),
        case(format!("sub.{name} %0, %1, %2;"), letter, two, move |x| {
            it.wrap(it.value(x[0]) - it.value(x[1]))
        }),
        case(format!("mul.lo.{name} %0, %1, %2;"), letter, two, move |x| low(x[0], x[1])),
        case(format!("mul.hi.{name} %0, %1, %2;"), letter, two, move |x| high(x[0], x[1])),
        case(format!("mad.lo.{name} %0, %1, %2, %3;"), letter, three, move |x| {
            it.wrap(i128::from(low(x[0], x[1])) + it.value(x[2]))
        }),
        case(format!("mad.hi.{name} %0, %1, %2, %3;"), letter, three, move |x| {
            it.wrap(i128::from(high(x[0], x[1])) + it.value(x[2]))
        }),
        case(format!("sad.{name} %0, %1, %2, %3;"), letter, three, move |x| {
            it.wrap(it.value(x[2]) + (it.value(x[0]) - it.value(x[1])).abs())
        }),
        case(format!("div.{name} %0, %1, %2;"), letter, two, move |x| match it.value(x[1]) {
            0 => it.wrap(-1),
            divisor => it.wrap(it.value(x[0]) / divisor),
        }),
        case(format!("rem.{name} %0, %1, %2;"), letter, two, move |x| match it.value(x[1]) {
            0 => x[0],
            divisor => it.wrap(it.value(x[0]) % divisor),
        }),
        case(format!("min.{name} %0, %1, %2;"), letter, two, move |x| {
            it.wrap(it.value(x[0]).min(it.value(x[1])))
        }),
        case(format!("max.{name} %0, %1, %2;"), letter, two, move |x| {
            it.wrap(it.value(x[0]).max(it.value(x[1])))
        }),
        case(format!("sub.{name} %0, -(2 + 0x5), %1;"), letter, &two[1..], move |x| {
            it.wrap(-7 - it.value(x[0]))
        }),
    ];
    if it.signed {
        let one = &two[1..];
        all.push(case(format!("abs.{name} %0, %1;"), letter, one, move |x| {
            it.wrap(it.value(x[0]).abs())
        }));
        all.push(case(format!("neg.{name} %0, %1;"), letter, one, move |x| {
            it.wrap(-it.value(x[0]))
        }));
    }
    if bits < 64 {
        let wide = if bits == 16 { 'r' } else { 'l' };
        let added = if bits == 16 { "hhr" } else { "rrl" };
        let twice = move |value: u128| (value & ((1 << (2 * bits)) - 1)) as u64;
        all.push(case(format!("mul.wide.{name} %0, %1, %2;"), wide, two, move |x| {
            twice(it.product(x[0], x[1]))
        }));
        all.push(case(format!("mad.wide.{name} %0, %1, %2, %3;"), wide, added, move |x| {
            twice(it.product(x[0], x[1]).wrapping_add(u128::from(x[2])))
        }));
    }
    for (symbol, holds) in COMPARISONS {
        let text =
            format!("{{.reg .pred p; setp.{symbol}.{name} p, %1, %2; selp.{name} %0, 1, 0, p;}}");
        all.push(case(text, letter, two, move |x| {
            u64::from(holds(it.value(x[0]), it.value(x[1])))
        }));
        let text = format!("set.{symbol}.u32.{name} %0, %1, %2;");
        all.push(case(text, 'r', two, move |x| {
            if holds(it.value(x[0]), it.value(x[1])) { 0xffff_ffff } else { 0 }
        }));
    }
    all
}

type Comparison = fn(i128, i128) -> bool;
const COMPARISONS: [(&str, Comparison); 6] = [
    ("eq", |a, b| a == b),
    ("ne", |a, b| a != b),
    ("lt", |a, b| a < b),
    ("le", |a, b| a <= b),
    ("gt", |a, b| a > b),
    ("ge", |a, b| a >= b),
];

/// Instructions for only some types.
fn of_words() -> Vec<Case> {
    let (u32, s32) = (INTS[1], INTS[4]);
    let mut all =
        vec![
            case("add.sat.s32 %0, %1, %2;", 'r', "rr", move |x| {
                s32.clamp(s32.value(x[0]) + s32.value(x[1]))
            }),
            case("sub.sat.s32 %0, %1, %2;", 'r', "rr", move |x| {
                s32.clamp(s32.value(x[0]) - s32.value(x[1]))
            }),
            case("mad.hi.sat.s32 %0, %1, %2, %3;", 'r', "rrr", move |x| {
                s32.clamp(((s32.value(x[0]) * s32.value(x[1])) >> 32) + s32.value(x[2]))
            }),
            case("min.relu.s32 %0, %1, %2;", 'r', "rr", move |x| {
                s32.wrap(s32.value(x[0]).min(s32.value(x[1])).max(0))
            }),
            case("{.reg .pred p; setp.lo.u32 p, %1, %2; selp.u32 %0, 3, 4, p;}", 'r', "rr", |x| {
                if x[0] < x[1] { 3 } else { 4 }
            }),
            case("slct.u32.s32 %0, %1, %2, %3;", 'r', "rrr", |x| {
                if x[2] >> 31 == 0 { x[0] } else { x[1] }
            }),
            case("slct.b64.s32 %0, %1, %2, %3;", 'l', "llr", |x| {
                if x[2] >> 31 == 0 { x[0] } else { x[1] }
            }),
        ];
    for (name, is_signed) in [("u32", false), ("s32", true)] {
        let of_24 = move |value: u64| {
            if is_signed { signed(value, 24) } else { i128::from(value & 0xff_ffff) }
        };
        let product = move |x: &[u64]| of_24(x[0]) * of_24(x[1]);
        all.push(case(format!("mul24.lo.{name} %0, %1, %2;"), 'r', "rr", move |x| {
            u32.wrap(product(x))
        }));
        all.push(case(format!("mul24.hi.{name} %0, %1, %2;"), 'r', "rr", move |x| {
            u32.wrap(product(x) >> 16)
        }));
        all.push(case(format!("mad24.lo.{name} %0, %1, %2, %3;"), 'r', "rrr", move |x| {
            u32.wrap(product(x) + i128::from(x[2]))
        }));
        all.push(case(format!("mad24.hi.{name} %0, %1, %2, %3;"), 'r', "rrr", move |x| {
            u32.wrap((product(x) >> 16) + i128::from(x[2]))
        }));
        for (other, other_signed) in [("u32", false), ("s32", true)] {
            let byte = |value: u64, at: u32, has_sign: bool| {
                let bits = value >> (8 * at) & 0xff;
                if has_sign { signed(bits, 8) } else { i128::from(bits) }
            };
            let half = |value: u64, at: u32, has_sign: bool| {
                let bits = value >> (16 * at) & 0xffff;
                if has_sign { signed(bits, 16) } else { i128::from(bits) }
            };
            all.push(case(format!("dp4a.{name}.{other} %0, %1, %2, %3;"), 'r', "rrr", move |x| {
                let sum: i128 =
                    (0..4).map(|at| byte(x[0], at, is_signed) * byte(x[1], at, other_signed)).sum();
                u32.wrap(sum + i128::from(x[2]))
            }));
            for (part, first) in [("lo", 0), ("hi", 2)] {
                all.push(case(
                    format!("dp2a.{part}.{name}.{other} %0, %1, %2, %3;"),
                    'r',
                    "rrr",
                    move |x| {
                        let sum: i128 = (0..2)
                            .map(|at| {
                                half(x[0], at, is_signed) * byte(x[1], first + at, other_signed)
                            })
                            .sum();
                        u32.wrap(sum + i128::from(x[2]))
                    },
                ));
            }
        }
    }
    for (name, is_signed) in [("u16x2", false), ("s16x2", true)] {
        let halves = move |x: &[u64], of: fn(i128, i128) -> i128| {
            let part = |value: u64, at: u32| {
                let bits = value >> (16 * at) & 0xffff;
                if is_signed { signed(bits, 16) } else { i128::from(bits) }
            };
            let result = |at| (of(part(x[0], at), part(x[1], at)) & 0xffff) as u64;
            result(1) << 16 | result(0)
        };
        all.push(case(format!("add.{name} %0, %1, %2;"), 'r', "rr", move |x| {
            halves(x, |a, b| a + b)
        }));
        all.push(case(format!("min.{name} %0, %1, %2;"), 'r', "rr", move |x| halves(x, i128::min)));
        all.push(case(format!("max.{name} %0, %1, %2;"), 'r', "rr", move |x| halves(x, i128::max)));
    }
    all
}

/// Multi-word sums and products, with carries between the words.
fn of_carries() -> Vec<Case> {
    let u32 = INTS[1];
    let whole = |low: u64, high: u64| u128::from(high) << 32 | u128::from(low);
    let upper = |value: u128| (value >> 32) as u64 & 0xffff_ffff;
    vec![
        case("{.reg .u32 t; add.cc.u32 t, %1, %3; addc.u32 %0, %2, %4;}", 'r', "rrrr", move |x| {
            upper(whole(x[0], x[1]) + whole(x[2], x[3]))
        }),
        case("{.reg .u32 t; sub.cc.u32 t, %1, %3; subc.u32 %0, %2, %4;}", 'r', "rrrr", move |x| {
            upper(whole(x[0], x[1]).wrapping_sub(whole(x[2], x[3])))
        }),
        case(
            "{.reg .u64 t; add.cc.u64 t, %1, %3; addc.cc.u64 t, %2, %4; addc.u64 %0, 0, 0;}",
            'l',
            "llll",
            |x| {
                let low = u128::from(x[0]) + u128::from(x[2]);
                ((u128::from(x[1]) + u128::from(x[3]) + (low >> 64)) >> 64) as u64
            },
        ),
        case(
            "{.reg .u64 t; sub.cc.u64 t, %1, %3; subc.cc.u64 t, %2, %4; subc.u64 %0, 0, 0;}",
            'l',
            "llll",
            |x| {
                let borrow = i128::from(x[0] < x[2]);
                if i128::from(x[1]) - i128::from(x[3]) - borrow < 0 { u64::MAX } else { 0 }
            },
        ),
        case(
            "{.reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, %4;}",
            'r',
            "rrrr",
            move |x| upper(u128::from(x[0]) * u128::from(x[1]) + whole(x[2], x[3])),
        ),
        case(
            "{.reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.cc.u32 t, %1, %2, %4; addc.u32 %0, 0, 0;}",
            'r',
            "rrrr",
            move |x| ((u128::from(x[0]) * u128::from(x[1]) + whole(x[2], x[3])) >> 64) as u64,
        ),
        case(
            "{.reg .s64 t; mad.lo.cc.s64 t, %1, %2, %3; madc.hi.s64 %0, %1, %2, %4;}",
            'l',
            "llll",
            |x| {
                let product = i128::from(x[0] as i64) * i128::from(x[1] as i64);
                (product.wrapping_add((u128::from(x[3]) << 64 | u128::from(x[2])) as i128) >> 64)
                    as u64
            },
        ),
        case(
            "{.reg .u32 t; add.cc.u32 t, %1, %2; add.cc.u32 t, 0, 0; addc.u32 %0, 0, 0;}",
            'r',
            "rr",
            |_| 0,
        ),
        case(
            "{.reg .u32 t; add.cc.u32 t, %1, %2; add.u32 t, %1, %1; addc.u32 %0, 0, 0;}",
            'r',
            "rr",
            move |x| u32.wrap((i128::from(x[0]) + i128::from(x[1])) >> 32),
        ),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all: Vec<Case> = INTS.into_iter().flat_map(of_all_types).collect();
    all.extend(of_words());
    all.extend(of_carries());
    all
}
