//! Floating point and conversions: exact arithmetic in a wider type, rounded as the instruction states.

use super::table::{Case, case, float_case};

/// The rounding of a result.
#[derive(Clone, Copy, PartialEq)]
enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}

const ROUNDINGS: [(&str, Round); 4] =
    [("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)];

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits(value: f32) -> u64 {
    value.to_bits().into()
}

/// Rounds an exact number to a float.
fn rounded(exact: f64, how: Round) -> f32 {
    let nearest = exact as f32;
    let wide = f64::from(nearest);
    match how {
        Round::Down if wide > exact => nearest.next_down(),
        Round::Up if wide < exact => nearest.next_up(),
        Round::Zero if wide.abs() > exact.abs() => {
            if exact > 0.0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        _ => nearest,
    }
}

fn flushed(value: f32) -> f32 {
    if value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
}

fn saturated(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

/// Rounds a number to an integer.
fn whole(value: f64, how: Round) -> f64 {
    match how {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

fn arithmetic() -> Vec<Case> {
    let mut all = vec![
        float_case("add.f32 %0, %1, %2;", 32, "rr", |x| bits(single(x[0]) + single(x[1]))),
        float_case("add.rn.f32 %0, %1, %2;", 32, "rr", |x| bits(single(x[0]) + single(x[1]))),
        float_case("sub.f32 %0, %1, %2;", 32, "rr", |x| bits(single(x[0]) - single(x[1]))),
        float_case("add.ftz.f32 %0, %1, %2;", 32, "rr", |x| {
            bits(flushed(flushed(single(x[0])) + flushed(single(x[1]))))
        }),
        float_case("add.sat.f32 %0, %1, %2;", 32, "rr", |x| {
            bits(saturated(single(x[0]) + single(x[1])))
        }),
        float_case("add.f32 %0, %1, 1.5;", 32, "r", |x| bits(single(x[0]) + 1.5)),
        float_case("mul.f32 %0, %1, 0fC0000000;", 32, "r", |x| bits(single(x[0]) * -2.0)),
        float_case("fma.rn.f32 %0, %1, %2, %3;", 32, "rrr", |x| {
            bits(single(x[0]).mul_add(single(x[1]), single(x[2])))
        }),
        float_case("mad.rn.f64 %0, %1, %2, %3;", 64, "lll", |x| {
            f64::from_bits(x[0]).mul_add(f64::from_bits(x[1]), f64::from_bits(x[2])).to_bits()
        }),
        float_case("div.rn.f32 %0, %1, %2;", 32, "rr", |x| bits(single(x[0]) / single(x[1]))),
        float_case("rcp.rn.f32 %0, %1;", 32, "r", |x| bits(1.0 / single(x[0]))),
        float_case("sqrt.rn.f32 %0, %1;", 32, "r", |x| bits(single(x[0]).sqrt())),
        float_case("add.f64 %0, %1, %2;", 64, "ll", |x| {
            (f64::from_bits(x[0]) + f64::from_bits(x[1])).to_bits()
        }),
        float_case("div.rn.f64 %0, %1, %2;", 64, "ll", |x| {
            (f64::from_bits(x[0]) / f64::from_bits(x[1])).to_bits()
        }),
        float_case("mul.f64 %0, %1, 0d4008000000000000;", 64, "l", |x| {
            (f64::from_bits(x[0]) * 3.0).to_bits()
        }),
        case("neg.f32 %0, %1;", 'r', "r", |x| x[0] ^ 0x8000_0000),
        case("abs.f32 %0, %1;", 'r', "r", |x| x[0] & 0x7fff_ffff),
        case("abs.f64 %0, %1;", 'l', "l", |x| x[0] & !(1 << 63)),
        case("copysign.f32 %0, %1, %2;", 'r', "rr", |x| x[0] & 0x8000_0000 | x[1] & 0x7fff_ffff),
        case("slct.f32.f32 %0, %1, %2, %3;", 'r', "rrr", |x| {
            if single(x[2]) >= 0.0 { x[0] } else { x[1] }
        }),
    ];
    for (name, how) in ROUNDINGS {
        // A product has at most 48 bits, which fit a double unless it is too small.
        all.push(float_case(format!("mul.{name}.f32 %0, %1, %2;"), 32, "rr", move |x| {
            bits(rounded(f64::from(single(x[0])) * f64::from(single(x[1])), how))
        }));
        all.push(float_case(format!("cvt.{name}.f32.f64 %0, %1;"), 32, "l", move |x| {
            bits(rounded(f64::from_bits(x[0]), how))
        }));
        all.push(float_case(format!("cvt.{name}.f32.s32 %0, %1;"), 32, "r", move |x| {
            bits(rounded(f64::from(x[0] as i32), how))
        }));
        all.push(float_case(format!("cvt.{name}.f32.u32 %0, %1;"), 32, "r", move |x| {
            bits(rounded(f64::from(x[0] as u32), how))
        }));
    }
    for (name, is_max) in [("min", false), ("max", true)] {
        let plain = move |x: f32, y: f32| match (x.is_nan(), y.is_nan()) {
            (true, _) => y,
            (_, true) => x,
            // A negative zero is less than a positive one.
            _ if x == y => {
                let is_first = x.is_sign_positive() == is_max;
                if is_first { x } else { y }
            }
            _ => {
                if (x > y) == is_max {
                    x
                } else {
                    y
                }
            }
        };
        all.push(float_case(format!("{name}.f32 %0, %1, %2;"), 32, "rr", move |x| {
            bits(plain(single(x[0]), single(x[1])))
        }));
        all.push(float_case(format!("{name}.NaN.f32 %0, %1, %2;"), 32, "rr", move |x| {
            let (a, b) = (single(x[0]), single(x[1]));
            bits(if a.is_nan() || b.is_nan() { f32::NAN } else { plain(a, b) })
        }));
        all.push(float_case(format!("{name}.xorsign.abs.f32 %0, %1, %2;"), 32, "rr", move |x| {
            let size = plain(single(x[0]).abs(), single(x[1]).abs());
            bits(size) | (x[0] ^ x[1]) & 0x8000_0000
        }));
    }
    all
}

type Comparison = fn(f32, f32) -> bool;
type Class = fn(f32) -> bool;
type Function = fn(f64) -> f64;

fn comparisons() -> Vec<Case> {
    let ordered: [(&str, Comparison); 8] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| !a.is_nan() && !b.is_nan() && a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
    ];
    let unordered =
        [("equ", "eq"), ("neu", "ne"), ("ltu", "lt"), ("leu", "le"), ("gtu", "gt"), ("geu", "ge")];
    let mut all = Vec::new();
    for (name, plain) in unordered {
        let plain = ordered.iter().find(|it| it.0 == plain).expect("a comparison").1;
        all.push(case(format!("set.{name}.u32.f32 %0, %1, %2;"), 'r', "rr", move |x| {
            let (a, b) = (single(x[0]), single(x[1]));
            if a.is_nan() || b.is_nan() || plain(a, b) { 0xffff_ffff } else { 0 }
        }));
    }
    for (name, holds) in ordered {
        let text = format!("{{.reg .pred p; setp.{name}.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}}");
        all.push(case(text, 'r', "rr", move |x| u64::from(holds(single(x[0]), single(x[1])))));
        all.push(case(format!("set.{name}.f32.f32 %0, %1, %2;"), 'r', "rr", move |x| {
            bits(f32::from(u8::from(holds(single(x[0]), single(x[1])))))
        }));
    }
    let classes: [(&str, Class); 6] = [
        ("finite", f32::is_finite),
        ("infinite", f32::is_infinite),
        ("number", |it| !it.is_nan()),
        ("notanumber", f32::is_nan),
        ("normal", |it| it.is_normal()),
        ("subnormal", f32::is_subnormal),
    ];
    for (name, holds) in classes {
        let text = format!("{{.reg .pred p; testp.{name}.f32 p, %1; selp.b32 %0, 1, 0, p;}}");
        all.push(case(text, 'r', "r", move |x| u64::from(holds(single(x[0])))));
    }
    all
}

/// Conversions between all integer types, and from floating point to them.
fn to_integers() -> Vec<Case> {
    let kinds = [
        ("u8", 8, false),
        ("s8", 8, true),
        ("u16", 16, false),
        ("s16", 16, true),
        ("u32", 32, false),
        ("s32", 32, true),
        ("u64", 64, false),
        ("s64", 64, true),
    ];
    let register = |bits: u32| match bits {
        8 | 16 => ('h', "h", 16),
        32 => ('r', "r", 32),
        _ => ('l', "l", 64),
    };
    let range = |bits: u32, signed: bool| {
        let highest = (1_i128 << (bits - u32::from(signed))) - 1;
        (if signed { -highest - 1 } else { 0 }, highest)
    };
    let low = |value: i128, bits: u32| (value & ((1 << bits) - 1)) as u64;
    let mut all = Vec::new();
    for (to, to_bits, to_signed) in kinds {
        let (letter, _, whole_register) = register(to_bits);
        let (lowest, highest) = range(to_bits, to_signed);
        for (from, from_bits, from_signed) in kinds {
            let (_, argument, _) = register(from_bits);
            let value = move |x: u64| {
                let kept = i128::from(x) & ((1 << from_bits) - 1);
                if from_signed && kept >> (from_bits - 1) & 1 == 1 {
                    kept - (1 << from_bits)
                } else {
                    kept
                }
            };
            // Truncates to the bits of the type, then extends.
            let extended = move |it: i128| {
                let kept = it & ((1 << to_bits) - 1);
                let own = if to_signed && kept >> (to_bits - 1) & 1 == 1 {
                    kept - (1 << to_bits)
                } else {
                    kept
                };
                low(own, whole_register)
            };
            all.push(case(format!("cvt.{to}.{from} %0, %1;"), letter, argument, move |x| {
                extended(value(x[0]))
            }));
            // Allowed if a number may be out of range.
            let (least, most) = range(from_bits, from_signed);
            if least < lowest || most > highest {
                all.push(case(
                    format!("cvt.sat.{to}.{from} %0, %1;"),
                    letter,
                    argument,
                    move |x| extended(value(x[0]).clamp(lowest, highest)),
                ));
            }
        }
        for (name, how) in [
            ("rni", Round::Nearest),
            ("rzi", Round::Zero),
            ("rmi", Round::Down),
            ("rpi", Round::Up),
        ] {
            let of = move |value: f64, has_64: bool| {
                let own = if value.is_nan() {
                    if has_64 { 1 << (to_bits - 1) } else { 0 }
                } else {
                    // Also beyond the range of i128.
                    (whole(value, how) as i128).clamp(lowest, highest)
                };
                let kept = own & ((1 << to_bits) - 1);
                let extended = if to_signed && kept >> (to_bits - 1) & 1 == 1 {
                    kept - (1 << to_bits)
                } else {
                    kept
                };
                low(extended, whole_register)
            };
            all.push(case(format!("cvt.{name}.{to}.f32 %0, %1;"), letter, "r", move |x| {
                of(single(x[0]).into(), to_bits == 64)
            }));
            all.push(case(format!("cvt.{name}.{to}.f64 %0, %1;"), letter, "l", move |x| {
                of(f64::from_bits(x[0]), true)
            }));
        }
    }
    for (name, how) in
        [("rni", Round::Nearest), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)]
    {
        all.push(float_case(format!("cvt.{name}.f32.f32 %0, %1;"), 32, "r", move |x| {
            bits(whole(single(x[0]).into(), how) as f32)
        }));
    }
    all.push(float_case("cvt.f64.f32 %0, %1;", 64, "r", |x| f64::from(single(x[0])).to_bits()));
    all.push(float_case("cvt.sat.f32.f32 %0, %1;", 32, "r", |x| bits(saturated(single(x[0])))));
    all.push(float_case("cvt.ftz.f32.f32 %0, %1;", 32, "r", |x| bits(flushed(single(x[0])))));
    all.push(case("cvt.pack.sat.s16.s32 %0, %1, %2;", 'r', "rr", |x| {
        let part = |it: u64| (it as i32).clamp(-32768, 32767) as u16;
        u64::from(part(x[0])) << 16 | u64::from(part(x[1]))
    }));
    all.push(case("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;", 'r', "rrr", |x| {
        let part = |it: u64| (it as i32).clamp(0, 255) as u64;
        (x[2] << 16 | part(x[0]) << 8 | part(x[1])) & 0xffff_ffff
    }));
    all
}

/// Returns the value of a half-precision number.
fn half(bits: u64) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 0x3ff) as f64);
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 & 1 == 1 { -size } else { size }
}

/// Returns the half-precision number nearest to an exact number, ties to even, by trying all of them.
fn to_half(exact: f64) -> u64 {
    let sign = if exact.is_sign_negative() { 0x8000 } else { 0 };
    let size = exact.abs();
    if exact.is_nan() {
        return 0x7fff;
    }
    // The midpoint after the largest number rounds to infinity.
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    let below =
        (0..0x7c00_u64).collect::<Vec<_>>().partition_point(|&it| half(it) <= size) as u64 - 1;
    let (low, high) = (half(below), if below == 0x7bff { 65536.0 } else { half(below + 1) });
    let is_up = match (size - low).total_cmp(&(high - size)) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => below & 1 == 1,
    };
    sign | (below + u64::from(is_up))
}

fn halves() -> Vec<Case> {
    let sign = |x: &[u64]| (half(x[0] & 0xffff), half(x[1] & 0xffff));
    vec![
        float_case("add.f16 %0, %1, %2;", 16, "hh", move |x| to_half(sign(x).0 + sign(x).1)),
        float_case("sub.rn.f16 %0, %1, %2;", 16, "hh", move |x| to_half(sign(x).0 - sign(x).1)),
        float_case("mul.f16 %0, %1, %2;", 16, "hh", move |x| to_half(sign(x).0 * sign(x).1)),
        float_case("fma.rn.f16 %0, %1, %2, %3;", 16, "hhh", |x| {
            to_half(half(x[0]).mul_add(half(x[1]), half(x[2])))
        }),
        float_case("cvt.rn.f16.f32 %0, %1;", 16, "r", |x| to_half(single(x[0]).into())),
        float_case("cvt.f32.f16 %0, %1;", 32, "h", |x| bits(half(x[0]) as f32)),
        float_case("cvt.rn.f16.f64 %0, %1;", 16, "l", |x| to_half(f64::from_bits(x[0]))),
        float_case(
            "{.reg .b32 t; mov.b32 t, {%1, %2}; mul.f16x2 t, t, t; mov.b32 {_, %0}, t;}",
            16,
            "hh",
            |x| to_half(half(x[1]) * half(x[1])),
        ),
        float_case(
            "{.reg .b32 t; cvt.rn.f16x2.f32 t, %1, %2; mov.b32 {%0, _}, t;}",
            16,
            "rr",
            |x| to_half(single(x[1]).into()),
        ),
        case("neg.f16 %0, %1;", 'h', "h", |x| x[0] ^ 0x8000),
        float_case("{.reg .b16 t; cvt.rn.bf16.f32 t, %1; mov.b32 %0, {0, t};}", 32, "r", |x| {
            // The upper half of a float, rounded to nearest, ties to even.
            if single(x[0]).is_nan() {
                0x7fff_0000
            } else {
                (x[0] + 0x7fff + (x[0] >> 16 & 1)) & 0xffff_0000
            }
        }),
        case("cvt.rni.s32.f16 %0, %1;", 'r', "h", |x| {
            let value = half(x[0]).round_ties_even();
            // NaN becomes zero, as with `as`.
            u64::from(value as i32 as u32)
        }),
    ]
}

/// Rounds a float to a format with 13 fewer bits, by trying both neighbours. For a tie, `tie` returns true if
/// the upper one is taken.
fn to_tf32(x: u64, tie: impl Fn(u64) -> bool) -> u64 {
    let x = x as u32 as u64;
    let (below, rest) = (x / 0x2000, x % 0x2000);
    match single(x) {
        value if value.is_nan() => 0x7fff_ffff,
        _ if rest > 0x1000 || (rest == 0x1000 && tie(below)) => (below + 1) * 0x2000,
        _ => below * 0x2000,
    }
}

fn tensor_floats() -> Vec<Case> {
    let even = |below: u64| below % 2 == 1;
    vec![
        float_case("cvt.rna.tf32.f32 %0, %1;", 32, "r", |x| to_tf32(x[0], |_| true)),
        float_case("cvt.rn.tf32.f32 %0, %1;", 32, "r", move |x| to_tf32(x[0], even)),
        float_case("cvt.rz.tf32.f32 %0, %1;", 32, "r", |x| match single(x[0]).is_nan() {
            true => 0x7fff_ffff,
            false => x[0] & 0xffff_e000,
        }),
        float_case("cvt.rn.relu.tf32.f32 %0, %1;", 32, "r", move |x| {
            if single(x[0]) <= 0.0 { 0 } else { to_tf32(x[0], even) }
        }),
    ]
}

/// Functions that a GPU approximates are correctly rounded here.
fn approximations() -> Vec<Case> {
    let functions: [(&str, Function); 3] =
        [("rcp", |x| 1.0 / x), ("sqrt", f64::sqrt), ("rsqrt", |x| 1.0 / x.sqrt())];
    let of = |(name, function): (&str, Function)| {
        float_case(format!("{name}.approx.f32 %0, %1;"), 32, "r", move |x| {
            bits(function(single(x[0]).into()) as f32)
        })
    };
    functions.into_iter().map(of).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = arithmetic();
    all.extend(comparisons());
    all.extend(to_integers());
    all.extend(halves());
    all.extend(tensor_floats());
    all.extend(approximations());
    all
}
